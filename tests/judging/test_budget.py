"""What judges may take: bounds by unit, window and metric, kept in memory or a file, and what happens near them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.config.budget import BudgetOptions, SpendingOptions
from otel_agenteval.config.loader import load_config
from otel_agenteval.config.section import options_of
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.judging.budget import WINDOWS, Bound, JudgeBudget, bounds_of
from otel_agenteval.judging.queues import Counter, Demand, MemorySpendBook, SpendBook, SqliteSpendBook
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.process import environment
from tests.support.rig import Rig
from tests.support.servers import until

GOOD = {"score": 90, "reason": "It answers."}
METRIC, OTHER = "llm_relevance", "llm_coherence"
MakeBook = Callable[[], SpendBook]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: Any, tmp_path: Path) -> MakeBook:
    """Makes a book; those in one file share what was spent."""

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
    assert book.take([demand(1.5, 2.0)], 1_000.0) == 0
    assert book.used(HOUR, 1_000.0) == 1.5
    assert book.used(HOUR, 1_000.0 + 3_599) == 1.5
    assert book.used(HOUR, 1_000.0 + 3_661) == 0


def test_nothing_is_taken_where_one_of_the_bounds_has_no_room(book: SpendBook) -> None:
    day = Counter("", "usd", 86_400.0)
    assert book.take([demand(1.0, 2.0), demand(1.0, 1.5, day)], 0.0) == 0
    wait = book.take([demand(1.0, 2.0), demand(1.0, 1.5, day)], 10.0)
    assert 86_400 <= wait + 10 <= 86_400 + 1_440
    assert (book.used(HOUR, 10.0), book.used(day, 10.0)) == (1.0, 1.0)
    assert book.take([demand(1.0, 2.0), demand(1.0, 1.5, day)], 10.0 + wait) == 0


def test_accounts_units_and_windows_are_apart(book: SpendBook) -> None:
    counters = [
        Counter(account, unit, window) for account in ("", "m") for unit in ("usd", "tokens") for window in (60.0, 3600.0)
    ]
    for number, counter in enumerate(counters, 1):
        book.add([(counter, number)], 5.0)
    assert [book.used(counter, 5.0) for counter in counters] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_correction_counts_where_the_amount_was_taken(book: SpendBook) -> None:
    book.take([demand(1.0, 5.0)], 0.0)
    book.add([(HOUR, -0.75)], 0.0)
    assert book.used(HOUR, 3_000.0) == 0.25
    assert book.used(HOUR, 3_700.0) == 0


def test_an_amount_that_never_fits_goes_through_once_nothing_is_spent(book: SpendBook) -> None:
    assert book.take([demand(5.0, 2.0)], 0.0) == 0
    assert book.take([demand(5.0, 2.0)], 1.0) > 0
    assert book.take([demand(5.0, 2.0)], 4_000.0) == 0


def test_a_bound_of_nothing_lets_nothing_through(book: SpendBook) -> None:
    assert book.take([demand(0.0, 0.0)], 0.0) > 0


def test_threads_do_not_take_more_than_there_is(make: MakeBook) -> None:
    book, calls = make(), Counter("", "calls", 60.0)
    taken: list[int] = []

    def work() -> None:
        taken.append(sum(book.take([demand(1.0, 70.0, calls)], 1.0) == 0 for _ in range(50)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == book.used(calls, 1.0) == 70


def test_within_any_window_no_more_is_taken_than_its_limit(book: SpendBook) -> None:
    """Whatever the moments: the sum over any minute stays within the bound."""
    minute, taken = Counter("", "tokens", 60.0), []
    at = 0.0
    for step in range(600):
        at += (step * 7 % 11) / 10
        if book.take([demand(10.0, 100.0, minute)], at) == 0:
            taken.append(at)
    assert len(taken) > 40
    assert all(sum(start <= moment < start + 60 for moment in taken) <= 10 for start in taken)


def test_a_file_keeps_what_a_killed_process_spent(tmp_path: Path) -> None:
    script = """
        import os, signal, sys
        from otel_agenteval.judging.queues import Counter, Demand, SqliteSpendBook
        book = SqliteSpendBook(sys.argv[1])
        assert book.take([Demand(Counter("", "usd", 3600.0), 1.25, 2.0, 2.0)], 1000.0) == 0
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
    options = {f"{unit}_per_{window}": 5 for unit in ("usd", "tokens", "calls") for window in WINDOWS}
    assert set(options) == set(options_of(SpendingOptions))
    found = bounds_of(BudgetOptions(**{**options, "metrics": {METRIC: {"usd_per_day": 1}}}))
    assert len(found) == 10
    assert found[-1] == Bound(Counter(METRIC, "usd", 86_400.0), 1.0)
    assert found[-1].window == "day"


def test_questions_under_way_are_reckoned_with(book: SpendBook, clock: FakeClock) -> None:
    """From the second on a question takes what such questions took, before it is answered."""
    bounded = budget(book, clock, usd_per_hour=1.0)
    first = bounded.admit(METRIC)
    bounded.correct(first, 0.3, 100, 1)
    under_way = [bounded.admit(METRIC) for _ in range(5)]
    assert [bool(one.wait) for one in under_way] == [False, False, True, True, True]
    assert bounded.remaining("usd")[0][1] == pytest.approx(0.1)
    bounded.correct(under_way[0], 0.1, 100, 1)
    assert bounded.remaining("usd")[0][1] == pytest.approx(0.3)


def test_a_question_that_was_not_asked_gives_back_all(book: SpendBook, clock: FakeClock) -> None:
    bounded = budget(book, clock, calls_per_minute=1, tokens_per_minute=100)
    one = bounded.admit(METRIC)
    bounded.correct(one, 0.0, 0, 0)
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


# --- live


def config(models: ScriptedModels, *metrics: Any, **judge: Any) -> dict[str, Any]:
    server = {"base_url": models.url, "model": "scripted", "max_concurrency": 1}
    return {"judge": {**server, **judge}, "metrics": list(metrics) or [METRIC], "inline": {"metrics": []}}


def results(rig: Rig, metric: str = METRIC) -> dict[str, float]:
    return {key[2]: value for key, value in rig.count(semconv.RESULTS).items() if key[0] == metric}


def drain_until(rig: Rig, scores: int) -> None:
    """Wait until so many scores are there, while other jobs wait for the budget."""
    end = time.monotonic() + 30
    while sum(results(rig).values()) < scores and time.monotonic() < end:
        assert not rig.engine.drain(0.2, judges=True)
    assert not rig.engine.drain(0.2, judges=True)


@pytest.mark.slow
def test_gates_and_rule_hits_use_what_is_kept_for_them(models: ScriptedModels) -> None:
    models.play(*[GOOD] * 20)
    sampled = {METRIC: {}, "sample": {"rate": 1, "always_if": "agent == 'vip'"}}
    with Rig(config(models, sampled, budget={"calls_per_hour": 10, "soft": 0.5}), clock=FakeClock()) as rig:
        for _ in range(10):
            rig.run()
        drain_until(rig, 5)
        assert results(rig) == {"pass": 5}
        for _ in range(3):
            rig.run("vip")
        drain_until(rig, 8)
        by_agent = {key[1]: value for key, value in rig.count(semconv.RESULTS).items()}
        assert by_agent == {"bot": 5, "vip": 3}


def test_tokens_are_bounded_and_reported(models: ScriptedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    models.play(*[GOOD] * 5)
    answer = models.answer

    def with_usage(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, found = answer(path, body)
        return status, {**found, "usage": {"prompt_tokens": 900, "completion_tokens": 100}}

    monkeypatch.setattr(models, "answer", with_usage)
    clock = FakeClock()
    with Rig(config(models, budget={"tokens_per_minute": 2_500}), clock=clock) as rig:
        for _ in range(3):
            rig.run()
        assert not rig.engine.drain(1, judges=True)
        assert results(rig) == {"pass": 2}
        assert rig.engine.telemetry.read(semconv.BUDGET_TOKENS).values == {("", "minute"): 500}
        clock.advance(62)
        assert rig.engine.drain(10, judges=True)
        assert results(rig) == {"pass": 3}


@pytest.mark.parametrize(
    "unread", ["I cannot say.", f"It asks for {json.dumps(GOOD)}, which I refuse."], ids=["words", "a quotation"]
)
def test_the_request_that_repairs_a_reply_is_one_of_the_calls(models: ScriptedModels, unread: str) -> None:
    models.play(unread, GOOD, unread, GOOD)
    clock = FakeClock()
    with Rig(config(models, budget={"calls_per_hour": 2}), clock=clock) as rig:
        rig.run()
        rig.run()
        assert not rig.engine.drain(1, judges=True)
        assert (results(rig), len(models.requests)) == ({"pass": 1}, 2)
        assert rig.engine.telemetry.read(semconv.BUDGET_CALLS).values == {("", "hour"): 0}
        assert {key: n for key, n in rig.count(semconv.JUDGE_REQUESTS).items() if key != ("gated",)} == {
            ("ok",): 1,
            ("unreadable",): 1,
        }
        clock.advance(3_661)
        assert rig.engine.drain(10, judges=True)
        assert (results(rig), len(models.requests)) == ({"pass": 2}, 4)


def test_no_reply_is_repaired_past_the_budget(models: ScriptedModels) -> None:
    models.play(*["I cannot say."] * 9)
    with Rig(config(models, budget={"calls_per_hour": 3, "soft": 1.0}), clock=FakeClock()) as rig:
        for _ in range(3):
            rig.run()
        assert not rig.engine.drain(1, judges=True)
        assert (results(rig), len(models.requests)) == ({"error": 2}, 3)
        errors = [event.attributes[semconv.ERROR_TYPE] for event in rig.log_events()]
        assert errors == ["unreadable_reply"] * 2


def test_a_budget_outlives_the_process_with_its_queue(models: ScriptedModels, tmp_path: Path) -> None:
    models.play(*[GOOD] * 5)
    stored = config(models, budget={"calls_per_day": 2}, queue={"backend": "sqlite", "path": str(tmp_path / "q.db")})
    stored["exit_timeout"] = "200ms"
    clock = FakeClock()
    with Rig(stored, clock=clock) as rig:
        for _ in range(3):
            rig.run()
        until(lambda: results(rig) == {"pass": 2}, "two questions are paid for")
        assert not rig.engine.drain(0.1, judges=True)
        assert results(rig) == {"pass": 2}
    with Rig(stored, clock=clock) as rig:
        assert not rig.engine.drain(0.3, judges=True)
        assert rig.engine.telemetry.read(semconv.BUDGET_CALLS).values == {("", "day"): 0}
        assert len(models.requests) == 2
        clock.advance(90_000)
        assert rig.engine.drain(10, judges=True)
        # It waited longer than judge.queue.max_age.
        assert results(rig) == {"dropped": 1}


def test_a_price_in_the_configuration_lets_a_model_be_asked(models: ScriptedModels) -> None:
    models.play(GOOD)
    prices = {"scripted": {"input": 1, "output": 1}}
    with Rig(config(models, budget={"metrics": {METRIC: {"usd_per_day": 1}}}, prices=prices)) as rig:
        rig.run()
        assert rig.engine.drain(10, judges=True)
        assert results(rig) == {"pass": 1}


def test_only_the_metric_whose_dollars_are_bounded_needs_a_price(models: ScriptedModels) -> None:
    models.play(GOOD)
    with Rig(config(models, METRIC, OTHER, budget={"metrics": {METRIC: {"usd_per_day": 1}}})) as rig:
        rig.run()
        assert rig.engine.drain(10, judges=True)
        assert (results(rig), results(rig, OTHER)) == ({"error": 1}, {"pass": 1})


def test_a_bound_for_a_metric_that_is_not_judged_is_refused(models: ScriptedModels) -> None:
    given: Mapping[str, Any] = config(models, budget={"metrics": {"llm_relevanc": {"usd_per_day": 1}}})
    with pytest.raises(ConfigError, match=r"judge\.budget\.metrics\.llm_relevanc: .*Did you mean llm_relevance"):
        engine_from(load_config({**given, "outlets": {"prometheus": None}}, {}))


def test_a_budget_s_configuration_is_written_as_it_was_read() -> None:
    budget_ = {"usd_per_day": 5, "tokens_per_minute": 100, "soft": 0.5, "metrics": {METRIC: {"usd_per_hour": 0.25}}}
    read = load_config({"judge": {"budget": budget_}}, {})
    assert load_config(read.to_dict(), {}) == read
    assert read.to_dict()["judge"]["budget"]["metrics"][METRIC]["usd_per_hour"] == 0.25
