"""Koog's attributes that the recordings don't contain."""

from __future__ import annotations

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read
from tests.support.spans import span

SERVICE = "acme-support"


def step_of(**attributes):
    attributes = {"koog.event.id": "e1", **{key.replace("__", "."): value for key, value in attributes.items()}}
    return read(span(1, attributes=attributes, scope=SERVICE))


def test_hidden_content_is_unknown():
    """Content is only recorded if the feature is verbose."""
    hidden = step_of(
        gen_ai__operation__name="execute_tool", gen_ai__tool__name="t", gen_ai__tool__call__arguments="HIDDEN:non-empty",
        gen_ai__tool__call__result="HIDDEN:non-empty",
    )  # fmt: skip
    assert (hidden.tool_arguments, hidden.tool_result) == (None, None)
    shown = step_of(gen_ai__operation__name="execute_tool", gen_ai__tool__name="t", gen_ai__tool__call__result="18")
    assert shown.tool_result == "18"
    assert decode(
        step_of(gen_ai__operation__name="chat", gen_ai__input__messages="HIDDEN:non-empty").input_messages, "user"
    ).hidden
