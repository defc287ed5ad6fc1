"""In-process embedder for images and texts, with a CLIP or SigLIP model in ONNX files.

The package contains no weights. The model's folder has the files that exporters for Hugging Face models write:
``tokenizer.json``, ``preprocessor_config.json``, and ``text_model.onnx`` with ``vision_model.onnx``, or both in
``model.onnx``. The ONNX files can also be in a subfolder ``onnx``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ConfigError, JudgeError
from ...core.extras import require
from ...media.access import content_of
from ...media.images import decoded
from ...media.types import ImageReference
from .local_embedder import InProcessEmbedder

CLIP = "local/clip"
_FEATURE = "embeddings of images in this process"
_LONGEST_TEXT = 77
_EDGE = 224
"""Default image size and text length, from the first CLIP models."""
_OF_TEXTS = ("text_embeds", "text_features", "pooler_output")
_OF_IMAGES = ("image_embeds", "image_features", "pooler_output")
"""Output names in order of preference."""


class ClipEmbedder(InProcessEmbedder):
    """Embedder whose vectors of images and texts can be compared. Thread-safe. The first call loads the model in ``folder``."""

    def __init__(self, folder: str) -> None:
        super().__init__(CLIP)
        self._runtime = require("onnxruntime", feature=_FEATURE, extra="clip")
        self._tokenizers = require("tokenizers", feature=_FEATURE, extra="clip")
        require("PIL.Image", feature=_FEATURE, extra="clip")
        self._folder = Path(folder)
        self._text_file, self._image_file = self._file_named("text_model.onnx"), self._file_named("vision_model.onnx")
        for name in ("tokenizer.json", "preprocessor_config.json"):
            if not (self._folder / name).is_file():
                raise ConfigError(f"path: {name} not found in {folder!r}")

    def __repr__(self) -> str:
        return f"ClipEmbedder({str(self._folder)!r})"

    def _file_named(self, name: str) -> Path:
        for file in (self._folder / part / one for one in (name, "model.onnx") for part in ("", "onnx")):
            if file.is_file():
                return file
        raise ConfigError(f"path: neither {name} nor model.onnx found in {str(self._folder)!r} or its subfolder onnx")

    def _read(self) -> None:
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        sessions = {
            file: self._runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
            for file in {self._text_file, self._image_file}
        }
        self._texts, self._images = sessions[self._text_file], sessions[self._image_file]
        self._tokenizer = self._tokenizers.Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        padding = self._tokenizer.padding or {}
        longest = padding.get("length") or _LONGEST_TEXT
        self._tokenizer.enable_truncation((self._tokenizer.truncation or {}).get("max_length", longest))
        self._tokenizer.enable_padding(**padding)
        self._how = json.loads((self._folder / "preprocessor_config.json").read_text(encoding="utf-8"))

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = []
        for text in texts:  # one by one: text lengths vary a lot, and images are large
            is_image = isinstance(text, ImageReference)
            if is_image and "://" not in text and not text.startswith("data:"):
                raise JudgeError("embedder: an image must be a data: or http(s) URI, got an id", "unsupported_media")
            if is_image:
                vector = self._run(self._images, {"pixel_values": self._pixels(text)}, _OF_IMAGES)
            else:
                pieces = self._tokenizer.encode(text)
                places = list(range(len(pieces.ids)))
                ids = {"input_ids": pieces.ids, "attention_mask": pieces.attention_mask, "position_ids": places}
                vector = self._run(self._texts, {name: np.asarray([one], np.int64) for name, one in ids.items()}, _OF_TEXTS)
            length = float(np.linalg.norm(vector))
            found.append((vector / length if length else vector).tolist())
        return found

    def _run(self, session: Any, given: dict[str, Any], wanted: Sequence[str]) -> Any:
        """Run the model and return one vector. Inputs of the other kind are as small as possible."""
        inputs = {}
        for one in session.get_inputs():
            smallest = np.zeros((1, 3, *self._edge()), np.float32) if one.name == "pixel_values" else np.ones((1, 1), np.int64)
            inputs[one.name] = given.get(one.name, smallest)
        outputs = [one.name for one in session.get_outputs()]
        name = next((one for one in wanted if one in outputs), outputs[0])
        found = np.asarray(session.run([name], inputs)[0], np.float32)
        if found.ndim != 2:
            raise JudgeError("embedder: the model's output isn't one vector for each input", "invalid_answer")
        return found[0]

    def _edge(self) -> tuple[int, int]:
        size: Any = self._how.get("crop_size" if self._how.get("do_center_crop") else "size") or _EDGE
        if not isinstance(size, dict):
            return int(size), int(size)
        short: int = size.get("shortest_edge") or _EDGE
        return int(size.get("height", short)), int(size.get("width", short))

    def _pixels(self, reference: str) -> Any:
        height, width = self._edge()
        picture = decoded(content_of(reference, "image"))
        if self._how.get("do_center_crop"):
            scale = max(height / picture.height, width / picture.width)
            picture = picture.resize(
                (max(width, round(picture.width * scale)), max(height, round(picture.height * scale))),
                self._how.get("resample", 3),
            )
            left, top = (picture.width - width) // 2, (picture.height - height) // 2
            picture = picture.crop((left, top, left + width, top + height))
        else:
            picture = picture.resize((width, height), self._how.get("resample", 3))
        pixels = np.asarray(picture, np.float32) * self._how.get("rescale_factor", 1 / 255)
        if self._how.get("do_normalize", True):
            pixels = (pixels - np.asarray(self._how.get("image_mean", [0.5] * 3))) / np.asarray(
                self._how.get("image_std", [0.5] * 3)
            )
        return pixels.transpose(2, 0, 1)[None].astype(np.float32)
