"""Judge budgets: limits by unit, window and metric, in memory or in a file, and behavior near the limits."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.judge import BudgetOptions, SpendingOptions
from otel_agenteval.config.loader import load_config
from otel_agenteval.config.section import options_of
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError, JudgeError
from otel_agenteval.core.pacing import CircuitBreaker
from otel_agenteval.engine.selected import selected
from otel_agenteval.judging.budget import WINDOWS, Bound, JudgeBudget, bounds_of
from otel_agenteval.judging.queues import Counter, Demand, MemorySpendBook, SpendBook, SqliteSpendBook
from otel_agenteval.judging.queues.redis import RedisOutages, RedisSpendBook
from otel_agenteval.judging.session import CommandBudget
from tests.judging.test_live import held
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.process import environment
from tests.support.proxy import Proxy
from tests.support.recordings import unpack
from tests.support.redis_server import RedisServer
from tests.support.rig import Rig
from tests.support.servers import until

GOOD = {"score": 90, "reason": "It answers."}
METRIC, OTHER = "llm_relevance", "llm_coherence"
MakeBook = Callable[[], SpendBook]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: Any, tmp_path: Path) -> MakeBook:
    """Return a function that creates budgets. Budgets in the same file share their spending."""

    def book() -> SpendBook:
        return MemorySpendBook() if request.param == "memory" else SqliteSpendBook(str(tmp_path / "spent.db"))

    return book


@pytest.fixture
def book(make: MakeBook) -> SpendBook:
    return make()


HOUR = Counter("", "usd", 3600.0)


def demand(amount: float, limit: float, counter: Counter = HOUR, below: float | None = None) -> Demand:
    return Demand(counter, amount, limit, limit if below is None else below)


# --- every book


def test_what_is_taken_is_used_until_its_window_has_passed(book: SpendBook) -> None:
    assert book.spend([demand(1.5, 2.0)], 1_000.0) == 0
    assert book.used(HOUR, 1_000.0) == 1.5
    assert book.used(HOUR, 1_000.0 + 3_599) == 1.5
    assert book.used(HOUR, 1_000.0 + 3_661) == 0


def test_nothing_is_taken_where_one_of_the_bounds_has_no_room(book: SpendBook) -> None:
    day = Counter("", "usd", 86_400.0)
    assert book.spend([demand(1.0, 2.0), demand(1.0, 1.5, day)], 0.0) == 0
    wait = book.spend([demand(1.0, 2.0), demand(1.0, 1.5, day)], 10.0)
    assert 86_400 <= wait + 10 <= 86_400 + 1_440
    assert (book.used(HOUR, 10.0), book.used(day, 10.0)) == (1.0, 1.0)
    assert book.spend([demand(1.0, 2.0), demand(1.0, 1.5, day)], 10.0 + wait) == 0


def test_accounts_units_and_windows_are_apart(book: SpendBook) -> None:
    counters = [
        Counter(account, unit, window) for account in ("", "m") for unit in ("usd", "tokens") for window in (60.0, 3600.0)
    ]
    for number, counter in enumerate(counters, 1):
        book.add([(counter, number)], 5.0)
    assert [book.used(counter, 5.0) for counter in counters] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_correction_counts_where_the_amount_was_taken(book: SpendBook) -> None:
    book.spend([demand(1.0, 5.0)], 0.0)
    book.add([(HOUR, -0.75)], 0.0)
    assert book.used(HOUR, 3_000.0) == 0.25
    assert book.used(HOUR, 3_700.0) == 0


def test_an_amount_that_never_fits_goes_through_once_nothing_is_spent(book: SpendBook) -> None:
    assert book.spend([demand(5.0, 2.0)], 0.0) == 0
    assert book.spend([demand(5.0, 2.0)], 1.0) > 0
    assert book.spend([demand(5.0, 2.0)], 4_000.0) == 0


def test_a_bound_of_nothing_lets_nothing_through(book: SpendBook) -> None:
    assert book.spend([demand(0.0, 0.0)], 0.0) > 0


def test_threads_do_not_take_more_than_there_is(make: MakeBook) -> None:
    book, calls = make(), Counter("", "calls", 60.0)
    taken: list[int] = []

    def work() -> None:
        taken.append(sum(book.spend([demand(1.0, 70.0, calls)], 1.0) == 0 for _ in range(50)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == book.used(calls, 1.0) == 70


def test_within_any_window_no_more_is_taken_than_its_limit(book: SpendBook) -> None:
    """At any time, the spending of the last minute is within the limit."""
    minute, taken = Counter("", "tokens", 60.0), []
    at = 0.0
    for step in range(600):
        at += (step * 7 % 11) / 10
        if book.spend([demand(10.0, 100.0, minute)], at) == 0:
            taken.append(at)
    assert len(taken) > 40
    assert all(sum(start <= moment < start + 60 for moment in taken) <= 10 for start in taken)


def test_a_file_keeps_what_a_killed_process_spent(tmp_path: Path) -> None:
    script = """
        import os, signal, sys
        from otel_agenteval.judging.queues import Counter, Demand, SqliteSpendBook
        book = SqliteSpendBook(sys.argv[1])
        assert book.spend([Demand(Counter("", "usd", 3600.0), 1.25, 2.0, 2.0)], 1000.0) == 0
        os.kill(os.getpid(), signal.SIGKILL)
    """
    file = str(tmp_path / "spent.db")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), file], env=environment(), check=False)
    assert done.returncode == -signal.SIGKILL
    assert SqliteSpendBook(file).used(HOUR, 1_001.0) == 1.25
    assert Path(file).stat().st_mode & 0o077 == 0


def test_a_file_s_book_forgets_what_no_longer_counts(tmp_path: Path) -> None:
    book = SqliteSpendBook(str(tmp_path / "spent.db"))
    for at in range(0, 40_000, 60):
        book.add([(HOUR, 1.0)], float(at))
    with book._file.transaction() as db:
        assert db.execute("SELECT count(*) FROM spent").fetchone()[0] <= 61


# --- budgets


def budget(book: SpendBook, clock: FakeClock, soft: float = 1.0, **options: Any) -> JudgeBudget:
    return JudgeBudget(bounds_of(BudgetOptions(**options)), book, clock, soft)


def test_every_option_is_a_bound() -> None:
    options = {f"{unit}_per_{window}": 5 for unit in ("usd", "calls") for window in WINDOWS}
    assert set(options) == set(options_of(SpendingOptions))
    found = bounds_of(BudgetOptions(**{**options, "metrics": {METRIC: {"usd_per_day": 1}}}))
    assert len(found) == 5
    assert found[-1] == Bound(Counter(METRIC, "usd", 86_400.0), 1.0)
    assert found[-1].window == "day"


def test_questions_under_way_are_reckoned_with(book: SpendBook, clock: FakeClock) -> None:
    """Running calls count with the cost of earlier calls, from the second call on."""
    bounded = budget(book, clock, usd_per_hour=1.0)
    first = bounded.admit(METRIC)
    bounded.correct(first, 0.3, 1)
    under_way = [bounded.admit(METRIC) for _ in range(5)]
    assert [bool(one.wait) for one in under_way] == [False, False, True, True, True]
    assert bounded.remaining("usd")[0][1] == pytest.approx(0.1)
    bounded.correct(under_way[0], 0.1, 1)
    assert bounded.remaining("usd")[0][1] == pytest.approx(0.3)


def test_a_question_that_was_not_asked_gives_back_all(book: SpendBook, clock: FakeClock) -> None:
    bounded = budget(book, clock, calls_per_hour=1, usd_per_hour=1)
    one = bounded.admit(METRIC)
    bounded.correct(one, 0.0, 0)
    assert [left for _, left in bounded.remaining("calls")] == [1.0]
    assert bounded.admit(METRIC).wait == 0


def test_a_metric_s_bound_holds_it_and_no_other(book: SpendBook, clock: FakeClock) -> None:
    bounded = budget(book, clock, calls_per_hour=3, metrics={METRIC: {"calls_per_hour": 1}})
    assert [bool(bounded.admit(name).wait) for name in (METRIC, METRIC, OTHER, OTHER, OTHER)] == [False, True, False, False, True]
    assert not bounded.wants_prices(METRIC)


def test_near_a_bound_only_what_matters_goes_on(book: SpendBook, clock: FakeClock) -> None:
    bounded = budget(book, clock, 0.8, calls_per_hour=10)
    ordinary = sum(not bounded.admit(METRIC).wait for _ in range(10))
    urgent = sum(not bounded.admit(METRIC, urgent=True).wait for _ in range(10))
    assert (ordinary, urgent) == (8, 2)


@pytest.mark.parametrize(
    ("soft", "limits", "reached"),
    [
        (0.8, {"usd_per_day": 5, "calls_per_hour": 10}, "80 % (judge.budget.soft) of calls_per_hour: 10. Its non-urgent"),
        (1.0, {"usd_per_day": 5, "calls_per_hour": 3}, "calls_per_hour: 3. Its"),
        (0.8, {"usd_per_day": 1, "calls_per_day": 90}, "80 % (judge.budget.soft) of usd_per_day: 1. Its non-urgent"),
    ],
)
def test_the_warning_names_the_limit_that_is_reached(
    soft: float, limits: dict[str, float], reached: str, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    bounded = budget(MemorySpendBook(), clock, soft, **limits)
    for _ in range(10):
        bounded.correct(bounded.admit(METRIC), 0.1, 1)
    assert f"judge.budget: {METRIC} reached {reached} evaluations wait" in caplog.text


# --- live


def config(models: ScriptedModels, *metrics: Any, **judge: Any) -> dict[str, Any]:
    server = {"base_url": models.url, "model": "scripted", "max_concurrency": 1}
    return {"judge": {**server, **judge}, "metrics": list(metrics) or [METRIC], "inline": {"metrics": []}}


def results(rig: Rig, metric: str = METRIC) -> dict[str, float]:
    return {key[2]: value for key, value in rig.count(semconv.RESULTS).items() if key[0] == metric}


@contextmanager
def stepping(given: Mapping[str, Any]) -> Iterator[tuple[Rig, FakeClock, Callable[[], None]]]:
    """Return a rig whose judge jobs run only when the test steps, as many as the budget allows."""
    clock = FakeClock()
    with Rig(given, clock=clock) as rig:
        judging = held(rig)

        def work() -> None:
            rig.turns()
            while judging.step():
                pass
            assert rig.engine.flush(60)

        yield rig, clock, work


def test_gates_and_rule_hits_use_what_is_kept_for_them(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 20)
    sampled = {METRIC: {}, "sample": {"rate": 1, "always_if": "agent == 'vip'"}}
    with stepping(config(models, sampled, budget={"calls_per_hour": 10, "soft": 0.5})) as (rig, _, work):
        for agent in ["bot"] * 10 + ["vip"] * 3:
            rig.run(agent)
            work()
        assert {key[1]: value for key, value in rig.count(semconv.RESULTS).items()} == {"bot": 5, "vip": 3}


def test_the_request_that_repairs_a_reply_is_one_of_the_calls(models: ScriptedModels) -> None:
    models.play("I cannot say.", GOOD, f"It asks for {json.dumps(GOOD)}, which I refuse.", GOOD)
    with stepping(config(models, budget={"calls_per_hour": 2})) as (rig, clock, work):
        rig.run()
        rig.run()
        work()
        assert (results(rig), len(models.requests)) == ({"pass": 1}, 2)
        assert rig.engine.telemetry.read(semconv.BUDGET_CALLS).values == {("", "hour"): 0}
        requests = rig.count(semconv.JUDGE_REQUESTS)
        assert (requests[("ok",)], requests[("unreadable",)]) == (1, 1)
        clock.advance(3_661)
        work()
        assert (results(rig), len(models.requests)) == ({"pass": 2}, 4)


def test_no_reply_is_repaired_past_the_budget(models: ScriptedModels) -> None:
    models.play(*["I cannot say."] * 9)
    with stepping(config(models, budget={"calls_per_hour": 3, "soft": 1.0})) as (rig, _, work):
        for _ in range(3):
            rig.run()
        work()
        assert (results(rig), len(models.requests)) == ({"error": 2}, 3)
        errors = [event.attributes[semconv.ERROR_TYPE] for event in rig.log_events()]
        assert errors == ["unreadable_reply"] * 2


def test_only_the_metric_whose_dollars_are_bounded_needs_a_price(models: ScriptedModels) -> None:
    models.play(GOOD)
    with Rig(config(models, METRIC, OTHER, budget={"metrics": {METRIC: {"usd_per_day": 1}}})) as rig:
        rig.run()
        assert rig.engine.drain(60, judges=True)
        assert (results(rig), results(rig, OTHER)) == ({"error": 1}, {"pass": 1})


@pytest.mark.parametrize(
    ("judge", "problem"),
    [
        ({"budget": {"metrics": {"llm_relevanc": {"usd_per_day": 1}}}}, "budget.metrics.llm_relevanc: must be a judged metric"),
        (
            {"choose": [{"metric": "llm_relevence", "model": "m"}]},
            "choose[0].metric: unknown metric 'llm_relevence'. Did you mean",
        ),
        (
            {"choose": [{"metric": ["llm_*", "tone"], "model": "m"}]},
            "choose[0].metric: unknown metric 'tone'. For your own metric",
        ),
        ({"choose": [{"metric": ["simulated_user", "llm_*", "llm_rubric.mine", "code_composite_mean"], "model": "m"}]}, None),
    ],
)
def test_unknown_metric_names_in_the_judge_s_options_are_refused(
    judge: Mapping[str, Any], problem: str | None, models: ScriptedModels
) -> None:
    rubric = {"llm_rubric": {"rubric": "The answer names a date."}, "name": "mine"}
    given = load_config({**config(models, METRIC, rubric, **judge), "outlets": {"prometheus": None}}, {})
    if problem is None:
        selected(given)
        return
    with pytest.raises(ConfigError, match=re.escape(f"judge.{problem}")):
        selected(given)


# --- what workers share on a server


OWN = Counter("llm_relevance", "calls", 3600.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path_factory.mktemp("redis"))
    yield found
    found.stop()


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_every_book_says_the_same(kind: str, tmp_path: Path, request: Any) -> None:
    chosen = random.Random(3)
    memory = MemorySpendBook()
    if kind == "sqlite":
        other: SpendBook = SqliteSpendBook(str(tmp_path / "book.db"))
    else:
        other = RedisSpendBook(request.getfixturevalue("server").url, str(tmp_path))
    at = 1_767_225_600.0
    for _ in range(200):
        at += chosen.choice((0.0, 5.0, 70.0, 900.0))
        counters = chosen.sample([HOUR, OWN], chosen.randrange(1, 3))
        if chosen.random() < 0.7:
            demands = [
                Demand(counter, chosen.choice((0.5, 1.0, 30.0)), 20.0, chosen.choice((16.0, 20.0))) for counter in counters
            ]
            assert memory.spend(demands, at) == pytest.approx(other.spend(demands, at))
        else:
            amounts = [(counter, chosen.choice((0.25, 2.0))) for counter in counters]
            memory.add(amounts, at)
            other.add(amounts, at)
        assert memory.used(HOUR, at) == pytest.approx(other.used(HOUR, at))
    other.close()


def test_workers_together_keep_to_one_bound(server: RedisServer, tmp_path: Path) -> None:
    books = [RedisSpendBook(server.url, str(tmp_path)) for _ in range(4)]
    taken: list[float] = []

    def ask(book: RedisSpendBook) -> None:
        waits = [book.spend([Demand(OWN, 1.0, 70.0, 70.0)], 1_767_225_600.0) for _ in range(50)]
        taken.extend(wait for wait in waits if wait == 0.0)

    threads = [threading.Thread(target=ask, args=(book,)) for book in books]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 70
    for book in books:
        book.close()


def test_without_the_server_no_model_is_asked_and_what_was_spent_is_sent_later(server: RedisServer, tmp_path: Path) -> None:
    proxy = Proxy(server.port)
    book = RedisSpendBook(f"redis://127.0.0.1:{proxy.port}", str(tmp_path))
    other = RedisSpendBook(server.url, str(tmp_path))
    at = 1_767_225_600.0
    assert book.spend([Demand(OWN, 1.0, 2.0, 2.0)], at) == 0.0
    proxy.cut()
    assert book.spend([Demand(OWN, 1.0, 2.0, 2.0)], at) > 0.0
    book.add([(OWN, 4.0)], at)
    assert other.used(OWN, at) == 1.0
    proxy.heal()

    def sent() -> bool:  # with the next demand, once the book no longer leaves the server alone
        book.spend([Demand(HOUR, 0.0, 1.0, 1.0)], at)
        return other.used(OWN, at) == 5.0

    until(sent, "the server knows what was spent")
    book.close()
    other.close()
    proxy.close()


def test_one_worker_that_finds_the_judge_down_stops_all(server: RedisServer, tmp_path: Path, clock: FakeClock) -> None:
    one, two = (CircuitBreaker(clock, kind="llm", shared=RedisOutages(server.url, str(tmp_path))) for _ in range(2))
    other_kind = CircuitBreaker(clock, kind="embed", shared=RedisOutages(server.url, str(tmp_path)))
    one.leave(False, False, down=True)
    assert two.enter() == (30.0, False)
    assert other_kind.enter() == (0.0, False)
    clock.advance(31)
    assert two.enter() == (0.0, True)
    two.leave(True, True)
    third = CircuitBreaker(clock, kind="llm", shared=RedisOutages(server.url, str(tmp_path)))
    assert third.enter() == (0.0, False)


# --- commands


ANSWER = {"score": 80, "reasoning": "fits"}
TRACES = [f"pydantic_ai-native_v6/s{number}.jsonl" for number in (1, 2, 3, 4, 5)]


def configuration(models: ScriptedModels, folder: Path, **judge: Any) -> str:
    options = {"base_url": models.url, "model": "scripted", "max_concurrency": 1, **judge}
    file = folder / "agenteval.yaml"
    file.write_text(json.dumps({"judge": options, "inline": {"metrics": []}, "metrics": ["llm_relevance"]}))
    return str(file)


def outcomes(text: str) -> list[str]:
    return [row["error_type"] if row["status"] == "error" else row["status"] for row in map(json.loads, text.splitlines())]


def evaluated(models: ScriptedModels, folder: Path, capsys: Any, **judge: Any) -> tuple[list[str], str]:
    models.play(*[ANSWER] * 20)
    command = ["eval", *(str(unpack(trace, folder)) for trace in TRACES), "--config", configuration(models, folder, **judge)]
    assert main(command) == 0
    out, err = capsys.readouterr()
    return outcomes(out), err


def test_eval_asks_as_often_as_the_budget_allows(models: ScriptedModels, tmp_path: Path, capsys: Any) -> None:
    found, said = evaluated(models, tmp_path, capsys, budget={"calls_per_day": 3})
    assert len(models.requests) == 3
    assert sorted({*found}) == ["ok", "over_budget"]
    assert found.count("ok") == 3
    assert "judge.budget counts only this" in said


def test_spending_in_a_file_counts_in_the_next_run(models: ScriptedModels, tmp_path: Path, capsys: Any) -> None:
    queue = {"backend": "sqlite", "path": str(tmp_path / "queue.db")}
    for asked in (3, 0):
        _, said = evaluated(models, tmp_path, capsys, budget={"calls_per_day": 3}, queue=queue)
        assert len(models.requests) == asked
        assert "judge.budget counts only this" not in said


def test_experiment_asks_as_often_as_the_budget_allows(models: ScriptedModels, tmp_path: Path) -> None:
    models.play(*[ANSWER] * 2)
    cases = [{"input": f"question {number}"} for number in range(5)]
    config = configuration(models, tmp_path, budget={"calls_per_hour": 2})
    found = oa.evaluate(str.upper, cases, config=config)
    assert len(models.requests) == 2
    assert (found.summary()[0].n, found.summary()[0].errors) == (2, 3)


def test_unpriced_model_is_not_called_under_a_dollar_limit(models: ScriptedModels, tmp_path: Path, capsys: Any) -> None:
    found, _ = evaluated(models, tmp_path, capsys, budget={"usd_per_day": 1})
    assert {*found} == {"unpriced"}
    assert not models.requests


def test_unpriced_model_names_the_option_to_set(models: ScriptedModels) -> None:
    judge = {"base_url": models.url, "model": "scripted", "budget": {"usd_per_day": 1}}
    embedder = CommandBudget(load_config({"judge": judge})).embedder(models.embedder)
    with pytest.raises(JudgeError, match=r"^embedder\.prices: must contain scripted"):
        embedder.embed(["text"])
    assert not models.requests


def test_command_waits_for_a_limit_that_ends_within_a_minute(models: ScriptedModels) -> None:
    clock, waits = FakeClock(), []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)

    models.play(*[ANSWER] * 3)
    judge = {"base_url": models.url, "model": "scripted", "budget": {"calls_per_hour": 1}}
    budget = CommandBudget(load_config({"judge": judge}), clock, sleep)
    metric = oa.get_metric("llm_relevance")
    scores = []
    for n, passed in enumerate((0, 3_600, 60)):
        clock.advance(passed)
        scores.append(metric.evaluate(oa.Turn(input="?", output=str(n)), judge=budget.judge(models.judge)))
    assert [score.error_type for score in scores] == [None, None, "over_budget"]
    assert len(models.requests) == 2
    assert 0 < sum(waits) <= 61


def test_command_fails_if_the_server_of_the_budget_is_unreachable(models: ScriptedModels) -> None:
    """Each of the metric's calls fails, not only the first. None waits for the server."""
    queue = {"backend": "redis", "url": "redis://127.0.0.1:1"}
    judge = {"base_url": models.url, "model": "scripted", "budget": {"calls_per_hour": 1}, "queue": queue}
    waits: list[float] = []
    models.play(ANSWER)
    budget = CommandBudget(load_config({"judge": judge}), FakeClock(), waits.append)
    metric = oa.get_metric("llm_relevance")
    scores = [metric.evaluate(oa.Turn(input="?", output=str(n)), judge=budget.judge(models.judge)) for n in range(2)]
    assert [score.error_type for score in scores] == ["over_budget"] * 2
    assert (waits, models.requests) == ([], [])
