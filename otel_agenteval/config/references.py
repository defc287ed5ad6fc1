"""Section ``references``: what turns are compared with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from ..core.templates import places
from .section import NO_ENTRIES, Section
from .selector import PatternsOrNone, Selector
from .types import Before, FilePath, Kind, Switch


def _accepted(value: Any) -> Any:
    """A list of attributes, whose references are named by their last parts, or ``{attribute: reference}``."""
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) and item for item in value):
        return {item: re.split(r"[.:]", item)[-1] for item in value}
    if isinstance(value, Mapping) and all(isinstance(item, str) and item for pair in value.items() for item in pair):
        return dict(value)
    raise ValueError("it must be a list of span attributes (baggage:key for baggage), or a mapping of them to reference names")


def _templates(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and all(isinstance(item, str) and _is_template(item) for item in items):
        return tuple(items)
    raise ValueError("it must be a template or a list of them, with {documents} and other text in it, and each place once")


def _is_template(text: str) -> bool:
    found = places(text)
    return "documents" in found and len(set(found)) == len(found) and text.strip() != "{documents}"


def _ids(value: Any) -> Any:
    if isinstance(value, Mapping) and all(_is_mapped(found, wanted) for found, wanted in value.items()):
        return dict(value)
    raise ValueError("it must be a mapping of retrieved ids to those of references, with * at most once on each side")


def _is_mapped(found: Any, wanted: Any) -> bool:
    return isinstance(found, str) and isinstance(wanted, str) and wanted.count("*") <= found.count("*") <= 1


class GivenReferences(Section):
    """References for the turns that a selector matches: ``{when: {agent: travel}, expected_tools: [search, book]}``."""

    when: Selector | None = None
    """The turns that they apply to; all by default."""
    references: dict[str, Any]
    """By name, as the metrics call them."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError("it must be a mapping of references, with or without when")  # noqa: TRY004 - pydantic reads it
        if "references" in value:
            return dict(value)
        return {
            "references": {key: item for key, item in value.items() if key != "when"},
            **{k: value[k] for k in ("when",) if k in value},
        }

    def to_dict(self) -> dict[str, Any]:
        """The references with their selector beside them."""
        return {**self.references, **({} if self.when is None else {"when": self.when.to_dict()})}


class ReferenceOptions(Section):
    """What turns are compared with, besides what ``expect()`` gives in code, which takes precedence."""

    accept_from: Annotated[dict[str, str], Before(_accepted), Kind("list, or mapping")] = NO_ENTRIES
    """Attributes of the root span (``baggage:key`` for baggage) from which references are accepted: a list, or ``{attribute: reference}``. All others are ignored."""
    given: Annotated[tuple[GivenReferences, ...], Kind("list, see [reference data](../concepts/reference-data.md)")] = ()
    """References for agents, services or routes; the first that matches applies."""
    retrievers: PatternsOrNone = ()
    """Tools that look things up (``*`` for any characters): their results are the turn's context where no retrieval span gives one."""
    prompts: Annotated[tuple[str, ...], Before(_templates), Kind("text or list of texts")] = ()
    """Templates of prompts that hold documents, with `{documents}` and mostly `{question}` in them: the documents become the turn's context where no retrieval span gives one, the question its input."""
    document_ids: Annotated[dict[str, str], Before(_ids), Kind("mapping of ids")] = NO_ENTRIES
    """Ids of retrieved documents and what references call them; `*` stands for the same text on both sides."""
    trim: Switch = False
    """Whether white space at the end of an answer and of its ground truth counts for nothing."""
    dataset: FilePath | None = None
    """JSON lines, CSV or Parquet file of cases: ``case_id`` or ``input``, and references in the other columns."""
