"""Topics of texts: stable clusters of text vectors, and the words that distinguish each topic.

Even unrelated texts have similar vectors, so the mean vector of general texts is subtracted first. Two clusters are joined if the
mean cosine between their texts is at least :data:`ALIKE` (average linkage). A cluster is a topic if random subsets of the texts
contain nearly the same cluster (mean Jaccard index, Hennig 2007). A text belongs to the topic with the nearest center, unless this
center is too far away. The constants were chosen on the tuning half of ``tests/data/failure_topics.yaml``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

ALIKE = 0.12
REACH = 0.3
"""Minimum cosine between a text and its topic's center."""
LEAST = 5
STABLE = 0.6
_MOST = 1_000  # maximum number of texts that are clustered
_ROUNDS = 3
_RESAMPLES = 20
_PART = 0.8
_WORD = re.compile(r"[^\W\d_]{3,}")
_MOST_WORDS = 4
_STEM = 5
_LEAST_TEXTS = 3
_LEAST_SHARE = 0.1


class NewTopic(NamedTuple):
    center: list[float]
    stability: float
    """Mean Jaccard index, from 0 to 1, between the cluster and the most similar cluster in random subsets of the texts."""


class Position(NamedTuple):
    topic: int
    cosine: float


def directions(vectors: Sequence[Sequence[float]], general: Sequence[Sequence[float]]) -> np.ndarray:
    """Return unit vectors of texts, after subtracting the mean direction of the texts in ``general``."""
    return _unit(_unit(np.asarray(vectors, dtype=float)) - _unit(np.asarray(general, dtype=float)).mean(axis=0))


def new_topics(texts: np.ndarray, known: Sequence[Sequence[float]] = ()) -> list[NewTopic]:
    """Return stable topics of the ``texts`` (see :func:`directions`) that don't belong to a topic with a center in ``known``."""
    found: list[NewTopic] = []
    for _ in range(_ROUNDS):  # repeat until no more topics are found
        centers = [*known, *(topic.center for topic in found)]
        free = np.array([at for at, position in enumerate(positions(texts, centers)) if position is None], dtype=int)
        if len(free) < LEAST:
            break
        some = texts[free[np.unique(np.linspace(0, len(free) - 1, min(len(free), _MOST)).astype(int))]]
        alike = some @ some.T
        clusters = sorted((set(one) for one in _clusters(alike) if len(one) >= LEAST), key=lambda one: (-len(one), min(one)))
        stable = [pair for pair in zip(clusters, _stability(alike, clusters), strict=True) if pair[1] >= STABLE]
        if not stable:
            break
        found += [NewTopic(some[sorted(one)].mean(axis=0).tolist(), stability) for one, stability in stable]
    return found


def positions(texts: np.ndarray, centers: Sequence[Sequence[float]]) -> list[Position | None]:
    if not len(centers):
        return [None] * len(texts)
    cosines = texts @ _unit(np.asarray(centers, dtype=float)).T
    best = cosines.argmax(axis=1)
    return [Position(int(at), float(row[at])) if row[at] >= REACH else None for row, at in zip(cosines, best, strict=True)]


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: np.ndarray = vectors / np.where(lengths == 0, 1.0, lengths)
    return scaled


def _stability(alike: np.ndarray, clusters: Sequence[set[int]]) -> list[float]:
    draw, total = np.random.default_rng(0), [0.0] * len(clusters)
    for _ in range(_RESAMPLES):
        part = np.sort(draw.permutation(len(alike))[: math.ceil(_PART * len(alike))])
        others = [{int(part[at]) for at in cluster} for cluster in _clusters(alike[np.ix_(part, part)])]
        drawn = set(part.tolist())
        for at, cluster in enumerate(clusters):
            left = cluster & drawn
            total[at] += max((len(left & other) / len(left | other) for other in others), default=0.0)
    return [one / _RESAMPLES for one in total]


def _clusters(alike: np.ndarray) -> list[list[int]]:
    """Cluster texts by average linkage, using nearest-neighbor chains (Murtagh 1983)."""
    sums, sizes, free = alike.copy(), np.ones(len(alike)), np.ones(len(alike), dtype=bool)
    np.fill_diagonal(sums, -np.inf)
    members, found = [[at] for at in range(len(alike))], []
    chain: list[int] = []
    while free.any():
        chain = chain or [int(free.argmax())]
        at = chain[-1]
        means = np.where(free, sums[at] / (sizes * sizes[at]), -np.inf)
        best = int(means.argmax())
        if len(chain) > 1 and means[chain[-2]] >= means[best]:
            best = chain[-2]
        if means[best] < ALIKE:  # and no joined cluster will be nearer
            free[at] = False
            found.append(members[at])
            chain.pop()
        elif len(chain) > 1 and best == chain[-2]:
            sums[best] += sums[at]
            sums[:, best] = sums[best]
            sums[best, best] = -np.inf
            sizes[best] += sizes[at]
            free[at] = False
            members[best] += members[at]
            del chain[-2:]
        else:
            chain.append(best)
    return found


def distinguishing_words(texts: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return up to four words that are more frequent in a topic's texts than in other texts, most distinctive first."""
    inside, outside = [_words(text) for text in texts], [_words(text) for text in others]
    counts, elsewhere = (Counter(word for words in group for word in words) for group in (inside, outside))
    scores = {}
    for word, count in counts.items():
        share, other = (count + 0.5) / (len(inside) + 1), (elsewhere[word] + 0.5) / (len(outside) + 1)
        if count >= _LEAST_TEXTS and share >= _LEAST_SHARE and share > other:
            scores[word] = share * math.log(share / other)
    chosen: list[str] = []
    for word in sorted(scores, key=lambda word: (-scores[word], word)):
        if len(chosen) < _MOST_WORDS and all(word[:_STEM] != one[:_STEM] for one in chosen):
            chosen.append(word)
    return chosen


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower())) - _common_words()


@cache
def _common_words() -> frozenset[str]:
    return frozenset(Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").split())


def general_texts() -> list[str]:
    return Path(__file__).with_name("general_texts.txt").read_text(encoding="utf-8").splitlines()
