"""Forms of the facts that data sets, ``expect()`` and applications provide, in our and other tools' spelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .forms import Reader, a_flag, a_mapping, a_number, a_text, an_object, anything, as_given, keyed, list_of, wrong
from .wellformed import plain, well_formed


def each(read: Reader) -> Reader:
    """Return a reader of a list, or of one value as a list."""
    return lambda value, path: list_of(read)(value, path) if isinstance(value, (list, tuple)) else [read(value, path)]


def _name_in(key: str, other_names: Sequence[str], wanted: str) -> Reader:
    """Return a reader of names and numbers, and of objects with one under a key."""
    of_object = keyed({key: anything}, {key: other_names}, required=(key,), ignore_others=True)

    def read(value: Any, path: str) -> str:
        found = of_object(value, path)[key] if isinstance(value, Mapping) else value
        if isinstance(found, bool) or not isinstance(found, (str, int)):
            raise wrong(path, found, wanted)
        return well_formed(str(found))

    return read


# --- documents

TEXTS = ("content", "text", "page_content", "chunk", "snippet", "body", "document")
IDS = ("id", "_id", "doc_id", "docId", "document_id", "documentId")
"""Keys of a document's text and id, the most usual first."""
DOCUMENT_NAMES = {"id": IDS[1:], "content": TEXTS[1:], "score": ("relevance_score", "similarity")}
"""Other tools' names of a document's fields."""
_document = keyed(dict.fromkeys(DOCUMENT_NAMES, anything), DOCUMENT_NAMES, required=("content",), ignore_others=True)
_document_id = _name_in("id", IDS[1:], "an id, or a document with an id")


def a_document(value: Any, path: str) -> str:
    return a_text(_document(value, path)["content"] if isinstance(value, Mapping) else value, path)


def document_ids(value: Any, path: str) -> Any:
    """Read ids of documents, or the relevance by id, of which 0 isn't relevant."""
    if (
        isinstance(value, Mapping)
        and all(isinstance(each, (int, float)) for each in value.values())
        and value.keys().isdisjoint(IDS)
    ):
        value = [key for key, relevance in value.items() if relevance]
    return each(_document_id)(value, path)


# --- agents

_END_NAMES = {"from": ("from_agent", "sender", "source"), "to": ("to_agent", "recipient", "recipients", "receiver", "target")}
HANDOFF_NAMES = {**_END_NAMES, "success": ("succeeded",), "duration_s": ("duration", "handoff_time")}
"""Other tools' names of a handoff's fields."""
_a_node = _name_in("id", ("name", "node_id", "executor_id", "executor", "agent", "key"), "a name, or an object with a name")
"""Reader of the name of an agent, a node, an executor or a tool."""
_interaction = keyed(
    {"from": _a_node, "to": each(_a_node), "type": a_text, "message_type": a_text, "success": a_flag, "response_time_s": a_number},
    {**_END_NAMES, "type": ("interaction_type", "kind"), "success": ("succeeded",), "response_time_s": ("response_time",)},
    ignored=("id", "interaction_id", "timestamp", "content", "message", "message_content", "metadata"),
)  # fmt: skip
_conflict = keyed(
    {"resolved": a_flag, "resolution_time_s": a_number},
    {"resolved": ("is_resolved",), "resolution_time_s": ("resolution_time",)},
    ignored=(
        "id", "conflict_id", "type", "conflict_type", "agents", "timestamp", "description", "severity", "resolution", "metadata",
    ),
)  # fmt: skip
_role = keyed(
    {"can_delegate": a_flag, "authority_level": a_number, "name": anything},
    {"can_delegate": ("allow_delegation",), "authority_level": ("authority",), "name": ("id", "agent")},
    ignore_others=True,
)


def _roles(value: Any, path: str) -> dict[str, Any]:
    if isinstance(value, (list, tuple)):
        found = [_role(each, f"{path}[{place}]") for place, each in enumerate(value)]
        return {_a_node(each.get("name"), f"{path}[{place}].name"): each for place, each in enumerate(found)}
    return {str(key): _role(inner or {}, f"{path}.{key}") for key, inner in a_mapping(value, path).items()}


# --- workflows


def _by_name(value: Any, path: str) -> list[str]:
    """Read a list of nodes, or an object with one key for each."""
    return [str(key) for key in value] if isinstance(value, Mapping) else list_of(_a_node)(value, path)


_ends = keyed(
    {"from": _a_node, "to": _a_node},
    {
        "from": ("source", "start", "source_id", "source_node_id", "source_executor_id", "from_node"),
        "to": ("target", "end", "target_id", "target_node_id", "target_executor_id", "to_node"),
    },
    required=("from", "to"), ignore_others=True,
)  # fmt: skip


def _edge(value: Any, path: str) -> list[str]:
    if isinstance(value, Mapping):
        ends = _ends(value, path)
        return [ends["from"], ends["to"]]
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise wrong(path, value, "[from, to]")
    return list_of(_a_node)(value, path)


_graph = keyed(
    {"nodes": _by_name, "edges": list_of(_edge), "entry": each(_a_node), "exits": each(_a_node)},
    {
        "entry": ("entry_point", "entry_node", "entry_node_id", "start", "start_node", "root"),
        "exits": (
            "exit", "exit_node", "exit_nodes", "exit_node_id", "exit_node_ids", "exit_points", "finish_points", "finish_point", "end",
            "end_nodes",
        ),
    },
    ignored=("id", "name", "type", "directed", "metadata", "description"),
)  # fmt: skip
_EXECUTOR_NAMES = ("executor_id", "executor_name", "node", "node_id", "agent", "agent_name", "name")
_TOOL_NAMES = ("tool", "tool_name", "function_name", "function", "id")
_named_tool = _name_in("name", _TOOL_NAMES, "the name of a tool, or an object with a name")


def _a_tool(value: Any, path: str) -> Any:
    is_request = isinstance(value, Mapping) and isinstance(value.get("function"), Mapping)  # of OpenAI's API
    return _named_tool(value["function"] if is_request else value, path)


_run = keyed(
    {"executor": _a_node, "status": a_text, "id": anything, "tool_calls": list_of(_a_tool), "error": anything, "success": a_flag},
    {"executor": _EXECUTOR_NAMES, "status": ("state", "outcome"), "id": ("step_id",), "tool_calls": ("tools",)},
    required=("executor",), ignore_others=True,
)  # fmt: skip


def _step(value: Any, path: str) -> dict[str, Any]:
    found = _run(value, path)
    failed = found.pop("error", None) or found.pop("success", True) is False
    return {**found, "status": "failed"} if failed else found


def _object_with(read: Reader) -> Reader:
    """Return a reader that refuses a misspelled key, and leaves the values to the metric."""
    return lambda value, path: read(value, path) if isinstance(value, Mapping) else plain(value)


_failure = keyed(
    {"executor": _a_node, "step": anything}, {"executor": _EXECUTOR_NAMES, "step": ("step_id", "step_index")}, ignore_others=True
)
_workflow = keyed(
    {"graph": _graph, "steps": list_of(_step), "errors": list_of(_object_with(_failure))},
    {"graph": ("definition",), "steps": ("executions", "runs")},
    ignored=("id", "name", "description", "type", "status", "version", "metadata", "duration_s"),
)

# --- sessions, privacy, probabilities, earlier turns, media


_SIGNALS = ("confidence", "loop_detection", "tool_correctness", "coherence")
_signals = keyed(dict.fromkeys(_SIGNALS, anything), ignore_others=True)
_trace = keyed(
    {"trace_id": anything, "signals": _object_with(_signals)},
    {"trace_id": ("id", "turn_id"), "signals": ("scores",)},
    ignore_others=True,
)
_session = keyed(
    {"traces": list_of(_object_with(_trace))}, {"traces": ("turns",)}, ignored=("id", "session_id", "name", "metadata")
)
_privacy = keyed(
    {"epsilon": as_given, "spent_before": as_given},
    {"epsilon": ("epsilons", "epsilon_used"), "spent_before": ("spent", "previously_spent")},
    ignored=("delta", "mechanism", "metadata"),
)


def logprobs(value: Any, path: str) -> list[float]:
    """Read log probabilities: numbers, or tokens with a ``logprob`` as in OpenAI's API."""
    tokens = value.get("content", value) if isinstance(value, Mapping) else value
    return list_of(lambda one, at: a_number(one.get("logprob") if isinstance(one, Mapping) else one, at))(tokens, path)


_turn = keyed(
    {"input": anything, "output": anything},
    {"input": ("user", "question", "query", "user_input"), "output": ("assistant", "answer", "response", "actual_output")},
    ignore_others=True,
)
SPEAKERS = {"user": "input", "human": "input", "assistant": "output", "ai": "output", "model": "output", "agent": "output"}


def _earlier(value: Any, path: str) -> dict[str, Any]:
    speaker = a_mapping(value, path).get("role", value.get("type"))
    if "content" not in value or not isinstance(speaker, str):
        return {**an_object(value, path), **_turn(value, path)}
    return {said: plain(value["content"])} if (said := SPEAKERS.get(speaker)) else {}


def history(value: Any, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for said in list_of(_earlier)(value, path):
        if said.keys() == {"output"} and found and "output" not in found[-1]:
            found[-1] |= said  # the answer to the message before
        elif said:
            found.append(said)
    return found


_MEDIUM_NAMES = {
    "modality": ("type", "kind"), "mime_type": ("media_type", "mimetype", "content_type"),
    "uri": (
        "url", "file_uri", "file_url", "image_url", "video_url", "audio_url", "input_audio", "image", "video", "audio", "href", "path",
    ),
    "data": ("base64", "bytes"), "file_id": (), "frames": (), "transcript": ("transcription",), "duration_s": ("duration",),
}  # fmt: skip
_medium = keyed(dict.fromkeys(_MEDIUM_NAMES, anything), _MEDIUM_NAMES, ignore_others=True)


def _attachment(value: Any, path: str) -> dict[str, Any]:
    found = _medium(value, path)
    if isinstance(found.get("uri"), dict):  # {"type": "image_url", "image_url": {"url": …}} of OpenAI's API
        found |= _medium(found.pop("uri"), path)
    kind = next((kind for kind in ("image", "audio", "video") if kind in str(found.get("modality")).lower()), None)
    return found if kind is None else {**found, "modality": kind}


READERS: Mapping[str, Reader] = {
    "context": each(a_document), "relevant_ids": document_ids, "retrieved_ids": document_ids, "workflow": _workflow, "agents": _roles,
    "interactions": list_of(_interaction), "conflicts": list_of(_conflict), "session": _session, "privacy": _privacy,
    "logprobs": logprobs, "history": history, "attachments": list_of(_attachment),
}  # fmt: skip
"""Readers of facts by the field of a turn. What a reader returns, it reads again without a change."""
