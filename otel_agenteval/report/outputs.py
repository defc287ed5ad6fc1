"""Output files of a run. A run can write several formats, each to its own file."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, TextIO

from ..core.display import LINES, escaped
from ..core.errors import AgentEvalError, ConfigError
from ..core.files import private
from ..core.score import Score
from ..core.turn import Turn
from ..core.wellformed import well_formed
from ..evaluation.redaction import Redactor, redacted_or_empty
from ..outlets.accounting import outcome
from ..outlets.turn_text import BOLD, NAME_WIDTH, RED, Paint, colors_wanted, columns, number_of, render_turn, short_name
from .compare import Comparison
from .formatting import Report, by_weight, change_numbers, describe_pairing, effect_of, n_of, p_value, remarks
from .html import render_html
from .junit import render_junit
from .markdown import render_markdown
from .run import About, line_of, on_scale

Scored = Sequence[tuple[Score, str]]
Rendering = Callable[[Turn, About, Scored, Redactor], str]
"""Function that formats a turn and its redacted scores. It must be picklable, because it runs in the scoring process."""
_DOCUMENTS = {"junit": render_junit, "markdown": render_markdown, "html": render_html}
_DECLARE_UTF8 = ("junit", "html")
FORMATS = ("jsonl", "table", *_DOCUMENTS)
_BY_SUFFIX = {".html": "html", ".jsonl": "jsonl", ".md": "markdown", ".txt": "table", ".xml": "junit"}


def formats_of(formats: Sequence[str] | None, outs: Sequence[str], default: str) -> Sequence[str]:
    """Return ``formats`` or, if None, formats by the suffixes of ``outs``. If a suffix is unknown or ``outs`` is empty, use ``default``."""
    by_suffix = [_BY_SUFFIX.get(Path(out).suffix.lower(), "") for out in outs]
    return formats or (by_suffix if by_suffix and all(by_suffix) else [default])


@contextmanager
def open_outputs(
    formats: Sequence[str], outs: Sequence[str], inputs: Sequence[str], *, content: bool, scale: int
) -> Iterator[list[RunOutput]]:
    """Open one file per format (``-``: standard output). Before the run, reject invalid paths and paths in ``inputs``."""
    places = [*outs, *["-"] * (len(formats) - len(outs))]
    if len(places) > len(formats):
        raise ConfigError(f"--out: needs a --format for each file, got {len(places)} files for {len(formats)} formats")
    if places.count("-") > 1:
        raise ConfigError("--format: only one format can go to standard output. Add --out FILE for each of the others")
    read = {os.path.realpath(name) for name in inputs if name != "-"}
    seen: set[str] = set()
    for place in (os.path.realpath(name) for name in places if name != "-"):
        if place in read:
            raise ConfigError(f"--out: {place} is an input of this command and would be overwritten. Choose another file")
        if place in seen:
            raise ConfigError(f"--out: {place} is used for two formats. Choose another file")
        seen.add(place)
    with ExitStack() as stack:
        yield [
            RunOutput(form, _stream(form, place, stack), content=content, scale=scale)
            for form, place in zip(formats, places, strict=True)
        ]


def _stream(form: str, place: str, stack: ExitStack) -> TextIO:
    if place != "-":
        try:
            file = open(place, "ab", opener=private)  # noqa: SIM115 - the stack closes it; Path.open takes no opener
            return stack.enter_context(_KeptUntilWritten(file, encoding="utf-8", errors="backslashreplace"))
        except OSError as problem:
            raise AgentEvalError(f"--out: {place}: cannot be written: {problem.strerror or problem}") from None
    if form in _DECLARE_UTF8 and isinstance(sys.stdout, io.TextIOWrapper):  # the document declares UTF-8
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


class _KeptUntilWritten(io.TextIOWrapper):
    """File that keeps its old content until the first write, so that a run without input doesn't erase it."""

    _begun = False

    def write(self, text: str, /) -> int:
        if not self._begun:
            self._begun = True
            if stat.S_ISREG(os.fstat(self.fileno()).st_mode):  # pipes and terminals can't be truncated
                self.truncate(0)
        return super().write(text)


class _Look(NamedTuple):
    width: int
    color: bool
    content: bool
    scale: int


def _text_of(form: str, look: _Look, turn: Turn, about: About, scored: Scored, redactor: Redactor) -> str:
    """Return a turn as JSON lines or a table, or "" for formats that are written at the end of the run."""
    if form == "jsonl":
        texts = (
            json.dumps(line_of(turn, about, score, parameters), ensure_ascii=False, default=str) for score, parameters in scored
        )
        return "".join(f"{escaped(well_formed(text))}\n" for text in texts)
    if form in _DOCUMENTS:
        return ""
    scores = [on_scale(score, look.scale) for score, _ in scored]
    clean = str if look.content else lambda _: "(left out)"
    return f"{render_turn(redacted_or_empty(turn, redactor), scores, look.width, color=look.color, clean=clean)}\n"


class RunOutput:
    def __init__(self, form: str, out: TextIO, *, content: bool, scale: int) -> None:
        self._form, self._out, self._summary = form, out, OutcomeTable()
        self._look = _Look(columns(out), colors_wanted(out), content, scale)
        self.needs_run = form in _DOCUMENTS
        self.needs_scores = form != "jsonl"
        self.rendering: Rendering = partial(_text_of, form, self._look)

    def add(self, text: str, scored: Scored) -> None:
        if self._form == "table":
            self._summary.add([on_scale(score, self._look.scale) for score, _ in scored])
        if not self.needs_run:
            self._out.write(text)

    def finish(self, report: Report) -> None:
        """Write the report or, for ``table``, the summary and comparison. For ``jsonl`` without scores, empty the output file."""
        if self.needs_run:
            self._out.write(_DOCUMENTS[self._form](report))
        elif self._form == "jsonl":
            self._out.write("")
        else:
            if self._summary.turns > 1:
                self._out.write(self._summary.render(self._look.width, color=self._look.color) + "\n")
            if report.comparison is not None:
                self._out.write(escaped(render_comparison(report.comparison, self._look.width), LINES))


# --- tables for a terminal


class OutcomeTable:
    """Table of each metric's outcomes over many turns. Outcomes are named as in the counter ``agenteval.results``."""

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

    def render(self, width: int = 100, *, color: bool = False) -> str:
        """Return a table of metrics, most failures first, and a list of always skipped metrics. Means exclude vacuous scores."""
        paint = Paint(color)
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
            line = (
                f"{name:<{NAME_WIDTH}}"
                + "".join(f"{f'{found[word]:,}' if found[word] else '–':>9}" for word in self._SHOWN)
                + f"{mean:>13}"
            )
            lines.append(paint(line, RED) if found["fail"] or found["error"] else line)
        if never:
            lines += textwrap.wrap(f"never applied: {', '.join(never)}", width, subsequent_indent=" " * 15)
        return "\n".join(lines) + "\n"


_MARKS = {"regression": "✗", "improvement": "✓", "changed": "·", "no change shown": "-", "too few": "-"}


def render_comparison(comparison: Comparison, width: int = 100) -> str:
    lines = [f"── against {comparison.baseline} ".ljust(width, "─"), *_wrapped(describe_pairing(comparison), width, "  "), ""]
    ranked = by_weight(comparison.changes)
    brief = [one for one in ranked if one.verdict == "too few" or (one.verdict == "no change shown" and not one.difference)]
    for change in (one for one in ranked if one not in brief):
        before, after, difference, interval = change_numbers(change)
        gate = " (gate)" if change.watched and change.verdict == "regression" else ""
        lines.append(f"  {_MARKS[change.verdict]} {change.label}  {change.measure} {before} → {after}  {change.verdict}{gate}")
        about = f"{difference}, 95 % CI {interval}; {effect_of(change)}; {p_value(change.adjusted)} (Holm); {n_of(change)}"
        lines += _wrapped(about, width, "      ")
    for verdict in ("no change shown", "too few"):
        named = [f"{change.label} ({change.measure})" for change in brief if change.verdict == verdict]
        if named:
            lines += _wrapped(f"- {verdict}: {', '.join(named)}", width, "  ")
    for remark in remarks(comparison):
        lines += _wrapped(f"! {remark}", width, "  ")
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
