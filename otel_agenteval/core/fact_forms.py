"""Readers: functions that parse reference data from datasets, ``expect()``, and applications.

``READERS`` maps turn fields to readers. A reader accepts this package's format and other tools' formats, and returns this package's
format. For example, an edge ``{"source": "a", "target": {"name": "b"}}`` becomes ``["a", "b"]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .forms import Reader, a_flag, a_mapping, a_number, a_text, an_object, anything, as_given, keyed, list_of, wrong
from .wellformed import plain, well_formed


def one_or_more(read: Reader) -> Reader:
    """Return a reader that accepts a list or a single value: ``"a"`` → ``["a"]``."""
    return lambda value, path: list_of(read)(value, path) if isinstance(value, (list, tuple)) else [read(value, path)]


def _name_in(key: str, other_names: Sequence[str], wanted: str) -> Reader:
    """Return a reader that accepts a name (text or an integer), or an object that contains the name: ``{"name": 7}`` → ``"7"``."""
    read_object = keyed({key: anything}, {key: other_names}, required=(key,), ignore_others=True)

    def read_name(value: Any, path: str) -> str:
        name = read_object(value, path)[key] if isinstance(value, Mapping) else value
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise wrong(path, name, wanted)
        return well_formed(str(name))

    return read_name


# --- documents

TEXTS = ("content", "text", "page_content", "chunk", "snippet", "body", "document")
IDS = ("id", "_id", "doc_id", "docId", "document_id", "documentId")
"""Possible keys of a document's text (``TEXTS``) and of a document's ID (``IDS``), most common first."""
DOCUMENT_NAMES = {"id": IDS[1:], "content": TEXTS[1:], "score": ("relevance_score", "similarity")}
_document = keyed(dict.fromkeys(DOCUMENT_NAMES, anything), DOCUMENT_NAMES, required=("content",), ignore_others=True)
_document_id = _name_in("id", IDS[1:], "an ID, or a document with an ID")


def a_document(value: Any, path: str) -> str:
    return a_text(_document(value, path)["content"] if isinstance(value, Mapping) else value, path)


def document_ids(value: Any, path: str) -> Any:
    """Parse document IDs from a list, or from an object that maps IDs to relevance: ``{"d1": 1, "d2": 0}`` → ``["d1"]``."""
    is_by_id = isinstance(value, Mapping) and value.keys().isdisjoint(IDS)
    if is_by_id and all(isinstance(relevance, (int, float)) for relevance in value.values()):
        value = [document_id for document_id, relevance in value.items() if relevance]
    return one_or_more(_document_id)(value, path)


# --- agents

_END_NAMES = {"from": ("from_agent", "sender", "source"), "to": ("to_agent", "recipient", "recipients", "receiver", "target")}
HANDOFF_NAMES = {**_END_NAMES, "success": ("succeeded",), "duration_s": ("duration", "handoff_time")}
_a_name = _name_in("id", ("name", "node_id", "executor_id", "executor", "agent", "key"), "a name, or an object with a name")
_interaction = keyed(
    {"from": _a_name, "to": one_or_more(_a_name), "type": a_text, "message_type": a_text, "success": a_flag, "response_time_s": a_number},
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
    """Parse agent roles from a list or from an object with agent names as keys: ``[{"name": "a", …}]`` → ``{"a": {…}}``."""
    if isinstance(value, (list, tuple)):
        roles = [_role(role, f"{path}[{index}]") for index, role in enumerate(value)]
        return {_a_name(role.get("name"), f"{path}[{index}].name"): role for index, role in enumerate(roles)}
    return {str(name): _role(role or {}, f"{path}.{name}") for name, role in a_mapping(value, path).items()}


# --- workflows


def _node_names(value: Any, path: str) -> list[str]:
    """Parse a workflow's node names from a list or from an object's keys: ``["a", {"id": "b"}]`` → ``["a", "b"]``."""
    return [str(name) for name in value] if isinstance(value, Mapping) else list_of(_a_name)(value, path)


_ends = keyed(
    {"from": _a_name, "to": _a_name},
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
    return list_of(_a_name)(value, path)


_graph = keyed(
    {"nodes": _node_names, "edges": list_of(_edge), "entry": one_or_more(_a_name), "exits": one_or_more(_a_name)},
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
_tool_name = _name_in("name", _TOOL_NAMES, "the name of a tool, or an object with a name")


def _a_tool(value: Any, path: str) -> Any:
    is_request = isinstance(value, Mapping) and isinstance(value.get("function"), Mapping)  # {"function": {"name": …}}
    return _tool_name(value["function"] if is_request else value, path)


_run = keyed(
    {"executor": _a_name, "status": a_text, "id": anything, "tool_calls": list_of(_a_tool), "error": anything, "success": a_flag},
    {"executor": _EXECUTOR_NAMES, "status": ("state", "outcome"), "id": ("step_id",), "tool_calls": ("tools",)},
    required=("executor",), ignore_others=True,
)  # fmt: skip


def _step(value: Any, path: str) -> dict[str, Any]:
    step = _run(value, path)
    error, success = step.pop("error", None), step.pop("success", True)
    return {**step, "status": "failed"} if error or success is False else step


def _object_with(read: Reader) -> Reader:
    """Return a reader that applies ``read`` to objects, and :func:`.plain` to other values, which the metric then validates."""
    return lambda value, path: read(value, path) if isinstance(value, Mapping) else plain(value)


_failure = keyed(
    {"executor": _a_name, "step": anything}, {"executor": _EXECUTOR_NAMES, "step": ("step_id", "step_index")}, ignore_others=True
)
_workflow = keyed(
    {"graph": _graph, "steps": list_of(_step), "errors": list_of(_object_with(_failure))},
    {"graph": ("definition",), "steps": ("executions", "runs")},
    ignored=("id", "name", "description", "type", "status", "version", "metadata", "duration_s"),
)

# --- sessions, privacy, probabilities, earlier turns, media


_signals = keyed(dict.fromkeys(("confidence", "loop_detection", "tool_correctness", "coherence"), anything), ignore_others=True)
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
    """Parse log probabilities from a list of numbers or OpenAI's format ``{"content": [{"token": "Hi", "logprob": -0.1}]}``."""
    tokens = value.get("content", value) if isinstance(value, Mapping) else value
    return list_of(lambda token, at: a_number(token.get("logprob") if isinstance(token, Mapping) else token, at))(tokens, path)


_turn = keyed(
    {"input": anything, "output": anything},
    {"input": ("user", "question", "query", "user_input"), "output": ("assistant", "answer", "response", "actual_output")},
    ignore_others=True,
)
SPEAKERS = {"user": "input", "human": "input", "assistant": "output", "ai": "output", "model": "output", "agent": "output"}


def _turn_or_message(value: Any, path: str) -> dict[str, Any]:
    """Parse a turn or a message: ``{"role": "user", "content": "Hi"}`` → ``{"input": "Hi"}``. Tool messages become ``{}``."""
    speaker = a_mapping(value, path).get("role", value.get("type"))
    if "content" not in value or not isinstance(speaker, str):
        return {**an_object(value, path), **_turn(value, path)}
    return {field: plain(value["content"])} if (field := SPEAKERS.get(speaker)) else {}


def history(value: Any, path: str) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for turn in list_of(_turn_or_message)(value, path):
        if turn.keys() == {"output"} and turns and "output" not in turns[-1]:
            turns[-1] |= turn  # the answer to the previous message
        elif turn:
            turns.append(turn)
    return turns


_MEDIUM_NAMES = {
    "modality": ("type", "kind"), "mime_type": ("media_type", "mimetype", "content_type"),
    "uri": (
        "url", "file_uri", "file_url", "image_url", "video_url", "audio_url", "input_audio", "image", "video", "audio", "href", "path",
    ),
    "data": ("base64", "bytes"), "file_id": (), "frames": (), "transcript": ("transcription",), "duration_s": ("duration",),
}  # fmt: skip
_medium = keyed(dict.fromkeys(_MEDIUM_NAMES, anything), _MEDIUM_NAMES, ignore_others=True)


def _attachment(value: Any, path: str) -> dict[str, Any]:
    medium = _medium(value, path)
    if isinstance(medium.get("uri"), dict):  # {"type": "image_url", "image_url": {"url": …}} of OpenAI's API
        medium |= _medium(medium.pop("uri"), path)
    kind = next((kind for kind in ("image", "audio", "video") if kind in str(medium.get("modality")).lower()), None)
    return medium if kind is None else {**medium, "modality": kind}


READERS: Mapping[str, Reader] = {
    "context": one_or_more(a_document), "relevant_ids": document_ids, "retrieved_ids": document_ids, "workflow": _workflow,
    "agents": _roles, "interactions": list_of(_interaction), "conflicts": list_of(_conflict), "session": _session,
    "privacy": _privacy, "logprobs": logprobs, "history": history, "attachments": list_of(_attachment),
}  # fmt: skip
