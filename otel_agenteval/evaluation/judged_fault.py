"""The first fault of a turn, chosen by a judge among the turn's steps. For turns that no rule decides."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..core.score import Score
from ..core.turn import Turn
from ..core.wellformed import bounded_name
from ..metrics.lib.replies import invalid, reason_of
from ..metrics.lib.steps import calls_as_text, failure_of, numbered_lines, one_line, shortened
from ..metrics.question import Answers
from .first_fault import OUTPUT, Fault, StepOrder, names_at
from .redaction import Redactor

_KINDS: Mapping[str, tuple[str, ...]] = {
    "tool_calls": ("tool_error", "invalid_arguments", "unknown_tool", "wrong_tool", "loop", "obeyed_injection"),
    "retrievals": ("empty_retrieval", "missing_document"),
    "handoffs": ("failed_handoff", "handoff_loop", "wrong_agent"),
    "llm_calls": ("model_error", "lost_instructions"),
    OUTPUT: ("changed_number", "invented_number", "invented_url", "leak", "truncated_answer", "refusal", "wrong_answer"),
}
"""The kinds of fault that each kind of step can have."""
_TASK = """\
Find the step at which the turn of an agent went wrong first. The turn failed the checks in "failed".
How: Read the request and the failed checks. Go through the steps in order. The first fault is the earliest step whose
  correction would let the turn succeed.
What counts: only what the material shows. A step that repeats or reports an earlier fault isn't the first.
What does not count: an error that a later step repaired; style and length.
If every step before the answer is right, the fault is in "output".
Kinds, by step:
"""
_REPLY = (
    '{"reason": "<one sentence: what is wrong at this step>", "path": "<path of one step>", "kind": "<one kind of this step>"}'
)
_TEXT_CHARS = 4_000
"""Characters of the request and of the answer."""
_DOCUMENT_CHARS = 500
"""Characters of a search's query and of its documents."""
_REASON_CHARS = 500


def judged_fault(turn: Turn, scores: Sequence[Score], judge: Answers, redact: Collection[str] = ()) -> Fault:
    """Return the first fault of a failed turn, from one judge call with redacted texts. Raises JudgeError without a readable
    reply, and MetricError for a path or kind that the turn doesn't have.
    """
    redactor = Redactor(redact)
    shown = Turn.from_dict(redactor.turn(turn.to_dict())) if redact else turn
    steps = dict(_steps_of(shown))
    order = StepOrder(shown)
    lines = [f"{path}: {steps[path]}" for path in sorted(steps, key=order.key)]
    failed = [score for score in scores if score.verdict is False]
    reply = judge.ask(
        "first_fault",
        _TASK + "\n".join(f"- {name}: {', '.join(kinds)}" for name, kinds in _KINDS.items()),
        {
            "request": shortened(shown.input or "", _TEXT_CHARS),
            "failed": "\n".join(f"{one.metric}: {redactor.text(one_line(one.explanation or ''))}" for one in failed),
            "steps": numbered_lines(lines),
        },
        _REPLY,
    )
    path, kind, reason = reply.get("path"), reply.get("kind"), reason_of(reply)
    if not isinstance(path, str) or path not in steps:
        raise invalid("path", f"the path of a step, such as {min(steps)}")
    kinds = _KINDS[path.partition("[")[0]]
    if kind not in kinds:
        raise invalid("kind", f"a kind of {path}: {', '.join(kinds)}")
    if reason is None:
        raise invalid("reason", "a sentence")
    step, error = (bounded_name(name) for name in names_at(shown, path))
    return Fault(str(kind), path, redactor.text(shortened(one_line(reason), _REASON_CHARS)), step, error)


def _steps_of(turn: Turn) -> Iterator[tuple[str, str]]:
    for at, call in enumerate(turn.tool_calls or ()):
        yield f"tool_calls[{at}]", calls_as_text([call]).removeprefix("1. ")
    for at, one in enumerate(turn.retrievals):
        texts = " | ".join(one_line(document.content) for document in one.documents if document.content)
        found = f"{len(one.documents)} documents: {shortened(texts, _DOCUMENT_CHARS)}"
        yield f"retrievals[{at}]", f'retrieval "{shortened(one_line(one.query or ""), _DOCUMENT_CHARS)}" → {found}'
    for at, handoff in enumerate(turn.handoffs):
        failed = " → failed" if handoff.success is False else ""
        yield f"handoffs[{at}]", f"{one_line(handoff.from_ or '(unknown)')} → {one_line(handoff.to or '(unknown)')}{failed}"
    for at, model in enumerate(turn.llm_calls):
        ended = f"error: {failure_of(model.error)}" if model.error is not None else one_line(model.finish_reason or "ok")
        yield f"llm_calls[{at}]", f"model {one_line(model.model or '(unknown)')} → {ended}"
    yield OUTPUT, shortened(one_line(turn.output or ""), _TEXT_CHARS) or "(no answer)"
