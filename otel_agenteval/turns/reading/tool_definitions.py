"""Read the definitions of the tools that models received."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ...core import jsonio
from ...core.wellformed import Later
from ...dialects.payloads import parsed
from ...dialects.step import AGENT
from .llm_calls import TurnCalls
from .steps import LONGEST_CONSTANT

OUTPUT_TOOLS = frozenset(("final_result", "final_answer", "set_model_response", "Handoff-complete_task"))
"""Frameworks' tools whose arguments are the answer."""


def is_output_tool(name: str | None) -> bool:
    return name in OUTPUT_TOOLS or (name is not None and name.startswith("final_result_"))


def tool_definitions(turn: TurnCalls) -> list[dict[str, Any]]:
    """Return the turn's tools without output tools. Agent spans often have tools that model spans lack."""
    found: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for step in (turn.root, *turn.of_role.get(AGENT, ()), *turn.llm):
        raw = step.tool_definitions
        if raw.__class__ is str:
            if raw in seen:
                continue
            seen.add(raw)
            definitions, cut = _parse_constant(raw) if len(raw) < LONGEST_CONSTANT else _parse(raw)
            turn.cut |= cut
        else:
            definitions = _definitions_in(raw.reader(raw.raw) if raw.__class__ is Later else raw)
        for definition in definitions:
            if not is_output_tool(definition["name"]):
                found.setdefault(definition["name"], definition)
    return list(found.values())


def parameters_of(definition: Mapping[str, Any]) -> list[str]:
    schema = definition.get("parameters")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def _parse(raw: str) -> tuple[list[dict[str, Any]], bool]:
    """Return the definitions in a JSON text, and True if the text was cut."""
    value, cut = jsonio.loads_or_text(raw)
    return _definitions_in(value), cut


_parse_constant = lru_cache(maxsize=32)(_parse)


def _definitions_in(raw: Any) -> list[dict[str, Any]]:
    """Return the definitions with a name, without the object around the name and the parameters."""
    found = []
    if isinstance(raw, dict):  # a request that contains the definitions
        config = raw.get("config")
        raw = raw.get("tools") or raw.get("function_tools") or (config.get("tools") if isinstance(config, dict) else None)
    for item in raw if isinstance(raw, (list, tuple)) else ():
        tool = parsed(item)
        if isinstance(tool, dict) and "role" in tool:  # messages, with the definitions among them
            tool = tool.get("content") if tool["role"] == "tool" and not tool.get("tool_call_id") else None
        if not isinstance(tool, dict):
            continue
        declared = tool.get("function_declarations")
        if isinstance(declared, list):
            found += _definitions_in(declared)
            continue
        definition = {**tool, **tool["function"]} if isinstance(tool.get("function"), dict) else dict(tool)
        if "name" not in definition and isinstance(definition.get("data"), dict):  # a serialized object with type and data
            definition = dict(definition["data"])
        if "parameters_json_schema" in definition:
            definition["parameters"] = definition["parameters_json_schema"]
        definition.pop("function", None)
        if isinstance(definition.get("name"), str):
            found.append(definition)
    return found
