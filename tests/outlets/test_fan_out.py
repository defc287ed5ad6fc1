"""What every outlet is asked for, and what all of them are to the engine."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.scored_turn import ScoredTurn
from otel_agenteval.outlets.base import Outlet, RecordAccount
from otel_agenteval.outlets.fan_out import FanOut
from tests.outlets.factories import scored_turn
from tests.support.rig import Rig

PACKAGE = Path(inspect.getfile(Outlet)).parent.parent


class Least(Outlet):
    """All that a new outlet has to be."""

    name = "least"

    def __init__(self) -> None:
        self.batches: list[Sequence[ScoredTurn]] = []

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        self.batches.append(batch)


class Asked(Least):
    """Keeps what it was asked for, in order; raises where it is said to."""

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

    def note_outcome(self, turn_id: str, metric: str, outcome: str) -> None:
        self._called("note_outcome", turn_id, metric, outcome)

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


def test_a_new_outlet_implements_its_name_and_emit_alone() -> None:
    outlet = Least()
    all_of_it = FanOut([outlet], Telemetry())
    all_of_it.start()
    all_of_it.keep_all()
    all_of_it.note_outcome("t", "llm_x", "sampled out")
    assert all_of_it.can_emit()
    all_of_it.emit([scored_turn(Score("code_a", 1.0))])
    all_of_it.catch_up()
    all_of_it.after_fork_in_child()
    all_of_it.begin_exit()
    assert (all_of_it.flush(1.0), all_of_it.end_exit(1.0), all_of_it.records(), all_of_it.keeps_content) == (
        True,
        True,
        {},
        False,
    )
    all_of_it.close()
    assert len(outlet.batches) == 1
    assert not all_of_it.errors


def test_every_outlet_is_asked_for_everything_in_its_order() -> None:
    outlets = [Asked(), Asked()]
    all_of_it = FanOut(outlets, Telemetry())
    all_of_it.start()
    all_of_it.keep_all()
    all_of_it.note_outcome("t", "llm_x", "sampled out")
    all_of_it.emit([scored_turn(Score("code_a", 1.0))])
    all_of_it.flush(1.0)
    all_of_it.after_fork_in_child()
    all_of_it.begin_exit()
    all_of_it.end_exit(1.0)
    all_of_it.close()
    for outlet in outlets:
        assert outlet.calls == [
            "start", "keep_all", ("note_outcome", "t", "llm_x", "sampled out"), "emit", "flush", "after_fork_in_child", "begin_exit",
            "flush", "close",
        ]  # fmt: skip


@pytest.mark.parametrize("what", ["start", "keep_all", "emit", "flush", "after_fork_in_child", "begin_exit", "close"])
def test_an_outlet_that_fails_is_counted_and_the_next_one_is_asked_all_the_same(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken, sound = Asked(raises=what), Asked()
    all_of_it = FanOut([broken, sound], Telemetry())
    if what == "after_fork_in_child":
        all_of_it.after_fork_in_child()
    else:
        all_of_it.start()
        all_of_it.keep_all()
        all_of_it.emit([scored_turn(Score("code_a", 1.0))])
        all_of_it.flush(1.0)
        all_of_it.begin_exit()
        all_of_it.close()
    assert sound.calls == broken.calls
    assert what in sound.calls
    assert all_of_it.errors == {("asked", "OSError"): 1}
    assert [record.getMessage() for record in caplog.records] == [
        "outlet asked failed: OSError (further failures are only counted)"
    ]


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
    assert all_of_it.end_exit(1.0)
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


def test_a_running_engine_takes_another_outlet() -> None:
    outlet = Least()
    with Rig() as rig:
        rig.engine.outlets.add(outlet)
        rig.run()
        rig.scored()
    assert [scored.turn.agent for batch in outlet.batches for scored in batch] == ["bot"]


def test_no_outlet_is_probed_for_what_it_can_do() -> None:
    """The contract is the class: neither ``getattr`` with a default nor ``isinstance`` of a part of it, and no callback set afterwards."""
    asked = [*(PACKAGE / "engine").glob("*.py"), PACKAGE / "outlets" / "base.py", PACKAGE / "outlets" / "fan_out.py"]
    probes = [
        f"{file.name}:{node.lineno}"
        for file in asked
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in {"getattr", "hasattr", "isinstance"}
        and "outlet" in ast.unparse(node.args[0])
    ]
    assert probes == []
