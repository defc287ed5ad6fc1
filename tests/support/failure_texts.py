"""Texts of failed turns with planted topics, made from the templates in ``tests/data/failure_topics.yaml``."""

from __future__ import annotations

import functools
import random
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_FILE = Path(__file__).parents[1] / "data" / "failure_topics.yaml"
_CHOICE = re.compile(r"\{([^{}]*)\}")
SIZES = {"equal": [30] * 5, "skewed": [120, 40, 25, 25, 25], "one topic": [50]}
"""Number of texts of each topic of a mode."""


class PlantedText(NamedTuple):
    text: str
    topic: str | None
    """None if the text resembles no other text."""


def planted(half: str, sizes: list[int], draw: random.Random) -> dict[str, list[PlantedText]]:
    """Return the texts of each failure mode of a half, ``tune`` or ``test``, in random order."""
    modes = {}
    for mode, given in _read()[half].items():
        topics = draw.sample(sorted(given["topics"]), len(sizes))
        texts = [text_of(mode, topic, draw, half) for topic, size in zip(topics, sizes, strict=True) for _ in range(size)]
        texts += [PlantedText(text, None) for text in given["noise"]]
        draw.shuffle(texts)
        modes[mode] = texts
    return modes


def text_of(mode: str, topic: str, draw: random.Random, half: str = "test") -> PlantedText:
    text = _CHOICE.sub(lambda found: draw.choice(found[1].split("|")), draw.choice(_read()[half][mode]["topics"][topic]))
    return PlantedText(re.sub("#", lambda _: str(draw.randrange(10)), text), topic)


def topics_of(mode: str, half: str = "test") -> list[str]:
    return sorted(_read()[half][mode]["topics"])


@functools.cache
def _read() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return read
