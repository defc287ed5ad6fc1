"""Secrets in commands, function calls and statements, recognized by their position or by a short flag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..texts import has_any, lazy
from .values import is_chosen, is_nothing

Span = tuple[int, int]


class Program(NamedTuple):
    """Programs that accept a secret in the same way."""

    names: str
    flags: str = ""
    """Flags whose value is the secret: ``-p`` in the next word, ``-p…`` in the same word."""
    after: str = ""
    """Separator before the secret within the value, such as ``:`` in ``user:secret``."""
    needs: str = ""
    """Pattern that a word of the command must match. Without it, the flags have another meaning."""
    operands: int = 0
    """The last operand is a secret if there are at least this many. 0 means no operand is one."""


PROGRAMS = (
    Program(
        "mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlsh mariadb mariadb-dump mariadb-admin mycli", "-p…"
    ),
    Program(
        "mycli mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat sshpass influx cqlsh beeline cypher-shell pgcli couchbase-cli rabbitmqadmin trino",
        "-p -p…",
    ),
    Program("docker podman nerdctl buildah skopeo oras crane helm az", "-p", needs="login"),
    Program("twine choco rdesktop smbmap nxc netexec crackmapexec hydra medusa psexec psexec.exe jfrog jf nuget dotnet", "-p"),
    Program("useradd usermod adduser", "-p"),
    Program("redis-cli valkey-cli keydb-cli", "-a --pass"),
    Program("ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldapcompare ldapmodrdn ldappasswd", "-w -w…"),
    Program("ldappasswd", "-s -a"),
    Program("ssh-keygen", "-N -P"),
    Program("sqlcmd osql bcp isql tsql mosquitto_pub mosquitto_sub mosquitto_rr zip unzip ipmitool ncrack", "-P -P…"),
    Program("7z 7za 7zz 7zr rar unrar", "-p… -hp…"),
    Program("snmpget snmpwalk snmpset snmpbulkwalk snmptrap", "-A -X"),
    Program("plink pscp psftp putty", "-pw"),
    Program("schtasks", "/rp /RP"),
    Program("cmdkey", "/pass:…"),
    Program("xfreerdp wlfreerdp sdl-freerdp", "/p:…"),
    Program("gh", "-b --body", needs="secret"),
    Program("openssl", "-passin -passout -pass", after="pass:"),
    Program("openssl", "-k"),
    Program("curl", "-u -u… --user -U -U… --proxy-user --user=… --proxy-user=…", after=":"),
    Program("http https xh xhs", "-a -a… --auth --auth=…", after=":"),
    Program("ab hey wrk siege", "-A -a", after=":"),
    Program("smbclient rpcclient smbget smbcacls net", "-U -U… --user", after="%"),
    Program("lftp", "-u -u…", after=","),
    Program("sqlplus impdp expdp sqlldr rman", after="/", operands=1),
    Program("wpa_passphrase", operands=2),
    Program("htpasswd", needs=r"-[a-zA-Z]*b[a-zA-Z]*", operands=2),
    Program("net net.exe", needs="use", operands=2),
    Program("net net.exe", needs="user", operands=3),
    Program("rabbitmqctl", needs="add_user|change_password", operands=3),
)
_ROWS: dict[str, list[Program]] = {}
for _program in PROGRAMS:
    for _name in _program.names.split():
        _ROWS.setdefault(_name, []).append(_program)
_NAME = lazy(rf"(?<![\w.=-])(?:{'|'.join(map(re.escape, sorted(_ROWS, key=len, reverse=True)))})(?=[\s\"'\\])")
_SIGNS = (" -", '"-', "'-", " /p", " /rp", "net us", "rabbitmqctl", "sqlplus", "impdp", "expdp", "wpa_passphrase")
"""Every command in the table contains at least one of these texts."""
_WORD = lazy(
    r"(?:[ \t]|\\\r?\n){0,40}(?:,\s{0,40})?(?:\"([^\"\n]{0,400})\"|'([^'\n]{0,400})'|([^\s\"'`|;<>\]]{1,400}(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}')?))"
)
_MOST_WORDS = 60
_NO_OPERAND = lazy(r"[-/\\].*|[A-Za-z]:|\*")


_TEXT = r"(?:\"([^\"\n]{3,200})\"|'([^'\n]{3,200})'|([^\s\"'`;,|()]{3,200}))"
_SENT = rf"\b(?:echo|printf)\s{{1,4}}(?:-\w{{1,3}}\s{{1,4}})?(?:[\"']%s(?:\\n)?[\"']\s{{1,4}})?{_TEXT}\s{{0,4}}\|\s{{0,4}}[^|\n]{{0,120}}?"
_PAIR = r"(?:\s(?:are|is|with|as|using))?[\s:*`\"'(]{1,4}[\w.@\\-]{2,40}[`\"'*]{0,2}\s?[/:]\s?[`\"'*]{0,2}([^\s\"'`,;()|/]{6,64})"
_CALL = r"[\w.]{0,20}\s{0,2}[=(]\s{0,2}\(?[^()\n]{0,200}?,\s{0,4}(?:\"([^\"\n]{6,100})\"|'([^'\n]{6,100})')\s{0,4}[,)]"
_STATEMENTS: tuple[tuple[str, re.Pattern[str], bool], ...] = (
    (
        "identified",
        lazy(
            r"identified\s{1,4}(?:with\s{1,4}[\w'\"]{1,40}\s{1,4})?(?:by|as)\s{1,4}(?:\"([^\"\n]{3,200})\"|'([^'\n]{3,200})'|((?-i:(?<=[A-Z] ))[^\s\"';,()]{3,200}))",
            re.IGNORECASE,
        ),
        True,
    ),
    ("setuser", lazy(r"setuser\s{1,4}\S{1,60}[^\n]{0,60}?\s>(\S{3,200})", re.IGNORECASE), True),
    ("securestring", lazy(rf"ConvertTo-SecureString\s{{1,4}}(?:-String\s{{1,4}})?{_TEXT}", re.IGNORECASE), True),
    ("auth ", lazy(r"(?<![\w ])AUTH (?:\w{1,40} )?([^\s\"'<>]{6,200})(?=[\"'`]|\s*\Z|\r?\n)"), True),
    (":543", lazy(r"(?<![^\s\"'`])[\w.*-]{1,80}:543[0-9]:[\w*-]{1,60}:[\w*.-]{1,60}:([^\s\"'`]{3,200})"), True),
    (":*:", lazy(r"(?<![^\s\"'`])[\w.*-]{1,80}:(?:[0-9]{2,5}|\*):[\w*-]{1,60}:[\w*.-]{1,60}:([^\s\"'`]{3,200})"), True),
    ("stdin", lazy(rf"{_SENT}--?(?:password-)?stdin\b"), True),
    ("sudo -", lazy(rf"{_SENT}sudo\s[^|\n]{{0,20}}?-S\b"), True),
    (
        "chpasswd",
        lazy(r"\b(?:echo|printf)\s{1,4}[\"']?[\w.-]{1,40}:([^\s\"'|]{3,200})[\"']?\s{0,4}\|\s{0,4}(?:sudo\s{1,4})?chpasswd"),
        True,
    ),
    (
        "<<<",
        lazy(r"\b(?:chpasswd|passwd|sudo|kinit|login)\b[^\n<]{0,80}<<<\s{0,2}[\"']?(?:[\w.-]{1,40}:)?([^\s\"']{3,200})"),
        True,
    ),
    (
        " put ",
        lazy(r"\bput\s{1,4}[\w./-]{0,60}(?:passw\w{0,4}|secret|token|key)\s{1,4}[\"']?([^\s\"'=]{6,200})", re.IGNORECASE),
        False,
    ),
    (
        " -u",
        lazy(
            r"(?<=\s)-(?:[uUln]|user|username)[ :=]?[^\s\"']{1,60}\s(?:[^\n|;]{0,80}?\s)?-(?:p|P|pw|pwd|w)[ :=][\"']?([^\s\"']{6,100})"
        ),
        False,
    ),
    ("@tcp(", lazy(r"[\w.-]{1,40}:([^\s:@/]{3,100})@tcp\("), True),
    ("@//", lazy(r"[\w$]{1,40}/([^\s@/]{3,100})@//"), True),
    ("cred", lazy(rf"\bcred(?:s|en[tcz]i\w{{2,5}})\b{_PAIR}", re.IGNORECASE), False),
    ("daten", lazy(rf"(?:zugangs|anmelde|login-?)daten\b{_PAIR}", re.IGNORECASE), False),
    ("identifiants", lazy(rf"\bidentifiants\s?{_PAIR}", re.IGNORECASE), False),
    *((stem, lazy(rf"\b{stem}\b{_PAIR}", re.IGNORECASE), False) for stem in ("log in", "sign in")),
    ("login", lazy(rf"\blogin(?:{_PAIR}|{_CALL})", re.IGNORECASE), False),
    *((stem, lazy(rf"{stem}{_CALL}", re.IGNORECASE), False) for stem in ("auth", "credential", "connect", "pdo")),
)
"""For each statement or call: a lower-case text it contains, its pattern with the secret as the last group, and True if the secret
can be an ordinary word.
"""
_STATEMENT_STEMS = tuple({stem for stem, _, _ in _STATEMENTS})


class _Word(NamedTuple):
    start: int
    text: str


def may_command(text: str, lowered: str) -> bool:
    """Return True if the text may contain a command or statement with a secret. ``lowered`` is the text in lower case."""
    return has_any(text, _SIGNS) or has_any(lowered, _STATEMENT_STEMS)


def in_commands(text: str, lowered: str) -> Iterator[Span]:
    """Yield the positions of secrets in commands, calls and statements. ``lowered`` is the text in lower case."""
    if has_any(text, _SIGNS):
        at = 0
        while (name := _NAME.search(lowered, at)) is not None:
            words = _words(text, name.end())
            for program in _ROWS[name.group()]:
                yield from _secrets_of(program, words)
            at = max(name.end(), words[-1].start) if words else name.end()
    for stem, pattern, sure in _STATEMENTS:
        if stem in lowered:
            for found in pattern.finditer(text):
                group = found.lastindex or 1
                value = found.group(group).removesuffix("\\n")
                if not is_nothing(value) if sure else is_chosen(value):
                    yield found.start(group), found.start(group) + len(value)


def _words(text: str, at: int) -> list[_Word]:
    words: list[_Word] = []
    if text[at : at + 1] in ('"', "'"):
        at += 1
    while len(words) < _MOST_WORDS and (found := _WORD.match(text, at)) is not None:
        group = found.lastindex or 3
        words.append(_Word(found.start(group), found.group(group).rstrip(",") if group == 3 else found.group(group)))
        at = found.end()
    return words


def _secrets_of(program: Program, words: list[_Word]) -> Iterator[Span]:
    needs = lazy(program.needs)
    if program.needs and not any(needs.fullmatch(word.text) is not None for word in words):
        return
    flags = program.flags.split()
    for index, word in enumerate(words):
        for flag in flags:
            if flag.endswith("…"):
                if word.text.startswith(flag[:-1]) and not word.text.startswith("--" if len(flag) == 3 else "\n"):
                    yield from _secret(program, word, len(flag) - 1)
            elif word.text.startswith(f"{flag}="):
                yield from _secret(program, word, len(flag) + 1)
            elif word.text == flag and index + 1 < len(words):
                yield from _secret(program, words[index + 1], 0)
    if program.operands:
        operands = [word for word in words if _NO_OPERAND.fullmatch(word.text) is None]
        if len(operands) >= program.operands:
            yield from _secret(program, operands[-1], 0)


def _secret(program: Program, word: _Word, at: int) -> Iterator[Span]:
    """Yield the position of the secret in a word, starting at an offset."""
    value = word.text[at:]
    if value[:1] in ("'", '"'):
        at, value = at + 1, value[1:-1]
    if program.after:
        before, found, value = value.partition(program.after)
        if not found:
            return
        at += len(before) + len(found)
        if program.after == "/":
            value = value.rpartition("@")[0] or value
    if len(value) >= 3 and value[0] not in " -" and not is_nothing(value):
        yield word.start + at, word.start + at + len(value)
