"""pydantic-ai's first format: content in ``events``, roles in span names."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from tests.support.spans import span

SCOPE = "pydantic-ai"
USER = {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?"}


def choice(message):
    return {"event.name": "gen_ai.choice", "index": 0, "message": message}


def model(span_id, *events, **more):
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "events": json.dumps(events),
        **more.pop("attributes", {}),
    }
    return span(span_id, 1, "chat m", attributes, scope=SCOPE, **more)


@pytest.mark.parametrize(
    ("events", "asked", "answered"),
    [
        pytest.param([USER, choice({"role": "assistant", "content": "A"})], ["Weather?"], ["A"], id="a choice is the answer"),
        pytest.param([USER, {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "A"}], ["Weather?"], ["A"], id="the assistant's last words are"),
        pytest.param([USER], ["Weather?"], [], id="no answer yet"),
        pytest.param([USER, 5, choice({"content": "A"})], ["Weather?", "5"], ["A"], id="something that is no event"),
    ],
)  # fmt: skip
def test_events_are_split_where_the_answer_begins(events, asked, answered):
    assert [message.content for message in decode(json.dumps(events), "user").messages] == asked
    assert [message.content for message in decode(json.dumps(events), "assistant").messages] == answered
