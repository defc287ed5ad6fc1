"""One-time log messages that explain missing scores."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import packages
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.engine import hints
from otel_agenteval.judging.budget import Bound, JudgeBudget
from otel_agenteval.judging.queues import Counter, MemorySpendBook
from otel_agenteval.metrics import registry
from tests.support.clock import FakeClock
from tests.support.rig import Rig
from tests.support.service import AGENT, Sidecar, request


def warned(caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    """Return the warnings with all of these words."""
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    return [message for message in messages if all(word in message for word in words)]


def plain_spans(rig: Rig, count: int) -> None:
    for _ in range(count):
        rig.tracer.start_span("GET /").end()


def test_spans_without_any_turn_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with Rig() as rig:
        plain_spans(rig, hints.SPANS_WITHOUT_TURN)
        rig.engine.intake.tick()
        rig.engine.intake.tick()
    (said,) = warned(caplog, "received 1000 spans")
    assert "otel-agenteval doctor" in said


def test_turns_that_still_wait_are_no_reason_for_it(caplog: pytest.LogCaptureFixture) -> None:
    spans = [{"trace": at, "id": 1, "name": "GET /"} for at in range(1, 2 * hints.SPANS_WITHOUT_TURN)]
    spans.insert(hints.SPANS_WITHOUT_TURN // 2, {"trace": len(spans) + 1, "id": 1, "attributes": AGENT})
    with Sidecar({"turn": {"decision_delay": "60s"}}) as sidecar:
        assert sidecar.post("/v1/traces", request(*spans))[0] == 200
        sidecar.engine.intake.tick()
        assert not warned(caplog, "received")
        sidecar.stop()
    assert not warned(caplog, "received")


def test_an_instrumentation_that_does_not_know_its_librarys_version_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    needs = "Requires-Dist: acme-llm>=1.0; extra == 'instruments'\n"
    for name, version, more in (("acme-llm", "0.9", ""), ("openinference-instrumentation-acme", "1.0", needs)):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}")
        (folder / "entry_points.txt").write_text("[opentelemetry_instrumentor]\nacme = acme:It\n" if more else "")
    monkeypatch.syspath_prepend(str(tmp_path))
    packages.installed.cache_clear()
    try:
        with Rig() as rig:
            plain_spans(rig, hints.SPANS_WITHOUT_TURN)
    finally:
        packages.installed.cache_clear()
    assert len(warned(caplog, "openinference-instrumentation-acme 1.0 needs acme-llm>=1.0", "otel-agenteval doctor")) == 1


@pytest.mark.parametrize("plain", [hints.SPANS_WITHOUT_TURN - 1, 2 * hints.SPANS_WITHOUT_TURN])
def test_an_application_with_a_turn_hears_nothing(plain: int, caplog: pytest.LogCaptureFixture) -> None:
    with Rig() as rig:
        if plain > hints.SPANS_WITHOUT_TURN:
            rig.run()
            assert rig.processor.force_flush()
        plain_spans(rig, plain)
        rig.engine.intake.tick()
    assert warned(caplog) == []


def run_without_content(rig: Rig, turns: int, scope: str, **more: Any) -> None:
    tracer = rig.provider.get_tracer(scope)
    for _ in range(turns):
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.usage.output_tokens": 7, **more}
        tracer.start_span("chat m-1", attributes=attributes).end()
    assert rig.processor.force_flush()


@pytest.mark.parametrize(
    ("scope", "advice"),
    [
        ("opentelemetry.instrumentation.openai_v2", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT"),
        ("opentelemetry.instrumentation.openai", "TRACELOOP_TRACE_CONTENT=false"),
        ("acme.own", "docs/guides/capture-content.md"),
    ],
)
def test_turns_without_content_are_logged_once_with_a_fix(scope: str, advice: str, caplog: pytest.LogCaptureFixture) -> None:
    with Rig() as rig:
        run_without_content(rig, 1, scope)
        assert len(warned(caplog, repr(scope), advice)) == 1, "with the first turn"
        run_without_content(rig, 4, scope)
        assert rig.count("agenteval.unread_traces") == {(scope, "content"): 5}
        assert rig.count("agenteval.turns.read") == {(scope, "none"): 5}
    assert len(warned(caplog, repr(scope), advice)) == 1


@pytest.mark.parametrize(
    "runs",
    [
        [(1, {"gen_ai.output.messages": '[{"role": "assistant", "content": "Hi"}]'}), (5, {})],
        [(5, {"gen_ai.usage.output_tokens": 0})],
        [(5, {"error.type": "timeout"})],
    ],
    ids=["texts elsewhere", "cancelled", "failed"],
)
def test_turns_that_explain_their_missing_texts_are_not_logged(
    runs: list[tuple[int, dict[str, Any]]], caplog: pytest.LogCaptureFixture
) -> None:
    with Rig() as rig:
        for turns, more in runs:
            run_without_content(rig, turns, "acme.own", **more)
        assert rig.count("agenteval.unread_traces") == {}
    assert warned(caplog) == []


def test_a_metric_that_never_applies_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    inline = {"metrics": ["default", "code_perplexity"]}
    with Rig({"inline": inline, "metrics": ["code_recall_at_k", "code_word_count"]}) as rig:
        for _ in range(hints.TURNS_WITHOUT_SCORE + 5):
            rig.run()
        assert rig.processor.force_flush()
    said = warned(caplog, "missing:")
    assert [message.partition(" ")[0] for message in said] == ["code_perplexity", "code_recall_at_k"]
    assert ["missing:logprobs" in said[0], "missing:retrieved_ids" in said[1]] == [True, True]


def test_used_up_budget_is_logged_once_for_each_metric(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    budget = JudgeBudget([Bound(Counter("", "calls", 3_600.0), 1.0)], MemorySpendBook(), clock, soft=1.0)
    assert budget.admit("llm_a").wait == 0
    assert budget.admit("llm_a").wait > 0
    assert budget.admit("llm_a").wait > 0
    assert budget.admit("llm_b").wait > 0
    warnings = warned(caplog, "judge.budget: ")
    assert [message.split()[1] for message in warnings] == ["llm_a", "llm_b"]
    assert "calls_per_hour: 1" in warnings[0]
    assert "over_budget" not in warnings[0]


def test_used_up_budget_of_a_command_has_its_effect(caplog: pytest.LogCaptureFixture) -> None:
    budget = JudgeBudget([Bound(Counter("", "calls", 3_600.0), 1.0)], MemorySpendBook(), FakeClock(), longest=61.0)
    while not budget.admit("llm_a", urgent=True).wait:
        pass
    (warning,) = warned(caplog, "judge.budget: ")
    assert "over_budget" in warning
    assert "wait" not in warning


def test_metric_without_its_packages_is_named_at_start(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (registry, hints):
        monkeypatch.setattr(module, "extra_installed", lambda extra: extra != "structured")
    caplog.set_level(logging.INFO, "otel_agenteval")
    with Rig({"metrics": [{"code_schema_conformance": {"schema": {"type": "object"}}}]}):
        pass
    (said,) = warned(caplog, "code_schema_conformance")
    assert "otel-agenteval[structured]" in said
    assert any("code_tool_schema_validity is off" in line and "[structured]" in line for line in caplog.messages)


@pytest.mark.parametrize(("section", "metric"), [("judge", "llm_relevance"), ("embedder", "embed_answer_similarity")])
def test_metrics_without_a_model_are_named_at_start(section: str, metric: str, caplog: pytest.LogCaptureFixture) -> None:
    with Rig({"metrics": [metric, "code_word_count"]}):
        pass
    (line,) = warned(caplog, f"no {section} is configured")
    assert f"skipped: {metric}; set {section}.base_url" in line


@pytest.mark.parametrize(
    "given", [{"judge": {"model": "m"}}, {"embedder": {"model": "m"}}, {"judge": {"base_url": "http://h/v1"}}]
)
def test_half_a_model_is_refused_without_its_metrics(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="required, because"):
        Rig(given)
    with Sidecar() as sidecar, pytest.raises(ConfigError, match="required, because"):
        sidecar.engine.reload(load_config(given))
