"""In-process embedders, without server, key or cost.

The model for texts is a table with one vector for each of 32,000 word pieces, and a text's vector is the mean of its pieces. In a
fraction of a millisecond, it shows if texts have a similar topic: paraphrases score 0.5 to 1, unrelated texts below 0.2. It
ignores word order, so it doesn't recognize negation. Its scores aren't comparable with those of other models.
"""

from __future__ import annotations

import importlib.util
import threading
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.clock import SYSTEM_CLOCK
from ...core.errors import ConfigError
from ...core.extras import require
from .accounts import Account, AccountLedger
from .base import EmbedderModel
from .model_server import tokens_in

PREFIX = "local/"
_FILES = {
    "wordllama": ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json", "embedding.weight")
}
_FEATURE = "embeddings without a server"


class InProcessEmbedder(EmbedderModel):
    """Base class of embedders that run in this process. They cost nothing and load their model on first use."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._lock = threading.Lock()
        self._is_read = False
        self.ledger = AccountLedger()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of length 1 per text, in order. A text without words gets zeros."""
        start = SYSTEM_CLOCK.monotonic()
        with self._lock:
            if not self._is_read:
                self._read()
                self._is_read = True
        vectors = self._vectors(texts)
        self.ledger.add(
            Account("embed", "local", self.model, 0, SYSTEM_CLOCK.monotonic() - start, tokens_in(texts), 0, cost_usd=0.0,
                    price_source="local", charge_usd=0.0)
        )  # fmt: skip
        return vectors

    def clear_cache(self) -> None:
        """Do nothing, because in-process embedders don't cache vectors."""

    @abstractmethod
    def _read(self) -> None:
        """Load the model."""

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text."""


class LocalEmbedder(InProcessEmbedder):
    """Embedder with a model from an installed package, without downloads. Thread-safe.

    The first call loads the model (18 MB): ``local/wordllama``, with 256 dimensions, mainly for English (extra ``[embed]``).
    """

    def __init__(self, model: str = "local/wordllama") -> None:
        package = model.removeprefix(PREFIX)
        if not model.startswith(PREFIX) or package not in _FILES:
            raise ConfigError(f"model: must be {' or '.join(PREFIX + name for name in _FILES)}, got {model!r}")
        super().__init__(model)
        self._package = package
        self._tokenizers = require("tokenizers", feature=_FEATURE, extra="embed")
        self._tensors = require("safetensors.numpy", feature=_FEATURE, extra="embed")
        found = importlib.util.find_spec(package)  # not imported: only two of its files are needed
        if found is None or found.origin is None:
            require(package, feature=_FEATURE, extra="embed")
            raise ConfigError(f"model: files of {model!r} not found in the package {package}")
        self._folder = Path(found.origin).parent
        self._table: Any = None
        self._tokenizer: Any = None

    def __repr__(self) -> str:
        return f"LocalEmbedder({self.model!r})"

    def _read(self) -> None:
        weights, words, name = _FILES[self._package]
        tokenizer = self._tokenizers.Tokenizer.from_file(str(self._folder / words))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._table = self._tensors.load_file(str(self._folder / weights))[name]

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for pieces in self._tokenizer.encode_batch(list(texts), add_special_tokens=False):
            mean = self._table[pieces.ids].mean(axis=0, dtype=np.float32) if pieces.ids else np.zeros(self._table.shape[1])
            length = float(np.linalg.norm(mean))
            vectors.append((mean / length if length else mean).tolist())
        return vectors
