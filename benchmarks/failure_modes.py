"""Measure how well failed turns are grouped, for benchmarks/README.md.

    python benchmarks/failure_modes.py            prints the tables
    python benchmarks/failure_modes.py --write    also writes them to benchmarks/README.md

Needs the extra ``[embed]``, and scikit-learn, umap-learn and hdbscan for the compared methods. Texts with planted topics come from
``tests/data/failure_topics.yaml``. Parameters of all methods were chosen on its half ``tune``. Results are for the half ``test``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import random
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np

sys.path[:0] = [str(harness.ROOT)] if str(harness.ROOT) not in sys.path else []

import otel_agenteval as oa  # noqa: E402 - found only now
from otel_agenteval.evaluation.first_fault import failure_of  # noqa: E402 - the same
from otel_agenteval.statistics.topics import directions, distinguishing_words, general_texts, new_topics, positions  # noqa: E402 - the same
from tests.support.failure_texts import SIZES, PlantedText, planted, text_of, topics_of  # noqa: E402 - the same
from tests.support.faults import faulty_turns  # noqa: E402 - the same

_SEEDS = range(3)
_PARTS = 5
Labels = list[int | None]
Vectors = np.ndarray
Method = Callable[[Vectors, int], Labels]
"""Function that groups texts. It also gets the true number of topics."""


def ours(vectors: Vectors, topics: int) -> Labels:
    texts = directions(vectors, _embedded(general_texts()))
    found = positions(texts, [topic.center for topic in new_topics(texts)])
    return [None if position is None else position.topic for position in found]


def one_group(vectors: Vectors, topics: int) -> Labels:
    """Put all texts into one group, as failure modes without topics do."""
    return [0] * len(vectors)


def k_means(vectors: Vectors, topics: int) -> Labels:
    from sklearn.cluster import KMeans

    return KMeans(topics, n_init=10, random_state=0).fit_predict(vectors).tolist()


def k_means_by_silhouette(vectors: Vectors, topics: int) -> Labels:
    from sklearn.metrics import silhouette_score

    tried = [k_means(vectors, count) for count in range(2, 13)]
    return max(tried, key=lambda labels: silhouette_score(vectors, labels))


def bertopic_like(vectors: Vectors, topics: int, least: int = 8) -> Labels:
    """Group texts with UMAP and HDBSCAN, with BERTopic's defaults and the smallest topic size that was best on ``tune``."""
    from hdbscan import HDBSCAN
    from umap import UMAP

    reduced = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0).fit_transform(vectors)
    return [None if label < 0 else int(label) for label in HDBSCAN(min_cluster_size=least).fit_predict(reduced)]


METHODS: dict[str, Method] = {
    "otel-agenteval": ours, "failure modes alone": one_group, "k-means, true k": k_means, "k-means, k by silhouette": k_means_by_silhouette,
    "UMAP and HDBSCAN": bertopic_like,
}  # fmt: skip


class Grouped(NamedTuple):
    ari: float
    purity: float
    placed: float
    """Share of the texts that are in a group."""


def agreement(one: Sequence[Any], other: Sequence[Any]) -> float:
    """Return the adjusted Rand index (Hubert and Arabie 1985)."""

    def pairs(counts: Counter[Any]) -> float:
        return sum(n * (n - 1) / 2 for n in counts.values())

    both, first, second = pairs(Counter(zip(one, other, strict=True))), pairs(Counter(one)), pairs(Counter(other))
    expected, most = first * second / (len(one) * (len(one) - 1) / 2), (first + second) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def alone(labels: Sequence[Any]) -> list[Any]:
    """Return labels in which each text without a group has a separate label."""
    return [("alone", at) if label is None else label for at, label in enumerate(labels)]


def grouped(found: Labels, true: Sequence[Any]) -> Grouped:
    placed = [(label, truth) for label, truth in zip(found, alone(true), strict=True) if label is not None]
    right = sum(max(Counter(truth for one, truth in placed if one == label).values()) for label in {label for label, _ in placed})
    return Grouped(agreement(alone(found), alone(true)), right / max(1, len(placed)), len(placed) / len(found))


def stability(method: Method, vectors: Vectors, topics: int, found: Labels, draw: random.Random) -> float:
    """Return the mean agreement between the groups of all texts and of random 80 % subsets."""
    total = 0.0
    for _ in range(_PARTS):
        part = sorted(draw.sample(range(len(vectors)), round(0.8 * len(vectors))))
        total += agreement(alone([found[at] for at in part]), alone(method(vectors[part], topics)))
    return total / _PARTS


def _embedded(texts: Sequence[str]) -> Vectors:
    return np.asarray(_EMBEDDER.embed(texts))


_EMBEDDER = oa.LocalEmbedder()


def of_planted_topics(half: str) -> str:
    lines = [["Topics", "Method", "ARI", "Purity", "In a topic", "Stability"]]
    for name, sizes in SIZES.items():
        for title, method in _available():
            results, stable = [], []
            for seed in _SEEDS:
                draw = random.Random(f"{name} {seed}")
                for texts in planted(half, sizes, draw).values():
                    vectors = _embedded([text.text for text in texts])
                    found = method(vectors, len(sizes))
                    results.append(grouped(found, [text.topic for text in texts]))
                    stable.append(stability(method, vectors, len(sizes), found, draw) if seed == 0 else np.nan)
            ari, purity, placed = np.mean(results, axis=0)
            lines.append([name, title, f"{ari:.2f}", f"{purity:.2f}", f"{placed:.0%}", f"{np.nanmean(stable):.2f}"])
    return harness.plain_table(lines)


def _available() -> Iterator[tuple[str, Method]]:
    missing = [name for name in ("sklearn", "umap", "hdbscan") if importlib.util.find_spec(name) is None]
    for title, method in METHODS.items():
        if missing and method not in (ours, one_group):
            print(f"{title}: requires {', '.join(missing)}", file=sys.stderr)
        else:
            yield title, method


def of_faults(archives: int = 80) -> str:
    """Return a table with a row for each way to group recorded turns with an inserted fault."""
    packed = sorted((harness.ROOT / "tests" / "data" / "recordings").glob("*.tar.xz"))
    with tempfile.TemporaryDirectory() as folder:
        for archive in random.Random("benchmark").sample(packed, archives):
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
        scored = oa.score_turns(oa.load_turns(sorted(Path(folder).rglob("*.jsonl"))))
    good = [turn for turn, scores in scored if turn.output and not any(score.verdict is False for score in scores)]
    cases = list(faulty_turns(good, 20))
    modes = [failure_of(turn, scores) for turn, scores in oa.score_turns([case.turn for case in cases])]
    kept = [(case, mode) for case, mode in zip(cases, modes, strict=True) if mode is not None]
    true = [case.kind for case, _ in kept]
    vectors = _embedded([_text(case.turn) for case, _ in kept])
    lines = [["Method", "ARI", "Purity", f"In a group, of {len(kept)} turns"]]
    by_kind = {mode.kind for _, mode in kept}
    found: dict[str, Labels] = {"otel-agenteval, kind of failure mode": [sorted(by_kind).index(mode.kind) for _, mode in kept]}
    found |= {title: method(vectors, len(set(true))) for title, method in _available() if method is not one_group}
    found["texts alone, as topics"] = found.pop("otel-agenteval")
    for title, labels in found.items():
        ari, purity, placed = grouped(labels, true)
        lines.append([title, f"{ari:.2f}", f"{purity:.2f}", f"{placed:.0%}"])
    return harness.plain_table(lines)


def _text(turn: oa.Turn) -> str:
    errors = [call.error.message or call.error.type or "" for call in turn.tool_calls or () if call.error is not None]
    return " ".join([turn.input or "", *errors, turn.output or ""])


def from_day_to_day(days: int = 14, window: int = 5) -> str:
    """Return the shares of turns that keep their topic when the window moves by a day, in which a fifth of the turns is new."""
    lines = [["Topic IDs", "Same topic a day later", "Turns of the new topic in one topic, after 3 days"]]
    for title, remembers in (("from a store", True), ("from recorded traces", False)):
        same, risen = [], []
        for seed in _SEEDS:
            for mode in planted("test", [1] * 5, random.Random(0)):
                kept, new = _moved(mode, random.Random(f"{mode} {seed}"), days, window, remembers)
                same += kept
                risen.append(new)
        lines.append([title, f"{np.mean(same):.1%}", f"{np.mean(risen):.0%}"])
    return harness.plain_table(lines)


def _moved(mode: str, draw: random.Random, days: int, window: int, remembers: bool) -> tuple[list[float], float]:
    *old, late = draw.sample(topics_of(mode), 5)
    by_day = [
        [text_of(mode, topic, draw) for topic in (*old, *([late] if day >= 8 else [])) for _ in range(8)] for day in range(days)
    ]
    known: dict[str, list[float]] = {}
    before: dict[tuple[int, int], str] = {}
    same, new = [], 0.0
    for day in range(window - 1, days):
        shown = [((one, at), text) for one in range(day - window + 1, day + 1) for at, text in enumerate(by_day[one])]
        ids = _ids([text for _, text in shown], known if remembers else {}, mode)
        now = {key: topic for (key, _), topic in zip(shown, ids, strict=True) if topic is not None}
        same += [float(now.get(key) == topic) for key, topic in before.items() if key[0] > day - window]
        if day == 10:
            of_late = Counter(now.get(key) for key, text in shown if text.topic == late)
            olds = {now.get(key) for key, text in shown if text.topic != late}
            new = max((n for topic, n in of_late.items() if topic is not None and topic not in olds), default=0) / of_late.total()
        before = now
    return same, new


def _ids(texts: Sequence[PlantedText], known: dict[str, list[float]], mode: str) -> list[str | None]:
    vectors = directions(_embedded([text.text for text in texts]), _embedded(general_texts()))
    names, centers = list(known), list(known.values())
    found = new_topics(vectors, centers)
    placed = positions(vectors, centers + [topic.center for topic in found])
    for at in range(len(names), len(names) + len(found)):
        inside = [text.text for text, one in zip(texts, placed, strict=True) if one is not None and one.topic == at]
        others = [text.text for text, one in zip(texts, placed, strict=True) if one is None or one.topic != at]
        name = " ".join(sorted(distinguishing_words(inside, others)[:1]))
        names.append(hashlib.blake2b(f"{mode}\0{name}".encode(), digest_size=4).hexdigest())
        known[names[-1]] = found[at - len(centers)].center
    return [None if one is None else names[one.topic] for one in placed]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tune", "test"), default="test", help="half of the planted topics")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/README.md")
    args = parser.parse_args()
    tables = {"topics": lambda: of_planted_topics(args.half), "topic-ids": from_day_to_day, "faults": of_faults}
    for name, table in tables.items():
        text = table()
        print(f"{text}\n", flush=True)
        if args.write:
            harness.write(text, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
