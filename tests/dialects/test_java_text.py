"""The parser of Java's ``toString`` output terminates for every text."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies

from otel_agenteval.core.literals import java_value

PIECES = ["{", "}", "[", "]", "(", ")", "=", ",", "'", '"', " ", "a", "A", "1", "\n", "Call{a=", "A(b=", '{"a":1}', "a=", "null"]


@pytest.mark.parametrize("text", ["{a=)}", "Call{a=[)]}", "[Call(a=1, }])", "[Call(a={], b=1)]"])
def test_wrong_closing_bracket_is_no_object(text):
    assert java_value(text) is None


@given(strategies.lists(strategies.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_ends(text):
    for start in ("Call{a=", "[Call(a=", "{a="):
        for end in "}])":
            java_value(start + text + end)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Call{name='it's', parts=[1, 2]}", {"java_class": "Call", "name": "it's", "parts": [1, 2]}),
        ("Call[why=a timeout (HTTP 504)]", {"java_class": "Call", "why": "a timeout (HTTP 504)"}),
        ('Call(arguments={"a": [1]}, rest={b=c})', {"java_class": "Call", "arguments": {"a": [1]}, "rest": {"b": "c"}}),
    ],
)
def test_objects_are_read(text, value):
    assert java_value(text) == value
