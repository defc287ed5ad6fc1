"""Read a turn's model calls, token counts, and cost. An agent's token totals are used only if the agent's calls lack counts."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter

from ...core.turn import ErrorInfo, LlmCall, Usage
from ...core.wellformed import is_count, sum_of
from ...dialects.generic.keys import words_of
from ...dialects.step import AGENT, CHAIN, GUARDRAIL, INNER, RETRIEVAL, SETUP, TOOL, Step
from ...spans.record import SpanRecord
from .call_spans import CLOCK_STEP_NS, find_calls
from .steps import END, TurnSteps, computed_once
from .templates import last_user_text, question_in

_QUOTED = 8
"""Minimum length of an answer that is searched for in later prompts."""
_SUMMARIZE = ("summar", "compress", "compact", "condens")
_CONVERSATION = ("conversation", "messages", "session", "history", "so far", "transcript", "user:")
_TOKENS = attrgetter("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cache_write_tokens")
_GUARDS = frozenset(("guard", "guards", "guardrail", "guardrails", "rail", "rails", "check", "moderation"))
_UNDECIDED = (None, CHAIN, INNER)
_APART = (GUARDRAIL, SETUP)


class TurnCalls(TurnSteps):
    """One turn's spans and model calls. After creation, the set of spans doesn't change."""

    llm: list[Step]
    """One span per model call, by start time."""
    own_llm: list[Step]
    """Model calls that this service made. Another service's calls are counted in that service's turn."""
    totals: list[Step]
    """Agent loop spans whose token counts are used because the loop's calls lack counts."""
    main_llm: list[Step]
    """Model calls outside guardrails. A guardrail call's answer isn't the turn's answer."""

    def _set_steps(self, root: SpanRecord, steps: list[Step]) -> None:
        super()._set_steps(root, steps)
        self.llm, self.totals = find_calls(self)
        for step in self.llm:
            if step.input_tokens == 0 or step.output_tokens == 0:
                self._drop_uncounted(step)
        self.main_llm = self.llm if len(self.llm) < 2 else self._outside_guards()
        self.own_llm = self._of_this_service()

    def _drop_uncounted(self, step: Step) -> None:
        """If the call has an answer, replace token counts of 0 with None, because some streaming clients write 0 for unknown."""
        if any(one.content or one.reasoning or one.tool_calls for one in self.outputs(step)):
            step.output_tokens = step.output_tokens or None
            if not (step.cached_tokens or step.cache_write_tokens):
                step.input_tokens = step.input_tokens or None

    def extended(self, others: Iterable[TurnCalls], until_ns: int) -> TurnCalls:
        """Return this turn joined with its spans in other traces, without reading spans again."""
        parts = [self, *others]
        whole = TurnCalls.__new__(TurnCalls)
        whole._set_steps(self.root.record, [step for part in parts for step in part.steps])
        for part in parts:
            whole._decoded.update(part._decoded)
        whole.until_ns = until_ns
        return whole

    def llm_calls(self) -> list[LlmCall]:
        found = []
        for step in self.own_llm:
            if step.overwritten:
                found += self.overwritten_calls(step)
            reason = step.finish_reason
            if reason is None and (answers := self.outputs(step)):
                reason = answers[-1].finish_reason or None
            found.append(
                LlmCall(
                    f"{step.record.shown_id:016x}", step.model, step.provider, step.input_tokens, step.output_tokens, step.cached_tokens,
                    step.reasoning_tokens, step.cost_usd, reason, step.response_id,
                    step.record.duration_s if step.duration_s is None else step.duration_s,
                    step.time_to_first_token_s, step.error, step.cache_write_tokens, step.service_tier,
                )
            )  # fmt: skip
        return found

    def overwritten_calls(self, step: Step) -> list[LlmCall]:
        """If an agent run's only span describes its last call, return earlier calls (from events, the prompt, or tool spans)."""
        counted = _counted_before(step)
        if counted:
            return [LlmCall(f"{step.record.span_id:016x}", step.model, step.provider, *tokens) for tokens in counted]
        rounds = 0
        for message in reversed(self.inputs(step)):
            if message.role == "system" or (message.role == "user" and not message.tool_results):
                break
            rounds += bool(message.tool_calls)
        if not rounds:  # tools next to the span started during it; concurrent tools count once
            record, until = step.record, 0
            for tool in self.of_role.get(TOOL, ()):
                ran = tool.record
                if ran.parent_id == record.parent_id != 0 and record.start_ns <= ran.start_ns <= record.end_ns:
                    rounds += ran.start_ns > until
                    until = max(until, ran.end_ns)
        return [LlmCall(f"{step.record.shown_id:016x}", step.model, step.provider) for _ in range(rounds)]

    def usage(self) -> Usage | None:
        sums = _sums_of((*self.own_llm, *self.totals, *self._runs_without_calls()))
        for step in self.own_llm:
            for before in _counted_before(step) if step.overwritten else ():
                sums[:2] = map(sum_of, zip(sums, before, strict=False))
        if sums[:2] == [None, None]:  # some instrumentations write only totals of agent runs
            of_runs = _sums_of(self._counted_runs())
            if not any(of_runs[:2]) and (of_runs[:2] == [None, None] or any(step.error is None for step in self.llm)):
                return None  # unknown, or a sum of missing counts
            sums = [sum_of_calls if count is None else count for count, sum_of_calls in zip(of_runs, sums, strict=True)]
        return self._usage(*sums)

    def _usage(self, input_tokens: int | None, output_tokens: int | None, *details: int | None) -> Usage | None:
        """Return the token counts and their sum, or None if all counts are unknown. An out-of-range count becomes None."""
        sums = [input_tokens, output_tokens, sum_of((input_tokens, output_tokens)), *details]
        for place, count in enumerate(sums):
            if count is not None and not is_count(count):
                sums[place] = None
                self.limited.append("count")
        return Usage(*sums) if any(count is not None for count in sums) else None

    def _runs_without_calls(self) -> list[Step]:
        """Return the outermost sub-agents that have token counts, but no model calls below them or during their runs."""
        runs = [run for run in self.of_role.get(AGENT, ()) if run is not self.root and run.input_tokens and run.output_tokens]
        if not runs or not any(call.input_tokens or call.output_tokens for call in self.own_llm):
            return []
        starts = [call.record.start_ns for call in self.llm]  # sorted
        above = {id(step) for call in self.llm for step in self.ancestors(call)}
        total = tuple(map(sum_of, zip(*((call.input_tokens, call.output_tokens) for call in self.own_llm), strict=True)))
        counts = {total, *((call.input_tokens, call.output_tokens) for call in self.own_llm)}
        quiet = {
            run.record.span_id: run
            for run in runs
            if id(run) not in above
            and bisect_left(starts, run.record.start_ns - CLOCK_STEP_NS) == bisect_right(starts, run.record.end_ns)
            and (run.input_tokens, run.output_tokens) not in counts
        }
        return [
            run for run in quiet.values() if (outer := self.nearest(run, (AGENT,))) is None or outer.record.span_id not in quiet
        ]

    def _counted_runs(self) -> list[Step]:
        """Return the root if it has token counts. Otherwise, return the outermost agent runs if all these runs have counts."""
        root = self.root
        if root.input_tokens is not None or root.output_tokens is not None:
            return [root]
        runs = self._outermost_runs()
        return [] if any(run.input_tokens is None or run.output_tokens is None for run in runs) else runs

    def _outermost_runs(self) -> list[Step]:
        return [run for run in self.of_role.get(AGENT, ()) if self.nearest(run, (AGENT,)) is None]

    def cost_usd(self) -> float | None:
        costs = [step.cost_usd for step in self.own_llm if step.cost_usd is not None]
        if not costs:
            runs = [self.root] if self.root.cost_usd is not None else self._outermost_runs()
            costs = [run.cost_usd for run in runs if run.cost_usd is not None]
            if not runs or len(costs) < len(runs):
                return None
            if runs != [self.root] and any(self.nearest(call, (AGENT,)) is None for call in self.own_llm):
                return None
        cost = sum(costs)
        if math.isfinite(cost):
            return cost
        self.limited.append("amount")
        return None

    @computed_once
    def answering_call(self) -> Step | None:
        """Model call with the turn's output, or None without calls: usually the last call outside guardrails that didn't fail."""
        if not self.llm:
            return None
        found, root = self._in_foreground(self._last_call()), self.root
        if len(self.main_llm) > 1 and (root.output_messages, root.output_value, root.final_result) == (None, None, None):
            return self._without_helpers(found)
        return found

    def _last_call(self) -> Step:
        found = self.main_llm[0]
        for step in self.main_llm:
            record, other = step.record, found.record
            # both starts are rounded
            tied = record.start_ns == other.start_ns and abs(record.end_ns - other.end_ns) < CLOCK_STEP_NS
            if (found.error is not None, tied or record.end_ns > other.end_ns) > (step.error is not None, False):
                found = step
        if found.overwritten:
            return found
        # The span of an earlier call can contain all later calls and end last. One pass is enough: a call that isn't below this
        # span isn't below its calls either.
        start = found.record.start_ns
        for step in sorted(
            (step for step in self.main_llm if step.record.start_ns > start and step.error is None), key=END, reverse=True
        ):
            if step.record.start_ns > found.record.start_ns and self.tree.is_ancestor(found, step):
                found = step
                if found.overwritten:
                    break
        return found

    def _in_foreground(self, last: Step) -> Step:
        """Return ``last`` or, if ``last`` belongs to a tool that ran in the background, the last call outside tools."""
        tool = self.nearest(last, (TOOL,)) if len(self.main_llm) > 1 else None
        if tool is None or tool.record.end_ns >= last.record.end_ns:
            return last
        later = [step for step in self.main_llm if step.record.start_ns > tool.record.start_ns and step.error is None]
        return max((step for step in later if self.nearest(step, (TOOL,)) is None), key=END, default=last)

    def _without_helpers(self, last: Step) -> Step:
        """Return the answering call. Skip later calls that only add a title, follow-up questions, or a grade."""
        run = self.nearest(last, (AGENT,))
        earlier = [
            step for step in self.main_llm if step.record.end_ns <= last.record.start_ns and self.nearest(step, (AGENT,)) is run
        ]
        for step in reversed(earlier):
            answer = next((one.content for one in self.outputs(step) if one.content and not one.tool_calls), None)
            if answer and len(answer) >= _QUOTED and self._is_about(last, answer, step):
                last = step
        return last

    def _is_about(self, step: Step, answer: str, answering: Step) -> bool:
        """Return True if the call ``step`` only processes the earlier ``answer``: its prompt quotes question and answer, or it
        returns a rating or a list. Return False if the earlier call ``answering`` only prepared this call's answer.
        """
        asked = [one.content for one in self.inputs(step) if one.role in ("system", "user") and one.content]
        around = [text.replace(answer, "") for text in asked if len(text) > len(answer) and answer in text]
        if not around or any(search.query == answer for search in self.of_role.get(RETRIEVAL, ())):
            return False
        begun = tuple(one.content for one in self.inputs(self.main_llm[0]) if one.role == "user" and one.content)
        if any(text.startswith(begun) for text in asked):  # the prompt is the user's message plus results
            return False
        made, words = [one.content or "" for one in self.outputs(step)], set(words_of(answer))
        if 2 * len(words.intersection(word for text in made for word in words_of(text))) >= len(words):
            return False  # a new version of the answer
        request = last_user_text(self.inputs(answering)) or ""
        question = question_in(request).strip().rpartition("\n\n")[2]
        if any(question in text.replace(answer, "") for text in asked):
            return True
        compacted = request not in begun and "summar" in asked[-1].lower() and self._compacts(answering, step)
        longest = 0 if compacted else len(answer)
        return answer in asked[-1] and all(len(text) < _QUOTED or text[0] in "[{`" or 2 * len(text) < longest for text in made)

    def _compacts(self, call: Step, later: Step) -> bool:
        """Return True if ``call`` summarizes an unfinished run's conversation, and the call ``later`` continues this run."""
        text = " ".join((*self._instructions(call), last_user_text(self.inputs(call)) or "")).lower()
        asks = all(any(word in text for word in words) for words in (_SUMMARIZE, _CONVERSATION))
        unfinished = any(self.requests_of(step) for step in self.main_llm if step.record.end_ns <= call.record.start_ns)
        return asks and unfinished and self._instructions(later) == self._instructions(self.main_llm[0])

    def _instructions(self, step: Step) -> list[str]:
        messages = (*self.decode(step, "system", "system").messages, *self.inputs(step))
        return [one.content for one in messages if one.role == "system" and one.content]

    def last_call_error(self) -> ErrorInfo | None:
        return max(self.main_llm, key=END).error if self.llm else self.root.error

    def _outside_guards(self) -> list[Step]:
        """Return calls outside guardrails. If there aren't any, return calls without a guardrail's name, or else all calls."""
        calls = [step for step in self.llm if not _is_guard(step.record.name)] or self.llm
        undecided = [step for role in _UNDECIDED if role in self.of_role for step in self.of_role[role]]
        if self.of_role.keys().isdisjoint(_APART) and not any(_is_guard(step.record.name) for step in undecided):
            return calls
        tree, root = self.tree, self.root
        return [
            step
            for step in calls
            if tree.nearest(
                step,
                "guard",
                lambda above: (
                    above is not root and (above.role in _APART or (above.role in _UNDECIDED and _is_guard(above.record.name)))
                ),
            )
            is None
        ] or calls

    def _of_this_service(self) -> list[Step]:
        served = {
            id(step) for step in self.steps if step.record.remote_parent and step is not self.root
            and (caller := self.parent(step)) is not None and caller.record.resource != step.record.resource
        }  # fmt: skip
        if not served:
            return self.llm
        return [
            step for step in self.llm
            if id(step) not in served and self.tree.nearest(step, "served", lambda above: id(above) in served) is None
        ]  # fmt: skip


def _sums_of(steps: Iterable[Step]) -> list[int | None]:
    return [*map(sum_of, tuple(zip(*map(_TOKENS, steps), strict=True)) or ((),) * 5)]


def _counted_before(step: Step) -> list[tuple[int | None, int | None]]:
    """If an agent run's only span describes its last call, return the earlier calls' token counts from span events, or ``[]``."""
    last = (step.input_tokens, step.output_tokens)
    return step.counted[:-1] if step.counted and step.counted[-1] == last else []


@lru_cache(1024)
def _is_guard(name: str) -> bool:
    return not _GUARDS.isdisjoint(words_of(name))


# --- finish reasons

_BY_ITSELF = frozenset(("stop", "endturn", "completed", "stopsequence"))
_ASKS = frozenset(("toolcalls", "toolcall", "tooluse", "functioncall", "functioncalls"))
_NOT_SAID = frozenset(("", "n/a", "unknown", "other", "none", "null", "unspecified", "finishreasonunspecified"))
_ALSO_WITH_TOOLS = frozenset(("completed", "complete", "success"))
"""Finish reasons that calls report with or without tool requests, such as statuses in the Responses API."""
_ALWAYS_STOP = ("gemini", "ollama")
"""Parts of the names of models and providers that report ``stop`` even if they request tools."""


def _folded(reason: str | None) -> str:
    return (reason or "").rsplit(".", 1)[-1].lower().replace("_", "").replace("-", "")


def ends_by_itself(reason: str | None) -> bool:
    return _folded(reason) in _BY_ITSELF


def asks_for_tools(reason: str | None) -> bool:
    return _folded(reason) in _ASKS


def rules_out_tools(step: Step, is_last: bool) -> bool:
    """Return True if a call's finish reason shows that the call didn't request tools."""
    reason = _folded(step.finish_reason)
    if reason in _NOT_SAID or reason in _ASKS:
        return False
    if is_last:
        return True
    served_by = f"{step.provider or ''} {step.model or ''}".lower()
    return reason not in _ALSO_WITH_TOOLS and not (reason == "stop" and any(name in served_by for name in _ALWAYS_STOP))
