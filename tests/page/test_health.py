"""Health in the web UI: one line summarizes the state, and numbers have units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.page import ServedPage
from tests.support.stored_turns import NOW

from .test_browser import opened


@pytest.fixture
def tab(browser: Any, page: ServedPage) -> Iterator[Any]:
    yield from opened(browser, page.url)


def sidecar(**more: Any) -> dict[str, Any]:
    """Return the state of a sidecar without faults."""
    return {
        "requests": {"ok": 7}, "spans": {"received": 9, "scored": 8, "held": 1, "not_used": {}}, "turns": {"open": 1, "waiting": 0, "closed": {"root_ended": 4}},
        "results": {"ok": 3, "pass": 40, "error": 1}, "outlets": {"store": {"made": 40, "delivered": 40, "waiting": 0, "failed": {}}}, "outlet_errors": {}, "faults": {},
        "handed_over": False, "more": {"queue.size worker": 1_000, "queue.capacity worker": 67_108_864, "load_level": 0, "budget.remaining.usd day": 4.5, "judge.requests ok": 5},
        "budgets": [{"metric": None, "unit": "usd", "window": "day", "limit": 5.0, "remaining": 4.5}], "unread_traces": [], **more,
    }  # fmt: skip


ILL: list[tuple[dict[str, Any], str]] = [
    ({"faults": {"journal": 2}}, "2 internal errors in journal (see the log)"),
    ({"requests": {"ok": 7, "unauthenticated": 1}}, "1 request refused: without a valid token"),
    ({"spans": {"received": 9, "not_used": {"queue_full": 3, "sampled_out": 5}}}, "3 spans lost: the queue is full"),
    ({"outlets": {"webhook": {"made": 2, "delivered": 0, "waiting": 0, "failed": {"rejected": 2}}}}, "2 records not delivered to webhook: rejected"),
    ({"outlet_errors": {"store: disk_full": 1}}, "1 error of outlet store: disk full"),
    ({"results": {"pass": 4, "error": 6}}, "6 of 10 results are errors"),
    ({"more": {"load_level": 2}}, "overloaded: judged and embedding metrics are skipped"),
    ({"more": {"queue.size worker": 66e6, "queue.capacity worker": 67e6}}, "queue of spans to score nearly full: 66.0 MB of 67.0 MB"),
    ({"more": {"judge.requests ok": 5, "judge.requests error": 2}}, "2 judge requests failed"),
    ({"budgets": [{"metric": None, "unit": "usd", "window": "day", "limit": 5.0, "remaining": 0.25}]}, "judge budget nearly used up: $0.25 of $5.00 per day left"),
    ({"unread_traces": [{"scope": "x", "missing": "content", "traces": 3, "fix": "set X"}]}, "3 traces couldn't be read"),
]  # fmt: skip


def test_health_says_whether_all_is_well(tab: Any) -> None:
    shown = sidecar()
    store = {"turns": 1, "since": NOW, "until": NOW, "hours_not_summed": 0}
    tab.route("**/api/v1/health", lambda route: route.fulfill(json={"store": store, "sidecar": shown}))
    tab.goto("/health")
    tab.wait_for_selector("text=All is well.")
    text = tab.locator("main").inner_text()
    for word in ("undefined", "not_used", "remaining", "root_ended", "null", "load_level", "[object"):
        assert word not in text
    lines = [re.sub(r"\s+", " ", row) for row in tab.locator("main tr").all_inner_texts()]
    assert {
        "received 9 spans",
        "in open turns 1 span",
        "all metrics $4.50 of $5.00 per day",
        "spans to score 1 kB of 67.1 MB",
    } <= set(lines)
    values = tab.locator("main td").all_inner_texts()
    assert all(re.search(r"[a-z$B:]", value) for value in values), values  # each number has a unit
    for more, says in ILL:
        shown = sidecar(**more)
        tab.get_by_role("button", name="Refresh").click()
        tab.wait_for_function(
            "(text) => document.querySelector('main [role=status]')?.textContent === text",
            arg=f"Problems since the start: {says}.",
        )
