"""Measure how long the search for causes of failures takes in a large score store, in SQLite and in PostgreSQL.

    python benchmarks/causes.py                      a million turns: 20 minutes, and 8 GB in the temporary folder
    python benchmarks/causes.py --turns 100000
    python benchmarks/causes.py --write

The store contains thirty days of five agents and twenty tenants. Each turn has six code metrics, and a tenth of the turns has two
judged metrics. A tenth of the turns fails ``code_tool_success``, mostly because a tool failed with one model. 50 turns fail
``code_refusal``.
"""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import harness
from harness import Row
from page import fill_store

MOST_SECONDS = 0.2
NOW, DAY = 1_795_000_000.0, 86_400
AGENTS, MODELS = ("travel", "support", "billing", "search", "coder"), ("gpt-5", "qwen3", "claude-sonnet-4", "gemini-2.5-pro")
TOOLS, LANGUAGES = ("search", "book", "pay", "mail", "calculate"), ("en", "en", "en", "en", "de", "fr", "ja")
COMMON, RARE = "code_tool_success", "code_refusal"
SOUND, JUDGED = (
    ("code_empty_answer", "code_pii_leakage", "code_truncated_answer", "code_language_match"),
    ("llm_faithfulness", "llm_relevance"),
)
RARE_FAILURES = 50
DIFFERENCES: dict[str, dict[str, Any]] = {
    "a metric that 10 % of turns fail": {"metric": COMMON},
    "the same in the last 24 h": {"metric": COMMON, "since": NOW - DAY},
    "the same on a day three weeks ago": {"metric": COMMON, "since": NOW - 22 * DAY, "until": NOW - 21 * DAY},
    "the same, one agent (20 %)": {"metric": COMMON, "agents": ("coder",)},
    "the same, one tenant (2 %)": {"metric": COMMON, "tenant": "tenant-0"},
    "the same, one release and model (6 %)": {"metric": COMMON, "versions": ("1.5",), "models": ("qwen3",)},
    "a metric that 50 turns fail": {"metric": RARE},
    "a judged metric": {"metric": JUDGED[0]},
}  # fmt: skip
MODES: dict[str, dict[str, Any]] = {
    "all": {},
    "the last 24 h": {"since": NOW - DAY},
    "one agent (20 %)": {"agents": ("coder",)},
    "one tenant (2 %)": {"tenant": "tenant-0"},
    "a metric that 50 turns fail": {"metric": RARE},
    "a metric that 10 % of turns fail": {"metric": COMMON},
}
ROUNDS = 5


def turns(count: int) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield the store's rows, oldest first."""
    from otel_agenteval.evaluation.first_fault import Fault
    from otel_agenteval.outlets.store.statements import SCORE_COLUMNS, TURN_COLUMNS

    rng = random.Random(1)
    no_turn, no_score = dict.fromkeys(TURN_COLUMNS), dict.fromkeys(SCORE_COLUMNS)
    rare = set(rng.sample(range(count), min(RARE_FAILURES, count)))
    for number in range(count):
        at = NOW - 30 * DAY * (1 - number / count)
        trace = f"{rng.getrandbits(128):032x}"
        model, tools = rng.choices(MODELS, (6, 2, 1, 1))[0], rng.sample(TOOLS, rng.choice((0, 1, 1, 2, 3)))
        broken = [tool for tool in tools if rng.random() < (0.15 if tool == "pay" else 0.02)]
        failed = rng.random() < (0.9 if broken and model == "qwen3" else 0.087)
        duration, spent = rng.lognormvariate(1, 1), rng.randrange(200, 4_000)
        facts = {
            "agent": rng.choice(AGENTS), "service": "shop", "framework": "langgraph", "model": model, "provider": "openai", "finish_reason": "stop", "close_reason": "root_ended",
            "language": rng.choice(LANGUAGES), "tool": tools, "tool failed": broken, "tool after tool": [f"{one} → {two}" for one, two in itertools.pairwise(tools)],
            "duration_s": round(duration, 3), "cost_usd": spent * 1e-6, "input_tokens": spent, "output_tokens": rng.randrange(20, 600), "input_chars": rng.randrange(10, 2_000),
            "output_chars": rng.randrange(10, 3_000), "turn_number": number % 4 + 1, "llm_calls": len(tools) + 1, "tool_calls": len(tools), "tool_errors": len(broken),
        }  # fmt: skip
        turn = {
            **no_turn, "turn_id": f"{trace}-{number:016x}", "trace_id": trace, "span_id": f"{number:016x}", "revision": 1, "conversation_id": f"conv-{number // 4}",
            "tenant": f"tenant-{0 if rng.random() < 0.02 else rng.randrange(1, 20)}", "service": "shop", "service_version": "1.4" if number < count * 0.7 else "1.5",
            "agent": facts["agent"], "model": model, "start": at, "stored_at": at + 2, "duration_s": duration, "cost_usd": facts["cost_usd"], "input_tokens": spent,
            "output_tokens": facts["output_tokens"], "close_reason": "root_ended", "complete": 1, "is_conversation": 0, "tools": json.dumps(tools) if tools else None,
            "attributes": f'{{"gen_ai.prompt.version":"p{rng.randrange(3)}"}}', "facts": json.dumps({name: value for name, value in facts.items() if value != []}),
        }  # fmt: skip
        bad = {COMMON: failed, RARE: number in rare} | {
            name: place > 1 and rng.random() < 0.02 for place, name in enumerate(SOUND)
        }
        bad |= {name: rng.random() < 0.1 for name in JUDGED if rng.random() < 0.1}
        failures = [name for name, fails in bad.items() if fails]
        if failures:
            of_tool = (
                Fault("tool_error", "tool_calls[0]", "the tool failed", broken[0], rng.choice(("timeout", "500")))
                if broken
                else None
            )
            fault = of_tool or Fault(failures[0])
            represents = 10.0 if all(name in JUDGED for name in failures) else 1.0
            turn |= {"fault": json.dumps(fault._asdict()), "mode": fault.mode, "failed": represents}
        yield turn, [
            {
                **no_score, "result_id": f"{rng.getrandbits(128):032x}", "turn_id": turn["turn_id"], "revision": 1, "metric": metric, "kind": metric[:4].strip("_"), "version": "1",
                "type": "numeric", "unit": "1", "direction": "up", "policy": "trend", "status": "ok", "value": float(not fails), "passed": int(not fails),
                "label": "fail" if fails else "pass", "threshold": 0.5, "scored_at": at + 2, "sample_probability": 0.1 if metric in JUDGED else None,
            }
            for metric, fails in bad.items()
        ]  # fmt: skip


def built(folder: Path, count: int) -> Path:
    """Create an SQLite store, and return its path."""
    path = folder / "scores.db"
    fill_store(path, turns(count))
    return path


def copied(path: Path, address: str) -> str:
    """Copy an SQLite store to PostgreSQL, and return its address."""
    import psycopg

    from otel_agenteval.outlets.store.postgres import open_writer
    from otel_agenteval.outlets.store.statements import TABLES

    with open_writer(address).connection():
        pass
    with closing(sqlite3.connect(path)) as source, psycopg.connect(address, autocommit=True) as target:
        for table in TABLES[:2]:
            columns = ", ".join(table.columns)
            with target.cursor() as cursor, cursor.copy(f"COPY agenteval.{table.name} ({columns}) FROM STDIN") as rows:
                for row in source.execute(f"SELECT {columns} FROM {table.name}"):
                    rows.write_row(row)
        target.execute("VACUUM ANALYZE")
    return address


def measured(store: str, work: Callable[[Any], object]) -> list[float]:
    """Return the seconds of five runs, each with a new connection. A first run fills the caches."""
    from otel_agenteval.outlets.store.views import Views

    found = []
    for _ in range(1 + ROUNDS):
        with Views(store) as views:
            start = time.perf_counter()
            work(views)
            found.append(time.perf_counter() - start)
    return found[1:]


def rows_of(store: str) -> Iterator[Row]:
    """Yield a table row for each search."""
    from otel_agenteval.outlets.store.views import Filter
    from otel_agenteval.report.differences import compare_verdicts

    database = "PostgreSQL" if "://" in store else "SQLite"
    works: list[tuple[str, Callable[[Any], object]]] = [
        *((f"differences, {what}", lambda views, one=one: compare_verdicts(one["metric"], views.filtered_verdicts(Filter(**one)))) for what, one in DIFFERENCES.items()),
        *((f"failure modes, {what}", lambda views, one=one: views.filtered_modes(Filter(**one))) for what, one in MODES.items()),
    ]  # fmt: skip
    for what, work in works:
        seconds = measured(store, work)
        median = statistics.median(seconds)
        value = f"{median * 1e3:.0f} ms, slowest {max(seconds) * 1e3:.0f} ms"
        yield Row(f"{database}: {what}", value, "", f"≤ {MOST_SECONDS * 1e3:.0f} ms", median / MOST_SECONDS)


def main() -> int:
    parser = harness.parser(__doc__, against=False)
    parser.add_argument("--turns", type=int, default=1_000_000, help="number of turns in a new store (default: a million)")
    parser.add_argument("--store", action="append", default=[], help="measure an existing store with these turns")
    options = parser.parse_args()
    with ExitStack() as stack:
        stores = options.store
        if not stores:
            sys.path.insert(0, str(harness.ROOT))
            from tests.support.postgres import postgres_server

            path = built(Path(stack.enter_context(tempfile.TemporaryDirectory())), options.turns)
            stores = [str(path), copied(path, stack.enter_context(postgres_server()).database())]
        rows = [row for store in stores for row in rows_of(store)]
    return harness.report(rows, options, "causes")


if __name__ == "__main__":
    sys.exit(main())
