"""Formats a comparison for a terminal, below the run's table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from .compare import Comparison, MetricChange
from .formatting import by_weight, change_numbers, describe_pairing, effect_of, n_of, p_value, remarks

_MARKS = {"regression": "✗", "improvement": "✓", "changed": "·", "no change shown": "-", "too few": "-"}


def render_comparison(comparison: Comparison, width: int = 100) -> str:
    """Format each change since the baseline, and list unchanged metrics in one paragraph."""
    lines = [f"── against {comparison.baseline} ".ljust(width, "─"), *_wrapped(describe_pairing(comparison), width, "  "), ""]
    ranked = by_weight(comparison.changes)
    changed = [change for change in ranked if change.verdict not in ("no change shown", "too few")]
    for change in changed:
        lines += _lines_of(change, width)
    for verdict in ("no change shown", "too few"):
        named = [f"{change.label} ({change.measure})" for change in ranked if change.verdict == verdict]
        if named:
            lines += _wrapped(f"- {verdict}: {', '.join(named)}", width, "  ")
    for remark in remarks(comparison):
        lines += _wrapped(f"! {remark}", width, "  ")
    return "\n".join(lines) + "\n"


def _lines_of(change: MetricChange, width: int) -> Iterator[str]:
    before, after, difference, interval = change_numbers(change)
    gate = " (gate)" if change.watched and change.verdict == "regression" else ""
    yield f"  {_MARKS[change.verdict]} {change.label}  {change.measure} {before} → {after}  {change.verdict}{gate}"
    about = f"{difference}, 95 % CI {interval}; {effect_of(change)}; {p_value(change.adjusted)} (Holm); {n_of(change)}"
    yield from _wrapped(about, width, "      ")


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
