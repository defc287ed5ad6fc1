"""Names of metrics and parameters in other tools, and in the seed catalogs that otel-agenteval's metrics come from.

The names are loaded from YAML files on first use. Each tool's file maps the tool's metrics to equivalent otel-agenteval metrics,
which evaluate the same property in the same direction. An entry's ``note`` describes smaller differences. If
there is no equivalent, the note describes the difference and an alternative. A key can contain several names, separated by commas.
The tool's parameters map to parameter names, or to conversions in :data:`.conversions.SPELLINGS`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import ConfigError, nearest
from ...core.files import load_yaml
from ..spellings import Spelling, Spellings, Unsupported

TOOLS = ("deepeval", "ragas", "promptfoo", "mlflow", "phoenix", "pydantic_evals", "openevals", "agentevals", "langfuse")
"""Prefixes of the tools, in the order of the documentation."""
_FOLDER = Path(__file__).parent
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class ToolMetric(NamedTuple):
    name: str
    ours: str | None
    """Name of the equivalent otel-agenteval metric, or None."""
    preset: Mapping[str, Any]
    parameters: Spellings
    """Parameter names of this metric, in addition to :attr:`Tool.parameters`."""
    note: str
    """Note for users. If there is no equivalent, the note describes the difference and an alternative."""


class Tool(NamedTuple):
    prefix: str
    title: str
    version: str
    parameters: Spellings
    metrics: Mapping[str, ToolMetric]


@functools.cache
def load_tool(prefix: str) -> Tool:
    content = load_yaml(_FOLDER / f"{prefix}.yaml")
    metrics: dict[str, ToolMetric] = {}
    for name, value in _entries_by_name(content["metrics"]):
        if isinstance(value, str):
            metrics[name] = ToolMetric(name, None, {}, {}, value)
        else:
            parameters = _spellings(value.get("parameters", {}))
            metrics[name] = ToolMetric(name, value["metric"], value.get("preset", {}), parameters, value.get("note", ""))
    if "snake_case" in content:
        irregular: Mapping[str, list[str]] = content["snake_case"]
        for metric in list(metrics.values()):
            for name in irregular.get(metric.name, [_WORDS.sub("_", metric.name).lower()]):
                metrics[name] = metric._replace(name=name)
    return Tool(prefix, content["title"], content["version"], _spellings(content.get("parameters", {})), metrics)


def _entries_by_name(entries: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for names, value in entries.items():
        for name in names.split(", "):
            yield name, value


def _spellings(entries: Mapping[str, Any]) -> Spellings:
    found: dict[str, Spelling] = {}
    for name, value in _entries_by_name(entries):
        if isinstance(value, str):
            found[name] = value
        else:
            from .conversions import SPELLINGS  # imported on first use, because most names have no conversion

            (kind, argument), *others = value.items()
            found[name] = SPELLINGS[kind](argument, **dict(others))
    return found


def tool_metrics() -> Iterator[tuple[Tool, ToolMetric]]:
    for prefix in TOOLS:
        for metric in load_tool(prefix).metrics.values():
            yield load_tool(prefix), metric


def all_names() -> Iterator[str]:
    return (f"{tool.prefix}:{metric.name}" for tool, metric in tool_metrics())


def names_of(ours: str) -> list[str]:
    return [f"{tool.prefix}:{metric.name}" for tool, metric in tool_metrics() if metric.ours == ours]


def find(name: str) -> ToolMetric | None:
    """Return another tool's metric by name, or None if no tool has the metric. If the name is unambiguous, its prefix is optional.

    The result's ``parameters`` include the parameter names that the tool uses for all of its metrics.

    Raises:
        ConfigError: If the name is ambiguous, has no equivalent in otel-agenteval, or isn't a metric of the tool in its prefix.
    """
    prefix, colon, rest = name.partition(":")
    prefix = prefix.replace("-", "_")
    if colon and prefix in TOOLS:
        if (metric := load_tool(prefix).metrics.get(rest)) is None:
            close = ", ".join(nearest(name, all_names()))
            raise ConfigError(f"{name}: unknown metric of {load_tool(prefix).title}. Did you mean {close}?")
        return _with_tool_parameters(load_tool(prefix), metric)
    having = [(tool, metric) for tool, metric in tool_metrics() if metric.name == name]
    if not having:
        return None
    if len({(metric.ours, repr(metric.preset)) if metric.ours else metric.note for _, metric in having}) > 1:
        candidates = ", ".join(f"{tool.prefix}:{name}" for tool, _ in having)
        raise ConfigError(f"{name}: ambiguous name. Use one of {candidates}")
    return _with_tool_parameters(*having[0])


def _with_tool_parameters(tool: Tool, metric: ToolMetric) -> ToolMetric:
    if metric.ours is None:
        raise ConfigError(f"{tool.prefix}:{metric.name}: {metric.note}")
    return metric._replace(parameters={**tool.parameters, **metric.parameters})


class SeedPreset(NamedTuple):
    title: str
    metrics: Sequence[Any]
    """Entries for ``metrics`` in the configuration."""
    conversation: Sequence[Any] = ()
    """Entries for ``conversation.metrics``."""
    response: Mapping[str, Any] = {}
    """Default of the option ``references.response``."""
    gates: bool = False
    """True if the default policy is ``gate`` for most metrics that give a verdict without calling a model."""


@functools.cache
def presets() -> Mapping[str, SeedPreset]:
    return {seed: SeedPreset(**content) for seed, content in load_yaml(_FOLDER / "presets.yaml").items()}


@functools.cache
def seeds() -> Mapping[str, tuple[Spellings, Mapping[str, Spellings]]]:
    """Return each seed catalog's parameter names: a mapping for all metrics, and additional mappings for individual metrics."""
    return {
        seed: (
            _spellings(content.get("parameters", {})),
            {metric: _spellings(entries) for metric, entries in _entries_by_name(content["metrics"])},
        )
        for seed, content in load_yaml(_FOLDER / "seeds.yaml").items()
    }


class SeedView(NamedTuple):
    """Changes to a metric under its seed catalog name: additional ``detail`` keys, and a default for an unknown input."""

    seed: str
    details: Mapping[str, str]
    input: str | None


@functools.cache
def view_of(seed: str, metric: str) -> SeedView | None:
    content = load_yaml(_FOLDER / "seeds.yaml").get(seed, {})
    details, inputs = content.get("details", {}), dict(_entries_by_name(content.get("inputs", {})))
    known = {"all", metric} & details.keys()
    return SeedView(seed, details.get(metric, details.get("all", {})), inputs.get(metric)) if known or metric in inputs else None


def seed_spellings(seed: str, alias: str, metric: str, parameters: Container[str]) -> Spellings:
    common, by_metric = seeds().get(seed, ({}, {}))
    if seed == "trusys":
        same = load_tool("promptfoo").metrics.get(alias)
        own = {**(same.parameters if same is not None and same.ours == metric else {}), **by_metric.get(metric, {})}
        return {**{name: own["value"] for name in ("expected_output", "expcted_output") if "value" in own}, **own}
    applying = {name: spelling for name, spelling in common.items() if name in parameters or isinstance(spelling, Unsupported)}
    return {**applying, **by_metric.get(metric, {})}
