"""Transcription of recordings by a server or by a model in this process.

A server receives the unchanged recording by ``POST /audio/transcriptions``, the API of OpenAI, vLLM, LocalAI, and others. A model
in this process (faster-whisper, extra ``[asr]``) receives the decoded samples.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import httpx

from ..core import jsonio
from ..core.errors import MetricError
from ..core.extras import require
from ..core.outbound import answer_of, client_to
from ..core.pacing import backoff, retry_after
from ..core.threads import unseen
from .access import MediaContent
from .decoding import samples_of
from .rules import Transcription

_MOST_KEPT = 256
"""Maximum number of cached transcripts. A turn's metrics share this cache."""
_ATTEMPTS = 3
_AGAIN = frozenset((408, 409, 429, 500, 502, 503, 504))
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 8.0
_LARGEST_ANSWER = 4 * 2**20
_EXTENSIONS = {
    "audio/wav": "wav", "audio/mpeg": "mp3", "audio/flac": "flac", "audio/ogg": "ogg", "audio/mp4": "m4a", "audio/webm": "webm",
    "video/mp4": "mp4", "video/webm": "webm", "video/ogg": "ogg",
}  # fmt: skip
"""Mapping from media type to file extension, because servers derive the type from the file name."""


def transcribed(content: MediaContent, wanted: Transcription) -> str:
    """Return a recording's transcript, which is empty if the recording has no speech. Raises MetricError with the type
    ``transcriber_unreachable``, ``transcriber_timeout``, ``transcriber_refused`` (for example, for an unsupported recording), or
    ``transcriber_failed``. A local model also raises the errors of :func:`samples_of`, and MissingExtra without faster-whisper.
    """
    return _transcriber(wanted, os.getpid()).text_of(content)


@lru_cache(maxsize=8)
def _transcriber(wanted: Transcription, process: int) -> _Transcriber:
    """Return the cached transcriber of the process with the ID ``process``. Connections and locks can't be shared."""
    return _Transcriber(_local(wanted) if wanted.path is not None else _Server(wanted))


class _Transcriber:
    """Transcriber with a cache of the latest transcripts. Thread-safe."""

    def __init__(self, write: Callable[[MediaContent], str]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, str] = OrderedDict()

    def text_of(self, content: MediaContent) -> str:
        key = hashlib.sha256(content.data).digest()
        with self._lock:
            known = self._kept.get(key)
        if known is not None:
            return known
        text = self._write(content).strip()
        with self._lock:
            self._kept[key] = text
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return text


class _Server:
    def __init__(self, wanted: Transcription) -> None:
        self._wanted = wanted
        self._client = client_to(wanted.base_url or "")

    def __call__(self, content: MediaContent) -> str:
        wanted = self._wanted
        until = time.monotonic() + wanted.timeout
        for attempt in range(1, _ATTEMPTS + 1):
            left = until - time.monotonic()
            if left <= 0:
                raise _late(wanted)
            response, body = self._post(content, left)
            if response.is_success:
                return _text_in(body)
            pause = max(retry_after(response.headers.get("retry-after")), backoff(attempt, _FIRST_PAUSE, _LONGEST_PAUSE))
            if response.status_code not in _AGAIN or attempt == _ATTEMPTS or time.monotonic() + pause >= until:
                raise MetricError("transcriber_refused", f"the transcriber returned status {response.status_code}")
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _post(self, content: MediaContent, seconds: float) -> tuple[httpx.Response, bytes]:
        wanted = self._wanted
        fields = {"model": wanted.model, "response_format": "json"} | ({"language": wanted.language} if wanted.language else {})
        name = f"recording.{_EXTENSIONS.get(content.mime, 'wav')}"
        try:
            with unseen():
                return answer_of(
                    self._client, "POST", f"{wanted.base_url}/audio/transcriptions", seconds=seconds, most=_LARGEST_ANSWER, data=fields,
                    files={"file": (name, content.data, content.mime)},
                    headers={"authorization": f"Bearer {wanted.api_key}"} if wanted.api_key else {},
                )  # fmt: skip
        except httpx.TimeoutException:
            fault = _late(wanted)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            fault = MetricError("transcriber_unreachable", f"calling the transcriber failed ({type(error).__name__})")
        raise fault  # outside the handler, because httpx's exception contains the request and its API key


def _text_in(body: bytes) -> str:
    try:
        found = jsonio.loads(body)
    except ValueError:
        found = None
    text = found.get("text") if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise MetricError("transcriber_failed", "the transcriber's response has no text")
    return text


def _late(wanted: Transcription) -> MetricError:
    return MetricError(
        "transcriber_timeout", f"transcribing the recording took longer than {wanted.timeout:g} s (media.transcriber.timeout)"
    )


def _local(wanted: Transcription) -> Callable[[MediaContent], str]:
    lock = threading.Lock()
    models: list[Any] = []

    def write(content: MediaContent) -> str:
        samples = samples_of(content)
        until = time.monotonic() + wanted.timeout
        if not lock.acquire(timeout=wanted.timeout):  # one at a time, because each run uses all cores
            raise _late(wanted)
        try:
            if not models:
                models.append(_whisper(wanted))
            said = []
            for segment in models[0].transcribe(samples, language=wanted.language, condition_on_previous_text=False)[0]:
                said.append(segment.text.strip())
                if time.monotonic() > until:
                    raise _late(wanted)
            return " ".join(said)
        except MetricError:
            raise
        except Exception as error:
            raise MetricError(
                "transcriber_failed", f"the model can't transcribe the recording ({type(error).__name__})"
            ) from None
        finally:
            lock.release()

    return write


def _whisper(wanted: Transcription) -> Any:
    package = require("faster_whisper", feature="media.transcriber.path", extra="asr")
    try:
        return package.WhisperModel(wanted.path, device="cpu", compute_type="int8", local_files_only=True)
    except Exception as error:
        raise MetricError(
            "transcriber_unreachable", f"media.transcriber.path: must be a faster-whisper model ({type(error).__name__})"
        ) from None
