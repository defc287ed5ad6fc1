"""Configuration: allowed values, their meaning, and errors."""

from __future__ import annotations

import contextlib
import copy
import pickle
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agenteval.cli.main import main
from otel_agenteval.config import loader, yaml
from otel_agenteval.config.judge import JobQueueOptions, SpendingOptions
from otel_agenteval.config.loader import effective_yaml, load_config
from otel_agenteval.config.root import Config
from otel_agenteval.config.section import Option, kind_of, option_paths, options_of, section_of
from otel_agenteval.config.serve import TlsOptions
from otel_agenteval.config.turn import TurnOptions
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.metrics.registry import GROUPS, default_pack, group_of

NOTHING: dict[str, str] = {}


def at(config: Any, path: str) -> Any:
    for part in path.split("."):
        config = getattr(config, part)
    return config


NEEDED = {
    "outlets.otlp": {"endpoint": "http://127.0.0.1:4317"},
    "outlets.webhook": {"url": "https://hooks.example/x"},
    "outlets.otlp.spool": {"directory": "spool"},
    "outlets.store": {"path": "scores.db"},
}
"""Required options of each section."""
BESIDE = {
    "outlets.otlp.cert_file": {"key_file": "file.pem"},
    "outlets.otlp.key_file": {"cert_file": "file.pem"},
    "serve.tls.cert_file": {"key_file": "file.pem"},
    "serve.tls.key_file": {"cert_file": "file.pem"},
    "serve.tls.client_ca_file": {"cert_file": "file.pem", "key_file": "file.pem"},
    "judge.queue.path": {"backend": "sqlite"},
    "outlets.webhook.format": {"routing_key": "r"},
}
"""Other options that an option requires."""


ABOVE = {"serve.page.read_token": {"serve": {"token": "anything"}}}
"""Options that require an option of a parent section, by path of this section."""


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return a configuration in which an option has a value, with the other options that it requires."""
    above = ABOVE.get(path, {}) if value is not None else {}
    beside = BESIDE.get(path, {}) if value is not None else {}
    while path:
        path, _, part = path.rpartition(".")
        value, beside = {**NEEDED.get(path, {}), **above.get(path, {}), **beside, part: value}, {}
    return value


def leaf_paths() -> set[str]:
    """Return every option that isn't a section."""
    paths = [".".join(path) for path in option_paths(Config)]
    return {path for path in paths if not any(other.startswith(f"{path}.") for other in paths)}


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / "agenteval.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def message_of(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(*args, **kwargs)
    return str(caught.value)


# --- values


@pytest.mark.parametrize(
    ("path", "written", "meant"),
    [
        ("turn.idle_timeout", "0.5s", 0.5),
        ("turn.idle_timeout", 1500, 1.5),
        ("turn.max_duration", "1d", 86400.0),
        ("turn.decision_delay", "auto", "auto"),
        ("turn.decision_delay", 0, 0.0),
        ("turn.max_bytes", "64kB", 64_000),
        ("turn.total_bytes", "1.5 GiB", 3 * 2**29),
        ("imports", ["my_app.metrics", "json"], ("my_app.metrics", "json")),
        ("inline.metrics", "default", "default"),
        ("inline.metrics", ["code_latency"], ("code_latency",)),
        ("outlets.log_events", False, "off"),
        ("outlets.log_events", True, "all"),
        ("outlets.prometheus", None, None),
        ("outlets.prometheus.port", 9464, 9464),
        ("outlets.otlp.headers", {"X-Tenant": "acme"}, {"x-tenant": "acme"}),
        ("outlets.otlp.log_events", False, "off"),
        ("outlets.console", True, "all"),
        ("outlets.webhook", None, None),
        ("outlets.webhook.about", ["errors", "gates", "gates"], ("errors", "gates")),
        ("outlets.webhook.floors", {"code_tool_success": 1, "code_cost": "-0.5"}, {"code_tool_success": 1.0, "code_cost": -0.5}),
        ("outlets.webhook.headers", {"X-Team": "desk"}, {"x-team": "desk"}),
        *[(f"{section}.headers", {"X-Team": "desk"}, {"x-team": "desk"}) for section in ("judge", "embedder")],
        ("outlets.jsonl", Path("scores.jsonl"), "scores.jsonl"),
        ("references.accept_from", ["eval.truth", "baggage:case"], {"eval.truth": "truth", "baggage:case": "case"}),
        ("references.accept_from", {"app.answer": "ground_truth"}, {"app.answer": "ground_truth"}),
        ("references.retrievers", "search_docs", ("search_docs",)),
        ("references.response.output", "messages[-1].content", ("messages[-1].content",)),
        ("references.response.context", ["context", "sources"], ("context", "sources")),
        ("references.response.query", "query", ("query",)),
        ("references.response.tool_calls", ["calls", "tools"], ("calls", "tools")),
        ("references.prompts", ["About {documents}.", "{rest}\n{documents}"], ("About {documents}.", "{rest}\n{documents}")),
        ("references.document_ids", {"kb/*#1": "*", "a": "b"}, {"kb/*#1": "*", "a": "b"}),
        ("outlets.store.attributes", ["app.prompt"], ("app.prompt",)),
        ("statistics.changes.detect", "auto", "auto"),
        ("statistics.changes.detect", "true", True),
        ("statistics.state", None, None),
        ("feedback.attributes", ["app.stars"], ("app.stars",)),
        ("privacy.redact", ["email", "ssn"], ("email", "ssn")),
        ("judge.prices", {"m": {"input": 1, "output": "2.5"}}, {"m": {"input": 1, "output": 2.5}}),
        (
            "embedder.prices",
            {"m": {"input": 1, "output": 2, "cached_input": 0}},
            {"m": {"input": 1, "output": 2, "cached_input": 0}},
        ),
        ("judge.budget.metrics", {"llm_relevance": {"usd_per_day": 1}}, {"llm_relevance": SpendingOptions(usd_per_day=1)}),
        ("judge.queue.backend", "memory", "memory"),
        ("judge.queue.url", None, None),
        ("judge.queue", {"backend": "sqlite", "path": "q.db"}, JobQueueOptions(backend="sqlite", path="q.db")),
        ("judge.panel.models", ["a", " b "], ("a", "b")),
        ("media.hosts", ["CDN.example.com", "*.example.org", "[::1]:80"], ("cdn.example.com", "*.example.org", "[::1]:80")),
        ("media.folders", ["/srv/media"], ("/srv/media",)),
        ("media.buckets", ["s3://calls/2026/", "gs://media"], ("s3://calls/2026/", "gs://media")),
        ("serve.http", " [::1]:4318 ", "[::1]:4318"),
        ("serve.page.trace_url", "https://g.example/t?id={trace_id}&x=1", "https://g.example/t?id={trace_id}&x=1"),
        ("serve.tls", {"cert_file": "c", "key_file": "k"}, TlsOptions(cert_file="c", key_file="k")),
        ("serve.allowed_hosts", "Sidecar", ("sidecar",)),
        ("serve.allowed_origins", ["https://ui.example"], ("https://ui.example",)),
        ("serve.ready_outlets", ["store", "otlp"], ("store", "otlp")),
    ],
)
def test_a_value_is_read(path: str, written: Any, meant: Any) -> None:
    assert at(load_config(nested(path, written), NOTHING), path) == meant


DURATION = "a duration"
SIZE = "a size of at least 1 byte"
COUNT = "an integer from 1 to 10¹²"
SWITCH = "true or false"
LOG_EVENTS = "auto, all, notable, or off (true means all, false means off)"
LISTEN = "HOST:PORT"
ADDRESS = "a URL that starts with http:// or https://"


MAY_BE_SECRET = (
    "turn", "judge.base_url", "metrics", "outlets.prometheus", "outlets.otlp.headers", "outlets.webhook.headers", "judge.headers",
    "embedder.headers", "judge.budget.metrics", "judge.queue", "judge.queue.url", "outlets.webhook.url", "outlets.otlp.endpoint",
)  # fmt: skip
"""Sections and options that can contain a secret. Errors show only the form of their values."""


@pytest.mark.parametrize(
    ("path", "value", "allowed"),
    [
        ("turn", 5, "a mapping of idle_timeout, max_duration"),
        ("turn.idle_timeout", "5 minutes", DURATION),
        ("turn.idle_timeout", True, DURATION),
        ("turn.idle_timeout", "99999d", DURATION),
        ("judge.base_url", "file:///etc/passwd", ADDRESS),
        ("judge.base_url", "http://h:port/v1", ADDRESS),
        ("turn.decision_delay", "automatic", "auto or a duration"),
        ("turn.max_open", "9" * 5000, COUNT),
        ("turn.max_spans", None, COUNT),
        ("turn.max_bytes", "4 megs", SIZE),
        ("imports", [1], "list of Python modules"),
        ("inline.metrics", "code_latency", "or a list of groups and metric names"),
        ("metrics", "code_latency", "a list"),
        ("outlets.console", 2, "all, failed, or off (true means all, false means off)"),
        ("outlets.log_events", 2, LOG_EVENTS),
        ("outlets.prometheus", {"registry": "default", "port": 1}, "{port: N}, {registry: default}, or null"),
        ("outlets.prometheus.port", 65536, "65535"),
        ("outlets.otlp.headers", ["x-tenant"], "a mapping of header names to strings"),
        ("outlets.webhook.about", ["passed"], "a list of gates, critical, failed"),
        ("outlets.webhook.floors", {"code_cost": "low"}, "a mapping of metrics to numbers"),
        ("outlets.webhook.floors", {"code_cost": True}, "a mapping of metrics to numbers"),
        *[("outlets.webhook", {"url": "http://x", "link": one}, "link: only") for one in ("{a}", "{turn_id.a}", "{turn_id[a]}")],
        ("outlets.webhook.headers", [], "a mapping of header names to strings"),
        *[(f"{section}.headers", [], "a mapping of header names to strings") for section in ("judge", "embedder")],
        ("references.accept_from", "everything", "a list of span attributes"),
        ("references.accept_from", {"app.answer": 5}, "a mapping of attributes to references"),
        ("references.retrievers", [5], "a list of strings"),
        ("references.response.output", 5, "a list of paths"),
        ("references.response.context", [5], "a list of paths"),
        ("references.response.query", {}, "a list of paths"),
        ("references.response.tool_calls", "", "a list of paths"),
        ("references.prompts", "Documents: {document}", "templates, each with {documents} and other text"),
        ("references.prompts", ["{documents} or {documents}"], "each placeholder only once"),
        ("references.document_ids", {"*/*": "*"}, "with at most one * per side"),
        ("references.document_ids", ["kb"], "a mapping of retrieved IDs"),
        ("outlets.store.attributes", "app.prompt", "a list of attributes"),
        ("statistics.changes.detect", "maybe", "auto, true, or false"),
        ("statistics.state", 5, "a path"),
        ("feedback.attributes", "app.stars", "a list of span attributes"),
        ("privacy.redact", "email", "a list of email"),
        ("judge.prices", {"m": {"input": 1}}, "a mapping of models to prices"),
        ("judge.prices", {"m": {"input": 1, "output": True}}, "a mapping of models to prices"),
        ("embedder.prices", {"m": {"input": 1, "output": -1}}, "a mapping of models to prices"),
        ("judge.budget.metrics", 5, "a mapping of names"),
        ("judge.queue.backend", "kafka", "memory, sqlite, or redis"),
        ("judge.queue", {"backend": "sqlite"}, "{backend: sqlite, path: FILE}"),
        ("judge.queue.url", "http://127.0.0.1", "redis://host:6379/0"),
        ("judge.panel.models", ["a"], "two or more models"),
        ("media.hosts", ["https://cdn.example.com"], "a list of hosts"),
        ("media.folders", ["media"], "absolute paths"),
        ("media.buckets", ["calls"], "object store"),
        ("serve.http", "127.0.0.1:65536", LISTEN),
        ("serve.metrics", "::1:9464", LISTEN),
        ("serve.page.trace_url", "https://g.example/t", "a URL with {trace_id}"),
        ("serve.page.trace_url", "javascript:{trace_id}", "a URL with {trace_id}"),
        ("serve.tls", {"cert_file": "c"}, "set both cert_file and key_file"),
        ("serve.allowed_hosts", 5, "a list of strings"),
        ("serve.allowed_origins", [""], "a list of strings"),
        ("serve.ready_outlets", ["stores"], "a list of log_events"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_its_path_and_what_is(path: str, value: Any, allowed: str) -> None:
    message = message_of(nested(path, value), NOTHING)
    quoted = {"None": "null", "True": "true", "False": "false"}.get(repr(value), repr(value))
    assert message.startswith(f"{path}: ")
    assert f"must be {allowed}" in message or allowed in message
    form = {str: "****", list: "a list", dict: "a mapping"}.get(type(value), "a number")
    is_shown = path not in MAY_BE_SECRET or (path == "judge.base_url" and isinstance(value, str) and not set("@?#") & set(value))
    assert "must be" not in message or f"got {quoted[:40] if is_shown or not value else form}" in message

    assert "\n" not in message


OF_KINDS = {
    "duration from 1m": ("1h30m", 5400.0, 59_999, "of at least 1m"),
    "token or list of tokens": (" text\n", ("text",), 5, "string"),
    "duration above 0": ("1h30m", 5400.0, 0, "above 0"),
    "duration": ("5ms", 0.005, "soon", DURATION),
    "size": ("4MiB", 4 * 2**20, "0", SIZE),
    "positive whole number": ("7", 7, 0, COUNT),
    "share from 0 to 1": ("0.1", 0.1, 2, "a share from 0 to 1"),
    "`true` or `false`": ("yes", True, 2, SWITCH),
    "path": ("file.pem", "file.pem", [], "a path"),
    "HTTP or HTTPS URL": ("https://h:8443/v1/", "https://h:8443/v1", "h:8443", ADDRESS),
    "HTTP or HTTPS URL, also with a query": (" https://h/v1/?a=b", "https://h/v1/?a=b", "h:8443", ADDRESS),
    "string": (" text\n", "text", 5, "a non-empty string"),
    "HOST:PORT": ("localhost:0", "localhost:0", "127.0.0.1", LISTEN),
    "US dollars": ("0.5", 0.5, "much", "an amount of US dollars"),
}
"""For each type of option: a value, its meaning, an invalid value, and the allowed values."""


def option_at(path: str) -> Option:
    section: Any = Config
    for part in path.split(".")[:-1]:
        section = section_of(options_of(section)[part].annotation)
    return options_of(section)[path.rpartition(".")[2]]


def literals_of(annotation: Any) -> tuple[Any, ...]:
    """Return the values of ``Literal[…]`` or ``Literal[…] | None``, or nothing for other types."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    inner = get_args(annotation) if type(None) in get_args(annotation) else ()
    return next((found for found in map(literals_of, inner) if found), ())


@pytest.mark.parametrize("path", sorted(leaf_paths()))
def test_every_option_has_a_tested_kind_or_its_own_cases(path: str) -> None:
    option = option_at(path)
    kind, literals = kind_of(option.metadata, option.annotation), literals_of(option.annotation)
    if kind is not None and kind.described in OF_KINDS:
        written, meant, wrong, allowed = OF_KINDS[kind.described]
        assert at(load_config(nested(path, written), NOTHING), path) == meant
        assert f"{path}: must be " in message_of(nested(path, wrong), NOTHING)
        assert allowed in message_of(nested(path, wrong), NOTHING)
    elif literals and path != "judge.queue.backend":  # most backends need other options
        for value in literals:
            assert at(load_config(nested(path, value), NOTHING), path) == value
        assert message_of(nested(path, "other"), NOTHING).startswith(f"{path}: must be ")
    elif path not in LISTS_OF_ENTRIES:
        for test in (test_a_value_is_read, test_a_value_that_is_not_allowed_is_named_with_its_path_and_what_is):
            assert path in {case[0] for mark in test.pytestmark for case in mark.args[1]}  # type: ignore[attr-defined]


LISTS_OF_ENTRIES = {
    "metrics", "groups", "conversation.metrics", "judge.servers", "judge.choose", "references.given", "serve.tenants",
}  # fmt: skip
"""Lists of entries, which have their own tables."""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trun": {}}, "trun: unknown key. Did you mean 'turn'?"),
        ({"outlets": {"prometheus": {"prt": 1}}}, "outlets.prometheus.prt: unknown key. Did you mean 'port'?"),
        ({1: 2}, "1: unknown key"),
        ({"judge": {"servers": {"a": {}}}}, "judge.servers.a.base_url: required"),
        ({"judge": {"servers": {"a": {"base_url": "h"}}}}, "judge.servers.a.base_url: must be a URL"),
        ({"judge": {"choose": [{"metric": "llm_x"}]}}, "judge.choose[0].model: required"),
        ({"judge": {"choose": [{"model": "m", "metrics": "x"}]}}, "Did you mean 'metric'?"),
        ({"outlets": {"store": {}}}, "outlets.store.path: required"),
        ({"outlets": {"otlp": {"endpoint": "http://h", "spool": {}}}}, "outlets.otlp.spool.directory: required"),
        ({"groups": {"a": {}}}, "groups.a.metrics: required"),
        ({"serve": {"tenants": [{"name": "a"}]}}, "serve.tenants[0].token: required"),
        ({"metrics": [{"llm_x": {}, "sample": {"rate": 1, "cascade": {}}}]}, "metrics[0].sample.cascade.judge_if: required"),
        ({"metrics": [3]}, "metrics[0]: must be the name of a metric or"),
        ({"metrics": [{"policy": "gate"}]}, "metrics[0]: "),
        ({"metrics": [{"code_latency": {}, "polcy": "gate"}]}, "code_latency, polcy"),
        ({"metrics": [{"code_latency": 5}]}, "the parameters of code_latency must be a mapping"),
        ({"metrics": [{"code_latency": {}, "policy": "must"}]}, "metrics[0].policy: must be gate or trend"),
        ({"metrics": [{"llm_relevance": {}, "sample": {"always_if": "error"}}]}, "metrics[0].sample.rate: required"),
    ],
)
def test_an_unknown_missing_or_invalid_entry_is_named(given: dict[Any, Any], message: str) -> None:
    assert message in message_of(given, NOTHING)


def test_a_config_cannot_be_changed_after_it_was_read() -> None:
    config = load_config(env=NOTHING)
    with pytest.raises(ConfigError, match="max_open: a configuration is immutable"):
        config.turn.max_open = 3  # type: ignore[misc]
    with pytest.raises(ConfigError, match="turn: a configuration is immutable"):
        config.turn = TurnOptions()  # type: ignore[misc]
    with pytest.raises(ConfigError, match="turn: a configuration is immutable"):
        del config.turn  # type: ignore[misc]
    assert config == Config()


# --- made in code


@pytest.mark.parametrize("make", [lambda given: Config(**given), lambda given: load_config(given, NOTHING)])
def test_whoever_makes_a_config_gets_all_faults_as_one_config_error(make: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        make({"turn": {"max_open": 0, "idle": 1}, "trun": {}, "serve": {"tenants": [{"name": "a"}]}})
    named = [line.split(":")[0] for line in str(caught.value).splitlines()]
    assert sorted(named) == ["serve.tenants[0].token", "trun", "turn.idle", "turn.max_open"]
    assert caught.value.__suppress_context__
    assert make({"turn": {"max_open": 7}}) == load_config({"turn": {"max_open": 7}}, NOTHING)
    assert make({"turn": TurnOptions(max_open=7)}) == Config(turn={"max_open": "7"})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda config: pickle.loads(pickle.dumps(config))])
def test_a_copy_is_equal_and_still_says_where_its_values_came_from(file: Any, copied: Any) -> None:
    path = file("turn: {max_open: 7}\nmetrics: [code_latency]\n")
    config = load_config(path, NOTHING)
    again = copied(config)
    assert again == config
    assert again.where(("turn", "max_open")) == f"{path}:1: turn.max_open"
    with pytest.raises(ConfigError, match="immutable"):
        again.turn = TurnOptions()


# --- precedence


def test_defaults_give_way_to_the_file_the_file_to_the_environment_and_that_to_code(file: Any) -> None:
    path = file("turn: {idle_timeout: 1s, max_open: 1, max_spans: 1}\nexit_timeout: 1s\n")
    env = {"OTEL_AGENTEVAL_TURN__MAX_OPEN": "2", "OTEL_AGENTEVAL_TURN__MAX_SPANS": "2", "OTEL_AGENTEVAL_EXIT_TIMEOUT": "2s"}
    config = load_config(path, env, {"turn": {"max_spans": 3}})
    assert (config.turn.idle_timeout, config.turn.max_open, config.turn.max_spans) == (1.0, 2, 3)
    assert config.exit_timeout == 2.0
    assert config.turn.max_duration == 3600.0


def test_the_environment_names_the_file_unless_code_does(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"OTEL_AGENTEVAL_CONFIG_FILE": file("turn: {max_open: 1, max_spans: 1}\n"), "OTEL_AGENTEVAL_TURN__MAX_SPANS": "2"}
    turn = load_config(env=env).turn
    assert (turn.max_open, turn.max_spans) == (1, 2)
    turn = load_config({"turn": {"max_spans": 3}}, env).turn
    assert (turn.max_open, turn.max_spans) == (1, 3)
    monkeypatch.setenv("OTEL_AGENTEVAL_TURN__MAX_OPEN", "3")
    monkeypatch.setenv("OTEL_AGENTEVAL_TEST_JUDGE_URL", "what tests are told is no option")
    assert load_config().turn.max_open == 3


def test_a_config_is_complete_and_only_overrides_change_it() -> None:
    config = load_config({"turn": {"idle_timeout": "10s"}, "metrics": [{"code_latency": {}, "policy": "gate"}]}, NOTHING)
    env = {"OTEL_AGENTEVAL_TURN__MAX_OPEN": "2"}
    assert load_config(config, env) is config
    changed = load_config(config, env, {"outlets": {"prometheus": {"port": 0}}})
    assert changed.outlets.prometheus is not None
    assert changed.outlets.prometheus.port == 0
    assert (changed.turn, changed.metrics) == (config.turn, config.metrics)


def test_a_later_layer_replaces_the_prometheus_outlet_and_lists_as_a_whole(file: Any) -> None:
    path = file("outlets: {prometheus: {registry: default}}\nmetrics: [code_latency, code_cost]\n")
    env = {"OTEL_AGENTEVAL_OUTLETS__PROMETHEUS__PORT": "9464", "OTEL_AGENTEVAL_METRICS": "[code_turn_error]"}
    config = load_config(path, env)
    assert config.outlets.prometheus is not None
    assert (config.outlets.prometheus.registry, config.outlets.prometheus.port) == (None, 9464)
    assert [entry.metric for _, entry in config.metric_entries()] == ["code_turn_error"]


def test_a_fault_in_code_is_not_blamed_on_the_file(file: Any) -> None:
    path = file("turn: {max_open: 1, max_spans: 1}\n")
    assert message_of(path, NOTHING, {"turn": {"max_open": 0}}).startswith("turn.max_open: must be")
    named = "OTEL_AGENTEVAL_TURN__MAX_OPEN"
    assert message_of(path, {named: "0"}).startswith(f"{named}: turn.max_open: must be")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["port", "policy", "max_open", "x"]) | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(path=st.sampled_from(sorted(leaf_paths() | {"turn", "inline", "outlets", "queue", "outlets.prometheus"})), value=JSON)
def test_any_value_gives_a_config_or_a_config_error(path: str, value: Any) -> None:
    with contextlib.suppress(ConfigError):
        config = load_config(nested(path, value), NOTHING)
        assert yaml.load(effective_yaml(config), "printed", {})[0].keys() == options_of(Config).keys()


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@`\\ \n\t${env}0.", max_size=40))
def test_any_text_is_read_or_refused_with_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        yaml.load(text, "file", {})


# --- the environment


@pytest.mark.parametrize(
    ("variable", "text", "path", "meant"),
    [
        ("TURN__IDLE_TIMEOUT", "", "turn.idle_timeout", 300.0),
        ("OUTLETS__OTLP_METRICS", "True", "outlets.otlp_metrics", True),
        ("OUTLETS__PROMETHEUS", "null", "outlets.prometheus", None),
        ("OUTLETS__JSONL", "123", "outlets.jsonl", "123"),
        ("INLINE__METRICS", '["code_latency"]', "inline.metrics", ("code_latency",)),
        ("TURN", '{"max_open": 4}', "turn.max_open", 4),
        ("ENABLED", "false", "turn.max_open", 50_000),
    ],
)
def test_an_option_is_read_from_its_variable(variable: str, text: str, path: str, meant: Any) -> None:
    assert at(load_config(env={f"OTEL_AGENTEVAL_{variable}": text}), path) == meant


@pytest.mark.parametrize(
    ("variable", "text", "warnings"),
    [
        ("TURN__IDLE_TIMEOUT", "30", 1), ("TURN__DECISION_DELAY", "5", 1), ("TURN__IDLE_TIMEOUT", "30s", 0), ("JUDGE__TIMEOUT", "30000", 0),
        ("INLINE__BUDGET", "5", 0), ("TURN__MAX_OPEN", "30", 0),
    ],
)  # fmt: skip
def test_variable_with_few_milliseconds_is_logged_once(
    variable: str, text: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    loader._warn_of_milliseconds.cache_clear()
    for _ in range(2):
        load_config(env={f"OTEL_AGENTEVAL_{variable}": text})
    assert len([line for line in caplog.messages if variable in line]) == warnings


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("turn: {idle_timeout: 30}", "turn.idle_timeout"), ("turn: {decision_delay: 500}", "turn.decision_delay"),
        ("outlets: {store: {path: a.db, max_age: 2592000}}", "outlets.store.max_age"), ("turn: {idle_timeout: 300000}", None),
        ("turn: {idle_timeout: 30ms}", None), ("turn: {max_open: 30}", None), ("outlets: {store: a.db}", None),
    ],
)  # fmt: skip
def test_duration_without_a_unit_in_a_file_is_logged(
    text: str, option: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "agenteval.yaml").write_text(text)
    load_config(tmp_path / "agenteval.yaml", env={})
    assert [f"agenteval.yaml:1: {option}: " in line for line in caplog.messages] == [True] * (option is not None)
    load_config(load_config(tmp_path / "agenteval.yaml", env={}), overrides={"turn": {"max_open": 5}})
    assert len(caplog.messages) == (option is not None)


@pytest.mark.parametrize("value", [30, 59_000, "59s", "0s"])
def test_store_with_a_very_short_age_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match=r"outlets\.store\.max_age"):
        load_config({"outlets": {"store": {"path": "a.db", "max_age": value}}}, env={})
    assert load_config({"outlets": {"store": {"path": "a.db", "max_age": "1m"}}}, env={}).outlets.store is not None


def test_a_variable_inside_another_wins() -> None:
    env = {"OTEL_AGENTEVAL_TURN__MAX_OPEN": "5", "OTEL_AGENTEVAL_TURN": "{max_open: 4, max_spans: 4}"}
    turn = load_config(env=env).turn
    assert (turn.max_open, turn.max_spans) == (5, 4)


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("TURN__IDLE_TIMEOUT", "10x", "OTEL_AGENTEVAL_TURN__IDLE_TIMEOUT: turn.idle_timeout: must be a duration"),
        ("TURN__MAX_OPN", "1", "OTEL_AGENTEVAL_TURN__MAX_OPN: unknown variable. Did you mean OTEL_AGENTEVAL_TURN__MAX_OPEN?"),
        ("ENABELD", "true", "OTEL_AGENTEVAL_ENABELD: unknown variable. Did you mean OTEL_AGENTEVAL_ENABLED?"),
        ("CONSOLE", "true", "OTEL_AGENTEVAL_CONSOLE: unknown variable. Did you mean OTEL_AGENTEVAL_OUTLETS__CONSOLE?"),
        ("METRICS", "[{a: 5}", "OTEL_AGENTEVAL_METRICS: not YAML"),
        ("METRICS", "[{a: 5}]", "OTEL_AGENTEVAL_METRICS: metrics[0]: the parameters of a must be a mapping"),
        ("CONFIG_FILE", "/nowhere/agenteval.yaml", "/nowhere/agenteval.yaml: file not found"),
    ],
)
def test_a_variable_that_is_wrong_is_named(variable: str, text: str, expected: str) -> None:
    assert message_of(env={f"OTEL_AGENTEVAL_{variable}": text}).startswith(expected)


def test_a_variable_without_its_prefix_is_named(caplog: pytest.LogCaptureFixture) -> None:
    names = ("OUTLETS__CONSOLE", "ENABLED", "CONFIG_FILE")
    load_config(env={f"AGENTEVAL_{name}": "true" for name in (*names, "QUEUE", "ENDPOINT", "OF__OTHERS")})
    assert [record.getMessage() for record in caplog.records] == [
        f"AGENTEVAL_{name}: has no effect; set OTEL_AGENTEVAL_{name} instead" for name in names
    ]


# --- the file


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a comment\nturn:\n  max_open: 1\n  max_opn: 2\n", ":4: turn.max_opn: unknown key. Did you mean 'max_open'?"),
        ("turn:\n  max_open: 1\n  max_open: 2\n", ":3: turn.max_open: duplicate key"),
        ("metrics:\n  - code_latency\n  - {a: {}, b: {}}\n", ":3: metrics[1]:"),
        ("turn: [\n", ": not YAML: "),
        ("turn:\n\tmax_open: 1\n", ":2: tab found. Indent with spaces"),
        ("turn:\n  max_open: 1\n \tidle_timeout: 3s\n", ":3: tab found. Indent with spaces"),
        ("\tturn: 1\n", ":1: tab found. Indent with spaces"),
        ("turn: {max_open:\t1}\n", ":1: tab found. Use spaces"),
        ("turn: @x\n", ":1: not YAML: found character '@' that cannot start any token"),
        ("turn: {max_open: " + "9" * 5000 + "}\n", ": not YAML: "),
        ("- 1\n", ":1: must be a mapping of turn, strict"),
        ("turn: !!python/object/apply:os.getcwd []\n", ":1: not YAML: "),
        ("turn: {max_open: '${env:NOT_SET}'}\n", ":1: turn.max_open: environment variable NOT_SET isn't set"),
        ("turn: {max_open: '${env:}'}\n", ":1: turn.max_open: variables must be written ${env:NAME}"),
    ],
)
def test_what_is_wrong_in_a_file_is_reported_with_its_line(file: Any, text: str, expected: str) -> None:
    path = file(text)
    message = message_of(path, NOTHING)
    assert message.startswith(path)
    assert expected in message


@pytest.mark.parametrize("text", ["", "# nothing\n", "null\n"])
def test_an_empty_file_is_the_defaults(file: Any, text: str) -> None:
    assert load_config(file(text), NOTHING) == Config()


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert message_of(path, NOTHING).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${env:NUMBER}", "7"),
        ("a-${env:NUMBER}-b", "a-7-b"),
        ("${env:ABSENT:-fallback}", "fallback"),
        ("${env:EMPTY:-fallback}", "fallback"),
        ("$${env:NUMBER}", "${env:NUMBER}"),
        ("${NUMBER}", "${NUMBER}"),
    ],
)
def test_variables_stand_for_their_values_in_a_file(file: Any, written: str, meant: str) -> None:
    assert load_config(file(f"outlets:\n  jsonl: '{written}'\n"), {"NUMBER": "7", "EMPTY": ""}).outlets.jsonl == meant


def test_an_unquoted_variable_can_be_a_number_or_null(file: Any) -> None:
    path = file("outlets:\n  prometheus: ${env:NONE}\nmetrics:\n  - code_max_duration:\n      max_seconds: ${env:LIMIT}\n")
    config = load_config(path, {"NONE": "null", "LIMIT": "5"})
    assert config.outlets.prometheus is None
    assert config.metrics[0].params == {"max_seconds": 5}


def test_a_variable_cannot_bring_in_structure(file: Any) -> None:
    path = file("outlets:\n  jsonl: ${env:TEXT}\nmetrics:\n  - a: &p\n      text: '$${env:X}'\n  - b: *p\n")
    config = load_config(path, {"TEXT": "a\nqueue: {max_bytes: 1}", "X": "x"})
    assert config.outlets.jsonl == "a\nqueue: {max_bytes: 1}"
    assert [entry.params for entry in config.metrics] == [{"text": "${env:X}"}] * 2


def test_plain_words_and_times_stay_text(file: Any) -> None:
    path = file("metrics:\n  - a: {words: [off, no, 10:30, 2026-11-21, 1_000, 010], numbers: [10, 1e3, 0.5, -2]}\n")
    params = load_config(path, NOTHING).metrics[0].params
    assert params == {"words": ["off", "no", "10:30", "2026-11-21", "1_000", "010"], "numbers": [10, 1000.0, 0.5, -2]}


# --- metrics


def test_a_list_of_inline_metrics_takes_the_place_of_the_default_pack() -> None:
    assert [bound.name for bound in select_metrics(load_config(env=NOTHING))] == default_pack()
    config = load_config({"inline": {"metrics": ["code_latency"]}, "metrics": [{"code_word_count": {"min": 1}}]}, NOTHING)
    assert [bound.name for bound in select_metrics(config)] == ["code_latency", "code_word_count"]
    for group in GROUPS:
        for metrics in (group, [group]):
            selected = select_metrics(load_config({"inline": {"metrics": metrics}}, NOTHING))
            assert [bound.name for bound in selected] == group_of(group)


def test_groups_and_names_are_added_and_taken_out_in_their_order() -> None:
    wanted = ["default", "-safety", "cost", "-code_latency", "code_word_count", "code_cost"]
    selected = [bound.name for bound in select_metrics(load_config({"inline": {"metrics": wanted}}, NOTHING))]
    assert len(selected) == len(set(selected))
    assert set(selected) == ({*group_of("default"), *group_of("cost"), "code_word_count"} - {*group_of("safety"), "code_latency"})


def test_a_configured_metric_takes_the_place_of_the_inline_one_and_may_stand_several_times() -> None:
    entries = [{"code_repeated_tool_calls": {"max_repeats": n}, "policy": "gate"} for n in (1, 5)]
    selected = select_metrics(load_config({"metrics": entries}, NOTHING))
    ours = [bound for bound in selected if bound.metric.name == "code_repeated_tool_calls"]
    assert [(bound.params, bound.policy) for bound in ours] == [({"max_repeats": 1}, "gate"), ({"max_repeats": 5}, "gate")]
    assert sorted({bound.metric.name for bound in selected}) == sorted(default_pack())


# --- printing


@pytest.mark.parametrize(
    "given",
    [
        {},
        {
            "turn": {"idle_timeout": "90s", "decision_delay": 0, "max_bytes": 1_000_001},
            "inline": {"metrics": [], "budget": "1.5ms"},
        },
        {"outlets": {"prometheus": None, "jsonl": "off", "span_events": "off"}, "queue": {"max_bytes": "64kB"}},
        {"metrics": ["code_latency", {"code_contains": {"value": "10:30", "case": "1e3"}, "policy": "gate"}]},
        {"groups": {"a": {"policy": "gate", "when": {"agent": "x"}, "sample": {"rate": 0.5}, "metrics": [{"code_cost": {}}]}}},
        {
            "judge": {
                "servers": {"a": {"base_url": "https://h/v1"}},
                "choose": [{"metric": "llm_x", "agent": ["b*"], "model": "a/x"}],
            }
        },
    ],
    ids=["defaults", "durations and sizes", "words that look like others", "metrics", "groups", "judges"],
)
def test_the_effective_configuration_reads_back_as_the_same(file: Any, given: dict[str, Any]) -> None:
    config = load_config(given, NOTHING)
    assert load_config(file(effective_yaml(config)), NOTHING) == config


def test_secrets_are_masked_when_printed() -> None:
    params = {
        "api_key": "sk-1", "auth_token": "t", "PASSWORD": "p", "client-secret": "s", "nested": [{"key": "k"}],
        "url": "postgres://me:hunter2@db/x?api_key=abc&y=1", "max_tokens": "500", "token_type": "input", "keyword": "visible", "token": 5,
    }  # fmt: skip
    server = {"base_url": "http://h/v1", "api_key": "hunter2"}
    judge = {**server, "model": "m", "servers": {"a": server}}
    printed = effective_yaml(load_config({"metrics": [{"m": params}], "judge": judge, "embedder": server}, NOTHING))
    for secret in ("sk-1", "hunter2", "abc", ": t\n", ": p\n", ": s\n", ": k\n"):
        assert secret not in printed
    for visible in ("me:****@db/x?api_key=****&y=1", "max_tokens: '500'", "token_type: input", "keyword: visible", "token: 5"):
        assert visible in printed


def test_secrets_are_masked_in_errors() -> None:
    address = "http://me:hunter2@h/v1"
    addresses = [address, "http://hunter2@h/v1", "http://h/v1?api_key=hunter2"]
    in_metrics = {"metrics": [{"a": {"api_key": "hunter2"}, "b": {"url": address}}]}
    assert "hunter2" not in message_of(in_metrics, NOTHING)
    for one in addresses:
        message = message_of({"judge": {"base_url": one}}, NOTHING)
        assert message.startswith("judge.base_url: ")
        assert "hunter2" not in message


def test_every_option_is_documented_with_its_default() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    text = page.partition("<!-- begin options -->")[2].partition("<!-- end options -->")[0]
    documented = dict(re.findall(r"^\| `([a-z_.]+)` \| `([^`]*)` \|", text, re.MULTILINE))
    assert documented.keys() == leaf_paths()
    for path, default in documented.items():
        if path.startswith("outlets.prometheus."):
            continue
        if default == "required":
            section, _, option = path.rpartition(".")
            assert option in NEEDED[section]
            continue
        section = path.rpartition(".")[0]
        filled = load_config(nested(section, NEEDED[section]) if section in NEEDED else {}, NOTHING)
        assert at(load_config(nested(path, yaml.load(default, "docs", {})[0]), NOTHING), path) == at(filled, path), path


# --- groups

SAFETY = """\
inline: {metrics: [code_latency]}
metrics: [code_cost]
groups:
  safety:
    policy: gate
    when: {agent: travel}
    sample: {rate: 0.5}
    metrics:
      - code_turn_error
      - code_max_duration: {max_seconds: 5}
        policy: trend
        when: {agent: billing}
      - llm_relevance
"""


def test_the_metrics_of_a_group_share_what_they_do_not_say_themselves(file: Any) -> None:
    selected = select_metrics(load_config(file(SAFETY), NOTHING))
    names = ["code_latency", "code_cost", "code_turn_error", "code_max_duration", "llm_relevance"]
    assert [bound.name for bound in selected] == names
    _, cost, error, duration, relevance = selected
    assert [bound.policy for bound in (cost, error, duration, relevance)] == ["trend", "gate", "trend", "gate"]
    agents = [bound.when and bound.when.agent for bound in (cost, error, duration, relevance)]
    assert agents == [None, ("travel",), ("billing",), ("travel",)]
    assert relevance.sample is not None
    assert relevance.sample.options.rate == 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("groups:\n  a:\n    metrics:\n      - code_latncy\n", ":4: groups.a.metrics[0]: unknown metric 'code_latncy'. Did"),
        ("metrics: [code_cost]\ngroups:\n  a: {metrics: [code_cost]}\n", ":3: groups.a.metrics[0]: code_cost has the same"),
        ("groups:\n  a: {metrics: []}\n", ":2: groups.a.metrics: must be a list of at least one metric"),
        ("groups:\n  a: {metrics: [code_cost], when: {agnt: x}}\n", ":2: groups.a.when.agnt: unknown key. Did you mean 'agent'?"),
        ("groups: [code_cost]\n", ":1: groups: must be a mapping"),
        ("inline:\n  metrics:\n    - code_latncy\n", ":3: inline.metrics[0]: unknown metric 'code_latncy'. Did you mean"),
        ("inline: {metrics: saftey}\n", ":1: inline.metrics: must be one of default, safety"),
        ("inline: {metrics: [cost, -code_word_count]}\n", ":1: inline.metrics[1]: no earlier entry"),
        (
            "inline: {metrics: [cost, code_task_oracle]}\n",
            ":1: inline.metrics: code_task_oracle needs parameters. Move this metric",
        ),
        ("metrics:\n  - code_contains:\n      valu: [a]\n", ":3: metrics[0].code_contains.valu: unknown"),
        ("metrics:\n  - code_word_count:\n      min: x\n", ":3: metrics[0].code_word_count.min: must"),
        ("metrics:\n  - code_cost\n  - code_cost\n", ":3: metrics[1]: code_cost has the same parameters as metrics[0]"),
    ],
)
def test_a_metric_that_cannot_be_selected_is_reported_with_its_path_and_line(file: Any, text: str, expected: str) -> None:
    path = file(text)
    with pytest.raises(ConfigError) as caught:
        select_metrics(load_config(path, NOTHING))
    assert str(caught.value).startswith(path + expected)


def test_a_store_may_be_only_its_path(file: Any) -> None:
    config = load_config(file("outlets: {store: scores.db}\n"), NOTHING)
    assert config.outlets.store is not None
    assert config.outlets.store.path == "scores.db"
    assert load_config(None, {"OTEL_AGENTEVAL_OUTLETS__STORE": "scores.db"}).outlets.store == config.outlets.store


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS, "at most 200,000 values"),
        (LAUGHS.replace("[", "{k: [").replace("]", "]}"), "at most 200,000 values"),
        ("a: &a {k: 1}\n" + "".join(f"b{n}: &b{n} {{<<: [{', '.join(['*a' if n == 0 else f'*b{n - 1}'] * 10)}]}}\n" for n in range(9)), "at most 200,000 values"),
        ("a: " + "[" * 700 + "]" * 700, "nested too deep"),
        ("a: x" + "y" * 500_000, "at most 500,000 characters"),
        ("a: &a [*a]", "an alias refers to an enclosing value"),
    ],
    ids=["lists", "maps", "merges", "deep", "large", "itself"],
)  # fmt: skip
def test_yaml_that_stands_for_more_than_it_says_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_config(file)
    with pytest.raises(ConfigError, match=said):
        yaml.load(text, "text", {}, lines=False)
    few = "a: &a {k: 1}\nb: [*a, *a, {<<: *a}]\n"
    assert yaml.load(few, "text", {})[0] == {"a": {"k": 1}, "b": [{"k": 1}] * 3}


# --- messages


def test_all_faults_are_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "agenteval.yaml"
    path.write_text(
        "inline: {metrics: [defualt, -code_refusl]}\n"
        "metrics:\n"
        "  - code_latncy\n"
        "  - {name: code_word_count, parameters: {max: 3}}\n"
        "  - code_word_count: {mx: 3}\n"
        "  - code_latency: {}\n"
        "    sample: {rate: 0.5}\n"
        "groups: {a: {metrics: [code_nope]}}\n"
        "conversation: {metrics: [llm_nope]}\n"
        "judge: {model: m-1, choose: [{modl: m-2}]}\n"
        "references: {dataset: no-such-file.csv}\n"
        "privacy: {redact: [emial]}\n"
        "turn: {max_spns: 3}\n"
    )
    assert main(["check-config", str(path)]) == 2
    said = capsys.readouterr().err
    where = re.findall(r"agenteval\.yaml:(\d+): ([a-z_.\[\]0-9]+)", said)
    assert sorted(where, key=lambda found: int(found[0])) == [
        ("1", "inline.metrics[0]"), ("1", "inline.metrics[1]"), ("3", "metrics[0]"), ("4", "metrics[1]"),
        ("5", "metrics[2].code_word_count.mx"), ("8", "groups.a.metrics[0]"), ("9", "conversation.metrics[0]"),
        ("10", "judge.choose[0].model"), ("10", "judge.choose[0].modl"), ("10", "judge.base_url"), ("11", "references.dataset"),
        ("12", "privacy.redact[0]"), ("13", "turn.max_spns"),
    ]  # fmt: skip
    assert "Did you mean the group default?" in said
    assert "\\0" not in said


def test_an_inline_metric_can_get_its_parameters_from_an_entry(file: Any) -> None:
    text = "inline: {metrics: [code_latency, code_contains]}\nmetrics: [{code_contains: {value: a}}]\n"
    assert [bound.name for bound in select_metrics(load_config(file(text), NOTHING))] == ["code_latency", "code_contains"]


def test_two_faults_in_a_group_cost_no_other_options() -> None:
    data = {"scale": 100, "turn": {"max_open": 7}, "groups": {"g": {"metric": ["code_latency"]}}}
    config, lines = Config.from_valid_part(data, {})
    assert (config.scale, config.turn.max_open, len(lines)) == (100, 7, 2)


@given(st.lists(st.sampled_from(sorted(leaf_paths())), max_size=6), JSON)
def test_any_number_of_faults_ends(paths: list[str], value: Any) -> None:
    data: dict[str, Any] = {}
    for path in paths:
        inner = data
        for part in path.split(".")[:-1]:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                return
        inner[path.rpartition(".")[2]] = value
    config, lines = Config.from_valid_part(data, {})
    assert isinstance(config, Config)
    if not lines:
        assert config.to_dict() == Config.from_sources(data, {}).to_dict()
