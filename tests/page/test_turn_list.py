"""The list of turns in the web UI: times, filters, order, count, and conversations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.page.api import Reader
from tests.support.page import ServedPage
from tests.support.stored_turns import NOW, filled, score_row, some_turns, turn_row

from .conftest import COUNT
from .test_browser import choice, opened, violations


@pytest.fixture
def tab(browser: Any, page: ServedPage) -> Iterator[Any]:
    yield from opened(browser, page.url)


def status(tab: Any, text: str) -> None:
    tab.wait_for_function("(text) => document.querySelector('.bar [role=status]')?.textContent === text", arg=text)


def first_cells(tab: Any, name: str) -> list[str]:
    tab.wait_for_selector(".rows .row")
    return [str(text) for text in tab.locator(f".rows .cell.{name}").all_text_contents()]


def test_turns_are_limited_to_a_time_of_ones_own(tab: Any, page: ServedPage) -> None:
    tab.goto("/turns?metric=code_refusal")
    status(tab, f"{COUNT} turns")
    choice(tab, "Time").select_option("own")
    tab.get_by_label("From (UTC)").fill("2026-11-16T12:00")
    tab.get_by_label("From (UTC)").blur()
    tab.wait_for_url("**/turns?*since=2026-11-16T12*")
    tab.get_by_label("To (UTC)").fill("2026-11-17T12:00")
    tab.get_by_label("To (UTC)").blur()
    tab.wait_for_url("**/turns?*until=2026-11-17T12*")
    expected = len(list(page.all_turns(metric="code_refusal", since="2026-11-16T12:00:00Z", until="2026-11-17T12:00:00Z")))
    assert 0 < expected < COUNT
    status(tab, f"{expected} turns")
    assert "since 2026-11-16 12:00:00" in tab.text_content(".chips")
    tab.reload()
    assert tab.get_by_label("From (UTC)").input_value() == "2026-11-16T12:00"
    choice(tab, "Time").select_option("24h")
    tab.wait_for_url("**/turns?metric=code_refusal&since=24h")
    assert tab.get_by_label("To (UTC)").count() == 0
    tab.goto(f"/turns?since={NOW - 3_600}")  # as a chart writes it
    assert tab.get_by_label("From (UTC)").input_value() == "2026-11-18T10:06"


def test_turns_are_filtered_by_user_attribute_and_fact(browser: Any, tmp_path: Path) -> None:
    rows = [
        turn_row(number, user_id=f"u{number % 3}", attributes={"plan": "pro" if number % 2 else "free"}, facts={"tool_calls": number, "language": "de"})
        for number in range(12)
    ]  # fmt: skip
    with ServedPage(filled(tmp_path / "s.db", [(turn, [score_row(turn)]) for turn in rows])) as served:
        for tab in opened(browser, served.url):
            tab.goto("/turns")
            status(tab, "12 turns")
            assert "plan=" in tab.locator("#fact-names option").evaluate_all("(all) => all.map((one) => one.value)")
            tab.get_by_label("User").fill("u1")
            tab.keyboard.press("Enter")
            status(tab, "4 turns")
            box = tab.get_by_label("Attribute or fact")
            box.fill("plan=pro")
            tab.keyboard.press("Enter")
            status(tab, "2 turns")
            box.fill("tool_calls>5")
            tab.keyboard.press("Enter")
            status(tab, "1 turn")
            tab.get_by_role("button", name="Remove filter fact plan=pro").click()
            status(tab, "2 turns")
            assert tab.locator(".chips").text_content().count("fact") == 2


def test_a_wrong_condition_is_explained(browser: Any, page: ServedPage) -> None:
    tab = browser.new_page()
    tab.goto(f"{page.url}/turns")
    tab.get_by_label("Attribute or fact").fill("no sign")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("main [role=alert]")
    assert "must be NAME=VALUE" in tab.text_content("main [role=alert]")
    tab.close()


def test_columns_sort_by_key_and_click(tab: Any, page: ServedPage) -> None:
    turns = list(page.all_turns())
    slowest = sorted(turns, key=lambda turn: -turn["duration_s"])
    tab.goto("/turns")
    status(tab, f"{COUNT} turns")
    header = tab.get_by_role("columnheader", name="duration")
    assert header.get_attribute("aria-sort") is None
    header.get_by_role("link").press("Enter")
    tab.wait_for_url("**/turns?order=slowest")
    status(tab, f"{COUNT} turns, first 200 shown")
    assert header.get_attribute("aria-sort") == "descending"
    first = tab.locator(".rows .row").first
    assert slowest[0]["turn_id"] in first.locator(".cell.time a").get_attribute("href")
    tab.get_by_role("columnheader", name="time").get_by_role("link").click()
    status(tab, f"{COUNT} turns")
    tab.get_by_role("columnheader", name="time").get_by_role("link").click()
    tab.wait_for_url("**/turns?order=oldest")
    tab.wait_for_selector(f".rows .row:first-child a[href^='/turn/{turns[-1]['turn_id']}']")
    assert tab.get_by_role("columnheader", name="time").get_attribute("aria-sort") == "ascending"
    choice(tab, "Agent").select_option("travel")
    status(tab, "100 turns")
    assert "order=oldest" in tab.url  # a filter keeps the order


def test_a_sorted_list_says_what_was_not_read(tab: Any) -> None:
    def answer(route: Any) -> None:
        response = route.fetch()
        route.fulfill(json={**response.json(), "next": "x"})

    tab.route("**/api/v1/turns?*", answer)
    tab.route("**/api/v1/count*", lambda route: route.fulfill(json={"turns": 10_000, "complete": False}))
    tab.goto("/turns?order=costliest")
    status(tab, "more than 10,000 turns, first 200 shown")
    words = tab.get_by_text("costliest first, of the latest turns only")
    assert "Choose a shorter time range" in words.get_attribute("title")


def test_long_costs_fit_their_column(browser: Any, tmp_path: Path) -> None:
    turns = [turn_row(n, cost_usd=cost, cost_estimated=1) for n, cost in enumerate((0.0000123, 12_345.67, 0.00099))]
    with ServedPage(filled(tmp_path / "s.db", [(turn, []) for turn in turns])) as served:
        for tab in opened(browser, served.url):
            tab.goto("/turns")
            assert len(first_cells(tab, "cost")) == 3
            assert tab.locator(".rows .cell.cost").evaluate_all("(all) => all.every((one) => one.scrollWidth <= one.clientWidth)")


def test_conversations_are_rows_that_lead_to_their_turns(tab: Any, page: ServedPage) -> None:
    tab.goto("/turns?agent=travel")
    tab.get_by_role("link", name="Conversations").click()
    tab.wait_for_url("**/turns?agent=travel&group=conversation")
    row = tab.locator("tbody tr", has_text=re.compile(r"^conv-59"))
    row.wait_for()
    cells = row.locator("td").all_text_contents()
    turns = list(page.all_turns(conversation="conv-59"))
    failed = list(page.all_turns(conversation="conv-59", outcome="fail"))
    latest = next(turn for turn in turns if turn["agent"] == "travel")
    assert cells[:3] == [f"{latest['asked']} → {latest['answered']}", "5", str(len(failed))]
    assert cells[4] == "$0.05"
    row.get_by_role("link", name="conv-59").click()
    tab.wait_for_url("**/turns?conversation=conv-59")
    status(tab, f"{len(turns)} turns")
    tab.go_back()
    row.get_by_role("link", name=str(len(failed)), exact=True).first.click()
    status(tab, f"{len(failed)} turns")


def test_conversations_come_in_parts(browser: Any, tmp_path: Path) -> None:
    with ServedPage(filled(tmp_path / "s.db", some_turns(600))) as served:
        first = served.get("conversations")
        second = served.get("conversations", cursor=first["next"])
        assert len(first["conversations"]) == 100
        assert {one["id"] for one in first["conversations"] + second["conversations"]} == {f"conv-{n}" for n in range(120)}
        assert second["next"] is None
        for tab in opened(browser, served.url):
            tab.goto("/turns?group=conversation")
            tab.get_by_role("link", name="Older").click()
            tab.wait_for_selector("tbody tr >> text=conv-0")
            tab.get_by_role("link", name="Latest").click()
            tab.wait_for_selector("tbody tr >> text=conv-119")


def test_a_tenant_reads_its_own_conversations(tmp_path: Path) -> None:
    own, other = (
        turn_row(n, tenant=tenant, conversation_id="c", turn_id=f"{tenant}:{n}") for n, tenant in enumerate(("acme", "evil"))
    )
    with ServedPage(filled(tmp_path / "s.db", [(own, []), (other, [])]), readers={"t": Reader("read", "acme")}) as served:
        served.client.headers["authorization"] = "Bearer t"
        assert [one["turns"] for one in served.get("conversations")["conversations"]] == [1]
        assert served.get("count") == {"turns": 1, "complete": True}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_lists(scheme: str, browser: Any, page: ServedPage) -> None:
    views = ["/turns?order=slowest", "/turns?group=conversation", "/turns?since=2026-11-16T12:00:00Z", "/label?choice=doubtful"]
    for tab in opened(browser, page.url, color_scheme=scheme, bypass_csp=True):
        assert violations(tab, views) == []
