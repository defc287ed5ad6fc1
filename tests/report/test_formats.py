"""Each format for made-up runs, checked with independent parsers."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import otel_agenteval as oa
from otel_agenteval.outlets.turn_text import one_line
from otel_agenteval.report import About, Report, Run, compare
from otel_agenteval.report.formatting import number, percent, points
from otel_agenteval.report.html import render_html
from otel_agenteval.report.junit import render_junit
from otel_agenteval.report.markdown import render_markdown
from tests.report.made_up import about, run_of, score

HOSTILE = (
    "<script>alert(1)</script> \x00\x1b[31m\ud800 ![x](http://evil.test/a.png) @everyone | `` ` \\| &amp; ]]> \u202e\n# title"
)
JUNIT_SCHEMA = Path(__file__).with_name("junit.xsd")


def sample() -> Run:
    run = Run()
    for i in range(12):
        of = About(f"turn-{i}", f"case-{i % 6}", "travel" if i % 3 else 'a "b" <c>', "gpt-x")
        verdict, said = i % 4 > 0, None if i % 4 else HOSTILE
        run.add(of, oa.Score("code_gate", float(verdict), verdict, type="boolean", policy="gate", explanation=said))
        run.add(of, oa.Score("code_trend", i / 12, i > 5, threshold=0.5))
        run.add(of, oa.Score("code_latency", i * 0.3, unit="s", direction="down"))
        run.add(of, oa.Score("code_detector", float(i == 2), i == 2, type="boolean", direction="neutral"))
        run.add(of, score("code_never", None))
        if i == 3:
            run.add(of, oa.Score("llm_judge", status="error", error_type="JudgeError", explanation="no reply"))
    return run


def compared() -> Report:
    before = run_of({"code_a": [0.9, 0.8, 0.85] * 10, "code_b": [True] * 30, "code_gone": [1] * 30})
    after = run_of({"code_a": [0.5, 0.45, 0.4] * 10, "code_b": [True] * 30, "code_new": [1] * 30})
    return Report(after, compare(before, after, "main.jsonl", {"code_a"}))


# --- JUnit XML


def test_junit_has_a_suite_per_agent_and_a_case_per_turn_and_metric() -> None:
    root = ElementTree.fromstring(render_junit(Report(sample())))
    suites = {suite.get("name"): suite for suite in root}
    assert suites.keys() == {"travel", 'a "b" <c>'}
    cases = [case for suite in root for case in suite]
    assert len(cases) == 12 * 5 + 1 == int(root.get("tests", ""))
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
    assert {"code_gate[case-1]", "code_gate[case-1] #2"} <= {case.get("name") for case in suites["travel"]}
    for suite in root:
        for word, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(word, "")) == len(suite.findall(f"testcase/{tag}"))
    assert (root.get("failures"), root.get("errors")) == ("3", "1")


def test_junit_tells_gates_trends_errors_and_skips_apart() -> None:
    root = ElementTree.fromstring(render_junit(Report(sample())))
    kinds: dict[str, set[str]] = {}
    for case in root.iter("testcase"):
        kinds.setdefault(case.get("name", "").split("[")[0], set()).update(child.tag for child in case)
    assert kinds == {
        "code_gate": {"failure"}, "code_trend": {"system-out"}, "code_latency": set(), "code_detector": set(),
        "code_never": {"skipped"}, "llm_judge": {"error"},
    }  # fmt: skip
    error = root.find(".//error")
    assert error is not None
    assert (error.get("type"), error.get("message")) == ("JudgeError", "JudgeError: no reply")


def test_junit_has_what_was_expected_and_what_came() -> None:
    run = Run()
    of = About("t", asked="What?", answered="Rome", expected="Paris")
    run.add(of, oa.Score("code_equals", 0.0, False, type="boolean", policy="gate"))
    failure = ElementTree.fromstring(render_junit(Report(run))).find(".//failure")
    assert failure is not None
    assert (failure.text or "").splitlines()[1:] == ["input: What?", "expected: Paris", "actual: Rome"]


def test_junit_escapes_what_xml_cannot_hold() -> None:
    failure = ElementTree.fromstring(render_junit(Report(sample()))).find(".//failure")
    assert failure is not None
    assert failure.text == re.sub("[\x00\x1b\ud800]", "�", HOSTILE)
    assert "\n" not in failure.get("message", "")


@pytest.mark.parametrize("report", [Report(sample()), compared(), Report(Run())], ids=["run", "compared", "empty"])
def test_junit_is_valid(report: Report) -> None:
    etree = pytest.importorskip("lxml.etree", reason="lxml is not installed")
    schema = etree.XMLSchema(etree.parse(JUNIT_SCHEMA))
    schema.assertValid(etree.fromstring(render_junit(report).encode()))


def test_junit_has_regressions_of_watched_metrics_as_failures() -> None:
    suite = ElementTree.fromstring(render_junit(compared())).find("testsuite[@name='comparison with the baseline']")
    assert suite is not None
    found = {case.get("name"): [child.tag for child in case] for case in suite}
    assert found == {
        "pairing": ["system-out"], "code_a mean": ["failure"], "code_b pass rate": ["system-out"], "code_gone is compared": ["skipped"],
    }  # fmt: skip


def test_junit_has_a_failure_for_each_gate_without_a_verdict() -> None:
    report = Report(PASSED, unevaluated=["code_b was never evaluated: it applies to no turn"])
    root = ElementTree.fromstring(render_junit(report))
    assert root.get("failures") == "1"
    assert [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None] == [
        "code_b was never evaluated"
    ]


# --- Markdown


def outside_code(markdown: str) -> str:
    """Remove code spans from a text."""
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", markdown)


def test_markdown_has_a_verdict_the_worst_turns_and_a_row_per_metric() -> None:
    text = render_markdown(Report(sample()))
    assert text.startswith("### ❌ 12 turns, 6 metrics: 3 gate scores failed\n")
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line)
    rows = {name: values for name, *values in cells}
    assert rows["`code_gate` **gate**"][:2] == ["12", "75 % (42–89)"]  # two turns are of one case
    assert rows["`code_latency`"] == ["12", "–", "1.65 s", "1.65 s", "3.135 s", "0", "0"]
    assert rows["`llm_judge`"][-1] == "1"
    assert "`code_never`" not in rows
    assert "Never applied: 1 metric." in text
    assert rows["`case-0`"][1].startswith("**gate** `code_gate`: ")


def test_markdown_obeys_nothing_that_an_agent_wrote() -> None:
    text = render_markdown(Report(sample()))
    assert "alert(1)" in text
    left = outside_code(text)
    for harm in ("<script", "evil", "@everyone", "\x1b", "# title", "\\"):
        assert harm not in left
    rows = [line for line in text.splitlines() if line.startswith("| `case-")]
    assert {line.count("|") for line in rows} == {4}


def test_markdown_stays_within_githubs_limit() -> None:
    run, before = Run(), Run()
    for metric in range(600):
        for i in range(8):
            said = oa.Score(f"code_{'long_' * 20}{metric}", 0.0, False, type="boolean", policy="gate", explanation="x" * 5_000)
            turn = About(f"turn-{i}", agent="x" * 100, asked="x" * 300, answered="x" * 300)
            run.add(turn, said)
            before.add(turn, oa.Score(said.metric, 1.0, True, type="boolean"))
            for either in (run, before):
                either.add(turn, score(f"code_{'same_' * 20}{metric}", bool(i % 2)))
    comparison = compare(before, run, "b" * 500, {"all"})
    comparison.causes = [f"cause {number}: {'x' * 100}" for number in range(100)]
    report = Report(run, comparison, [f"gate {number}: {'x' * 100}" for number in range(100)])
    text = render_markdown(report)
    assert len(text) < 65_536
    assert "left out for length" in text
    assert text.startswith("### ❌ 8 turns, 1,200 metrics: 4,800 gate scores failed")


def test_markdown_shows_what_changed() -> None:
    text = render_markdown(compared())
    assert text.startswith("### ❌ 30 turns, 3 metrics: 1 regression\n")
    assert "**Against `main.jsonl`**: 30 turns before, 30 turns now; 30 pairs by turn id." in text
    assert re.search(r"\| `code_a` \| mean \| 0\.85 \| 0\.45 \| −0\.4 \|.*\| < 0\.001 \| 30 pairs \| ❌ regression \|", text)
    details = text.partition("<summary>No change shown in 1 other measure</summary>")[2].partition("</details>")[0]
    assert re.search(r"\| `code_b` \| pass rate \| 100 % \| 100 % \| 0 pp \|.*\| 30 pairs \| no change shown \|", details)
    assert "- `Missing in this run: code_gone`" in text


PASSED = run_of({"code_a": [True]}, policy="gate")
RATED = run_of({"code_a": [1, 0, 1, 0, 1, 0]})


@pytest.mark.parametrize(
    ("report", "heading"),
    [
        (Report(run_of({"code_a": [1]})), "### ℹ️ 1 turn, 1 metric: no gates"),
        (Report(PASSED), "### ✅ 1 turn, 1 metric: every gate passed"),
        (Report(PASSED, unevaluated=["code_b was never evaluated"]), "### ❌ 1 turn, 1 metric: 1 gate without a verdict"),
        (Report(RATED, compare(RATED, RATED, "b", {"all"})), "### ✅ 6 turns, 1 metric: no regression"),
        (Report(Run()), "### ℹ️ 0 turns, 0 metrics: no gates"),
    ],
)
def test_markdown_says_whether_anything_could_fail(report: Report, heading: str) -> None:
    assert render_markdown(report).splitlines()[0] == heading


# --- HTML


class Page(HTMLParser):
    """Elements of a page, and the addresses and scripts that a browser would load or run."""

    VOID = ("meta", "rect", "line", "circle")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("report", [Report(sample()), compared(), Report(Run())], ids=["run", "compared", "empty"])
def test_html_is_well_formed_and_fetches_nothing(report: Report) -> None:
    text = render_html(report)
    page = Page(text)
    assert page.open == []
    names = {name for _, name, _ in page.attributes}
    assert not names & {"src", "href", "srcset", "data", "action", "style", "poster", "background"}
    assert not [name for name in names if name.startswith("on")]
    assert not set(page.tags) & {"link", "img", "iframe", "object", "embed", "base", "form", "video", "audio", "use", "image"}
    assert page.tags.count("script") == page.tags.count("style") == 1
    outside = re.sub(r"<code>.*?</code>.*?</li>", "", text, flags=re.DOTALL)
    assert not re.search(r"https?:|//[a-z]|url\(|@import", re.sub(r"// Sort.*", "", outside))


def test_html_shows_text_of_the_run_as_text() -> None:
    page = Page(render_html(Report(sample())))
    assert "<script>alert(1)</script>" in " ".join(page.words)
    assert 'a "b" <c>' in page.words
    assert not any(ch in "".join(page.words) for ch in "\x00\x1b\ud800\u202e")


def test_the_policy_of_the_page_lets_its_own_style_and_script_run() -> None:
    text = render_html(Report(sample()))
    (policy,) = (value for tag, name, value in Page(text).attributes if tag == "meta" and "default-src" in value)
    for tag in ("style", "script"):
        inner = re.search(f"<{tag}>(.*?)</{tag}>\n", text, re.DOTALL)
        assert inner is not None
        assert f"{tag}-src 'sha256-{base64.b64encode(hashlib.sha256(inner[1].encode()).digest()).decode()}'" in policy


def test_html_is_accessible_and_sortable() -> None:
    text = render_html(compared())
    page = Page(text)
    assert ("html", "lang", "en") in page.attributes
    charts = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(charts) == page.tags.count("svg") == text.count('<svg role="img"')
    assert "30 values from 0.4 to 0.5; axis 0 to 1" in charts
    assert page.tags.count("caption") == page.tags.count("table")
    assert text.count('<th scope="col"><button type="button">') == page.tags.count("th")


# --- words


@pytest.mark.parametrize(
    ("value", "unit", "signed", "said"),
    [
        (None, "1", False, "–"), (0.0, "1", True, "0"), (3, "1", False, "3"), (0.12345, "1", False, "0.1235"),
        (1234.5, "{token}", False, "1,234 tokens"), (8.4e-06, "USD", False, "$0.0000084"), (-0.25, "s", True, "−0.25 s"),
        (2.5, "1", True, "+2.5"), (7.0, "{level}", False, "7"), (7.0, "By", False, "7 By"),
    ],
)  # fmt: skip
def test_numbers(value: float | None, unit: str, signed: bool, said: str) -> None:
    assert number(value, unit, signed=signed) == said


def test_shares_and_their_differences() -> None:
    assert [percent(x) for x in (None, 0, 0.123, 1)] == ["–", "0 %", "12.3 %", "100 %"]
    assert [points(x) for x in (0, -0.0, 0.25, -0.123, 1e-9)] == ["0 pp", "0 pp", "+25 pp", "−12.3 pp", "0 pp"]


def test_text_is_cut_to_one_plain_line() -> None:
    assert one_line("a\n\tb\x1b[0m\u202ec") == "a b�[0m�c"
    assert one_line("x" * 500) == "x" * 299 + "…"


# --- what people see of the worst turns


def with_ids(*ids: str, **more: str) -> Run:
    run = Run()
    for turn_id in ids:
        run.add(About(turn_id, None, "travel", "gpt-x", **more), oa.Score("code_trend", 0.1, False, threshold=0.5))
    return run


def test_ids_are_as_short_as_they_can_be() -> None:
    run = with_ids("aaaaaaaa1111", "bbbbbbbb1111")
    assert [run.short_name(about) for about in run.turns.values()] == ["aaaaaaaa", "bbbbbbbb"]
    run = with_ids("aaaaaaaa11", "aaaaaaaa22", "cccccccc33")
    assert [run.short_name(about) for about in run.turns.values()] == ["aaaaaaaa1", "aaaaaaaa2", "cccccccc3"]
    assert with_ids("x").short_name(About("x")) == "x"
    assert run.short_name(About("aaaaaaaa11", "case-7")) == "case-7"


def test_the_worst_turns_say_what_was_asked_and_answered() -> None:
    run = with_ids("aaaaaaaa11", "bbbbbbbb22", asked=f"Where is Lima? {HOSTILE}", answered="In Peru.")
    text = render_markdown(Report(run))
    assert "<br>asked: `` Where is Lima?" in text or "<br>asked: `" in text
    assert "<br>answered: `In Peru.`" in text
    assert "aaaaaaaa11" not in text
    page = render_html(Report(run))
    assert "In Peru." in page
    assert 'title="aaaaaaaa11"' in page
    assert "<script>alert(1)" not in page.partition("<main")[2]


def test_reports_show_scores_from_0_to_100_on_request() -> None:
    share, hundred = Run(1), Run(100)
    for run in (share, hundred):
        for i in range(10):
            run.add(about(i), oa.Score("code_rouge", i / 10, i > 4, threshold=0.5, policy="gate"))
            run.add(about(i), oa.Score("code_latency", i * 0.3, unit="s", direction="down"))
    shown = [render_markdown(Report(run)) for run in (share, hundred)]
    assert "| 0.45 | 0.45 | 0.855 |" in shown[0]
    assert "| 45 | 45 | 85.5 |" in shown[1]
    assert "40/100, at least 50 passes" in shown[1]
    others = [[line for line in text.splitlines() if "code_rouge" not in line] for text in shown]
    assert others[0] == others[1]
    assert "axis 0 to 100" in render_html(Report(hundred))
    assert not compare(hundred, hundred, "before").not_compared
    assert "unit" in compare(share, hundred, "before").not_compared[0][1]


@pytest.mark.parametrize(
    ("failed", "errors", "shown"),
    [(1, 0, "1 gate score failed: llm_relevance"), (1, 2, "3 gate scores failed (2 errors): llm_relevance")],
)
def test_failed_gates_include_the_number_of_errors(failed: int, errors: int, shown: str) -> None:
    run, gate = Run(), {"metric": "llm_relevance", "policy": "gate"}
    scores = [oa.Score(**gate, value=0.0, passed=False)] * failed
    scores += [oa.Score(**gate, value=None, status="error", error_type="http_401")] * errors
    for number_of_turn, one in enumerate(scores):
        run.add(About(str(number_of_turn)), one)
    assert Report(run).failures == [shown]
