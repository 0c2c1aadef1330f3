import pytest

from autoscaler.model.policy import Policy
from autoscaler.service import exit_codes
from autoscaler.service.config_root import shipped_config
from autoscaler.service.faults import ConfigError
from autoscaler.service.policy_file import default_policy
from autoscaler.service.policy_variables import SHORT_NAMES, policy_overrides, policy_variables
from autoscaler.service.settings import load_settings, setting_variables

pytestmark = pytest.mark.unit


def test_an_empty_environment_gives_the_documented_defaults() -> None:
    settings = load_settings({})

    assert settings.cycle == 60_000
    assert settings.debounce == 2_000
    assert settings.prometheus_url == ""
    assert (settings.api_qps, settings.api_burst) == (20.0, 40)


def test_every_setting_is_read_from_its_variable() -> None:
    settings = load_settings(
        {
            "AUTOSCALER_PROMETHEUS_URL": "https://prom.example:9090/tenant/",
            "AUTOSCALER_PROMETHEUS_TOKEN_FILE": "/run/token",
            "AUTOSCALER_PROMETHEUS_HEADERS": "X-Scope-OrgID=team-a, X-Other=1=2",
            "AUTOSCALER_PROMETHEUS_PARAMS": "partial_response=false, extra_filters[]={a%3D%22b%22%2Cc%3D%22%22}",
            "AUTOSCALER_PROMETHEUS_METHOD": "get",
            "AUTOSCALER_PROMETHEUS_TIMEOUT": "45s",
            "AUTOSCALER_CYCLE": "1m30s",
            "AUTOSCALER_DEBOUNCE": "500ms",
            "AUTOSCALER_LISTEN": "[::1]:0",
            "AUTOSCALER_LOG_FORMAT": "console",
            "AUTOSCALER_API_QPS": "5",
            "HOME": "/somewhere",
        }
    )

    assert settings.prometheus_url == "https://prom.example:9090/tenant"
    assert settings.prometheus_headers["X-Other"].get_secret_value() == "1=2"
    assert settings.prometheus_params == (
        ("partial_response", "false"),
        ("extra_filters[]", '{a="b",c=""}'),
    )
    assert (settings.prometheus_method, settings.prometheus_timeout) == ("get", 45_000)
    assert (settings.cycle, settings.debounce) == (90_000, 500)
    assert settings.listen_address(in_cluster=True) == ("::1", 0)


def test_an_empty_variable_is_an_unset_one() -> None:
    assert load_settings({"AUTOSCALER_CYCLE": "", "AUTOSCALER_PROMETHEUS_TOKEN_FILE": " "}) == load_settings(
        {}
    )


def test_only_a_pod_listens_on_all_interfaces_by_default() -> None:
    settings = load_settings({})

    assert settings.listen_address(in_cluster=True) == ("0.0.0.0", 8080)
    assert settings.listen_address(in_cluster=False) == ("127.0.0.1", 8080)


def test_an_unknown_variable_stops_the_start_with_the_closest_match() -> None:
    with pytest.raises(
        ConfigError,
        match=r"AUTOSCALER_PROMETHEUS_ULR is not a setting; did you mean AUTOSCALER_PROMETHEUS_URL\?",
    ) as caught:
        load_settings({"AUTOSCALER_PROMETHEUS_ULR": "x"})

    assert caught.value.exit_code == exit_codes.USAGE
    assert "AUTOSCALER_POLICY_FILE" in str(caught.value)


def test_a_misspelt_policy_field_is_unknown_too() -> None:
    with pytest.raises(ConfigError, match="did you mean AUTOSCALER_EVIDENCE_WINDOW"):
        load_settings({"AUTOSCALER_EVIDENCE_WINDOWS": "5m"})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("AUTOSCALER_CYCLE", "60", "not a duration (use e.g. 30s"),
        ("AUTOSCALER_CYCLE", "0s", "must be over 0s"),
        ("AUTOSCALER_PROMETHEUS_URL", "prom:9090", "expected http(s)://host[:port][/path]"),
        ("AUTOSCALER_LISTEN", "8080", "expected HOST:PORT"),
        ("AUTOSCALER_LISTEN", "localhost:99999", "expected HOST:PORT"),
        ("AUTOSCALER_LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
        ("AUTOSCALER_API_QPS", "-1", "greater than 0"),
        ("AUTOSCALER_API_BURST", "many", "valid integer"),
        ("AUTOSCALER_PROMETHEUS_HEADERS", "no-equals-sign", "Name=value pairs"),
        ("AUTOSCALER_PROMETHEUS_PARAMS", "dedup", "name=value pairs"),
        ("AUTOSCALER_PROMETHEUS_PARAMS", "=1", "name=value pairs"),
        ("AUTOSCALER_PROMETHEUS_PARAMS", "a=%00", "name=value pairs"),
        ("AUTOSCALER_PROMETHEUS_PARAMS", "dedup=true,query=up", "query is set by each query itself"),
        ("AUTOSCALER_PROMETHEUS_PARAMS", "%71uery=up", "query is set by each query itself"),
        ("AUTOSCALER_PROMETHEUS_PARAMS", "limit=10", "limit is set by each query itself"),
        ("AUTOSCALER_PROMETHEUS_METHOD", "put", "'post' or 'get'"),
        ("AUTOSCALER_PROMETHEUS_TIMEOUT", "0s", "must be over 0s"),
        ("AUTOSCALER_MODE", "yolo", "allowed: observe, recommend, apply"),
        ("AUTOSCALER_MODES_IDLE", "yolo", "allowed: observe, recommend, apply"),
        ("AUTOSCALER_EVIDENCE_MIN_COVERAGE", "2", "`float` <= 1.0"),
        ("AUTOSCALER_EVIDENCE_WINDOW", "soon", "not a duration"),
        ("AUTOSCALER_METHODS_IDLE", "maybe", "`bool`"),
        ("AUTOSCALER_RESOURCES_STEPS", "1,two", "`int`"),
    ],
)
def test_a_bad_value_names_its_variable_and_what_is_allowed(name: str, value: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings({name: value})

    assert name in str(caught.value)
    assert told in str(caught.value)


def test_a_secret_never_appears_in_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings({"AUTOSCALER_PROMETHEUS_HEADERS": "canary-secret"})

    assert "canary" not in str(caught.value)


def test_secrets_are_masked_in_the_effective_configuration() -> None:
    settings = load_settings(
        {
            "AUTOSCALER_PROMETHEUS_HEADERS": "Authorization=Basic canary",
            "AUTOSCALER_PROMETHEUS_URL": "http://me:canary@prom:9090",
        }
    )

    assert "canary" not in str(settings.effective())
    assert settings.effective()["cycle"] == "1m"


def test_the_effective_configuration_shows_parameters_and_durations_as_they_are_written() -> None:
    settings = load_settings({"AUTOSCALER_PROMETHEUS_PARAMS": "dedup=true,partial_response=false"})

    assert settings.effective()["prometheus_params"] == ["dedup=true", "partial_response=false"]
    assert settings.effective()["prometheus_timeout"] == "30s"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AUTOSCALER_SERVICE_HOST", "10.0.0.1"),
        ("AUTOSCALER_SERVICE_PORT", "8080"),
        ("AUTOSCALER_SERVICE_PORT_HTTP", "8080"),
        ("AUTOSCALER_PORT", "tcp://10.0.0.1:8080"),
        ("AUTOSCALER_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ("AUTOSCALER_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("AUTOSCALER_METRICS_SERVICE_HOST", "10.0.0.1"),
        ("AUTOSCALER_METRICS_PORT_9090_UDP_PROTO", "udp"),
    ],
)
def test_variables_of_a_service_called_autoscaler_are_ignored(name: str, value: str) -> None:
    assert load_settings({name: value}) == load_settings({})


def test_a_port_that_is_no_service_link_is_an_unknown_setting() -> None:
    with pytest.raises(ConfigError, match="AUTOSCALER_LISTEN_PORT"):
        load_settings({"AUTOSCALER_LISTEN_PORT": "8080"})


def test_every_policy_field_has_a_variable_and_none_is_a_setting() -> None:
    names = set(policy_variables())

    assert {"AUTOSCALER_EVIDENCE_WINDOW", "AUTOSCALER_BUDGETS_FLEET_PER_HOUR", "AUTOSCALER_MODE"} <= names
    assert not names & set(setting_variables())


def test_policy_variables_are_read_by_their_types() -> None:
    overrides = policy_overrides(
        {
            "AUTOSCALER_EVIDENCE_WINDOW": "20s",
            "AUTOSCALER_POD_SELECTOR": "gpu=true",
            "AUTOSCALER_NAMESPACES": "a, b,",
            "AUTOSCALER_RESOURCES_BOARDS": "a.com/gpu, b.com/gpu",
            "AUTOSCALER_RESOURCES_STEPS": "",
            "AUTOSCALER_GUARDS_PRIORITY_FLOOR": "null",
            "AUTOSCALER_METHODS_SCALE_IN": "false",
            "AUTOSCALER_MODE": "observe",
        }
    )

    assert overrides == {
        "evidence": {"window": 20_000},
        "resources": {
            "boards": ("a.com/gpu", "b.com/gpu"),
            "steps": (),
            "podSelector": "gpu=true",
            "namespaces": ("a", "b"),
        },
        "guards": {"priorityFloor": None},
        "methods": {"scaleIn": False},
        "modes": {"default": "observe"},
    }


def test_the_short_and_the_long_name_of_the_mode_may_not_disagree() -> None:
    with pytest.raises(ConfigError, match="disagree"):
        policy_overrides({"AUTOSCALER_MODE": "observe", "AUTOSCALER_MODES_DEFAULT": "apply"})


def test_the_example_environment_is_acceptable_line_by_line_and_says_the_defaults() -> None:
    text = (shipped_config() / "example.env").read_text()
    lines = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# AUTOSCALER_")]
    environ = dict(line.split("=", 1) for line in lines if "  # " not in line)
    given = {name: value for name, value in environ.items() if value}

    assert set(environ) == ({*setting_variables(), *policy_variables()} - set(SHORT_NAMES))
    assert load_settings(given) == load_settings({})
    assert default_policy(policy_overrides(given)).policy == Policy()
