"""Editor that adds values to a metric's list parameters in a configuration file.

For example, ``- code_ungrounded_urls`` becomes ``- code_ungrounded_urls: {allowed: [docs.acme.com]}``. Comments, quotes, and line
endings are preserved, because text is inserted at positions from the YAML parser. The new text is then parsed to check that no other
data changed.
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
    """Values to add to a metric's list parameter."""

    metric: str
    parameter: str
    values: Sequence[str]
    entries: Sequence[KeyPath] = ()
    """Paths of the metric's entries in the file. If empty, the metric becomes a new entry of ``metrics``."""

    def __str__(self) -> str:
        return f"{self.metric}: {{{self.parameter}: {_flow(self.values)}}}"


def add_to_file(file: Path, additions: Sequence[Addition], check: Callable[[Path], None]) -> None:
    """Add values to a configuration file, which is created if missing. The file is replaced only if no other data changes and
    ``check`` accepts the new file. Raise a ConfigError if an entry can't be edited or the file can't be written.
    """
    file = Path(os.path.realpath(file))  # a link stays a link
    draft = ""
    try:
        old_text = file.read_bytes().decode("utf-8") if file.exists() else ""
        new_text = with_additions(old_text, str(file), additions)
        handle, draft = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".yaml", dir=file.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(new_text.encode("utf-8"))
            os.fchmod(stream.fileno(), stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o644)
            stream.flush()
            os.fsync(stream.fileno())
        check(Path(draft))
        Path(draft).replace(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: can't be edited: {getattr(error, 'strerror', None) or error}") from None
    except ConfigError as error:
        raise ConfigError(str(error).replace(draft, str(file)) if draft else str(error)) from None
    finally:
        if draft:
            with suppress(FileNotFoundError):
                Path(draft).unlink()


def with_additions(text: str, origin: str, additions: Sequence[Addition]) -> str:
    """Return a configuration's text with the additions. Raise ConfigError if an entry can't be edited, such as a YAML alias."""
    for addition in additions:
        old_data = yaml.load(text, origin, os.environ)[0]
        try:
            new_text = _Edit(text).add(addition)
            is_right = yaml.load(new_text, origin, os.environ)[0] == _expected_data(old_data, addition)
        except (ConfigError, LookupError, TypeError, ValueError, pyyaml.YAMLError):
            is_right = False
        if not is_right:
            raise ConfigError(f"{origin}: {addition.metric} can't be edited here. Add this setting by hand: {addition}")
        text = new_text
    return text


def _expected_data(old_data: Any, addition: Addition) -> Any:
    data = copy.deepcopy(old_data) if old_data is not None else {}
    if not addition.entries:
        data["metrics"] = [*(data.get("metrics") or ()), {addition.metric: {addition.parameter: [*addition.values]}}]
    for *list_path, index in addition.entries:
        entries = data
        for key in list_path:
            entries = entries[key]
        entry = entries[index]  # "code_u", {code_u: null, policy: gate} or {code_u: {allowed: [a.com]}}
        if isinstance(entry, str):
            entry = {entry: None}
        metric = next(key for key in entry if key not in BESIDE_A_METRIC)
        params = dict(entry[metric] or {})
        params[addition.parameter] = [*(params.get(addition.parameter) or ()), *addition.values]
        entries[index] = {**entry, metric: params}
    return data


class _Edit:
    """One addition to a YAML text. Insertion positions refer to the old text, so insertions are applied from the end to the beginning."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._insertions: list[tuple[int, int, str]] = []  # start and end of the replaced text, and the new text

    def add(self, addition: Addition) -> str:
        root = yaml.compose(self._text)
        for path in addition.entries:
            entry: Any = root
            for key in path:
                entry = entry.value[key] if isinstance(key, int) else _value_of(entry, key)
            self._extend_entry(entry, addition)
        if not addition.entries:
            self._add_entry(root, f"{addition}")
        text = self._text
        for start, end, inserted in sorted(self._insertions, key=lambda insertion: insertion[:2], reverse=True):
            text = text[:start] + inserted + text[end:]
        return text

    def _extend_entry(self, entry: Any, addition: Addition) -> None:
        values = _flow(addition.values)
        new_params = f"{{{addition.parameter}: {values}}}"
        if isinstance(entry, pyyaml.ScalarNode):  # "- code_u"
            self._insert(entry.end_mark.index, f": {new_params}")
            return
        params = next(value for key, value in entry.value if key.value not in BESIDE_A_METRIC)
        if not isinstance(params, pyyaml.MappingNode):  # "- code_u:"
            self._fill(params, new_params)
            return
        old_values = _value_of(params, addition.parameter)
        if old_values is None:  # "- code_u: {other: 1}"
            self._append(params, f"{addition.parameter}: {values}")
        elif isinstance(old_values, pyyaml.SequenceNode):  # "- code_u: {allowed: [a.com]}"
            for value in addition.values:
                self._append(old_values, _scalar(value))
        else:  # "- code_u: {allowed: null}"
            self._fill(old_values, values)

    def _add_entry(self, root: Any, entry: str) -> None:
        section = f"metrics:{self._newline}  - {entry}"
        metrics = _value_of(root, "metrics")
        if root is None:
            self._insert(len(self._text), self._line(section, len(self._text)))
        elif metrics is None:
            self._append(root, f"metrics: [{{{entry}}}]" if root.flow_style else section)
        elif isinstance(metrics, pyyaml.SequenceNode):
            self._append(metrics, f"{{{entry}}}" if metrics.flow_style else entry)
        else:
            self._fill(metrics, f"[{{{entry}}}]")

    def _insert(self, position: int, inserted: str) -> None:
        """Schedule the insertion of a text at ``position``. Texts for the same position keep the order of the calls."""
        for index, (start, end, earlier) in enumerate(self._insertions):
            if start == end == position:
                self._insertions[index] = (position, position, earlier + inserted)
                return
        self._insertions.append((position, position, inserted))

    def _fill(self, node: pyyaml.Node, value: str) -> None:
        """Replace an empty YAML value (nothing, ``null``, or ``~``). If the value isn't empty, raise a TypeError."""
        if not isinstance(node, pyyaml.ScalarNode) or not node.tag.endswith(":null"):
            raise TypeError(f"must be empty, got {node.tag}")
        start, end = node.start_mark.index, node.end_mark.index
        has_space = self._text[start - 1 : start] in (" ", "")
        self._insertions.append((start, end, value if has_space else f" {value}"))

    def _append(self, node: Any, item: str) -> None:
        """Append an item to a YAML list or mapping. In block style, the item gets a separate line below the last value."""
        if node.flow_style:  # "[a, b]" or "{a: 1}"
            last = _last_of(node)
            position = node.start_mark.index + 1 if last is None else last.end_mark.index
            self._insert(position, item if last is None else f", {item}")
            return
        indent = " " * node.start_mark.column + ("- " if isinstance(node, pyyaml.SequenceNode) else "")
        last = node  # a block ends after the comments below it, so find the innermost last value
        while isinstance(last, pyyaml.CollectionNode) and not last.flow_style:
            last = _last_of(last)
        end: int = last.end_mark.index
        if self._text[end - 1 : end] != "\n":  # only block scalars include their line break; a comment can follow other values
            end = self._text.find("\n", end) + 1 or len(self._text)
        self._insert(end, self._line(indent + item, end))

    def _line(self, content: str, position: int) -> str:
        """Return ``content`` followed by a line break. If ``position`` isn't at the start of a line, also add a line break before it."""
        starts_line = position == 0 or self._text[position - 1] == "\n" or position in [start for start, *_ in self._insertions]
        return f"{'' if starts_line else self._newline}{content}{self._newline}"


def _value_of(node: Any, key: str) -> Any:
    return next((value for name, value in node.value if name.value == key), None) if node is not None else None


def _last_of(collection: Any) -> Any:
    last = collection.value[-1] if collection.value else None
    return last[1] if isinstance(last, tuple) else last  # a mapping has pairs of key and value


_PLAIN = re.compile(r"[A-Za-z][\w./-]*")


def _scalar(value: str) -> str:
    is_plain = _PLAIN.fullmatch(value) and yaml.load(value, "", {})[0] == value
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _flow(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_scalar, values))}]"
