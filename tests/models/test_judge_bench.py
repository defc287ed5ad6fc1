"""The bench: how well a judge judges, on labelled cases."""

from __future__ import annotations

import json
import math
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli import judge_bench as command
from otel_agenteval.cli.main import main
from otel_agenteval.judging.judge_bench import cases as bench_cases
from otel_agenteval.judging.judge_bench.cases import BIASES, FAMILIES, GOOD, MIDDLING, BenchCase, all_cases, chosen
from otel_agenteval.judging.judge_bench.run import BenchRun, _CallCounter, estimate, run
from otel_agenteval.judging.judge_bench.summary import BenchSummary, measures, summarized
from otel_agenteval.metrics.question import Question
from otel_agenteval.metrics.registry import catalog
from tests.models.wire import Request, Response, Server, said
from tests.support.bench_judges import Aiming

MEDIA = ("audio", "video", "multimodal_image")
CASES = all_cases()
BY_ID = {case.id: case for case in CASES}


def by(goodness: Callable[[BenchCase], float]) -> BenchSummary:
    """What is said of a judge that finds this goodness in each case."""
    found = BenchRun(len(CASES))
    for case in CASES:
        found.outcomes += run(Aiming(case, min(max(goodness(case), 0.0), 1.0)), [case], threads=1).outcomes
    return summarized("m", found)


# --- the cases


def test_every_family_of_judged_metrics_but_those_of_media_has_forty_cases() -> None:
    judged = {metric.family for metric in catalog() if metric.kind == "llm"}
    assert set(FAMILIES) == {family for family in judged if not family.startswith(MEDIA)}
    assert min(Counter(case.family for case in CASES).values()) >= 40
    assert {case.family for case in CASES} == set(FAMILIES)


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
        assert len(case.about) > 4, case.id
        assert case.about.isascii(), case.id


@pytest.mark.parametrize("family", FAMILIES)
def test_good_middling_and_bad_cases_are_balanced(family: str) -> None:
    levels = Counter(case.expected for case in CASES if case.family == family)
    most = sum(levels.values())
    assert 0.3 <= levels["good"] / most <= 0.56, levels
    assert 0.3 <= levels["bad"] / most <= 0.5, levels
    assert family == "moderation" or levels["middling"] >= 8, levels


def test_the_cases_differ_and_speak_many_languages() -> None:
    assert len(BY_ID) == len(CASES)
    asked = [json.dumps([case.metric, case.turn, case.params], sort_keys=True) for case in CASES]
    assert len(set(asked)) == len(asked)
    languages = Counter(case.lang for case in CASES)
    assert len(languages) >= 16
    assert languages["en"] / len(CASES) < 0.6
    for family in FAMILIES:
        assert len({case.lang for case in CASES if case.family == family}) >= 8, family


def test_twins_deserve_the_same_score_and_there_are_enough_of_each_kind() -> None:
    pairs = [case for case in CASES if case.pair is not None]
    for case in pairs:
        assert case.counterpart is not None
        counterpart = BY_ID[case.counterpart]
        assert (counterpart.metric, counterpart.band, counterpart.pair) == (case.metric, case.band, None), case.id
        assert case.pair is not None
        assert (counterpart.lang == case.lang) == (case.pair["bias"] != "language"), case.id
    counts = Counter(case.pair["bias"] for case in pairs if case.pair)
    assert counts.keys() == set(BIASES)
    assert min(counts.values()) >= 10


def test_cases_of_the_length_pairs_are_longer_than_their_twins() -> None:
    for case in CASES:
        if case.pair is not None and case.pair["bias"] == "length":
            assert len(json.dumps(case.turn)) > 1.1 * len(json.dumps(BY_ID[case.pair["of"]].turn)), case.id


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


@pytest.mark.parametrize("kind", BIASES)
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


def test_a_mild_judge_leans_to_the_good_side_and_misses_what_is_unsafe() -> None:
    found = by(lambda case: 1.0)
    assert found.total.leaning is not None
    assert found.total.leaning > 0.3
    assert found.families["moderation"].misses == found.families["safety_policy"].misses == 1.0
    assert found.families["moderation"].false_alarms == 0.0
    assert found.families["workflow"].misses is None
    assert found.families["moderation"].trust == "not trusted"


def test_a_family_with_misses_is_not_trusted_with_single_verdicts() -> None:
    missed = {case.id for case in [case for case in CASES if case.family == "moderation" and case.expected == "bad"][:3]}
    found = by(lambda case: 1.0 if case.id in missed else case.middle)
    moderation = found.families["moderation"]
    assert moderation.agreement is not None
    assert moderation.agreement > 0.9
    assert (moderation.misses, moderation.trust) == (pytest.approx(3 / 21), "trends")


def test_levels_are_those_that_the_documentation_names() -> None:
    case = next(case for case in CASES if case.metric == "llm_relevance")
    assert [case.level(value) for value in (0, 0.34, MIDDLING, 0.69, GOOD, 1)] == [
        "bad",
        "bad",
        "middling",
        "middling",
        "good",
        "good",
    ]
    down = next(case for case in CASES if case.metric == "llm_turn_risk")
    assert (down.goodness(1), down.goodness(10)) == (1, 0)
    severity = next(case for case in CASES if case.metric == "llm_violence")
    assert (severity.goodness(0), severity.goodness(7)) == (1, 0)


def test_repeats_say_how_stable_the_answers_are() -> None:
    case = next(case for case in CASES if case.metric == "llm_relevance" and case.expected == "good")
    other = next(case for case in CASES if case.metric == "llm_relevance" and case.expected == "bad")
    outcomes = [
        *run(Aiming(case, 0.9), [case], repeat=2).outcomes,
        *run(Aiming(other, 0.1), [other]).outcomes,
        *run(Aiming(other, 0.9), [other]).outcomes,
    ]
    found = measures(outcomes)
    assert (found.cases, found.evaluations, found.stability) == (2, 4, 0.5)
    assert measures(outcomes[:1]).stability is None
    assert measures([]).trust == "unknown"


def test_the_estimate_asks_nothing_and_counts_what_a_run_asks() -> None:
    one = estimate([case for case in CASES if case.metric == "llm_relevance"], Aiming(CASES[0], 1.0))
    assert one.questions == sum(case.metric == "llm_relevance" for case in CASES)
    assert one.input_tokens > 100 * one.questions
    assert one.cost_usd is None
    twice = estimate([case for case in CASES if case.metric == "llm_relevance"], Aiming(CASES[0], 1.0), repeat=2)
    assert twice.questions == 2 * one.questions


def test_an_interrupted_run_has_what_came_before() -> None:
    few = [case for case in CASES if case.metric == "llm_relevance"]

    def stop(outcome: Any, found: BenchRun) -> None:
        if len(found.outcomes) == 2:
            raise KeyboardInterrupt

    found = run(Aiming(few[0], 0.9), few, threads=1, report=stop)
    assert (found.stopped, len(found.outcomes), found.planned) == ("interrupted", 2, len(few))
    assert summarized("m", found).to_dict()["stopped"] == "interrupted"


def test_what_was_under_way_at_an_interruption_is_closed_when_it_ends() -> None:
    """A question of a case that had begun opens a connection anew after all were closed."""
    few = [case for case in CASES if case.metric == "llm_relevance"][:2]
    first, second, answered, closed = (threading.Event() for _ in range(4))

    class Slow(Aiming):
        def answer(self, question: Question) -> Any:
            if first.is_set():
                second.set()
                answered.wait(30)
            first.set()
            return super().answer(question)

    def stop(outcome: Any, found: BenchRun) -> None:
        assert second.wait(30)
        raise KeyboardInterrupt

    found = run(Slow(few[0], 0.9), few, threads=1, report=stop, abandoned=closed.set)
    assert (found.stopped, closed.is_set()) == ("interrupted", False)
    answered.set()
    assert closed.wait(30)


# --- the command


PRICES = {"m-1": {"input": 10.0, "output": 10.0}}
FIELDS = ["--families", "structured_output"]


def fields() -> list[BenchCase]:
    return [case for case in CASES if case.family == "structured_output"]


def answering(server: Server, score: Callable[[BenchCase], Any]) -> None:
    """A model that knows what each field is worth."""
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


def test_what_is_known_is_asked_anew(bench: Any, server: Server, tmp_path: Path) -> None:
    answering(server, lambda case: case.middle)
    cache = {"path": str(tmp_path / "v.db")}
    bench(*FIELDS, cache=cache)
    bench(*FIELDS, cache=cache)
    assert len(server.requests) == 2 * len(fields())


def test_replies_that_a_filter_declines_or_nobody_can_read_are_counted_apart(bench: Any, server: Server) -> None:
    declined, unreadable = fields()[0].id, fields()[1].id

    def score(case: BenchCase) -> Any:
        if case.id == declined:
            return Response(said("openai", "", "refusal"))
        return Response(said("openai", "I would say it is fine.")) if case.id == unreadable else case.middle

    answering(server, score)
    _, out, _ = bench(*FIELDS, "--format", "json")
    family = json.loads(out)["families"]["structured_output"]
    assert (family["refused"], family["unreadable"], family["failed"]) == (1, 1, 0)
    assert (family["scored"], family["agreement"]) == (len(fields()) - 2, 1.0)
    assert family["trust"] == "trusted"


def test_a_low_agreement_fails_where_a_bound_is_given(bench: Any, server: Server) -> None:
    answering(server, lambda case: 1.0)
    assert bench(*FIELDS)[0] == 0
    assert bench(*FIELDS, "--min-agreement", "0.9")[0] == 1


def test_nothing_is_asked_when_it_would_cost_more_than_is_allowed(bench: Any, server: Server) -> None:
    status, out, err = bench(*FIELDS, "--max-usd", "0.001", prices=PRICES)
    assert (status, out, server.requests) == (2, "", [])
    assert "the estimate of $0." in err
    status, _, err = bench(*FIELDS, "--max-usd", "5")
    assert (status, server.requests) == (2, [])
    assert "the price of the model is unknown" in err


def test_it_stops_once_the_money_is_spent(bench: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(server, lambda case: case.middle)
    monkeypatch.setattr(command, "_check_money", lambda plan, most: None)
    status, out, _ = bench(*FIELDS, "--max-usd", "0.006", "--format", "json", prices=PRICES, max_concurrency=1)
    found = json.loads(out)
    assert (status, found["stopped"], len(found["outcomes"])) == (1, "budget", math.ceil(0.006 / 0.0012))
    assert len(server.requests) == len(found["outcomes"])


def test_an_interrupted_bench_reports_what_there_is(bench: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(server, lambda case: case.middle)

    class Impatient:
        def note(self, outcome: Any, run: BenchRun) -> None:
            raise KeyboardInterrupt

        def end(self) -> None:
            """Nothing was shown."""

    monkeypatch.setattr(command, "_Progress", Impatient)
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
    ("arguments", "says"),
    [
        (["--families", "rag_judge"], "no cases for 'rag_judge'. Did you mean 'rag_judges'?"),
        (["--metrics", "llm_relevanc"], "Did you mean 'llm_relevance'?"),
        (["--families", "workflow", "--metrics", "llm_relevance"], "--metrics: must contain a metric of the families"),
        (["--families", ","], "--families: must be one or more names"),
        (["--limit", "1", "--metrics", "llm_relevance", "--out", "/nowhere/x"], "--out: /nowhere/x: "),
    ],
)
def test_wrong_use_is_said(bench: Any, server: Server, arguments: list[str], says: str) -> None:
    server.answering = lambda _: Response(said("openai", '{"reasoning": "r", "score": 50}'))
    status, _, err = bench(*arguments)
    assert status == 2
    assert says in err


@pytest.mark.parametrize("argument", [["--limit", "0"], ["--repeat", "x"], ["--max-usd", "0"], ["--min-agreement", "2"]])
def test_values_that_are_not_allowed_are_refused(bench: Any, argument: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        bench(*argument)
    assert left.value.code == 2
    assert "must be" in capsys.readouterr().err


def test_without_a_judge_nothing_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "agenteval.yaml"
    file.write_text("{}", encoding="utf-8")
    assert main(["judge", "bench", "--config", str(file)]) == 2
    assert "no judge is configured" in capsys.readouterr().err


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


def test_the_cases_are_part_of_the_package() -> None:
    folder = Path(bench_cases.__file__).parent / "cases"
    assert {file.stem for file in folder.glob("*.jsonl")} == set(FAMILIES)
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert '[tool.hatch.build.targets.wheel]\npackages = ["otel_agenteval"]\n' in project  # with every file below it
