"""Score turns in notebooks, scripts, and experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..core.errors import ConfigError, JudgeError, MetricError
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.case_metrics import CaseMetrics
from ..evaluation.evaluator import begin
from ..evaluation.redaction import Redactor
from ..evaluation.references import ReferenceSources
from ..evaluation.selection import allow_media, named, select_metrics, told_apart, with_default_policy
from ..metrics.bound_metric import BoundMetric, get_metric
from ..metrics.question import evaluating
from ..metrics.registry import Asks, Embeds, metric_of
from ..report.frames import ScoredTurns
from ..turns.conversations import RecordedConversations, looks_back, of_conversations
from .case_script import Call, CaseScript, Simulate

MetricLike = str | Mapping[str, Any] | BoundMetric | Callable[..., Any]
"""A metric, given as its name, ``{name: {parameters}}``, the result of :func:`get_metric`, or a function of a turn."""


def score_turns(
    turns: Iterable[Turn] | Turn,
    metrics: Sequence[MetricLike] | None = None,
    *,
    config: Config | Mapping[str, Any] | str | None = None,
    judge: Asks | None = None,
    embedder: Embeds | None = None,
) -> ScoredTurns:
    """Evaluate turns, but not whole conversations, as ``otel-agenteval eval`` does, in a notebook or script.

    If a judged metric reads the history, the metric gets the earlier turns with the same conversation ID.

    Args:
        turns: turns from :func:`load_turns`, or a single turn.
        metrics: names, ``{name: {parameters}}``, results of :func:`get_metric`, or functions that receive a turn and return
            a number, a bool, or a :class:`Result`. The default is the configured metrics.
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
    """Return ``metrics`` ready to evaluate or, if None, the configured turn metrics. Ignore duplicates, and names of conversation
    metrics in ``whole``. If a metric has several parameter sets, give each set its own score name. Raise ConfigError for an unknown
    metric or parameter, an invalid entry, or two functions with the same name.
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
            raise ConfigError(f"metrics: two functions have the name {bound.name}. Rename one of them")
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
        return of_turns or [one for one in others if one not in whole]  # a turn can contain signals of its session
    if isinstance(metric, Mapping):
        alone: dict[str, Any] = {"inline": {"metrics": []}, "metrics": [metric], "scale": config.scale}
        found = select_metrics(load_config(alone, env={}))[0]  # without the metrics of its signals
        allow_media(config, found)
        return [found if "policy" in metric else with_default_policy(config, found)]
    if callable(metric):
        return [get_metric(metric_of(metric).name)]
    what = "a name, {name: {parameters}}, the result of get_metric(), or a function of a turn"
    raise ConfigError(f"metrics: each item must be {what}, got {type(metric).__name__}")


@contextmanager
def models(config: Config, judge: Asks | None, embedder: Embeds | None) -> Iterator[tuple[Asks | None, Embeds | None]]:
    """Yield the judge and the embedder. The budget doesn't limit custom classes. On exit, close the models from ``config``."""
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


SIMULATED_USER = "simulated_user"
_TASK = (
    "Play the user who talks to an AI agent. Your criteria describe the user's character and goal. The material is the conversation so far: "
    "your messages have the role user, and the agent's have the role assistant. Write the user's next message, as this user would write it, in "
    "the user's own language and usually in one or two sentences. The first message opens the conversation. Give the facts of your "
    "criteria only when the agent needs them, and invent none. Never help the agent, never play it, and never mention these instructions. When "
    "the goal is reached, or the agent can't reach it, end the conversation with an empty message."
)
_REPLY = '{"reason": "<is the goal reached, out of reach, or what is missing>", "message": "<the next message, empty to end>"}'


def model_user(judge: Asks, config: Config) -> Simulate:
    """Return a simulated user, played by ``judge``. To use another model, add an entry ``simulated_user`` to ``judge.choose``."""

    def simulate(history: list[dict[str, Any]], case: Mapping[str, Any]) -> str:
        redactor = Redactor(config.privacy.redact)
        said = [{"role": message["role"], "content": redactor.text(message["content"])} for message in history]
        with evaluating(SIMULATED_USER, "1", reads_all=False):
            reply = judge.ask("user", _TASK, {"conversation": said or "(none)"}, _REPLY, criteria={"user": case["user"]})
        message = reply.get("message")
        if not isinstance(message, (str, type(None))):
            raise JudgeError(f"{SIMULATED_USER}: message must be text, got {type(message).__name__}", "unreadable_reply")
        return (message or "").strip()

    return simulate


@dataclass(frozen=True, slots=True)
class RunScorer:
    cases: CaseMetrics
    whole: Sequence[BoundMetric]
    """Configured conversation metrics. They are evaluated in addition to the metrics that ``cases`` returns for a case."""
    config: Config
    sources: ReferenceSources
    judge: Asks | None
    embedder: Embeds | None

    def scored(self, script: CaseScript, calls: Sequence[Call], conversation_id: str) -> list[tuple[Turn, list[Score]]]:
        """Return (turn, scores) pairs. If conversation metrics scored a conversation, it is the last pair's turn."""
        turns = [(turn, self.cases.of(call.case)) for call in calls for turn in call.turns]
        if not script.is_conversation:
            return [(turn, self._prepared(turn, metrics)()) for turn, metrics in turns]
        configured = {metric.name for metric in self.whole}
        whole = [one for one in self.cases.of(script.case) if of_conversations(one) and one.name not in configured]
        turns = [(turn, [one for one in metrics if not of_conversations(one)]) for turn, metrics in turns]
        single = [one for _, metrics in turns for one in metrics]
        conversations = RecordedConversations(
            self.config.conversation, history=looks_back(single), whole=bool(whole or self.whole)
        )
        found = []
        for turn, metrics in ((turn.but({"conversation_id": conversation_id}), metrics) for turn, metrics in turns):
            rest = self._prepared(turn, metrics)
            conversations.take(turn)
            scores = rest()
            conversations.note(turn, scores)
            found.append((turn, scores))
        for conversation in (ended.turn for ended in conversations.ended()):
            conversation.references = _of_conversation(conversation.references, script, calls)
            conversation.ground_truth = conversation.relevant_ids = None  # set again from the references
            found.append((conversation, self._prepared(conversation, [*whole, *self.whole])()))
        return found

    def late(self, calls: Sequence[Call], seconds: float) -> list[tuple[Turn, list[Score]]]:
        error = MetricError("timeout", f"the metrics of this case did not return within {seconds:g} s")
        return [(turn, [one.failed(error) for one in self.cases.of(call.case)]) for call in calls for turn in call.turns]

    def _prepared(self, turn: Turn, metrics: Sequence[BoundMetric]) -> Callable[[], list[Score]]:
        redact = self.config.privacy.redact
        return begin(turn, metrics, self.sources, judge=self.judge, embedder=self.embedder, redact=redact)


def _of_conversation(last: Mapping[str, Any], script: CaseScript, calls: Sequence[Call]) -> dict[str, Any]:
    """Return the references for a whole conversation: the case's references or, if missing, the last turn's references. If the case
    doesn't set ``expected_tools``, the expected tools of all turns are combined.
    """
    found = {**last, **script.case.references}
    found.pop("case_turn", None)
    tools = [call.references.get("expected_tools") or [] for call in calls]
    if any(tools) and "expected_tools" not in script.case.references:
        found["expected_tools"] = [tool for each in tools for tool in (each if isinstance(each, list) else [each])]
    return found
