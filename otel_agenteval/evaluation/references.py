"""Attach references to a turn. References, such as expected answers, are values that metrics compare with the turn.

References come from four sources. If several sources define the same reference, the first source in this list wins:

1. ``expect()`` around the agent run
2. span attributes and baggage that ``references.accept_from`` accepts
3. ``references.given`` for agents, services, or routes
4. a dataset, by case ID or input

A span's sender controls attributes and baggage, so these are used only if ``references.accept_from`` lists their names.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

from ..config.metrics import Selector
from ..config.references import ResponseOptions
from ..config.root import Config
from ..core import jsonio
from ..core.errors import ConfigError, MetricError, likeness, nearest
from ..core.fact_forms import IDS, READERS, TEXTS
from ..core.forms import anything, filled_in
from ..core.turn import Document, Retrieval, ToolCall, Turn
from ..core.wellformed import plain, written
from ..metrics.bound_metric import BoundMetric
from ..metrics.names import presets
from ..metrics.registry import catalog
from .datasets import EXPECTED, PLACEHOLDER, Case, cases_in, parsed_value

_log = logging.getLogger("otel_agenteval")
BAGGAGE = "baggage:"
_CASE = "case_id"
_OF_CASES = ("case_id", "input", "metrics", "assert", "value", "turns", "user", "max_turns")
_FACTS = (
    "ground_truth", "relevant_ids", "retrieved_ids", "context", "history", "session", "workflow", "agents", "interactions", "conflicts", "handoffs", "metadata",
    "privacy", "logprobs", "attachments",
)  # fmt: skip
"""Turn fields that only metrics use. References can set these fields, because spans rarely contain them."""
_OF_PARTS = ("session", "workflow", "agents", "metadata", "privacy")
"""Turn fields whose parts references can set individually, such as ``metadata.consent``."""


class ReferenceSources:
    """Configured sources of references.

    The constructor raises a ConfigError with file and line if the dataset can't be read, or if a row isn't a case.
    """

    def __init__(self, config: Config) -> None:
        options = config.references
        self._accepted = [(source, name) for source, name in options.accept_from.items() if not source.startswith(BAGGAGE)]
        self.baggage = {
            source.removeprefix(BAGGAGE): name for source, name in options.accept_from.items() if source.startswith(BAGGAGE)
        }
        """Maps each accepted baggage key to the name of the reference that it sets."""
        preset = presets()[config.preset].response if config.preset is not None else {}
        self._response = options.response if preset == {} or "response" in options.options_given else ResponseOptions(**preset)
        self._absent: dict[str, bool] = {}
        """Configured values that a JSON answer lacked. Maps the value's name to True if a warning about this value was logged."""
        self._retrievers = options.retrievers
        self._prompts = options.prompts
        self._ids = list(options.document_ids.items())
        self._trims = options.trim
        self._given = [(entry.when, entry.references) for entry in options.given]
        self._by_case: dict[str, Case] = {}
        self._by_input: dict[str, Case] = {}
        self.columns: set[str] = set()
        if options.dataset is not None:
            self._read(options.dataset, config.where(("references", "dataset")))
        self._is_configured = bool(self._accepted or self._given or self._by_case or self._by_input)

    def _read(self, path: str, where: str) -> None:
        ambiguous: set[str] = set()
        for case in cases_in(path, where):
            self.columns.update(case.references.keys() & case.columns)
            if case.case_id is not None:
                case.references[_CASE] = case.case_id
                self._by_case[case.case_id] = case
            if case.input is not None:
                text = _normal(jsonio.text_of(case.input))
                same = self._by_input.setdefault(text, case)
                if (same.references, same.metrics) != (case.references, case.metrics):
                    ambiguous.add(text)
        for text in ambiguous:
            del self._by_input[text]

    @property
    def cases(self) -> Iterator[Case]:
        """The dataset's cases with an ID or a unique input. A case can occur twice, once for its ID and once for its input."""
        return chain(self._by_case.values(), self._by_input.values())

    def case_of(self, turn: Turn) -> Case | None:
        """Return the dataset case that a turn with attached references belongs to, or None."""
        return self._case(turn.references, turn.input)

    def _case(self, found: Mapping[str, Any], asked: str | None) -> Case | None:
        case = self._by_case.get(str(found[_CASE])) if _CASE in found else None
        if case is None and self._by_input and asked is not None:
            case = self._by_input.get(_normal(asked))
        return case

    def attach(self, turn: Turn, attributes: Mapping[str, Any]) -> dict[str, str]:
        """Attach references to a turn before its evaluation. Return the source of each reference."""
        sources: dict[str, str] = {}
        for absent in _unwrap_response(turn, self._response, sources) if self._response.options_given and turn.output else ():
            self._absent.setdefault(absent, False)
        question, documents = _parts_of_prompt(turn, self._prompts) if self._prompts and not turn.context else (None, [])
        if question is not None:
            turn.input = question
        baggage = turn.references.pop(BAGGAGE, None) or {}
        found: dict[str, Any] = written(turn.references)
        sources |= dict.fromkeys(found, "expect")
        others = self._sources(turn, attributes, baggage, found) if self._is_configured or baggage else ()
        for source, references in others:
            for name, value in references.items():
                if name not in found and value is not None:
                    found[name], sources[name] = value, source
        if found:
            turn.references = found
            _set_facts(turn, found, sources)
        if self._retrievers and not turn.context:
            self._add_retrieved(turn, sources)
        if documents and not turn.context:
            _add_documents(turn, [Retrieval(question, documents)])
            sources["context"] = "prompt"
        if turn.relevant_ids and turn.retrieved_ids is None:
            self._add_retrieved_ids(turn, sources)
        self._unify(turn)
        return sources

    def _unify(self, turn: Turn) -> None:
        """If configured, map retrieved document IDs to reference IDs, and trim the ground truth and output."""
        if self._ids and turn.retrieved_ids:
            turn.retrieved_ids = list(dict.fromkeys(_mapped_id(found, self._ids) for found in turn.retrieved_ids))
        if self._trims and turn.ground_truth:
            turn.ground_truth, turn.output = _trimmed(turn.ground_truth), _trimmed(turn.output)

    def log_absent(self) -> None:
        """Log a warning once for each configured value that JSON answers lack. The agent's thread doesn't call this method."""
        for part in [part for part, is_logged in self._absent.items() if not is_logged]:
            self._absent[part] = True
            paths = " or ".join(getattr(self._response, part))
            _log.warning("a JSON answer has no %s. Metrics that need the %s are skipped", paths, part.replace("_", " "))

    def _sources(
        self, turn: Turn, attributes: Mapping[str, Any], baggage: Mapping[str, Any], found: Mapping[str, Any]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield (source, references) for each source except ``expect()``. ``found`` can contain the case ID."""
        for attribute, name in self._accepted:
            if attribute in attributes:
                yield f"span attribute {attribute}", {name: parsed_value(attributes[attribute])}
        for key, value in baggage.items():
            yield f"baggage {key}", {self.baggage[key]: parsed_value(value)}
        for when, given in self._given:
            if applies(when, turn):
                yield "config", given
        if (case := self._case(found, turn.input)) is not None:
            yield "dataset", case.references

    def _add_retrieved_ids(self, turn: Turn, sources: dict[str, str]) -> None:
        """Set the turn's retrieved IDs from the results of retrieval tools. By default, all tools count as retrieval tools."""
        calls = [call for call in turn.tool_calls or () if not self._retrievers or _matches(call.name, self._retrievers)]
        found = ids_in(calls, turn.relevant_ids or ())
        if found:
            turn.retrieved_ids = list(found)
            sources["retrieved_ids"] = f"tool {', '.join(dict.fromkeys(found.values()))}"
        elif self._retrievers and any(call.error is None and not entries_in(call.result) for call in calls):
            turn.retrieved_ids = []  # the search found nothing

    def _add_retrieved(self, turn: Turn, sources: dict[str, str]) -> None:
        found: list[Retrieval] = []
        tools: dict[str, None] = {}
        for call in turn.tool_calls or ():
            if call.error is None and call.result not in (None, "") and _matches(call.name, self._retrievers):
                documents = [Document(**facts) for facts in documents_in(call.result)]
                if documents:
                    found.append(Retrieval(jsonio.text_of(call.arguments) if call.arguments else None, documents))
                    tools[call.name] = None
        if found:
            _add_documents(turn, found)
            sources["context"] = f"tool {', '.join(tools)}"


def _set_facts(turn: Turn, found: Mapping[str, Any], sources: dict[str, str]) -> None:
    """Set the turn's missing fields from references. If a value is invalid, replace its entry in ``sources`` with an error message."""
    for dotted, value in found.items():
        name, _, part = dotted.partition(".")
        known = getattr(turn, name) if name in _FACTS else None
        if part:
            is_wanted = name in _OF_PARTS and part not in (known or ())
        else:
            # empty retrieved ids mean that the search found nothing. Values from expect() may be set already, but unparsed
            is_wanted = name in _FACTS and (known is None or known == value or not (known or name == "retrieved_ids"))
        if not is_wanted:
            continue
        try:
            given = READERS.get(name, anything)({**(known or {}), part: value} if part else value, name)
            fact = getattr(Turn.from_dict({name: given}), name)
        except ConfigError as error:
            sources[dotted] = INVALID + str(error).removeprefix("turn.")
            fact = None
        if fact not in (None, "", [], {}) or known == value:
            setattr(turn, name, fact)
            if name == "metadata" and _attach_media(turn, fact or {}):
                sources["attachments"] = sources[dotted]


def _attach_media(turn: Turn, metadata: Mapping[str, Any]) -> bool:
    """Attach the media files whose paths are in a case's metadata. Return True if there are such paths."""
    if not any(key.endswith("_path") for key in metadata):
        return False
    from ..metrics.lib.media import attachments_at  # imports the media package

    found = list(attachments_at(metadata))
    turn.attachments = [*turn.attachments, *(one for one in found if one not in turn.attachments)]
    return bool(found)


def _add_documents(turn: Turn, found: Sequence[Retrieval]) -> None:
    documents = [document for retrieval in found for document in retrieval.documents]
    turn.context = [document.content for document in documents if document.content]
    turn.retrievals = [*turn.retrievals, *found]
    if not turn.retrieved_ids:
        turn.retrieved_ids = [document.id for document in documents if document.id] or None


def _unwrap_response(turn: Turn, paths: ResponseOptions, sources: dict[str, str]) -> list[str]:
    """If the output is a JSON object, replace it with the text in the object, and set missing turn fields from the object.

    Return the names of configured values that are still missing. If the object lacks all configured values, return [].
    """
    from ..metrics.lib.documents import ABSENT, as_text, lookup, object_of  # rarely used
    from ..metrics.lib.tools import expected_entries

    document = plain(object_of(turn.output or ""))
    if document is None:
        return []
    found = {}
    for part in ("output", "context", "query", "tool_calls"):
        values = (lookup(document, path) for path in getattr(paths, part))
        found[part] = next((value for value in values if value is not ABSENT and value is not None), None)
    turn.output = turn.output if found["output"] is None else as_text(found["output"])
    query = None if found["query"] is None else as_text(found["query"])
    turn.input = turn.input or query
    if found["context"] and not turn.context:
        _add_documents(turn, [Retrieval(query, [Document(**facts) for facts in documents_in(found["context"])])])
    if found["tool_calls"] is not None and not turn.tool_calls:
        try:
            turn.tool_calls = [_call(entry) for entry in expected_entries(turn, found["tool_calls"], "tool_calls") or ()]
        except MetricError as error:
            sources["tool_calls"] = f"{INVALID}the answer's {error}"
    return _absent_parts(turn, paths, found)


def _absent_parts(turn: Turn, paths: ResponseOptions, found: Mapping[str, Any]) -> list[str]:
    if all(value is None for value in found.values()):
        return []
    known = {"context": turn.context, "query": turn.input, "tool_calls": None if turn.tool_calls is None else True}
    return [part for part, value in known.items() if getattr(paths, part) and found[part] is None and not value]


def _call(entry: Any) -> ToolCall:
    facts: dict[str, Any] = {"name": entry} if isinstance(entry, str) else entry
    return ToolCall(facts["name"], facts.get("arguments"), facts.get("output"))


def _trimmed(value: Any) -> Any:
    if isinstance(value, str):
        return value.rstrip()
    return [_trimmed(item) for item in value] if isinstance(value, list) else value


def unread_columns(columns: Collection[str], metrics: Iterable[BoundMetric]) -> Iterator[str]:
    """Yield a message for each dataset column that no metric reads. If a known column has a similar name, suggest it."""
    read = set(_read_by(metrics))
    truths = () if "ground_truth" in columns else EXPECTED
    read.update(truths if "ground_truth" in read else ())
    offered = {*_FACTS, *_OF_CASES, *EXPECTED}.union(*(one.reads for one in (*catalog(), *(bound.metric for bound in metrics))))
    for name in sorted(columns):
        if name in (*truths, "ground_truth") and name not in read:
            yield f"the column {name!r} of the dataset is the ground truth, but no selected metric uses it. Add one, such as code_equals_ground_truth"
        elif name.partition(".")[0] not in read:
            (similar,) = nearest(name, offered, 1)
            hint = f". Did you mean {similar!r}?" if name != similar and likeness(name, similar) >= 0.7 else ""
            yield f"no metric reads the column {name!r} of the dataset{hint}"


def _read_by(metrics: Iterable[BoundMetric]) -> Iterator[str]:
    for bound in metrics:
        yield from (*bound.metric.reads, *PLACEHOLDER.findall(repr(bound.params)))
        yield from ("attachments", "metadata") if bound.metric.media else ()
        yield from _read_by(bound.inner)


INVALID = "invalid: "
"""Prefix of an invalid reference's source. An error message follows this prefix."""


def sources_of(metric: BoundMetric, sources: Mapping[str, str]) -> dict[str, str]:
    """Return the sources of the references that a metric uses. Raise MetricError if one of these references is invalid."""
    reads = metric.metric.reads | ({"attachments"} if metric.metric.media else set())
    used = {name: source for name, source in sources.items() if name.partition(".")[0] in reads and name not in metric.params}
    for name, source in used.items():
        if source.startswith(INVALID):
            raise MetricError(f"invalid_{name.partition('.')[0]}", source.removeprefix(INVALID))
    return used


def applies(when: Selector | None, turn: Turn) -> bool:
    """Return True if ``when`` is None, or if all its conditions are true. Values in conditions can contain the wildcard ``*``."""
    return when is None or excluded_by(when, turn) is None


def excluded_by(when: Selector, turn: Turn) -> str | None:
    """Return the name of the first false condition in ``when``, such as ``agent`` or ``attribute.KEY``, or None if all are true."""
    for name, wanted, value in (
        ("agent", when.agent, turn.agent),
        ("service", when.service, turn.service),
        ("conversation", when.conversation, turn.conversation_id),
    ):
        if wanted and not _matches(value, wanted):
            return name
    if when.model and not any(_matches(call.model, when.model) for call in turn.llm_calls):
        return "model"
    if when.step and not all(_HAS_STEP[step](turn) for step in when.step):
        return "step"
    if when.attribute:
        attributes = root_attributes(turn)
        for key, wanted in when.attribute.items():
            if not _matches(attributes.get(key), wanted):
                return f"attribute.{key}"
    return None


_HAS_STEP = {
    "tool": lambda turn: bool(turn.tool_calls),
    "llm": lambda turn: bool(turn.llm_calls),
    "retrieval": lambda turn: bool(turn.retrievals),
    "sub_agent": lambda turn: any(run.parent is not None for run in turn.agent_runs),
    "handoff": lambda turn: bool(turn.handoffs),
}


def root_attributes(turn: Turn) -> Mapping[str, Any]:
    """Return the attributes of the turn's root span, or an empty mapping if the turn doesn't contain this span."""
    root_id = turn.turn_id.rsplit("-", 1)[-1] if turn.turn_id else ""
    return next((span.attributes for span in turn.spans if span.id == root_id), {})


def _matches(value: Any, wanted: Sequence[str]) -> bool:
    if isinstance(value, bool):
        value = str(value).lower()
    return value is not None and any(fnmatchcase(str(value), pattern.replace("[", "[[]")) for pattern in wanted)


def _normal(text: str) -> str:
    return " ".join(text.split())


# --- documents that an application inserts into the prompt, with the user's question

_LEAD = re.compile(r"(?:[-*\u2022] +|\d{1,3}[.)] +)?(?:\[([^\]\n]{1,200})\]:? *)?")
_LONGEST_PROMPT = 1_000_000


def _parts_of_prompt(turn: Turn, templates: Sequence[str]) -> tuple[str | None, list[Document]]:
    """Return the question and the documents in the last user message, parsed with the first template that matches.

    The question is None if the template lacks a placeholder for the question, or if the message doesn't contain documents.
    """
    text = next(
        (message.content for message in reversed(turn.messages) if message.role == "user" and message.content), turn.input
    )
    if not text or len(text) > _LONGEST_PROMPT:
        return None, []
    found = next((parts for template in templates if (parts := filled_in(template.strip(), text.strip())) is not None), None)
    if found is None:
        return None, []
    documents, material = [], found["documents"].strip()
    # the paragraphs, or the lines of a single paragraph, without bullets, numbers and [id] prefixes
    for part in re.split(r"\n\s*\n", material) if "\n\n" in material else material.split("\n"):
        lead = _LEAD.match(part.strip())
        content = part.strip()[lead.end() if lead is not None else 0 :].strip()
        if content:
            documents.append(Document(id=lead[1] if lead is not None else None, content=content))
    return (found.get("question") or "").strip() or None if documents else None, documents


def _mapped_id(found: str, mapping: Sequence[tuple[str, str]]) -> str:
    """Map a document ID to a reference ID by the first matching pattern: ``doc-*`` to ``kb-*`` maps ``doc-7`` to ``kb-7``."""
    for pattern, wanted in mapping:
        start, star, end = pattern.partition("*")
        if not star:
            if found == pattern:
                return wanted
        elif len(found) >= len(start) + len(end) and found.startswith(start) and found.endswith(end):
            return wanted.replace("*", found[len(start) : len(found) - len(end)], 1)
    return found


# --- documents in the results of tools, and their ids

_LISTS = ("documents", "results", "matches", "chunks", "hits", "items", "data")
_MOST_TEXT, _MOST_IDS = 1_000_000, 200
_HEX = re.compile(r"[0-9a-f-]{16,}", re.IGNORECASE)
_TELLING = re.compile(r"(?=.*[^\W\d_])(?=.*[^a-z]).|\d{6}", re.IGNORECASE | re.DOTALL)
"""Pattern that matches IDs that don't look like an ordinary word or number."""


def documents_in(result: Any) -> Iterator[dict[str, Any]]:
    """Yield the documents in a tool's result: the entries of a list, the entries of a list in an object, or the entire result."""
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
    """Map the ID of each document that a tool found to the tool's name, in the order of the results.

    IDs are read from JSON documents with a text or a score. If a result lacks such IDs, words that look like a relevant ID
    are used. For example, ``kb-31`` looks like ``kb-7``.
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
    """Return a pattern for words that differ from a relevant ID only in digits. If all are words or short numbers, return None."""
    names = [relevant] if isinstance(relevant, str) else [str(name) for name in relevant]
    forms = set()
    for name in filter(_TELLING.match, names[:_MOST_IDS]):
        if _HEX.fullmatch(name):
            forms.add(re.sub(r"[0-9a-f]+", lambda run: f"[0-9a-f]{{{len(run[0])}}}", name, flags=re.IGNORECASE))
        else:
            forms.add("".join(r"\d+" if part.isdigit() else re.escape(part) for part in re.split(r"(\d+)", name)))
    if not forms:
        return None
    return re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(forms, key=lambda form: (-len(form), form)))})(?![\w-])", re.IGNORECASE)
