"""The web UI in a real browser: views, filters in the address, live turns, keyboard, hostile content, long lists."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from otel_agenteval.outlets.store.writer import Rows
from otel_agenteval.page.api import Options
from tests.support.media import image, scenery
from tests.support.page import ServedPage
from tests.support.stored_turns import NOW, filled, score_row, some_turns, store_at, turn_row

from .conftest import COUNT

AXE = Path(__file__).parents[1] / "data" / "axe"


@pytest.fixture
def tab(browser: Any, page: ServedPage) -> Iterator[Any]:
    """Return an empty tab. An error or a warning in it fails the test."""
    yield from opened(browser, page.url)


def opened(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    context = browser.new_context(base_url=url, viewport={"width": 1400, "height": 900}, **options)
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on(
        "requestfailed",
        lambda request: said.append(f"{request.url}: {request.failure}") if "ERR_ABORTED" not in request.failure else None,
    )
    yield tab
    context.close()
    assert said == []


def violations(tab: Any, views: Iterable[str]) -> list[tuple[str, str]]:
    """Return the accessibility rules that some views break (axe), each with the element. The tab must bypass the CSP."""
    found = []
    for view in views:
        tab.goto(view)
        tab.wait_for_selector("main h1")
        tab.wait_for_load_state("networkidle")
        tab.evaluate((AXE / "axe.min.js").read_text(encoding="utf-8"))
        found += [(one["id"], node["html"]) for one in tab.evaluate("axe.run()")["violations"] for node in one["nodes"]]
    return found


def assert_phone_scrolls_only_the_table(tab: Any, view: str) -> None:
    tab.set_viewport_size({"width": 400, "height": 800})
    tab.goto(view)
    tab.locator("main tbody tr").first.wait_for()
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    cell = tab.locator("main tbody td").first.bounding_box()
    assert cell["x"] + cell["width"] <= 400


def rows_in(tab: Any) -> int:
    """Return the number of turns that the list reports."""
    tab.wait_for_function("() => /\\d/.test(document.querySelector('.bar [role=status]')?.textContent ?? '')")
    return int(re.sub(r"\D", "", tab.text_content(".bar [role=status]")))


def choice(tab: Any, label: str) -> Any:
    """Return a control of the filter bar."""
    return tab.locator(".filters label.filter", has_text=re.compile(f"^{label}")).locator("select")


# --- the fleet


def test_the_fleet_shows_estimates_over_time_and_leads_to_the_turns_behind_them(tab: Any) -> None:
    tab.goto("/")
    assert tab.title() == "Fleet – otel-agenteval"
    tab.wait_for_selector("svg .line")
    assert tab.locator(".cards li").count() == 3
    assert tab.locator(".multiples article").count() == 3
    assert tab.locator(".multiples article .release").count() == 3
    assert [one.text_content() for one in tab.locator("section details summary h3").all()] == ["Answer", "Tools", "Sources"]
    row = tab.locator("tbody tr", has_text="llm_faithfulness").first
    assert re.search(r"0\.\d", row.text_content())
    card = tab.locator(".cards li", has_text="travel")
    card.get_by_role("link", name="100").click()
    tab.wait_for_url("**/turns?agent=travel")
    assert rows_in(tab) == 100


def test_critical_findings_come_first_and_failures_are_shares_of_all_turns(tab: Any, page: ServedPage) -> None:
    tab.goto("/")
    tab.wait_for_selector("#critical")
    assert [one.text_content() for one in tab.locator("main h2").all()][:2] == ["Critical findings", "Most failures"]
    critical = len(list(page.all_turns(metric="code_refusal", severity="critical")))
    assert f"{critical} of 300 turns" in tab.text_content("section:has(#critical)")
    judged = tab.locator("section:has(#failures) li", has_text="llm_faithfulness")
    assert re.search(r"about \d+\.\d % of 300 turns, from \d+ scored", judged.text_content())
    tab.locator("section:has(#critical) a").first.click()
    tab.wait_for_url("**/turns?metric=code_refusal&severity=critical")
    assert rows_in(tab) == critical


def test_dragging_over_a_chart_zooms(tab: Any) -> None:
    tab.goto("/")
    chart = tab.locator(".multiples article", has_text="code_refusal").locator("svg")
    chart.wait_for()
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 40)
    tab.mouse.up()
    tab.wait_for_url("**/?since=*&until=*")
    since, until = (float(parse_qs(urlsplit(tab.url).query)[name][0]) for name in ("since", "until"))
    assert 0.1 * 3 * 86_400 < until - since < 0.4 * 3 * 86_400


def test_an_empty_store_says_how_turns_come_into_it(browser: Any, tmp_path: Path) -> None:
    with ServedPage(filled(tmp_path / "s.db", [])) as served:
        for tab in opened(browser, served.url):
            tab.goto("/")
            tab.wait_for_selector("text=The store has no turns yet.")
            assert "OTEL_EXPORTER_OTLP_ENDPOINT" in tab.text_content("main")


def test_compare_begins_with_the_latest_versions_and_fits_a_phone(tab: Any) -> None:
    tab.set_viewport_size({"width": 400, "height": 800})
    tab.goto("/compare")
    row = tab.locator(".compared tbody tr").first
    row.wait_for()
    assert [tab.get_by_label(name).input_value() for name in ("Before", "After")] == ["1.4", "1.5"]
    for place in (1, 2):  # verdict and difference
        box = row.locator("td").nth(place).bounding_box()
        assert box["x"] + box["width"] <= 400
    assert "All turns are compared" in tab.text_content(".compared caption") or "pairs" in tab.text_content(".compared caption")


# --- the list


def test_the_list_is_filtered_by_all_that_it_says(tab: Any, page: ServedPage) -> None:
    tab.goto("/turns")
    tab.wait_for_selector(f"text={COUNT} turns")  # although only the first ones are here
    choice(tab, "Metric").select_option("code_refusal")
    choice(tab, "Outcome").select_option("fail")
    failed = len(list(page.all_turns(metric="code_refusal", outcome="fail")))
    tab.wait_for_function(f"() => document.querySelector('.bar [role=status]').textContent === '{failed} turns'")
    tab.get_by_label("Ended with an error").check()
    tab.wait_for_selector("text=No turns match.")
    tab.get_by_role("main").get_by_role("link", name="Remove all filters").click()
    tab.wait_for_url("**/turns")
    tab.locator("#search").fill("Question 77?")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/turns?text=*")
    tab.wait_for_function("() => document.querySelector('.bar [role=status]').textContent.startsWith('1 turn')")
    tab.goto("/turns?tool=book")
    assert rows_in(tab) == COUNT // 4
    tab.goto("/turns?metric=code_tool_success&below=0.1")
    assert rows_in(tab) == len(list(page.all_turns(metric="code_tool_success", below=0.1)))


def test_live_turns_are_offered_and_shown(browser: Any, tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db", some_turns(10, content=True))
    store = store_at(path)
    with ServedPage(path, Options(content=True)) as served:
        for tab in opened(browser, served.url):
            tab.goto("/turns?agent=travel")
            assert rows_in(tab) == 4
            tab.get_by_label("Live").check()
            for number in range(100, 10_000):  # until the stream looks
                for agent in ("travel", "support"):
                    turn = turn_row(
                        number + (agent == "support") * 10_000,
                        agent=agent,
                        start=NOW + number,
                        stored_at=NOW + number,
                        content={"output": f"Live {number}"},
                    )
                    store.write(Rows([turn], [score_row(turn, value=0.0)]))
                button = tab.get_by_role("button", name=re.compile("Show .* new"))
                if button.is_visible():
                    break
                tab.wait_for_timeout(100)
            button.click()
            tab.wait_for_selector(".rows .row:first-child >> text=Live")
            assert "support" not in tab.text_content(".rows")
    store.close()


def test_half_an_answer_is_none(tab: Any) -> None:
    """A request that is aborted while its response arrives must not be cached as a turn without content."""
    tab.route(
        "**/api/v1/series*",
        lambda route: route.fulfill(status=200, headers={"etag": '"x"'}, body='{"series": [', content_type="application/json"),
    )
    tab.goto("/")
    tab.wait_for_selector("main [role=alert]")
    tab.unroute("**/api/v1/series*")
    choice(tab, "Model").select_option("qwen3")
    tab.wait_for_selector("#over-time")
    choice(tab, "Model").select_option("")
    tab.wait_for_selector("#over-time")
    assert tab.locator("main [role=alert]").count() == 0


# --- one turn


def test_a_turn_shows_what_was_said_its_scores_and_why(tab: Any, page: ServedPage) -> None:
    turn = next(iter(page.all_turns(metric="llm_faithfulness")))
    tab.goto(f"/turn/{turn['turn_id']}")
    tab.wait_for_selector(".chat")
    assert "Question" in tab.text_content(".chat")
    assert "Answer" in tab.text_content(".chat")
    score = tab.locator(".scores > li", has_text="llm_faithfulness")
    assert "It answers what was asked." in score.text_content()
    score.locator("summary").first.click()
    assert "qwen3" in score.text_content()
    assert "10.0 %" in score.text_content()
    assert tab.get_by_role("link", name="Trace").get_attribute("href") == f"https://traces.example/{turn['trace_id']}?q=1"
    assert tab.locator(".conversation li").count() == 5


def test_a_turn_shows_what_its_judge_was_asked_as_it_was_sent(browser: Any, tmp_path: Path) -> None:
    content = {
        "turn_id": "t",
        "input": "Capital of France?",
        "output": "Paris.",
        "ground_truth": "Since 508.",
        "reading": "inferred",
    }
    turn = turn_row(1, content=content)
    score = score_row(turn, "llm_relevance", 1.0, judge_model="qwen3")
    path = filled(tmp_path / "s.db", [])
    said = {"result_id": score["result_id"], "turn_id": turn["turn_id"], "model": "qwen3", "stage": "rate"}
    store = store_at(path)
    store.write(Rows([turn], [score], questions=[
        {**said, "place": 0, "question": "How relevant is <b>this</b>?", "reply": "{cut"}, {**said, "place": 1, "question": "Once more.", "reply": None},
    ]))  # fmt: skip
    store.close()
    with ServedPage(path, Options(content=True)) as served:
        for tab in opened(browser, served.url):
            tab.goto(f"/turn/{turn['turn_id']}")
            tab.wait_for_selector("text=Since 508.")
            assert tab.locator(".mark", has_text="inferred").count() == 1
            tab.get_by_text("1 passed", exact=True).click()
            tab.locator(".scores summary").first.click()
            tab.locator("summary", has_text="judge call").click()
            tab.wait_for_selector("text=How relevant is <b>this</b>?")
            assert tab.locator("text=Once more.").count() == 1
            assert "The judge didn't reply." in tab.text_content(".scores")
            tab.locator("summary", has_text="reply").click()
            tab.wait_for_selector("text={cut")


def test_steps_stand_where_they_were_in_time_and_within_what_called_them(browser: Any, tmp_path: Path) -> None:
    spans = [
        {"id": "a", "name": "agent", "start_s": 0.0, "duration_s": 4.0},
        {"id": "b", "parent": "a", "name": "chat", "start_s": 1.0, "duration_s": 1.0},
        {"id": "c", "parent": "b", "name": "search", "start_s": 1.5, "duration_s": 2.5, "inferred": True},
    ]
    content = {
        "turn_id": "t", "input": "x", "output": "y", "duration_s": 4.0, "spans": spans,
        "agent_runs": [{"span_id": "a", "name": "travel", "duration_s": 4.0}],
        "llm_calls": [{"span_id": "b", "model": "m", "duration_s": 1.0}],
        "tool_calls": [{"span_id": "c", "name": "search", "duration_s": 2.5}, {"name": "unseen", "duration_s": 9.0}],
    }  # fmt: skip
    turn = turn_row(1, content=content)
    with ServedPage(filled(tmp_path / "s.db", [(turn, [])]), Options(content=True)) as served:
        for tab in opened(browser, served.url):
            tab.goto(f"/turn/{turn['turn_id']}")
            tab.wait_for_selector(".steps li")
            found = tab.evaluate(
                """() => [...document.querySelectorAll(".steps li")].map((step) => {
                    const whole = step.querySelector(".bar-of").getBoundingClientRect(), bar = step.querySelector(".bar-of > span")?.getBoundingClientRect();
                    const indent = parseFloat(getComputedStyle(step.querySelector(".step-name")).paddingLeft);
                    return [step.querySelector("code").textContent, indent, bar ? [(bar.left - whole.left) / whole.width, bar.width / whole.width] : null];
                })"""
            )
            assert [(name, indent) for name, indent, _ in found] == [("travel", 0), ("m", 14), ("search", 28), ("unseen", 0)]
            assert [bar and pytest.approx(bar, abs=0.01) for _, _, bar in found] == [[0, 1], [0.25, 0.25], [0.375, 0.625], None]
            assert tab.locator(".steps li", has_text="inferred").count() == 1
            assert "search" in tab.locator(".steps li", has_text="inferred").text_content()
            assert tab.locator(".steps .bar-of").nth(2).get_attribute("aria-label") == "2.50 s, after 1.50 s"


def test_next_and_previous_stay_inside_the_filter(tab: Any, page: ServedPage) -> None:
    failed = [turn["turn_id"] for turn in page.all_turns(metric="code_refusal", outcome="fail")]
    tab.goto(f"/turn/{failed[2]}?metric=code_refusal&outcome=fail")
    tab.wait_for_selector(f"a[aria-keyshortcuts=j][href^='/turn/{failed[3]}']")
    tab.keyboard.press("j")
    tab.wait_for_url(f"**/turn/{failed[3]}?metric=code_refusal&outcome=fail")
    tab.wait_for_selector(f"a[aria-keyshortcuts=k][href^='/turn/{failed[2]}']")
    tab.keyboard.press("k")
    tab.wait_for_url(f"**/turn/{failed[2]}?**")
    tab.keyboard.press("u")
    tab.wait_for_url("**/turns?metric=code_refusal&outcome=fail")


# --- the others


def test_releases_and_turns_are_compared(tab: Any, page: ServedPage) -> None:
    tab.goto("/compare")
    tab.get_by_label("Before").select_option("1.4")
    tab.get_by_label("After").select_option("1.5")
    tab.wait_for_selector("text=After minus before")
    assert tab.get_by_role("region", name="Differences").locator("tbody tr", has_text="code_refusal").count() == 1
    tab.wait_for_selector("text=Case by case")
    tab.get_by_role("region", name="Case by case").get_by_role("link", name=re.compile("Question")).first.click()
    tab.wait_for_url("**/compare?a=*&b=*")
    tab.wait_for_selector(".sides")
    a, b = [turn["turn_id"] for turn in page.all_turns()][:2]
    tab.goto(f"/compare?a={a}")
    tab.get_by_label("turn id").fill(b[:45])
    tab.get_by_role("button", name="Compare").click()
    tab.wait_for_selector(".sides")
    assert tab.locator(".sides tr", has_text="asked").count() == 1
    assert tab.locator(".sides tr", has_text="code_tool_success").count() == 1


def test_turns_are_labelled_by_the_keyboard_alone(tab: Any, page: ServedPage) -> None:
    tab.goto("/label?choice=doubtful")
    tab.wait_for_selector(".label-form")
    for shown in tab.locator(".labels li", has=tab.locator("code")).all():  # each with its verdict, rounded
        assert re.search(r"(fail|pass|error)\s+\d(\.\d{1,2})?\s", shown.text_content())
    before = len(page.get("labels")["labels"])
    for number, key in enumerate("pfp", 1):
        shown = tab.get_by_role("link", name="Open the whole turn").get_attribute("href")
        tab.keyboard.press(key)
        tab.wait_for_function(
            "(old) => document.querySelector('main a[href^=\"/turn/\"]')?.getAttribute('href') !== old && document.querySelector('.label-form')",
            arg=shown,
        )
        assert f"{before + number} labeled" in tab.text_content("main")
    assert [label["label"] for label in page.get("labels")["labels"]][-3:] == ["pass", "fail", "pass"]


def test_the_catalogue_is_searched(tab: Any) -> None:
    tab.goto("/catalogue")
    tab.wait_for_selector(".catalogue li")
    assert tab.locator(".catalogue li").count() > 200
    tab.keyboard.press("/")
    tab.keyboard.type("refusal")
    tab.wait_for_function("() => document.querySelectorAll('.catalogue li').length < 5")
    assert "code_refusal" in tab.text_content(".catalogue")
    assert tab.url.endswith("?q=refusal")


def test_health_shows_scopes_without_content(tab: Any) -> None:
    found = {"scope": "haystack", "missing": "content", "traces": 1234, "fix": "to capture content, set X=true"}
    health = {"store": {"turns": 1, "hours_not_summed": 0}, "sidecar": {"turns": {}, "unread_traces": [found]}}
    tab.route("**/api/v1/health", lambda route: route.fulfill(json=health))
    tab.goto("/health")
    row = tab.locator("tr", has_text="haystack")
    row.wait_for()
    assert row.locator("td").all_text_contents() == ["content", "1,234", "to capture content, set X=true"]


def test_the_keys_lead_everywhere(tab: Any, page: ServedPage) -> None:
    tab.goto("/")
    tab.wait_for_selector(".cards")
    for key, path in (("t", "/turns"), ("c", "/compare"), ("m", "/catalogue"), ("h", "/health"), ("f", "/")):
        tab.keyboard.press("g")
        tab.keyboard.press(key)
        tab.wait_for_function("(path) => location.pathname === path", arg=path)
    tab.keyboard.press("?")
    tab.wait_for_selector(".help")
    tab.keyboard.press("g")
    tab.keyboard.press("t")
    tab.wait_for_selector(".rows .row")
    tab.keyboard.press("j")
    tab.keyboard.press("j")
    second = [turn["turn_id"] for turn in page.all_turns()][1]
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"**/turn/{second}")
    for _ in range(3):  # the skip link comes first
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.tagName") == "A"


# --- what may go wrong

HOSTILE = {
    "a script": '<script>document.title = "owned"</script><img src=x onerror="document.title=\'owned\'">',
    "markup of ours": "${alert(1)}</div><h1>owned</h1>",
    "an override of direction": "abc \u202e txt.exe \u2066 x",
    "a terminal's colours": "\x1b[31mred\x1b[0m \x07",
    "nothing between": "\u200b\u200d\ufeff" * 20,
    "half a character": "broken \ud83d end".encode("utf-8", "replace").decode(),
}


def test_hostile_content_is_text(browser: Any, tmp_path: Path) -> None:
    turns = []
    for number, text in enumerate(HOSTILE.values()):
        content = {
            "input": text,
            "output": text,
            "messages": [{"role": text, "content": text, "tool_calls": [{"name": text, "arguments": {text: text}}]}],
            "spans": [{"id": "1", "name": text, "attributes": {text: text}}],
        }
        turn = turn_row(
            number, agent=text, model=text, service=text, error=text, tools=[text], conversation_id=text, content=content
        )
        turns.append((turn, [score_row(turn, value=0.0, explanation=text, detail={text: text}, judge_model=text, label=text)]))
    with ServedPage(filled(tmp_path / "s.db", turns), Options(content=True)) as served:
        for tab in opened(browser, served.url):
            for path in ("/", "/turns", *(f"/turn/{turn['turn_id']}" for turn, _ in turns)):
                tab.goto(path)
                tab.wait_for_selector("main h1")
                tab.wait_for_function(
                    "() => !document.querySelector('[aria-busy=true]') && !document.body.textContent.includes('Loading')"
                )
                tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                assert "owned" not in tab.title()
                assert tab.locator("main script, main img").count() == 0
                assert tab.locator("h1").count() == 1
            tab.goto(f"/turn/{turns[0][0]['turn_id']}")
            tab.wait_for_selector(".chat")
            assert HOSTILE["a script"] in tab.text_content(".chat")


def element(kind: str, **attributes: str) -> dict[str, Any]:
    """Return JSON in the form of an element of the UI library."""
    own = dict.fromkeys(("constructor", "key", "ref", "__k", "__", "__e", "__c"))
    return {"type": kind, "props": attributes, **own, "__b": 0, "__v": 1, "__i": -1, "__u": 0}


def test_foreign_elements_are_shown_as_text(browser: Any, tmp_path: Path) -> None:
    """CVE-2026-22028: such an element could send the reader to another site."""
    planted = element("img", **{"class": "planted", "src": "/static/icon.svg"})
    leading = element("meta", **{"http-equiv": "refresh", "content": "0;url=https://evil.example/"})
    odd = {"toString": 1, "valueOf": 1}
    turns = []
    for number, one in enumerate((planted, leading, odd)):
        parts = [one, {"type": one}, {"type": "image", "mime_type": one, "data": "A" * 300}]
        content = {
            "input": one, "output": parts, "reasoning": one, "ground_truth": one, "error": {"type": one, "message": one},
            "messages": [{"role": "tool", "content": parts, "tool_calls": [{"name": one, "arguments": one}], "tool_results": [{"result": parts}]}],
            "tool_calls": [{"name": one, "arguments": one, "result": one, "error": {"type": one, "message": one}}],
            "llm_calls": [{"model": one, "finish_reason": "stop"}], "agent_runs": [{"name": one, "span_id": "1"}],
            "retrievals": [{"query": one, "documents": [one]}],
            "spans": [{"id": "1", "name": one, "attributes": {"a": one, "b": [one]}}],
        }  # fmt: skip
        turn = turn_row(number, content=content, tools=[one], agent=None)
        turns.append((turn, [score_row(turn, value=0.0, detail={"a": one})]))
    with ServedPage(filled(tmp_path / "s.db", turns), Options(content=True)) as served:
        for tab in opened(browser, served.url):
            for turn, _ in turns:
                tab.goto(f"/turn/{turn['turn_id']}")
                tab.wait_for_selector(".chat")
                tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                tab.locator(".spans .row button").click()
                tab.wait_for_selector(".span-detail .attributes")
                assert tab.locator("main .planted, main meta, main [role=alert]").count() == 0
                for shown in (".chat details:nth-of-type(2) > summary", ".steps code", ".span-detail h3"):
                    assert re.search("planted|evil|toString", tab.text_content(shown)), shown
            tab.goto("/turns")
            tab.wait_for_selector(".rows .row")
            assert tab.locator(".planted").count() == 0


def test_markup_from_text_is_refused_by_the_browser(browser: Any, page: ServedPage) -> None:
    tab = browser.new_page()
    tab.goto(page.url)
    with pytest.raises(Exception, match="TrustedHTML"):
        tab.evaluate("document.body.innerHTML = '<b>bold</b>'")
    tab.close()


def test_a_view_that_fails_leaves_the_others(browser: Any, page: ServedPage) -> None:
    tab = browser.new_page()
    tab.route("**/api/v1/turns/broken", lambda route: route.fulfill(json={"turn": {}, "scores": 5}))
    for broken in ("broken", "%"):
        tab.goto(f"{page.url}/turn/{broken}")
        tab.wait_for_selector("main [role=alert]")
        tab.get_by_role("link", name="Fleet").click()
        tab.wait_for_selector(".cards li")
    tab.close()


def test_large_turns_stay_quick(browser: Any, tmp_path: Path) -> None:
    """10,000 spans, a line of a megabyte, and an image are only rendered on demand."""
    picture = base64.b64encode(image(scenery(40, 40))).decode()
    spans = [
        {"id": f"{n:x}", "parent": f"{(n - 1) // 3:x}" if n else None, "name": f"step {n}", "duration_s": 0.01, "attributes": {"n": n}}
        for n in range(10_000)
    ]  # fmt: skip
    content = {
        "input": "x, " * 400_000, "output": "Done.",
        "messages": [{"role": "user", "content": "x, " * 400_000}, {"role": "user", "content": [{"type": "image", "mime_type": "image/png", "data": picture}]}],
        "spans": spans,
        "tool_calls": [{"name": f"tool {n}", "result": "y" * 1_000, "duration_s": 0.1} for n in range(1_000)],
    }  # fmt: skip
    turn = turn_row(1, content=content)
    with ServedPage(filled(tmp_path / "s.db", [(turn, [score_row(turn)])]), Options(content=True)) as served:
        for tab in opened(browser, served.url):
            tab.goto(f"/turn/{turn['turn_id']}")
            tab.wait_for_selector(".chat")
            assert tab.evaluate("document.querySelectorAll('*').length") < 12_000
            assert len(tab.text_content(".chat")) < 20_000
            tab.locator("summary", has_text="Spans").click()
            tab.wait_for_selector(".spans .row")
            assert tab.locator(".spans .row").count() < 100
            tab.evaluate("document.querySelector('.spans .rows').scrollTop = 28 * 9990")
            tab.wait_for_function(
                "() => document.querySelectorAll('.spans .row').length > 10 && [...document.querySelectorAll('.spans .row')].every((row) => row.getBoundingClientRect().height < 40)"
            )
            tab.locator(".spans .row button").last.click()
            assert "n" in tab.text_content(".attributes")
            tab.get_by_role("button", name=re.compile("Show all of it")).first.click()
            tab.wait_for_function("() => document.querySelector('.chat').textContent.length > 1000000")
            tab.get_by_role("button", name="Show", exact=True).click()
            tab.wait_for_function("() => document.querySelector('.media img')?.naturalWidth === 40")


def test_a_long_list_keeps_few_rows(browser: Any, tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db", ((turn, scores[:1]) for turn, scores in some_turns(1_500)))
    with ServedPage(path) as served:
        for tab in opened(browser, served.url):
            tab.goto("/turns")
            tab.wait_for_selector(".rows .row")
            while tab.evaluate("document.querySelector('.all-rows').clientHeight") < 36 * 1_000:
                tab.evaluate("(({ rows }) => { rows.scrollTop = rows.scrollHeight; })({ rows: document.querySelector('.rows') })")
            assert 0 < tab.locator(".rows .row").count() < 100


# --- for everyone


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme: str, browser: Any, page: ServedPage) -> None:
    a, b = [turn["turn_id"] for turn in page.all_turns(metric="llm_faithfulness")][:2]
    views = [
        "/",
        "/turns",
        f"/turn/{a}",
        "/compare?before=1.4&after=1.5",
        f"/compare?a={a}&b={b}",
        "/label",
        "/catalogue",
        "/health",
    ]
    for tab in opened(browser, page.url, color_scheme=scheme, bypass_csp=True):
        assert violations(tab, views) == []


def test_phone_and_paper_show_what_matters(browser: Any, page: ServedPage) -> None:
    rights = "[...document.querySelectorAll('.top a')].map((one) => one.getBoundingClientRect().right)"
    lefts = "[...document.querySelectorAll('.rows .mark.bad')].map((one) => one.getBoundingClientRect().left)"
    turn_id = next(iter(page.all_turns()))["turn_id"]
    for tab in opened(browser, page.url):
        tab.set_viewport_size({"width": 360, "height": 740})
        for view in ("/", f"/turn/{turn_id}", "/label", "/health", "/turns"):
            tab.goto(view)
            tab.wait_for_load_state("networkidle")
            assert tab.evaluate("document.documentElement.scrollWidth") <= 360, view
        tab.set_viewport_size({"width": 400, "height": 740})
        tab.wait_for_selector(".rows .mark.bad")
        assert tab.evaluate("document.querySelector('.top').clientHeight") < 80
        assert max(tab.evaluate(rights)) <= 400
        assert max(tab.evaluate(lefts)) < 400  # what failed is in sight
        assert not choice(tab, "Agent").is_visible()
        tab.keyboard.press("/")
        assert tab.evaluate("document.activeElement.id") == "search"
        assert choice(tab, "Agent").is_visible()
        tab.emulate_media(media="print")
        assert not tab.locator(".top").is_visible()
