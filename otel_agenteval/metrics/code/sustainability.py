"""These metrics measure energy, carbon emissions, and resource use. Without a measurement, they are skipped or use an estimate."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from annotated_types import Ge

from ...core.errors import MissingExtra
from ...core.extras import require
from ...core.turn import LlmCall, Turn
from ..lib import applies
from ..lib.spans import Forest
from ..lib.values import word_list
from ..registry import EPSILON, Result, metric, skip

Amount = Annotated[float, Ge(0)]

_ENERGY = ("energy_kwh", "energy.kwh")
_CARBON = ("carbon_kg", "carbon.kg")
_TOO_MUCH = 1e300
_KM_PER_KG = 4.6
"""Kilometers that an average car drives per kilogram of CO2."""
_KG_PER_TREE = 21
"""Kilograms of CO2 that a tree absorbs in a year."""


def _number(facts: Mapping[str, Any], *names: str) -> float | None:
    for name in names:
        value = facts.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _TOO_MUCH:
            return float(value)
    return None


def _stated(turn: Turn, names: tuple[str, ...]) -> float | None:
    """Return the amount with one of these names in the metadata or, if missing, its sum over the outermost spans that have it."""
    if (known := _number(turn.metadata, *names)) is not None:
        return known
    amounts = [_number(span.attributes, *names) for span in turn.spans]
    if not any(states := [amount is not None for amount in amounts]):
        return None
    _, stated_outside = Forest(turn.spans).ancestors(states)
    return sum(amount for amount, outside in zip(amounts, stated_outside, strict=True) if amount is not None and not outside)


def _energy(turn: Turn, estimate: bool) -> tuple[float | None, bool]:
    known = _stated(turn, _ENERGY)
    return (known, False) if known is not None or not estimate else (_estimated_kwh(turn), True)


# --- estimates, because neither spans nor providers report the energy of model calls

_MOST_CALLS = 500
"""Maximum number of model calls in a turn whose energy is estimated. An estimate takes about a millisecond per call."""
_Estimate = Callable[[str, str, int, float], "float | None"]


def _estimated_kwh(turn: Turn) -> float | None:
    """Return the model calls' estimated energy, or None if any can't be estimated. Ignore failed calls without output tokens."""
    calls = [call for call in turn.llm_calls if call.output_tokens is not None or call.error is None]
    if not 0 < len(calls) <= _MOST_CALLS or any(call.output_tokens is None or not call.model for call in calls):
        return None
    if (estimate := _ecologits_estimate()) is None:
        return None
    found = [_kwh_of_call(call, estimate) for call in calls]
    return None if None in found else sum(filter(None, found))


def _kwh_of_call(call: LlmCall, estimate: _Estimate) -> float | None:
    model, known = call.model or "", word_list("energy_providers")
    named = (call.provider or "").lower()
    providers = [provider for provider, names in known.items() if named in names] or list(known)
    seconds = math.inf if call.duration_s is None else call.duration_s
    for name in dict.fromkeys((model, model.rpartition("/")[2])):  # with and without a gateway's prefix
        for provider in providers:
            if (energy := estimate(provider, name, call.output_tokens or 0, seconds)) is not None:
                return energy
    return None


@lru_cache(maxsize=1)
def _ecologits_estimate() -> _Estimate | None:
    loggers = logging.getLoggerClass()
    try:
        tracers = require("ecologits.tracers.utils", feature="an energy estimate", extra="sustainability")
        repository = require("ecologits.model_repository", feature="an energy estimate", extra="sustainability")
    except MissingExtra:
        return None
    finally:
        logging.setLoggerClass(loggers)  # importing the library replaces the logger class of the whole process
    logger = logging.getLogger("ecologits")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.ERROR)  # no warning for each model of unpublished size, because the detail has "estimated"

    def estimate(provider: str, model: str, output_tokens: int, seconds: float) -> float | None:
        if repository.models.find_model(provider=provider, model_name=model) is None:
            return None
        try:
            energy = tracers.llm_impacts(provider, model, output_tokens, seconds).energy.value
            kwh = float(energy) if isinstance(energy, (int, float)) else (energy.min + energy.max) / 2
            return kwh if math.isfinite(kwh) and kwh >= 0 else None
        except Exception:  # no energy, or numbers that the library's formulas reject
            return None

    return estimate


def _share_within(actual: float, limit: float) -> float:
    return min(1.0, limit / actual) if actual > 0 else 1.0


@metric(
    uses=("metadata",),
    threshold=1.0,
    applies=applies.energy,
    aliases=("agentunit:energy_consumption", "agentunit:EnergyMetric"),
    traits=("heavy",),
)
def code_energy_consumption(turn: Turn, *, threshold_kwh: Amount = 0.1, estimate: bool = True) -> Result:
    """Energy efficiency of a turn: 1 up to ``threshold_kwh``, then ``threshold_kwh / energy``.

    The turn's energy use comes from the first of these sources that has a value:

    1. ``energy_kwh`` in the turn's metadata
    2. the sum of the span attribute ``energy.kwh`` (or ``energy_kwh``) over the outermost spans that have it
    3. an estimate by EcoLogits, based on each call's model and output tokens (extra ``[sustainability]``)

    If EcoLogits estimates a range, the metric uses its middle. EcoLogits must support the model of each call, and the turn can
    have at most 500 calls. Failed calls without output tokens count as 0. If no source has a value, the score is skipped as ``missing:energy``.

    Parameters:
        threshold_kwh: Highest energy use, in kWh, that still scores 1.
        estimate: If true, the metric estimates energy that wasn't measured. If you set neither this option nor ``threshold_kwh``
            nor ``threshold``, turns without a measurement are skipped.

    Detail: ``energy_kwh``, ``threshold_kwh``, ``under_threshold``, and, for an estimate, ``estimated``.
    """
    energy, estimated = _energy(turn, estimate)
    if energy is None:
        return skip("missing:energy")
    detail: dict[str, Any] = {"energy_kwh": energy, "threshold_kwh": threshold_kwh, "under_threshold": energy <= threshold_kwh}
    detail |= {"estimated": True} if estimated else {}
    return Result(_share_within(energy, threshold_kwh), detail=detail)


@metric(
    uses=("metadata",),
    threshold=1.0,
    applies=applies.carbon,
    aliases=("agentunit:carbon_emissions", "agentunit:CarbonMetric"),
    traits=("heavy",),
)
def code_carbon_emissions(
    turn: Turn, *, threshold_kg: Amount = 0.05, grid_intensity: Amount = 0.475, estimate: bool = True
) -> Result:
    """Carbon efficiency of the turn: 1 up to ``threshold_kg``, then ``threshold_kg / carbon``.

    The turn's emissions come from the first of these sources that has a value:

    1. ``carbon_kg`` in the turn's metadata
    2. the sum of the span attribute ``carbon.kg`` (or ``carbon_kg``) over the outermost spans that have it
    3. the energy of ``code_energy_consumption``, which can be an estimate, multiplied by ``grid_intensity``

    If no source has a value, the score is skipped as ``missing:energy``.

    Parameters:
        threshold_kg: Highest emissions, in kg of CO2 equivalent, that still score 1.
        grid_intensity: Kilograms of CO2 equivalent per kWh.
        estimate: If true, the metric estimates energy that wasn't measured. If you set neither this option nor ``threshold_kg``
            nor ``threshold``, turns without a measurement are skipped.

    Detail: ``carbon_kg``, ``threshold_kg``, ``under_threshold``, and ``equivalents`` (``km_driven`` by car, and ``trees_needed`` to
    absorb the CO2 in a year). Emissions computed from energy add ``energy_kwh`` and, for an estimate, ``estimated``.
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
        _share_within(carbon, threshold_kg),
        detail={
            "carbon_kg": carbon,
            "threshold_kg": threshold_kg,
            "under_threshold": carbon <= threshold_kg,
            "equivalents": {"km_driven": carbon * _KM_PER_KG, "trees_needed": carbon / _KG_PER_TREE},
            **computed,
        },
    )


def _closeness_to_target(actual: float, target: float) -> float:
    if target == 0:
        return 1.0 if actual == 0 else 0.0
    if (ratio := actual / target) > 1.2 + EPSILON:
        return max(0.0, 1 - (ratio - 1))
    return min(1.0, ratio / 0.5)


def _resource(turn: Turn, name: str) -> float | None:
    if (known := _number(turn.metadata, name)) is not None:
        return known
    return next((value for span in turn.spans if (value := _number(span.attributes, name)) is not None), None)


@metric(uses=("metadata",), aliases=("agentunit:resource_utilization", "agentunit:ResourceUtilizationMetric"))
def code_resource_utilization(
    turn: Turn, *, target_cpu_percent: Amount = 80, target_memory_gb: Amount = 4, target_gpu_percent: Amount = 80
) -> Result:
    """Utilization of CPU, memory, and GPU: 1 if each is near its target, and otherwise lower.

    The value is the mean score of all resources whose usage is known. A resource's score depends on ``r = used / target``:

    - ``r / 0.5`` if ``r`` is below 0.5
    - 1 if ``r`` is from 0.5 to 1.2
    - ``max(0, 2 - r)`` if ``r`` is above 1.2
    - if the target is 0, 1 for an unused resource, otherwise 0

    If no resource's usage is known, the score is skipped as ``missing:resources``. Each value (``cpu_percent``, ``memory_mb``,
    ``gpu_percent``) comes from the turn's metadata or, if missing there, from the first span with this attribute.

    Parameters:
        target_cpu_percent: Target CPU utilization in percent.
        target_gpu_percent: Target GPU utilization in percent.
        target_memory_gb: Target memory use, in gigabytes of 1024 MB.

    Detail: ``cpu``, ``memory``, and ``gpu`` if known, each with its usage (``used_percent`` or ``used_gb``), target, and ``score``.
    """
    memory_mb = _resource(turn, "memory_mb")
    found = [
        ("cpu", "percent", _resource(turn, "cpu_percent"), target_cpu_percent),
        ("memory", "gb", None if memory_mb is None else memory_mb / 1024, target_memory_gb),
        ("gpu", "percent", _resource(turn, "gpu_percent"), target_gpu_percent),
    ]
    detail = {
        name: {f"used_{unit}": used, f"target_{unit}": target, "score": _closeness_to_target(used, target)}
        for name, unit, used, target in found
        if used is not None
    }
    if not detail:
        return skip("missing:resources")
    return Result(sum(resource["score"] for resource in detail.values()) / len(detail), detail=detail)
