"""Judges that give a requested score, for any metric."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from otel_agenteval.judging.judge_bench.run import BenchCase, _sample, scale_of
from otel_agenteval.judging.models.base import JudgeModel
from otel_agenteval.judging.models.reply import schema_of
from otel_agenteval.metrics.question import Question

_STATEMENTS = 20


class Aiming(JudgeModel):
    """Answers all judge calls of a metric so that its value is as near to a target as possible."""

    model = "aiming"

    def __init__(self, case: BenchCase, goodness: float) -> None:
        self.case = case
        self.share = 1 - goodness if case.bound.metric.direction == "down" else goodness
        """Target on the metric's scale."""
        self._answers = 0
        """Number of the agent's answers that were judged one by one."""

    def answer(self, question: Question) -> dict[str, Any]:
        stage, reply = question.stage, question.reply
        found: dict[str, Any] = _sample(schema_of(reply) or {"type": "object"})
        name = self.case.metric
        yes = self.share >= 0.5
        for key in ("success", "equivalent"):
            if key in found:
                found[key] = yes
        if "pass" in found:
            found["pass"] = yes
        if "passed" in found:
            found["passed"] = self._goodness >= 0.5
            found["recommended_action"] = "allow" if self._goodness >= 0.5 else "block"
            if name.endswith("_passed"):
                found["score"] = 0 if yes else 7
                return found
        for key in ("score", "confidence", "verdict"):
            if isinstance(found.get(key), (int, float)) and not isinstance(found[key], bool):
                found[key] = self._number(key, reply)
        if stage in ("statements", "claims"):
            return {stage: [f"statement {n}" for n in range(_STATEMENTS)]}
        if "fabricatedElements" in found:
            found["fabricatedElements"] = []
        return {**found, **self._special(stage, found, name, yes)}

    @property
    def _goodness(self) -> float:
        return 1 - self.share if self.case.bound.metric.direction == "down" else self.share

    def _number(self, key: str, reply: str) -> float:
        form = re.search(rf'"{key}": <(?:whole number from )?([\d.]+) to ([\d.]+)>', reply)
        assert form is not None, reply
        low, high = float(form[1]), float(form[2])
        if self.case.metric == "llm_turn_risk":
            assert (low, high) == scale_of(self.case.bound)
        return low + self.share * (high - low)

    def _special(self, stage: str, found: Mapping[str, Any], name: str, yes: bool) -> dict[str, Any]:
        if name == "llm_moderation":
            return {"flags": [] if yes else [{"description": "d", "code": "violence", "confidence": 1}]}
        if name == "llm_aspect_critic":
            return {"verdict": yes}
        if name == "llm_factuality":
            return {"category": "C" if yes else "D"}
        if name == "llm_context_relevance":
            return {"relevant": list(range(round(self.share * len(self.case.turn["context"])))), "insufficient": False}
        if name == "llm_context_precision":
            return {"verdict": "RELEVANT" if self._chunks()[int(stage.removeprefix("chunk_")) - 1] else "NOT_RELEVANT"}
        if name == "llm_role_adherence":
            own = [n for n, message in enumerate(self.case.turn["messages"]) if message["role"] == "assistant"]
            return {"verdicts": [{"index": n, "reason": "r"} for n in own[: round((1 - self.share) * len(own))]]}
        if name in ("llm_knowledge_retention", "llm_conversation_relevancy") and "verdict" in found:
            self._answers += 1
            answers = sum(message["role"] == "assistant" for message in self.case.turn["messages"])
            good = self._answers <= round(self.share * answers)
            return {"verdict": "yes" if good == (name == "llm_conversation_relevancy") else "no"}
        if stage == "verdicts":
            return {"verdicts": self._verdicts(name)}
        return {}

    def _verdicts(self, name: str) -> list[dict[str, str]]:
        many = len(self.case.turn["tool_calls"]) if name == "llm_argument_correctness" else _STATEMENTS
        words = {
            "llm_context_recall": ("SUPPORTED", "UNSUPPORTED"),
            "llm_hallucination": ("CONTRADICTED", "SUPPORTED"),
        }.get(name, ("yes", "no"))
        hits = round(self.share * many)
        return [{"reason": "r", "verdict": words[n >= hits]} for n in range(many)]

    def _chunks(self) -> tuple[bool, ...]:
        """Return the relevance of each chunk for which the average precision is nearest to the target."""

        def precision(chosen: Sequence[bool]) -> float:
            ranks = [rank for rank, hit in enumerate(chosen, 1) if hit]
            return sum(n / rank for n, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0

        options = itertools.product((True, False), repeat=len(self.case.turn["context"]))
        return min(options, key=lambda chosen: abs(precision(chosen) - self.share))
