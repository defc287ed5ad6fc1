"""Find the model call whose prompt lost the instructions or the user's message, for example when a history was shortened."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.turn import Message
from ...dialects.step import AGENT, TOOL
from .llm_calls import TurnCalls

_RUNS = (AGENT, TOOL)
_SPEAKERS = ("system", "developer", "user")


def instructions_lost_at(turn: TurnCalls) -> int | None:
    """Return the place of the first such call. Only calls count that go on from an answer of the same agent and model, because
    helper calls have other prompts.
    """
    if len(turn.main_llm) < 2:
        return None
    known: dict[tuple[int, str | None], _KnownMessages] = {}
    for step in turn.main_llm:
        if turn.own_llm is not turn.llm and step not in turn.own_llm:  # a call of another service
            continue
        run = turn.nearest(step, _RUNS)
        key = (run.record.span_id if run is not None else 0, step.request_model or step.model)
        before = known.setdefault(key, _KnownMessages())
        prompt = turn.decode(step, "input_messages", "user")
        system = turn.decode(step, "system", "system").messages if step.system is not None else []
        if before.lost_in(prompt.messages, system) and not prompt.truncated and not prompt.hidden:
            return [call.span_id for call in turn.llm_calls()].index(f"{step.record.shown_id:016x}")
        before.add(prompt.messages, system, turn.outputs(step))
    return None


# prompt 1: system "Be brief", user "Book a table"   known: "Book a table"
# answer 1: requests a tool with the call id c1      known: c1
# prompt 2: the request of c1 and its result         repeats c1 without instructions and user message: they are lost
class _KnownMessages:
    """Messages in the prompts and answers of an agent's calls so far."""

    def __init__(self) -> None:
        self._speakers: set[str] = set()
        self._known: set[str] = set()

    def add(self, prompt: list[Message], system: list[Message], answers: list[Message]) -> None:
        if not self._known:  # later prompts repeat the first one and the answers
            self._known.update(_repeatable_texts(prompt))
        self._known.update(_repeatable_texts(answers))
        if len(self._speakers) < 2:
            self._speakers.update(_speakers(prompt, system))

    def lost_in(self, prompt: list[Message], system: list[Message]) -> bool:
        """Return True if a prompt continues an earlier one without its instructions or user message."""
        only_user = all(one.role == "user" and not one.tool_results for one in prompt)
        if only_user or self._known.isdisjoint(_repeatable_texts(prompt)):
            return False
        missing = set(self._speakers)
        for speaker in _speakers(prompt, system):
            missing.discard(speaker)
            if not missing:
                return False
        return bool(missing)


def _speakers(prompt: list[Message], system: list[Message]) -> Iterator[str]:
    """Yield ``system`` and ``user`` for the instructions and the user's messages in a prompt."""
    if any(one.content for one in system):
        yield "system"
    for one in prompt:
        if one.role in _SPEAKERS and one.content and not one.tool_results:
            yield "user" if one.role == "user" else "system"


def _repeatable_texts(messages: list[Message]) -> Iterator[str]:
    """Yield the texts of user and model, and the ids of tool requests, by which a later prompt repeats messages."""
    for one in messages:
        if one.role in ("user", "assistant"):
            if one.content:
                yield one.content
            yield from (call.call_id for call in one.tool_calls if call.call_id)
