"""Add entries to the parameters of metrics in a configuration file.

Everything else stays as written, with comments, quotes and line ends. Only insertions are made, at places that the YAML parser reports.
"""

from __future__ import annotations

import copy
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml as pyyaml

from ..core.errors import ConfigError
from . import yaml
from .metrics import BESIDE_A_METRIC
from .types import KeyPath


class Addition(NamedTuple):
    """Values to add to a list parameter of a metric."""

    metric: str
    parameter: str
    values: Sequence[str]
    entries: Sequence[KeyPath] = ()
    """Entries of the metric in the file. If there are none, a new one is added to ``metrics``."""

    def __str__(self) -> str:
        return f"{self.metric}: {{{self.parameter}: {_flow(self.values)}}}"


def add_to_file(file: Path, additions: Sequence[Addition], check: Callable[[Path], None]) -> None:
    """Write a configuration file with additions. The file is created if it doesn't exist. The file is replaced at once, and only
    if the new one has exactly the additions and ``check`` accepts it. Raises ConfigError if the file can't be edited or written,
    or ``check`` refuses the new one.
    """
    file = Path(os.path.realpath(file))  # a link stays a link
    new = ""
    try:
        text = file.read_bytes().decode("utf-8") if file.exists() else ""
        text_now = with_additions(text, str(file), additions)
        handle, new = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".yaml", dir=file.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(text_now.encode("utf-8"))
            os.fchmod(stream.fileno(), stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o644)
            stream.flush()
            os.fsync(stream.fileno())
        check(Path(new))
        Path(new).replace(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: can't be written: {getattr(error, 'strerror', None) or error}") from None
    except ConfigError as error:
        raise ConfigError(str(error).replace(new, str(file)) if new else str(error)) from None
    finally:
        if new:
            with suppress(FileNotFoundError):
                Path(new).unlink()


def with_additions(text: str, origin: str, additions: Sequence[Addition]) -> str:
    """Return the text of a configuration with additions. Raises ConfigError if a place, such as an alias, can't be edited."""
    for addition in additions:
        before = yaml.load(text, origin, os.environ)[0]
        try:
            now = _Edit(text).add(addition)
            is_right = yaml.load(now, origin, os.environ)[0] == _merged(before, addition)
        except (ConfigError, LookupError, TypeError, pyyaml.YAMLError):
            is_right = False
        if not is_right:
            raise ConfigError(f"{origin}: {addition.metric} can't be edited here; add it by hand: {addition}")
        text = now
    return text


def _merged(before: Any, addition: Addition) -> Any:
    data = copy.deepcopy(before) if before is not None else {}
    if not addition.entries:
        data["metrics"] = [*(data.get("metrics") or ()), {addition.metric: {addition.parameter: [*addition.values]}}]
    for *path, at in addition.entries:
        entries = data
        for key in path:
            entries = entries[key]
        entry = {entries[at]: None} if isinstance(entries[at], str) else entries[at]
        name = next(key for key in entry if key not in BESIDE_A_METRIC)
        params = dict(entry[name] or {})
        params[addition.parameter] = [*(params.get(addition.parameter) or ()), *addition.values]
        entries[at] = {**entry, name: params}
    return data


class _Edit:
    """Insertions into a YAML text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._insertions: list[tuple[int, int, str]] = []
        """Start and end of the replaced text, and the new text."""

    def add(self, addition: Addition) -> str:
        root = yaml.compose(self._text)
        for path in addition.entries:
            entry: Any = root
            for key in path:
                entry = entry.value[key] if isinstance(key, int) else _value_of(entry, key)
            self._extend(entry, addition)
        if not addition.entries:
            self._add_entry(root, f"{addition}")
        text = self._text
        for start, end, new in sorted(self._insertions, key=lambda one: one[:2], reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _extend(self, entry: Any, addition: Addition) -> None:
        values = _flow(addition.values)
        params = f"{{{addition.parameter}: {values}}}"
        if isinstance(entry, pyyaml.ScalarNode):
            self._replace(entry.end_mark.index, entry.end_mark.index, f": {params}")
            return
        given = next(value for key, value in entry.value if key.value not in BESIDE_A_METRIC)
        if not isinstance(given, pyyaml.MappingNode):
            self._fill(given, params)
            return
        now = _value_of(given, addition.parameter)
        if now is None:
            self._append(given, f"{addition.parameter}: {values}")
        elif isinstance(now, pyyaml.SequenceNode):
            for value in addition.values:
                self._append(now, _scalar(value))
        else:
            self._fill(now, values)

    def _add_entry(self, root: Any, entry: str) -> None:
        lines = f"metrics:{self._newline}  - {entry}"
        metrics = _value_of(root, "metrics")
        if root is None:
            self._replace(len(self._text), len(self._text), self._line(lines, len(self._text)))
        elif metrics is None:
            self._append(root, f"metrics: [{{{entry}}}]" if root.flow_style else lines)
        elif isinstance(metrics, pyyaml.SequenceNode):
            self._append(metrics, f"{{{entry}}}" if metrics.flow_style else entry)
        else:
            self._fill(metrics, f"[{{{entry}}}]")

    def _replace(self, start: int, end: int, new: str) -> None:
        for at, (begin, over, old) in enumerate(self._insertions):
            if begin == over == start == end:  # several insertions at one place stay in order
                self._insertions[at] = (start, end, old + new)
                return
        self._insertions.append((start, end, new))

    def _fill(self, node: pyyaml.Node, new: str) -> None:
        """Replace an empty value: nothing, ``null`` or ``~``."""
        if not isinstance(node, pyyaml.ScalarNode) or not node.tag.endswith(":null"):
            raise TypeError(f"must be empty, got {node.tag}")
        start, end = node.start_mark.index, node.end_mark.index
        self._replace(start, end, new if self._text[start - 1 : start] in (" ", "") else f" {new}")

    def _append(self, node: Any, item: str) -> None:
        if node.flow_style:
            last = _last_of(node)
            at = node.start_mark.index + 1 if last is None else last.end_mark.index
            self._replace(at, at, item if last is None else f", {item}")
            return
        indent = " " * node.start_mark.column + ("- " if isinstance(node, pyyaml.SequenceNode) else "")
        last = node
        while (
            isinstance(last, pyyaml.CollectionNode) and not last.flow_style
        ):  # the end of a block includes the comments after it
            last = _last_of(last)
        end: int = last.end_mark.index
        if self._text[end - 1 : end] != "\n":  # a comment may follow on the line
            end = len(self._text) if (newline := self._text.find("\n", end)) < 0 else newline + 1
        self._replace(end, end, self._line(indent + item, end))

    def _line(self, line: str, at: int) -> str:
        is_new = self._text[:at].endswith("\n") or not at or any(place == at for place, _, _ in self._insertions)
        return f"{'' if is_new else self._newline}{line}{self._newline}"


def _value_of(node: Any, key: str) -> Any:
    return next((value for name, value in node.value if name.value == key), None) if node is not None else None


def _last_of(node: Any) -> Any:
    last = node.value[-1] if node.value else None
    return last[1] if isinstance(last, tuple) else last


_PLAIN = re.compile(r"[A-Za-z][\w./-]*")


def _scalar(value: str) -> str:
    """Return a text as it stands in YAML, quoted if necessary."""
    is_plain = _PLAIN.fullmatch(value) and yaml.load(value, "", {})[0] == value
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _flow(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_scalar, values))}]"
