"""Words for the generated texts of the benchmarks."""

from __future__ import annotations

WORDS = [
    "the",
    "train",
    "from",
    "Paris",
    "to",
    "Lyon",
    "leaves",
    "at",
    "nine",
    "and",
    "the",
    "hotel",
    "is",
    "near",
    "the",
    "old",
    "bridge",
    "with",
    "a",
    "view",
    "of",
    "the",
    "river",
]
