"""Failure modes in the web UI: their API, and the links to their turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.evaluation.first_fault import Fault
from otel_agenteval.page.api import Options, Reader
from tests.support.page import ServedPage
from tests.support.postgres import Anywhere
from tests.support.stored_turns import failed_row, filled, score_row, turn_row

from .test_browser import assert_phone_scrolls_only_the_table, opened, violations

METRIC = "code_tool_success"
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
TIMEOUT = Fault("tool_error", "tool_calls[1]", "book failed and wasn't repaired", "book", "timeout")
AGAIN = Fault("loop", "tool_calls[1]", f"{HOSTILE} was called again", HOSTILE)
NUMBER = Fault("changed_number", "output", "a number in the answer isn't in its sources")
CONTENT = {
    "input": "Book room 12.",
    "output": "Room 21 is booked.",
    "messages": [{"role": "user", "content": "Book room 12."}, {"role": "assistant", "content": "Room 21 is booked."}],
    "tool_calls": [{"name": "search"}, {"name": "book", "error": {"type": "timeout"}}],
    "retrievals": [{"query": f"room {number}", "documents": []} for number in range(30)],
}


def stored(path: str) -> str:
    """Return a store of 60 turns. Every third turn failed, half of them for one tenant."""
    rows = []
    for number in range(60):
        tenant = "acme" if number % 2 else "globex"
        fault = TIMEOUT if number % 4 else Fault("code_refusal")
        turn = turn_row(number, tenant=tenant) if number % 3 else failed_row(number, fault, tenant=tenant)
        rows.append((turn, [score_row(turn, value=float(number % 3 > 0))]))
    return filled(path, rows)


def test_modes_equal_those_of_the_command(anywhere: Anywhere, capsys: pytest.CaptureFixture[str]) -> None:
    path = stored(anywhere())
    assert main(["failure-modes", "--store", path, "--format", "json"]) == 0
    with ServedPage(path) as served:
        found = served.get("failure-modes")
        assert found["modes"] == json.loads(capsys.readouterr().out)
        assert found["turns"] == 60
        assert [(mode["kind"], mode["failed"]) for mode in found["modes"]] == [("tool_error", 15), ("code_refusal", 5)]
        for mode in found["modes"]:
            turns = {turn["turn_id"] for turn in served.all_turns(mode=mode["id"])}
            assert len(turns) == mode["failed"]
            assert turns >= set(mode["examples"])
        assert list(served.all_turns(mode="0")) == []


def test_filters_and_tenants_limit_the_modes(anywhere: Anywhere) -> None:
    path = stored(anywhere())
    with ServedPage(path) as served:
        assert served.get("failure-modes", agent="nobody") == {"modes": [], "turns": 0, "middle": 0.0}
        assert sum(mode["failed"] for mode in served.get("failure-modes", metric="code_refusal", outcome="fail")["modes"]) == 20
        assert served.get("failure-modes", metric="code_other", outcome="fail")["modes"] == []
    with ServedPage(path, readers={"t": Reader("read", "acme")}) as served:
        served.client.headers["authorization"] = "Bearer t"
        found = served.get("failure-modes")
        assert (found["turns"], [mode["failed"] for mode in found["modes"]]) == (30, [10])


def test_cases_of_a_mode_are_a_data_set(anywhere: Anywhere, tmp_path: Path) -> None:
    rows = []
    for number in range(6):
        tenant = "acme" if number % 2 else "globex"
        turn = failed_row(number, TIMEOUT, tenant=tenant, content={"input": f"Book {number}", "output": "Done."})
        turn["turn_id"] = f"{tenant}:{turn['turn_id']}"
        rows.append((turn, [score_row(turn, "code_tool_success", 0.2, threshold=0.7)]))
    path = filled(anywhere(), rows)
    cases = f"/api/v1/failure-modes/{TIMEOUT.mode}/cases"
    labels = tmp_path / "labels.jsonl"
    label = {"turn_id": rows[5][0]["turn_id"], "label": "fail", "comment": '{"ground_truth": "Booked."}'}
    labels.write_text(json.dumps(label), encoding="utf-8")
    with ServedPage(path, Options(content=True, labels=str(labels)), readers={"t": Reader("read", "acme")}) as served:
        served.client.headers["authorization"] = "Bearer t"
        answer = served.client.get(cases, params={"limit": "2"})
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        newest, before = (json.loads(line) for line in answer.text.splitlines())
        assert (newest["input"], newest["ground_truth"], before["input"]) == ("Book 5", "Booked.", "Book 3")
        assert newest["metrics"] == [{"code_tool_success": {"repair_all": True}, "policy": "gate"}]
        assert served.client.get("/api/v1/failure-modes/0/cases").status_code == 404
    with ServedPage(path, Options()) as served:
        assert served.client.get(cases).status_code == 404


# --- the page


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the page of 400 turns: a timeout that is new in the second half, and two earlier modes."""
    rows, more = [], dict[str, Any](content=CONTENT, facts={"language": "de"})
    for number in range(400):
        fault = (
            TIMEOUT if number > 200 and number % 10 == 0 else AGAIN if number % 10 == 3 else NUMBER if number % 80 == 7 else None
        )
        more["service_version"] = "1.5" if number >= 200 else "1.4"
        turn = turn_row(number, **more) if fault is None else failed_row(number, fault, **more)
        rows.append((turn, [score_row(turn, METRIC, float(fault is None))]))
    with ServedPage(filled(tmp_path_factory.mktemp("modes") / "s.db", rows)) as served:
        yield served.url


@pytest.fixture
def tab(browser: Any, url: str) -> Iterator[Any]:
    yield from opened(browser, url)


def enter(tab: Any, name: str) -> None:
    """Press Tab until a link with this name in the view has the focus, then Enter."""
    tab.get_by_role("main").get_by_role("link", name=name).first.wait_for()
    for _ in range(80):
        tab.keyboard.press("Tab")
        if tab.evaluate(
            "name => (document.activeElement.ariaLabel ?? document.activeElement.textContent).startsWith(name)", name
        ):
            break
    tab.keyboard.press("Enter")


def restored(tab: Any, address: str) -> Any:
    """Open this address in another tab, and check that the view is the same."""
    tab.wait_for_url(f"**{address}")
    other = tab.context.new_page()
    other.goto(tab.url)
    other.wait_for_load_state("networkidle")
    shown = "document.querySelector('main').innerText"
    tab.wait_for_function(f"shown => {shown} === shown", arg=other.evaluate(shown))
    return other


def test_five_keys_lead_from_fleet_to_the_step(tab: Any) -> None:
    of_metric = f"metric={METRIC}&outcome=fail&mode={TIMEOUT.mode}"
    tab.goto("/")
    enter(tab, f"differences of {METRIC}, travel")
    restored(tab, f"/differences?agent=travel&metric={METRIC}")
    enter(tab, "Failure modes of these turns")
    tab.wait_for_url(f"**/failure-modes?agent=travel&metric={METRIC}")
    enter(tab, "tool_error: book (timeout)")
    tab.wait_for_url(f"**/turns?agent=travel&{of_metric}")
    enter(tab, "2026-")
    tab.wait_for_url(f"**/turn/*?agent=travel&{of_metric}")
    enter(tab, "book failed")
    for one in (tab, restored(tab, f"/turn/*?agent=travel&{of_metric}&step=tool_calls%5B1%5D")):
        one.wait_for_function("() => document.activeElement.dataset.path === 'tool_calls[1]'")
        step = one.locator(".steps .chosen")
        assert step.locator("code").text_content() == "book"
        assert 0 <= step.bounding_box()["y"] < 700


def test_worse_modes_come_first_and_names_are_text(tab: Any) -> None:
    tab.goto("/failure-modes")
    rows = tab.locator("main tbody tr")
    rows.first.wait_for()
    assert [row.locator("td").first.text_content() for row in rows.all()] == [
        "tool_error: book (timeout)", f"loop: {HOSTILE}", "changed_number",
    ]  # fmt: skip
    assert rows.locator(".mark").all_text_contents() == ["new", "steady", "steady"]
    assert rows.locator(".mark.warn").count() == 1
    assert rows.first.locator("td").nth(3).text_content() == "4.8 %"
    assert tab.title() == "Failure modes – otel-agenteval"
    assert tab.get_by_text("64 of 400 turns failed").count() == 1
    rows.nth(1).get_by_role("link", name="40 turns").click()
    tab.wait_for_url(f"**/turns?mode={AGAIN.mode}")
    tab.wait_for_selector("text=40 turns")
    tab.get_by_role("button", name=f"Remove filter mode loop: {HOSTILE}").click()
    tab.wait_for_selector("text=400 turns")
    assert tab.title() == "Turns – otel-agenteval"


def test_modes_by_version_are_in_the_address_and_give_cases(tab: Any) -> None:
    tab.goto("/failure-modes?model=gpt-5")
    tab.get_by_role("button", name="by version").click()
    tab.wait_for_url("**/failure-modes?model=gpt-5&by=version")
    tab.get_by_role("columnheader", name="of 1.5").wait_for()
    row = restored(tab, "/failure-modes?model=gpt-5&by=version").locator("main tbody tr").first
    assert [cell.text_content() for cell in row.locator("td.n").all()] == ["0.0 %", "9.5 %", "19"]
    with tab.expect_download() as download:
        tab.get_by_role("link", name="Download test cases of tool_error: book (timeout)").click()
    assert json.loads(Path(download.value.path()).read_text(encoding="utf-8"))["input"] == "Book room 12."


def test_fleet_shows_warnings_only_if_there_are_some(browser: Any, tmp_path: Path) -> None:
    low = {"metric": None, "unit": "usd", "window": "day", "limit": 5.0, "remaining": 0.25}
    enough = {"metric": "llm_relevance", "unit": "calls", "window": "day", "limit": 50.0, "remaining": 20.0}
    unread = {"scope": "haystack", "missing": "content", "traces": 3, "fix": "Set it."}
    turns = [turn_row(0), turn_row(1, tenant="acme")]
    path = filled(tmp_path / "s.db", [(turn, [score_row(turn)]) for turn in turns])
    with ServedPage(path, readers={"a": Reader(), "t": Reader("read", "acme")}) as served:
        served.api.status = lambda: {"budgets": [low, enough], "unread_traces": [unread]}
        for token, budgets, left, traces in (("a", [low], 0.25, 3), ("t", [], None, 0)):
            headers = {"authorization": f"Bearer {token}"}
            found = served.client.get("/api/v1/facets", headers=headers).json()
            assert (found["low_budgets"], found["budget_usd"], found["unread_traces"]) == (budgets, left, traces)
            for tab in opened(browser, served.url, extra_http_headers=headers):
                tab.goto("/")
                tab.get_by_role("heading", name="Estimates").wait_for()
                tab.wait_for_load_state("networkidle")
                assert tab.get_by_role("heading", name="Warnings").count() == len(budgets)
                assert tab.locator("main a[href='/health']").count() == 3 * len(budgets)  # with that of the headline


def test_phone_scrolls_only_the_modes(browser: Any, url: str) -> None:
    for tab in opened(browser, url):
        assert_phone_scrolls_only_the_table(tab, f"/failure-modes?metric={METRIC}&mode={AGAIN.mode}")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_failure_modes(scheme: str, browser: Any, url: str) -> None:
    turn = turn_row(210)["turn_id"]
    views = ("/", f"/failure-modes?mode={AGAIN.mode}", f"/turn/{turn}?step=tool_calls[1]", f"/turns?mode={AGAIN.mode}")
    for tab in opened(browser, url, color_scheme=scheme, bypass_csp=True):
        assert violations(tab, views) == []
