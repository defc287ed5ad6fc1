"""Section ``media``: which images, sounds and videos are opened for metrics, and how much of them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from ..media.rules import Rules
from .section import Section, options_of
from .transcriber import TranscriberOptions
from .types import Before, Count, Duration, Kind, Size, Switch

_HOST = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?|\[[0-9a-f:]+\](:[0-9]{1,5})?")
_BUCKET = re.compile(r"(s3|gs|gcs|abfs|az|adl|oss)://[^\s/]+(/\S*)?")


def _hosts(value: Any) -> Any:
    items = _listed(value)
    if items is None or not all(_HOST.fullmatch(item.lower()) for item in items):
        raise ValueError("it must be a list of hosts, as in cdn.example.com, *.example.com or media.example.com:8443")
    return tuple(item.lower() for item in items)


def _folders(value: Any) -> Any:
    items = _listed(value)
    if items is None or not all(item.startswith("/") or re.match(r"[A-Za-z]:[\\/]", item) for item in items):
        raise ValueError("it must be a list of folders, by their whole paths")
    return items


def _buckets(value: Any) -> Any:
    items = _listed(value)
    if items is None or not all(map(_BUCKET.fullmatch, items)):
        raise ValueError(
            "it must be a list of beginnings of addresses in object stores, as in s3://recordings/2026/ or gs://calls"
        )
    return items


def _listed(value: Any) -> tuple[str, ...] | None:
    items = (value,) if isinstance(value, str) else value
    found = isinstance(items, (list, tuple)) and all(isinstance(item, str) and item for item in items)
    return tuple(items) if found else None


class MediaOptions(Section):
    """What is opened of the images, sounds and videos of a turn. What travels inside of a turn always is; nothing else, unless it is allowed here."""

    hosts: Annotated[tuple[str, ...], Before(_hosts), Kind("list of hosts")] = ()
    """Hosts from which media are fetched (``cdn.example.com``, ``*.example.com``, ``media.example.com:8443``); addresses of others go to the judge as they are."""
    folders: Annotated[tuple[str, ...], Before(_folders), Kind("list of folders")] = ()
    """Folders below which ``file:`` addresses are read."""
    buckets: Annotated[tuple[str, ...], Before(_buckets), Kind("list of addresses in object stores")] = ()
    """Beginnings of addresses in object stores that are read (``s3://recordings/``). Needs the extra ``[fsspec]`` and the store's own package."""
    private_addresses: Switch = False
    """Whether a host may have an address in a private network, or be this machine."""
    max_bytes: Size = Rules.max_bytes
    """Maximum bytes of one medium."""
    max_pixels: Count = Rules.max_pixels
    """Maximum pixels of one image, and of each picture of a video."""
    max_edge: Count = Rules.max_edge
    """Pixels of the longer side of an image that a judge sees; larger ones are scaled down."""
    fetch_timeout: Duration = Rules.fetch_timeout
    """Seconds in which a medium must have come."""
    decode_timeout: Duration = Rules.decode_timeout
    """Seconds for which a sound or a video is measured; of a longer one the beginning counts."""
    decode_memory: Size = Rules.decode_memory
    """Maximum memory of a process that decodes a sound or a video."""
    decode_total: Size = Rules.decode_total
    """Maximum memory of all processes that decode at once. Others wait; one always runs."""
    transcriber: TranscriberOptions = TranscriberOptions()

    def rules(self) -> Rules:
        """The same as the metrics take it.

        Raises:
            ValueError: the transcriber is not complete.
        """
        given = {name: getattr(self, name) for name in options_of(MediaOptions) if name != "transcriber"}
        return Rules(**given, transcription=self.transcriber.wanted(), hears=not self.transcriber.instead_of_sound)
