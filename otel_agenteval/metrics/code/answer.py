"""Did the turn end with a whole answer? Questions that need no reference, only the answer and the model calls behind it.

In every boolean of this family 1.0 means healthy (passed) and 0.0 that the fault was found. The *answering call* is the
last LLM call of the turn. Model calls that are only known by their number say nothing here.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ...core.turn import LlmCall, Turn
from ..registry import Result, metric, skip

_SCAN_LIMIT = 100_000

_CUT = frozenset({
    "length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_new_tokens", "max_length", "model_length",
    "token_limit", "token_limit_reached", "limit", "incomplete", "context_length_exceeded", "model_context_window_exceeded",
})  # fmt: skip
_FILTERED = frozenset({
    "content_filter", "content_filtered", "content_filter_error", "safety", "image_safety", "refusal", "blocklist",
    "prohibited_content", "image_prohibited_content", "guardrail_intervened", "guardrails", "recitation", "image_recitation",
    "spii", "error_toxic", "model_armor", "sensitive",
})  # fmt: skip
_FILTER_ERRORS = (
    "contentfilter", "contentpolicy", "responsibleai", "guardrail", "promptblocked", "blockedprompt", "prohibitedcontent",
    "safetyfilter", "moderationblocked",
)  # fmt: skip
# Printable for Unicode, yet nothing to read: Hangul fillers and the blank braille pattern.
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
# A model's dated or numbered release: the request says "m", the response "m-2024-08-06".
_RELEASE = re.compile(r"[-@](?:[0-9]{3}[0-9-]*|latest)")


@metric(needs=("output",), boolean=True, inline=True, groups=("quality",))
def code_empty_answer(turn: Turn) -> bool | Result:
    r"""The turn did not end well with nothing to read in its answer (1.0 = there is an answer, 0.0 = it is empty).

    White space, control characters and invisible characters (zero width, fillers, direction marks) are nothing to read.
    A turn that ended in an error is ``code_turn_error``'s subject and skipped here. An answer that is a picture or a
    file passes with ``detail.attachments``.

    | turn | result |
    |---|---|
    | output ``"Paris."`` | passes |
    | output ``""`` or ``" \n\u200b"`` | fails |
    | output ``""``, the last assistant message has an image | passes |
    | output ``""`` and an error | skipped ``turn_error`` |
    | output unknown | skipped ``missing:output`` |
    """
    if turn.error is not None:
        return skip("turn_error")
    if _readable(turn.output or ""):
        return True
    message = turn.messages[-1] if turn.messages else None
    if message is not None and message.role == "assistant" and message.attachments:
        return Result(True, detail={"attachments": len(message.attachments)})
    return Result(False, explanation="the turn ended without an error and with nothing to read")


def _readable(text: str) -> bool:
    first = text[:1]
    if first.isprintable() and first > " " and first not in _BLANKS:
        return True
    return any(ch.isprintable() and not ch.isspace() and ch not in _BLANKS for ch in text[:_SCAN_LIMIT])


@metric(boolean=True, inline=True, groups=("quality",))
def code_truncated_answer(turn: Turn) -> bool | Result:
    """The answering LLM call was not cut off by a token limit (1.0 = it finished, 0.0 = it was cut).

    Reads the finish reason of the last LLM call in any provider's spelling: ``length``, ``max_tokens``,
    ``MAX_TOKENS``, ``max_output_tokens``, ``model_length``, ``incomplete``, … Earlier calls do not count: a cut reasoning
    step can still be followed by a whole answer. ``detail.finish_reason`` and ``detail.model`` name what was found.

    | turn | result |
    |---|---|
    | last call ``stop``, ``end_turn``, ``tool_calls`` | passes |
    | last call ``length`` or ``FinishReason.MAX_TOKENS`` | fails |
    | first call ``length``, last call ``stop`` | passes |
    | the last call states no reason, or there is none | skipped ``missing:finish_reason`` |
    """
    call = turn.llm_calls[-1] if turn.llm_calls else None
    reason = _reason_of(call) if call is not None else None
    if call is None or reason is None:
        return skip("missing:finish_reason")
    if reason not in _CUT:
        return True
    why = f"the answering call stopped by {call.finish_reason}"
    return Result(False, explanation=why, detail={"finish_reason": call.finish_reason, "model": call.model})


@metric(boolean=True, inline=True, groups=("safety",))
def code_content_filtered(turn: Turn) -> bool | Result:
    """No LLM call was stopped by a content filter, guardrail or refusal (1.0 = none was, 0.0 = one was).

    Looks at the finish reason of every LLM call (``content_filter``, ``safety``, ``refusal``, ``blocklist``,
    ``prohibited_content``, ``guardrail_intervened``, ``recitation``, ``spii``, … in any spelling) and at error types of
    calls and turn that say so (``content_policy_violation``, ``ContentFilterFinishReasonError``,
    ``GuardrailTripwireTriggered``). A refusal that the model words itself with finish reason ``stop`` is not seen.
    ``detail.reason`` has the reason as written, ``detail.model`` the call's model.

    | turn | result |
    |---|---|
    | all calls ``stop`` or ``tool_calls`` | passes |
    | any call ``content_filter`` or ``SAFETY`` | fails |
    | a call failed with ``content_policy_violation`` | fails |
    | no call states a reason and no error says so | skipped ``missing:finish_reason`` |
    """
    stated = False
    for call in turn.llm_calls:
        reason = _reason_of(call)
        if reason is not None:
            stated = True
            if reason in _FILTERED:
                return _filtered(call.finish_reason, model=call.model)
        if call.error is not None and _says_filtered(call.error.type):
            return _filtered(call.error.type, model=call.model)
    if turn.error is not None and _says_filtered(turn.error.type):
        return _filtered(turn.error.type)
    return stated or skip("missing:finish_reason")


def _filtered(reason: str | None, **detail: str | None) -> Result:
    return Result(False, explanation=f"a model call was stopped by {reason}", detail={"reason": reason, **detail})


@metric(boolean=True, inline=True, groups=("quality",))
def code_turn_error(turn: Turn) -> bool | Result:
    """The turn itself did not end in an error (1.0 = no error, 0.0 = it failed).

    Only the turn's own error counts: a failed tool or a failed model call from which the agent recovered does not.
    ``detail.type`` is the error's type, ``unknown`` when there is only the fact. The message can quote content and
    is left out.

    | turn | result |
    |---|---|
    | no error | passes |
    | a tool failed, the turn did not | passes |
    | error ``TimeoutError`` | fails |
    """
    if turn.error is None:
        return True
    kind = turn.error.type or "unknown"
    return Result(False, explanation=f"the turn ended in {kind}", detail={"type": kind})


@metric(unit="{item}", needs=("llm_calls",), direction="down", groups=("cost",))
def code_llm_retries(turn: Turn) -> int | Result:
    """Number of LLM calls that failed and were followed by another call of the same model.

    These are retries by the application or framework. Retries inside a provider's SDK are one call in the telemetry and
    cannot be seen. A dated release is the same model (``m`` and ``m-2024-08-06``); a fallback to another model is not a retry,
    nor is a failed call that names no model. No default threshold. ``detail.errors`` counts the retried error types.

    | LLM calls | value |
    |---|---|
    | ``m`` ok, ``m`` ok | 0 |
    | ``m`` failed, ``m`` failed, ``m`` ok | 2 |
    | ``m`` failed, ``other`` ok | 0 |
    | ``m`` ok, ``m`` failed | 0 |
    | only their number is known, or none | skipped ``missing:llm_calls`` |
    """
    calls = turn.llm_calls
    if not calls:
        return skip("missing:llm_calls")
    errors: dict[str, int] = {}
    later: set[str] = set()
    for call in reversed(calls):
        if not isinstance(call.model, str):
            continue
        if call.error is not None and any(_same_model(call.model, other) for other in later):
            kind = call.error.type or "unknown"
            errors[kind] = errors.get(kind, 0) + 1
        later.add(call.model)
    return Result(sum(errors.values()), detail={"errors": errors}) if errors else 0


@metric(unit="s", direction="down", groups=("cost",))
def code_time_to_first_token(turn: Turn) -> Result:
    """Seconds from the request of the answering LLM call to its first token.

    This is what the model adds to the wait before the answer begins to appear; the steps before that call are not in
    it (see ``code_latency``). ``detail.first_call`` has the same of the first LLM call that states one, whatever it
    was for. Only streamed calls state it. No default threshold.

    | LLM calls | value |
    |---|---|
    | 0.8 s (tool choice), 0.3 s (answer) | 0.3, ``first_call`` 0.8 |
    | 0.8 s, last call states none | skipped ``missing:time_to_first_token`` |
    | none | skipped ``missing:time_to_first_token`` |
    """
    calls = turn.llm_calls
    seconds = calls[-1].time_to_first_token_s if calls else None
    if seconds is None or not seconds >= 0:  # also refuses nan
        return skip("missing:time_to_first_token")
    first = next((call.time_to_first_token_s for call in calls if call.time_to_first_token_s is not None), seconds)
    return Result(seconds, detail={"first_call": first})


def _reason_of(call: LlmCall) -> str | None:
    reason = call.finish_reason
    return _plain_reason(reason) if reason and isinstance(reason, str) else None


@lru_cache(maxsize=256)
def _plain_reason(reason: str) -> str:
    """``FinishReason.MAX_TOKENS``, ``FINISH_REASON_MAX_TOKENS`` and ``max-tokens`` → ``max_tokens``."""
    plain = reason.strip().casefold().rpartition(".")[2].replace("-", "_").replace(" ", "_")
    return plain.removeprefix("finish_reason_")


def _says_filtered(error_type: str | None) -> bool:
    if not isinstance(error_type, str):
        return False
    plain = "".join(ch for ch in error_type[:200].casefold() if ch.isalnum())
    return any(word in plain for word in _FILTER_ERRORS)


def _same_model(one: str, other: str) -> bool:
    if one == other:
        return True
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return long.startswith(short) and (len(long) == len(short) or _RELEASE.fullmatch(long, len(short)) is not None)
