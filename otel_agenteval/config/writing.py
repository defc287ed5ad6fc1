"""A configuration written in the form in which it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BeforeValidator

from .masking import masked
from .metrics import GroupOptions, MetricEntry
from .outlets import PrometheusOptions
from .references import GivenReferences
from .sampling import CascadeOptions, SampleOptions, SampleRate
from .section import _Section
from .selector import Selector
from .types import _rate, _usd, duration_text, size, size_text

if TYPE_CHECKING:
    from .root import Config


def effective_yaml(config: Config) -> str:
    """The configuration as YAML with all defaults; secrets are shown as ``****``, wherever they stand."""
    from . import yaml  # only who has a file or asks for one pays for it

    return yaml.dump(masked(config.to_dict()))


def _written(section: _Section) -> Any:
    if isinstance(section, MetricEntry):
        beside = {key: _written(getattr(section, key)) for key in ("when", "sample") if getattr(section, key) is not None}
        given = {} if section.policy == "trend" and "policy" not in section.model_fields_set else {"policy": section.policy}
        return {section.name: section.params, **given, **beside}
    if isinstance(section, GroupOptions):
        shared = {name: value for name in ("when", "sample") if (value := getattr(section, name)) is not None}
        shared = {name: _written(value) for name, value in shared.items()}
        return {"policy": section.policy, **shared, "metrics": [_written(entry) for entry in section.metrics]}
    if isinstance(section, GivenReferences):
        when = {} if section.when is None else {"when": _written(section.when)}
        return {**section.references, **when}
    if isinstance(section, Selector):
        return {
            name: list(value) if isinstance(value, tuple) else dict(value)
            for name in type(section).model_fields
            if (value := getattr(section, name))
        }
    if isinstance(section, (SampleOptions, SampleRate, CascadeOptions)):
        found = {name: getattr(section, name) for name in type(section).model_fields if name in section.model_fields_set}
        found = {name: _written(value) if isinstance(value, _Section) else value for name, value in found.items()}
        return {
            name: [_written(item) if isinstance(item, _Section) else item for item in value]
            if isinstance(value, tuple)
            else value
            for name, value in found.items()
        }
    if isinstance(section, PrometheusOptions):
        return {"registry": section.registry} if section.port is None else {"port": section.port}
    out: dict[str, Any] = {}
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, _Section):
            value = _written(value)
        elif isinstance(value, tuple):
            value = [_written(item) if isinstance(item, _Section) else item for item in value]
        elif isinstance(value, dict):
            value = {key: _written(item) if isinstance(item, _Section) else item for key, item in value.items()}
        elif isinstance(value, float) and not {_usd, _rate}.intersection(_validators(field.metadata)):
            value = duration_text(value)
        elif size in _validators(field.metadata):
            value = size_text(value)
        out[name] = value
    return out


def _validators(metadata: list[Any]) -> list[Any]:
    return [item.func for item in metadata if isinstance(item, BeforeValidator)]
