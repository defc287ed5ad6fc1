"""Section ``references``: reference data for turns, such as expected answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from ..core.errors import ConfigError
from ..core.fact_forms import READERS
from ..core.forms import places
from .metrics import PatternsOrNone, Selector
from .section import NO_ENTRIES, Section
from .types import Before, FilePath, Kind, Switch, texts


def _accepted(value: Any) -> Any:
    """Parse ``{attribute: reference}`` or a list of attributes. In a list, ``app.case_id`` sets the reference ``case_id``."""
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) and item for item in value):
        return {item: re.split(r"[.:]", item)[-1] for item in value}
    if isinstance(value, Mapping) and all(isinstance(item, str) and item for pair in value.items() for item in pair):
        return dict(value)
    raise ValueError("must be a list of span attributes, or a mapping of attributes to references. Example: [baggage:case_id]")


def _is_template(text: str) -> bool:
    found = places(text)
    return "documents" in found and len(set(found)) == len(found) and text.strip() != "{documents}"


def _ids(value: Any) -> Any:
    if isinstance(value, Mapping) and all(
        isinstance(found, str) and isinstance(wanted, str) and wanted.count("*") <= found.count("*") <= 1
        for found, wanted in value.items()
    ):
        return dict(value)
    raise ValueError('must be a mapping of retrieved IDs to reference IDs, with at most one * per side. Example: {"kb/*": "*"}')


_GIVEN = "must be a mapping of reference names to values. Example: {when: {agent: travel}, expected_tools: [search]}"


def _facts(value: Any) -> Any:
    """Check references that are turn fields, such as ``relevant_ids``. Metrics check all other references."""
    for name in READERS.keys() & value.keys() if isinstance(value, Mapping) else ():
        try:
            READERS[name](value[name], name)
        except ConfigError as error:
            raise ValueError(str(error)) from None
    return value


class GivenReferences(Section):
    """Reference data for some turns: ``{when: {agent: travel}, expected_tools: [search, book]}``."""

    when: Selector | None = None
    """Turns to which the reference data applies (default: all)."""
    references: Annotated[dict[str, Any], Before(_facts)]
    """Reference values by name, such as ``expected_tools``."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(_GIVEN)  # noqa: TRY004 - pydantic reads it
        if "references" in value:
            return dict(value)
        references = {key: item for key, item in value.items() if key != "when"}
        return {"references": references, **({"when": value["when"]} if "when" in value else {})}

    def to_dict(self) -> dict[str, Any]:
        return {**self.references, **({} if self.when is None else {"when": self.when.to_dict()})}


Paths = Annotated[
    tuple[str, ...],
    Before(texts("must be a path or a list of paths. Example: messages[-1].content")),
    Kind("path or list of paths"),
]
_templates = texts(
    "must be one or more templates, each with {documents} and other text, and with each placeholder only once", _is_template
)


class ResponseOptions(Section):
    """Paths of values in JSON answers: ``{output: "messages[-1].content", context: sources}``. Answers that aren't JSON objects stay unchanged."""

    output: Paths = ()
    """Path of the answer's text in a JSON object. If you list several paths, the first path with a non-null value is used."""
    context: Paths = ()
    """Path of the retrieved documents in a JSON answer, for turns whose spans contain no documents."""
    query: Paths = ()
    """Path of the search query in a JSON answer. If the turn has no input, the query becomes the input."""
    tool_calls: Paths = ()
    """Path of the tool calls in a JSON answer, for turns whose spans contain no tool calls. A tool call is a name, or an object with ``name``, ``arguments``, and ``output``."""


class ReferenceOptions(Section):
    """Reference data for turns. References from ``expect()`` in code take precedence."""

    accept_from: Annotated[dict[str, str], Before(_accepted), Kind("list or mapping")] = NO_ENTRIES
    """Attributes of the root span to read as reference data: a list, or a mapping ``{attribute: reference}``. For a baggage entry,
    write ``baggage:KEY``. Other attributes are ignored."""
    given: Annotated[tuple[GivenReferences, ...], Kind("list, see [reference data](../concepts/reference-data.md)")] = ()
    """Reference data by agent, service, or attribute. If several entries match, the first entry that contains a reference sets its
    value."""
    retrievers: PatternsOrNone = ()
    """Tools whose results are the turn's context if the spans contain no retrieved documents. ``*`` matches any characters."""
    prompts: Annotated[tuple[str, ...], Before(_templates), Kind("string or list of strings")] = ()
    """Your prompt templates, with `{documents}` and usually `{question}`. If a turn's spans contain no retrieved documents, the texts that replaced these placeholders in a prompt become the turn's context and input."""
    response: ResponseOptions = ResponseOptions()
    """Paths of the text, documents, question, and tool calls in JSON answers. With ``preset: trusys``, the text is in ``output``, ``response``, or ``answer`` by default, and the other values are in ``context``, ``query``, and ``tool_calls``, with or without the prefix ``trusys.``."""
    document_ids: Annotated[dict[str, str], Before(_ids), Kind("mapping of IDs")] = NO_ENTRIES
    """Mapping of retrieved document IDs to reference IDs. `*` matches any text. A `*` in the reference ID is replaced with this text."""
    trim: Switch = False
    """Ignore trailing white space in an answer and in its ground truth."""
    dataset: FilePath | None = None
    """File of cases (JSON, YAML, CSV, or Parquet). Each case contains a ``case_id`` or ``input`` that identifies its turns, and also reference data or ``metrics``."""
