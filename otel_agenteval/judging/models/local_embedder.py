"""Embeddings made in this process: no server, no key, no cost.

The model is a table of one vector for each of 32,000 pieces of words; a text's vector is the mean of its pieces'. It tells
whether texts are about the same (paraphrases 0.5 to 1, unrelated texts below 0.2), in a fraction of a millisecond; it does not see
the order of words, and hence no negation. Its scores are no others': the model's name goes with them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.errors import ConfigError
from ...core.extras import require
from .in_process import InProcessEmbedder

PREFIX = "local/"
"""What the names of such models begin with."""
_FILES = {
    "wordllama": ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json", "embedding.weight")
}
_FEATURE = "embeddings without a server"


class LocalEmbedder(InProcessEmbedder):
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
        super().__init__(model, clock)
        self._package = package
        self._tokenizers = require("tokenizers", feature=_FEATURE, extra="embed")
        self._tensors = require("safetensors.numpy", feature=_FEATURE, extra="embed")
        found = importlib.util.find_spec(package)  # not imported: all that is wanted of it are two files
        if found is None or found.origin is None:
            require(package, feature=_FEATURE, extra="embed")
            raise ConfigError(f"model: the files of {model!r} cannot be found")
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
