"""Energy, carbon and use of resources. What was not measured is skipped or labelled as an estimate, and never counts as 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from annotated_types import Ge

from ...core.turn import Turn
from ..lib import applies
from ..lib.energy import estimated_kwh
from ..lib.spans import Forest
from ..registry import EPSILON, Result, metric, skip

Amount = Annotated[float, Ge(0)]

_ENERGY = ("energy_kwh", "energy.kwh")
_CARBON = ("carbon_kg", "carbon.kg")
_TOO_MUCH = 1e300
_KM_PER_KG = 4.6
"""Kilometres that an average car drives for a kilogram of CO2."""
_KG_PER_TREE = 21
"""Kilograms of CO2 that a tree takes up in a year."""


def _number(facts: Mapping[str, Any], *names: str) -> float | None:
    """The first of these that is a finite number from 0."""
    for name in names:
        value = facts.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _TOO_MUCH:
            return float(value)
    return None


def _stated(turn: Turn, names: tuple[str, ...]) -> float | None:
    """The number in the turn's metadata, else the sum over its spans, where the number of a span includes all spans below it."""
    known = _number(turn.metadata, *names)
    if known is not None:
        return known
    amounts = [_number(span.attributes, *names) for span in turn.spans]
    states = [amount is not None for amount in amounts]
    if not any(states):
        return None
    _, stated_above = Forest(turn.spans).ancestors(states)
    return sum(amount for amount, above in zip(amounts, stated_above, strict=True) if amount is not None and not above)


def _energy(turn: Turn, estimate: bool) -> tuple[float | None, bool]:
    """Energy in kWh and whether it is an estimate."""
    known = _stated(turn, _ENERGY)
    if known is not None or not estimate:
        return known, False
    return estimated_kwh(turn), True


def _within(actual: float, limit: float) -> float:
    """1 up to the limit, above it the share that the limit is of the actual amount."""
    return min(1.0, limit / actual) if actual > 0 else 1.0


@metric(
    applies=applies.energy,
    uses=("metadata",),
    threshold=1.0,
    aliases=("agentunit:energy_consumption", "agentunit:EnergyMetric"),
    heavy=True,
)
def code_energy_consumption(turn: Turn, *, threshold_kwh: Amount = 0.1, estimate: bool = True) -> Result:
    """Whether the turn took little energy: 1 up to the threshold, above it ``threshold / energy``.

    The energy is ``energy_kwh`` in the turn's metadata, else the sum of the span attribute ``energy.kwh`` (or
    ``energy_kwh``), where the number of a span includes all spans below it. Where neither is known, and the extra
    ``[sustainability]`` is installed, EcoLogits' estimate for the turn's model calls counts, by model and output tokens (the
    middle of its range); there is none when it does not know the model of one of the calls, or for more than 500 calls. Energy
    0 is 1. Skipped with ``missing:energy`` when there is no number. Passes at the threshold or below, unless a ``threshold``
    of the value is set.

    Parameters:
        threshold_kwh: energy in kWh, inclusive.
        estimate: whether an estimate may stand for a measurement.

    Detail: ``energy_kwh``, ``threshold_kwh``, ``under_threshold``; ``estimated`` when the energy is an estimate.

    Source: AgentUnit energy_consumption.
    """
    energy, estimated = _energy(turn, estimate)
    if energy is None:
        return skip("missing:energy")
    detail: dict[str, Any] = {
        "energy_kwh": energy,
        "threshold_kwh": threshold_kwh,
        "under_threshold": energy <= threshold_kwh,
    }
    if estimated:
        detail["estimated"] = True
    return Result(_within(energy, threshold_kwh), detail=detail)


@metric(
    applies=applies.carbon,
    uses=("metadata",),
    threshold=1.0,
    aliases=("agentunit:carbon_emissions", "agentunit:CarbonMetric"),
    heavy=True,
)
def code_carbon_emissions(
    turn: Turn, *, threshold_kg: Amount = 0.05, grid_intensity: Amount = 0.475, estimate: bool = True
) -> Result:
    """Whether the turn emitted little CO2: 1 up to the threshold, above it ``threshold / carbon``.

    The carbon is ``carbon_kg`` in the turn's metadata, else the sum of the span attribute ``carbon.kg`` (or ``carbon_kg``),
    where the number of a span includes all spans below it, else the energy times ``grid_intensity``. The energy is found as for
    ``code_energy_consumption``, so it can be an estimate. Carbon 0 is 1. Skipped with ``missing:energy`` when neither is
    known. Passes at the threshold or below, unless a ``threshold`` of the value is set.

    Parameters:
        threshold_kg: kilograms of CO2 equivalent, inclusive.
        grid_intensity: kilograms of CO2 equivalent per kWh.
        estimate: whether an estimate of the energy may stand for a measurement.

    Detail: ``carbon_kg``, ``threshold_kg``, ``under_threshold``, ``equivalents`` (``km_driven`` by car, ``trees_needed`` for a
    year); ``energy_kwh`` when the carbon was computed from it, and ``estimated`` when that is an estimate.

    Source: AgentUnit carbon_emissions.
    """
    carbon = _stated(turn, _CARBON)
    computed: dict[str, Any] = {}
    if carbon is None:
        energy, estimated = _energy(turn, estimate)
        if energy is None:
            return skip("missing:energy")
        carbon = energy * grid_intensity
        computed = {"energy_kwh": energy, "estimated": True} if estimated else {"energy_kwh": energy}
    return Result(
        _within(carbon, threshold_kg),
        detail={
            "carbon_kg": carbon,
            "threshold_kg": threshold_kg,
            "under_threshold": carbon <= threshold_kg,
            "equivalents": {"km_driven": carbon * _KM_PER_KG, "trees_needed": carbon / _KG_PER_TREE},
            **computed,
        },
    )


def _use(actual: float, target: float) -> float:
    """1 from half of the target to 1.2 times it; below that in proportion, above it lower by the excess."""
    if target == 0:
        return 1.0 if actual == 0 else 0.0
    ratio = actual / target
    if ratio > 1.2 + EPSILON:
        return max(0.0, 1 - (ratio - 1))
    return min(1.0, ratio / 0.5)


def _resource(turn: Turn, name: str) -> float | None:
    known = _number(turn.metadata, name)
    if known is not None:
        return known
    return next((value for span in turn.spans if (value := _number(span.attributes, name)) is not None), None)


@metric(uses=("metadata",), aliases=("agentunit:resource_utilization", "agentunit:ResourceUtilizationMetric"))
def code_resource_utilization(
    turn: Turn, *, target_cpu_percent: Amount = 80, target_memory_gb: Amount = 4, target_gpu_percent: Amount = 80
) -> Result:
    """How well the machine was used: the mean over processor, memory and GPU of how close each is to its target.

    With ``r = used / target`` a resource counts 1 from 0.5 to 1.2, below ``r / 0.5`` and above ``1 - (r - 1)``, at least 0
    (so just above 1.2 it drops to 0.8). With a target of 0 it counts 1 when unused, else 0. A resource that is unknown is
    left out of the mean; skipped with ``missing:resources`` when all are. They are ``cpu_percent``, ``memory_mb`` and
    ``gpu_percent`` in the turn's metadata, else in the attributes of its first span that has them.

    Parameters:
        target_cpu_percent, target_gpu_percent: percent.
        target_memory_gb: gigabytes of 1024 megabytes.

    Detail: ``cpu``, ``memory``, ``gpu`` as far as known, each with what was used (``used_percent`` or ``used_gb``), its target
    and its ``score``.

    Source: AgentUnit resource_utilization.
    """
    memory_mb = _resource(turn, "memory_mb")
    found = [
        ("cpu", "percent", _resource(turn, "cpu_percent"), target_cpu_percent),
        ("memory", "gb", None if memory_mb is None else memory_mb / 1024, target_memory_gb),
        ("gpu", "percent", _resource(turn, "gpu_percent"), target_gpu_percent),
    ]
    detail = {
        name: {f"used_{unit}": used, f"target_{unit}": target, "score": _use(used, target)}
        for name, unit, used, target in found
        if used is not None
    }
    if not detail:
        return skip("missing:resources")
    return Result(sum(resource["score"] for resource in detail.values()) / len(detail), detail=detail)
