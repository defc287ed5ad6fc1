"""Paths of values in a configuration: keys and indexes from the top."""

from __future__ import annotations

from collections.abc import Mapping

KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    """Return a path as text: ``metrics[2].code_latency``."""
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part if str(part).isprintable() else ascii(part)}" for part in path
    ).removeprefix(".")


def placed(path: KeyPath, sources: Mapping[KeyPath, str]) -> str:
    """Return the beginning of an error about a value: its file and line or its variable, if known, and its path."""
    place = next((sources[path[:end]] for end in range(len(path), -1, -1) if path[:end] in sources), None)
    return ": ".join(part for part in (place, dotted(path)) if part)
