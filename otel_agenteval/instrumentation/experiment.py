"""Experiments: run a task over a dataset, then score and summarize the turns.

The module implements ``oa.evaluate`` and ``otel-agenteval experiment``.
"""

from __future__ import annotations

import asyncio
import copy
import datetime
import inspect
import math
import sys
import time
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from opentelemetry import trace

from ..config.loader import load_config
from ..config.root import Config
from ..core import jsonio
from ..core.errors import ConfigError
from ..core.futures import completed, result_of, started, submitted
from ..core.score import TASK_RAISED, Score
from ..core.turn import ErrorInfo, Turn
from ..evaluation.case_metrics import CaseMetrics
from ..evaluation.datasets import cases_in
from ..evaluation.references import ReferenceSources
from ..evaluation.selection import select_conversation_metrics, with_signals
from ..metrics.registry import Asks, Embeds
from ..report.experiment import Experiment, Interrupted, Trial
from .attach import captured_turns
from .case_script import Call, CaseScript, Simulate, as_text, columns_of, scripts_of
from .expectations import expect
from .scoring import MetricLike, RunScorer, model_user, models, selected_metrics

_RUN = "experiment_run"
"""Name of a temporary reference that links a turn to the call that created the turn."""

_CALLERS_LOOP: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("agenteval_callers_loop", default=None)


@dataclass(slots=True)
class _Run:
    case_id: str
    repetition: int
    script: CaseScript
    conversation_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    calls: list[Call] = field(default_factory=list)
    """Calls to the task. If the simulated user raises an exception, the last call's ``error`` contains this exception."""
    is_over: bool = False
    scored: Sequence[tuple[Turn, list[Score]]] | None = None

    def failed(self, error: BaseException) -> Call:
        return Call(self.script.case, self.script.case.references, [], error=error)

    def end(self, timeout: float) -> None:
        """Add a timeout error to the unfinished call. Copy ``calls`` first, because the call's thread can still change the list."""
        is_called = (calls := self.calls) and not calls[-1].seconds  # otherwise, the simulated user hasn't returned
        stuck = "task" if is_called or self.script.user is None else "simulated user"
        error = TimeoutError(f"the {stuck} did not return within {timeout:g} s")
        self.calls = [*calls[:-1], replace(calls[-1], error=error)] if is_called else [*calls, self.failed(error)]
        self.calls[-1].seconds = timeout - sum(call.seconds for call in calls)


def evaluate(
    task: Callable[..., Any] | None,
    dataset: str | Path | Iterable[Mapping[str, Any]] | Any,
    metrics: Sequence[MetricLike] | None = None,
    *,
    repetitions: int = 1,
    concurrency: int = 8,
    config: Config | Mapping[str, Any] | str | None = None,
    judge: Asks | None = None,
    embedder: Embeds | None = None,
    simulate: Simulate | None = None,
    timeout: float | None = None,
    tracer_provider: Any = None,
    progress: bool | None = None,
) -> Experiment:
    """Run a task over a dataset, and score the resulting turns.

    The task is called once per case and repetition, or once per turn of a conversation. The turns of each call are captured like
    a live agent's turns, and get the case's references. If a call doesn't create a turn, its input and output become a turn. If a
    call's only turn lacks an input or output, the call's input or output is used. If the task raises an exception, the error is
    recorded, and the experiment continues.

    Args:
        task: a function or coroutine function. Its first argument is a case's input. It can have more parameters: ``history``
            or ``messages`` (earlier messages, ``[{"role": …, "content": …}]``), ``conversation_id`` (a unique ID), and
            ``case`` (the case's references). If None, recorded answers are scored (``output``, ``answer``, or ``response``).
        dataset: a file (``.jsonl``, ``.json``, ``.yaml``, ``.csv``, ``.tsv``, ``.parquet``), a list of mappings, or a DataFrame.
            ``input`` is the task's argument, ``case_id`` names the case, and ``metrics`` adds metrics for this case. All other
            columns are references, such as ``ground_truth`` and ``expected_tools``. For a conversation, replace ``input`` with
            ``turns`` (``[{"input": …, references}, …]``), or with ``user``, which describes the character and goal of a simulated
            user. With ``user``, ``max_turns`` (default: 10) limits the conversation.
        metrics: as for :func:`score_turns`.
        repetitions: number of runs of each case, to measure how much answers vary.
        concurrency: maximum number of calls at the same time.
        config: as for :func:`load_config`.
        judge: model for ``llm_`` metrics. The default is the configuration's judge.
        embedder: model for ``embed_`` metrics. The default is the configuration's embedder.
        simulate: function that plays the user in cases with ``user``. It receives the earlier messages and the case, and
            returns the next message, or None to end. By default, the judge's model plays the user.
        timeout: maximum seconds for all calls in one repetition of a case. The same limit applies to scoring this repetition. If
            the limit is exceeded, missing results are errors, and the experiment continues. By default, there is no limit.
        tracer_provider: provider whose spans are captured. The default is the global provider, which is created if necessary.
        progress: True to show a progress bar on standard error. By default, the bar is shown on a terminal.

    Raises:
        ConfigError: If evaluation is off, or if an argument is invalid, such as an empty dataset or an unknown metric.
        KeyboardInterrupt: After Ctrl+C. The attribute ``experiment`` of this exception contains the finished trials.
    """
    limit = math.inf if timeout is None else timeout
    if not limit > 0:
        raise ConfigError(f"timeout: must be a positive number of seconds, got {timeout!r}")
    task = recorded_answer if task is None else task
    _check({"task": task, "simulate": simulate or task}, {"repetitions": repetitions, "concurrency": concurrency})
    runs = _runs(dataset, repetitions, recorded=task is recorded_answer)
    loaded = load_config(config)
    whole = select_conversation_metrics(loaded)
    selected = selected_metrics(loaded, metrics, whole)
    if metrics is not None:
        whole = [one for one in whole if one.name in metrics or one.metric.name in metrics]
    selected = with_signals(selected, [*selected, *whole])
    cases = CaseMetrics(loaded, selected, [case for run in runs for case in run.script.cases])  # errors before the task runs
    with models(loaded, judge, embedder) as (asks, embeds):
        called = _Task(task, _later_parameters(task), simulate or _simulated_user(runs, asks, loaded))
        has_bar = sys.stderr.isatty() if progress is None else progress
        was_interrupted = _call_task(called, runs, has_bar, tracer_provider, concurrency, limit)
        ended = [run for run in runs if run.is_over]
        scorer = RunScorer(cases, whole, loaded, ReferenceSources(loaded), asks, embeds)
        most = loaded.judge.max_concurrency if asks is not None or embeds is not None else 1
        was_interrupted |= _score(scorer, ended, most, limit)
        found = Experiment(list(_trials(ended)), loaded.scale)
    if was_interrupted:
        raise Interrupted(found)
    return found


async def evaluate_async(
    task: Callable[..., Any] | None,
    dataset: str | Path | Iterable[Mapping[str, Any]] | Any,
    metrics: Sequence[MetricLike] | None = None,
    **options: Any,
) -> Experiment:
    """Run :func:`evaluate` from a coroutine. A task that is a coroutine function runs in the caller's event loop."""
    loop, context = asyncio.get_running_loop(), copy_context()
    context.run(_CALLERS_LOOP.set, loop)
    return await loop.run_in_executor(None, lambda: context.run(evaluate, task, dataset, metrics, **options))


def _simulated_user(runs: Iterable[_Run], asks: Asks | None, config: Config) -> Simulate | None:
    case = next((run.script.case.place for run in runs if run.script.user is not None), None)
    if case is None:
        return None
    if asks is None:
        how = "Set judge.base_url and judge.model in the configuration, or the argument simulate"
        raise ConfigError(f"{case}: user: a judge is required to play the user. {how}")
    return model_user(asks, config)


def _check(functions: Mapping[str, Any], numbers: Mapping[str, Any]) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise ConfigError(f"{name}: must be a function, got {function!r}")
    for name, number in numbers.items():
        if not isinstance(number, int) or number < 1:
            raise ConfigError(f"{name}: must be a positive whole number, got {number!r}")


def _runs(dataset: Any, repetitions: int, *, recorded: bool) -> list[_Run]:
    cases = list(cases_in(dataset, recorded=recorded))
    columns = set().union(*map(columns_of, cases))
    if recorded and cases and "output" not in columns:
        known = ", ".join(sorted(columns)) or "none"
        raise ConfigError(f"dataset: must have a column output, got {known}. Rename the column of the answers to output")
    found = [_Run(name, number, script) for name, script in scripts_of(cases) for number in range(1, repetitions + 1)]
    if not found:
        raise ConfigError("dataset: must contain at least one case, got none")
    return found


# --- running -------------------------------------------------------------------------------------------------------


def _call_task(task: _Task, runs: Sequence[_Run], has_bar: bool, tracer_provider: Any, concurrency: int, limit: float) -> bool:
    """Run the task for all ``runs``, then assign the captured turns. Return True if Ctrl+C stopped the task early."""
    loop, was_interrupted = _CALLERS_LOOP.get(), False
    try:
        with captured_turns(tracer_provider) as kept:
            begin = (lambda run: submitted(task.run_async(run), loop)) if task.is_coroutine else partial(started, task.run)
            for done, (run, future) in enumerate(completed(runs, begin, concurrency, limit), 1):
                run.end(limit) if future is None else future.result()
                run.is_over = True
                if has_bar:
                    _draw_bar(done, len(runs))
    except KeyboardInterrupt:
        was_interrupted = True
    if has_bar:
        _draw_bar(0, len(runs))
    _assign_turns([run for run in runs if run.is_over], kept)
    return was_interrupted


@dataclass(frozen=True, slots=True)
class _Task:
    fn: Callable[..., Any]
    names: Sequence[str]
    """Names of the task's optional parameters: ``history``, ``messages``, ``conversation_id``, or ``case``."""
    simulate: Simulate | None

    @property
    def is_coroutine(self) -> bool:
        return inspect.iscoroutinefunction(self.fn) or inspect.iscoroutinefunction(getattr(self.fn, "__call__", None))  # noqa: B004

    def run(self, run: _Run) -> None:
        calls = run.calls
        try:
            for call in run.script.calls(self.simulate):
                calls.append(call)
                with _timed(call):
                    answer = self(run, call)
                    if inspect.isawaitable(answer) or inspect.isasyncgen(answer):
                        answer = result_of(_awaited(answer))
                    call.output = _joined(list(answer)) if inspect.isgenerator(answer) else answer
        except Exception as error:
            calls.append(run.failed(error))

    async def run_async(self, run: _Run) -> None:
        script, calls = run.script.calls(self.simulate), run.calls
        try:
            while (call := await asyncio.to_thread(next, script, None)) is not None:
                calls.append(call)
                with _timed(call):
                    call.output = await _awaited(self(run, call))
        except Exception as error:
            calls.append(run.failed(error))

    def __call__(self, run: _Run, call: Call) -> Any:
        history = [dict(message) for message in call.history]
        known = {"history": history, "messages": history, "conversation_id": run.conversation_id, "case": dict(call.references)}
        call.is_recorded = self.fn is recorded_answer
        return self.fn(_copied(call.case.input), **{name: known[name] for name in self.names})


def _later_parameters(task: Callable[..., Any]) -> list[str]:
    """Return the names of the task's optional parameters, such as ``history``. Ignore the first parameter, which is the input."""
    try:
        later = list(inspect.signature(task).parameters.values())[1:]
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = ("history", "messages", "conversation_id", "case")
    return [one.name for one in later if one.name in names and one.kind not in variadic]


def recorded_answer(asked: Any, case: Mapping[str, Any]) -> Any:
    """Return the value in a case's ``output`` column. To score recorded answers, use this function as the task."""
    if "output" not in case:
        raise ConfigError("output: this case has no recorded answer. Add an answer, or remove the case")
    return case["output"]


def _copied(value: Any) -> Any:
    with suppress(Exception):
        return copy.deepcopy(value)
    return value


@contextmanager
def _timed(call: Call) -> Iterator[None]:
    """Set a call's references inside the ``with`` block, and record the call's duration and exception."""
    call.start, started = datetime.datetime.now(datetime.timezone.utc), time.perf_counter()
    try:
        with expect(**{**call.references, _RUN: call.token}), trace.use_span(trace.INVALID_SPAN):  # not below the caller's span
            yield
    except BaseException as error:
        if isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and _CALLERS_LOOP.get()):
            raise  # the call's event loop is ending
        call.error = error
    call.seconds = time.perf_counter() - started


async def _awaited(given: Any) -> Any:
    answer = await given if inspect.isawaitable(given) else given
    return _joined([part async for part in answer]) if inspect.isasyncgen(answer) else answer


def _joined(parts: list[Any]) -> Any:
    """Join a generator's items if all items are text. Otherwise, return the items as a list."""
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts


# --- turns and scores ----------------------------------------------------------------------------------------------


def _score(scorer: RunScorer, runs: Sequence[_Run], concurrency: int, limit: float) -> bool:
    try:
        for run, scores in completed(
            runs, lambda run: started(scorer.scored, run.script, run.calls, run.conversation_id), concurrency, limit
        ):
            run.scored = scorer.late(run.calls, limit) if scores is None else scores.result()
    except KeyboardInterrupt:
        return True
    return False


def _assign_turns(runs: Sequence[_Run], kept: Iterable[Any]) -> None:
    """Assign each captured turn to its call. Create a missing turn, input, or output from the call."""
    by_call: dict[str, dict[str, Turn]] = {}
    for scored in kept:
        by_call.setdefault(str(scored.turn.references.pop(_RUN, "")), {})[scored.turn.turn_id] = scored.turn
    for call in (call for run in runs for call in run.calls):
        found = by_call.get(call.token, {}).values()
        call.turns = sorted(found, key=lambda turn: turn.start.timestamp() if turn.start else 0.0) or [_turn_without_spans(call)]
        if len(found) == 1:
            (turn,) = call.turns
            missing = {"input": jsonio.rendered(call.case.input), "output": None if call.output is None else as_text(call.output)}
            call.turns = [turn.but({name: text for name, text in missing.items() if getattr(turn, name) is None})]


def _turn_without_spans(call: Call) -> Turn:
    error = None if call.error is None else ErrorInfo(type=type(call.error).__name__, message=str(call.error))
    output = None if call.error is not None else as_text(call.output)
    return Turn(
        turn_id=uuid.uuid4().hex, input=jsonio.rendered(call.case.input), output=output, error=error, references=dict(call.references),
        ground_truth=call.references.get("ground_truth"), start=None if call.is_recorded else call.start, duration_s=None if call.is_recorded else call.seconds,
    )  # fmt: skip


def _trials(runs: Sequence[_Run]) -> Iterator[Trial]:
    applied = {score.metric for run in runs for _, scores in run.scored or () for score in scores if score.verdict is not None}
    for run in runs:
        if run.scored is None:  # interrupted
            continue
        scored = list(run.scored)
        error = _apply_raised_error(run, scored, applied)
        is_full = error is None and run.script.user is not None and len(run.calls) == run.script.max_turns
        place = "" if run.script.case.case_id else run.script.case.place.removeprefix("dataset: ")
        seconds = sum(call.seconds for call in run.calls)
        yield Trial(run.case_id, run.repetition, scored, error, seconds, is_full, place)


def _apply_raised_error(run: _Run, scored: list[tuple[Turn, list[Score]]], applied: Container[str]) -> str | None:
    if (raised := run.calls[-1].error) is None:
        return None
    error = f"{type(raised).__name__}: {raised}"
    places = {turn.turn_id for turn in (*run.calls[-1].turns, scored[-1][0])}  # the last turn can be the conversation
    for number, (turn, scores) in enumerate(scored):
        if turn.turn_id in places:
            scored[number] = turn, _with_raised_errors(scores, error, applied)
    return f"turn {len(run.calls)}: {error}" if run.script.is_conversation else error


def _with_raised_errors(scores: Sequence[Score], text: str, applied: Container[str]) -> list[Score]:
    """Replace scores with errors, because the task raised an exception. Only scores of metrics that give verdicts are replaced, and
    only if the metric is in ``applied``, or the score was skipped as ``missing:output``. Failed scores are kept.
    """
    return [
        Score.of(score.facts, None, False, "error", None, text, None, None, TASK_RAISED)
        if score.verdict is not False
        and score.facts.gives_verdict
        and (score.metric in applied or score.detail.get("reason") == "missing:output")
        else score
        for score in scores
    ]


def _draw_bar(done: int, total: int) -> None:
    filled = 30 * done // total
    sys.stderr.write(f"\r[{'█' * filled}{' ' * (30 - filled)}] {done} of {total}" if done else "\r\033[K")
    sys.stderr.flush()
