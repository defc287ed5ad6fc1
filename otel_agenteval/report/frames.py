"""Turns and scores for notebooks, as tables and pandas DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.extras import require
from ..core.score import Score, scores_html
from ..core.turn import Turn
from ..evaluation.first_fault import Fault, failed_metric, first_fault
from ..outlets.accounting import outcome
from ..outlets.turn_text import number_of

if TYPE_CHECKING:
    from ..outlets.store.reader import VerdictRow

_MOST_SHOWN = 20


class ScoredTurns(Sequence[tuple[Turn, Sequence[Score]]]):
    """Turns with their scores, in the order of the turns."""

    def __init__(self, members: Iterable[tuple[Turn, Sequence[Score]]]) -> None:
        self._members = list(members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, index: Any) -> Any:
        found = self._members[index]
        return ScoredTurns(found) if isinstance(index, slice) else found

    def __iter__(self) -> Iterator[tuple[Turn, Sequence[Score]]]:
        return iter(self._members)

    @property
    def turns(self) -> list[Turn]:
        """The turns without scores."""
        return [turn for turn, _ in self._members]

    def frame(self) -> Any:
        """Return a pandas DataFrame with one row per score.

        The columns include ``turn_id``, ``agent``, ``metric``, ``value``, ``passed``, ``status``, and ``reason``. ``passed`` is
        None if the score has no verdict.

        Raises:
            MissingExtra: If pandas isn't installed.
        """
        rows = [
            {
                "turn_id": turn.turn_id, "agent": turn.agent, "metric": score.metric, "value": score.value, "passed": score.verdict,
                "label": score.label, "status": score.status, "reason": score.detail.get("reason"), "threshold": score.threshold,
                "unit": score.unit, "direction": score.direction, "policy": score.policy, "error_type": score.error_type,
                "explanation": score.explanation, "detail": score.detail, "result_id": score.result_id or None,
            }
            for turn, scores in self._members for score in scores
        ]  # fmt: skip
        return _frame(rows, _SCORE_COLUMNS)

    def table(self) -> Any:
        """Return a pandas DataFrame of values with one row per turn and one column per metric.

        Raises:
            MissingExtra: If pandas isn't installed.
        """
        rows = [{score.metric: score.value for score in scores} for _, scores in self._members]
        names = list(dict.fromkeys(score.metric for _, scores in self._members for score in scores))
        found = _frame(rows, names)
        found.index = [turn.turn_id for turn in self.turns]
        found.index.name = "turn_id"
        return found

    def first_faults(self) -> Any:
        """Return a pandas DataFrame of the failed turns, each with the first step that went wrong.

        The columns are ``turn_id``, ``agent``, ``kind``, ``path``, ``reason``, ``step``, and ``error``. If no rule finds a fault,
        all values except ``turn_id`` and ``agent`` are missing (NaN).

        Raises:
            MissingExtra: If pandas isn't installed.
        """
        rows = [
            {"turn_id": turn.turn_id, "agent": turn.agent, **(fault._asdict() if fault is not None else {})}
            for turn, scores in self._members
            if any(score.verdict is False for score in scores)
            for fault in [first_fault(turn, scores)]
        ]
        return _frame(rows, ("turn_id", "agent", *Fault._fields))

    def differences(self, metric: str | None = None) -> Any:
        """Return a pandas DataFrame of facts that are more frequent in failed turns, for all metrics or only for ``metric``.

        The columns are ``metric``, ``fact``, ``failed``, ``passed``, ``low``, ``high``, ``p_adjusted``, ``turns``, and ``few``.
        ``failed`` and ``passed`` are the shares of failed and passed turns with the fact. ``low`` and ``high`` are the interval of
        their difference. ``turns`` is the number of failed turns with the fact. ``few`` is True if this number is small.

        Raises:
            MissingExtra: If pandas isn't installed.
        """
        from .differences import differences_of, facts_row, verdicts_in

        verdicts: dict[str, list[VerdictRow]] = {}
        for turn, scores in self._members:
            for name, row in verdicts_in(facts_row(turn), scores).items():
                verdicts.setdefault(name, []).append(row)
        rows = [
            {
                "metric": name, "fact": str(one), "failed": one.bad, "passed": one.rest, "low": one.interval[0], "high": one.interval[1],
                "p_adjusted": one.p, "turns": one.turns[0], "few": one.few,
            }
            for name, found in verdicts.items() if metric in (None, name)
            for one in differences_of(name, found).found.findings
        ]  # fmt: skip
        return _frame(rows, _DIFFERENCE_COLUMNS)

    def failure_modes(self) -> Any:
        """Return a pandas DataFrame of the failed turns, grouped by their first fault.

        The columns are ``id``, ``kind``, ``step``, ``error``, ``turns``, ``rate``, ``low``, ``high``, and ``examples``. ``rate`` is
        the share of all turns. ``low`` and ``high`` are the ends of the rate's 95 % interval.

        Raises:
            MissingExtra: If pandas isn't installed.
        """
        from .failure_modes import FailedTurn, counted, modes_of

        failed = [
            FailedTurn(turn.turn_id, 0.0, fault)
            for turn, scores in self._members
            if any(score.verdict is False for score in scores)
            for fault in [first_fault(turn, scores) or failed_metric(scores)]
            if fault is not None
        ]
        rows = [
            {
                "id": one.fault.mode, "kind": one.fault.kind, "step": one.fault.step, "error": one.fault.error, "turns": one.turns,
                "rate": one.rate, "low": one.interval[0], "high": one.interval[1], "examples": one.examples,
            }
            for one in modes_of(counted(failed, (0, len(self)), 0.0))
        ]  # fmt: skip
        return _frame(rows, _MODE_COLUMNS)

    def _repr_html_(self) -> str:
        shown = [scores_html(scores, f"turn {turn.turn_id}") for turn, scores in self._members[:_MOST_SHOWN]]
        more = [f"<p>and {number_of(len(self) - _MOST_SHOWN, 'more turn')}</p>"] if len(self) > _MOST_SHOWN else []
        return "\n".join([*shown, *more])

    def __repr__(self) -> str:
        scores = [score for _, found in self._members for score in found]
        failed = sum(outcome(score) == "fail" for score in scores)
        return f"ScoredTurns({number_of(len(self), 'turn')}, {number_of(len(scores), 'score')}, {failed:,} failed)"


_SCORE_COLUMNS = (
    "turn_id", "agent", "metric", "value", "passed", "label", "status", "reason", "threshold", "unit", "direction", "policy", "error_type",
    "explanation", "detail", "result_id",
)  # fmt: skip
_DIFFERENCE_COLUMNS = ("metric", "fact", "failed", "passed", "low", "high", "p_adjusted", "turns", "few")
_MODE_COLUMNS = ("id", "kind", "step", "error", "turns", "rate", "low", "high", "examples")
_AMOUNTS = ("input_tokens", "output_tokens", "cost_usd", "cost_estimated")
_TURN_COLUMNS = (
    "turn_id", "trace_id", "conversation_id", "user_id", "service", "agent", "framework", "model", "start", "duration_s", "close_reason",
    "complete", "error", "input", "output", "llm_calls", "tool_calls", *_AMOUNTS,
)  # fmt: skip


def turns_frame(turns: Iterable[Turn]) -> Any:
    """Return a pandas DataFrame with one row per turn.

    The columns include IDs, agent, model, time, duration, input, output, tools, tokens, and cost.

    Raises:
        MissingExtra: If pandas isn't installed.
    """
    rows = []
    for turn in turns:
        row: dict[str, Any] = {name: getattr(turn, name) for name in _TURN_COLUMNS if name in Turn.__annotations__}
        row |= {
            "model": next((call.model for call in reversed(turn.llm_calls) if call.model), None),
            "error": None if turn.error is None else turn.error.type or turn.error.message or "unknown",
            "llm_calls": turn.llm_call_count,
            "tool_calls": None if turn.tool_calls is None else [call.name for call in turn.tool_calls],
            "input_tokens": None if turn.usage is None else turn.usage.input_tokens,
            "output_tokens": None if turn.usage is None else turn.usage.output_tokens,
        }
        rows.append(row)
    return _frame(rows, _TURN_COLUMNS)


def _frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Any:
    pandas = require("pandas", feature="data frames", extra="notebook")
    return pandas.DataFrame(list(rows), columns=list(columns))
