"""What the documentation says of names, metrics, options and outputs is what the code says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.config.root import Config
from otel_agenteval.config.section import Section, option_paths
from otel_agenteval.config.types import Duration
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
TURN = Turn(
    turn_id="t",
    trace_id="1",
    conversation_id="c",
    agent="a",
    service="s",
    close_reason="root_ended",
    llm_calls=[LlmCall(response_id="r")],
)


class Patient(Section):
    """A section with a new option."""

    patience: Duration = 90.0
    """Seconds that it waits."""


def test_an_option_is_documented_from_its_declaration_alone() -> None:
    assert gen_docs.options(Patient).splitlines()[2:] == [
        "| `patience` | `90s` | duration above 0 | `OTEL_AGENTEVAL_PATIENCE` | Time that it waits |"
    ]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def first_column(text: str, after: str) -> set[str]:
    """The code in the first cells of the table that follows a marker."""
    rows = re.search(r"\n((?:\|.*\n)+)", text[text.index(after) :])
    assert rows is not None
    return {name for row in rows[1].splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_the_generated_parts_are_in_step() -> None:
    stale = [str(path.relative_to(ROOT)) for path, text in gen_docs.pages() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run python scripts/gen_docs.py"


def test_install_lines_change_only_in_the_command() -> None:
    text = "`otel-agenteval ui` needs `pip install 'otel-agenteval[all]' x`, then run `otel-agenteval ui`."
    assert gen_docs.install_lines(text) == text.replace("'otel-agenteval[all]'", f"'{gen_docs.INSTALLED_AS}[all]'")


def test_a_part_of_a_page_is_renewed() -> None:
    page = "before\n<!-- begin options -->\n| 1 |\n<!-- end options -->\nafter\n"
    assert gen_docs.renewed(page, "options", lambda: "| 2 |") == page.replace("| 1 |", "| 2 |")
    assert gen_docs.renewed(page, "commands", lambda: "| 2 |") == page


def test_the_clock_alone_puts_nothing_out_of_step() -> None:
    line = 'x_bucket{le="0.1"} 1.0 # {trace_id="a"} 0.0 %s'
    assert gen_docs.timeless(line % "1795238905.07") == gen_docs.timeless(line % "1795238999.5")
    assert gen_docs.timeless(line % "1795238905.07") != gen_docs.timeless(line.replace("1.0 #", "2.0 #") % "1795238905.07")


def test_the_concept_page_lists_the_default_metrics() -> None:
    assert first_column(read("docs/concepts/metrics.md"), "<!-- begin default pack -->") == {
        m.name for m in catalog() if m.inline
    }


@pytest.mark.parametrize("metric", list(catalog()), ids=lambda metric: metric.name)
def test_a_metric_has_a_section_with_its_parameters_and_names(metric: Any) -> None:
    section = read(f"docs/reference/metrics/{metric.family}.md").split(f"\n## {metric.name}\n", 1)[1].split("\n## ", 1)[0]
    assert metric.summary.replace("``", "`") in section
    for name in (*metric.parameters, *metric.needs, *metric.aliases):
        assert f"`{name}`" in section


def test_every_option_has_its_variable_and_each_variable_works() -> None:
    text = read("docs/reference/configuration.md")
    leaves = [p for p in option_paths(Config) if not any(o != p and o[: len(p)] == p for o in option_paths(Config))]
    variables = re.findall(r"^\| `([a-z_.]+)` \| `([^`]*)` \| [^|]+ \| `(OTEL_AGENTEVAL_\w+)` \|", text, re.MULTILINE)
    assert [name for name, _, _ in variables] == [".".join(path) for path in leaves]
    required = {name: variable for name, default, variable in variables if default == "required"}
    for name, default, variable in variables:
        value = {"outlets.prometheus.port": "0", "outlets.otlp.endpoint": "http://h", "outlets.webhook.url": "http://h"}.get(
            name, default
        )
        # what the sections around it cannot be without
        beside = {other: "http://h" for option, other in required.items() if name.startswith(option.rpartition(".")[0])}
        load_config(env={**beside, variable: value})  # unknown variables and values are refused


def test_every_close_reason_is_explained() -> None:
    assert first_column(read("docs/concepts/turns.md"), "### Close reasons") == set(get_args(CloseReason))


def test_every_drop_reason_on_no_scores_exists() -> None:
    """An evaluation that waits for budget isn't dropped, for example."""
    (labels,) = semconv.KNOWN_LABELS[semconv.DROPPED]
    listed = set(re.findall(r"^\| `dropped: (\w+)`", read("docs/troubleshooting/no-scores.md"), re.MULTILINE))
    assert listed
    assert listed <= set(labels["reason"])


def test_the_span_event_s_attributes_are_documented() -> None:
    emitted = {*span_events.attributes(FULL, None), *span_events.attributes(FAILED, None)}
    assert first_column(read("docs/reference/events-and-attributes.md"), "<!-- span event attributes -->") == emitted


def test_the_log_event_s_attributes_are_documented() -> None:
    scored = ScoredTurn(TURN, Root(1, 2), [], supersedes="u", content=exported(Turn(input="Where?", output="There."), ()))
    shared = log_events.turn_attributes(scored, "i")
    emitted = {*log_events.event_attributes(FULL, shared), *log_events.event_attributes(FAILED, shared)}
    assert first_column(read("docs/reference/events-and-attributes.md"), "<!-- log event attributes -->") == emitted


def test_the_keys_of_a_json_line_are_documented() -> None:
    written = JsonLinesOutlet("scores.jsonl").lines(ScoredTurn(TURN, Root(1, 2), [FULL, FAILED], supersedes="u"))
    assert first_column(read("docs/reference/events-and-attributes.md"), "<!-- json line keys -->") == {
        key for line in written for key in line
    }


def test_the_outcomes_of_span_events_are_documented() -> None:
    section = read("docs/reference/events-and-attributes.md").split("## Log event")[0]
    for word in (
        span_events.ENDING,
        span_events.LATE_ORDER,
        span_events.NO_ROOM,
        span_events.ROOT_ALREADY_ENDED,
        span_events.UNSUPPORTED,
    ):
        assert f"`{word}`" in section


def mentioned() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for name in re.findall(r"`((?:agenteval|gen_ai\.evaluation)\.[a-z_.]*[a-z])`", path.read_text(encoding="utf-8")):
            if name != "agenteval.yaml":
                yield path.name, name


@pytest.mark.parametrize(("page", "name"), sorted(set(mentioned())))
def test_a_name_on_the_wire_that_is_mentioned_exists(page: str, name: str) -> None:
    known = {value for value in vars(semconv).values() if isinstance(value, str)}
    assert name in known, f"{page} says {name}"
