"""The page of one turn: steps first, passed scores folded, and a search for spans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.core.finding import Finding, detail_of
from otel_agenteval.page.api import Options
from tests.support.page import ServedPage
from tests.support.stored_turns import filled, score_row, turn_row

from .test_browser import opened

SPANS = [
    {"id": "a", "name": "invoke_agent travel", "start_s": 0.0, "duration_s": 4.0},
    {"id": "b", "parent": "a", "name": "chat", "start_s": 0.5, "duration_s": 1.0, "attributes": {"gen_ai.request.model": "gpt-5"}},
    {"id": "c", "parent": "a", "name": "tool book", "start_s": 1.5, "duration_s": 2.0, "attributes": {"peer.service": "Hotels", "retries": 3}},
    {"id": "d", "parent": "c", "name": "tool pay", "start_s": 2.0, "duration_s": 1.0},
]  # fmt: skip
CONTENT: dict[str, Any] = {
    "input": "Book it.", "output": "Booked.", "duration_s": 4.0, "spans": SPANS,
    "messages": [{"role": "user", "content": "word " * 3_000}, {"role": "assistant", "content": "Booked."}],
    "agent_runs": [{"span_id": "a", "name": "travel", "duration_s": 4.0}],
    "llm_calls": [{"span_id": "b", "model": "gpt-5", "duration_s": 1.0, "input_tokens": 1200, "cached_tokens": 800, "output_tokens": 30, "cost_usd": 0.004, "time_to_first_token_s": 0.25}],
    "tool_calls": [
        {"span_id": "c", "name": "book", "duration_s": 2.0, "error": {"type": "timeout", "message": "No reply."}},
        {"span_id": "d", "name": "pay", "duration_s": 1.0, "cost_usd": 0.01, "result": "paid"},
    ],
}  # fmt: skip


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    """Open a turn, and return the tab and the turn's id."""
    turn = turn_row(1, content=CONTENT)
    found = Finding("tool_calls[1].result", 0, 4, "kind")
    scores = [
        score_row(turn, "code_bad", 0.0), score_row(turn, "code_found", 1.0, detail=detail_of([found])), score_row(turn, "code_good"),
        score_row(turn, "code_fine"), score_row(turn, "code_latency", 4.0, passed=None, direction="neutral", threshold=None),
    ]  # fmt: skip
    with ServedPage(filled(tmp_path / "s.db", [(turn, scores)]), Options(content=True)) as served:
        for tab in opened(browser, served.url):
            tab.goto(f"/turn/{turn['turn_id']}")
            tab.wait_for_selector(".steps li")
            yield tab, turn["turn_id"]


def names(tab: Any) -> list[str]:
    return [str(text) for text in tab.locator(".steps li code").all_text_contents()]


@pytest.mark.parametrize(("width", "most"), [(1280, 400), (400, 620)])
def test_steps_stand_below_the_header_with_their_bars(shown: Any, width: int, most: int) -> None:
    tab, _ = shown
    tab.set_viewport_size({"width": width, "height": 900})
    head = tab.locator(".turn-head").bounding_box()
    top = tab.locator("#steps").bounding_box()["y"]
    assert head["y"] + head["height"] <= top <= min(most, head["y"] + head["height"] + 40)
    assert tab.locator(".steps .bar-of > span").count() == 4
    assert all(bar.is_visible() for bar in tab.locator(".steps .bar-of > span").all())
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_a_step_shows_what_it_used_and_whether_it_failed(shown: Any) -> None:
    tab, _ = shown
    model = tab.locator(".steps li", has_text="gpt-5")
    assert model.locator(".used").text_content() == "1,200 in (800 cached), 30 out, $0.004, first token 250 ms"
    agent = tab.locator(".steps li").first  # with the sums of the steps within it
    assert agent.locator(".used").text_content() == "1,200 in (800 cached), 30 out, $0.014"
    bars = [
        tab.locator(".steps li", has=tab.locator("code", has_text=name)).locator(".bar-of > span").first
        for name in ("book", "pay")
    ]
    failed, passed = (bar.evaluate("(one) => getComputedStyle(one).backgroundColor") for bar in bars)
    assert failed == tab.locator(".mark.bad").first.evaluate("(one) => getComputedStyle(one).color") != passed
    assert "timeout No reply." in tab.text_content(".steps")


def test_steps_fold_by_keyboard_and_keep_findings_in_sight(shown: Any) -> None:
    tab, _ = shown
    assert names(tab) == ["travel", "gpt-5", "book", "pay"]
    outer = tab.get_by_role("button", name="Steps within travel")
    assert outer.get_attribute("aria-expanded") == "true"
    outer.press("Enter")
    assert outer.get_attribute("aria-expanded") == "false"
    assert names(tab) == ["travel", "pay"]  # a finding is in the last one
    tab.get_by_role("button", name="Unfold all").click()
    assert names(tab) == ["travel", "gpt-5", "book", "pay"]
    tab.locator("summary", has_text="Steps").click()
    assert not tab.locator(".steps").is_visible()
    tab.locator("button.finding").click()
    tab.wait_for_function("document.activeElement.tagName === 'MARK'")
    assert tab.locator(".steps mark").is_visible()


def test_each_step_has_an_address(shown: Any) -> None:
    tab, turn_id = shown
    tab.locator(".steps").get_by_role("link", name="book").click()
    tab.wait_for_url(f"**/turn/{turn_id}?step=tool_calls*")
    tab.reload()
    tab.wait_for_selector(".steps li.chosen")
    assert "book" in tab.text_content(".steps li.chosen")
    assert tab.evaluate("document.activeElement.dataset.path") == "tool_calls[0]"


def test_passed_and_measured_scores_are_one_line(shown: Any) -> None:
    tab, _ = shown
    visible = [one.locator("code").first.text_content() for one in tab.locator(".scores > li").all() if one.is_visible()]
    assert visible == ["code_bad", "code_found"]
    tab.get_by_text("2 passed, 1 measured", exact=True).click()
    assert tab.locator(".scores > li", has_text="code_latency").is_visible()


def test_spans_and_attributes_are_found_by_text(shown: Any) -> None:
    tab, _ = shown
    tab.locator("summary", has_text="Spans").click()
    box = tab.get_by_label("Find in names and attributes")
    box.fill("hotels")
    tab.wait_for_selector("text=1 of 4")
    tab.locator(".spans .row button").click()
    assert tab.locator(".span-detail dt").all_text_contents() == ["peer.service"]
    tab.get_by_role("button", name="Show all 2 attributes").click()
    assert tab.locator(".span-detail dt").all_text_contents() == ["peer.service", "retries"]
    assert tab.locator(".spans .row").count() == 4
    box.fill("nowhere")
    tab.wait_for_selector("text=0 of 4")


def test_the_plural_address_leads_to_the_turn_too(shown: Any) -> None:
    tab, turn_id = shown
    tab.goto(f"/turns/{turn_id}?step=tool_calls[1]")
    tab.wait_for_selector(".steps li.chosen")
    assert tab.title() == f"Turn {turn_id[:8]} – otel-agenteval"
    assert tab.locator("nav[aria-label=Views] [aria-current=page]").text_content() == "Turns"
