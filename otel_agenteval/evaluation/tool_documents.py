"""Documents in the results of tools, and their ids."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..core import jsonio
from ..core.fact_forms import IDS, TEXTS
from ..core.turn import ToolCall
from .datasets import parsed_value

_LISTS = ("documents", "results", "matches", "chunks", "hits", "items", "data")
_MOST_TEXT, _MOST_IDS = 1_000_000, 200
_HEX = re.compile(r"[0-9a-f-]{16,}", re.IGNORECASE)
_TELLING = re.compile(r"(?=.*[^\W\d_])(?=.*[^a-z]).|\d{6}", re.IGNORECASE | re.DOTALL)
"""Matches an id that no ordinary word or number of a text looks like."""


def documents_in(result: Any) -> Iterator[dict[str, Any]]:
    """Yield the documents in a tool's result: the entries of a list, or of the list in an object, or the whole result."""
    for item in entries_in(result):
        if isinstance(item, Mapping):
            text = next((item[key] for key in TEXTS if isinstance(item.get(key), str)), None)
            score = item.get("score")
            yield {
                "id": _id_of(item),
                "content": jsonio.text_of(item) if text is None else text,
                "score": float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None,
            }
        elif item not in (None, ""):
            yield {"content": jsonio.text_of(item)}


def entries_in(result: Any) -> Sequence[Any]:
    value = parsed_value(result)
    if isinstance(value, Mapping):
        value = next((value[key] for key in _LISTS if isinstance(value.get(key), (list, tuple))), [value])
    return value if isinstance(value, (list, tuple)) else [value]


def _id_of(item: Mapping[str, Any]) -> str | None:
    found = (item.get(key) for key in IDS)
    return next((str(name) for name in found if isinstance(name, (str, int)) and not isinstance(name, bool)), None)


def ids_in(calls: Sequence[ToolCall], relevant: Collection[Any]) -> dict[str, str]:
    """Return the ids of the documents that tools found, in order, each with its tool.

    These are the ids of JSON documents with a text or a score. Otherwise, these are the words of a result that have the form
    of a relevant id: ``kb-31`` has the form of ``kb-7``.
    """
    form = _form_of(relevant)
    found: dict[str, str] = {}
    for call in calls:
        if call.error is None and call.result is not None:
            items = [item for item in entries_in(call.result) if isinstance(item, Mapping)]
            known = [_id_of(item) for item in items if "score" in item or any(isinstance(item.get(key), str) for key in TEXTS)]
            ids = [name for name in known if name is not None]
            if not ids and form is not None:
                ids = form.findall(jsonio.text_of(call.result)[:_MOST_TEXT])
            for name in ids:
                found.setdefault(name, call.name)
    return found


def _form_of(relevant: Collection[Any]) -> re.Pattern[str] | None:
    """Return a pattern of words with the form of the ids, with any digits."""
    names = [relevant] if isinstance(relevant, str) else [str(name) for name in relevant]
    forms = {_form(name) for name in names[:_MOST_IDS] if _TELLING.match(name)}
    return (
        re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(forms, key=len, reverse=True))})(?![\w-])", re.IGNORECASE) if forms else None
    )


def _form(name: str) -> str:
    if _HEX.fullmatch(name):
        return re.sub(r"[0-9a-f]+", lambda run: f"[0-9a-f]{{{len(run[0])}}}", name, flags=re.IGNORECASE)
    return "".join(r"\d+" if part.isdigit() else re.escape(part) for part in re.split(r"(\d+)", name))
