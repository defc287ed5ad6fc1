"""Fit the models of ``otel_agenteval/detectors/text_model.py`` on the labeled training cases.

    python scripts/text_models.py           prints recall on cases of one author, with a model of the other authors' cases
    python scripts/text_models.py --write   fits all cases and writes otel_agenteval/detectors/text_models/*.model
    python scripts/text_models.py [--write] refusal   does the same for only one model

The models are logistic regressions on character n-grams, with a penalty on large weights. The test half is never read. Labeled
sentences (``tests/data/detectors/sentences``) are added to the turns, because they contain many ways to express the same thing. For
refusals, the question has separate weights: "Only the owner can." declines an order, but answers a question.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from otel_agenteval.core import jsonio
from otel_agenteval.detectors import text_model
from otel_agenteval.detectors.injection import model as order_model
from otel_agenteval.detectors.injection.model import OrderModel
from otel_agenteval.detectors.injection.orders import passages_in, readable
from otel_agenteval.detectors.text_model import PLACES, SCALE, TextModel, places_in

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "data" / "detectors"
FOLDER = Path(text_model.__file__).parent / "text_models"
PENALTY = 0.1
STEPS = 250
ASKED = 0.5
"""Weight of an n-gram in the question, relative to the answer."""
_MORE_AS_WRITTEN = 2
"""Number of additional copies of the cases ``refusal-e``. They resemble agents' answers, unlike most other cases."""
SHORT = 40
"""Maximum length of a short order."""
SHARE = 0.05
"""Share of false alarms at which recall is printed."""

Array = NDArray[np.float64]


class Text(NamedTuple):
    """A labeled text. ``hand`` identifies its author, and ``asked`` is the question."""

    text: str
    flag: bool
    hand: str
    asked: str = ""


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON lines file."""
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def refusals() -> list[Text]:
    """Return labeled answers: refusals, similar answers, and ordinary answers."""
    found = [
        Text(case["turn"].get("output") or "", case["flag"], re.sub(r"-?\d+$", "", case["id"]), case["turn"].get("input") or "")
        for case in lines_of(CASES / "train" / "refusal.jsonl")
    ]
    found += [Text(line["text"], line["flag"], "sentences") for line in lines_of(CASES / "sentences" / "refusal.jsonl")]
    found += [Text(case["output"], False, "ordinary", case["input"]) for case in lines_of(CASES / "ordinary.jsonl")]
    found += [text for text in found if text.hand == "refusal-e"] * _MORE_AS_WRITTEN
    return [text for text in found if text.text]


def orders() -> list[Text]:
    """Return labeled passages of tool results and documents. Flagged passages give orders to the agent.

    Short orders are repeated, because they have few n-grams.
    """
    lines = lines_of(CASES / "sentences" / "injection_markers.jsonl")
    found = [Text(as_in_traffic(line["text"]), line["flag"], "sentences") for line in lines]
    found += [text for text in found if text.flag and len(text.text) <= SHORT]
    for case in lines_of(CASES / "train" / "injection_markers.jsonl"):
        if not case["flag"]:
            hand = re.sub(r"-?\d+$", "", case["id"])
            found += [Text(passage, False, hand) for text in texts_of(case["turn"]) for passage in passages(text)]
    for name in ("pii_leakage", "ungrounded_numbers", "ungrounded_urls", "secret_leak"):
        for case in lines_of(CASES / "train" / f"{name}.jsonl"):
            found += [Text(passage, False, "ordinary") for text in texts_of(case["turn"]) for passage in passages(text)]
    return found


_RESERVED = re.compile(r"([\w-]+)\.example\b")
_ENDINGS = ("com", "com", "com", "org", "net", "io", "de", "fr", "co.uk", "es", "it", "nl", "pl", "eu")


def as_in_traffic(text: str) -> str:
    """Replace reserved domains such as ``.example``. They are so frequent in orders that the model would learn them."""
    return _RESERVED.sub(lambda domain: f"{domain[1]}.{_ENDINGS[zlib.crc32(domain[1].encode()) % len(_ENDINGS)]}", text)


def texts_of(turn: dict[str, Any]) -> list[str]:
    """Return tool results, documents and context."""
    found = [call.get("result") for call in turn.get("tool_calls") or ()]
    found += [document.get("content") for one in turn.get("retrievals") or () for document in one["documents"]]
    return [as_in_traffic(jsonio.text_of(text)) for text in [*found, *(turn.get("context") or ())] if text]


def passages(text: str) -> list[str]:
    """Return pairs of neighboring sentences without quotations, as the detector reads them."""
    text = readable(text)
    return [text[start:end] for start, end in passages_in(text)]


SOURCES = {"refusal": refusals, "orders": orders}


def with_found(texts: Sequence[Text], rounds: int = 2) -> list[Text]:
    """Add the most order-like passage of each flagged turn, because the position of the order isn't labeled."""
    model = models_of(texts).text
    hands = {text.hand for text in texts}
    found: list[Text] = []
    for _ in range(rounds):
        found = []
        for case in lines_of(CASES / "train" / "injection_markers.jsonl"):
            hand = re.sub(r"-?\d+$", "", case["id"])
            inside = [passage for text in texts_of(case["turn"]) for passage in passages(text)]
            if case["flag"] and inside and hand in hands:
                found.append(Text(max(inside, key=model.score), True, hand))
        model = models_of([*texts, *found]).text
    return [*texts, *found]


class Models(NamedTuple):
    """A model of answers or passages and, for answers, a model of the question."""

    text: TextModel | OrderModel
    asked: TextModel | None

    def score(self, of: Text) -> float:
        """Return the log-odds."""
        return self.text.score(of.text) + (self.asked.score(of.asked) if self.asked else 0.0)


def models_of(texts: Sequence[Text]) -> Models:
    """Fit models to texts."""
    flags = np.array([float(text.flag) for text in texts])
    if not any(text.asked for text in texts):
        read = [order_model.places_in(text.text) for text in texts]
        return Models(OrderModel(*model_of(*fitted(read, flags))), None)
    weights, bias = fitted([places_in(text.text) for text in texts], flags, [places_in(text.asked) for text in texts])
    return Models(model_of(weights[:PLACES], bias), model_of(ASKED * weights[PLACES:], 0.0))


def _runs(places: Sequence[NDArray[np.intp]]) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return the text index, n-gram index and weight of each n-gram."""
    lengths = np.array([len(one) for one in places])
    row = np.repeat(np.arange(len(places)), lengths)
    return row, np.concatenate(places), (1 / np.sqrt(np.maximum(lengths, 1)))[row]


def fitted(places: Sequence[NDArray[np.intp]], flags: Array, asked: Sequence[NDArray[np.intp]] = ()) -> tuple[Array, float]:
    """Fit weights and a bias with Adam on the full data. Weights of questions follow those of the texts."""
    row, ids, share = _runs(places)
    if asked:
        more = _runs(asked)
        row, ids, share = (
            np.concatenate([row, more[0]]), np.concatenate([ids, more[1] + PLACES]), np.concatenate([share, ASKED * more[2]])
        )  # fmt: skip
    size = PLACES * (2 if asked else 1)
    weigh = np.where(flags > 0, len(flags) / 2 / max(1, flags.sum()), len(flags) / 2 / max(1, (1 - flags).sum()))
    weights, slope, square = np.zeros(size), np.zeros(size), np.zeros(size)
    bias = bias_slope = bias_square = 0.0
    for step in range(1, STEPS + 1):
        odds = np.bincount(row, weights=weights[ids] * share, minlength=len(places)) + bias
        wrong = (1 / (1 + np.exp(-odds)) - flags) * weigh
        gradient = np.bincount(ids, weights=wrong[row] * share, minlength=size) + PENALTY * weights
        slope, square = 0.9 * slope + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        weights -= 0.05 * (slope / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        total = float(wrong.sum())
        bias_slope, bias_square = 0.9 * bias_slope + 0.1 * total, 0.99 * bias_square + 0.01 * total**2
        bias -= 0.05 * (bias_slope / (1 - 0.9**step)) / ((bias_square / (1 - 0.99**step)) ** 0.5 + 1e-8)
    return weights, bias


def model_of(weights: Array, bias: float) -> TextModel:
    """Return the model with 8-bit weights."""
    unit = float(np.abs(weights).max()) / 127
    return TextModel(np.round(weights / unit).astype(np.int8), unit, bias)


def left_out(texts: Sequence[Text]) -> list[str]:
    """Return the recall on each author's cases, with models of the other authors' cases."""
    lines = []
    for hand in sorted({text.hand for text in texts if text.hand not in ("sentences", "ordinary")}):
        mine = [text for text in texts if text.hand == hand]
        if not any(text.flag for text in mine):
            continue
        models = models_of([text for text in texts if text.hand != hand])
        bound = np.quantile([models.score(text) for text in mine if not text.flag], 1 - SHARE)
        found = np.mean([models.score(text) > bound for text in mine if text.flag])
        lines.append(f"  {hand}: {found:.0%} found at {SHARE:.0%} false alarms")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="refusal, orders; default both")
    parser.add_argument("--write", action="store_true", help="fit on all cases and write the models")
    chosen = parser.parse_args(arguments)
    for name in chosen.names:
        if name not in SOURCES:
            parser.error(f"unknown model {name!r}. Models: {', '.join(SOURCES)}")
    for name in chosen.names or SOURCES:
        source = SOURCES[name]
        texts = with_found(source()) if name == "orders" else source()
        print(f"{name}: {len(texts):,} texts, {sum(text.flag for text in texts):,} of them flagged")
        if chosen.write:
            FOLDER.mkdir(exist_ok=True)
            for suffix, model in zip(("", "_asked"), models_of(texts), strict=True):
                if model is not None:
                    weights = zlib.compress(model.weights.astype(np.int8).tobytes(), 9)
                    (FOLDER / f"{name}{suffix}.model").write_bytes(SCALE.pack(model.unit, model.bias) + weights)
        else:
            print("\n".join(left_out(texts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
