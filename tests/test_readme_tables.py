"""The documentation's lists of names, metrics, options and outputs match the code."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from otel_agenteval.config.loader import load_config
from otel_agenteval.config.root import Config
from otel_agenteval.config.section import option_paths
from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.core.turn import CloseReason, LlmCall, Turn
from otel_agenteval.evaluation.redaction import exported
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.metrics.registry import catalog
from otel_agenteval.outlets import log_events, span_events
from otel_agenteval.outlets.jsonl import JsonLinesOutlet
from scripts import gen_docs

ROOT = Path(__file__).parent.parent
FULL = Score(
    "code_x", 0.5, False, label="fail", explanation="why", detail={"a": 1}, also={"b": Score("b")}, threshold=0.7, result_id="r"
)
FAILED = Score("code_x", status="error", error_type="ValueError", explanation="why", result_id="r")
IDS = {"turn_id": "t", "trace_id": "1", "conversation_id": "c", "agent": "a", "service": "s"}
START = datetime.datetime(2026, 11, 21, tzinfo=datetime.timezone.utc)
TURN = Turn(**IDS, start=START, close_reason="root_ended", llm_calls=[LlmCall(model="m", response_id="r")])


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def first_column(text: str, after: str) -> set[str]:
    """Return the code spans in the first column of the table after a marker."""
    rows = re.search(r"\n((?:\|.*\n)+)", text[text.index(after) :])
    assert rows is not None
    return {name for row in rows[1].splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_the_generated_parts_are_in_step() -> None:
    stale = [str(path.relative_to(ROOT)) for path, text in gen_docs.pages() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run python scripts/gen_docs.py"


REQUIRED = {"outlets.prometheus.port": "0", "outlets.otlp.endpoint": "http://h", "outlets.webhook.url": "http://h"}
"""Values of options without a default."""


def test_every_option_has_its_variable_and_each_variable_works() -> None:
    text = read("docs/reference/configuration.md")
    leaves = [p for p in option_paths(Config) if not any(o != p and o[: len(p)] == p for o in option_paths(Config))]
    variables = re.findall(r"^\| `([a-z_.]+)` \| `([^`]*)` \| [^|]+ \| `(OTEL_AGENTEVAL_\w+)` \|", text, re.MULTILINE)
    assert [name for name, _, _ in variables] == [".".join(path) for path in leaves]
    required = {name: variable for name, default, variable in variables if default == "required"}
    for name, default, variable in variables:
        value = REQUIRED.get(name, default)
        # what the sections around it cannot be without
        beside = {
            other: REQUIRED.get(option, "h") for option, other in required.items() if name.startswith(option.rpartition(".")[0])
        }
        load_config(env={**beside, variable: value})  # unknown variables and values are refused


def test_first_figures_of_the_readme_are_measured() -> None:
    defaults = [metric for metric in catalog() if metric.inline]
    turns = re.search(r"no false alarm on (\d+) ordinary turns", text := read("README.md"))
    assert f"{len(defaults)} metrics that don't need a model or API key" in text
    assert turns is not None
    measured = read("docs/reference/metrics/detectors.md")
    assert f"{turns[1]} are ordinary" in measured
    assert re.search(r"\| all verdicts of the default metrics \|.*\| \*\*0\*\* \|", measured)


def test_every_close_reason_is_explained() -> None:
    assert first_column(read("docs/concepts/turns.md"), "### Close reasons") == set(get_args(CloseReason))


def test_attributes_of_events_and_keys_of_json_lines_are_documented() -> None:
    page = read("docs/reference/events-and-attributes.md")
    both = [FULL, FAILED]
    scored = ScoredTurn(TURN, Root(1, 2), both, supersedes="u", content=exported(Turn(input="Where?", output="There."), ()))
    shared = log_events.turn_attributes(scored, "i")
    of_spans = {key for one in both for key in span_events.attributes(one, None)}
    assert first_column(page, "<!-- span event attributes -->") == of_spans
    of_logs = {key for one in both for key in log_events.event_attributes(one, shared)}
    assert first_column(page, "<!-- log event attributes -->") == of_logs
    lines = JsonLinesOutlet("scores.jsonl").lines(scored)
    assert first_column(page, "<!-- json line keys -->") == {key for line in lines for key in line}


def mentioned() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for name in re.findall(r"`((?:agenteval|gen_ai\.evaluation)\.[a-z_.]*[a-z])`", path.read_text(encoding="utf-8")):
            if name != "agenteval.yaml":
                yield path.name, name


def test_a_name_on_the_wire_that_is_mentioned_exists() -> None:
    known = {value for value in vars(semconv).values() if isinstance(value, str)}
    assert [(page, name) for page, name in mentioned() if name not in known] == []
