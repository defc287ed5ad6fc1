"""Flag sentences that are hard to read, and compare the share of each kind of text with a limit.

    python scripts/prose.py                  prints flagged sentences in 100 by kind of text; exit status 1 above a limit
    python scripts/prose.py --show 20        also prints up to 20 flagged sentences of each kind
    python scripts/prose.py --subject FILE   checks one commit message, as a commit-msg hook

The limits are in [tool.prose] of pyproject.toml, and may only be lowered. A flagged sentence isn't always wrong.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
MOST_WORDS = 30
SUBJECT_LENGTH = 72
GENERATED = {"decisions", "prompts"}
"""Folders of docs/ that aren't checked: history, and prompts for models."""
RULES = {
    "subordinate clause in place of a noun": r"(?:^|[,:(] |\b(?:about|and|are|as|at|by|for|from|in|is|lists?|of|on|or|reads?|returns?|shows?|than|to|with) )wh(?:at|atever|om?)\b(?! (?:to|if)\b)",
    "semicolon": r";(?! \d)",
    "software that speaks or thinks": r"\b(?:sa(?:ys|id|y)|tells?|told|asks|asked|knows|wants)\b",
    "negated noun": r"\b(?:is|are|was|were|has|have|had|gets|takes|gives|needs?|leaves?|finds?) (?:no|(?-i:none))\b|\bnone of\b",
    "pronoun as possessor": r"\bof (?:ours|theirs|yours|its own|their own)\b|\bth(?:at|ose) of\b",
    "else for or": r", else\b(?! if)",
    "where or while for if": r"\bwh(?:ere|ile) (?:a|an|it|no|one|that|the|there|they)\b",
    "rare word": r"\b(?:anew|anyhow|beside|hence|likewise|once more|thereby|whereby|wherein|whichever)\b",
    "opens without a subject or verb": r"^(?:Of|That which|The same|What|Whether|Who) ",
}
COMPILED = {name: re.compile(rule, 0 if rule.startswith("^(?:Of") else re.IGNORECASE) for name, rule in RULES.items()}
SUBJECT = re.compile(r"(?:Revert |Merge |fixup! )|[\w./-]+: (?!(?:Call|Give|Know|Let|Say|Take)\b)[A-Z][a-z]+ \S")


def flags(sentence: str) -> list[str]:
    """Return the names of the rules that a sentence breaks. Each code span counts as one word."""
    plain = re.sub(r"`[^`]*`", "X", sentence)
    found = [name for name, rule in COMPILED.items() if rule.search(plain)]
    return [*found, f"over {MOST_WORDS} words"] if len(plain.split()) > MOST_WORDS else found


def subject_flags(subject: str) -> list[str]:
    """Return the problems of a commit subject."""
    found = [] if SUBJECT.match(subject) else ["not `area: Verb object`"]
    if len(subject) > SUBJECT_LENGTH:
        found.append(f"over {SUBJECT_LENGTH} characters")
    return found + [flag for flag in flags(subject) if not flag.startswith("over")]


def markdown_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page, without code, headings and tables."""
    text = re.sub(r"```.*?```|<!--.*?-->", " ", text, flags=re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*] |\s*\d+\. )", text):
        if not block.lstrip().startswith(("|", "#", "![")):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
            yield from (part.strip(" -*") for part in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[\"])", plain))


def docstring_sentences(tree: ast.AST) -> Iterator[str]:
    """Yield the sentences of the first paragraph of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            text := ast.get_docstring(node)
        ):
            yield from re.split(r"(?<=\.)\s+", " ".join(text.split("\n\n")[0].split()))


def raised_texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of raised errors. Each inserted value counts as one word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for argument in node.exc.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value
                elif isinstance(argument, ast.JoinedStr):
                    yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in argument.values)


def commit_subjects(since: str) -> list[str]:
    """Return the subjects of commits since a date, or [] outside a git checkout."""
    git = ["git", "-C", str(ROOT), "log", "--no-merges", f"--since={since}", "--format=%s"]
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout.splitlines()


def pools(since: str) -> dict[str, list[str]]:
    """Return the sentences of each kind of text."""
    pages = [path for path in sorted((ROOT / "docs").rglob("*.md")) if not GENERATED & set(path.parts)]
    trees = [ast.parse(path.read_text()) for path in sorted((ROOT / "otel_agenteval").rglob("*.py"))]

    def longer(words: int, texts: Iterable[str]) -> list[str]:
        return [text for text in texts if len(text.split()) >= words]

    return {
        "readme": longer(5, markdown_sentences((ROOT / "README.md").read_text())),
        "docs": longer(5, (sentence for path in pages for sentence in markdown_sentences(path.read_text()))),
        "docstrings": longer(4, (sentence for tree in trees for sentence in docstring_sentences(tree))),
        "errors": longer(4, (text for tree in trees for text in raised_texts(tree))),
        "commits": commit_subjects(since),
    }


def check(show: int) -> int:
    """Print the share of flagged sentences for each kind of text, and return the exit status."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["prose"]
    status = 0
    for name, sentences in pools(settings["commits-since"]).items():
        find = subject_flags if name == "commits" else flags
        flagged = [(sentence, found) for sentence in sentences if (found := find(sentence))]
        share, limit = 100 * len(flagged) / max(1, len(sentences)), settings["limits"][name]
        for sentence, found in flagged[:show]:
            print(f"[{name}] {', '.join(found)}: {sentence[:200]}")
        print(f"{name:<11} {len(flagged):5} of {len(sentences):5} sentences flagged: {share:4.1f} in 100, limit {limit}")
        if share > limit and len(flagged) > 1:  # one sentence isn't a share
            print(f"{name}: rewrite some; --show 40 lists them")
            status = 1
        elif share < limit - 1:
            print(f"{name}: lower the limit in pyproject.toml, [tool.prose.limits]")
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print up to N flagged sentences of each pool")
    parser.add_argument("--subject", type=Path, metavar="FILE", help="check the first line of this commit message")
    arguments = parser.parse_args()
    if arguments.subject is None:
        return check(arguments.show)
    subject = arguments.subject.read_text().partition("\n")[0]
    found = subject_flags(subject)
    if found:
        print(f"commit subject: {', '.join(found)}, got {subject!r}; example: outlets: Fix the retry after a 429")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
