"""Published forms of the configuration, written from the types: default policy, JSON schemas, example environment.

``python -m autoscaler.service.published`` writes them; a test compares them with what is checked in.
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
import yaml

from autoscaler.model.duration import format_duration
from autoscaler.model.policy import API_VERSION, Policy, policy_schema, policy_to_dict
from autoscaler.observe.profiles import Profile
from autoscaler.observe.serving import ServingProfile
from autoscaler.service.config_root import shipped_config
from autoscaler.service.policy_file import KIND
from autoscaler.service.policy_variables import PREFIX, SHORT_NAMES, policy_variables
from autoscaler.service.settings import DURATIONS, Settings

_SCHEMAS: Final = "https://gpu-autoscaler.io/schemas"
SCHEMA_ID: Final = f"{_SCHEMAS}/policy-v1alpha1.json"


def policy_file_schema() -> dict[str, Any]:
    """JSON schema (2020-12) of a policy file."""
    schema = policy_schema()
    body = dict(schema["$defs"]["Policy"])
    body["properties"] = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        **body["properties"],
    }
    body["required"] = ["apiVersion", "kind"]
    rest = {name: value for name, value in schema["$defs"].items() if name != "Policy"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **body,
        "$defs": rest,
    }


def profile_schema(kind: type) -> dict[str, Any]:
    """JSON schema (2020-12) of a profile file: an exporter's or an inference server's."""
    (schema,), rest = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    body = dict(rest.pop(schema["$ref"].rpartition("/")[2]))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{_SCHEMAS}/{kind.__name__.lower()}-v1alpha1.json",
        **body,
        "$defs": rest,
    }


def default_policy_text() -> str:
    """The default policy as YAML, each field with its description."""
    return "\n".join(_lines()) + "\n"


def example_environment() -> str:
    """Every variable with its meaning and default, commented out."""
    lines = [
        "# Every variable with its default. Written from the types: do not edit.",
        "# Precedence: environment, then the policy file, then these defaults. Unknown AUTOSCALER_* names stop the start; an empty setting is unset.",
    ]
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if name in DURATIONS:
            default = format_duration(default)
        shown = "" if default in (None, {}, ()) else str(default)
        allowed = [str(option) for option in get_args(field.annotation) if isinstance(option, str)]
        meaning = field.description or f"one of {', '.join(allowed)}"
        lines += ["", f"# {meaning}", f"# {PREFIX}{name.upper()}={shown}"]
    lines += ["", "# Short names of policy fields."]
    lines += [f"# {short}=  # {long}" for short, long in SHORT_NAMES.items()]
    lines += ["", "# Policy fields; meanings and units are in config/policy/default.yaml."]
    values = policy_to_dict(Policy())
    for name, variable in policy_variables().items():
        if name not in SHORT_NAMES:
            lines.append(f"# {name}={_variable_text(values[variable.section][variable.field])}")
    return "\n".join(lines) + "\n"


def published_files() -> dict[str, str]:
    """Content by path under ``config``."""
    return {
        "policy/default.yaml": default_policy_text(),
        "policy/schema.json": json.dumps(policy_file_schema(), indent=2) + "\n",
        "profiles/schema.json": json.dumps(profile_schema(Profile), indent=2) + "\n",
        "profiles/serving/schema.json": json.dumps(profile_schema(ServingProfile), indent=2) + "\n",
        "example.env": example_environment(),
    }


def _variable_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)


def _lines() -> Iterator[str]:
    yield "# The defaults, field by field; a file needs to state only what differs. Written from the types: do not edit."
    yield "# yaml-language-server: $schema=./schema.json"
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {KIND}"
    values = policy_to_dict(Policy())
    for section in msgspec.structs.fields(Policy):
        yield ""
        doc = (section.type.__doc__ or "").strip().splitlines()[0]
        yield f"# {doc}"
        yield f"{section.encode_name}:"
        for field in msgspec.structs.fields(section.type):
            if described := _description(field.type):
                yield f"  # {described}"
            value = values[section.encode_name][field.encode_name]
            yield f"  {field.encode_name}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


def _description(kind: Any) -> str:
    if get_origin(kind) is not Annotated:
        return ""
    found = (meta.description for meta in get_args(kind)[1:] if isinstance(meta, msgspec.Meta))
    return next((text for text in found if text), "")


def main() -> None:
    """Writes the files."""
    for name, text in published_files().items():
        (shipped_config() / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
