"""Section ``media``: access to images, audio, and videos, and the limits for opening them."""

from __future__ import annotations

import re
from typing import Annotated

from ..media.rules import Rules, Transcription
from .section import Section, options_of
from .types import Before, Count, Duration, FilePath, Kind, Secret, Size, Switch, Text, Url, texts

_HOST = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?|\[[0-9a-f:]+\](:[0-9]{1,5})?")
_BUCKET = re.compile(r"(s3|gs|gcs|abfs|az|adl|oss)://[^\s/]+(/\S*)?")
_hosts = texts(
    "must be a list of hosts. Examples: cdn.example.com, *.example.com, media.example.com:8443",
    lambda text: _HOST.fullmatch(text.lower()),
    make=str.lower,
)
_folders = texts("must be a list of absolute paths of folders", re.compile(r"/|[A-Za-z]:[\\/]").match)
_buckets = texts(
    "must be a list of prefixes of object store addresses. Examples: s3://recordings/2026/, gs://calls", _BUCKET.fullmatch
)


class TranscriberOptions(Section):
    """Transcription of audio that lacks a transcript, by a local model or a server with OpenAI's ``/audio/transcriptions``. Off by default."""

    base_url: Url | None = None
    """Address of the transcription server, with the API version: ``http://127.0.0.1:8000/v1``."""
    model: Text | None = None
    """Name of the model on the server. Required with ``base_url``."""
    api_key: Secret | None = None
    """API key of the server. Write it as ``${env:NAME}``."""
    path: FilePath | None = None
    """Folder of a faster-whisper model (extra ``[asr]``), instead of a server."""
    language: Text | None = None
    """ISO 639-1 code of the spoken language, such as ``de``. If null, the model detects the language."""
    timeout: Duration = Transcription.timeout
    """Maximum seconds to transcribe one recording."""
    instead_of_sound: Switch = False
    """Send the transcript to judges instead of the audio, for judge models without audio input."""

    def wanted(self) -> Transcription | None:
        """Return the transcription settings, or None if no server or local model is set. For invalid options, raise a ValueError."""
        if self.path is not None:
            if self.base_url is not None or self.model is not None:
                raise ValueError("path can't be combined with base_url or model. Set either a server or a local model")
            return Transcription(path=self.path, language=self.language, timeout=self.timeout)
        if (self.base_url is None) != (self.model is None):
            missing, given = ("model", "base_url") if self.model is None else ("base_url", "model")
            raise ValueError(f"{given} requires {missing}")
        if self.base_url is None:
            if self.instead_of_sound:
                raise ValueError("instead_of_sound requires base_url and model, or path")
            return None
        return Transcription(self.base_url, self.model or "", self.api_key, None, self.language, self.timeout)


class MediaOptions(Section):
    """Rules for opening a turn's media. Embedded media can be opened. Media at a URL or path are opened only if an option allows this."""

    hosts: Annotated[tuple[str, ...], Before(_hosts), Kind("list of hosts")] = ()
    """Hosts from which media can be fetched (``cdn.example.com``, ``*.example.com``, ``media.example.com:8443``). For media on
    other hosts, the judge receives only the addresses."""
    folders: Annotated[tuple[str, ...], Before(_folders), Kind("list of folders")] = ()
    """Folders from which ``file:`` URIs can be opened."""
    buckets: Annotated[tuple[str, ...], Before(_buckets), Kind("list of object store URLs")] = ()
    """Prefixes of object store addresses that can be opened (``s3://recordings/``). Requires the extra ``[fsspec]`` and the store's
    package."""
    private_addresses: Switch = False
    """Allow access to ``hosts`` in a private network or on this machine."""
    max_bytes: Size = Rules.max_bytes
    """Maximum bytes of one image, audio, or video."""
    max_pixels: Count = Rules.max_pixels
    """Maximum pixels of one image or video frame."""
    max_edge: Count = Rules.max_edge
    """Maximum pixels on the longer side of an image for a judge. Larger images are scaled down."""
    fetch_timeout: Duration = Rules.fetch_timeout
    """Maximum seconds to fetch one file."""
    decode_timeout: Duration = Rules.decode_timeout
    """Maximum seconds to decode audio or a video. After that, usually only the part decoded so far is measured."""
    decode_memory: Size = Rules.decode_memory
    """Maximum memory of a process that decodes audio or a video."""
    decode_total: Size = Rules.decode_total
    """Maximum memory of all concurrent decoding processes. At the limit, new processes wait. One process can always run."""
    transcriber: TranscriberOptions = TranscriberOptions()

    def rules(self) -> Rules:
        """Return the access rules for metrics. If the transcriber's options are incomplete, raise a ValueError."""
        given = {name: getattr(self, name) for name in options_of(MediaOptions) if name != "transcriber"}
        return Rules(**given, transcription=self.transcriber.wanted(), hears=not self.transcriber.instead_of_sound)
