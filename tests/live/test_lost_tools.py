"""Tools in separate traces join a turn only if no other turn was running in their process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from opentelemetry.context import Context
from opentelemetry.trace import Span, set_span_in_context

from tests.support.live import Live

RUN = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]',
}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up", "gen_ai.tool.call.arguments": "{}"}

CALL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def started(live: Live, name: str) -> Span:
    return live.tracer.start_span(f"invoke_agent {name}", Context(), attributes={**RUN, "gen_ai.agent.name": name})


def call_tool(live: Live) -> None:
    live.tracer.start_span("execute_tool look_up", Context(), attributes=TOOL).end()


def tools(live: Live) -> dict[str, int]:
    return {scored.turn.agent: len(scored.turn.tool_calls or ()) for scored in live.scored()}


def test_a_tool_joins_the_only_running_turn(live: Live) -> None:
    a = started(live, "a")
    call_tool(live)
    a.end()
    assert tools(live) == {"a": 1}


@pytest.mark.parametrize("ends", [lambda a, b: (a.end(), b.end()), lambda a, b: (b.end(), a.end())], ids=["first", "last"])
def test_a_tool_joins_none_of_two_running_turns(live: Live, ends: Callable[[Span, Span], object]) -> None:
    """Both turns end before the worker handles one of them."""
    a, b = started(live, "a"), started(live, "b")
    call_tool(live)
    ends(a, b)
    assert tools(live) == {"a": 0, "b": 0}


def test_a_tool_may_belong_to_a_loop_that_waits_for_its_next_call(live: Live) -> None:
    """The loop's calls are separate traces, so its turn is complete after the other turn."""
    request = '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {}}]}]'
    result = (
        '[{"role": "user", "parts": [{"type": "text", "content": "Who?"}]}, '
        + request[1:-1]
        + (', {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "Ada"}]}]')
    )
    a = started(live, "a")
    live.tracer.start_span("chat m", set_span_in_context(a), attributes=CALL).end()
    live.tracer.start_span("chat m", Context(), attributes={**CALL, "gen_ai.output.messages": request}).end()
    call_tool(live)
    a.end()
    live.tracer.start_span("chat m", Context(), attributes={**CALL, "gen_ai.input.messages": result}).end()
    assert tools(live)["a"] == 0
