"""The process' settings: environment variables ``AUTOSCALER_*``, read once at the door.

Every policy field is a variable too (see `policy_variables`). A variable with our prefix that nobody knows stops the start:
a misspelt limit that is silently ignored is how tools take too much. Variables that Kubernetes injects for a Service
called ``autoscaler`` are the exception, and only in the exact form in which it injects them.
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NoReturn
from urllib.parse import unquote

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from autoscaler.model.duration import Duration, DurationError, format_duration, parse_duration
from autoscaler.observe.prometheus import RESERVED_PARAMS
from autoscaler.service.faults import ConfigError
from autoscaler.service.policy_variables import PREFIX, SHORT_NAMES, policy_overrides, policy_variables

_SERVICE_LINK: Final = re.compile(
    r"AUTOSCALER_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)"
)
_SERVICE_LINK_PORT: Final = re.compile(r"AUTOSCALER_(?:\w+_)?PORT")
_SERVICE_LINK_URL: Final = re.compile(r"(?:tcp|udp|sctp)://")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PARAM_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*(\[\])?", re.ASCII)
IN_CLUSTER_LISTEN: Final = "0.0.0.0:8080"
DURATIONS: Final = frozenset({"cycle", "debounce", "history_read", "prometheus_timeout"})
LOCAL_LISTEN: Final = "127.0.0.1:8080"


def _duration(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except DurationError as error:
            raise ValueError(str(error)) from error
    return value


def _positive(value: Any) -> Any:
    duration = _duration(value)
    if duration <= 0:
        raise ValueError("must be over 0s")
    return duration


def _headers(value: Any) -> Any:
    """``Name=value`` pairs, separated by commas; values stay secret, since tenants and tokens travel here."""
    if not isinstance(value, str):
        return value
    headers: dict[str, SecretStr] = {}
    for pair in filter(None, (item.strip() for item in value.split(","))):
        name, separator, text = pair.partition("=")
        if not separator or not _HEADER_NAME.fullmatch(name.strip()) or not text.isprintable():
            raise ValueError("expected Name=value pairs separated by commas, e.g. X-Scope-OrgID=team-a")
        headers[name.strip()] = SecretStr(text.strip())
    return headers


def _params(value: Any) -> Any:
    """``name=value`` pairs, separated by commas; percent-encoding writes a comma inside a value. Names may repeat."""
    if not isinstance(value, str):
        return value
    params: list[tuple[str, str]] = []
    for pair in filter(None, (item.strip() for item in value.split(","))):
        name, separator, text = (unquote(part.strip()) for part in pair.partition("="))
        if not separator or not _PARAM_NAME.fullmatch(name) or not text.isprintable():
            raise ValueError("expected name=value pairs separated by commas, e.g. partial_response=false")
        if name in RESERVED_PARAMS:
            raise ValueError(f"{name} is set by each query itself")
        params.append((name, text))
    return tuple(params)


def _url(value: str) -> str:
    if value and not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", value):
        raise ValueError("expected http(s)://host[:port][/path]")
    return value.rstrip("/")


def _listen(value: str) -> str:
    host, separator, port = value.rpartition(":")
    if value and not (separator and host and port.isdecimal() and int(port) < 65_536):
        raise ValueError("expected HOST:PORT, e.g. 127.0.0.1:8080; port 0 takes a free one")
    return value


def _namespace(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value):
        raise ValueError("expected the name of a namespace")
    return value


DurationText = Annotated[int, BeforeValidator(_positive)]


class Settings(BaseSettings):
    """What a process needs to know beside the policy; immutable. Durations are integer milliseconds."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    prometheus_url: Annotated[str, BeforeValidator(_url)] = Field(
        "", description="base URL of the metrics store"
    )
    prometheus_token_file: Path | None = Field(None, description="bearer token, read again when it changes")
    prometheus_ca_file: Path | None = Field(
        None, description="certificates that sign the store's certificate"
    )
    prometheus_headers: Annotated[dict[str, SecretStr], NoDecode, BeforeValidator(_headers)] = Field(
        {}, description="extra request headers, Name=value separated by commas"
    )
    prometheus_params: Annotated[tuple[tuple[str, str], ...], NoDecode, BeforeValidator(_params)] = Field(
        (),
        description="extra parameters of every query, name=value separated by commas, e.g. partial_response=false (Thanos), "
        "nocache=1 (VictoriaMetrics); no secrets here",
    )
    prometheus_method: Literal["post", "get"] = Field(
        "post", description="get: for a store or proxy that refuses POST (405)"
    )
    prometheus_timeout: DurationText = Field(
        Duration(30_000),
        description="limit of one query, in the store (nine tenths of it) and in waiting for it",
    )
    kubeconfig: Path | None = Field(
        None, description="kubeconfig file; unset: in-cluster, else ~/.kube/config"
    )
    context: str = Field("", description="context of the kubeconfig; unset: its current one")
    policy_file: Path | None = Field(None, description="policy file, reloaded live; unset: the defaults")
    cycle: DurationText = Field(Duration(60_000), description="time between cycles without events")
    history_read: Annotated[int, BeforeValidator(_duration)] = Field(
        Duration(15_000),
        description="how long a command that reads the cluster once (report, plan, explain, snapshot, apply) reads the history of "
        "workloads for; 0s: not at all, it then judges by what live pods show",
    )
    debounce: DurationText = Field(Duration(2_000), description="how long events are gathered before a cycle")
    listen: Annotated[str, BeforeValidator(_listen)] = Field(
        "",
        description=f"HOST:PORT of the HTTP server; unset: {IN_CLUSTER_LISTEN} in a cluster, else {LOCAL_LISTEN}",
    )
    profiles_dir: Path | None = Field(
        None, description="own exporter profiles, beside the shipped ones; one of the same name replaces it"
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"
    api_qps: float = Field(20.0, gt=0, le=1000, description="requests per second to the API server")
    api_burst: int = Field(40, ge=1, le=2000, description="requests to the API server at once")
    namespace: Annotated[str, BeforeValidator(_namespace)] = Field(
        "gpu-autoscaler", description="our own namespace: the lease, the ledger and the pause are kept there"
    )
    identity: str = Field("", max_length=200, description="our name as a leader; unset: the host's name")
    leader_election: Literal["auto", "true", "false"] = Field(
        "auto",
        description="one leader by Lease; auto: in a cluster, and wherever a mode is apply; false: only without mode apply",
    )
    events: Literal["true", "false"] = Field(
        "false", description="write Events about acts and refused acts to the workloads' namespaces"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_settings` hands in: the environment is an argument here, not an ambient fact."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    def listen_address(self, *, in_cluster: bool) -> tuple[str, int]:
        """Host and port to serve on: all interfaces only in a pod, the loopback elsewhere."""
        text = self.listen or (IN_CLUSTER_LISTEN if in_cluster else LOCAL_LISTEN)
        host, _, port = text.rpartition(":")
        return host.strip("[]"), int(port)

    def effective(self) -> dict[str, Any]:
        """Plain data to print: durations as text, secrets masked, passwords in the URL too."""
        shown: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name in DURATIONS:
                value = format_duration(value)
            elif isinstance(value, dict):
                value = {key: str(item) for key, item in value.items()}
            elif isinstance(value, Path):
                value = str(value)
            elif name == "prometheus_params":
                value = [f"{key}={item}" for key, item in value]
            shown[name] = list(value) if isinstance(value, tuple) else value
        shown["prometheus_url"] = re.sub(r"//[^/@]*@", "//**********@", self.prometheus_url)
        return shown


class _Environment(EnvSettingsSource):
    """pydantic's own reading of environment variables, over a given mapping."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(Settings)
        self.env_vars = {name.lower(): value for name, value in environ.items()}


def load_settings(environ: Mapping[str, str]) -> Settings:
    """The settings in the environment; raises `ConfigError` naming the variable and what is allowed.

    Policy variables are checked here too, so that a bad one stops the start before anything else does.
    """
    ours = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    _refuse_unknown(ours)
    policy_overrides(ours)
    try:
        # Manifests write `value: ""` for what they leave open.
        return Settings(**_Environment({name: value for name, value in ours.items() if value.strip()})())
    except ValidationError as error:
        _refuse_value(error)


def setting_variables() -> tuple[str, ...]:
    """The names of all variables that are settings, not policy."""
    return tuple(f"{PREFIX}{name}".upper() for name in Settings.model_fields)


def is_service_link(name: str, value: str) -> bool:
    """Whether Kubernetes injected this for a Service whose name begins with ``autoscaler``."""
    if _SERVICE_LINK.fullmatch(name):
        return True
    return bool(_SERVICE_LINK_PORT.fullmatch(name) and _SERVICE_LINK_URL.match(value))


def _refuse_unknown(ours: Mapping[str, str]) -> None:
    known = {*setting_variables(), *policy_variables()}
    unknown = [
        name for name, value in sorted(ours.items()) if name not in known and not is_service_link(name, value)
    ]
    if not unknown:
        return
    name = unknown[0]
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    hint = f"; did you mean {close[0]}?" if close else ""
    allowed = ", ".join([*sorted(setting_variables()), *SHORT_NAMES, f"{PREFIX}<POLICY SECTION>_<FIELD>"])
    raise ConfigError(f"{name} is not a setting{hint} (allowed: {allowed})")


def _refuse_value(error: ValidationError) -> NoReturn:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name = f"{PREFIX}{first['loc'][0]}".upper()
    message = str(first["msg"]).removeprefix("Value error, ")
    raise ConfigError(f"{name} is not acceptable: {message}") from None
