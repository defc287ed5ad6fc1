"""What may be opened, and how much of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Transcription:
    """Who writes down what is said."""

    base_url: str | None = None
    """Address of the server, up to and including the version."""
    model: str = ""
    """The model's name there."""
    api_key: str | None = field(default=None, repr=False)
    path: str | None = None
    """Folder of a model for this process, instead of a server."""
    language: str | None = None
    """ISO 639-1 code of what is spoken; None leaves it to the model."""
    timeout: float = 60.0
    """Seconds in which a recording must be written down."""


@dataclass(frozen=True)
class Rules:
    """What may be opened. By default only what travels inside of a turn: nothing is fetched, no file is read."""

    hosts: tuple[str, ...] = ()
    """Hosts that media are fetched from over http and https: ``cdn.example.com``, ``*.example.com``, ``media.example.com:8443``."""
    folders: tuple[str, ...] = ()
    """Folders below which files are read."""
    buckets: tuple[str, ...] = ()
    """Beginnings of addresses in object stores, with their scheme: ``s3://recordings/``, ``gs://calls/``."""
    private_addresses: bool = False
    """Whether hosts may have addresses in this machine or a private network."""
    max_bytes: int = 20 * 2**20
    """Of one medium, as it was sent or is fetched."""
    max_pixels: int = 25_000_000
    """Of one image, or of one picture of a video."""
    fetch_timeout: float = 10.0
    """Seconds in which a medium must have come."""
    decode_timeout: float = 20.0
    """Seconds of work for a sound or a video; what was measured until then counts."""
    decode_memory: int = 2**30
    """Bytes of address space of a process that decodes a sound or a video."""
    decode_total: int = 2 * 2**30
    """The same of all that decode at once, in all processes of this installation; others wait."""
    max_edge: int = 1568
    """Pixels of the longer side of an image that a judge sees; larger ones are scaled down. Models scale down what is larger themselves."""
    transcription: Transcription | None = None
    """Who writes down what is said in recordings without a transcript."""
    clean: Callable[[str], str] | None = None
    """Takes personal data and secrets out of a transcript that a judge reads, as they are taken out of the turn's own texts."""
    absent: str | None = None
    """Which model is not there that would look at media: then none is opened."""
    hears: bool = True
    """Whether judges are sent the sound of a recording that was written down."""


_RULES: ContextVar[Rules | None] = ContextVar("otel_agenteval_media_rules", default=None)
"""Kept in a context variable, as metrics are functions of a turn and their parameters."""
_INLINE_ONLY = Rules()


@contextmanager
def opening(rules: Rules) -> Iterator[None]:
    """While the block runs, this thread or task opens media by these rules."""
    token = _RULES.set(rules)
    try:
        yield
    finally:
        _RULES.reset(token)


def current_rules() -> Rules:
    """The rules of this thread or task; by default nothing is fetched."""
    return _RULES.get() or _INLINE_ONLY
