"""These metrics check that the turn has a complete answer, or measure the turn's LLM calls. They don't need reference data.

Some turns contain only the number of LLM calls, not the calls themselves. Metrics that need the calls are skipped for these
turns.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ...core.turn import ErrorInfo, LlmCall, Turn
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
_TRIPWIRE = "Guardrail tripwire triggered"  # OpenAI Agents records no type
_CALLS_TOOLS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call", "toolcall"})
_LONGEST_NOTHING = 40
_LONGEST_STOP = 160
_NOTHING = re.compile(r"\s*(?:null|none|undefined|nil|\{\s*\}|\[\s*\]|\"\s*\"|''|`{3}[a-z]*\s*`{3})\s*", re.IGNORECASE)
# Messages that frameworks return instead of an answer when they stop the agent.
_STOPPED = re.compile(
    r"(?:the )?agent (?:was )?(?:stopped|terminated) (?:due to|because of|after) (?:reaching )?(?:the )?(?:max|maximum|iteration|time|step)\b.*"
    r"|(?:reached|exceeded|hit) (?:the )?max(?:imum)?[ _].*"
    r"|max(?:imum)?[ _](?:number of )?(?:iterations|steps|turns|tool calls|rounds|retries)\b.{0,9}(?:reached|exceeded|hit)\b.*"
    r"|recursion limit of \d{1,6} reached\b.*|sorry, need more steps to process this request\.",
    re.IGNORECASE,
)
# Printable in Unicode but blank: Hangul fillers and the blank braille pattern.
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Suffix of a dated release: the request names "m", and the response names "m-2024-08-06".
_RELEASE = re.compile(r"[-@](?:[0-9]{3}[0-9-]*|latest)")


@metric(needs=("output",), boolean=True, groups=("default", "quality"))
def code_empty_answer(turn: Turn) -> bool | Result:
    r"""Check that the answer isn't empty. Turns with an error are skipped.

    Whitespace, invisible characters, words such as ``null`` and ``none``, ``{}``, ``[]``, ``""``, and an empty code fence don't
    count as content. An image or file in the last message does. If the answer is empty because the last LLM call requested tools,
    or because a tool call awaits approval, the score is skipped as ``tool_calls``.

    | turn | result |
    |---|---|
    | the output is ``"Paris."`` | passes |
    | the output is ``""``, ``" \n\u200b"``, or ``"null"`` | fails |
    | the output is ``""``, but the last message is from the assistant and contains an image | passes |
    | the output is ``""``, and the turn has an error | skipped as ``turn_error`` |

    Detail: ``attachments`` (number of images and files), if the answer doesn't contain text.
    """
    if turn.error is not None:
        return skip("turn_error")
    if _readable(turn.output or ""):
        return True
    message = turn.messages[-1] if turn.messages else None
    if message is not None and message.role == "assistant" and message.attachments:
        return Result(True, detail={"attachments": len(message.attachments)})
    call = turn.llm_calls[-1] if turn.llm_calls else None
    if (call is not None and _reason_of(call) in _CALLS_TOOLS) or any(
        tool.state == "requested" for tool in turn.tool_calls or ()
    ):
        return skip("tool_calls")
    return Result(False, explanation="the answer is empty, although the turn has no error")


def _readable(text: str) -> bool:
    if len(text) <= _LONGEST_NOTHING and _NOTHING.fullmatch(text) is not None:
        return False
    first = text[:1]
    if first.isprintable() and first > " " and first not in _BLANKS:
        return True
    return any(ch.isprintable() and not ch.isspace() and ch not in _BLANKS for ch in text[:_SCAN_LIMIT])


@metric(boolean=True, groups=("default", "quality"))
def code_truncated_answer(turn: Turn) -> bool | Result:
    """Check that no token limit cut off the output of the turn's last LLM call.

    The metric reads the finish reason of the last LLM call. It recognizes the values that different providers use, such as
    ``length``, ``max_tokens``, ``model_length``, and ``incomplete``. Earlier calls don't count, because a complete answer can follow a truncated step.

    Detail: ``finish_reason`` and ``model`` of the last call, if the metric fails.

    | turn | result |
    |---|---|
    | the last call ended with ``stop``, ``end_turn``, or ``tool_calls`` | passes |
    | the last call ended with ``length`` or ``FinishReason.MAX_TOKENS`` | fails |
    | the first call ended with ``length``, and the last with ``stop`` | passes |
    | the last call doesn't have a finish reason, or there was no call | skipped as ``missing:finish_reason`` |
    """
    call = turn.llm_calls[-1] if turn.llm_calls else None
    reason = _reason_of(call) if call is not None else None
    if call is None or reason is None:
        return skip("missing:finish_reason")
    if reason not in _CUT:
        return True
    why = f"the last model call ended with {call.finish_reason}"
    return Result(False, explanation=why, detail={"finish_reason": call.finish_reason, "model": call.model})


@metric(boolean=True, groups=("default", "safety"))
def code_content_filtered(turn: Turn) -> bool | Result:
    """Check that no content filter, guardrail, or model refusal stopped an LLM call.

    The metric reads the finish reason of every LLM call. It recognizes the values that different providers use, such as
    ``content_filter``, ``safety``, ``refusal``, and ``guardrail_intervened``. It also reads the error types of the calls and the
    turn, such as ``content_policy_violation``, ``ContentFilterFinishReasonError``, and ``GuardrailTripwireTriggered``. To detect
    a refusal in the answer's text, use ``code_refusal``.

    Detail: ``reason`` (the recorded finish reason or error type) and, for a stopped call, its ``model``.

    | turn | result |
    |---|---|
    | all calls ended with ``stop`` or ``tool_calls`` | passes |
    | any call ended with ``content_filter`` or ``SAFETY`` | fails |
    | a call failed with ``content_policy_violation`` | fails |
    | no call has a finish reason, and no error matches | skipped as ``missing:finish_reason`` |
    """
    stated = False
    for call in turn.llm_calls:
        if (reason := _reason_of(call)) is not None:
            stated = True
            if reason in _FILTERED:
                return _filtered(call.finish_reason, model=call.model)
        if (kind := _filter_in(call.error)) is not None:
            return _filtered(kind, model=call.model)
    if (kind := _filter_in(turn.error)) is not None:
        return _filtered(kind)
    return stated or skip("missing:finish_reason")


def _filtered(reason: str | None, **detail: str | None) -> Result:
    why = f"{'a model call' if detail else 'the turn'} ended with {reason}"
    return Result(False, explanation=why, detail={"reason": reason, **detail})


@metric(boolean=True, groups=("default", "quality"))
def code_turn_error(turn: Turn) -> bool | Result:
    """Check that the turn didn't end in an error.

    The metric reads the turn's error. A failed tool or model call is ignored if the agent recovered from the failure. If the answer
    is only a framework's stop message ("Agent stopped due to max iterations."), the metric fails with the error type ``stopped``.
    If the user or the client stopped the turn, the score is skipped as ``cancelled``.

    Detail: ``type`` (the error type, or ``unknown``). The error message is omitted, because it can contain user data.

    | turn | result |
    |---|---|
    | the turn didn't end in an error | passes |
    | a tool failed, but the turn didn't end in an error | passes |
    | the turn ended in ``TimeoutError`` | fails |
    | the turn ended in ``CancelledError`` or ``ClientDisconnect`` | skipped as ``cancelled`` |
    | the output is ``Agent stopped due to max iterations.`` | fails |
    """
    if turn.error is not None:
        if turn.error.is_cancellation:
            return skip("cancelled")
        kind = turn.error.type or "unknown"
    elif turn.output and len(turn.output) <= _LONGEST_STOP and _STOPPED.fullmatch(turn.output.strip()):
        kind = "stopped"
    else:
        return True
    return Result(False, explanation=f"the turn ended in an error: {kind}", detail={"type": kind})


@metric(unit="{item}", needs=("llm_calls",), direction="down", groups=("cost",))
def code_llm_retries(turn: Turn) -> int | Result:
    """Number of failed LLM calls that were followed by another call to the same model.

    The metric counts retries by the application or framework. It can't count retries inside a provider's SDK, which telemetry
    usually shows as one call. A model and its dated release (``m`` and ``m-2024-08-06``) count as the same model. A fallback to
    a different model isn't a retry. A failed call without a model name doesn't count.

    Detail: ``errors`` (number of retries for each error type).

    | LLM calls | value |
    |---|---|
    | ``m`` succeeds twice | 0 |
    | ``m`` fails twice, then succeeds | 2 |
    | ``m`` fails, then ``other`` succeeds | 0 |
    | ``m`` succeeds, then fails | 0 |
    | there were no calls, or only their number is known | skipped as ``missing:llm_calls`` |
    """
    if not (calls := turn.llm_calls):
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
    """Time in seconds from the start of the turn's last LLM call to its first token.

    Usually, spans contain this time only for streamed calls. For the duration of the whole turn, see ``code_latency``.

    Detail: ``first_call``, the time to first token of the first LLM call for which this time was recorded.

    | LLM calls | value |
    |---|---|
    | first call (tool choice): 0.8 s, last call (answer): 0.3 s | 0.3, with ``first_call`` 0.8 |
    | the last call's time wasn't recorded, or there was no call | skipped as ``missing:time_to_first_token`` |
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
    """Normalize a finish reason: ``FinishReason.MAX_TOKENS`` → ``max_tokens``."""
    words = _HUMP.sub("_", reason.strip().rpartition(".")[2])  # ContentFilter, maxTokens
    return words.casefold().replace("-", "_").replace(" ", "_").removeprefix("finish_reason_")


def _filter_in(error: ErrorInfo | None) -> str | None:
    if error is None:
        return None
    kind = _TRIPWIRE if (error.message or "").startswith(_TRIPWIRE) else str(error.type)
    plain = "".join(ch for ch in kind[:200].casefold() if ch.isalnum())
    return kind if any(word in plain for word in _FILTER_ERRORS) else None


def _same_model(one: str, other: str) -> bool:
    if one == other:
        return True
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return long.startswith(short) and (len(long) == len(short) or _RELEASE.fullmatch(long, len(short)) is not None)
