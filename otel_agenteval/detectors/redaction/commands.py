"""Find secrets by their position or flag in commands, function calls, and statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ..texts import Span, has_any, lazy, table
from .words import is_chosen, is_nothing


def may_command(text: str, lowered: str) -> bool:
    """Return True if the text might contain a command or statement with a secret. ``lowered`` is the text in lower case."""
    return has_any(text, _COMMAND_LITERALS) or has_any(lowered, _STATEMENT_LITERALS)


def in_commands(text: str, lowered: str) -> Iterator[Span]:
    """Yield the positions of secrets in commands, function calls, and statements. ``lowered`` is the text in lower case."""
    if has_any(text, _COMMAND_LITERALS):
        at = 0
        while (name := _PROGRAM_NAME.search(lowered, at)) is not None:
            words = _words(text, name.end())
            for program in _programs_by_name()[name.group()]:
                yield from _secrets_of_program(program, words)
            at = max(name.end(), words[-1].start) if words else name.end()
    for statement in _STATEMENTS:
        if statement.literal in lowered:
            for found in statement.pattern.finditer(text):
                group = found.lastindex or 1
                value = found.group(group).removesuffix("\\n")
                if is_chosen(value) if statement.only_chosen else not is_nothing(value):
                    yield found.start(group), found.start(group) + len(value)


# --- programs


class _SecretProgram(NamedTuple):
    """A group of programs in ``data/commands.json`` that accept a secret in the same way."""

    names: str
    flags: str = ""
    """Flags before a secret: ``-p`` if the secret is the next word or follows ``=``, or ``-p…`` if it's the rest of the same word."""
    after: str = ""
    """Separator before the secret in a flag's value, such as ``:`` in ``user:secret``."""
    needs: str = ""
    """Pattern that a word of the command must match. Otherwise, the flags have another meaning."""
    operands: int = 0
    """If a command has at least this number of operands, the last operand is a secret. If 0, no operand is a secret."""


@cache
def _programs_by_name() -> dict[str, list[_SecretProgram]]:
    programs: dict[str, list[_SecretProgram]] = {}
    for row in table("commands.json"):
        for name in row["names"].split():
            programs.setdefault(name, []).append(_SecretProgram(**row))
    return programs


_PROGRAM_NAME = lazy(
    lambda: rf"(?<![\w.=-])(?:{'|'.join(map(re.escape, sorted(_programs_by_name(), key=len, reverse=True)))})(?=[\s\"'\\])"
)
_COMMAND_LITERALS = (" -", '"-', "'-", " /p", " /rp", "net us", "net.exe us", "mqctl", "sqlp", "sqlld", "rman tar", "pdp", "wpa_")
"""Texts for a fast pre-check, such as the start of a flag. Commands without any of these texts aren't searched for secrets."""
_WORD = lazy(
    r"""
    (?:[ \t]|\\\r?\n){0,40} (?:,\s{0,40})?  # in a list of arguments, words are separated by commas
    (?:
        \"([^\"\n]{0,400})\" | '([^'\n]{0,400})'
        | ([^\s\"'`|;<>\]]{1,400} (?:\"[^\"\n]{0,400}\" | '[^'\n]{0,400}')?)
    )
    """,
    re.VERBOSE,
)
_MOST_WORDS = 60
_NOT_AN_OPERAND = lazy(r"[-/\\].*|[A-Za-z]:|\*")


class _CommandWord(NamedTuple):
    start: int
    text: str


def _words(text: str, at: int) -> list[_CommandWord]:
    words: list[_CommandWord] = []
    if text[at : at + 1] in ('"', "'"):
        at += 1
    while len(words) < _MOST_WORDS and (found := _WORD.match(text, at)) is not None:
        group = found.lastindex or 3
        words.append(_CommandWord(found.start(group), found.group(group).rstrip(",") if group == 3 else found.group(group)))
        at = found.end()
    return words


def _secrets_of_program(program: _SecretProgram, words: list[_CommandWord]) -> Iterator[Span]:
    if program.needs and not any(re.fullmatch(program.needs, word.text) for word in words):
        return
    flags = program.flags.split()
    for index, word in enumerate(words):
        for flag in flags:
            if flag.endswith("…"):
                is_long_option = len(flag) == len("-p…") and word.text.startswith("--")
                if word.text.startswith(flag[:-1]) and not is_long_option:
                    yield from _secret_in(program, word, len(flag) - 1)
            elif word.text.startswith(f"{flag}="):
                yield from _secret_in(program, word, len(flag) + 1)
            elif word.text == flag and index + 1 < len(words):
                yield from _secret_in(program, words[index + 1], 0)
    if program.operands:
        operands = [word for word in words if _NOT_AN_OPERAND.fullmatch(word.text) is None]
        if len(operands) >= program.operands:
            yield from _secret_in(program, operands[-1], 0)


def _secret_in(program: _SecretProgram, word: _CommandWord, at: int) -> Iterator[Span]:
    """Yield the range of the secret in a word of a command. The secret, or a value that contains it, starts at offset ``at``."""
    value = word.text[at:]
    if value[:1] in ("'", '"'):
        at, value = at + 1, value[1:-1]
    if program.after:
        before, found, value = value.partition(program.after)
        if not found:
            return
        at += len(before) + len(found)
        if program.after == "/":  # sqlplus user/secret@database
            value = value.rpartition("@")[0] or value
    if len(value) >= 3 and value[0] not in " -" and not is_nothing(value):
        yield word.start + at, word.start + at + len(value)


# --- statements


class _SecretStatement(NamedTuple):
    literal: str
    """Lower-case text for a fast pre-check. Texts without it aren't searched for the pattern."""
    pattern: re.Pattern[str]
    """Pattern whose last matching group is the secret."""
    only_chosen: bool = False
    """True if the pattern also matches prose. Ordinary words are then ignored."""


_TEXT = r"(?:\"([^\"\n]{3,200})\"|'([^'\n]{3,200})'|([^\s\"'`;,|()]{3,200}))"
_PIPED = rf"\b(?:echo|printf)\s{{1,4}}(?:-\w{{1,3}}\s{{1,4}})?(?:[\"']%s(?:\\n)?[\"']\s{{1,4}})?{_TEXT}\s{{0,4}}\|\s{{0,4}}[^|\n]{{0,120}}?"
_USER_AND_VALUE = (
    r"(?:\s(?:are|is|with|as|using))?[\s:*`\"'(]{1,4}[\w.@\\-]{2,40}[`\"'*]{0,2}\s?[/:]\s?[`\"'*]{0,2}([^\s\"'`,;()|/]{6,64})"
)
_CALL_WITH_VALUE = r"[\w.]{0,20}\s{0,2}[=(]\s{0,2}\(?[^()\n]{0,200}?,\s{0,4}(?:\"([^\"\n]{6,100})\"|'([^'\n]{6,100})')\s{0,4}[,)]"
_STATEMENTS = (
    # SQL: CREATE USER … IDENTIFIED BY
    _SecretStatement("identified", lazy(r"identified\s{1,4}(?:with\s{1,4}[\w'\"]{1,40}\s{1,4})?(?:by|as)\s{1,4}(?:\"([^\"\n]{3,200})\"|'([^'\n]{3,200})'|((?-i:(?<=[A-Z] ))[^\s\"';,()]{3,200}))", re.IGNORECASE)),
    # Redis: ACL SETUSER
    _SecretStatement("setuser", lazy(r"setuser\s{1,4}\S{1,60}[^\n]{0,60}?\s>(\S{3,200})", re.IGNORECASE)),
    _SecretStatement("securestring", lazy(rf"ConvertTo-SecureString\s{{1,4}}(?:-String\s{{1,4}})?{_TEXT}", re.IGNORECASE)),
    # Redis: AUTH
    _SecretStatement("auth ", lazy(r"(?<![\w ])AUTH (?:\w{1,40} )?([^\s\"'<>]{6,200})(?=[\"'`]|\s*\Z|\r?\n)")),
    # .pgpass
    _SecretStatement(":543", lazy(r"(?<![^\s\"'`])[\w.*-]{1,80}:543[0-9]:[\w*-]{1,60}:[\w*.-]{1,60}:([^\s\"'`]{3,200})")),
    # .pgpass
    _SecretStatement(":*:", lazy(r"(?<![^\s\"'`])[\w.*-]{1,80}:(?:[0-9]{2,5}|\*):[\w*-]{1,60}:[\w*.-]{1,60}:([^\s\"'`]{3,200})")),
    # echo … | docker login --password-stdin
    _SecretStatement("stdin", lazy(rf"{_PIPED}--?(?:password-)?stdin\b")),
    # echo … | sudo -S
    _SecretStatement("sudo -", lazy(rf"{_PIPED}sudo\s[^|\n]{{0,20}}?-S\b")),
    _SecretStatement("chpasswd", lazy(r"\b(?:echo|printf)\s{1,4}[\"']?[\w.-]{1,40}:([^\s\"'|]{3,200})[\"']?\s{0,4}\|\s{0,4}(?:sudo\s{1,4})?chpasswd")),
    _SecretStatement("<<<", lazy(r"\b(?:chpasswd|passwd|sudo|kinit|login)\b[^\n<]{0,80}<<<\s{0,2}[\"']?(?:[\w.-]{1,40}:)?([^\s\"']{3,200})")),
    # vault kv put
    _SecretStatement(" put ", lazy(r"\bput\s{1,4}[\w./-]{0,60}(?:passw\w{0,4}|secret|token|key)\s{1,4}[\"']?([^\s\"'=]{6,200})", re.IGNORECASE), only_chosen=True),
    # the flags of a program that isn't in the table
    _SecretStatement(" -u", lazy(r"(?<=\s)-(?:[uUln]|user|username)[ :=]?[^\s\"']{1,60}\s(?:[^\n|;]{0,80}?\s)?-(?:p|P|pw|pwd|w)[ :=][\"']?([^\s\"']{6,100})"), only_chosen=True),
    # Go: a MySQL connection
    _SecretStatement("@tcp(", lazy(r"[\w.-]{1,40}:([^\s:@/]{3,100})@tcp\(")),
    # Oracle: a connection
    _SecretStatement("@//", lazy(r"[\w$]{1,40}/([^\s@/]{3,100})@//")),
    _SecretStatement("cred", lazy(rf"\bcred(?:s|en[tcz]i\w{{2,5}})\b{_USER_AND_VALUE}", re.IGNORECASE), only_chosen=True),
    _SecretStatement("daten", lazy(rf"(?:zugangs|anmelde|login-?)daten\b{_USER_AND_VALUE}", re.IGNORECASE), only_chosen=True),
    _SecretStatement("identifiants", lazy(rf"\bidentifiants\s?{_USER_AND_VALUE}", re.IGNORECASE), only_chosen=True),
    *(_SecretStatement(stem, lazy(rf"\b{stem}\b{_USER_AND_VALUE}", re.IGNORECASE), only_chosen=True) for stem in ("log in", "sign in")),
    _SecretStatement("login", lazy(rf"\blogin(?:{_USER_AND_VALUE}|{_CALL_WITH_VALUE})", re.IGNORECASE), only_chosen=True),
    *(_SecretStatement(stem, lazy(rf"{stem}{_CALL_WITH_VALUE}", re.IGNORECASE), only_chosen=True) for stem in ("auth", "credential", "connect", "pdo")),
)  # fmt: skip
_STATEMENT_LITERALS = tuple({statement.literal for statement in _STATEMENTS})
