"""Made-up rows of a score store: some written by hand, or very many."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from otel_agenteval.core import jsonio
from otel_agenteval.core.finding import Finding, detail_of
from otel_agenteval.evaluation.first_fault import Fault
from otel_agenteval.outlets.store.statements import SCORE_COLUMNS, TURN_COLUMNS
from otel_agenteval.outlets.store.writer import Retention, Rows, ScoreStore
from tests.support.clock import FakeClock

NOW = 1_795_000_000.0
"""2026-11-18, the time at which tests read these stores."""
AGENTS, MODELS, METRICS = (
    ("travel", "support", "billing"),
    ("gpt-5", "qwen3"),
    ("code_refusal", "code_tool_success", "llm_faithfulness"),
)
_NO_TURN, _NO_SCORE = dict.fromkeys(TURN_COLUMNS), dict.fromkeys(SCORE_COLUMNS)


def turn_row(number: int, **more: Any) -> dict[str, Any]:
    """Return the row of a turn. ``content`` can be an object."""
    trace = f"{number + 1:032x}"
    row = {
        **_NO_TURN, "turn_id": f"{trace}-{number + 1:016x}", "trace_id": trace, "span_id": f"{number + 1:016x}", "revision": 1, "is_conversation": 0,
        "service": "shop", "agent": "travel", "model": "gpt-5", "start": NOW - 3600.0 + number, "stored_at": NOW - 3600.0 + number, "duration_s": 2.0,
        "cost_usd": 0.01, "input_tokens": 100, "output_tokens": 20, "close_reason": "root_ended", "complete": 1, **more,
    }  # fmt: skip
    for name in ("content", "tools", "skipped", "attributes", "facts", "fault"):
        if row[name] is not None and not isinstance(row[name], str):
            row[name] = jsonio.dumps(row[name])
    return row


def failed_row(number: int, fault: Fault, represents: float | None = 1.0, **more: Any) -> dict[str, Any]:
    """Return the row of a failed turn, as the outlet writes it."""
    return turn_row(number, fault=fault._asdict(), mode=fault.mode, failed=represents, **more)


def score_row(turn: dict[str, Any], metric: str = "code_refusal", value: float | None = 1.0, **more: Any) -> dict[str, Any]:
    """Return the row of a score. It passes from 0.5."""
    passed = None if value is None else int(value >= 0.5)
    row = {
        **_NO_SCORE, "result_id": f"{turn['turn_id']}:{metric}:{turn['revision']}", "turn_id": turn["turn_id"], "revision": turn["revision"], "metric": metric,
        "kind": metric.partition("_")[0], "version": "1", "type": "numeric", "unit": "1", "direction": "up", "policy": "trend",
        "status": "ok" if value is not None else "error", "value": value, "passed": passed, "label": None if passed is None else "pass" if passed else "fail",
        "threshold": 0.5, "error_type": None if value is not None else "timeout", "scored_at": turn["stored_at"], **more,
    }  # fmt: skip
    if row["detail"] is not None and not isinstance(row["detail"], str):
        row["detail"] = jsonio.dumps(row["detail"])
    return row


def store_at(path: str | Path, clock: FakeClock | None = None) -> ScoreStore:
    """Return a store that deletes nothing."""
    return ScoreStore(path, Retention(1e9, 1 << 40), *([clock] if clock is not None else []))


def some_turns(
    count: int, *, days: float = 3.0, seed: int = 1, content: bool = False
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield turns with scores, spread over the days before :data:`NOW`. A tenth of them is judged."""
    rng = random.Random(seed)
    for number in range(count):
        at = NOW - days * 86_400 * (1 - number / count)
        said = {
            "input": f"Question {number}?",
            "output": f"Answer {number}.",
            "messages": [{"role": "user", "content": f"Question {number}?"}],
        }
        turn = turn_row(
            number, start=at, stored_at=at + 2, agent=AGENTS[number % 3], model=MODELS[number % 2], service_version="1.4" if number < count * 0.7 else "1.5",
            tools=["search", "book"] if number % 4 == 0 else None, error="timeout" if number % 50 == 7 else None, conversation_id=f"conv-{number // 5}",
            case_key=f"case-{number % 40}", duration_s=rng.expovariate(0.5), content=said if content else None, facts={"tool_calls": number % 4},
        )  # fmt: skip
        passes = rng.random() > 0.05
        finding = Finding("output", 0, 6, "refusal", "critical" if turn["agent"] == "travel" else "warning")
        scores = [
            score_row(turn, "code_refusal", float(passes), detail=None if passes else detail_of([finding])),
            score_row(turn, "code_tool_success", round(rng.random(), 2)),
        ]
        if rng.random() < 0.1:
            more = {
                "sample_probability": 0.1,
                "judge_model": "qwen3",
                "judge_cost_usd": 0.001,
                "explanation": "It answers what was asked.",
            }
            scores.append(score_row(turn, "llm_faithfulness", round(rng.random(), 2), **more))
        yield turn, scores


def failing_turns(
    fact: str, value: str, prompt: str, *, tenant: str | None = None, start: int = 0, count: int = 400
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield turns that mostly fail ``code_tool_success`` if they have both the fact and the prompt."""
    draw = random.Random(1)
    for number in range(start, start + count):
        has, used = draw.random() < 0.3, draw.choice([prompt, "p2"])
        facts: dict[str, Any] = {"model": "gpt-5", "tool": ["search", "pay"], "duration_s": draw.random()}
        if has:
            facts[fact] = value
        attributes, version = {"gen_ai.prompt.version": used}, "1.4" if number % 2 else "1.5"
        turn = turn_row(number, tenant=tenant, service_version=version, facts=facts, attributes=attributes)
        if tenant is not None:
            turn["turn_id"] = f"{tenant}:{turn['turn_id']}"
        fails = draw.random() < (0.9 if has and used == prompt else 0.03)
        scores = [("code_tool_success", float(not fails)), ("code_refusal", float(number % 200 > 0))]
        yield turn, [score_row(turn, metric, value) for metric, value in scores]


def filled(
    path: Path,
    turns: Sequence[tuple[dict[str, Any], list[dict[str, Any]]]] | Iterator[tuple[dict[str, Any], list[dict[str, Any]]]],
) -> str:
    """Create a store with these turns, and return its path."""
    store = store_at(path)
    batch: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for one in turns:
        batch.append(one)
        if len(batch) == 2_000:
            _write(store, batch)
            batch.clear()
    _write(store, batch)
    store.close()
    return str(path)


def _write(store: ScoreStore, batch: Sequence[tuple[dict[str, Any], list[dict[str, Any]]]]) -> None:
    store.write(Rows([turn for turn, _ in batch], [score for _, scores in batch for score in scores]))
