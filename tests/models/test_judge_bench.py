"""The judge bench: the quality of a judge on labeled cases."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli import judge as command
from otel_agenteval.cli.main import main
from otel_agenteval.judging.judge_bench.run import (
    BIASES,
    FAMILIES,
    BenchCase,
    BenchRun,
    _CallCounter,
    all_cases,
    chosen,
    estimate,
    run,
)
from otel_agenteval.judging.judge_bench.summary import BenchSummary, summarized
from otel_agenteval.metrics.registry import catalog
from otel_agenteval.outlets.store.reader import StoreReader
from tests.models.wire import Request, Response, Server, said
from tests.support.bench_judges import Aiming
from tests.support.judges import ScriptedModels, _numbers, _text_of

MEDIA = ("audio", "video", "multimodal_image")
CASES = all_cases()
BY_ID = {case.id: case for case in CASES}


def by(goodness: Callable[[BenchCase], float]) -> BenchSummary:
    """Return the report on a judge that gives each case this goodness."""
    found = BenchRun(len(CASES))
    for case in CASES:
        found.outcomes += run(Aiming(case, min(max(goodness(case), 0.0), 1.0)), [case], threads=1).outcomes
    return summarized("m", found)


# --- the cases


def test_there_are_enough_cases_of_each_family_level_language_and_bias() -> None:
    judged = {metric.family for metric in catalog() if metric.kind == "llm"}
    assert set(FAMILIES) == {case.family for case in CASES} == {family for family in judged if not family.startswith(MEDIA)}
    assert len({json.dumps([case.metric, case.turn, case.params], sort_keys=True) for case in CASES}) == len(BY_ID) == len(CASES)
    for family in FAMILIES:
        levels = Counter(case.expected for case in CASES if case.family == family)
        assert levels.total() >= 40
        assert all(0.3 <= levels[level] / levels.total() <= 0.56 for level in ("good", "bad")), levels
        assert len({case.lang for case in CASES if case.family == family}) >= 8, family
    biases = Counter(case.pair["bias"] for case in CASES if case.pair)
    assert biases.keys() == set(BIASES)
    assert min(biases.values()) >= 10


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_asks_the_judge_and_has_a_band_within_one_level(family: str) -> None:
    for case in (case for case in CASES if case.family == family):
        assert case.bound.metric.family == family, case.id
        counting = _CallCounter()
        score = case.bound.evaluate(case.read_turn(), judge=counting)
        assert (counting.questions > 0, score.status) == (True, "ok"), (case.id, score.explanation)
        ends = sorted(case.goodness(value) for value in case.band)
        assert 0 <= round(ends[0], 9) <= round(ends[1], 9) <= 1, case.id
        assert case.band[0] <= case.band[1], case.id
        assert ends[1] - ends[0] <= 0.35 + 1e-9, case.id
        assert case.level(ends[0]) == case.level(ends[1]) == case.expected, case.id
        assert not case.is_verdict or case.band in ((0, 0), (1, 1)), case.id


def test_a_limit_takes_evenly_from_families_and_levels() -> None:
    found = chosen(limit=66)
    assert len(found) == 66
    assert set(Counter(case.family for case in found).values()) == {6}
    assert min(Counter(case.expected for case in found).values()) >= 15
    assert chosen(limit=10_000) == list(CASES)
    ids = {case.id for case in found}
    assert all(case.counterpart is None or case.counterpart in ids for case in found)


# --- what is said of a judge


def test_a_judge_that_answers_from_the_bands_agrees_in_everything() -> None:
    found = by(lambda case: case.middle)
    assert (found.total.scored, found.total.failed) == (len(CASES), 0)
    assert (found.total.agreement, found.total.verdict_agreement, found.total.kappa) == (1.0, 1.0, 1.0)
    assert [each.kappa for each in found.families.values()] == [1.0] * len(FAMILIES)
    assert (found.total.false_alarms, found.total.misses) == (0.0, 0.0)
    assert found.total.mean_error is not None
    assert found.total.mean_error < 0.02
    assert found.total.rank_correlation is not None
    assert found.total.rank_correlation > 0.95
    assert not any(each.found for each in found.biases.values())
    assert found.verdict == [f"Single verdicts can be trusted: {', '.join(FAMILIES)}"]


def test_a_judge_that_guesses_agrees_by_chance_alone() -> None:
    guess = random.Random(7)
    found = by(lambda case: guess.random())
    assert found.total.kappa == pytest.approx(0, abs=0.1)
    assert found.total.kappa_interval is not None
    assert found.total.kappa_interval[0] < 0.05
    assert found.total.rank_correlation == pytest.approx(0, abs=0.15)
    assert {each.trust for each in found.families.values()} == {"not trusted"}
    assert found.verdict[0].startswith("Not reliable: agentic_judges")


@pytest.mark.parametrize("kind", ["position", "length"])
def test_a_bias_is_found_and_no_other(kind: str) -> None:
    found = by(lambda case: case.middle + (0.4 if case.pair is not None and case.pair["bias"] == kind else 0.0))
    assert [name for name, each in found.biases.items() if each.found] == [kind]
    bias = found.biases[kind]  # type: ignore[index]
    assert bias.mean is not None
    assert bias.mean > 0.1
    assert f"Bias: {bias.sentence}" in found.verdict
    if kind != "position":
        assert bias.interval is not None
        assert bias.interval[0] > 0
        assert bias.sentence.startswith(f"gives {bias.mean:.2f} more to ")


def test_a_family_with_misses_is_not_trusted_with_single_verdicts() -> None:
    missed = {case.id for case in [case for case in CASES if case.family == "moderation" and case.expected == "bad"][:3]}
    found = by(lambda case: 1.0 if case.id in missed else case.middle)
    moderation = found.families["moderation"]
    assert moderation.agreement is not None
    assert moderation.agreement > 0.9
    assert (moderation.misses, moderation.trust) == (pytest.approx(3 / 21), "trends")


def test_the_estimate_asks_nothing_and_counts_what_a_run_asks() -> None:
    one = estimate([case for case in CASES if case.metric == "llm_relevance"], Aiming(CASES[0], 1.0))
    assert one.questions == sum(case.metric == "llm_relevance" for case in CASES)
    assert one.input_tokens > 100 * one.questions
    assert one.cost_usd is None
    twice = estimate([case for case in CASES if case.metric == "llm_relevance"], Aiming(CASES[0], 1.0), repeat=2)
    assert twice.questions == 2 * one.questions


# --- the command


PRICES = {"m-1": {"input": 10.0, "output": 10.0}}
FIELDS = ["--families", "structured_output"]


def fields() -> list[BenchCase]:
    return [case for case in CASES if case.family == "structured_output"]


def answering(server: Server, score: Callable[[BenchCase], Any]) -> None:
    """Make the server answer with the known value of each field."""
    known = {(str(json.loads(case.turn["output"])), str(case.turn["ground_truth"])): case for case in fields()}

    def answer(request: Request) -> Response:
        text = next(message["content"] for message in request.body["messages"] if "<<<VALUE" in message["content"])
        field = text.partition("[[[FIELD ")[2].partition("\n")[2].partition("\n")[0]
        value = text.partition("<<<VALUE ")[2].partition("\n")[2].rpartition("<<<GROUND_TRUTH")[0].rpartition("\n")[0]
        truth = text.partition("<<<GROUND_TRUTH ")[2].partition("\n")[2].partition("\n")[0]
        found = [
            case
            for case in known.values()
            if case.params["field"] == field and str(case.turn["ground_truth"]) == truth and _written(case, field) in value
        ]
        case = max(found, key=lambda case: len(_written(case, field)))
        given = score(case)
        return given if isinstance(given, Response) else Response(said("openai", json.dumps({"reason": "r", "score": given})))

    server.answering = answer


def _written(case: BenchCase, field: str) -> str:
    value = json.loads(case.turn["output"])[field]
    return value if isinstance(value, str) else ""


@pytest.fixture
def bench(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: str, **judge: Any) -> tuple[int, str, str]:
        file = tmp_path / "agenteval.yaml"
        file.write_text(json.dumps({"judge": {"base_url": server.url, "model": "m-1", **judge}}), encoding="utf-8")
        status = main(["judge", "bench", "--config", str(file), *arguments])
        return status, *capsys.readouterr()

    return call


def test_the_command_asks_the_configured_server_and_reports_in_json(bench: Any, server: Server) -> None:
    answering(server, lambda case: case.middle)
    status, out, err = bench(*FIELDS, "--format", "json", prices=PRICES)
    found = json.loads(out)
    assert (status, found["format"], found["model"]) == (0, "otel-agenteval/judge-bench/1", "m-1")
    assert list(found) == [
        "format", "model", "planned", "stopped", "seconds", "total", "families", "languages", "bias", "verdict", "outcomes",
    ]  # fmt: skip
    family = found["families"]["structured_output"]
    assert (family["agreement"], family["kappa"], family["trust"]) == (1.0, 1.0, "trusted")
    assert len(server.requests) == len(found["outcomes"]) == family["questions"] == len(fields())
    assert family["input_tokens"] == 100 * len(fields())
    assert family["cost_usd"] == pytest.approx(len(fields()) * 120 * 10 / 1e6)
    assert f"{len(fields())} cases, about {len(fields())} judge calls" in err


def test_the_table_and_the_markdown_say_the_same(bench: Any, server: Server, tmp_path: Path) -> None:
    answering(server, lambda case: case.middle)
    status, out, _ = bench(*FIELDS)
    row = next(line for line in out.splitlines() if line.startswith("structured_output"))
    assert (status, row.split()[1:3]) == (0, [str(len(fields())), "100%"])
    assert "Trust:\n  Single verdicts can be trusted: structured_output" in out
    assert "authority: too few pairs" in out
    file = tmp_path / "report.md"
    status, out, _ = bench(*FIELDS, "--format", "markdown", "--out", str(file))
    text = file.read_text(encoding="utf-8")
    assert (status, out) == (0, "")
    assert text.startswith("# m-1: ")
    assert f"| structured_output | {len(fields())} | 100% |" in text


def test_a_low_agreement_fails_where_a_bound_is_given(bench: Any, server: Server) -> None:
    answering(server, lambda case: 1.0)
    assert bench(*FIELDS)[0] == 0
    assert bench(*FIELDS, "--min-agreement", "0.9")[0] == 1


def test_nothing_is_asked_when_it_would_cost_more_than_is_allowed(bench: Any, server: Server) -> None:
    status, out, err = bench(*FIELDS, "--max-usd", "0.001", prices=PRICES)
    assert (status, out, server.requests) == (2, "", [])
    assert "--max-usd" in err
    status, _, err = bench(*FIELDS, "--max-usd", "5")
    assert (status, server.requests) == (2, [])
    assert "--max-usd" in err


def test_it_stops_once_the_money_is_spent(bench: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(server, lambda case: case.middle)
    monkeypatch.setattr(command, "_check_money", lambda plan, most: None)
    status, out, _ = bench(*FIELDS, "--max-usd", "0.006", "--format", "json", prices=PRICES, max_concurrency=1)
    found = json.loads(out)
    assert (status, found["stopped"], len(found["outcomes"])) == (1, "budget", math.ceil(0.006 / 0.0012))
    assert len(server.requests) == len(found["outcomes"])


def test_an_interrupted_bench_reports_what_there_is(bench: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(server, lambda case: case.middle)

    def interrupt(outcome: Any, run: BenchRun) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_print_progress", interrupt)
    status, out, _ = bench(*FIELDS, max_concurrency=1)
    assert status == 130
    assert f"1 of {len(fields())} evaluations" in out
    assert "; interrupted" in out


def test_a_judge_that_never_answers_gives_no_report_to_rely_on(bench: Any, server: Server) -> None:
    server.answering = lambda _: Response({"error": {"message": "no"}}, 401)
    status, out, _ = bench(*FIELDS, "--limit", "3")
    assert status == 2
    assert "unknown" in out


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--families", "rag_judge"], "rag_judges"),
        (["--metrics", "llm_relevanc"], "llm_relevance"),
        (["--families", "workflow", "--metrics", "llm_relevance"], "--metrics: "),
        (["--families", ","], "--families: "),
        (["--limit", "1", "--metrics", "llm_relevance", "--out", "/nowhere/x"], "--out: /nowhere/x: "),
        (["--limit", "0"], "--limit"),
        (["--repeat", "x"], "--repeat"),
        (["--min-agreement", "2"], "--min-agreement"),
    ],
)
def test_wrong_use_is_refused_with_its_option(bench: Any, server: Server, capsys: Any, arguments: list[str], option: str) -> None:
    server.answering = lambda _: Response(said("openai", '{"reasoning": "r", "score": 50}'))
    try:
        status, _, err = bench(*arguments)
    except SystemExit as left:  # of the parser
        status, err = left.code, capsys.readouterr().err
    assert status == 2
    assert option in err


def test_a_terminal_is_asked_before_anything_is(bench: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return "n\n"

    monkeypatch.setattr("sys.stdin", Terminal())
    status, _, err = bench(*FIELDS)
    assert (status, server.requests) == (2, [])
    assert "Start? [y/N]" in err
    answering(server, lambda case: case.middle)
    assert bench(*FIELDS, "--yes")[0] == 0


# --- ``judge drift``: the same cases judged again, by a server whose model is replaced


class Moody(ScriptedModels):
    """Gives each call the same score, shifted by a mood."""

    def __init__(self) -> None:
        super().__init__()
        self.mood = 0.0
        self.broken = False

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.broken:
            return 400, {"error": {"message": "no"}}
        text = re.sub(r"[0-9a-f]{16}", "", _text_of(body["messages"][-1]["content"]))
        score = min(100.0, max(0.0, 40 + 40 * _numbers(text, 1)[0] + self.mood))
        message = {"role": "assistant", "content": json.dumps({"score": score, "reason": "r", "claims": [], "statements": []})}
        return 200, {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


@pytest.fixture
def moody() -> Iterator[Moody]:
    server = Moody()
    yield server
    server.close()


@pytest.fixture
def files(tmp_path: Path, moody: Moody) -> tuple[str, str]:
    """Write anchors and a configuration."""
    config = tmp_path / "agenteval.yaml"
    config.write_text(
        f"judge: {{base_url: '{moody.url}', model: m-1}}\noutlets: {{prometheus: null, store: {tmp_path / 'scores.db'}}}\n"
    )
    cases = tmp_path / "cases.jsonl"
    rows = [
        {"id": f"c{n}", "metric": "llm_relevance", "turn": {"input": f"question {n}", "output": f"answer {n}"}} for n in range(40)
    ]
    cases.write_text("\n".join(map(json.dumps, rows)))
    return str(tmp_path / "anchors.json"), str(config)


def drift(files: tuple[str, str], *more: str) -> int:
    anchors, config = files
    return main(["judge", "drift", anchors, "--config", config, "--cases", str(Path(anchors).with_name("cases.jsonl")), *more])


def test_a_judge_that_is_what_it_was_has_not_drifted_and_one_that_is_replaced_has(
    files: tuple[str, str], moody: Moody, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drift(files) == 0
    assert "scores of 40 cases by m-1 written" in capsys.readouterr().err
    frozen = Path(files[0]).read_bytes()
    assert drift(files, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["difference"] for row in said["families"]] == [0.0, 0.0]
    moody.mood = -10.0
    assert drift(files) == 1
    text = capsys.readouterr().out
    assert re.search(r"all +40 +0\.\d+ +0\.\d+ +-0\.100 \(-0\.\d+ … -0\.\d+\) +0\.000 +\d+ +DRIFTED", text)
    assert Path(files[0]).read_bytes() == frozen  # anchors stay what they are
    with StoreReader(Path(files[0]).with_name("scores.db")) as reader:
        [change] = reader.changes()
    assert (change["metric"], change["agent"], change["detector"]) == ("judge", "m-1", "anchors")


def test_a_change_that_is_too_small_to_matter_is_none(files: tuple[str, str], moody: Moody) -> None:
    assert drift(files) == 0
    moody.mood = -2.0
    assert drift(files) == 0
    assert drift(files, "--least", "0.01") == 1


def test_a_judge_that_gives_no_score_cannot_be_compared(
    files: tuple[str, str], moody: Moody, capsys: pytest.CaptureFixture[str]
) -> None:
    moody.broken = True
    assert drift(files) == 2
    assert "no case got a score" in capsys.readouterr().err
    assert not Path(files[0]).exists()
    moody.broken = False
    assert drift(files) == 0
    moody.broken = True
    assert drift(files) == 2


def test_again_and_again(
    files: tuple[str, str], moody: Moody, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt
        moody.mood -= 10.0

    monkeypatch.setattr(command.time, "sleep", sleep)
    assert drift(files, "--every", "24h") == 130
    assert waited == [86_400.0] * 3
    assert capsys.readouterr().out.count("DRIFTED") == 4  # of all and of the own family, twice


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--every", "soon"], "--every: must be"),
        (["--limit", "0"], "--limit: must be"),
        (["--cases", "none.jsonl"], "--cases: none.jsonl: "),
    ],
)
def test_wrong_use_is_refused(files: tuple[str, str], capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    assert drift(files, *args) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"metric": "llm_relevance"}',
        '{"metric": "llm_relevance", "turn": {"x": 1}}',
    ],
)
def test_a_case_that_cannot_be_used_is_named_before_anything_is_asked(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], line: str
) -> None:
    Path(files[0]).with_name("cases.jsonl").write_text(f"\n{line}\n")
    assert drift(files) == 2
    assert "cases.jsonl:2: " in capsys.readouterr().err


def test_a_file_that_is_no_anchors_is_left_as_it_is(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    Path(files[0]).write_text("[]")
    assert drift(files) == 2
    assert "anchor file" in capsys.readouterr().err
    assert Path(files[0]).read_text() == "[]"
