from __future__ import annotations

import json

from tests.support.spans import agent, chat, span, turn_of

SCOPE = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"


def test_a_function_that_the_application_called_is_no_tool_call():
    root = span(1, name="execute_tool chat-ask", attributes={"gen_ai.tool.name": "chat-ask"}, ms=90)
    turn = turn_of(root, chat(2, 1, user="Hello", says="Hi", scope=SCOPE))
    assert (turn.input, turn.output, turn.tool_calls) == ("Hello", "Hi", [])


def test_a_hand_off_is_no_tool_call_whatever_plugin_it_is_in():
    call = {"id": "c1", "name": "Handoff-transfer_to_billing", "arguments": json.dumps({})}
    turn = turn_of(
        agent(1, name="triage"),
        chat(2, 1, user="Refund me.", calls=[call], scope=SCOPE),
        span(3, 1, "execute_tool Handoff-transfer_to_billing", {"gen_ai.tool.name": "Handoff-transfer_to_billing"}, at=20),
    )
    assert turn.tool_calls == []
    assert [(handoff.from_, handoff.to) for handoff in turn.handoffs] == [("triage", "billing")]
