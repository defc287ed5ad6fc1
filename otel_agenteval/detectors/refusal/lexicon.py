"""Load words by class and language from ``data/refusal``, as evidence for or against a refusal.

``word`` is a whole word, ``stem*`` the start of one, and an entry with a space matches anywhere in a sentence. For languages without
spaces between words, or with attached particles, all entries are substrings. Entries have their usual spelling and are folded on
first use.
"""

from __future__ import annotations

from typing import NamedTuple

from ..lists import sections

LANGUAGES = (
    *("en", "de", "fr", "es", "it", "pt", "nl", "pl", "tr", "ru", "uk", "ar", "he", "hi"),
    *("ja", "zh", "ko", "vi", "id", "sv", "da", "cs", "fi", "ro", "hu", "el", "th", "fa"),
)


class Lexicon(NamedTuple):
    """The evidence in one language."""

    no: tuple[str, ...]
    me: tuple[str, ...]
    """The speaker: pronouns, first-person verbs of helping and telling, the assistant, "here"."""
    rule: tuple[str, ...]
    """Rules, secrecy and authority: private, reserved or decided by somebody else."""
    wrong: tuple[str, ...]
    """Reasons why a request shouldn't be fulfilled."""
    scope: tuple[str, ...]
    """The speaker's purpose and abilities."""
    quit: tuple[str, ...]
    """Verbs for declining, and for leaving things unchanged."""
    other: tuple[str, ...]
    instead: tuple[str, ...]
    """Alternatives and regret."""
    done: tuple[str, ...]
    """The request is fulfilled: reports, consent, "here it is"."""
    failed: tuple[str, ...]
    """An attempt failed, or something is temporarily unavailable."""
    lack: tuple[str, ...]
    """Data that the user must still provide, and searches without results."""
    asked: tuple[str, ...]
    """First words of factual questions, which "no" can answer."""
    touchy: tuple[str, ...]
    """Requests that agents commonly decline."""
    common: tuple[str, ...] = ()
    """Frequent words that identify the language. Empty if its letters identify it."""


def lexicon(language: str) -> Lexicon:
    return Lexicon(**{section: tuple(entries) for section, entries in sections(f"refusal/{language}.txt").items()})
