"""The simulated user of an experiment, and the scores of its turns and conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..config.root import Config
from ..core.errors import JudgeError, MetricError
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.case_metrics import CaseMetrics
from ..evaluation.evaluator import begin
from ..evaluation.redaction import Redactor
from ..evaluation.references import ReferenceSources
from ..metrics.bound_metric import BoundMetric
from ..metrics.evaluation_context import evaluating
from ..turns.conversations import RecordedConversations, looks_back, of_conversations
from .case_script import Call, CaseScript, Simulate

if TYPE_CHECKING:
    from ..metrics.registry import Asks, Embeds

SIMULATED_USER = "simulated_user"
"""Name of the simulated user, for ``judge.choose`` and in errors."""
_TASK = (
    "Play the user who talks to an AI agent. Your criteria describe the user's character and goal. The material is the conversation so far: "
    "your messages have the role user, and the agent's have the role assistant. Write the user's next message, as this user would write it, in "
    "the user's own language and usually in one or two sentences. The first message opens the conversation. Give the facts of your "
    "criteria only when the agent needs them, and invent none. Never help the agent, never play it, and never mention these instructions. When "
    "the goal is reached, or the agent can't reach it, end the conversation with an empty message."
)
_REPLY = '{"reason": "<is the goal reached, out of reach, or what is missing>", "message": "<the next message, empty to end>"}'


def model_user(judge: Asks, config: Config) -> Simulate:
    """Return a simulated user played by the judge's model, or by the one that ``judge.choose`` has for ``simulated_user``."""

    def simulate(history: list[dict[str, Any]], case: Mapping[str, Any]) -> str:
        redactor = Redactor(config.privacy.redact)
        said = [{"role": message["role"], "content": redactor.text(message["content"])} for message in history]
        with evaluating(SIMULATED_USER, "1", reads_all=False):
            reply = judge.ask("user", _TASK, {"conversation": said or "(none)"}, _REPLY, criteria={"user": case["user"]})
        message = reply.get("message")
        if not isinstance(message, (str, type(None))):
            raise JudgeError(f"{SIMULATED_USER}: message must be a text", "unreadable_reply")
        return (message or "").strip()

    return simulate


@dataclass(frozen=True, slots=True)
class RunScorer:
    """Scores the turns of a run, and their conversation."""

    cases: CaseMetrics
    whole: Sequence[BoundMetric]
    """Metrics of conversations, in addition to those among ``cases``."""
    config: Config
    sources: ReferenceSources
    judge: Asks | None
    embedder: Embeds | None

    def scored(self, script: CaseScript, calls: Sequence[Call], conversation_id: str) -> list[tuple[Turn, list[Score]]]:
        """Return the turns with their scores. If the case is a conversation, it follows as one turn."""
        turns = [(turn, self.cases.of(call.case)) for call in calls for turn in call.turns]
        if not script.is_conversation:
            return [(turn, self._begun(turn, metrics)()) for turn, metrics in turns]
        configured = {metric.name for metric in self.whole}
        whole = [one for one in self.cases.of(script.case) if of_conversations(one) and one.name not in configured]
        turns = [(turn, [one for one in metrics if not of_conversations(one)]) for turn, metrics in turns]
        single = [one for _, metrics in turns for one in metrics]
        conversations = RecordedConversations(
            self.config.conversation, history=looks_back(single), whole=bool(whole or self.whole)
        )
        found = []
        for turn, metrics in ((turn.but({"conversation_id": conversation_id}), metrics) for turn, metrics in turns):
            rest = self._begun(turn, metrics)
            conversations.take(turn)
            scores = rest()
            conversations.note(turn, scores)
            found.append((turn, scores))
        for conversation in (ended.turn for ended in conversations.ended()):
            conversation.references = _of_conversation(conversation.references, script, calls)
            conversation.ground_truth = conversation.relevant_ids = None  # set again from the references
            found.append((conversation, self._begun(conversation, [*whole, *self.whole])()))
        return found

    def late(self, calls: Sequence[Call], seconds: float) -> list[tuple[Turn, list[Score]]]:
        """Return the turns with an error for each metric, because the scores weren't there in time."""
        error = MetricError("timeout", f"the metrics of this case did not return within {seconds:g} s")
        return [(turn, [one.failed(error) for one in self.cases.of(call.case)]) for call in calls for turn in call.turns]

    def _begun(self, turn: Turn, metrics: Sequence[BoundMetric]) -> Callable[[], list[Score]]:
        redact = self.config.privacy.redact
        return begin(turn, metrics, self.sources, judge=self.judge, embedder=self.embedder, redact=redact)


def _of_conversation(last: Mapping[str, Any], script: CaseScript, calls: Sequence[Call]) -> dict[str, Any]:
    """Return the case's references, completed by the last turn's references and the expected tools of all turns."""
    found = {**last, **script.case.references}
    found.pop("case_turn", None)
    tools = [call.references.get("expected_tools") or [] for call in calls]
    if any(tools) and "expected_tools" not in script.case.references:
        found["expected_tools"] = [tool for each in tools for tool in (each if isinstance(each, list) else [each])]
    return found
