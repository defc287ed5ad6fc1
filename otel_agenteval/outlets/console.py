"""Outlet that prints turns and their scores to the terminal, for development.

The outlet is off by default, because it prints turn content (redacted by ``privacy.redact``). The outlet writes to standard error,
because standard output belongs to the application.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ..core.display import escaped
from ..core.forks import Step, at_fork
from ..evaluation.redaction import Redactor
from ..evaluation.scored_turn import Root, ScoredTurn
from .base import Outlet, Setup
from .turn_text import colors_wanted, columns, render_scores, render_turn, short_id

if TYPE_CHECKING:
    from ..statistics.changes import Change

_log = logging.getLogger("otel_agenteval")
_forked: set[int] = set()  # IDs of processes that forked, so that a child can have the turns
at_fork(Step.OUTLETS, in_parent=lambda: _forked.add(os.getpid()))


class ConsoleOutlet(Outlet):
    name = "console"
    may_hang = True
    keeps_content = True

    def __init__(self, shown: Literal["all", "failed"]) -> None:
        self._failed_only = shown == "failed"
        self._is_unused = True

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        self._is_unused = False
        wanted = [
            scored
            for scored in batch
            if not self._failed_only or any(score.summary.outcome in ("fail", "error") for score in scored.scores)
        ]
        stream = sys.stderr
        if not wanted or stream is None:  # a program without a console has no standard error
            return
        color, width = colors_wanted(stream), columns(stream)
        texts, fault = self.render(wanted, lambda scored: _rendered(scored, width, color))
        stream.write("".join(texts))
        stream.flush()
        if fault is not None:
            raise fault

    def announce(self, change: Change, root: Root) -> None:
        stream = sys.stderr
        if stream is not None and (change.verdict == "worse" or not self._failed_only):
            stream.write(f"{escaped(change.title)}\n")
            stream.flush()

    def close(self) -> None:
        if self._is_unused and not _forked:
            _log.warning("no turns were scored; if your agent answered requests, run `otel-agenteval doctor`")
        self._is_unused = False

    def after_fork_in_child(self) -> None:
        self._is_unused = False


def _rendered(scored: ScoredTurn, width: int, color: bool) -> str:
    turn = scored.turn
    title = f"{turn.agent or 'agent'} · {'' if scored.conversation else 'turn '}{short_id(turn.turn_id, scored.conversation)}"
    if scored.is_feedback:
        title += " · user feedback"
    if scored.judged is not None:
        title += f" · judged by {scored.judged.model or 'a model'}"
    if scored.is_feedback or scored.conversation or scored.judged is not None:
        return render_scores(scored.scores, width, title=title, color=color)
    if scored.supersedes is not None:
        title += f" · revision {turn.revision}"
    redactor = scored.redactor
    clean = redactor.text if isinstance(redactor, Redactor) else str
    return render_turn(turn, scored.scores, width, title=title, color=color, clean=clean)


def outlet_from(wanted: Literal["all", "failed"], setup: Setup) -> Outlet:
    return ConsoleOutlet(wanted)
