"""Experiments: run a task over a dataset, then score and summarize the turns.

This is ``oa.evaluate`` and ``otel-agenteval experiment``.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.loader import load_config
from ..config.root import Config
from ..core.errors import ConfigError
from ..core.score import Score
from ..core.threads import mark_as_ours
from ..core.turn import ErrorInfo, Turn
from ..evaluation.datasets import Case, cases_in
from ..metrics.bound_metric import BoundMetric
from ..report.experiment import Experiment, Trial
from .capture import captured_turns
from .expectations import expect
from .scoring import MetricLike, models, score_turns, selected_metrics

if TYPE_CHECKING:
    from ..metrics.registry import Asks, Embeds

_RUN = "experiment_run"
"""Name of a temporary reference that links a turn to the call that made it."""


@dataclass(slots=True)
class _Run:
    case: Case
    case_id: str
    repetition: int
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Distinguishes the run, including from the same case in a concurrent experiment."""
    output: Any = None
    error: BaseException | None = None
    seconds: float = 0.0
    turns: list[Turn] = field(default_factory=list)


def evaluate(
    task: Callable[[Any], Any],
    dataset: str | Path | Iterable[Mapping[str, Any]] | Any,
    metrics: Sequence[MetricLike] | None = None,
    *,
    repetitions: int = 1,
    concurrency: int = 8,
    config: Config | Mapping[str, Any] | str | None = None,
    judge: Asks | None = None,
    embedder: Embeds | None = None,
    tracer_provider: Any = None,
    progress: bool | None = None,
) -> Experiment:
    """Run a task over a dataset, and score the resulting turns.

    Each call of the task is one repetition of one case. Its turns are captured like those of a live agent, with the case's
    references. A call that makes no turn counts as a turn with the call's input and output. A call that raises becomes a turn
    with that error, and the experiment continues.

    Args:
        task: a function or coroutine function that receives a case's input.
        dataset: a file (``.jsonl``, ``.csv``, ``.parquet``), a list of mappings, or a DataFrame. ``input`` is the task's
            argument, and ``case_id`` names the case. All other
            columns are references, such as ``ground_truth`` and ``expected_tools``.
        metrics: as for :func:`score_turns`.
        repetitions: number of calls per case, to measure how much answers vary.
        concurrency: number of concurrent calls.
        config: as for :func:`load_config`.
        judge: model for ``llm_`` metrics. The default is the configuration's judge.
        embedder: model for ``embed_`` metrics. The default is the configuration's embedder.
        tracer_provider: provider whose spans are captured. The default is the global one, created if there is none.
        progress: True to show a progress bar on standard error. The default is True on a terminal.

    Raises:
        ConfigError: If the dataset is unreadable or empty, a metric is unknown, or a number isn't positive.
    """
    for name, number in (("repetitions", repetitions), ("concurrency", concurrency)):
        if not isinstance(number, int) or number < 1:
            raise ConfigError(f"{name}: must be a positive whole number, got {number!r}")
    runs = _runs(dataset, repetitions)
    loaded = load_config(config)
    selected = selected_metrics(loaded, metrics)  # reports errors in the metrics before the task runs
    bar = _Bar(len(runs), sys.stderr.isatty() if progress is None else progress)
    with captured_turns(tracer_provider) as kept:
        if inspect.iscoroutinefunction(task) or inspect.iscoroutinefunction(getattr(task, "__call__", None)):  # noqa: B004 - of an object whose call is one
            with ThreadPoolExecutor(1, "otel-agenteval-experiment") as pool:  # in a notebook, this thread already runs a loop
                pool.submit(lambda: asyncio.run(_run_all(task, runs, concurrency, bar))).result()
        else:
            with ThreadPoolExecutor(concurrency, "otel-agenteval-experiment") as pool:
                list(pool.map(lambda run: _run_one(task, run, bar), runs))
    bar.close()
    _give_turns(runs, kept)
    with models(loaded, judge, embedder) as (asks, embeds):
        return Experiment(list(_scored(runs, selected, loaded, asks, embeds)))


def _runs(dataset: Any, repetitions: int) -> list[_Run]:
    found, known = [], set()
    for number, case in enumerate(cases_in(dataset), 1):
        if case.input is None:
            raise ConfigError(f"dataset: case {case.case_id}: input is required, got none. The task receives the column input")
        name = case.case_id or str(number)
        if name in known:
            raise ConfigError(f"dataset: case_id must be unique, got {name!r} twice")
        known.add(name)
        found += [_Run(case, name, repetition) for repetition in range(1, repetitions + 1)]
    if not found:
        raise ConfigError("dataset: must contain at least one case, got none")
    return found


# --- running -------------------------------------------------------------------------------------------------------


def _expecting(run: _Run) -> expect:
    return expect(**{"case_id": run.case_id, **run.case.references, _RUN: run.token})


def _run_one(task: Callable[[Any], Any], run: _Run, bar: _Bar) -> None:
    started = time.perf_counter()
    try:
        with _expecting(run):
            run.output = task(run.case.input)
            if inspect.isawaitable(run.output):
                run.output = asyncio.run(_awaited(run.output))
    except Exception as error:
        run.error = error
    run.seconds = time.perf_counter() - started
    bar.step()


async def _awaited(something: Any) -> Any:
    return await something


async def _run_all(task: Callable[[Any], Any], runs: Sequence[_Run], concurrency: int, bar: _Bar) -> None:
    room = asyncio.Semaphore(concurrency)

    async def one(run: _Run) -> None:
        async with room:
            started = time.perf_counter()
            try:
                with _expecting(run):
                    run.output = await task(run.case.input)
            except Exception as error:
                run.error = error
            run.seconds = time.perf_counter() - started
            bar.step()

    await asyncio.gather(*map(one, runs))


# --- turns and scores ----------------------------------------------------------------------------------------------


def _give_turns(runs: Sequence[_Run], kept: Iterable[Any]) -> None:
    """Assign captured turns to their runs, in their latest revision.

    A run without turns gets one turn with the task's input and output.
    """
    by_run: dict[str, dict[str, Turn]] = {}
    for scored in kept:
        by_run.setdefault(str(scored.turn.references.pop(_RUN, "")), {})[scored.turn.turn_id] = scored.turn
    for run in runs:
        found = by_run.get(run.token, {}).values()
        run.turns = sorted(found, key=lambda turn: turn.start.timestamp() if turn.start else 0.0) or [_turn_without_spans(run)]


def _turn_without_spans(run: _Run) -> Turn:
    error = None if run.error is None else ErrorInfo(type=type(run.error).__name__, message=str(run.error))
    output = None if run.output is None else str(run.output)
    references = {"case_id": run.case_id, **run.case.references}
    return Turn(
        turn_id=uuid.uuid4().hex, input=str(run.case.input), output=output, error=error, references=references,
        ground_truth=references.get("ground_truth"), duration_s=run.seconds,
    )  # fmt: skip


def _scored(
    runs: Sequence[_Run], metrics: Sequence[BoundMetric], config: Config, judge: Asks | None, embedder: Embeds | None
) -> Iterator[Trial]:
    def scores_of(run: _Run) -> list[tuple[Turn, Sequence[Score]]]:
        return list(score_turns(run.turns, metrics, config=config, judge=judge, embedder=embedder))

    asks = judge is not None or embedder is not None
    with ThreadPoolExecutor(config.judge.max_concurrency if asks else 1, "otel-agenteval-scores", mark_as_ours) as pool:
        for run, scored in zip(runs, pool.map(scores_of, runs), strict=True):
            error = None if run.error is None else f"{type(run.error).__name__}: {run.error}"
            yield Trial(run.case_id, run.repetition, scored, error, run.seconds)


class _Bar:
    def __init__(self, total: int, shown: bool) -> None:
        self._total, self._shown, self._done = total, shown, 0
        self._lock = threading.Lock()

    def step(self) -> None:
        with self._lock:
            self._done += 1
            if self._shown:
                filled = 30 * self._done // self._total
                self._write(f"\r[{'█' * filled}{' ' * (30 - filled)}] {self._done} of {self._total}")

    def close(self) -> None:
        if self._shown:
            self._write("\r\033[K")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
