"""Evaluate the labeled detector cases without one of the detectors' lists. ``scripts/detectors.py --without`` calls this script.

    python scripts/ablation.py                   prints each list, its number of texts, and the detectors that use it
    python scripts/ablation.py -                 prints the cases on which detectors fire without each list

The second form reads ``[[LIST, HALF, [DETECTOR, …]], …]`` as JSON. For each entry, it prints a JSON array of case ids, or null if
the detectors fail. LIST is one list, or several lists separated by spaces. Each entry runs in a fork of this process.

A list is one of these:

- a constant of a module of ``otel_agenteval.detectors`` with more than 20 texts, alternatives or entries
- an entry of a tuple of languages or rules, as ``module.NAME[entry]``
- a file below ``data``, as ``data/topic/language.txt``, or a section of a topic's files, as ``data/topic[section]``

A constant is emptied while its module is imported, so that patterns built from the constant lack its texts too. Redaction and
token formats can't be switched off, because recordings and vendor documentation define what they must find.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import pkgutil
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from forks import in_fork

ROOM = "otel_agenteval.detectors"
DATA = Path(importlib.util.find_spec("otel_agenteval").origin).parent / "detectors" / "data"  # type: ignore[union-attr, arg-type]
NOTHING = "(?!)"
"""Pattern and word that match nothing. Lists with non-ASCII characters get U+FFFF instead."""
LEFT_OUT = (f"{ROOM}.redaction", f"{ROOM}.tokens")
MOST = 20
"""A constant with more texts than this is a list."""
USED_BY = {
    "injection": ("injection_markers",),
    "injection_words": ("injection_markers",),
    "refusal": ("refusal",),
    "refusal_words": ("refusal",),
    "numbers": ("ungrounded_numbers", "ungrounded_urls"),
    "prompt_leak": ("system_prompt_leak",),
    "prompt_sentences": ("system_prompt_leak",),
    "urls": ("ungrounded_urls",),
    "link_grounding": ("ungrounded_urls",),
    "identity_numbers": ("pii_leakage",),
    "phones": ("pii_leakage",),
    "personal": ("pii_leakage",),
    "personal_marks": ("pii_leakage",),
    "credentials": ("secret_leak",),
    "passwords": ("secret_leak",),
}
"""Detectors that use a module or a folder of ``data``. Other modules and folders are used by all detectors."""


def texts_in(value: Any) -> int:
    """Return the number of texts in a list, or of alternatives in a pattern."""
    while hasattr(value, "pattern"):  # a lazy pattern contains a compiled pattern, which contains the text
        value = value.pattern
    if isinstance(value, str | bytes):
        return value.count("|" if isinstance(value, str) else b"|") + 1  # type: ignore[arg-type]
    return len(value) if isinstance(value, tuple | list | set | frozenset | dict) else 0


def entries_of(value: Any) -> dict[str, Any]:
    """Return the named entries of a table of languages or rules, or {} for other values."""
    if type(value) is not tuple or texts_in(value) < 2:
        return {}
    names = [getattr(entry, "name", None) or getattr(entry, "__name__", None) for entry in value]
    return {} if None in names else dict(zip(map(str, names), value, strict=True))


def empty(value: Any) -> Any:
    """Return an empty value of the same type."""
    if hasattr(value, "pattern"):
        return re.compile(NOTHING.encode() if isinstance(getattr(value.pattern, "pattern", value.pattern), bytes) else NOTHING)
    return NOTHING if isinstance(value, str) else type(value)()


class Switch:
    """Import hook that passes each constant of the detectors' modules through :meth:`constant`."""

    def __init__(self, off: Collection[str] = ()) -> None:
        self.off = off
        self.found: dict[str, int] = {}
        """Number of texts by list."""
        self._seen: set[int] = set()
        sys.meta_path.insert(0, self)  # type: ignore[arg-type]

        loader = importlib.import_module(f"{ROOM}.texts")
        self._read = loader.sections
        vars(loader)["sections"] = self.sections

    def sections(self, name: str) -> dict[str, list[str]]:
        """Return the sections of a file in ``data``, without the sections that are switched off."""
        file, topic = f"data/{name}", f"data/{name.partition('/')[0]}"
        found: dict[str, list[str]] = self._read(name)
        return {
            section: [NOTHING if all(map(str.isascii, entries)) else "\uffff"]
            if file in self.off or f"{topic}[{section}]" in self.off
            else entries
            for section, entries in found.items()
        }

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a detector module, with a loader that uses this hook."""
        if not name.startswith(f"{ROOM}.") or name.startswith(LEFT_OUT):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
            spec.loader.switch = self
        return spec

    def constant(self, value: Any, name: str) -> Any:
        """Return a constant's value, or an empty value if the constant is switched off."""
        if name in self.off:
            return empty(value)
        entries = entries_of(value)
        left_out = [id(content) for entry, content in entries.items() if f"{name}[{entry}]" in self.off]
        if left_out:
            return tuple(one for one in value if id(one) not in left_out)
        if not self._is_copy(value, entries):
            self.found |= {f"{name}[{entry}]": 1 for entry in entries}
            if texts_in(value) > MOST:
                self.found[name] = texts_in(value)
        return value

    def _is_copy(self, value: Any, entries: dict[str, Any]) -> bool:
        """Return True for a table that consists of entries of other tables."""
        seen = {id(entry) for entry in entries.values()}
        copy = bool(seen) and seen <= self._seen
        self._seen |= seen
        return copy


class _Loader(SourceFileLoader):
    switch: Switch

    def get_code(self, fullname: str) -> CodeType:
        return _code_of(fullname, self.path)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["_constant"] = self.switch.constant
        super().exec_module(module)


@cache
def _code_of(module: str, path: str) -> CodeType:
    tree = ast.parse(Path(path).read_bytes())
    for line in tree.body:
        target = line.targets[0] if isinstance(line, ast.Assign) else line.target if isinstance(line, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and isinstance(line, ast.Assign | ast.AnnAssign) and line.value is not None:
            name = f"{module.removeprefix(ROOM + '.')}.{target.id}"
            called = ast.Call(ast.Name("_constant", ast.Load()), [line.value, ast.Constant(name)], [])
            line.value = ast.copy_location(called, line.value)
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def lists() -> dict[str, int]:
    """Return the number of texts of each list that can be switched off."""
    switch = Switch()
    room = importlib.import_module(ROOM)
    for module in pkgutil.walk_packages(room.__path__, f"{ROOM}."):
        importlib.import_module(module.name)
    for path in DATA.rglob("*.txt"):
        name = path.relative_to(DATA).as_posix()
        sections = switch.sections(name)
        if "/" in name:
            switch.found[f"data/{name}"] = sum(map(len, sections.values()))
        for section, entries in sections.items():
            topic = f"data/{name.partition('/')[0]}[{section}]"
            switch.found[topic] = switch.found.get(topic, 0) + len(entries)
    return dict(sorted(switch.found.items()))


def detectors_of(name: str) -> Sequence[str]:
    """Return the detectors that use a list, or ``("all",)``."""
    return USED_BY.get(re.split(r"[.\[/]", name.removeprefix("data/"))[0], ("all",))


def fired(half: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the ids of the cases on which detectors fire."""
    detectors = importlib.import_module("detectors")
    for name in names:
        yield from (outcome.case.id for outcome in detectors.outcomes(name, half) if outcome.fired)


def _fired_without(off: str, half: str, names: Sequence[str]) -> list[str] | None:
    """Return the ids of the cases on which detectors fire without some lists, or None if the detectors fail."""

    def work() -> list[str]:
        Switch(off.split())
        return list(fired(half, names))

    try:
        return in_fork(work, "otel_agenteval", "detectors", "whole_turns")
    except RuntimeError:
        return None


def main() -> int:
    if len(sys.argv) < 2:
        print("\n".join(f"{name}  {count}  {' '.join(detectors_of(name))}" for name, count in lists().items()))
    else:
        tasks = json.load(sys.stdin)
        Switch()
        for name in {name for _, _, names in tasks for name in names}:
            list(fired("test", [name]))
        for off, half, names in tasks:
            print(json.dumps(_fired_without(off, half, names)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
