"""Read the model calls of a turn.

One request to a model is one call, however many spans describe it. A model span is a duplicate if it is inside
another one, such as an SDK's span inside a framework's, if it runs next to another one within its time, or if it has
the same response id. Its facts fill the gaps of the outer span. Totals on agent spans are never added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from operator import attrgetter

from ...core.turn import ErrorInfo, LlmCall, Usage
from ...core.wellformed import is_count, sum_of
from ...dialects.generic.words import words_of
from ...dialects.step import AGENT, CHAIN, GUARDRAIL, INNER, LLM, TOOL, WORKFLOW, Step
from ...spans.record import SpanRecord
from .steps import END, START, TurnSteps

_MERGED = (
    "model", "provider", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd", "finish_reason",
    "response_id", "time_to_first_token_s", "input_messages", "output_messages", "system", "tool_definitions", "logprobs",
)  # fmt: skip
_QUOTED = 8
"""Minimum length of an answer by which a prompt quotes it."""
_SDK_SCOPES = ("com.anthropic.",)
"""Scopes of spans that a provider's SDK writes itself. Their token counts take precedence."""
_TOKENS = attrgetter("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cache_write_tokens")
_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
_LLM = (LLM,)
_LLM_OR_LOOP = (LLM, AGENT, TOOL, WORKFLOW)


class TurnCalls(TurnSteps):
    """The spans of one turn and its model calls. Nothing changes a step after this object is complete."""

    llm: list[Step]
    """One span for each model call, by start time."""
    own_llm: list[Step]
    """The model calls of this service. Those of a service that it called count in that service's turn."""
    main_llm: list[Step]
    """The model calls outside guardrails. A guardrail's call sees the user's words, but its answer isn't the turn's."""

    def _take(self, root: SpanRecord, steps: list[Step]) -> None:
        super()._take(root, steps)
        self.totals = [step for step in self.of_role.get(AGENT, ()) if step.loop]
        """Spans around loops whose token counts their calls lack."""
        calls = self.of_role.get(LLM, ())
        parents = {step.record.parent_id for step in steps} if calls else ()
        self._nested = any(step.record.span_id in parents for step in calls)
        """True if there may be spans inside model spans."""
        if self._nested and (len(calls) > 2 or any(step.loop for step in calls)):
            self._open_loops()
        self.llm = self._leaf_llm_steps() if LLM in self.of_role else [self.root] if self.root.calls_model else []
        self.main_llm = self.llm if len(self.llm) < 2 else self._outside_guards()
        self.own_llm = self._of_this_service()

    def extended(self, others: Iterable[TurnCalls], until_ns: int) -> TurnCalls:
        """Return a turn that also contains the parts in other traces. Nothing is read again."""
        parts = [self, *others]
        whole = TurnCalls.__new__(TurnCalls)
        whole._take(self.root.record, [step for part in parts for step in part.steps])
        for part in parts:
            whole._decoded.update(part._decoded)
        whole.until_ns = until_ns
        return whole

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

    def _open_loops(self) -> None:
        """Stop treating spans around whole loops as model calls, also spans whose tokens equal the sum of the calls below them."""
        calls_in, below = self._calls_below()
        for span_id, held in below.items():
            loop = self.by_id[span_id]
            calls = calls_in.get(span_id, []) if loop.loop else held if _sums_up(loop, held) else []
            if not calls:
                continue
            _open(loop, calls)
            layers = (layer for call in calls for layer in (call, *calls_in.get(call.record.span_id, ())))
            if all(layer.input_tokens is None and layer.output_tokens is None for layer in layers):
                self.totals.append(loop)
        opened = [step for step in self.of_role[LLM] if step.role != LLM]
        if not opened:
            return
        self.of_role[LLM] = [step for step in self.of_role[LLM] if step.role == LLM]
        self.of_role[INNER] = sorted((*self.of_role.get(INNER, ()), *opened), key=START)
        self._tree = None  # its cached lookups depend on roles

    def _calls_below(self) -> tuple[dict[int, list[Step]], dict[int, list[Step]]]:
        """Return the model spans in each model span: those without an agent, tool or workflow between, and all."""
        calls_in: dict[int, list[Step]] = {}
        below: dict[int, list[Step]] = {}
        for step in self.of_role[LLM]:
            around = None if step.loop else self.nearest(step, _LLM_OR_LOOP)
            if around is not None and around.role == LLM:
                calls_in.setdefault(around.record.span_id, []).append(step)
            summary = around if around is None or around.role == LLM else self.nearest(around, _LLM)
            if summary is not None:
                below.setdefault(summary.record.span_id, []).append(step)
        return calls_in, below

    def _leaf_llm_steps(self) -> list[Step]:
        leaves: list[Step] = []
        by_response: dict[str, Step] = {}
        steps = self.of_role[LLM]
        if any(step.secondhand for step in steps):
            steps = [step for step in steps if not step.secondhand] or steps
        outermost: dict[int, Step | None] = {}
        if any(step.totals is not None for step in steps):
            self._share_totals(steps)
        any_separate = any(step.answer_only for step in steps)
        senders: dict[tuple[str, int], Step] = {}
        duplicates = self._duplicates(steps) if any(step.record.scope != steps[0].record.scope for step in steps) else {}
        for step in steps:
            call = (
                (self._outer_llm(step, outermost) if self._nested else None)
                or self._of_response(step, by_response)
                or duplicates.get(step.record.span_id)
                # the call below the span that sent the request, if the SDK writes its own spans
                or (senders.get((step.record.scope, step.record.parent_id)) if step.answer_only else None)
            )
            if call is not None:
                _fill_call(call, step)
                continue
            leaves.append(step)
            if step.response_id:
                by_response[step.response_id] = step
            if any_separate:
                self._add_sender(step, senders)
        for step in leaves:
            if step.error is None and step.output_tokens is None:
                reader = self.parent(step)  # the span ended without error before its consumer failed to read the stream
                if reader is not None and reader.error is not None and self._failed_with(reader, step, step is leaves[-1]):
                    step.error = reader.error
        return leaves

    def _failed_with(self, reader: Step, step: Step, is_last: bool) -> bool:
        """Return True if a call of a failed run or step returned nothing."""
        if reader.role == INNER:
            return step.deferred and step.output_messages is None
        if not is_last or reader.role != AGENT or step.response_id is not None or step.finish_reason is not None:
            return False
        return not any(message.content or message.tool_calls for message in self.outputs(step))

    def _of_response(self, step: Step, by_response: dict[str, Step]) -> Step | None:
        """Return the earlier span of the same response. Some servers give all responses one id, so both have to overlap."""
        call = by_response.get(step.response_id) if step.response_id else None
        if call is None or not (call.deferred or step.record.start_ns <= call.record.end_ns + _CLOCK_STEP_NS):
            return None
        return call if self._is_alike(call, step) or None in (call.output_tokens, step.output_tokens) else None

    def _duplicates(self, steps: list[Step]) -> dict[int, Step]:
        """Return the outer span of each model span that another instrumentation also recorded without making it the parent. Their
        facts don't contradict. Both have the same parent and one runs within the other's time, or both belong to one agent's run,
        have the same tokens or answer, and overlap: a callback ends before its stream.
        """
        found: dict[int, Step] = {}
        running: dict[tuple[bool, int, str], _OuterSpans] = {}
        scopes = [*dict.fromkeys(step.record.scope for step in steps)][:_LAYERS]
        taken: set[int] = set()
        for step in steps:
            record = step.record
            places = self._places(step)
            for alike, place in places:
                beside = running.get((alike, place, record.scope))
                outer = beside.duplicate_of(step, taken, self._is_alike if alike else None) if beside is not None else None
                if outer is not None:
                    found[record.span_id] = outer
                    taken.add(outer.record.span_id)
                    break
            else:
                for alike, place in places:
                    for scope in scopes:
                        if scope != record.scope:  # this span may be the outer span of another scope's span
                            running.setdefault((alike, place, scope), _OuterSpans()).steps.append(step)
        return found

    def _places(self, step: Step) -> list[tuple[bool, int]]:
        """Return the ids of the spans below which an outer span may be, each after True if both calls have to be alike."""
        parent = (False, step.record.parent_id)
        run = self.nearest(step, _LLM_OR_LOOP)
        if run is None:
            return [parent, (True, 0)]
        return [parent] if run.role == LLM else [parent, (True, run.record.span_id)]

    def _is_alike(self, one: Step, other: Step) -> bool:
        """Return True if two calls have the same token counts or, if unknown, the same answer."""
        counts = (one.input_tokens, one.output_tokens)
        if counts == (other.input_tokens, other.output_tokens) and one.input_tokens and one.output_tokens:
            return True
        if one.output_tokens is not None and other.output_tokens is not None:
            return False
        answers = [message.content for message in self.outputs(one)]
        return any(answers) and answers == [message.content for message in self.outputs(other)]

    def _add_sender(self, step: Step, senders: dict[tuple[str, int], Step]) -> None:
        """Index a call by the parents of its span and, if the response comes later, of the span that sent the request."""
        if step.deferred:
            senders[step.record.scope, step.record.parent_id] = step
        sender = self.parent(step)
        if sender is not None:
            senders[sender.record.scope, sender.record.parent_id] = step

    def _share_totals(self, steps: list[Step]) -> None:
        """Replace running totals of a loop by the tokens of each call, because some instrumentations count on from call to call.
        A streamed call that requested tools contains the calls after it, and repeats the last one's facts.
        """
        latest: dict[int, Step] = {}
        for step in steps:
            if step.totals is None:
                continue
            ancestor = self.nearest(step, _LLM_OR_LOOP)
            if ancestor is not None and ancestor.totals is not None:
                ancestor.input_tokens = ancestor.output_tokens = ancestor.response_id = ancestor.output_messages = None
                ancestor.finish_reason = "tool_calls"
            before = latest.get(step.record.parent_id)
            latest[step.record.parent_id] = step
            if before is not None and before.totals is not None and before.finish_reason == "tool_calls":
                input_tokens, output_tokens = step.totals[0] - before.totals[0], step.totals[1] - before.totals[1]
                if input_tokens >= 0 and output_tokens >= 0:
                    step.input_tokens, step.output_tokens = input_tokens, output_tokens

    def _outer_llm(self, step: Step, outermost: dict[int, Step | None]) -> Step | None:
        """Return the topmost of the nested model spans around a span. ``outermost`` caches the results."""
        path: list[Step] = []
        at = step
        while id(at) not in outermost:
            outermost[id(at)] = None
            path.append(at)
            ancestor = self.nearest(at, _LLM_OR_LOOP)
            if ancestor is None or ancestor.role != LLM or (ancestor.totals is not None and at.totals is not None):
                break
            at = ancestor
        top = outermost[id(at)] or at
        for passed in path:
            if passed is not top:
                outermost[id(passed)] = top
        return outermost[id(step)]

    def _finish_reason(self, step: Step) -> str | None:
        if step.finish_reason is not None:
            return step.finish_reason
        outputs = self.outputs(step)
        return (outputs[-1].finish_reason or None) if outputs else None

    def llm_calls(self) -> list[LlmCall]:
        calls = [
            LlmCall(
                f"{step.record.shown_id:016x}", step.model, step.provider, step.input_tokens, step.output_tokens, step.cached_tokens,
                step.reasoning_tokens, step.cost_usd, self._finish_reason(step), step.response_id,
                step.record.duration_s if step.duration_s is None else step.duration_s,
                step.time_to_first_token_s, step.error, step.cache_write_tokens,
            )
            for step in self.own_llm
        ]  # fmt: skip
        if any(step.overwritten for step in self.own_llm):
            return [
                entry
                for step, call in zip(self.own_llm, calls, strict=True)
                for entry in (*(self.overwritten_calls(step) if step.overwritten else ()), call)
            ]
        return calls

    def overwritten_calls(self, step: Step) -> list[LlmCall]:
        """Return the earlier calls of a run whose only span describes the last call, from the tool requests in its prompt."""
        counted = _counted_before(step)
        if counted:
            return [LlmCall(f"{step.record.span_id:016x}", step.model, step.provider, *tokens) for tokens in counted]
        earlier = []
        for message in reversed(self.inputs(step)):
            if message.role == "system" or (message.role == "user" and not message.tool_results):
                break
            if message.tool_calls:
                earlier.append(LlmCall(f"{step.record.shown_id:016x}", step.model, step.provider))
        return earlier or [
            LlmCall(f"{step.record.shown_id:016x}", step.model, step.provider) for _ in range(self._rounds_of_tools(step))
        ]

    def _rounds_of_tools(self, step: Step) -> int:
        """Return how often tools ran next to a span and within its time. Concurrent tools count once."""
        record = step.record
        rounds = until = 0
        for tool in self.of_role.get(TOOL, ()):
            ran = tool.record
            if ran.parent_id == record.parent_id != 0 and record.start_ns <= ran.start_ns <= record.end_ns:
                rounds += ran.start_ns > until
                until = max(until, ran.end_ns)
        return rounds

    def usage(self) -> Usage | None:
        counts = zip(*map(_TOKENS, (*self.own_llm, *self.totals)), strict=True)
        input_tokens, output_tokens, *details = map(sum_of, tuple(counts) or ((),) * 5)
        for given, made in (tokens for step in self.own_llm if step.overwritten for tokens in _counted_before(step)):
            input_tokens, output_tokens = sum_of((input_tokens, given)), sum_of((output_tokens, made))
        if input_tokens is None and output_tokens is None:  # some instrumentations write only a run's total
            input_tokens, output_tokens = self.root.input_tokens, self.root.output_tokens
            if input_tokens is None and output_tokens is None:
                return self._used_by_runs()
        return self._usage(input_tokens, output_tokens, *details)

    def _usage(self, input_tokens: int | None, output_tokens: int | None, *details: int | None) -> Usage | None:
        """Return token counts with their total. Counts out of range are unknown."""
        sums = [input_tokens, output_tokens, sum_of((input_tokens, output_tokens)), *details]
        for place, count in enumerate(sums):
            if count is not None and not is_count(count):
                sums[place] = None
                self.limited.append("count")
        return Usage(*sums) if any(count is not None for count in sums) else None

    def _used_by_runs(self) -> Usage | None:
        """Return the sum of the tokens of the outermost agent runs. Returns None unless all of them report tokens."""
        runs = [run for run in self.of_role.get(AGENT, ()) if self.nearest(run, (AGENT,)) is None]
        input_tokens = [run.input_tokens for run in runs if run.input_tokens is not None]
        output_tokens = [run.output_tokens for run in runs if run.output_tokens is not None]
        if not runs or len(input_tokens) != len(runs) or len(output_tokens) != len(runs):
            return None
        return self._usage(sum(input_tokens), sum(output_tokens))

    def cost_usd(self) -> float | None:
        costs = [step.cost_usd for step in self.own_llm if step.cost_usd is not None]
        if not costs:
            return self.root.cost_usd
        cost = sum(costs)
        if math.isfinite(cost):
            return cost
        self.limited.append("amount")
        return None

    @cached_property
    def answering_call(self) -> Step | None:
        """The model call that ended last, whose answer is the turn's output. A failed call is the last choice."""
        if not self.llm:
            return None
        found, root = self._last_call(), self.root
        if len(self.main_llm) > 1 and (root.output_messages, root.output_value, root.final_result) == (None, None, None):
            return self._without_helpers(found)
        return found

    def _outside_guards(self) -> list[Step]:
        """Return the model calls outside guardrails or, without any, those that aren't named as one or, without any, all."""
        calls = [step for step in self.llm if not _is_guard(step.record.name)] or self.llm
        undecided = [step for role in _UNDECIDED if role in self.of_role for step in self.of_role[role]]
        if GUARDRAIL not in self.of_role and not any(_is_guard(step.record.name) for step in undecided):
            return calls
        tree, root = self.tree, self.root
        return [
            step
            for step in calls
            if tree.nearest(
                step,
                "guard",
                lambda above: (
                    above is not root and (above.role == GUARDRAIL or (above.role in _UNDECIDED and _is_guard(above.record.name)))
                ),
            )
            is None
        ] or calls

    def _last_call(self) -> Step:
        found = self.main_llm[0]
        for step in self.main_llm:
            if (found.error is not None, step.record.end_ns) > (step.error is not None, found.record.end_ns):
                found = step
        if found.overwritten:
            return found
        # A span that contains the calls after its answer ends last, but isn't the answering call. One pass is enough: a call that
        # isn't below this span, or started before it, isn't below any of its calls either.
        start = found.record.start_ns
        for step in sorted(
            (step for step in self.main_llm if step.record.start_ns > start and step.error is None), key=END, reverse=True
        ):
            if step.record.start_ns > found.record.start_ns and self.tree.is_ancestor(found, step):
                found = step
                if found.overwritten:
                    break
        return found

    def _without_helpers(self, last: Step) -> Step:
        """Return the call whose answer later calls are about, such as a title, follow-up questions, a memory or a grade."""
        run = self.nearest(last, (AGENT,))
        earlier = [
            step for step in self.main_llm if step.record.end_ns <= last.record.start_ns and self.nearest(step, (AGENT,)) is run
        ]
        for step in reversed(earlier):
            answer = next((one.content for one in self.outputs(step) if one.content and not one.tool_calls), None)
            if answer and len(answer) >= _QUOTED and self._is_about(last, answer):
                last = step
        return last

    def _is_about(self, step: Step, answer: str) -> bool:
        """Return True if a call's instructions or user message quote an answer, and its own answer isn't a new version of it."""
        asked = [one.content for one in self.inputs(step) if one.role in ("system", "user") and one.content]
        if not any(len(text) > len(answer) and answer in text for text in asked):
            return False
        begun = tuple(one.content for one in self.inputs(self.main_llm[0]) if one.role == "user" and one.content)
        if any(text.startswith(begun) for text in asked):  # goes on with the user's message, and with results in it
            return False
        made = {word for one in self.outputs(step) for word in words_of(one.content or "")}
        return 2 * len(made.intersection(words_of(answer))) < len(set(words_of(answer)))

    def last_call_error(self) -> ErrorInfo | None:
        return max(self.main_llm, key=END).error if self.llm else self.root.error


def _counted_before(step: Step) -> list[tuple[int | None, int | None]]:
    """Return the tokens of the calls before the one that a run's only span describes, from the events of the calls."""
    last = (step.input_tokens, step.output_tokens)
    return step.counted[:-1] if step.counted and step.counted[-1] == last else []


def _open(loop: Step, calls: list[Step]) -> None:
    """Move a loop's facts to the calls inside."""
    loop.role = INNER
    for call in calls:
        fill(call, loop, ("model", "provider"))
    fill(calls[0], loop, ("input_messages", "system", "tool_definitions"))
    last = max(calls, key=END)
    fill(last, loop, ("finish_reason",))
    last.error = last.error or loop.error


@lru_cache(1024)
def _is_guard(name: str) -> bool:
    return not _GUARDS.isdisjoint(words_of(name))


_GUARDS = frozenset(("guard", "guards", "guardrail", "guardrails", "rail", "rails", "check", "moderation"))
_UNDECIDED = (None, CHAIN, INNER)


def fill(target: Step, source: Step, names: Iterable[str]) -> None:
    for name in names:
        if getattr(target, name) is None:
            value = getattr(source, name)
            if value is not None:
                setattr(target, name, value)


def _fill_call(target: Step, source: Step) -> None:
    """Complete a model call with the facts of its duplicate. Token counts of a provider's own SDK take precedence."""
    if source.verbatim or (target.texts_only and not source.texts_only):
        for name in ("input_messages", "output_messages"):
            if getattr(source, name) is not None:
                setattr(target, name, getattr(source, name))
    if _counts_more(source, target):
        for name in _COUNTS:
            setattr(target, name, getattr(source, name))
    fill(target, source, _MERGED)
    if source.answer_only and source.record.parent_id == target.record.parent_id and target.duration_s is None:
        target.duration_s = (source.record.end_ns - target.record.start_ns) / 1e9
    if target.finish_reason == "error" and target.error is None:
        target.error = source.error
    if target.record.name == "call_llm" and target.duration_s is None:  # ADK's span also lasts while the tools run
        target.duration_s = source.record.duration_s


def _counts_more(source: Step, target: Step) -> bool:
    """Return True if a duplicate's token counts replace a call's. All counts come from one span."""
    if source.input_tokens is None or source.output_tokens is None:
        return False
    if target.guesses_tokens or source.record.scope.startswith(_SDK_SCOPES):
        return True
    return bool(source.cached_tokens or source.cache_write_tokens) and not (target.cached_tokens or target.cache_write_tokens)


_CLOCK_STEP_NS = 2_000_000
"""Tolerance: OpenTelemetry JS starts spans at whole milliseconds, and a callback may end its span after its caller."""
_LAYERS = 8
"""Maximum number of instrumentations whose spans are compared."""
_MOST_COMPARED = 64
"""Maximum number of neighboring spans that are compared to find the outer span, which began shortly before."""


class _OuterSpans:
    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def duplicate_of(self, step: Step, taken: set[int], is_alike: Callable[[Step, Step], bool] | None) -> Step | None:
        """Return the latest match that isn't ``taken``. With ``is_alike``, both have to be alike instead of nested in time."""
        record, steps = step.record, self.steps
        found: Step | None = None
        ended = compared = 0
        for index in range(len(steps) - 1, -1, -1):
            outer = steps[index]
            if not outer.deferred and outer.record.end_ns < record.start_ns:
                ended += 1
                continue
            if outer.record.span_id in taken:
                steps.pop(index)
                continue
            fits = outer.deferred or outer.record.end_ns + _CLOCK_STEP_NS >= record.end_ns if is_alike is None else True
            if fits and _same_call(outer, step) and (is_alike is None or is_alike(outer, step)):
                found = steps.pop(index)
                break
            compared += 1
            if compared == _MOST_COMPARED:
                break
        if ended > _MOST_COMPARED:  # don't pass over ended spans again
            self.steps = [one for one in steps if one.deferred or one.record.end_ns >= record.start_ns]
        return found


def _sums_up(step: Step, calls: list[Step]) -> bool:
    """Return True if a span's tokens are the sum of several calls' tokens."""
    given, made = ([count for call in calls if (count := getattr(call, name))] for name in ("input_tokens", "output_tokens"))
    return len(made) > 1 and (step.input_tokens, step.output_tokens) == (sum(given), sum(made))


def _same_call(one: Step, other: Step) -> bool:
    if one.response_id and other.response_id:
        return one.response_id == other.response_id
    if one.output_tokens is not None and other.output_tokens is not None and one.output_tokens != other.output_tokens:
        return False
    first, second = one.model or "", other.model or ""  # the requested name is often a prefix of the response's
    return bool(first and second) and (first.startswith(second) or second.startswith(first))


# --- finish reasons

_BY_ITSELF = frozenset(("stop", "endturn", "completed", "stopsequence"))
_ASKS = frozenset(("toolcalls", "toolcall", "tooluse", "functioncall", "functioncalls"))
_NOT_SAID = frozenset(("", "unknown", "other", "none", "null", "unspecified", "finishreasonunspecified"))
_ALSO_WITH_TOOLS = frozenset(("completed", "complete", "success"))
"""Statuses, such as those of the Responses API, that don't change if the answer requests tools."""
_ALWAYS_STOP = ("gemini", "ollama")
"""Models and servers that report ``stop`` even if they request tools."""


def _folded(reason: str | None) -> str:
    return (reason or "").rsplit(".", 1)[-1].lower().replace("_", "").replace("-", "")


def ends_by_itself(reason: str | None) -> bool:
    return _folded(reason) in _BY_ITSELF


def asks_for_tools(reason: str | None) -> bool:
    """Return True if the model stopped to request tools. The reason doesn't show which ones."""
    return _folded(reason) in _ASKS


def rules_out_tools(step: Step, is_last: bool) -> bool:
    """Return True if the finish reason shows that the call requested no tool. Some models always report the same reason."""
    reason = _folded(step.finish_reason)
    if reason in _NOT_SAID or reason in _ASKS:
        return False
    if is_last:
        return True
    served_by = f"{step.provider or ''} {step.model or ''}".lower()
    return reason not in _ALSO_WITH_TOOLS and not (reason == "stop" and any(name in served_by for name in _ALWAYS_STOP))
