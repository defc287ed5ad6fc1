"""Measure the CPU time of redaction per text.

    python benchmarks/redaction.py            prints the table
    python benchmarks/redaction.py --write    also writes it to benchmarks/README.md

The CPU time is that of one thread, best of some rounds. Texts are generated with a fixed seed.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable

import harness
import words

from otel_agenteval.core.caches import forget
from otel_agenteval.evaluation.redaction import KINDS, Redactor

ROUNDS = 3
SECONDS = 0.02
"""Duration of one round."""
WORDS = [*words.WORDS, "for", "120", "euros"]


def prose(length: int) -> str:
    """Return words with some numbers."""
    random.seed(7)
    return " ".join(random.choices(WORDS, k=length // 5))[:length]


def rows(length: int) -> str:
    """Return a tool result: records of people, as JSON inside JSON."""
    person = {
        "id": 1732234567, "name": "Ada", "email": "ada@example.org", "phone": "+41 44 668 18 00", "card": 4111111111111111,
        "at": "2026-11-20T12:00:00Z", "at_ns": 1732234567123456789, "score": 0.8125, "note": "line\nline",
    }  # fmt: skip
    people = json.dumps([person] * (length // 320))
    return json.dumps({"content": [{"type": "text", "text": people}]})


TEXTS: dict[str, str] = {
    "an explanation without personal data (60 characters)": "3 of 5 tool calls succeeded; the slowest of them took 1.2 s.",
    "an explanation with an address (60 characters)": "The answer gives away ada@example.org, which was not asked for.",
    "prose, 4 kB": prose(4_000),
    "prose, 64 kB": prose(64_000),
    "Chinese, 64,000 characters": "火车九点从巴黎出发，" * 6_400,
    "a tool's result, 4 kB: JSON in JSON, 12 people": rows(4_000),
    "a tool's result, 64 kB: 200 people": rows(64_000),
    "100 kB of digits in groups of four": "4111 " * 20_000,
}


def best(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    found = float("inf")
    for _ in range(ROUNDS):
        calls, start = 0, time.thread_time()
        while (spent := time.thread_time() - start) < SECONDS:
            call()
            calls += 1
        found = min(found, spent / max(calls, 1))
    return found


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def main() -> int:
    args = harness.parser(__doc__, against=False).parse_args()
    lines = [("Text", "First time", "Again")]
    for name, text in TEXTS.items():
        first = best(lambda text=text: (forget(), Redactor(KINDS).text(text)))
        again = best(lambda text=text: Redactor(KINDS).text(text))
        lines.append((name, shown(first), shown(again)))
    found = harness.plain_table(lines)
    print(found)
    if args.write:
        harness.write(found, "redaction")
    return 0


if __name__ == "__main__":
    sys.exit(main())
