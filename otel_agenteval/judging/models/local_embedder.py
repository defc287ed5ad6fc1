"""Embeddings made in this process: no server, no key, no cost.

The model is a table of one vector for each of 32,000 pieces of words; a text's vector is the mean of its pieces'. It tells
whether texts are about the same (paraphrases 0.5 to 1, unrelated texts below 0.2), in a fraction of a millisecond; it does not see
the order of words, and hence no negation. Its scores are no others': the model's name goes with them.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.errors import ConfigError
from ...core.extras import require
from .accounts import Account, Ledger, Total
from .base import EmbedderModel
from .model_server import tokens_in

PREFIX = "local/"
"""What the names of such models begin with."""
_FILES = {
    "wordllama": ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json", "embedding.weight")
}
_FEATURE = "embeddings without a server"


class LocalEmbedder(EmbedderModel):
    """Makes vectors by a model that came with a package; nothing is downloaded.

    Args:
        model: ``local/wordllama``: 256 dimensions, English above all. The extra ``[embed]`` brings it.
        clock: for tests.

    Thread-safe. The model (18 MB) is read with the first text.

    Raises:
        ConfigError: there is no such model.
        MissingExtra: its package is not installed.
    """

    def __init__(self, model: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
        package = model.removeprefix(PREFIX)
        if not model.startswith(PREFIX) or package not in _FILES:
            raise ConfigError(f"model: {model!r} is not allowed; it must be {' or '.join(PREFIX + name for name in _FILES)}")
        self.model = model
        self._clock = clock
        self._package = package
        self._tokenizers = require("tokenizers", feature=_FEATURE, extra="embed")
        self._tensors = require("safetensors.numpy", feature=_FEATURE, extra="embed")
        found = importlib.util.find_spec(package)  # not imported: all that is wanted of it are two files
        if found is None or found.origin is None:
            require(package, feature=_FEATURE, extra="embed")
            raise ConfigError(f"model: the files of {model!r} cannot be found")
        self._folder = Path(found.origin).parent
        self._lock = threading.Lock()
        self._table: Any = None
        self._tokenizer: Any = None
        self._ledger = Ledger()

    def __repr__(self) -> str:
        return f"LocalEmbedder({self.model!r})"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of length 1 per text, in their order; zeros for a text without words."""
        start = self._clock.monotonic()
        with self._lock:
            if self._table is None:
                self._read()
        vectors: list[list[float]] = []
        for pieces in self._tokenizer.encode_batch(list(texts), add_special_tokens=False):
            mean = self._table[pieces.ids].mean(axis=0, dtype=np.float32) if pieces.ids else np.zeros(self._table.shape[1])
            length = float(np.linalg.norm(mean))
            vectors.append((mean / length if length else mean).tolist())
        tokens = tokens_in(texts)
        self._ledger.add(
            Account("embed", "local", self.model, 0, self._clock.monotonic() - start, tokens, 0, cost_usd=0.0, price_source="local",
                    charge_usd=0.0)
        )  # fmt: skip
        return vectors

    def accounts(self) -> list[Account]:
        """The last thousand calls, oldest first; what they cost is 0."""
        return self._ledger.last()

    def total(self) -> Total:
        """The sum over all calls."""
        return self._ledger.total()

    def clear_cache(self) -> None:
        """Nothing is kept."""

    def _read(self) -> None:
        weights, words, name = _FILES[self._package]
        tokenizer = self._tokenizers.Tokenizer.from_file(str(self._folder / words))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._table = self._tensors.load_file(str(self._folder / weights))[name]
