"""Score turns in notebooks and scripts, with metrics in any form that a user has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from ..config.loader import load_config
from ..config.root import Config
from ..core.errors import ConfigError
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.case_metrics import CaseMetrics
from ..evaluation.evaluator import begin
from ..evaluation.references import ReferenceSources
from ..evaluation.selection import allow_media, named, select_metrics, told_apart, with_default_policy
from ..metrics.bound_metric import BoundMetric, get_metric
from ..metrics.registry import metric_of
from ..report.frames import ScoredTurns
from ..turns.conversations import RecordedConversations, looks_back

if TYPE_CHECKING:
    from ..metrics.registry import Asks, Embeds

MetricLike = str | Mapping[str, Any] | BoundMetric | Callable[..., Any]
"""A metric: its name, ``{name: {parameters}}``, the result of :func:`get_metric`, or a function of a turn."""


def score_turns(
    turns: Iterable[Turn] | Turn,
    metrics: Sequence[MetricLike] | None = None,
    *,
    config: Config | Mapping[str, Any] | str | None = None,
    judge: Asks | None = None,
    embedder: Embeds | None = None,
) -> ScoredTurns:
    """Evaluate turns one by one, like ``otel-agenteval eval``. Meant for notebooks and scripts.

    Judged metrics that read the history receive the earlier turns with the same conversation id.

    Args:
        turns: turns from :func:`load_turns`, or a single turn.
        metrics: names, ``{name: {parameters}}``, results of :func:`get_metric`, or functions that receive a turn and return
            a number, a truth value or a :class:`Result`. The default is the configuration's selection.
        config: as for :func:`load_config`.
        judge: model for ``llm_`` metrics. The default is the configuration's judge.
        embedder: model for ``embed_`` metrics. The default is the configuration's embedder.

    Raises:
        ConfigError: If a metric is unknown or the configuration is invalid.
    """
    loaded = load_config(config)
    selected = selected_metrics(loaded, metrics)
    references = ReferenceSources(loaded)
    cases = CaseMetrics(loaded, selected, references.cases)
    given = [turns] if isinstance(turns, Turn) else turns
    redact = loaded.privacy.redact
    conversations = RecordedConversations(loaded.conversation, history=looks_back(selected), whole=False)
    with models(loaded, judge, embedder) as (asks, embeds):

        def scores_of(turn: Turn) -> list[Score]:
            rest = begin(turn, selected, references, judge=asks, embedder=embeds, redact=redact, cases=cases)
            conversations.take(turn)
            return rest()

        return ScoredTurns((turn, scores_of(turn)) for turn in given)


def selected_metrics(
    config: Config, metrics: Sequence[MetricLike] | None, whole: Sequence[BoundMetric] = ()
) -> list[BoundMetric]:
    """Return the given metrics, ready to evaluate, or the configuration's selection. Names that are only configured among
    ``whole``, the metrics of conversations, are left out. Equal metrics are evaluated once, and those with different parameters
    are scored separately. Raises ConfigError for an unknown metric or parameter, other entries, or two functions of one name.
    """
    configured = select_metrics(config)
    if metrics is None:
        return configured
    if isinstance(metrics, str):
        raise ConfigError(f"metrics: must be a list, got the text {metrics!r}. Write [{metrics!r}]")
    found: dict[tuple[str, str], BoundMetric] = {}
    for bound in (bound for metric in metrics for bound in _bound(config, metric, configured, whole)):
        key = bound.name, bound.signature_hash
        if key in found and found[key].metric.fn is not bound.metric.fn:
            raise ConfigError(f"metrics: {bound.name} stands for two functions. Rename one of them")
        if key not in found or bound.policy == "gate":
            found[key] = bound
    names = Counter(name for name, _ in found)
    return told_apart([copy(bound) if names[bound.name] > 1 else bound for bound in found.values()])


def _bound(
    config: Config, metric: MetricLike, configured: Sequence[BoundMetric], whole: Sequence[BoundMetric]
) -> list[BoundMetric]:
    if isinstance(metric, BoundMetric):
        return [metric]
    if isinstance(metric, str):
        of_turns, others = named(config, [metric], configured, whole)
        return of_turns or [one for one in others if one not in whole]  # a turn can have its session's signals
    if isinstance(metric, Mapping):
        alone: dict[str, Any] = {"inline": {"metrics": []}, "metrics": [metric], "scale": config.scale}
        found = select_metrics(load_config(alone, env={}))[0]  # without its signals
        allow_media(config, found)
        return [found if "policy" in metric else with_default_policy(config, found)]
    if callable(metric):
        return [get_metric(metric_of(metric).name)]
    what = "a name, {name: {parameters}}, the result of get_metric(), or a function of a turn"
    raise ConfigError(f"metrics: each must be {what}, got {type(metric).__name__}")


@contextmanager
def models(config: Config, judge: Asks | None, embedder: Embeds | None) -> Iterator[tuple[Asks | None, Embeds | None]]:
    """Return judge and embedder within the budget. Those from the configuration are closed at the end."""
    from ..judging.models import Embedder, Judge, JudgeGroup, embedder_from, judge_from
    from ..judging.session import CommandBudget

    own_judge = judge_from(config) if judge is None else None
    own_embedder = embedder_from(config) if embedder is None else None
    asked, embedding = judge or own_judge, embedder or own_embedder
    budget = CommandBudget(config)
    try:
        yield (
            budget.judge(asked) if isinstance(asked, (Judge, JudgeGroup)) else asked,
            budget.embedder(embedding) if isinstance(embedding, Embedder) else embedding,
        )
    finally:
        budget.close()
        for model in (own_judge, own_embedder):
            if model is not None:
                model.close()
