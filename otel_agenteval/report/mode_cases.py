"""Cases for ``otel-agenteval experiment``, created from a failure mode's turns.

A case created from a failed turn usually fails as long as the agent repeats the fault.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core import jsonio
from ..core.errors import ConfigError
from ..core.score import Score
from ..evaluation.datasets import parsed_value, rows_in
from ..metrics.bound_metric import BoundMetric
from ..metrics.registry import resolve
from ..outlets.store.reader import MOST_VERDICTS, StoreReader, Wanted, score_of_row

Parameters = Callable[[str], Mapping[str, Any]]
EXPECTED: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "tool_error": {"code_tool_success": {"repair_all": True}},
    "changed_number": {"code_ungrounded_numbers": {"threshold": 1.0}},
    "invented_number": {"code_ungrounded_numbers": {"threshold": 1.0}},
    "wrong_tool": {"code_tool_selection": {"threshold": 1.0}},
    "failed_handoff": {"code_handoff_success_rate": {"threshold": 1.0}},
}
"""For each kind of fault, metrics (with parameters) that detect the fault. They become gates of the turn's case if a run can evaluate them."""
_NOT_REFERENCES = frozenset((
    "case_id", "case_turn", "id", "case", "input", "metrics", "assert", "turns", "user", "max_turns", "references", "baggage:",
))  # fmt: skip
_MOST_EARLIER = 200
"""Maximum number of turns per conversation to search for earlier messages."""
_OF_LABELS = frozenset(("turn_id", "label", "good", "passed", "metric", "rating", "comment", "by", "at"))


class ModeCase(NamedTuple):
    row: dict[str, Any]
    asked: Sequence[str]
    """The user's earlier messages that the agent received with this turn."""

    def as_row(self, earlier: Sequence[str]) -> dict[str, Any]:
        """Return the case as a dataset row. ``earlier`` contains inputs of earlier turns, and is preferred over :attr:`asked`."""
        inputs = earlier or self.asked
        if not inputs:
            return self.row
        last = {name: value for name, value in self.row.items() if name != "case_id"}
        return {"case_id": self.row["case_id"], "turns": [*({"input": text} for text in inputs), last]}


def case_of(
    content: Mapping[str, Any], scores: Iterable[Score], kind: str, parameters: Parameters,
    labels: Mapping[str, Mapping[str, Any]],
) -> ModeCase | None:  # fmt: skip
    """Return a failed turn's case. ``content`` is redacted ``turn.v1``. Without an input or a possible gate, return None."""
    text, metrics = content.get("input"), gates_of(scores, kind, parameters)
    if not isinstance(text, str) or not text.strip() or not metrics:
        return None
    turn_id, given = str(content.get("turn_id") or ""), content.get("references") or {}
    known = {name: content.get(name) for name in ("ground_truth", "relevant_ids")} | given
    for name in (given.get("case_id"), turn_id):
        known |= labels.get(str(name), {})
    references = {name: value for name, value in known.items() if value is not None and name not in _NOT_REFERENCES}
    inputs = [str(one.get("content") or "") for one in content.get("messages") or () if one.get("role") == "user"]
    last = max((at for at, one in enumerate(inputs) if one == text), default=0)
    row = {"case_id": turn_id, "input": text, **references, "metrics": metrics}
    return ModeCase(row, [one for one in inputs[:last] if one.strip()])


def gates_of(scores: Iterable[Score], kind: str, parameters: Parameters) -> list[dict[str, Any]]:
    """Return a case's gates: the failed metrics and the metrics that detect the fault. Omit metrics that a run can't evaluate."""
    wanted: dict[str, dict[str, Any]] = {}
    for score in scores:
        if score.verdict is False:
            wanted[score.metric] = {} if score.threshold is None else {"threshold": score.threshold}
    for name, params in EXPECTED.get(kind, {}).items():
        wanted[name] = {**wanted.get(name, {}), **params}
    found = []
    for name, chosen in wanted.items():
        params = {**parameters(name), **chosen}
        own, _, series = name.partition(".")
        try:
            metric = resolve(own).metric
            usual = BoundMetric(metric, {key: value for key, value in params.items() if key != "threshold"}).threshold
            # For a few metrics, setting even the default threshold changes the verdict.
            if "threshold" not in metric.parameters or params.get("threshold") == usual:
                params.pop("threshold", None)
            bound = BoundMetric(metric, params)
            entry = {own: jsonio.loads(jsonio.dumps(params))}
        except (ConfigError, TypeError, ValueError):
            continue
        if bound.missing is None and not bound.inner:
            found.append({**entry, **({"name": series} if series else {}), "policy": "gate"})
    return found


def distinct(cases: Iterable[dict[str, Any]], most: int) -> Iterator[dict[str, Any]]:
    known: set[tuple[str, ...]] = set()
    for case in cases:
        if len(known) == most:
            return
        key = tuple(" ".join(str(turn["input"]).split()) for turn in case.get("turns", [case]))
        if key not in known:
            known.add(key)
            yield case


def stored_cases(
    reader: StoreReader, turns: Iterable[Mapping[str, Any]], most: int, parameters: Parameters,
    labels: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return up to ``most`` cases from failed turns with different inputs. Read at most :data:`MOST_VERDICTS` turns."""

    def cases() -> Iterator[dict[str, Any]]:
        for turn in itertools.islice(turns, MOST_VERDICTS):
            if turn["content"] and not turn["is_conversation"]:
                scores = map(score_of_row, reader.scores(turn["turn_id"]))
                case = case_of({**turn["content"], "turn_id": turn["turn_id"]}, scores, turn["fault"]["kind"], parameters, labels)
                if case is not None:
                    yield case.as_row(_earlier(reader, turn))

    return list(distinct(cases(), most))


def _earlier(reader: StoreReader, turn: Mapping[str, Any]) -> list[str]:
    if turn["conversation_id"] is None or turn["start"] is None:
        return []
    others = [
        one
        for one in reader.turns(Wanted(conversation_id=turn["conversation_id"]), _MOST_EARLIER)
        if one["tenant"] == turn["tenant"]
        and one["start"] is not None
        and one["start"] < turn["start"]
        and not one["is_conversation"]
    ]
    inputs = ((one["content"] or {}).get("input") for one in sorted(others, key=lambda one: one["start"]))
    return [text for text in inputs if isinstance(text, str) and text.strip()]


def references_in(labels: str) -> dict[str, dict[str, Any]]:
    """Return the references in a labels file (see :func:`references_of`), or raise ConfigError if the file can't be read."""
    return references_of(row for _, row in rows_in(labels, "--labels"))


def references_of(labels: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Map turn and case IDs to references: extra columns, text in ``value``, and the fields of a JSON object in ``comment``."""
    found: dict[str, dict[str, Any]] = {}
    for row in labels:
        given = {name: value for name, value in row.items() if name not in _OF_LABELS and value is not None}
        if not isinstance(given.get("value", ""), str):
            del given["value"]  # a value that isn't text is the correct score
        comment = parsed_value(row.get("comment"))
        given |= comment if isinstance(comment, dict) else {}
        turn = row.get("turn_id") or row.get("case_id") or row.get("id")
        if turn and given:
            found.setdefault(str(turn), {}).update(given)
    return found
