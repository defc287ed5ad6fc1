"""What Galileo's tracer writes, and what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.spans.record import SpanRecord

SEARCH = {
    "gen_ai.system": "galileo-otel",
    "db.operation": "search",
    "gen_ai.input.messages": json.dumps([{"role": "user", "content": "returns?"}]),
    "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "content": {"documents": [{"content": "30 days", "metadata": {"id": "d"}}]}}]
    ),
}


@pytest.mark.parametrize(
    ("attributes", "scope", "role"),
    [
        pytest.param({"gen_ai.system": "galileo-otel"}, "galileo-tracer", "chain", id="a workflow"),
        pytest.param({}, "galileo-tracer", "chain", id="a span that has not ended"),
        pytest.param(SEARCH, "galileo-tracer", "retrieval", id="a retriever"),
        pytest.param({"gen_ai.operation.name": "execute_tool"}, "galileo-tracer", "tool", id="a tool"),
        pytest.param({"galileo.session.id": "s"}, "my.app", None, id="what its processor puts on every span says nothing"),
    ],
)
def test_role(attributes: dict[str, Any], scope: str, role: str | None) -> None:
    assert role_of(attributes, scope, "x") == role


def test_a_retriever_and_its_session() -> None:
    attributes = {**SEARCH, "galileo.session.id": "s-1"}
    found = read(SpanRecord(trace_id=1, span_id=2, name="x", scope="galileo-tracer", start_ns=1, end_ns=2, attributes=attributes))
    assert found.documents is not None
    assert (found.query, found.conversation_id) == ("returns?", "s-1")
    assert [(item.id, item.content) for item in found.documents] == [("d", "30 days")]
