"""Inputs of an experiment's cases. The dataset contains these inputs, or a simulated user creates them."""

from __future__ import annotations

import datetime
import inspect
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..core.errors import ConfigError
from ..core.fact_forms import SPEAKERS
from ..core.forms import as_given, keyed
from ..core.futures import result_of
from ..core.jsonio import rendered, text_of
from ..core.turn import Turn
from ..evaluation.datasets import ASKED, METRICS, Case, filled_in, id_of_inputs, metrics_in, renamed

COLUMNS = ("turns", "user", "max_turns")
"""Columns that describe a conversation. Other cases have an ``input`` column instead."""
_NO_REFERENCES = ("input", "references", *METRICS)
_INPUT_NAMES = ("user", *ASKED)
_MOST_TURNS = 10
_input_in = keyed({"input": as_given}, {"input": _INPUT_NAMES}, required=("input",), ignore_others=True)

Simulate = Callable[[list[dict[str, Any]], Mapping[str, Any]], Any]
"""A simulated user: a function that receives (earlier messages, case) and returns the next message, or None to end."""


@dataclass(slots=True)
class Call:
    case: Case
    references: dict[str, Any]
    history: list[dict[str, Any]]
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Unique ID of the call. Even concurrent experiments with the same cases don't share IDs."""
    start: datetime.datetime | None = None
    output: Any = None
    error: BaseException | None = None
    seconds: float = 0.0
    is_recorded: bool = False
    """True if the answer was recorded earlier, so that its duration is unknown."""
    turns: list[Turn] = field(default_factory=list)


def as_text(answer: Any) -> str:
    """Convert a task's return value to text. A dataclass or Pydantic model becomes JSON, unless it defines ``__str__``."""
    kind: Any = type(answer)
    is_record = hasattr(kind, "__dataclass_fields__") or hasattr(kind, "model_dump")
    is_own = getattr(kind.__str__, "__module__", "pydantic.main") != "pydantic.main"
    return str(answer) if is_record and is_own else rendered(answer)


class CaseScript(NamedTuple):
    case: Case
    inputs: Sequence[Case]
    """One case per turn, with the complete case's columns. A turn's columns replace columns with the same name."""
    user: str | None
    max_turns: int
    is_conversation: bool

    @classmethod
    def of(cls, case: Case, name: str) -> CaseScript:
        """Return a case's inputs. Raise ConfigError unless the case has exactly one of ``input``, ``turns``, and ``user``."""
        where = f"dataset: case {name}"
        columns = {column: case.columns[column] for column in case.columns.keys() - {*COLUMNS[:2]}}
        case = case._replace(references={"case_id": name, **case.references}, columns=columns)
        references = case.references
        given = {"input": case.input, **{column: references.get(column) for column in COLUMNS[:2]}}
        found = [column for column, value in given.items() if value is not None]
        if len(found) != 1:
            got = " and ".join(found) or "none"
            raise ConfigError(f"{where}: must have exactly one of input, turns, and user, got {got}")
        if found == ["input"]:
            return cls(case, [case], None, 1, False)
        turns, user = references.pop("turns", None), references.pop("user", None)
        if turns is not None:
            return cls(case, _inputs(turns, case, where), None, 0, True)
        if not isinstance(user, str) or not user.strip():
            raise ConfigError(f"{where}: user: must be text that describes the user and the goal, got {user!r}")
        user = filled_in(user, {**references, **case.columns})
        return cls(case, (), user, _max_turns(references.pop("max_turns", _MOST_TURNS), where), True)

    @property
    def cases(self) -> Sequence[Case]:
        return [self.case, *self.inputs]

    def calls(self, simulate: Simulate | None) -> Iterator[Call]:
        """Yield the calls to the task one at a time. The caller must set a call's ``output`` or ``error`` before it requests the
        next call. An error ends the conversation. Raise ValueError if the simulated user doesn't return a first message.
        """
        history: list[dict[str, Any]] = []
        inputs = iter(self.inputs) if self.user is None or simulate is None else self._simulated(simulate, history)
        for number, one in enumerate(inputs, 1):
            place = {"case_turn": number} if self.is_conversation else {}
            call = Call(one, {**one.references, **place}, list(history))
            yield call
            if call.error is not None:
                return
            history.append({"role": "user", "content": text_of(one.input)})
            if call.output is not None:
                history.append({"role": "assistant", "content": as_text(call.output)})

    def _simulated(self, simulate: Simulate, history: list[dict[str, Any]]) -> Iterator[Case]:
        case = {**self.case.references, "user": self.user, "max_turns": self.max_turns}
        for number in range(self.max_turns):
            said = simulate([dict(message) for message in history], case)
            if inspect.iscoroutine(said):
                said = result_of(said)
            if said is None or (isinstance(said, str) and not said.strip()):
                if not number:
                    raise ValueError("the simulated user returned no first message")
                return
            yield self.case._replace(input=said)


def cases_with_turns(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield each case in a dataset, followed by one case per turn. Raise ConfigError for an invalid case."""
    for _, script in scripts_of(cases):
        yield from script.cases


def scripts_of(cases: Iterable[Case]) -> Iterator[tuple[str, CaseScript]]:
    """Yield each case's ID and script. If a case lacks an ID, its ID is a hash of its inputs."""
    cases = list(cases)
    seen = Counter(case.case_id for case in cases)
    for number, case in enumerate(cases, 1):
        script, name = CaseScript.of(case, case.case_id or str(number)), case.case_id
        if not name:
            asked = [script.user] if script.user else [rendered(one.input) for one in script.inputs]
            script = CaseScript.of(case, name := id_of_inputs(asked, seen))
        yield name, script


def _inputs(turns: Any, case: Case, where: str) -> list[Case]:
    if not isinstance(turns, (list, tuple)) or not turns:
        raise ConfigError(f"{where}: turns: must be a list with at least one turn, got {turns!r}")
    found = []
    for number, columns in enumerate(_without_messages(turns, where)):
        at = f"{where}: turns[{number}]"
        if not isinstance(columns, Mapping):
            raise ConfigError(f"{at}: must be text, or an object with input and, optionally, references, got {columns!r}")
        asked = _input_in(columns, at)["input"]
        if asked == "":
            raise ConfigError(f"{at}.input: must not be empty, got ''")
        inner = columns.get("references")
        others = _NO_REFERENCES if "input" in columns else (*_NO_REFERENCES, *_INPUT_NAMES)
        references = {key: value for key, value in columns.items() if key not in others and value is not None}
        references |= inner if isinstance(inner, dict) else {}
        own = metrics_in({name: columns.get(name) for name in METRICS}, references, at)
        own_columns = {**case.columns, **renamed(references)}
        references = {**case.references, **references}
        found.append(
            case._replace(
                input=filled_in(asked, {**references, **own_columns}),
                references=references,
                columns=own_columns,
                metrics=case.metrics if own is None and "metrics" not in columns else own,
                place=f"{case.place}: turns[{number}]",
            )
        )
    return found


def _without_messages(turns: Sequence[Any], where: str) -> list[Any]:
    """Convert messages with roles to turns. Each turn begins with a user message, and its last answer becomes its ground truth."""
    found: list[Any] = []

    def content(turn: Mapping[str, Any]) -> Any:
        parts = turn["content"]
        if isinstance(parts, list) and all(isinstance(part, Mapping) and part.get("type", "text") == "text" for part in parts):
            return "\n".join(str(part.get("text", "")) for part in parts)
        return parts

    for number, turn in enumerate(turns):
        if not isinstance(turn, Mapping) or "role" not in turn or "content" not in turn:
            found.append({"input": turn} if isinstance(turn, str) else dict(turn) if isinstance(turn, Mapping) else turn)
        elif (speaker := SPEAKERS.get(str(turn["role"]))) is None:
            raise ConfigError(f"{where}: turns[{number}].role: must be one of {', '.join(SPEAKERS)}, got {turn['role']!r}")
        elif speaker == "input":
            found.append({"input": content(turn)})
        elif turn["content"] and found and isinstance(found[-1], dict):
            found[-1]["ground_truth"] = content(turn)
    return found


def _max_turns(given: Any, where: str) -> int:
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = 0.0
    if isinstance(given, bool) or number < 1 or not number.is_integer():
        raise ConfigError(f"{where}: max_turns: must be a positive whole number, got {given!r}")
    return int(number)


def columns_of(case: Case) -> set[str]:
    turns = case.references.get("turns") if case.input is None else None
    inner = (turn for turn in turns if isinstance(turn, Mapping)) if isinstance(turns, (list, tuple)) else ()
    found = (case.references.keys() & case.columns).union(*inner).difference(_NO_REFERENCES, _INPUT_NAMES, ("role", "content"))
    return found if case.input is not None else found - {*COLUMNS}
