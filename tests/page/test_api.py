"""The API of the web UI: responses, permissions and refusals."""

from __future__ import annotations

import csv
import io
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.core.tenancy import qualified
from otel_agenteval.evaluation.first_fault import Fault
from otel_agenteval.outlets.store.reader import StoreReader, Wanted
from otel_agenteval.outlets.store.views import Views
from otel_agenteval.outlets.store.writer import Rows
from otel_agenteval.page.api import Options, Reader
from otel_agenteval.page.routes import BASE, ROUTES, document
from otel_agenteval.report.calibration import read_labels
from otel_agenteval.report.releases import compare_groups
from otel_agenteval.server.web import POLICY
from tests.support.page import ServedPage
from tests.support.stored_turns import NOW, failed_row, filled, score_row, some_turns, store_at, turn_row

from .conftest import COUNT


def problem(page: ServedPage, path: str, status: int, **params: Any) -> str:
    response = page.client.get(f"/api/v1/{path}", params=params)
    assert response.status_code == status, response.text
    return str(response.json()["error"])


# --- turns


def test_a_list_comes_in_parts_until_its_end(page: ServedPage) -> None:
    turns = list(page.all_turns())
    assert len({turn["turn_id"] for turn in turns}) == COUNT
    assert [turn["at"] for turn in turns] == sorted((turn["at"] for turn in turns), reverse=True)
    first = turns[0]
    assert (first["asked"], first["answered"], first["agent"]) == (f"Question {COUNT - 1}?", f"Answer {COUNT - 1}.", "billing")
    assert {score["metric"] for score in first["scores"]} >= {"code_refusal", "code_tool_success"}
    assert "content" not in first


def test_one_turn_with_all_that_is_known_of_it(page: ServedPage) -> None:
    judged = next(turn for turn in page.all_turns(metric="llm_faithfulness"))
    found = page.get(f"turns/{judged['turn_id']}")
    assert found["turn"]["turn_id"] == judged["turn_id"]
    assert found["content"]["messages"][0]["role"] == "user"
    assert found["trace_url"] == f"https://traces.example/{judged['trace_id']}?q=1"
    (score,) = [score for score in found["scores"] if score["metric"] == "llm_faithfulness"]
    assert (score["judge_model"], score["sample_probability"]) == ("qwen3", 0.1)
    assert score["explanation"] == "It answers what was asked."
    assert found["outcomes"]["code_refusal"] == "scored"
    assert found["conversation"]["id"] == judged["conversation_id"]
    assert judged["turn_id"] in [turn["turn_id"] for turn in found["conversation"]["turns"]]
    assert page.get(f"turns/{judged['turn_id']}/case")["input"].startswith("Question")


def test_costs_are_rounded_in_estimates(tmp_path: Path) -> None:
    turns = [turn_row(number, cost_usd=cost) for number, cost in enumerate((0.1, 0.2))]
    with ServedPage(filled(tmp_path / "s.db", [(turn, [score_row(turn)]) for turn in turns])) as served:
        assert [group["cost_usd"] for group in served.get("estimates")["groups"]] == [0.3]


def test_a_trace_id_changes_no_other_part_of_the_link(tmp_path: Path) -> None:
    turn = turn_row(1, trace_id="/../x?y#z")
    with ServedPage(filled(tmp_path / "s.db", [(turn, [])]), Options(trace_url="https://t.example/{trace_id}/view")) as served:
        assert served.get(f"turns/{turn['turn_id']}")["trace_url"] == "https://t.example/%2F..%2Fx%3Fy%23z/view"


def test_an_id_may_be_shortened_as_long_as_it_means_one_turn(page: ServedPage) -> None:
    turn_id = next(iter(page.all_turns()))["turn_id"]
    assert page.get(f"turns/{turn_id[:45]}")["turn"]["turn_id"] == turn_id
    assert "matches several turn IDs" in problem(page, "turns/0000", 409)
    assert problem(page, "turns/ffff0000", 404) == "turn not found"


def test_why_is_what_the_command_says(page: ServedPage, capsys: pytest.CaptureFixture[str]) -> None:
    turn_id = next(iter(page.all_turns(metric="llm_faithfulness")))["turn_id"]
    assert main(["why", turn_id, "--store", page.api.path, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = page.get(f"turns/{turn_id}/why")
    assert found["metrics"] == said["metrics"]
    assert {score["metric"]: score for score in found["scores"]} == said["scores"]


def test_the_question_to_the_judge_is_shown_as_it_is_asked(page: ServedPage) -> None:
    turn = next(iter(page.all_turns(metric="llm_faithfulness")))
    path = f"turns/{turn['turn_id']}/question"
    found = page.get(path, metric="llm_relevance")
    assert "<<<INPUT" in found["question"] or turn["asked"] in found["question"]
    assert turn["answered"] in found["question"]
    assert "evaluator" in found["system"]
    for metric in ("llm_faithfulness", "code_refusal", "llm_nothing"):  # without context, without a judge, unknown
        problem(page, path, 404, metric=metric)


@pytest.mark.parametrize(
    ("path", "params", "says"),
    [
        ("turns", {"sinse": "1h"}, "'sinse'"),
        ("turns", {"since": "yesterday"}, "since: "),
        ("turns", {"since": "1e300"}, "got '1e300'"),
        ("turns", {"limit": "0"}, "got '0'"),
        ("turns", {"limit": "many"}, "limit: "),
        ("turns", {"limit": "9" * 5_000}, "limit: "),
        ("turns", {"below": "9" * 400}, "below: "),
        ("turns", {"below": "nan"}, "got 'nan'"),
        ("turns", {"outcome": "bad"}, "pass, fail, error"),
        ("turns", {"error": "yes"}, "error: "),
        ("turns", {"cursor": "xyz"}, "cursor: "),
        ("turns", {"agent": "x" * 1001}, "agent: "),
        ("turns", {"metric": ["a", "b"]}, "metric: "),
        ("facets", {"agent": ["a"] * 300}, "got 300"),
        ("series", {"step": "-1"}, "step: "),
        ("estimates", {"by": "mood"}, "by: "),
        ("compare", {"before": "1.4"}, "after: "),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(path: str, params: dict[str, Any], says: str, page: ServedPage) -> None:
    assert says in problem(page, path, 400, **params)


def test_unknown_paths_and_methods(page: ServedPage) -> None:
    assert "unknown path" in problem(page, "nothing", 404)
    assert page.client.post("/api/v1/turns").status_code == 405
    assert page.client.get("/etc/passwd").status_code == 404
    assert page.client.get("/static/../api.py").status_code == 404
    assert page.faults == []


# --- sums


def test_estimates_and_series_say_how_many_turns_stand_behind_them(page: ServedPage) -> None:
    found = page.get("estimates", by="agent")
    assert {group["group"]: group["turns"] for group in found["groups"]} == {"billing": 100, "support": 100, "travel": 100}
    judged = [one for one in found["estimates"] if one["metric"] == "llm_faithfulness"]
    assert sum(one["scored"] for one in judged) == len(list(page.all_turns(metric="llm_faithfulness")))
    assert all(one["turns"] == 100 and one["low"] <= one["mean"] <= one["high"] for one in judged)
    series = page.get("series", by="agent", metric="code_refusal")
    assert [release["version"] for release in series["releases"]] == ["1.5"]
    assert sum(point["scored"] for line in series["series"] if line["metric"] for point in line["points"]) == COUNT
    assert all(
        point["low"] <= point["mean"] <= point["high"] for line in series["series"] if line["metric"] for point in line["points"]
    )
    assert len({point["at"] for line in series["series"] for point in line["points"]}) <= 61


def test_the_headline_compares_both_halves_of_the_time(tmp_path: Path) -> None:
    turns = []
    for number in range(200):
        late = number >= 100
        more = {
            "start": NOW - 20_000 + 100 * number,
            "duration_s": 4.0 if late else 2.0,
            "cost_usd": None if number % 2 else 0.02,
        }
        fails = number % (5 if late else 20) == 0
        turn = failed_row(number, Fault("tool_error", "tool_calls[0]"), **more) if fails else turn_row(number, **more)
        turns.append((turn, [score_row(turn, value=float(not fails))]))
    with ServedPage(filled(tmp_path / "s.db", turns)) as served:
        found = served.get("headline")
        assert (found["since"], found["until"], found["is_all"]) == (NOW - 20_000, NOW - 100, True)
        assert found["all"] == {"turns": 200, "failed": 0.125, "p50_s": 3.0, "p95_s": 4.0, "cost_usd": pytest.approx(0.02)}
        assert [found[half][name] for half in ("before", "after") for name in ("turns", "failed", "p50_s")] == [
            100,
            0.05,
            2.0,
            100,
            0.2,
            4.0,
        ]
        assert served.get("headline", metric="code_no_such")["all"]["failed"] == 0
        assert served.get("headline", metric=turns[0][1][0]["metric"])["all"]["failed"] == 0.125
        assert served.get("headline", agent="nobody")["all"] == {
            "turns": 0,
            "failed": None,
            "p50_s": None,
            "p95_s": None,
            "cost_usd": None,
        }


@pytest.mark.parametrize(("count", "hours", "step"), [(40, 2, 1_800), (900, 0.5, 60), (900, 5, 600), (30_000, 1, 3_600)])
def test_points_of_a_series_follow_the_number_of_turns(count: int, hours: float, step: int, tmp_path: Path) -> None:
    rows = (turn_row(number, start=NOW - hours * 3_600 * (1 - number / count)) for number in range(count))
    with ServedPage(filled(tmp_path / "s.db", ((turn, [score_row(turn)]) for turn in rows))) as served:
        found = served.get("series")
        points = [point for line in found["series"] if line["metric"] for point in line["points"]]
        assert found["step_s"] == step
        assert sum(point["scored"] for point in points) == count
        assert all(point["at"] % step == 0 and point["low"] <= point["mean"] <= point["high"] for point in points)


def test_compare_takes_the_two_latest_versions_and_counts_what_is_left_out(tmp_path: Path) -> None:
    rows = [turn_row(number, start=NOW - 5_000 + number, service_version=f"1.{number // 100}") for number in range(300)]
    with ServedPage(filled(tmp_path / "s.db", [(turn, [score_row(turn)]) for turn in rows])) as served:
        before, after = served.get("facets")["compared"]
        found = served.get("compare", before=before, after=after)
        assert (before, after, found["before"]["turns"], found["after"]["turns"], found["others"]) == (
            "1.1",
            "1.2",
            100,
            100,
            100,
        )


def test_two_releases_differ_as_the_command_compare_says(page: ServedPage) -> None:
    found = page.get("compare", by="version", before="1.4", after="1.5")
    with StoreReader(page.api.path) as reader:
        lines = compare_groups(reader, "version", Wanted(), ("1.4", "1.5")).lines
    said = {line.metric: line for line in sorted(lines, key=lambda line: line.measure, reverse=True)}  # the mean, if there is one
    assert {line["metric"] for line in found["lines"]} == said.keys()
    for line in found["lines"]:
        difference = said[line["metric"]].difference
        assert line["difference"]["size"] == pytest.approx(difference.size)
        assert (line["difference"]["low"], line["difference"]["high"]) == pytest.approx(difference.interval)
        assert line["difference"]["p"] == pytest.approx(said[line["metric"]].adjusted)
        assert (line["before"]["turns"], line["after"]["turns"]) == (210, 90)
    assert (found["before"]["turns"], found["after"]["turns"]) == (210, 90)
    assert "no turn has the value '9'" in problem(page, "compare", 404, before="9", after="1.5")


def test_releases_are_compared_case_by_case(page: ServedPage) -> None:
    releases = {"by": "version", "before": "1.4", "after": "1.5"}
    part = page.get("compare/cases", **releases, limit=25)
    found = [*part["cases"], *page.get("compare/cases", **releases, limit=25, cursor=part["next"])["cases"]]
    turns = list(page.all_turns())
    assert [one["case"] for one in found] == sorted({f"case-{number}" for number in range(40)})
    for one in found:
        for side in ("before", "after"):
            version = releases[side]
            latest = next(turn for turn in turns if turn["case_key"] == one["case"] and turn["service_version"] == version)
            assert (one[side]["turn_id"], one[side]["asked"]) == (latest["turn_id"], latest["asked"])
        before, after = (
            {score["metric"]: score["value"] for score in page.get(f"turns/{one[side]['turn_id']}")["scores"]}
            for side in ("before", "after")
        )
        differing = {name for name in before.keys() & after.keys() if before[name] != after[name]}
        assert {each["metric"] for each in one["differences"]} == differing
    assert page.get("compare/cases", **releases, agent="nobody")["cases"] == []


def test_two_judges_differ_as_the_command_compare_says(tmp_path: Path) -> None:
    turns = list(some_turns(400))
    for number, (turn, scores) in enumerate(turns):
        judge = "qwen3" if number % 2 else "gpt-5"
        value = float(number % 5 > (judge == "qwen3"))
        scores.append(score_row(turn, "llm_relevance", value, sample_probability=0.5, judge_model=judge))
    with ServedPage(filled(tmp_path / "s.db", turns)) as served, StoreReader(served.api.path) as reader:
        assert {one["name"] for one in served.get("facets")["judges"]} == {"qwen3", "gpt-5"}
        lines = served.get("compare", by="judge", before="gpt-5", after="qwen3")["lines"]
        (found,) = [line["difference"] for line in lines if line["metric"] == "llm_relevance"]
        said = compare_groups(reader, "judge_model", Wanted(), ("gpt-5", "qwen3")).lines
        (expected,) = [line.difference for line in said if (line.metric, line.measure) == ("llm_relevance", "mean")]
        assert (found["size"], found["low"]) == pytest.approx((expected.size, expected.interval[0]))


def test_changes_are_marked(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db", some_turns(30))
    store = store_at(path)
    names = ("service", "mean_before", "mean_after", "ci_low", "ci_high", "since", "n_eff", "version_before", "version", "instance_id")  # fmt: skip
    change = {**dict.fromkeys(names), "metric": "code_refusal", "agent": "travel", "verdict": "worse", "detector": "bets"}
    for at, tenant, turns in ((NOW - 100, None, '["a-1"]'), (NOW - 90, "acme", "[]")):
        store.write(Rows(changes=[{**change, "at": at, "tenant": tenant, "turns": turns}]))
    store.close()
    with ServedPage(path, readers={"t": Reader("read", "acme")}) as served:
        served.client.headers["authorization"] = "Bearer t"
        assert [change["tenant"] for change in served.get("changes")["changes"]] == ["acme"]
        assert [change["tenant"] for change in served.get("series")["changes"]] == ["acme"]
    with ServedPage(path) as served:
        assert [change["turns"] for change in served.get("changes")["changes"]] == [[], ["a-1"]]


def test_the_catalogue_and_health(page: ServedPage) -> None:
    metrics = {metric["name"]: metric for metric in page.get("metrics")["metrics"]}
    assert len(metrics) > 200
    assert metrics["code_refusal"]["meaning"] == "1 or 0, as described below. Neither value is a failure"
    assert page.get("health")["store"]["turns"] == COUNT


def test_facets_are_what_can_be_filtered_by(page: ServedPage) -> None:
    found = page.get("facets")
    assert found["agents"] == [{"name": name, "turns": 100} for name in ("billing", "support", "travel")]
    assert [one["name"] for one in found["metrics"]] == ["code_refusal", "code_tool_success", "llm_faithfulness"]
    assert page.get("facets", agent="travel")["models"] == [{"name": "gpt-5", "turns": 50}, {"name": "qwen3", "turns": 50}]


# --- export


def test_an_export_has_the_turns_of_the_filter(page: ServedPage) -> None:
    params = {"metric": "code_refusal", "outcome": "fail"}
    expected = [turn["turn_id"] for turn in page.all_turns(**params)]
    lines = page.client.get("/api/v1/export", params=params)
    assert lines.headers["content-disposition"] == 'attachment; filename="turns.jsonl"'
    assert [json.loads(line)["turn_id"] for line in lines.text.splitlines()] == expected
    table = list(csv.DictReader(io.StringIO(page.client.get("/api/v1/export", params={**params, "format": "csv"}).text)))
    assert [row["turn_id"] for row in table] == expected
    assert {row["code_refusal"] for row in table} == {"0.0"}
    cases = page.client.get("/api/v1/export", params={**params, "format": "dataset", "limit": 3}).text.splitlines()
    assert [json.loads(case)["case_id"] for case in cases] == expected[:3]
    assert json.loads(cases[0])["input"].startswith("Question")


def test_a_cell_of_an_export_is_no_formula(tmp_path: Path) -> None:
    turn = turn_row(1, agent='=HYPERLINK("http://evil")')
    with ServedPage(filled(tmp_path / "s.db", [(turn, [score_row(turn)])])) as served:
        text = served.client.get("/api/v1/export", params={"format": "csv"}).text
    assert "'=HYPERLINK" in text


@pytest.mark.parametrize("agent", ["x\r=2+5", "\r=2+5", "x\r\n=2+5", "x\x85=2+5", "\t=2+5", " =2+5", "\uff1d2+5"])
def test_a_line_end_makes_no_formula_of_a_cell(agent: str, tmp_path: Path) -> None:
    """Report: a carriage return in an unquoted cell started a row with a formula."""
    turn = turn_row(1, agent=agent)
    with ServedPage(filled(tmp_path / "s.db", [(turn, [score_row(turn)])])) as served:
        text = served.client.get("/api/v1/export", params={"format": "csv"}).text
    [row] = csv.DictReader(io.StringIO(text, newline=""))
    assert "\r" not in text
    assert row["agent"].lstrip()[0] in "'x"


# --- content


def test_content_is_shown_only_where_the_operator_allows_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db", some_turns(20, content=True))
    with ServedPage(path, Options(content=False)) as served:
        turn = served.get("turns", limit=1)["turns"][0]
        assert "asked" not in turn
        found = served.get(f"turns/{turn['turn_id']}")
        assert (found["content"], found["content_kept"]) == (None, True)
        assert "isn't shown" in problem(served, f"turns/{turn['turn_id']}/case", 404)
        assert "content isn't shown" in problem(served, "turns", 403, text="Question")
        assert "content isn't shown" in problem(served, "live", 403, text="Question")
        for form, status in (("jsonl", 200), ("csv", 200), ("dataset", 404)):
            response = served.client.get("/api/v1/export", params={"format": form})
            assert response.status_code == status
            assert "Question" not in response.text


# --- labels


def test_labels_are_kept_for_calibrate(tmp_path: Path) -> None:
    path, labels = filled(tmp_path / "s.db", some_turns(40)), tmp_path / "labels.jsonl"
    with ServedPage(path, Options(labels=str(labels))) as served:
        assert served.get("facets")["labels"] is True
        first = served.get("labels/next", metric="llm_faithfulness")
        turn_id = first["turn_id"]
        kept = served.client.post(
            "/api/v1/labels",
            json={"turn_id": turn_id, "label": "fail", "metric": "llm_faithfulness", "value": 0.2, "rating": 1, "comment": "No."},
        )
        assert kept.status_code == 200
        assert kept.json()["label"]["by"] == "someone"
        assert [label["comment"] for label in served.get(f"turns/{turn_id}")["labels"]] == ["No."]
        assert served.get("labels/next", metric="llm_faithfulness")["turn_id"] not in (None, turn_id)
        served.client.post("/api/v1/labels", json={"turn_id": turn_id, "label": "pass", "metric": "llm_faithfulness"})
        assert [label["label"] for label in served.get("labels")["labels"]] == ["pass"]
        assert [(label.turn, label.good, label.metric) for label in read_labels(str(labels))] == [
            (turn_id, True, "llm_faithfulness")
        ]
        served.client.post("/api/v1/labels", json={"turn_id": turn_id, "label": None, "metric": "llm_faithfulness"})
        assert served.get("labels")["labels"] == []
    assert labels.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, "JSON"),
        (b"[]", 400, "label: "),
        (b'{"label": "pass"}', 400, "turn_id: "),
        (b'{"turn_id": "00000000000000000000000000000001-", "label": "good"}', 400, "label: "),
        (b'{"turn_id": "nope", "label": "pass"}', 404, "turn"),
        (b'{"turn_id": "TURN", "label": "pass", "stars": 1}', 400, "'stars'"),
        (b'{"turn_id": "TURN", "label": "pass", "rating": 9}', 400, "rating: "),
        (b'{"turn_id": "TURN", "label": "pass", "value": true}', 400, "value: "),
        (b'{"turn_id": "TURN", "label": "pass", "metric": ""}', 400, "metric: "),
        (b'{"turn_id": "TURN", "label": "pass", "comment": 5}', 400, "comment: "),
        (b'"' + b"x" * 70_000 + b'"', 413, "too large"),
    ],
)
def test_what_is_no_label_is_refused(body: bytes, status: int, says: str, page: ServedPage) -> None:
    content = body.replace(b"TURN", next(iter(page.all_turns()))["turn_id"].encode())
    response = page.client.post("/api/v1/labels", content=content, headers={"content-type": "application/json"})
    assert (response.status_code, says in response.json()["error"]) == (status, True), response.text


def test_a_label_needs_json_a_file_and_the_right(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db", some_turns(3))
    label = {"turn_id": turn_row(1)["turn_id"], "label": "pass"}
    with ServedPage(path, Options()) as served:
        assert served.client.post("/api/v1/labels", json=label).status_code == 404
        assert served.get("facets")["labels"] is False
    readers = {"r": Reader("read"), "w": Reader("label", None, "ann")}
    with ServedPage(path, Options(labels=str(tmp_path / "l.jsonl")), readers) as served:
        assert served.client.post("/api/v1/labels", json=label, auth=("x", "r")).status_code == 403
        assert served.client.post("/api/v1/labels", data={"a": "b"}, auth=("x", "w")).status_code == 415
        assert served.client.post("/api/v1/labels", json=label, auth=("x", "w")).json()["label"]["by"] == "ann"


def test_a_file_of_labels_that_cannot_be_written_is_a_clear_answer(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db", some_turns(3))
    with ServedPage(path, Options(labels=str(tmp_path / "no" / "l.jsonl"))) as served:
        response = served.client.post("/api/v1/labels", json={"turn_id": turn_row(1)["turn_id"], "label": "pass"})
    assert response.status_code == 503
    assert "No such file" in response.json()["error"]


# --- who may ask


def test_without_a_token_there_is_nothing(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db", some_turns(3))
    with ServedPage(path, readers={"t": Reader()}) as served:
        for one in ("/", "/turns", "/static/app.js", "/api/v1/turns", "/api/v1/openapi.json", "/api/v1/live"):
            response = served.client.get(one)
            assert (response.status_code, response.headers["www-authenticate"]) == (
                401,
                'Basic realm="otel-agenteval", charset="UTF-8"',
            ), one
            assert served.client.get(one, auth=("anyone", "wrong")).status_code == 401
        for headers in ({"authorization": "Bearer t"}, {"authorization": "Basic " + "YW55OnQ="}):
            assert served.client.get("/api/v1/turns", headers=headers).status_code == 200


def test_a_tenant_sees_its_own(tmp_path: Path) -> None:
    turns = []
    for number in range(20):
        tenant = "acme" if number % 2 else "bolt"
        turn = turn_row(number, tenant=tenant)
        turn["turn_id"] = qualified(tenant, turn["turn_id"])
        turns.append((turn, [score_row(turn), score_row(turn, f"code_only_of_{tenant}")]))
    turns[0][0]["start"] -= 90 * 86_400
    path = filled(tmp_path / "s.db", turns)
    own, other = turns[1][0]["turn_id"], turns[0][0]["turn_id"]
    options = Options(labels=str(tmp_path / "l.jsonl"))
    with ServedPage(path, options, {"a": Reader("label", "acme"), "all": Reader()}) as served:
        assert (
            served.client.post("/api/v1/labels", json={"turn_id": other, "label": "pass"}, auth=("x", "all")).status_code == 200
        )
        served.client.auth = httpx.BasicAuth("x", "a")
        assert {turn["tenant"] for turn in served.all_turns()} == {"acme"}
        assert served.get(f"turns/{quote(own, safe='')}")["turn"]["tenant"] == "acme"
        assert served.client.get(f"/api/v1/turns/{quote(other, safe='')}").status_code == 404
        assert served.client.get(f"/api/v1/turns/{quote(other, safe='')}/why").status_code == 404
        assert served.client.post("/api/v1/labels", json={"turn_id": other, "label": "pass"}).status_code == 404
        assert served.get("labels")["labels"] == []
        assert sum(group["turns"] for group in served.get("estimates")["groups"]) == 10
        facets = served.get("facets")
        assert [one["turns"] for one in facets["agents"]] == [10]
        assert [one["name"] for one in facets["metrics"]] == ["code_only_of_acme", "code_refusal"]
        assert facets["until"] - facets["since"] < 86_400
        assert served.get("series")["since"] == facets["since"]
        assert len(served.client.get("/api/v1/export").text.splitlines()) == 10
        assert served.client.get("/api/v1/health").status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:80"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "localhost:1"}, 200),
        ({"host": "localhost:1", "origin": "http://localhost:1"}, 200),
        ({"host": "localhost:1", "origin": "http://localhost:2"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
        ({"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}, 200),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
    ],
)
def test_other_pages_reach_nothing(headers: dict[str, str], status: int, page: ServedPage) -> None:
    assert page.client.get("/api/v1/turns", headers=headers, params={"limit": 1}).status_code == status
    assert page.client.get("/", headers=headers).status_code == status


def test_other_pages_hold_no_live_stream_and_give_no_label(page: ServedPage) -> None:
    for site, dest, status in (("cross-site", "document", 403), ("same-site", "empty", 403), ("same-origin", "empty", 200)):
        headers = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": dest}
        with page.client.stream("GET", "/api/v1/live", headers=headers) as response:
            assert response.status_code == status, site
    label = {"turn_id": next(iter(page.all_turns()))["turn_id"], "label": "pass"}
    for dest in ("document", "empty"):
        headers = {"sec-fetch-site": "same-site", "sec-fetch-dest": dest}
        assert page.client.post("/api/v1/labels", json=label, headers=headers).status_code == 403


def test_browsers_are_told_to_allow_nothing_else(page: ServedPage) -> None:
    told = {
        "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "x-frame-options": "DENY",
    }  # fmt: skip
    for path in ("/", "/turns", "/turn/abc", "/static/app.js", "/api/v1/facets", "/api/v1/nothing"):
        headers = page.client.get(path).headers
        assert {name: headers[name] for name in told} == told, path
    text = page.client.get("/").text
    assert not [found for found in ("<script>", " style=", "http") if found in text]


# --- transport


def test_what_has_not_changed_is_not_sent_again(page: ServedPage) -> None:
    first = page.client.get("/api/v1/facets")
    again = page.client.get("/api/v1/facets", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert page.client.get("/api/v1/facets", headers={"if-none-match": 'W/"other"'}).status_code == 200
    script = page.client.get("/static/core.js")
    assert page.client.get("/static/core.js", headers={"if-none-match": script.headers["etag"]}).status_code == 304
    assert page.client.head("/static/core.js").status_code == 200


def test_a_store_that_is_not_there_or_broken_is_a_clear_answer(tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database at all" * 100)
    for path, says in (
        (tmp_path / "no" / "s.db", "folder not found"),
        (tmp_path / "broken.db", "must be a score store"),
    ):
        with ServedPage(path) as served:
            assert says in problem(served, "turns", 503)
            assert served.client.get("/").status_code == 200
    with ServedPage(tmp_path / "new.db") as served:  # a sidecar that has seen no turn yet
        assert served.get("turns")["turns"] == []
        assert served.get("facets")["agents"] == []
        assert served.get("series")["series"] == []


# --- the document


def test_the_document_names_every_route_and_what_it_gives(page: ServedPage) -> None:
    paths = page.client.get("/api/v1/openapi.json").json()["paths"]
    assert paths == document()["paths"]
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == {
        (route.method, BASE + route.path) for route in ROUTES
    }
    turn_id = next(iter(page.all_turns()))["turn_id"]
    for route in ROUTES:
        if route.method == "GET" and not any("/" in one for one in route.gives):
            params = {
                "/compare": {"before": "1.4", "after": "1.5"},
                "/differences": {"metric": "code_refusal"},
                "/differences/group": {"group": "service.version=1.4"},
                "/compare/cases": {"before": "1.4", "after": "1.5"},
                "/turns/{turn_id}/question": {"metric": "llm_relevance"},
            }.get(route.path, {})
            found = page.get(route.path.replace("{turn_id}", turn_id)[1:], **params)
            assert set(route.gives) <= found.keys(), route.path
            assert not route.gives or set(route.gives) == found.keys(), route.path


def test_exports_keep_no_reader_waiting(page: ServedPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Report: 12 exports blocked readers for 10 seconds."""
    go = threading.Event()
    listed = Views.scores_of
    monkeypatch.setattr(
        Views,
        "scores_of",
        lambda views, ids: (threading.current_thread().name.startswith("agenteval-export") and go.wait(60), listed(views, ids))[
            1
        ],
    )
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(len(page.client.get("/api/v1/export", timeout=60).text.splitlines())))
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    assert len(page.get("turns")["turns"]) == 100
    go.set()
    for thread in threads:
        thread.join(60)
    assert found == [COUNT] * 12
