"""Read a turn's messages: its input, its output, and the messages between input and output.

The *input* is usually the last user message before the turn's first model call. The *output* is the root's output or, if unset, the
answering model call's text. Text that wasn't captured is None, not ``""``. An error's text isn't an output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...core import jsonio
from ...core.turn import ErrorInfo, Message
from ...dialects.content import HIDDEN
from ...dialects.payloads import logprobs_in, parsed
from ...dialects.reader import error_of, raised
from ...dialects.step import AGENT, CHAIN, INNER, LLM, TOOL, WORKFLOW, Step
from .llm_calls import TurnCalls, asks_for_tools, ends_by_itself
from .requests import is_output_tool
from .steps import END
from .templates import answer_in, last_user_text, question_in
from .tool_calls import ToolCalls

_ANSWER_KEYS = frozenset(("answer", "content", "final_output", "message", "output", "reply", "response", "result", "text"))
_ERROR_KEYS = ("error", "error_code", "error_message")
_QUOTED = 8
"""Minimum length of a message that is searched for in longer texts."""
_AROUND_AN_ERROR = 40
"""A text that contains an error message is an error if it has at most this many characters plus twice the message's length."""


class MessageReader:
    def __init__(self, calls: TurnCalls) -> None:
        self.calls = calls
        self.root = calls.root
        self.tools = ToolCalls(calls)

    def input(self) -> str | None:
        text = self._input_of_root() if self.root.role != LLM else None
        if text is not None:
            return question_in(text)
        for step in self.calls.main_llm:
            text = self._user_text_of(step, "input_messages")
            if text is not None:
                return question_in(self._user_text_in_template(text, step) or text)
        # The root and model calls may have no content, or weren't received.
        for step in (*self.calls.of_role.get(AGENT, ()), *self.calls.of_role.get(INNER, ())):
            if step.input_messages is not None:
                text = self._user_text_of(step, "input_messages")
                if text is not None:
                    return question_in(text)
        return None

    def _user_text_of(self, step: Step, field: str) -> str | None:
        """Return the last user message in a span's field, or None if it is missing or a later one might have been cut off."""
        found = self.calls.decode(step, field, "user")
        text = last_user_text(found.messages)
        if text is None or not (found.truncated or (step.record.truncated and getattr(step, field).__class__ is not str)):
            return text
        return text if sum(message.role != "system" for message in found.messages) == 1 else None

    def _input_of_root(self) -> str | None:
        for field in ("input_messages", "input_value"):
            if getattr(self.root, field) is not None and (text := self._user_text_of(self.root, field)) is not None:
                return self._newest_text(text, field)
        return None

    def _newest_text(self, text: str, field: str) -> str:
        """Return ``text``, the last user message in the root's ``field``, whole if it was cut, or a newer one from a model call."""
        found = self.calls.decode(self.root, field, "user")
        messages, is_history = found.messages, found.messages[-1].role == "assistant"
        if found.truncated and (whole := self._whole_text(text)) is not None:
            return whole
        newer = self._after_history(text, is_history) if is_history or len(messages) == 1 else None
        if not newer and field == "input_value" and len(messages) > 1 and self.calls.llm:
            # a function's arguments: the user message of the first model call is one of them
            asked = last_user_text(self.calls.inputs(self.calls.main_llm[0]))
            newer = asked if any(message.content == asked for message in messages) else None
        return newer or text

    def _whole_text(self, start: str) -> str | None:
        """If the answering call's prompt contains a user message that begins with ``start``, return the message, or the last user
        message if the agent answered in between. Otherwise, return None.
        """
        last = self.calls.answering_call
        found = self.calls.decode(last, "input_messages", "user") if last is not None and len(start) >= _QUOTED else None
        prompt = [] if found is None or found.truncated else found.messages
        for place, message in enumerate(prompt):
            if message.role == "user" and message.content and message.content.startswith(start):
                later = prompt[place + 1 :]
                return (last_user_text(later) if any(one.role == "assistant" for one in later) else None) or message.content
        return None

    def _user_text_in_template(self, text: str, step: Step) -> str | None:
        """If ``text`` is only the prompt of a helper call (``step``), return the user message in the answering call's prompt.
        Otherwise, return None. A helper call's prompt quotes the conversation, or its answer, such as a summary, is part of the
        answering call's prompt.
        """
        last = self.calls.answering_call
        if last is None or last is step or last.role != LLM or self.calls.loop_of(last) != self.calls.loop_of(step):
            return None
        messages = [message for message in self.calls.inputs(last) if message.role in ("user", "assistant") and message.content]
        asked = last_user_text(messages)
        if asked is None or any(message.content == text for message in messages):
            return None
        quoted = (message.content for message in messages if message.content and len(message.content) >= _QUOTED)
        if any(text.find(one) > 0 for one in quoted):
            return asked
        made = self._answer_text(step) or ""
        is_summary = len(made) >= _QUOTED and made in asked != made and "summar" in f"{text} {asked}".lower()
        if is_summary and [message.role for message in messages[-2:]] == ["user", "user"]:
            return messages[-2].content  # the summary follows the user's message
        before = "\n".join(one.content for one in messages if one.role == "user" and one.content and one.content != asked)
        return asked if len(made) >= _QUOTED and made in before else None

    def _after_history(self, text: str, is_history: bool) -> str | None:
        """If the first prompt contains ``text``, its answer, and a newer user message, return the newer message. If the prompt
        lacks ``text``, and ``is_history`` is True, return the root's plain input text. Otherwise, return None.
        """
        prompt = self.calls.inputs(self.calls.main_llm[0]) if self.calls.main_llm else []
        known = [place for place, message in enumerate(prompt) if message.role == "user" and message.content == text]
        if not is_history and prompt and prompt[-1].role != "user":
            return None  # the text precedes the history
        if known and any(message.role == "assistant" for message in prompt[known[-1] :]):
            return last_user_text(prompt[known[-1] + 1 :])
        value = self.root.input_value
        return value if is_history and not known and value.__class__ is str and value[:1] not in "[{" else None

    def output(self) -> str | None:
        last = self.calls.answering_call
        failed = self.error() is not None
        if failed and last is not None and last.error is None and self.calls.last_call_error() is not None:
            return None  # if the last call failed, earlier answers aren't the output
        text = self._output_of_root() if self.root.role != LLM else None
        if not text:
            answer = self._answer_text(last) if last is not None else self._last_text_of_loop()
            text = text if answer is None else answer
        elif text[-1].isspace() and last is not None:  # some runs add a line break to the answer
            answer = self._answer_text(last)
            text = answer if answer is not None and answer.rstrip() == text.rstrip() else text
        if text == "":
            return text if last is None or self._is_empty_answer(last) else None
        if text and (failed or (last is not None and last.error is not None)) and self._is_error_text(text, last):
            return None
        return text

    def _last_text_of_loop(self) -> str | None:
        for step in reversed(self.calls.of_role.get(INNER, ())):
            if step.output_messages is not None and self.root.error is None:
                text = last_assistant_text(self.calls.decode(step, "output_messages", "assistant").messages)
                if text is not None:
                    return text
        return None

    def _is_empty_answer(self, step: Step) -> bool:
        """Return True if the model returned an empty answer, or False if it requested tools, or its answer might be unknown."""
        tokens, reason, outputs = step.output_tokens, step.finish_reason, self.calls.outputs(step)
        if self._asks_for_tools(step):
            return False
        if tokens is not None and tokens <= (step.reasoning_tokens or 0):
            return True
        if any(message.content or message.reasoning or message.attachments for message in (*self.calls.inputs(step), *outputs)):
            return bool(outputs) or tokens is not None or reason is not None  # otherwise, the call was canceled
        if tokens is not None or not outputs:  # text wasn't captured
            return False
        return reason is None or not ends_by_itself(reason) or any(message.content == "" for message in outputs)

    def _is_error_text(self, text: str, last: Step | None) -> bool:
        text = text.strip()
        if any(_is_error_message(error, text) for error in (self.error(), last.error if last is not None else None)):
            return True
        value = jsonio.loads_or_text(text)[0] if text[:1] == "{" else None
        return isinstance(value, dict) and any(value.get(key) for key in _ERROR_KEYS)

    def _output_of_root(self) -> str | None:
        root = self.root
        if root.final_result is not None and root.final_result not in HIDDEN:
            return jsonio.text_of(root.final_result)
        if root.output_messages is not None:
            found = self.calls.decode(root, "output_messages", "assistant")
            text = last_assistant_text(found.messages)
            if text is not None:
                return text if self._error_as_answer() is None else None
        raw = root.output_value
        if raw is None or raw in HIDDEN:
            return None
        found = self.calls.decode(root, "output_value", "assistant")
        if found.hidden or '"body_iterator"' in jsonio.text_of(raw):  # a streamed response
            return None
        if any(message.role != "assistant" or message.tool_calls for message in found.messages) or len(found.messages) > 1:
            return last_assistant_text(found.messages)
        if isinstance(raw, str) and raw[:1] not in '[{"':
            return raw
        if len(found.messages) == 1 and found.messages[0].content is not None and '"content"' in jsonio.text_of(raw):
            return found.messages[0].content
        return self._answer_among(raw) or jsonio.text_of(raw)

    def _error_as_answer(self) -> str | None:
        raw = self.root.output_messages
        if raw is None or (raw.__class__ is str and '"error"' not in raw):
            return None
        answer = self.calls.decode(self.root, "output_messages", "assistant").messages
        return (answer[-1].content or "") if answer and answer[-1].finish_reason == "error" else None

    def _answer_among(self, raw: Any) -> str | None:
        """Return the answer in a function's return value (JSON text or an object), or None if the answer is ambiguous."""
        value = parsed(raw)
        if isinstance(value, str):
            return value
        if not isinstance(value, dict):
            return None
        last = self.calls.answering_call
        answer = self._answer_text(last) if last is not None else None
        if answer and answer in value.values():
            return answer
        only = next(iter(value.items())) if len(value) == 1 else ("", None)
        return only[1] if only[0] in _ANSWER_KEYS and isinstance(only[1], str) else None

    def _answer_text(self, step: Step) -> str | None:
        found = self.calls.decode(step, "output_messages", "assistant")
        text = next((message.content for message in found.messages if message.content is not None), None)
        if text is not None and (text.strip() or not self._asks_for_tools(step)):
            parts = re.split(r"(?m)^[ \t]*Final Answer:", text)
            asked = (message.content or "" for message in self.calls.inputs(step))
            is_react = len(parts) > 1 and any("Thought:" in one and "Final Answer:" in one for one in asked)
            return parts[-1].strip() if is_react else answer_in(text)
        if found.hidden or step.output_messages is None or step.error is not None:
            return None
        requested = [call for message in found.messages for call in message.tool_calls]
        if not requested:
            return ""
        name = requested[-1].name
        if not is_output_tool(name):  # a call that requests another tool has no answer
            return None
        tools = self.calls.of_role.get(TOOL, ())
        in_spans = (tool.tool_arguments for tool in tools if tool.tool_name == name and tool.tool_arguments)
        arguments = next(in_spans, requested[-1].arguments)
        return jsonio.text_of(arguments) if arguments is not None else None

    def _asks_for_tools(self, step: Step) -> bool:
        return any(map(asks_for_tools, (step.finish_reason, *(message.finish_reason for message in self.calls.outputs(step)))))

    def system(self) -> str | None:
        for step in (self.root, *self.calls.main_llm):
            if step.system is not None:
                texts = [message.content for message in self.calls.decode(step, "system", "system").messages if message.content]
                if texts:
                    return "\n".join(texts)
        prompt = self.calls.inputs(self.calls.main_llm[0]) if self.calls.main_llm else []
        return "\n".join(message.content for message in prompt if message.role == "system" and message.content) or None

    def instructions_lost_at(self) -> int | None:
        """Return the index in ``llm_calls()`` of the first call whose prompt lost the conversation's instructions or user message.
        Return None if no prompt lost them. See :class:`_PromptHistory`.
        """
        turn = self.calls
        if len(turn.main_llm) < 2:
            return None
        conversations: dict[tuple[int, str | None], _PromptHistory] = {}
        for step in turn.main_llm:
            if turn.own_llm is not turn.llm and step not in turn.own_llm:  # a call of another service
                continue
            agent_run = turn.nearest(step, _RUNS)
            agent_id = agent_run.record.span_id if agent_run is not None else 0
            conversation = conversations.setdefault((agent_id, step.request_model or step.model), _PromptHistory())
            prompt = turn.decode(step, "input_messages", "user")
            system = turn.decode(step, "system", "system").messages if step.system is not None else []
            if conversation.has_lost_speaker(prompt.messages, system) and not prompt.truncated and not prompt.hidden:
                return [call.span_id for call in turn.llm_calls()].index(f"{step.record.shown_id:016x}")
            conversation.add(prompt.messages, system, turn.outputs(step))
        return None

    def messages(self) -> list[Message]:
        step = self.calls.answering_call
        if step is None:
            return []
        return [message for message in self.calls.inputs(step) if message.role != "system"] + self.calls.outputs(step)[:1]

    def reasoning(self) -> str | None:
        texts = [message.reasoning for step in self.calls.llm for message in self.calls.outputs(step) if message.reasoning]
        return "\n".join(texts) if texts else None

    def logprobs(self) -> list[float] | None:
        step = self.calls.answering_call
        return logprobs_in(step.logprobs) if step is not None and step.logprobs is not None else None

    def attachments(self) -> list[dict[str, Any]]:
        step = self.calls.answering_call
        found = [item for message in self.calls.inputs(step) for item in message.attachments] if step is not None else []
        root = self.root
        if found or root is step or (root.input_messages is None and root.input_value is None):
            return found
        field = "input_value" if root.input_messages is None else "input_messages"
        return [item for message in self.calls.decode(root, field, "user").messages for item in message.attachments]

    # --- errors

    def error(self) -> ErrorInfo | None:
        root = self.root
        if root.error is not None and root.role != LLM:
            return None if self._continued_after(root.error) else root.error
        instead = self._error_as_answer() if root.role != LLM else None
        if instead is not None:
            return self.calls.last_call_error() or ErrorInfo("error", instead or None)
        if root.output_messages is not None or root.final_result is not None:
            failed = self.calls.last_call_error()
            if failed is None or root.role == LLM or self._output_of_root() is None or self._answers_with(failed):
                return failed
            return None  # the root has another answer
        siblings = self._siblings_of_root() if root.role not in (LLM, INNER) else []
        if siblings:  # their parent was never seen, so the last sibling decides
            return max(siblings, key=END).error
        # Some roots have no status although an agent below failed. The last agent decides, or its last model call.
        inner = [step for step in self.calls.steps if step.role == AGENT and step is not root and not self.calls.is_nested(step)]
        if inner and (last := self._last_word(max(inner, key=END))) is not None:
            return last.error
        if root.output_value is not None and root.role != INNER:
            return None
        failed = self.calls.last_call_error()
        if failed is None and raised(root.record, root) and self._answer_call() is None:
            return error_of(root.record, root)
        return failed

    def _last_word(self, agent: Step) -> Step | None:
        if agent.error is not None or agent.output_messages is not None or agent.output_value is not None:
            return agent
        # an agent that a guardrail stopped can be without status, too
        part = max((step for step in self.calls.steps if step.record.parent_id == agent.record.span_id), key=END, default=agent)
        return part if part.error is not None and part.role in (CHAIN, WORKFLOW) else None

    def _answers_with(self, error: ErrorInfo) -> bool:
        answer = last_assistant_text(self.calls.decode(self.root, "output_messages", "assistant").messages)
        return bool(answer) and _is_error_message(error, (answer or "").strip())

    def _siblings_of_root(self) -> list[Step]:
        around = self.root.record.parent_id
        if not around or around in self.calls.by_id:
            return []
        found = [step for step in self.calls.steps if step.record.parent_id == around]
        return found if len(found) > 1 else []

    def _answer_call(self) -> Step | None:
        """Return the call that should contain the turn's answer, or None if this call lacks an answer. If content wasn't captured,
        a normal finish reason counts as an answer.
        """
        call = self.calls.answering_call
        if call is None or call.error is not None:
            return None
        answers = self.calls.outputs(call)
        if not answers and ends_by_itself(call.finish_reason):
            return call
        return call if (self._output_of_root() or last_assistant_text(answers)) is not None else None

    def _continued_after(self, error: ErrorInfo) -> bool:
        """Return True if a tool caused the error, and a later model call returned an answer."""
        call = self._answer_call()
        return call is not None and any(
            tool.error is not None and tool.error.message == error.message and tool.record.end_ns <= call.record.start_ns
            for tool in self.calls.of_role.get(TOOL, ())
        )


def _is_error_message(error: ErrorInfo | None, text: str) -> bool:
    message = (error.message or "").strip() if error is not None else ""
    return bool(message) and (text in message or (message in text and len(text) <= 2 * len(message) + _AROUND_AN_ERROR))


def last_assistant_text(messages: list[Message]) -> str | None:
    for message in reversed(messages):
        if message.role == "assistant":
            return None if message.tool_calls and not message.content else message.content or ""
    return None


# --- calls whose prompt lost the instructions or user message, for example because the history was shortened. Example:
#
# 1. prompt: system "Be brief", user "Book a table"; answer: requests a tool with the call id c1
# 2. prompt: request c1 and its result. It continues call 1 because it repeats c1, but system and user are missing.

_RUNS = (AGENT, TOOL)
_SPEAKERS = ("system", "developer", "user")


class _PromptHistory:
    def __init__(self) -> None:
        self._speakers: set[str] = set()
        self._texts: set[str] = set()

    def add(self, prompt: list[Message], system: list[Message], answers: list[Message]) -> None:
        if not self._texts:  # later prompts repeat the first prompt and the answers
            self._texts.update(_repeatable_texts(prompt))
        self._texts.update(_repeatable_texts(answers))
        if len(self._speakers) < 2:
            self._speakers.update(_speakers(prompt, system))

    def has_lost_speaker(self, prompt: list[Message], system: list[Message]) -> bool:
        """Return True if a prompt continues this conversation but lacks its instructions or its user message."""
        is_new_request = all(message.role == "user" and not message.tool_results for message in prompt)
        if is_new_request or self._texts.isdisjoint(_repeatable_texts(prompt)):
            return False
        missing = set(self._speakers)
        for speaker in _speakers(prompt, system):
            missing.discard(speaker)
            if not missing:
                return False
        return bool(missing)


def _speakers(prompt: list[Message], system: list[Message]) -> Iterator[str]:
    """Yield ``system`` for instructions in the prompt, and ``user`` once per user message."""
    if any(message.content for message in system):
        yield "system"
    for message in prompt:
        if message.role in _SPEAKERS and message.content and not message.tool_results:
            yield "user" if message.role == "user" else "system"


def _repeatable_texts(messages: list[Message]) -> Iterator[str]:
    """Yield message texts and tool request IDs, because a conversation's later prompts repeat some of these strings."""
    for message in messages:
        if message.role in ("user", "assistant"):
            if message.content:
                yield message.content
            yield from (call.call_id for call in message.tool_calls if call.call_id)
