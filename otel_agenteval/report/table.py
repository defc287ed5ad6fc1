"""Tables for a terminal: outcomes of each metric over many turns, and a comparison of two runs."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable

from ..core.score import Score
from ..outlets.accounting import outcome
from ..outlets.turn_text import BOLD, NAME_WIDTH, RED, Paint, number_of, short_name
from .compare import Comparison
from .formatting import by_weight, change_numbers, describe_pairing, effect_of, n_of, p_value, remarks


class OutcomeTable:
    """Outcomes of each metric over many turns, named as in the counter ``agenteval.results``."""

    _SHOWN = ("pass", "fail", "vacuous", "error", "skipped")

    def __init__(self) -> None:
        self.turns = 0
        self._outcomes: dict[str, Counter[str]] = {}
        self._values: dict[str, list[float]] = {}

    def add(self, scores: Iterable[Score]) -> None:
        self.turns += 1
        for score in scores:
            self._outcomes.setdefault(score.metric, Counter())[outcome(score)] += 1
            if score.value is not None and not score.vacuous:
                total = self._values.setdefault(score.metric, [0.0, 0.0])
                total[0] += score.value
                total[1] += 1

    def render(self, width: int = 100, *, colour: bool = False) -> str:
        """Return a table with one row per metric, most failures first. ``mean`` is without vacuous scores."""
        paint = Paint(colour)
        lines = [
            paint(
                f"{number_of(self.turns, 'turn'):<{NAME_WIDTH}}"
                + "".join(f"{word:>9}" for word in self._SHOWN)
                + f"{'mean':>13}",
                BOLD,
            )
        ]
        never = []
        for name, found in sorted(self._outcomes.items(), key=lambda item: (-item[1]["fail"], -item[1]["error"], item[0])):
            if found["skipped"] == found.total():
                never.append(short_name(name))
                continue
            total, count = self._values.get(name, (0.0, 0))
            mean = f"{total / count:.4g}" if count else "–"
            line = f"{name:<{NAME_WIDTH}}" + "".join(f"{_count(found[word]):>9}" for word in self._SHOWN) + f"{mean:>13}"
            lines.append(paint(line, RED) if found["fail"] or found["error"] else line)
        if never:
            lines += textwrap.wrap(f"never applied: {', '.join(never)}", width, subsequent_indent=" " * 15)
        return "\n".join(lines) + "\n"


def _count(number: int) -> str:
    return f"{number:,}" if number else "–"


_MARKS = {"regression": "✗", "improvement": "✓", "changed": "·", "no change shown": "-", "too few": "-"}


def render_comparison(comparison: Comparison, width: int = 100) -> str:
    lines = [f"── against {comparison.baseline} ".ljust(width, "─"), *_wrapped(describe_pairing(comparison), width, "  "), ""]
    ranked = by_weight(comparison.changes)
    changed = [change for change in ranked if change.verdict not in ("no change shown", "too few")]
    for change in changed:
        before, after, difference, interval = change_numbers(change)
        gate = " (gate)" if change.watched and change.verdict == "regression" else ""
        lines.append(f"  {_MARKS[change.verdict]} {change.label}  {change.measure} {before} → {after}  {change.verdict}{gate}")
        about = f"{difference}, 95 % CI {interval}; {effect_of(change)}; {p_value(change.adjusted)} (Holm); {n_of(change)}"
        lines += _wrapped(about, width, "      ")
    for verdict in ("no change shown", "too few"):
        named = [f"{change.label} ({change.measure})" for change in ranked if change.verdict == verdict]
        if named:
            lines += _wrapped(f"- {verdict}: {', '.join(named)}", width, "  ")
    for remark in remarks(comparison):
        lines += _wrapped(f"! {remark}", width, "  ")
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
