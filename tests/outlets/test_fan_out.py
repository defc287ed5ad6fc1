"""Requirements of every outlet, and the fan-out to all outlets."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.config.outlets import OutletOptions
from otel_agenteval.config.section import options_of
from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.outlets.base import Outlet, RecordAccount, Setup
from otel_agenteval.outlets.fan_out import MODULES, FanOut, outlets_from
from otel_agenteval.statistics.change import Found
from otel_agenteval.statistics.changes import Change
from tests.outlets.factories import scored_turn
from tests.support.rig import Rig
from tests.support.servers import until


class Least(Outlet):
    """The minimum that a new outlet must implement."""

    name = "least"

    def __init__(self) -> None:
        self.batches: list[Sequence[ScoredTurn]] = []

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        self.batches.append(batch)


class Asked(Least):
    """Records its calls in order, and raises in the given calls."""

    def __init__(self, *, raises: str = "", full: bool = False) -> None:
        super().__init__()
        self.name = "asked"
        self.calls: list[Any] = []
        self._raises = raises
        self._full = full

    def _called(self, what: str, *given: Any) -> None:
        self.calls.append((what, *given) if given else what)
        if what == self._raises:
            raise OSError("SECRETS")

    @property
    def full(self) -> bool:
        return self._full

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        self._called("emit")

    def start(self) -> None:
        self._called("start")

    def record_outcome(self, turn_id: str, metric: str, outcome: str) -> None:
        self._called("record_outcome", turn_id, metric, outcome)

    def keep_all(self) -> None:
        self._called("keep_all")

    def flush(self, timeout: float) -> bool:
        self._full = False
        self._called("flush")
        return True

    def begin_exit(self) -> None:
        self._called("begin_exit")

    def close(self) -> None:
        self._called("close")

    def after_fork_in_child(self) -> None:
        self._called("after_fork_in_child")


CALLS = [
    "after_fork_in_child",
    "start",
    "keep_all",
    ("record_outcome", "t", "llm_x", "sampled out"),
    "emit",
    "flush",
    "begin_exit",
]


@pytest.mark.parametrize("what", ["", *(call for call in CALLS if isinstance(call, str)), "close"])
def test_an_outlet_that_fails_is_counted_and_the_next_one_is_asked_all_the_same(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken, sound = Asked(raises=what), Asked()
    all_of_it = FanOut([broken, sound], Telemetry())
    all_of_it.after_fork_in_child()
    all_of_it.start()
    all_of_it.keep_all()
    all_of_it.record_outcome("t", "llm_x", "sampled out")
    all_of_it.emit([scored_turn(Score("code_a", 1.0))])
    all_of_it.flush(1.0)
    all_of_it.begin_exit()
    all_of_it.close()
    assert sound.calls == broken.calls == [*CALLS, "close"]
    assert all_of_it.errors == ({("asked", "OSError"): 1} if what else {})
    assert "SECRETS" not in caplog.text


def test_an_outlet_that_was_behind_is_waited_for_once() -> None:
    outlet = Asked(raises="emit")
    all_of_it = FanOut([outlet], Telemetry())
    all_of_it.emit([scored_turn(Score("code_a", 1.0))])
    all_of_it.catch_up()
    all_of_it.catch_up()
    assert outlet.calls == ["emit", "flush"]


def test_while_an_outlet_is_full_nothing_may_be_emitted_where_everything_is_kept() -> None:
    outlet = Asked(full=True)
    all_of_it = FanOut([outlet], Telemetry())
    assert all_of_it.can_emit()
    all_of_it.keep_all()
    assert all_of_it.can_emit(), "its flush made room"
    assert outlet.calls == ["keep_all", "flush"]


def test_an_outlet_that_is_added_later_keeps_all_too() -> None:
    all_of_it = FanOut([], Telemetry())
    all_of_it.keep_all()
    late = Asked()
    all_of_it.add(late)
    assert late.calls == ["keep_all"]


def test_what_a_provider_flushes_at_exit_is_not_flushed_by_us() -> None:
    own, providers = Asked(), Asked()
    providers.flushed_at_exit = False
    all_of_it = FanOut([own, providers], Telemetry())
    assert all_of_it.flush(1.0, at_exit=True)
    assert (own.calls, providers.calls) == (["flush"], [])


def test_scores_are_redacted_before_the_first_outlet_sees_them_and_counted_once() -> None:
    outlets, telemetry = [Least(), Least()], Telemetry()
    all_of_it = FanOut(outlets, telemetry, ("email",))
    scored = scored_turn(Score("code_a", 1.0, explanation="Ask anna@shop.example."))
    all_of_it.redact(scored)
    all_of_it.emit([scored])
    for outlet in outlets:
        [[seen]] = outlet.batches
        assert seen.scores[0].explanation == "Ask [EMAIL_1]."
    assert sum(telemetry.read(semconv.RESULTS).values.values()) == 1


def test_the_accounts_are_of_the_outlets_that_keep_one() -> None:
    keeps = Least()
    keeps.records = RecordAccount("keeps")
    assert FanOut([Least(), keeps], Telemetry()).records() == {"least": keeps.records}


def test_a_fault_counts_as_a_lost_span_only_where_it_costs_one() -> None:
    with Rig({"inline": {"metrics": []}}) as rig:
        rig.engine.failed("judge_queue", ConnectionError())
        assert rig.count(semconv.SPANS_DROPPED) == {}
        rig.engine.failed("on_end", RuntimeError())
        rig.engine.failed("on_end", RuntimeError())
        assert rig.count(semconv.SPANS_DROPPED) == {("error",): 2}
        assert rig.count(semconv.FAULTS) == {("judge_queue",): 1, ("on_end",): 2}


# --- outlets as a configuration asks for them


def made(**options: Any) -> list[Outlet]:
    config = load_config({"outlets": {"log_events": False, "prometheus": None, **options}})
    return outlets_from(Setup(config, Telemetry(), lambda: "i-1", "0"))


def test_every_option_of_an_outlet_has_its_module_and_no_other() -> None:
    assert {*MODULES, "span_events"} == options_of(OutletOptions).keys(), "span events are written where the root ends"


@pytest.mark.parametrize("option", MODULES)
def test_each_module_makes_its_own_outlet(option: str, tmp_path: Path) -> None:
    wanted: dict[str, Any] = {
        "log_events": True, "prometheus": {"port": 0}, "otlp_metrics": True, "jsonl": str(tmp_path / "scores"),
        "otlp_file": str(tmp_path / "spans"),
        "webhook": {"url": "http://127.0.0.1:1"},
        "store": str(tmp_path / "store"), "console": True, "otlp": {"endpoint": "http://127.0.0.1:1"},
    }  # fmt: skip
    [outlet] = made(**{option: wanted[option]})
    assert outlet.name == option
    outlet.close()


def test_scores_leave_in_the_order_of_the_table(tmp_path: Path) -> None:
    outlets = made(jsonl=str(tmp_path / "scores"), log_events=True, otlp_metrics=True)
    assert [outlet.name for outlet in outlets] == ["log_events", "otlp_metrics", "jsonl"]


class Hanging(Least):
    """Blocks in each call until it is released."""

    name = "hanging"
    may_hang = True

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()
        self.announced: list[Change] = []

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        self.released.wait(60)
        super().emit(batch)

    def announce(self, change: Change, root: Root) -> None:
        self.announced.append(change)


def test_scores_and_changes_wait_for_an_outlet_that_hangs_and_for_no_other() -> None:
    hanging, least = Hanging(), Least()
    outlets = FanOut([hanging, least], Telemetry())
    change = Change("code_tool_success", "travel", "worse", Found("bets", 0.9, 0.5, (-0.5, -0.3), 1.0, 50.0), 2.0)
    outlets.emit([scored_turn()])
    outlets.emit([scored_turn()])
    outlets.announce(change, Root(1, 2))
    assert (len(hanging.batches), hanging.announced, len(least.batches)) == (0, [], 2)
    assert outlets.trouble_of(hanging).startswith("no answer for")
    hanging.released.set()
    until(lambda: outlets.flush(60), "it goes on")
    assert (len(hanging.batches), hanging.announced) == (2, [change])


def test_behind_an_outlet_that_hangs_nothing_is_lost_where_everything_is_kept() -> None:
    hanging = Hanging()
    outlets = FanOut([hanging], Telemetry())
    outlets.keep_all()
    for may_emit in (True, True, False):
        assert outlets.can_emit() is may_emit
        outlets.emit([replace(scored_turn(), size=20 << 20)])
    hanging.released.set()
    until(lambda: outlets.flush(60), "it goes on")
    assert (len(hanging.batches), outlets.errors) == (3, {("hanging", "TimeoutError"): 1})
