"""Measure the write cost and the response times of the web UI's store.

    python benchmarks/page.py                      a million scores
    python benchmarks/page.py --scores 10000000    ten million scores: some minutes, and 4 GB in the temporary folder
    python benchmarks/page.py --against TREE       compares the cost of writing a turn with the package of another checkout
    python benchmarks/page.py --write

The store contains thirty days of five agents, with eighteen metrics on each turn, two of them judged on a tenth of the turns. Times are
wall-clock times of whole HTTP requests, best of five, after past hours are summed. A second store has scores only in the current hour.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
from harness import Row

NOW = time.time() // 3_600 * 3_600 - 20.0
"""Shortly before the end of an hour, and recent, because requests ask for the last day."""
AGENTS, MODELS = ("travel", "support", "billing", "search", "coder"), ("gpt-5", "qwen3")
METRICS = (*(f"code_metric_{number}" for number in range(16)), "llm_faithfulness", "llm_relevance")
MOST_SECONDS = 0.2
"""Maximum seconds of a request with any filter."""
WRITTEN = 4_000
"""Number of turns that are written to measure writing."""
REQUESTS = {
    "the newest turns": "turns",
    "turns of an agent": "turns?agent=coder",
    "turns that fail a metric with many failures": "turns?metric=code_metric_3&outcome=fail",
    "turns that fail a metric with 1 failure in 2,000": "turns?metric=code_metric_0&outcome=fail",
    "turns of an agent with a low value of a judged metric, three weeks ago": "turns?metric=llm_relevance&below=0.5&agent=coder&until=21d",
    "turns with an error": "turns?error=true",
    "turns that called an unknown tool": "turns?tool=nothing",
    "turns of a conversation": "turns?conversation=conv-777",
    "values to filter by": "facets",
    "estimates by agent, all time": "estimates?by=agent",
    "estimates by version, of an agent and a model": "estimates?by=version&agent=coder&model=qwen3",
    "a month over time": "series?by=agent",
    "a day over time, one metric with intervals": "series?by=agent&metric=llm_relevance&since=24h",
    "two releases": "compare?by=version&before=1.4&after=1.5",
}
LIVE_REQUESTS = {
    "estimates by agent": "estimates?by=agent",
    "values to filter by": "facets",
    "over time": "series?by=agent&since=24h",
    "over time, one metric with intervals": "series?by=agent&metric=llm_relevance&since=24h",
}
LIVE_MOST = 1_000_000


# --- the child


def run(what: dict[str, Any]) -> dict[str, float]:
    """Write turns as an outlet does, or fill a store and request its views."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.db"
        return {"write": written, "look": looked_at, "live": hour_under_way}[what["what"]](path, **what.get("more", {}))


def turns(count: int, seconds: float = 30 * 86_400) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield the store's rows for the time before now."""
    from otel_agenteval.outlets.store.statements import SCORE_COLUMNS, TURN_COLUMNS

    rng = random.Random(1)
    no_turn, no_score = dict.fromkeys(TURN_COLUMNS), dict.fromkeys(SCORE_COLUMNS)
    for number in range(count):
        at = NOW - seconds * (1 - number / count)
        trace = f"{rng.getrandbits(128):032x}"
        facts = {
            "turn_id": f"{trace}-{number:016x}", "trace_id": trace, "span_id": f"{number:016x}", "revision": 1, "service": "shop", "agent": rng.choice(AGENTS),
            "model": rng.choice(MODELS), "start": at, "stored_at": at + 2, "duration_s": rng.expovariate(0.3), "cost_usd": 0.002, "input_tokens": 900, "output_tokens": 100,
            "complete": 1, "is_conversation": 0, "close_reason": "root_ended", "service_version": "1.4" if number < count * 0.7 else "1.5",
            "tools": '["search"]' if number % 3 else '["book"]', "error": "timeout" if number % 97 == 0 else None, "conversation_id": f"conv-{number // 4}",
        }  # fmt: skip
        turn = {**no_turn, **{name: value for name, value in facts.items() if name in TURN_COLUMNS}}
        scores = []
        for place, metric in enumerate(METRICS):
            judged = metric.startswith("llm")
            if judged and rng.random() > 0.1:
                continue
            good = rng.random() > (0.0005 if place == 0 else 0.06)
            scores.append({
                **no_score, "result_id": f"{rng.getrandbits(128):032x}", "turn_id": turn["turn_id"], "revision": 1, "metric": metric, "kind": "llm" if judged else "code", "version": "1",
                "type": "numeric", "unit": "1", "direction": "up", "policy": "trend", "status": "ok", "value": float(good), "passed": int(good), "label": "pass" if good else "fail",
                "threshold": 0.5, "scored_at": at + 2, "sample_probability": 0.1 if judged else None, "judge_cost_usd": 0.001 if judged else None,
            })  # fmt: skip
        yield turn, scores


def written(path: Path) -> dict[str, float]:
    """Return the CPU µs per turn with its scores, written in batches as by an outlet."""
    from otel_agenteval.outlets.store.writer import Retention, Rows, ScoreStore

    rows = list(turns(WRITTEN))
    store = ScoreStore(path, Retention(1e9, 1 << 40))
    start = time.process_time()
    for first in range(0, len(rows), 20):
        batch = rows[first : first + 20]
        store.write(Rows([turn for turn, _ in batch], [score for _, scores in batch for score in scores]))
    taken = time.process_time() - start
    store.close()
    return {"us": taken / len(rows) * 1e6}


def looked_at(path: Path, count: int) -> dict[str, float]:
    """Return the seconds of each request."""
    from otel_agenteval.outlets.store.views import Summer

    found: dict[str, float] = {"scores": fill_store(path, turns(round(count / 16.2))), "MB": path.stat().st_size / 1e6}
    summer, start, hours = Summer(path, lambda: NOW + 7_200), time.perf_counter(), 0
    while summer.sum_one():
        hours += 1
    summer.close()
    found["an hour summed"] = (time.perf_counter() - start) / hours
    return found | _asked(path, REQUESTS)


def hour_under_way(path: Path, count: int) -> dict[str, float]:
    """Return the seconds of each request in the current hour, and of summing one minute."""
    from otel_agenteval.outlets.store.views import Summer

    found: dict[str, float] = {"scores": fill_store(path, turns(round(count / 16.2), NOW % 3_600))}
    summer = Summer(path, lambda: NOW)
    with summer._file.transaction() as db:
        db.execute("UPDATE stale_minutes SET marks = marks + 1 WHERE minute >= ?", (NOW // 60 - 1,))
    summer.sum_minutes()
    with summer._file.transaction() as db:
        db.execute("UPDATE stale_minutes SET marks = marks + 1 WHERE minute >= ?", (NOW // 60 - 1,))
    start = time.perf_counter()
    found["a minute summed"] = summer.sum_minutes()
    found["a minute summed"] = (time.perf_counter() - start) / found["a minute summed"]
    summer.close()
    return found | _asked(path, LIVE_REQUESTS)


def _asked(path: Path, requests: dict[str, str]) -> dict[str, float]:
    sys.path.insert(0, str(harness.ROOT))
    from tests.support.page import ServedPage

    found = {}
    with ServedPage(path) as page:
        for name, request in requests.items():
            best = float("inf")
            for _ in range(5):
                start = time.perf_counter()
                page.client.get(f"/api/v1/{request}").raise_for_status()
                best = min(best, time.perf_counter() - start)
            found[name] = best
    return found


def fill_store(path: Path, rows: Iterator[Any]) -> int:
    """Write a store, and return its number of scores."""
    from otel_agenteval.core.sqlite import open_file
    from otel_agenteval.outlets.store.sqlite import SCHEMA
    from otel_agenteval.outlets.store.statements import SCORE_COLUMNS, TURN_COLUMNS, VERDICT_COLUMNS, level_of
    from otel_agenteval.outlets.store.writer import verdict_of

    db = open_file(path, SCHEMA)

    def put(table: str, columns: Any) -> str:
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})"

    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN")
    for number, (turn, scores) in enumerate(rows):
        db.execute(put("turns", TURN_COLUMNS), turn)
        known = {"level": level_of(turn["turn_id"]), "at": turn["start"]}
        db.executemany(
            put("scores", {**SCORE_COLUMNS, **VERDICT_COLUMNS}),
            [{**score, "verdict": verdict_of(score), **known} for score in scores],
        )
        if number % 50_000 == 49_999:
            db.execute("COMMIT")
            db.execute("BEGIN")
    db.execute(
        "INSERT INTO stale_minutes SELECT DISTINCT CAST(start / 60 AS INTEGER), 1, 0 FROM turns WHERE 1 ON CONFLICT (minute) DO NOTHING"
    )
    db.execute("COMMIT")
    scores = db.execute("SELECT count(*) FROM scores").fetchone()[0]
    db.close()
    return int(scores)


# --- the table


def bounded(found: dict[str, float], requests: dict[str, str]) -> list[Row]:
    """Return a row for each request."""
    most = f"≤ {MOST_SECONDS * 1e3:.0f} ms"
    return [Row(name, f"{found[name] * 1e3:.0f} ms", "", most, found[name] / MOST_SECONDS) for name in requests]


def main() -> int:
    """Measure and print. Return 1 with ``--check`` if a limit is exceeded."""
    parser = harness.parser(__doc__)
    parser.add_argument("--scores", type=int, default=1_000_000, help="number of scores in the store (default: a million)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of writing")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(json.loads(options.child))))
        return 0
    found = harness.alternate(__file__, {"write": {"what": "write"}}, options.against, options.rounds)
    us, before = found.best("write", "us"), found.before("write", "us")
    rows = [
        Row(
            "writing a turn and its eighteen scores to the store",
            f"{us:.0f} µs",
            f"{us / before:.2f} × before" if before else "",
        )
    ]
    if before:
        rows[0].compared(us, before, "{:.0f} µs")
    seen = harness.child(__file__, harness.ROOT, {"what": "look", "more": {"count": options.scores}})
    rows.append(
        Row(
            f"**{seen['scores']:,.0f} scores**, {seen['MB']:,.0f} MB; summing one hour",
            f"{seen['an hour summed'] * 1e3:.0f} ms",
        )
    )
    rows += bounded(seen, REQUESTS)
    live = harness.child(__file__, harness.ROOT, {"what": "live", "more": {"count": min(options.scores, LIVE_MOST)}})
    rows.append(
        Row(
            f"**{live['scores']:,.0f} scores in the hour that is not over**; a minute of it summed",
            f"{live['a minute summed'] * 1e3:.0f} ms",
        )
    )
    rows += bounded(live, LIVE_REQUESTS)
    return harness.report(rows, options, "page")


if __name__ == "__main__":
    sys.exit(main())
