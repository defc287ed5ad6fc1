"""Section ``privacy``: what is taken out before content leaves."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .section import Section
from .types import Before, Kind, Switch


def _kinds(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError("it must be a list of email, phone, card, ssn and secret")


class PrivacyOptions(Section):
    """What is taken out of a turn before its content leaves the process, to a judge, an embedder or the file of a queue."""

    redact: Annotated[
        tuple[Literal["email", "phone", "card", "ssn", "secret"], ...],
        Before(_kinds),
        Kind("list of `email`, `phone`, `card`, `ssn` and `secret`"),
    ] = (
        "email",
        "phone",
        "card",
        "secret",
    )
    """Kinds of personal data and secrets that are replaced by their kind and a number (``[EMAIL_1]``), in names and ids by their kind and a hash (``[PHONE-9f3a0c1b2d4e]``); scores that are computed in this process see everything."""
    export_content: Switch = False
    """Whether log events of scores carry the turn's input and output (``agenteval.turn.input``, ``agenteval.turn.output``), redacted and cut to 4,096 characters each."""
