"""Section ``privacy``: redaction before content leaves the process."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .section import Section
from .types import Before, Kind, Switch


def _kinds(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError("must be a list of email, phone, card, ssn and secret")


class PrivacyOptions(Section):
    """Redaction of a turn's content before it leaves the process, for a judge, an embedder, an outlet or a queue."""

    redact: Annotated[
        tuple[Literal["email", "phone", "card", "ssn", "secret"], ...],
        Before(_kinds),
        Kind("list of `email`, `phone`, `card`, `ssn` and `secret`"),
    ] = ("email", "phone", "card", "secret")
    """Kinds of personal data and secrets to redact. In content, ``[EMAIL_1]`` replaces a value. In names and ids, ``[PHONE-9f3a0c1b2d4e]`` does. ``code_`` metrics read the original."""
    export_content: Switch = False
    """Add the turn's input and output (``agenteval.turn.input``, ``agenteval.turn.output``) to the log events of scores, redacted and truncated to 4,096 characters each."""
