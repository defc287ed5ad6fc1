"""Backoff, and the header ``Retry-After``."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from otel_agenteval.core.pacing import backoff, retry_after
from tests.support.clock import FakeClock


@pytest.mark.parametrize(("failures", "longest"), [(0, 1.0), (1, 1.0), (2, 2.0), (4, 8.0), (6, 30.0), (5_000, 30.0)])
def test_backoff_doubles_up_to_the_longest_pause(failures: int, longest: float) -> None:
    pauses = [backoff(failures, 1.0, 30.0) for _ in range(50)]
    assert longest / 2 <= min(pauses) < max(pauses) <= longest


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0), ("", 0), ("7", 7), (" 1.5 ", 1.5), ("-5", 0), ("nan", 0), ("inf", 3_600), ("soon", 0),
        ("Mon, 99 Foo 2026", 0), ("Fri, 31 Dec 1999 23:59:59 GMT", 0), ("Fri, 31 Dec 99999 23:59:59 GMT", 0),
    ],
)  # fmt: skip
def test_retry_after_is_parsed_or_zero(header: str | None, seconds: float) -> None:
    assert retry_after(header) == seconds


def test_retry_after_is_relative_to_the_clock_for_a_date() -> None:
    clock = FakeClock()
    until = datetime.fromtimestamp(clock.time_ns() / 1e9, timezone.utc) + timedelta(seconds=20)
    assert 19 <= retry_after(format_datetime(until, usegmt=True), clock) <= 20
