"""Excerpts are shortened before redaction, so they must not end within a secret."""

from __future__ import annotations

import pytest

from otel_agenteval.evaluation import redaction
from otel_agenteval.metrics.lib.values import excerpt

KINDS = ("email", "phone", "card", "secret")


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        pytest.param("short", 5, "short", id="what fits is whole"),
        pytest.param("one two three", 10, "one two", id="it ends with a word"),
        pytest.param("pay with 4111 1111 1111 1111 now", 22, "pay with", id="half a card goes"),
        pytest.param("call +1 (415) 555-2671 now", 15, "call", id="half a telephone number goes"),
        pytest.param("mail john.doe@acme.example now", 12, "mail", id="half an address goes"),
        pytest.param("https://a.example/reset?token=abcdef0123456789", 40, "https://a.example/reset?token=", id="half a token"),
        pytest.param("x" * 50, 10, "x" * 10, id="one long word of letters is cut all the same"),
        pytest.param("7" * 50, 10, "", id="of one number nothing is shown"),
        pytest.param("", 0, "", id="nothing"),
    ],
)
def test_an_excerpt_ends_between_words(text: str, limit: int, shown: str) -> None:
    assert excerpt(text, limit) == shown


@pytest.mark.parametrize(
    "secret", ["4111 1111 1111 1111", "+44 20 7946 0958", "john.doe@acme.example", "ghp_aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6"]
)
def test_wherever_it_is_cut_no_half_of_a_secret_is_left(secret: str) -> None:
    text = f"before {secret} after"
    for limit in range(len(text) + 1):
        left = redaction.redacted_text(excerpt(text, limit), KINDS)
        assert secret[: len(secret) // 2] not in left
