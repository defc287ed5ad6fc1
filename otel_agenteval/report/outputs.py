"""Outputs of a run: one evaluation can be written in several formats, each to its own file."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TextIO

from ..core.display import LINES, escaped
from ..core.errors import AgentEvalError, ConfigError
from ..core.files import private
from ..core.score import Score
from ..core.turn import Turn
from ..core.wellformed import well_formed
from ..evaluation.redaction import Redactor, redacted_or_empty
from ..outlets.turn_text import colors_wanted, columns, render_turn
from .formatting import Report
from .html import render_html
from .junit import render_junit
from .markdown import render_markdown
from .run import About, line_of, on_scale
from .table import OutcomeTable, render_comparison

Scored = Sequence[tuple[Score, str]]
Rendering = Callable[[Turn, About, Scored, Redactor], str]
"""Formats a turn and its redacted scores. It must be picklable, because the process that scores the turn calls it."""
_DOCUMENTS = {"junit": render_junit, "markdown": render_markdown, "html": render_html}
_DECLARE_UTF8 = ("junit", "html")
FORMATS = ("jsonl", "table", *_DOCUMENTS)


@contextmanager
def open_outputs(
    formats: Sequence[str], outs: Sequence[str], inputs: Sequence[str], *, content: bool = True, scale: int = 1
) -> Iterator[list[Output]]:
    """Open a file (``-`` is standard output) per format before the evaluation, to refuse invalid paths and ``inputs``."""
    places = [*outs, *["-"] * (len(formats) - len(outs))]
    if len(places) > len(formats):
        raise ConfigError(f"--out: {len(places)} files for {len(formats)} formats. Give one --format for each --out")
    if places.count("-") > 1:
        raise ConfigError("--format: several formats need an --out each. Only one goes to standard output")
    read = {os.path.realpath(name) for name in inputs if name != "-"}
    seen: set[str] = set()
    for place in (os.path.realpath(name) for name in places if name != "-"):
        if place in read:
            raise ConfigError(f"--out: {place} is read by this command. It would be overwritten")
        if place in seen:
            raise ConfigError(f"--out: {place} is given twice")
        seen.add(place)
    with ExitStack() as stack:
        yield [_output(form, _stream(form, place, stack), content, scale) for form, place in zip(formats, places, strict=True)]


def _stream(form: str, place: str, stack: ExitStack) -> TextIO:
    if place != "-":
        try:
            file = open(place, "ab", opener=private)  # noqa: SIM115 - the stack closes it; Path.open takes no opener
            return stack.enter_context(_KeptUntilWritten(file, encoding="utf-8", errors="backslashreplace"))
        except OSError as problem:
            raise AgentEvalError(f"--out: {place}: cannot be written: {problem.strerror or problem}") from None
    if form in _DECLARE_UTF8 and isinstance(sys.stdout, io.TextIOWrapper):  # the document declares it
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


class _KeptUntilWritten(io.TextIOWrapper):
    """A file that keeps its old content until the first write, in case a run lacks input."""

    _begun = False

    def write(self, text: str, /) -> int:
        if not self._begun:
            self._begun = True
            if stat.S_ISREG(os.fstat(self.fileno()).st_mode):  # pipes and terminals can't be truncated
                self.truncate(0)
        return super().write(text)


def _output(form: str, out: TextIO, content: bool, scale: int) -> Output:
    if form in _DOCUMENTS:
        return _Whole(_DOCUMENTS[form], out)
    return _Table(out, content, scale) if form == "table" else _JsonLines(out)


def _lines(turn: Turn, about: About, scored: Scored, redactor: Redactor) -> str:
    texts = (json.dumps(line_of(turn, about, score, parameters), ensure_ascii=False, default=str) for score, parameters in scored)
    return "".join(f"{escaped(well_formed(text))}\n" for text in texts)


def _nothing(turn: Turn, about: About, scored: Scored, redactor: Redactor) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class _Tabulated:
    width: int
    colour: bool
    content: bool
    scale: int

    def __call__(self, turn: Turn, about: About, scored: Scored, redactor: Redactor) -> str:
        scores = [on_scale(score, self.scale) for score, _ in scored]
        clean = str if self.content else lambda _: "(left out)"
        return f"{render_turn(redacted_or_empty(turn, redactor), scores, self.width, color=self.colour, clean=clean)}\n"


class _JsonLines:
    needs_scores = needs_run = False
    rendering: Rendering = staticmethod(_lines)

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def add(self, text: str, scored: Scored) -> None:
        self._out.write(text)

    def finish(self, report: Report) -> None:
        """Create an empty file for a run without scores."""
        self._out.write("")


class _Table:
    needs_scores, needs_run = True, False

    def __init__(self, out: TextIO, content: bool, scale: int) -> None:
        self._out, self._summary, self._scale = out, OutcomeTable(), scale
        self._colour, self._width = colors_wanted(out), columns(out)
        self.rendering: Rendering = _Tabulated(self._width, self._colour, content, scale)

    def add(self, text: str, scored: Scored) -> None:
        self._summary.add([on_scale(score, self._scale) for score, _ in scored])
        self._out.write(text)

    def finish(self, report: Report) -> None:
        if self._summary.turns > 1:
            self._out.write(self._summary.render(self._width, colour=self._colour) + "\n")
        if report.comparison is not None:
            self._out.write(escaped(render_comparison(report.comparison, self._width), LINES))


class _Whole:
    needs_scores = needs_run = True
    rendering: Rendering = staticmethod(_nothing)

    def __init__(self, render: Callable[[Report], str], out: TextIO) -> None:
        self._render, self._out = render, out

    def add(self, text: str, scored: Scored) -> None:
        """Do nothing, because the final report contains the scores."""

    def finish(self, report: Report) -> None:
        self._out.write(self._render(report))


Output = _JsonLines | _Table | _Whole
