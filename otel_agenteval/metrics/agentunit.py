"""Drop-in replacements for AgentUnit's metric classes and multi-agent calculators, and support for your custom metrics.

    FaithfulnessMetric(threshold=0.8)  # same as get_metric("agentunit:FaithfulnessMetric", threshold=0.8)
    register_metric("brevity", BrevityMetric)  # a class with evaluate(case, trace, outcome)
    MultiAgentMetricsCalculator(interactions, handoffs, conflicts, agent_roles).calculate_all()

Interactions, hand-offs, conflicts, and roles can be AgentUnit objects, or mappings with the keys of AgentUnit or otel-agenteval.
Unlike in AgentUnit, unknown times are None instead of 0, and centralization is at most 1.
"""

from __future__ import annotations

import inspect
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import partial
from types import NoneType, SimpleNamespace
from typing import Any, TypeVar

from ..core.errors import ConfigError
from ..core.forms import snake_case
from ..core.jsonio import text_of
from ..core.turn import Handoff, Turn
from .bound_metric import BoundMetric, get_metric
from .code import multi_agent
from .code.multi_agent_network import AgentGraph, bottlenecks_of, fault_tolerance_of, hubs_of
from .lib.agents import interactions_of
from .names import presets
from .registry import Result, builtin, call_metric, metric

T = TypeVar("T")
_KEYS = {
    "from_agent": "from", "to_agent": "to", "interaction_type": "type", "response_time": "response_time_s",
    "handoff_time": "duration_s", "resolution_time": "resolution_time_s",
}  # fmt: skip


@dataclass
class CoordinationMetrics:
    """Coordination metrics with times in seconds, conflicts per 100 interactions, and other values from 0 to 1."""

    handoff_success_rate: float | None = None
    avg_handoff_time: float | None = None
    conflict_rate: float | None = None
    conflict_resolution_rate: float | None = None
    avg_resolution_time: float | None = None
    communication_efficiency: float | None = None
    role_adherence: float | None = None
    load_balance_score: float | None = None


@dataclass
class NetworkMetrics:
    density: float = 0.0
    centralization: float = 0.0
    avg_path_length: float | None = None
    """Mean length of the shortest paths, or None if the graph has no edges."""
    clustering_coefficient: float = 0.0
    hub_agents: list[str] = field(default_factory=list)
    bottleneck_agents: list[str] = field(default_factory=list)


@dataclass
class EmergentBehaviorMetrics:
    self_organization_score: float | None = None
    specialization_emergence: float | None = None
    collective_decision_score: float | None = None
    adaptation_rate: float | None = None
    swarm_intelligence_score: float | None = None


def _with_turn_keys(entry: Any) -> dict[str, Any]:
    fields = entry if isinstance(entry, Mapping) else getattr(entry, "__dict__", None)
    if fields is None:
        raise ConfigError(f"interactions, handoffs, conflicts, agent_roles: must contain mappings or objects, got {entry!r}")
    return {_KEYS.get(key) or str(key): value.value if isinstance(value, Enum) else value for key, value in fields.items()}


def _turn(
    interactions: Iterable[Any],
    handoffs: Iterable[Any] = (),
    conflicts: Iterable[Any] = (),
    roles: Mapping[str, Any] | None = None,
) -> Turn:
    found = [_with_turn_keys(handoff) for handoff in handoffs]
    for one in found:
        if not isinstance(success := one.get("success"), (bool, int, NoneType)):
            raise ConfigError(f"handoffs: success must be true, false, or None, got {success!r}")
    if roles is not None and not isinstance(roles, Mapping):
        raise ConfigError(f"agent_roles: must be a mapping of agents to roles, got {roles!r}")
    return Turn(
        interactions=[_with_turn_keys(interaction) for interaction in interactions],
        handoffs=[Handoff(one.get("from"), one.get("to"), one.get("success"), one.get("duration_s")) for one in found],
        conflicts=[_with_turn_keys(conflict) for conflict in conflicts],
        agents={name: _with_turn_keys(role) for name, role in (roles or {}).items()},
    )  # fmt: skip


def _measured(measure: Callable[[Turn], Result]) -> Callable[[Any], float | None]:
    return lambda self: measure(self._turn).value


def _of_graph(measure: Callable[[AgentGraph], T]) -> Callable[[Any], T]:
    return lambda self: measure(self._graph)


class InteractionAnalyzer:
    def __init__(self, interactions: Sequence[Any], handoffs: Sequence[Any] = (), conflicts: Sequence[Any] = ()) -> None:
        self._turn = _turn(interactions, handoffs, conflicts)
        self.adjacency: dict[str, set[str]] = {}
        self.message_counts: Counter[tuple[str, str]] = Counter()
        self.agent_activity: Counter[str] = Counter()
        for found in interactions_of(self._turn):
            for to in found.recipients if found.sender is not None else ():
                self.adjacency.setdefault(str(found.sender), set()).add(to)
                self.message_counts[str(found.sender), to] += 1
                self.agent_activity.update((str(found.sender), to))

    def calculate_handoff_metrics(self) -> dict[str, float | None]:
        return {
            "success_rate": multi_agent.code_handoff_success_rate(self._turn).value,
            "avg_time": multi_agent.code_avg_handoff_time(self._turn).value,
            "total_handoffs": len(self._turn.handoffs),
        }

    def calculate_conflict_metrics(self) -> dict[str, float | None]:
        return {
            "rate": multi_agent.code_conflict_rate(self._turn).value,
            "resolution_rate": multi_agent.code_conflict_resolution_rate(self._turn).value,
            "avg_resolution_time": multi_agent.code_avg_resolution_time(self._turn).value,
            "total_conflicts": len(self._turn.conflicts),
        }

    calculate_communication_efficiency = _measured(multi_agent.code_communication_efficiency)
    calculate_load_balance = _measured(multi_agent.code_load_balance)


class NetworkAnalyzer:
    """Analyzer for a graph of agents that send and receive messages. Slow methods raise ``GraphTooLarge`` for large graphs."""

    def __init__(self, adjacency: Mapping[str, Iterable[str]], agents: Sequence[str]) -> None:
        if not isinstance(adjacency, Mapping):
            raise ConfigError(f"adjacency: must be a mapping of agents to recipients, got {adjacency!r}")
        pairs = [(sender, recipient) for sender, recipients in adjacency.items() for recipient in recipients]
        self.adjacency, self.agents = adjacency, [*dict.fromkeys((*agents, *(name for pair in pairs for name in pair)))]
        self._graph = AgentGraph(self.agents, pairs)

    calculate_density = _of_graph(lambda graph: graph.density() if len(graph) > 1 else 1.0)
    calculate_centralization = _of_graph(lambda graph: graph.centralization() if len(graph) > 2 else 0.0)
    calculate_clustering_coefficient = _of_graph(lambda graph: graph.clustering() if len(graph) > 2 else 0.0)
    find_bottleneck_agents = _of_graph(lambda graph: bottlenecks_of(graph, "heuristic"))
    calculate_fault_tolerance = _of_graph(fault_tolerance_of)
    calculate_avg_path_length = _of_graph(AgentGraph.mean_distance)

    def find_hub_agents(self, threshold: float = 0.7) -> list[str]:
        """Return the agents whose number of recipients is at least ``threshold`` times the highest number of recipients."""
        return hubs_of(self._graph, threshold)


class EmergentBehaviorDetector:
    def __init__(
        self, interactions: Sequence[Any], agent_roles: Mapping[str, Any] | None = None, task_allocations: Any = None
    ) -> None:
        self._turn = _turn(interactions, roles=agent_roles)

    detect_self_organization = _measured(multi_agent.code_self_organization)
    detect_specialization = _measured(multi_agent.code_specialization)
    detect_collective_decision_making = _measured(multi_agent.code_collective_decision)
    detect_adaptation_rate = _measured(multi_agent.code_adaptation_rate)
    calculate_swarm_intelligence = _measured(multi_agent.code_swarm_intelligence)


class MultiAgentMetricsCalculator:
    """Calculator for all multi-agent metrics of a run. As in AgentUnit, ``task_allocations`` is ignored."""

    def __init__(
        self, interactions: Sequence[Any], handoffs: Sequence[Any] = (), conflicts: Sequence[Any] = (),
        agent_roles: Mapping[str, Any] | None = None, task_allocations: Any = None,
    ) -> None:  # fmt: skip
        self._turn = _turn(interactions, handoffs, conflicts, agent_roles)
        self.interaction_analyzer = InteractionAnalyzer(interactions, handoffs, conflicts)
        self.network_analyzer = NetworkAnalyzer(self.interaction_analyzer.adjacency, list(self._turn.agents))
        self.emergent_detector = EmergentBehaviorDetector(interactions, agent_roles)

    def calculate_coordination_metrics(self) -> CoordinationMetrics:
        handoffs = self.interaction_analyzer.calculate_handoff_metrics()
        conflicts = self.interaction_analyzer.calculate_conflict_metrics()
        return CoordinationMetrics(
            handoffs["success_rate"], handoffs["avg_time"],
            conflicts["rate"], conflicts["resolution_rate"], conflicts["avg_resolution_time"],
            self.interaction_analyzer.calculate_communication_efficiency(),
            multi_agent.code_multiagent_role_adherence(self._turn).value, self.interaction_analyzer.calculate_load_balance(),
        )  # fmt: skip

    def calculate_network_metrics(self) -> NetworkMetrics:
        network = self.network_analyzer
        return NetworkMetrics(
            network.calculate_density(), network.calculate_centralization(), network.calculate_avg_path_length(),
            network.calculate_clustering_coefficient(), network.find_hub_agents(), network.find_bottleneck_agents(),
        )  # fmt: skip

    def calculate_emergent_behavior_metrics(self) -> EmergentBehaviorMetrics:
        emergence = self.emergent_detector
        return EmergentBehaviorMetrics(
            emergence.detect_self_organization(), emergence.detect_specialization(), emergence.detect_collective_decision_making(),
            emergence.detect_adaptation_rate(), emergence.calculate_swarm_intelligence(),
        )  # fmt: skip

    def calculate_all(self) -> dict[str, Any]:
        """Return a dictionary with the metrics of each category, and the network's ``fault_tolerance``."""
        return {
            "coordination": asdict(self.calculate_coordination_metrics()),
            "network": asdict(self.calculate_network_metrics()),
            "emergent_behaviors": asdict(self.calculate_emergent_behavior_metrics()),
            "fault_tolerance": self.network_analyzer.calculate_fault_tolerance(),
        }


_DEFAULTS: dict[str, BoundMetric] = {
    name.partition(":")[2]: get_metric(name, **params)
    for entry in presets()["agentunit"].metrics
    for name, params in ({entry: {}} if isinstance(entry, str) else entry).items()
}
_BUILT_IN = frozenset(_DEFAULTS)
DEFAULT_METRICS: Mapping[str, BoundMetric] = _DEFAULTS
"""Metrics of the preset ``agentunit``, and metrics from :func:`register_metric`, by their AgentUnit names."""


def resolve_metrics(names: Sequence[str] | None = None) -> list[BoundMetric]:
    """Return the metrics with these AgentUnit names. The default is :data:`DEFAULT_METRICS`. Unknown names raise ConfigError."""
    if isinstance(names, str):
        raise ConfigError(f"resolve_metrics: names must be a list, got the string {names!r}. Write [{names!r}]")
    return [DEFAULT_METRICS.get(name) or get_metric(f"agentunit:{name}") for name in names or DEFAULT_METRICS]


# --- custom metrics


Metric = object
"""Base class of custom metrics, which have ``evaluate(case, trace, outcome)``."""


@dataclass
class MetricResult:
    """Result of a custom metric. If ``value`` is None, the score is skipped."""

    name: str
    value: float | None
    detail: dict[str, Any] = field(default_factory=dict)


DatasetCase = TraceEvent = TraceLog = AdapterOutcome = SimpleNamespace


def register_metric(name: str, metric_class: Any) -> None:
    """Register a custom metric: a class without required arguments, or an instance, with ``evaluate(case, trace, outcome)``.

    The scores are named ``code_<name>`` in snake case, or ``code_custom_<name>`` if a built-in metric already has this name. The
    names ``<name>`` and ``agentunit:<name>`` refer to this metric. ``evaluate`` receives:

    - ``case``: ``id``, ``query``, ``expected_output``, ``tools``, ``context``, and ``metadata`` with the case's other columns
    - ``trace``: ``metadata`` with ``cost`` and ``usage`` (if known), and ``events``, each with ``type`` (``agent_prompt``,
      ``tool_call``, ``agent_response``, ``error``), ``payload``, and ``timestamp`` (the turn's start, or its end for the last event)
    - ``outcome``: ``success``, ``output``, ``tool_calls``, and ``error``

    Raises:
        ConfigError: If the name is taken, or the class isn't a metric or requires arguments.
    """
    if name in _BUILT_IN:
        raise ConfigError(f"register_metric: {name} is already registered. Choose another name")
    try:
        one: Any = metric_class() if inspect.isclass(metric_class) else metric_class
    except TypeError as error:
        raise ConfigError(f"register_metric: {name}: {error}. Register an instance") from None
    if not callable(getattr(one, "evaluate", None)):
        raise ConfigError(f"register_metric: {name}: must have a method evaluate(case, trace, outcome), got {metric_class!r}")

    def found(turn: Turn) -> Any:
        return _as_result(one.evaluate(*_agentunit_objects(turn)))

    own = "code_" + re.sub(r"\W", "_", snake_case(name))
    found.__name__ = own if own not in builtin() else own.replace("code_", "code_custom_", 1)
    found.__doc__ = inspect.getdoc(type(one)) or f"Custom metric {name} of AgentUnit."
    found.__module__ = type(one).__module__
    call_metric(metric()(found).__name__, f"agentunit:{name}")
    _DEFAULTS[name] = get_metric(found.__name__)


def _as_result(given: Any) -> Any:
    known = ("name", "value", "score", "detail", "details")
    facts = given if isinstance(given, Mapping) else {key: getattr(given, key) for key in known if hasattr(given, key)}
    value = facts.get("value", facts.get("score"))
    if isinstance(given, Result) or facts.keys().isdisjoint(("value", "score")):
        return given
    others = {key: item for key, item in facts.items() if key not in known}
    detail = {**others, **(facts.get("detail") or facts.get("details") or {})}
    return Result(value, skipped="not_applicable" if value is None else None, detail=detail)


def _agentunit_objects(turn: Turn) -> tuple[SimpleNamespace, SimpleNamespace, SimpleNamespace]:
    given, usage = turn.references, turn.usage
    truth = given.get("expected_output") if turn.ground_truth is None else turn.ground_truth
    case = DatasetCase(
        id=str(given.get("case_id") or turn.turn_id or ""), query=turn.input or "", context=turn.context or None,
        expected_output=None if truth is None else text_of(truth), tools=given.get("tools", given.get("expected_tools")),
        metadata={**given, **turn.metadata},
    )  # fmt: skip
    calls: list[dict[str, Any]] = [
        {"name": call.name, "arguments": call.arguments, "result": call.result, "status": "error" if call.error else "success"}
        | ({} if call.cost_usd is None else {"cost": call.cost_usd})
        for call in turn.tool_calls or ()
    ]
    error = None if turn.error is None else turn.error.message or turn.error.type or "error"
    last = ("agent_response", {"content": turn.output}) if error is None else ("error", {"message": error})
    start = turn.start.timestamp() if turn.start else time.time()
    asked = {"input": {"query": case.query, "context": case.context}}
    events = [("agent_prompt", asked), *(("tool_call", one) for one in calls), last]
    trace = TraceLog(events=[TraceEvent(type=kind, payload=payload, timestamp=start) for kind, payload in events], metadata={})
    trace.events[-1].timestamp += turn.duration_s or 0
    if turn.cost_usd is not None:
        trace.metadata["cost"] = turn.cost_usd
    if usage is not None:
        counts = {"prompt": usage.input_tokens, "completion": usage.output_tokens, "total": usage.total_tokens}
        trace.metadata["usage"] = {f"{kind}_tokens": count or 0 for kind, count in counts.items()}
    return case, trace, AdapterOutcome(success=error is None, output=turn.output, tool_calls=calls, error=error)


def __getattr__(name: str) -> Callable[..., BoundMetric]:
    """Return a replacement for AgentUnit's metric class ``name``: a function with the same parameters that returns a metric."""
    if not any(f"agentunit:{name}" in row["aliases"] for row in builtin().values()):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "CompositeMetric":
        return lambda metrics: get_metric("agentunit:CompositeMetric", metrics=list(metrics))
    return partial(get_metric, f"agentunit:{name}")
