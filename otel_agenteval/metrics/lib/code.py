"""Find the code blocks in a text and detect their languages."""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ...core import jsonio, literals
from ...core.turn import Turn
from ..bound_metric import BoundMetric, get_metric

OUTPUT_CHARS = 1 << 20
"""Maximum length of an output in characters. Longer outputs are skipped with ``too_long``."""
PARSED_CHARS = 100_000
"""Maximum total characters of code blocks parsed as Python or SQL. Further blocks are checked only for JSON and keywords."""
MAX_BLOCKS = 200

_KEYWORD_LINES = 1_000
_KEYWORD_COLUMNS = 200

_SAME = {
    "py": "python", "python3": "python", "js": "javascript", "ts": "typescript", "sh": "bash", "shell": "bash", "yml": "yaml",
    "c++": "cpp", "c#": "csharp", "cs": "csharp", "golang": "go", "rb": "ruby", "rs": "rust", "kt": "kotlin",
}  # fmt: skip


def language_name(name: str) -> str:
    plain = name.strip().lower()
    return _SAME.get(plain, plain)


@dataclass(frozen=True)
class Block:
    text: str
    label: str | None


_FENCE = re.compile(r"((?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t])))*[ \t]*)(`{3,}|~{3,})[ \t]*(.*)")
"""Pattern for a line with a code fence. Groups: block quote and list markers, fence, and text after the fence."""
_INFO = re.compile(r"[{. ]*(?:lang(?:uage)?-)?([^\s,;:{}()\[\]]+)")


def code_blocks(text: str) -> list[Block]:
    """Return the first :data:`MAX_BLOCKS` fenced code blocks that aren't empty.

    A fence is a line that starts with three or more backticks or tildes, optionally after a list marker or ``>``. A block without a
    closing fence ends at the end of its block quote or of the text. If a text without fences is code, the whole text is one block.
    If the only fence has no text after it, the fence is ignored, because it closes a block that the prompt opened.
    """
    fenced: list[tuple[str, list[str]]] = []  # info string and lines of each block
    opening: re.Match[str] | None = None
    for whole in text.split("\n") if "```" in text or "~~~" in text else ():
        line = whole
        if opening is not None and ">" in opening[1]:
            line, opening = _unquoted(whole, opening)
        mark = _FENCE.match(line)
        if opening is None:
            if mark is not None and "`" not in mark[3]:
                opening = mark
                fenced.append((mark[3], []))
        elif mark is not None and mark[2].startswith(opening[2]) and not (mark[1] + mark[3]).strip():
            opening = None
        else:
            indent = len(line) - len(line.lstrip(" \t"))
            fenced[-1][1].append(line[min(indent, len(opening[1].rpartition(">")[2])) :].rstrip("\r"))
    if opening is not None and _is_blank(fenced):
        text, fenced = text[: text.rindex(opening[2])], []
    if not fenced:
        return [Block(text, None)] if _recognize(text, len(text) <= PARSED_CHARS)[1] else []
    found = [(_INFO.match(info), lines) for info, lines in fenced if any(map(str.strip, lines))][:MAX_BLOCKS]
    return [Block("\n".join(lines) + "\n", language_name(info[1]) if info else None) for info, lines in found]


def _unquoted(line: str, opening: re.Match[str]) -> tuple[str, re.Match[str] | None]:
    quoted = re.match(rf"(?:[ \t]*>){{{opening[1].count('>')}}}", line)
    return (line, None) if quoted is None else (line[quoted.end() :], opening)


def _is_blank(fenced: Sequence[tuple[str, list[str]]]) -> bool:
    return len(fenced) == 1 and not "".join([fenced[0][0], *fenced[0][1]]).strip()


def languages(blocks: Sequence[Block], *, labels: bool = True) -> list[str | None]:
    """Return each block's language (None if unknown). With ``labels``, the label after the fence determines the language."""
    found: list[str | None] = []
    left = PARSED_CHARS
    for block in blocks:
        if labels and block.label is not None:
            found.append(block.label)
            continue
        parse = len(block.text) <= left
        left -= len(block.text) if parse else 0
        found.append(_recognize(block.text, parse)[0])
    return found


def _recognize(text: str, parse: bool) -> tuple[str | None, bool]:
    tree = python_tree(text) if parse else None
    if tree is not None and not all(
        isinstance(statement, ast.Expr) or (isinstance(statement, ast.AnnAssign) and statement.value is None)  # Answer: Paris
        for statement in tree.body
    ):
        return "python", True
    if text.lstrip()[:1] in ("{", "["):
        try:
            jsonio.loads(text)
        except ValueError:
            pass
        else:
            return "json", True
    if parse and _SQL_START.match(text) and _sql_metric().evaluate(Turn(output=text)).passed:
        return "sql", True
    language, lines = _language_by_keywords(text)
    if language is not None:
        return language, lines >= 2
    if tree is None or not tree.body:
        return None, False
    return "yaml" if all(isinstance(statement, ast.AnnAssign) for statement in tree.body) else "python", False


_SOURCE = "<code of an agent>"
_QUIET = ("ignore", None, Warning, re.compile(re.escape(_SOURCE)), 0)


def python_tree(text: str) -> ast.Module | None:
    """Return a text's Python syntax tree, or None if it is too long or isn't valid Python."""
    if len(text) > PARSED_CHARS:
        return None
    if _QUIET not in warnings.filters:  # hide compiler warnings about escapes in the agent's code
        warnings.filterwarnings("ignore", module=re.escape(_SOURCE))
    try:
        return cast("ast.Module", literals.python_tree(text, "exec", _SOURCE))
    except ValueError:
        return None


_SQL_START = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*(?:alter|analyze|begin|call|comment|commit|copy|create|delete|desc|describe|drop|"
    r"exec|explain|from|grant|insert|merge|pragma|replace|revoke|rollback|select|set|show|truncate|update|use|values|with)\b",
    re.IGNORECASE,
)


@functools.cache
def _sql_metric() -> BoundMetric:
    return get_metric("code_is_sql")


_KEYWORDS = {
    language: re.compile(pattern)
    for language, pattern in {
        "python": r"(?:async )?def \w+\(.*:|class \w+(?:\(.*\))?:|from [\w.]+ import |import \w+(?: as \w+)?$|print\(|if __name__ ==|"
        r"for \w+ in .+:$|(?:else|try|finally):$|except\b.*:$|>>> ",
        "javascript": r"(?:const|let|var) [\w{\[][^=]*=(?!=)|(?:async )?function\*? ?\w*\(|console\.\w+\(|import .+ from ['\"]|"
        r"export (?:default|const|class|function)|module\.exports|document\.\w+|.*=> ?[{(]",
        "typescript": r"(?:export )?interface \w+|(?:export )?type \w+.*=|(?:const|let|var) \w+ ?: ?[^=]+=|"
        r"\w+\??: ?(?:string|number|boolean|any)\b|.*\): ?(?:Promise<|string|number|boolean|void)\b",
        "java": r"(?:public|private|protected) .*[{;(]|import javax?\.|System\.out\.|package [\w.]+;|@Override",
        "csharp": r"using [\w.]+;|namespace [\w.]+|Console\.(?:Write|Read)|.*\{ get; ",
        "c": r"#include ?[<\"]|#define \w+|printf\(|(?:unsigned |const |struct )*(?:int|char|float|double|void) ?\*? ?\w+ ?[\[(=;]",
        "cpp": r"using namespace |template ?<|#include <\w+>|.*\bstd::|(?:cout|cin) ?[<>]{2}",
        "go": r"package \w+$|func (?:\(.*\) )?\w+\(|fmt\.\w+\(|[\w, ]+ := |import [(\"]|defer \w",
        "rust": r"(?:pub )?fn \w+|let mut |println!\(|use (?:std|crate)::|impl\b.*\{|(?:pub )?(?:struct|enum) \w+ ?\{|#\[derive",
        "ruby": r"puts |require ['\"]|def \w+[?!]?(?:\([^)]*\))?$|end$|attr_(?:accessor|reader)|.* do \|",
        "php": r"<\?php|\$\w+ ?=[^=]|echo [\"'$].*;|function \w+\(.*\$",
        "bash": r"#!.*sh\b|\$ \w|(?:sudo|cd|ls|mkdir|rm|cp|mv|grep|curl|wget|chmod|apt|apt-get|pip3?|npm|npx|yarn|git|docker|kubectl|"
        r"echo|ssh)(?: [-./~\w\"'$@:]|$)|export \w+=|if \[|(?:fi|done|esac)$|(?:for|while) .*; ?do$",
        "kotlin": r"(?:suspend |private |override )*fun \w+\(|val \w+.*=|data class \w+",
        "html": r"(?i:<!DOCTYPE html|</?(?:html|head|body|div|span|p|a|ul|ol|li|h[1-6]|table|tr|td|script|style|form|img|button)\b[^<]*>)",
        "xml": r"<\?xml",
        "css": r"[a-z-]+: ?[^;{}]+;$|@media |[.#][\w-]+ ?\{$",
    }.items()
}
_BUILDS_ON = {"typescript": "javascript", "csharp": "java", "cpp": "c", "xml": "html"}
"""Maps languages to their base languages. For example, the keyword pattern of JavaScript matches most TypeScript lines, too."""


def _language_by_keywords(text: str) -> tuple[str | None, int]:
    lines = [line.strip()[:_KEYWORD_COLUMNS] for line in text[:PARSED_CHARS].split("\n", _KEYWORD_LINES)[:_KEYWORD_LINES]]
    counts = {language: sum(1 for line in lines if pattern.match(line)) for language, pattern in _KEYWORDS.items()}
    for language, base in _BUILDS_ON.items():
        if counts[language]:
            counts[language] += counts[base] + 1
            counts[base] = 0
    best = max(counts, key=counts.__getitem__)
    if not counts[best]:
        return None, 0
    return best, counts[best] - (best in _BUILDS_ON)
