"""The checks of ``otel-agenteval doctor``: each module yields findings about one possible cause of missing scores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from ...dialects.capture import advice_on
from ...dialects.reader import CALLER, TURN

GOOD, NOTE, BAD = "good", "note", "bad"


class DoctorFinding(NamedTuple):
    """A result of a check: good, a note, or a problem."""

    level: str
    text: str
    advice: str = ""
    """The fix."""


Findings = Iterator[DoctorFinding]
good, note, bad = (partial(DoctorFinding, level) for level in (GOOD, NOTE, BAD))


def missing_finding(scope: str, missing: str, traces: float) -> DoctorFinding:
    """Return the finding about traces of a scope that gave no turn, or turns without content."""
    what = {TURN: "seem to be an agent's, but gave no turn", CALLER: "are tools of an unknown turn"}
    found = what.get(missing, "gave turns without input and output")
    return bad(f"{traces:,.0f} traces of {scope or 'a tracer without a name'} {found}", advice_on(missing, [scope]))
