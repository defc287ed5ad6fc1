"""Names and ids with personal data or secrets become the same markers everywhere."""

from __future__ import annotations

import pytest

from otel_agenteval.core import semconv
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.names import public_id, public_name
from otel_agenteval.evaluation.redaction import KINDS

ADA, NUMBER = "ada@example.org", "+4915112345678"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
ORDINARY = """
gpt-4o-2024-11-20 claude-sonnet-4-5-20250929 ft:gpt-4o-mini-2024-07-18:acme::A1b2C3d4 lookup_order_v3 mcp__github__create_issue billing-agent
550e8400-e29b-41d4-a716-446655440000 6ba7b810-9dad-11d1-80b4-00c04fd430c8 thread_abc123DEF456ghi789 01JD8X2M9QZ4V7K3T5R6W8Y0AB
conv-2026-11-20-0001 1763640000 1763640000123 session-20261120-120000-7 4711 user-4711 20261120001 2026112000 ValueError timeout http_503
openai.RateLimitError 0123456789abcdef0123456789abcdef
"""


@pytest.mark.parametrize("name", ["order 20261120001", *ORDINARY.split()])
def test_ordinary_names_and_ids_stay(name: str) -> None:
    assert (public_name(name, KINDS), public_id(name, KINDS)) == (name, name)


@pytest.mark.parametrize(
    "written",
    [NUMBER, "4915112345678", "004915112345678", "+49 151 12345678", "whatsapp:+4915112345678", "wa-4915112345678"],
)
def test_a_number_has_one_mark_however_an_id_writes_it(written: str) -> None:
    left = public_id(written, KINDS)
    assert "12345678" not in left
    assert public_id(NUMBER, KINDS) in left
    assert public_id(left, KINDS) == left
    assert public_id(written, ()) == written


@pytest.mark.parametrize("written", ["14155552671", "4155552671", "13812345678", "user:ada@example.org", f"agent {TOKEN}"])
def test_people_and_secrets_in_ids_become_marks(written: str) -> None:
    left = public_id(written, KINDS)
    assert left != written
    assert "[" in left
    assert public_id(f"{written}x", KINDS) != left


def test_a_label_is_public_however_it_comes_to_be_counted() -> None:
    telemetry = Telemetry(public=lambda name: public_name(name, KINDS))
    for _ in range(2):
        telemetry.add(semconv.RESULTS, metric="m", agent=ADA, outcome="dropped")
    telemetry.record([(semconv.RESULTS, ("m", ADA, "dropped"), 1)])
    telemetry.watch(semconv.ESTIMATE_MEAN, lambda: [({"metric": "m", "agent": ADA, "window": "1h"}, 0.5)])
    ada = public_name(ADA, KINDS)
    assert telemetry.read(semconv.RESULTS).values == {("m", ada, "dropped"): 3}
    assert telemetry.read(semconv.ESTIMATE_MEAN).values == {("m", ada, "1h"): 0.5}
    assert telemetry.folded(semconv.RESULTS, ("m", ADA, "dropped")) == ("m", ada, "dropped")
