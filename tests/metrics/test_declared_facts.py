"""Metrics read only the turn fields that they declare. A turn that records each access checks them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import JudgeError
from otel_agenteval.metrics import registry
from otel_agenteval.metrics.registry import catalog
from tests.metrics.test_vectors import VECTORS
from tests.support.rig import Rig

GIVEN = frozenset(
    ("ground_truth", "relevant_ids", "context", "history", "session", "workflow", "agents", "interactions", "conflicts", "metadata",
     "privacy", "logprobs", "handoffs", "attachments")
)  # fmt: skip
"""Fields that exist only if content is captured, requested or provided. Other fields always exist."""
VECTOR_LIST = [
    vector for path in sorted(VECTORS.glob("*.json")) for vector in json.loads(path.read_text(encoding="utf-8"))["vectors"]
]
TURNS = list({frozenset(vector["turn"]): vector["turn"] for vector in VECTOR_LIST if "turn" in vector}.values())
"""One turn of each shape."""
RULE = "Never mention the staff discount of Acme to a customer who asks."
MORE = (
    ("code_max_cost", {"max_cost_usd": 1}, {"output": "a"}),
    ("llm_noise_sensitivity", {}, {"output": "a", "references": {"baseline_response": "b"}}),
    ("code_system_prompt_leak", {}, {"output": RULE, "system": RULE}),
    ("code_ungrounded_urls", {}, {"output": "See https://a.dev/x.", "tool_calls": []}),
    ("code_secret_leak", {}, {"output": "The password is Kestrel!4417-Pond", "input": "Make me a password."}),
    ("code_ungrounded_numbers", {}, {"output": "4711 seats", "tool_calls": []}),
)
"""Turns that the catalog's examples lack."""


class _References(dict[str, Any]):
    """References that record which of them are read."""

    def __init__(self, given: dict[str, Any], noted: set[str]) -> None:
        super().__init__(given)
        self._noted = noted

    def get(self, name: str, default: Any = None) -> Any:
        self._noted.add(name)
        return super().get(name, default)


class _Noting(oa.Turn):
    """A turn that records which fields are read."""

    def noting(self) -> tuple[set[str], set[str]]:
        fields: set[str] = set()
        references: set[str] = set()
        self.__dict__["references"] = _References(self.__dict__.get("references", {}), references)
        self.__dict__["_fields"] = fields
        return fields, references

    def __getattribute__(self, name: str) -> Any:
        if name in GIVEN:
            object.__getattribute__(self, "__dict__").get("_fields", set()).add(name)
        return super().__getattribute__(name)


class _Judge:
    """A judge with the replies of a vector. After them, calls fail."""

    def __init__(self, replies: Sequence[Any] = ()) -> None:
        self._replies = [reply["reply"] for reply in replies if isinstance(reply.get("reply"), dict)]

    def ask(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if not self._replies:
            raise JudgeError("no reply left")
        return self._replies.pop(0)


class _Embedder:
    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.5] for _ in texts]


def _metrics(name: str, params: dict[str, Any]) -> list[Any]:
    """Return a vector's metric, with and without parameters that replace references."""
    if "oracle" in params:
        return []
    try:
        known = oa.get_metric(name).metric.parameters
        required = {key: value for key, value in params.items() if key in known and known[key].required}
        return [oa.get_metric(name, **params), oa.get_metric(name, **required)]
    except oa.ConfigError:
        return []


@pytest.fixture(scope="module")
def read() -> dict[str, set[str]]:
    """Return the fields that each metric read in its examples, and on a turn of each shape."""
    found: dict[str, set[str]] = defaultdict(set)

    def note(metric: Any, turn: dict[str, Any], replies: Sequence[Any] = ()) -> None:
        about = _Noting.from_dict(turn)
        fields, references = about.noting()
        metric.evaluate(about, judge=_Judge(replies), embedder=_Embedder())
        found[metric.name] |= fields | references

    for vector in VECTOR_LIST:
        if "inner_results" not in vector:
            for metric in _metrics(vector["metric"], vector["params"]):
                note(metric, vector["turn"], vector.get("judge_replies") or ())
    for metric in catalog():
        bound = oa.get_metric(metric.name)
        if bound.missing is None and metric.fn.__module__.startswith("otel_agenteval."):
            for turn in TURNS:
                note(bound, turn)
    for name, params, turn in MORE:
        note(oa.get_metric(name, **params), turn)
    return found


def test_a_metric_reads_no_fact_that_it_does_not_declare(read: dict[str, set[str]]) -> None:
    declared = {metric.name: metric.reads | {"handoffs", "attachments"} for metric in catalog()}  # spans have them, too
    assert {name: facts - declared[name] for name, facts in read.items() if facts - declared[name]} == {}


def test_a_metric_declares_no_fact_that_it_does_not_read(read: dict[str, set[str]]) -> None:
    unread = {
        metric.name: facts
        for metric in catalog()
        if metric.name in read and (facts := {*metric.uses, *metric.references} - read[metric.name])
    }
    assert unread == {}


# --- metrics of users


@pytest.mark.parametrize(
    ("declared", "known"),
    [({"uses": ("history",)}, [0.0, 1.0, 2.0]), ({"needs": ("history",)}, [1.0, 2.0]), ({}, [0.0, 0.0, 0.0])],
)
def test_earlier_turns_are_kept_for_a_metric_that_declares_them(
    monkeypatch: pytest.MonkeyPatch, declared: dict[str, Any], known: list[float]
) -> None:
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))

    @oa.metric(unit="{item}", **declared)
    def llm_looks_back(turn: oa.Turn, judge: Any) -> oa.Result:
        """How many turns of the conversation it is told of."""
        return oa.Result(float(len(turn.history)))

    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "queue": {"backend": "memory"}}
    with Rig({"inline": {"metrics": []}, "metrics": ["llm_looks_back"], "judge": judge}) as rig:
        for answer in ("One.", "Two.", "Three."):
            rig.run(says=answer, attributes={"gen_ai.conversation.id": "c1"})
            rig.turns()
        assert rig.engine.drain(60, judges=True)
        found = [score.value for scored in rig.scored() for score in scored.scores if score.metric == "llm_looks_back"]
    assert sorted(value for value in found if value is not None) == known
