"""Some exporters send a span when it starts, and again when it has ended."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.service import Sidecar, request

START = 1_700_000_000_000_000_000
MESSAGES = {"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}]'}
CALL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", **MESSAGES}
ANSWER = '[{"role": "assistant", "parts": [{"type": "text", "content": "In Rome."}]}]'
ENDED: dict[str, Any] = {"attributes": {**CALL, "gen_ai.output.messages": ANSWER, "gen_ai.usage.input_tokens": 5}}
WITHOUT_END: dict[str, Any] = {"attributes": CALL, "end": 0}
WITHOUT_DURATION: dict[str, Any] = {"attributes": CALL, "end": START}


@pytest.mark.parametrize(
    "requests",
    [
        [[WITHOUT_END], [ENDED]],
        [[WITHOUT_DURATION], [ENDED]],
        [[WITHOUT_END], [WITHOUT_DURATION], [ENDED], [ENDED]],
        [[WITHOUT_END, ENDED]],
        [[ENDED, WITHOUT_END]],
        [[ENDED], [WITHOUT_END]],
        [[ENDED], [ENDED]],
    ],
)
def test_the_ended_copy_of_a_span_is_scored(requests: list[list[dict[str, Any]]]) -> None:
    with Sidecar({"turn": {"decision_delay": "60s"}}) as sidecar:
        for spans in requests:
            assert sidecar.post("/v1/traces", request(*spans))[0] == 200
        (turn,) = sidecar.turns()
        assert sidecar.engine.assembler.duplicates == sum(map(len, requests)) - 1
    assert (turn.output, turn.usage.input_tokens, turn.duration_s, len(turn.llm_calls)) == ("In Rome.", 5, 1.0, 1)


def test_an_ended_copy_that_comes_late_is_a_revision() -> None:
    with Sidecar({"turn": {"decision_delay": "60s"}}) as sidecar:
        for span in (WITHOUT_END, ENDED, WITHOUT_END):
            assert sidecar.post("/v1/traces", request(span))[0] == 200
            sidecar.turns()
        first, second = sidecar.turns()
    assert (first.output, first.duration_s, first.revision) == (None, None, 1)
    assert (second.output, second.duration_s, second.revision) == ("In Rome.", 1.0, 2)
    assert len(second.llm_calls) == 1


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1), (2, 1, 0)])
def test_unfinished_copies_of_inner_spans_are_replaced(order: tuple[int, ...]) -> None:
    agent = {"id": 1, "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"}}
    call = {"id": 2, "parent": 1, **ENDED}
    unfinished = {"id": 2, "parent": 1, **WITHOUT_END}
    with Sidecar({"turn": {"decision_delay": "60s"}}) as sidecar:
        for place in order:
            assert sidecar.post("/v1/traces", request((unfinished, call, agent)[place]))[0] == 200
        (turn,) = sidecar.turns()
    assert (turn.output, len(turn.llm_calls), turn.usage.input_tokens) == ("In Rome.", 1, 5)
