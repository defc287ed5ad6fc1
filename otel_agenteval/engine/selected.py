"""The metrics of a configuration, by when they are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..config.root import Config
from ..core.faults import Faults
from ..evaluation.selection import select_conversation_metrics, select_metrics
from ..metrics.bound_metric import BoundMetric
from ..turns.recorded_conversations import looks_back


class Selected(NamedTuple):
    """What is to be evaluated."""

    of_turns: Sequence[BoundMetric]
    """On turns, of either kind."""
    of_conversations: Sequence[BoundMetric]
    """On whole conversations, of either kind."""
    computed: Sequence[BoundMetric]
    """On every turn, without asking a model, also for an inner metric."""
    judged: Sequence[BoundMetric]
    """On turns, by asking a judge or an embedder."""
    whole: Sequence[BoundMetric]
    """On whole conversations, without asking a model."""
    judged_whole: Sequence[BoundMetric]
    """On whole conversations, by asking a judge or an embedder."""

    @property
    def any_judged(self) -> bool:
        """Whether a model is asked at all."""
        return bool(self.judged or self.judged_whole)

    @property
    def history(self) -> bool:
        """Whether a judged metric of turns looks at what was said before them: conversations are held for it."""
        return looks_back(self.judged)

    @property
    def conversations(self) -> bool:
        """Whether conversations have to be held."""
        return bool(self.whole or self.judged_whole or self.history)


def selected(config: Config) -> Selected:
    """The metrics that a configuration asks for.

    Raises:
        ConfigError: one of them cannot be.
    """
    faults = Faults()
    of_turns: list[BoundMetric] = []
    of_conversations: list[BoundMetric] = []
    with faults:
        of_turns = select_metrics(config)
    with faults:
        of_conversations = select_conversation_metrics(config)
    faults.check()
    return Selected(of_turns, of_conversations, *_split(of_turns), *_split(of_conversations))


def _split(metrics: Sequence[BoundMetric]) -> tuple[list[BoundMetric], list[BoundMetric]]:
    """Those that are computed, and those that ask a model."""
    return [metric for metric in metrics if not metric.asks], [metric for metric in metrics if metric.asks]
