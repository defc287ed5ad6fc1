"""Where a value stands in a configuration: keys and indexes from the top."""

from __future__ import annotations

KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    """``metrics[2].code_latency``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
