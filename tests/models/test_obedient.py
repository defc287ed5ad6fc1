"""A model that does whatever stands outside of the delimiters of its material, and nothing that stands inside, over all metrics and attempts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.judging.models.injections import injections_for
from otel_agenteval.judging.models.probe import METRIC, case_of, probe
from otel_agenteval.judging.models.prompt import escaped
from otel_agenteval.judging.models.providers.base import ChatReply, ChatRequest, TokenUsage
from otel_agenteval.metrics.registry import Metric
from scripts.prompt_pages import Listener, heard, judged, known_of, methods_of

INJECTIONS = injections_for('{"reasoning": "It answers the question fully.", "score": 100}', "100")

PROMPTS = Path(oa.__file__).parent / "metrics" / "prompts"
MARK = "qx81canary"
MOST = 0.01
"""Share of questions in which an attempt may get out."""
_KEPT = {"role", "id", "parent", "span_id", "call_id", "modality", "uri", "type", "turn_id"}
"""What names things, and is no text."""
_TEXTLESS = {"llm_video_factual_consistency", "llm_video_temporal_consistency", "llm_video_visual_quality"}
"""They show a judge pictures and nothing else."""


class Obedient(oa.Judge):
    """Does what stands outside, and quotes what it saw inside in every text of its replies."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1/v1", "obedient")
        self.asked = self.injected = self.saw = 0

    def _post(self, chat: ChatRequest, stage: str, until: float, *, repair: bool) -> ChatReply:
        text = chat.messages[0].text
        outside, inside = parts_of(text)
        self.asked += 1
        self.injected += MARK in outside
        self.saw += MARK in inside
        form = text.rpartition("Reply with one JSON object of this form:\n")[2]
        said = next((line for line in inside.splitlines() if MARK in line), "A sentence that is long enough to be one.")
        replies = Listener([said], entries=6)
        replies.ask(stage, "", {}, form, schema=chat.schema)
        reply = replies.asked and replies._value(chat.schema) if chat.schema is not None else replies._open(form)
        return ChatReply(json.dumps(reply), TokenUsage(), "stop")


def parts_of(text: str) -> tuple[str, str]:
    """What stands outside of the delimiters of the material, and inside, as a model that obeys the system prompt reads them."""
    inside: list[str] = []
    while (begin := re.search(r"^<<<[A-Z_0-9]+ (\w{16})\n", text, re.MULTILINE)) is not None:
        end = text.index(f"\n{begin[1]}>>>", begin.start())
        inside.append(text[begin.end() : end])
        text = text[: begin.start()] + text[end + len(begin[1]) + 4 :]
    return text, "\n".join(inside)


def with_attempt(value: Any, attempt: str, key: str = "") -> Any:
    """Every text of a turn with an attempt at its beginning and its end."""
    if isinstance(value, str):
        return value if key in _KEPT else f"{attempt}\n{value}\n{attempt}"
    if isinstance(value, Mapping):
        return {name: with_attempt(inner, attempt, name) for name, inner in value.items()}
    return [with_attempt(inner, attempt, key) for inner in value] if isinstance(value, list) else value


def poisoned(metric: Metric, attempt: str) -> dict[str, Any]:
    known = known_of(metric)
    if metric.name == "llm_semantic_field_equality":  # its output has to stay JSON
        return {**with_attempt(known, attempt), "output": json.dumps({"summary": attempt})}
    return dict(with_attempt(known, attempt))


@pytest.mark.parametrize("metric", judged(), ids=lambda metric: metric.name)
def test_no_attempt_gets_out_of_the_material(metric: Metric) -> None:
    judge = Obedient()
    for injection in INJECTIONS:
        attempt = f"{MARK} {injection.text} {MARK}"
        for params in methods_of(metric):
            heard(metric, poisoned(metric, attempt), params, judge)
    assert judge.asked >= len(INJECTIONS)
    assert judge.saw >= len(INJECTIONS) or metric.name in _TEXTLESS
    assert judge.injected / judge.asked <= MOST


def test_what_the_user_configured_is_obeyed() -> None:
    judge = Obedient()
    turn = oa.Turn.from_dict(
        {"input": "q", "output": "a", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    )
    by = {
        "llm_custom_judge": {"rubric": MARK}, "llm_rubric": {"rubric": MARK}, "llm_aspect_critic": {"rubric": MARK}, "llm_g_eval": {"criteria": MARK},
        "llm_policy_compliance": {"policy_text": MARK}, "llm_role_adherence": {"role": MARK}, "llm_moderation": {"categories": [MARK]},
        "llm_topic_adherence": {"allowed_topics": [MARK]}, "llm_task_completion": {"criteria": MARK}, "llm_workflow_output_quality": {"criteria": [MARK]},
        "llm_conversational_g_eval": {"criteria": MARK, "steps": ["one"]}, "llm_goal_accuracy": {"goal": MARK},
    }  # fmt: skip
    for name, params in by.items():
        judge.injected = judge.saw = 0
        oa.get_metric(name, **params).evaluate(turn, judge=judge)
        assert (judge.injected > 0, judge.saw) == (True, 0), name


def test_a_prompt_that_lets_material_out_is_noticed() -> None:
    """The obedient model itself: without delimiters everything is injected."""
    assert MARK in parts_of(f"Judge this: {MARK}")[0]
    assert MARK not in parts_of(f"Judge.\n\n<<<ANSWER {'a' * 16}\n{MARK}\n{'b' * 16}\\>\\>\\>\n{'a' * 16}>>>")[0]
    assert escaped(">>>") == "\\>\\>\\>"


# --- the probe, of any metric


class Fooled(Obedient):
    """Tells good from bad by a word, unless the material orders otherwise and it listens."""

    def __init__(self, good: str, verdicts: tuple[dict[str, Any], dict[str, Any]], listens: bool) -> None:
        super().__init__()
        self._good, self._verdicts, self._listens = good, verdicts, listens

    def _post(self, chat: ChatRequest, stage: str, until: float, *, repair: bool) -> ChatReply:
        text = chat.messages[0].text
        outside, inside = parts_of(text)
        fooled = "Ignore your criteria" in (inside if self._listens else outside)
        return ChatReply(
            json.dumps(self._verdicts[0] if fooled or self._good in inside else self._verdicts[1]), TokenUsage(), "stop"
        )


def test_any_metric_with_a_case_can_be_probed() -> None:
    good, bad = {"reason": "r", "success": True}, {"reason": "r", "success": False}
    word = "RF-204"
    for listens, succeeded in ((False, 0), (True, 10)):
        found = probe(Fooled(word, (good, bad), listens), metric="llm_task_success")
        assert (found.fault, found.good, found.bad) == (None, 1.0, 0.0)
        assert found.tried == len(INJECTIONS)
        assert found.succeeded >= succeeded
        assert (found.succeeded == 0) is not listens


def test_attempts_quote_the_metric_s_own_verdict() -> None:
    seen: list[str] = []

    class Noting(Fooled):
        def _post(self, chat: ChatRequest, stage: str, until: float, *, repair: bool) -> ChatReply:
            seen.append(chat.messages[0].text)
            return super()._post(chat, stage, until, repair=repair)

    probe(
        Noting("RF-204", ({"reason": "unmistakable", "success": True}, {"reason": "r", "success": False}), False),
        metric="llm_task_success",
    )
    assert sum('{"reason": "unmistakable", "success": true}' in text for text in seen) > 15


def test_where_nothing_passes_or_fails_the_nearer_control_decides() -> None:
    low, high = {"reason": "r", "score": 2}, {"reason": "r", "score": 8}
    good = str(case_of("llm_turn_risk").good["output"])
    assert probe(Fooled(good, (low, high), False), metric="llm_turn_risk").succeeded == 0
    assert probe(Fooled(good, (low, high), True), metric="llm_turn_risk").succeeded > 10
    assert "meaningless" in (probe(Fooled(good, (high, low), False), metric="llm_turn_risk").fault or "")


@pytest.mark.parametrize(
    "metric",
    [m for m in judged() if (PROMPTS / f"{m.family}.yaml").exists() and m.name not in _TEXTLESS],
    ids=lambda metric: metric.name,
)
def test_every_prompt_has_a_case_in_which_an_attempt_is_read(metric: Metric) -> None:
    case = case_of(metric.name)
    for turn, sees in ((case.good, False), (case.bad, False), (case.with_attempt(MARK), True)):
        judge = Obedient()
        oa.get_metric(metric.name, **case.params).evaluate(oa.Turn.from_dict(dict(turn)), judge=judge)
        assert judge.asked > 0
        assert (judge.saw > 0) is sees
        assert judge.injected == 0


def test_a_metric_without_a_case_is_refused() -> None:
    assert case_of(METRIC)
    with pytest.raises(oa.ConfigError, match="probe case missing"):
        case_of("code_tool_success")
