"""Outlets as a configuration asks for them: what a new one has to touch."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.config.outlets import OutletOptions
from otel_agenteval.config.section import options_of
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.outlets import factory
from otel_agenteval.outlets.base import Outlet, Setup
from otel_agenteval.outlets.factory import MODULES, outlets_from
from tests.outlets.factories import scored_turn
from tests.support.process import output_of


def made(**options: Any) -> list[Outlet]:
    config = load_config({"outlets": {"log_events": False, "prometheus": None, **options}})
    return outlets_from(Setup(config, Telemetry(), lambda: "i-1", "0"))


def test_every_option_of_an_outlet_has_its_module_and_no_other() -> None:
    assert {*MODULES, "span_events"} == options_of(OutletOptions).keys(), "span events are written where the root ends"


@pytest.mark.parametrize("option", MODULES)
def test_each_module_makes_its_own_outlet(option: str, tmp_path: Path) -> None:
    wanted: dict[str, Any] = {
        "log_events": True, "prometheus": {"port": 0}, "otlp_metrics": True, "jsonl": str(tmp_path / "scores"),
        "otlp_file": str(tmp_path / "spans"),
        "webhook": {"url": "http://127.0.0.1:1"},
        "store": str(tmp_path / "store"), "console": True, "otlp": {"endpoint": "http://127.0.0.1:1"},
    }  # fmt: skip
    [outlet] = made(**{option: wanted[option]})
    assert outlet.name == option
    outlet.close()
    taken = list(inspect.signature(import_module(MODULES[option], "otel_agenteval.outlets").outlet_from).parameters)
    assert taken == ["wanted", "setup"]


def test_scores_leave_in_the_order_of_the_table(tmp_path: Path) -> None:
    outlets = made(jsonl=str(tmp_path / "scores"), log_events=True, otlp_metrics=True)
    assert [outlet.name for outlet in outlets] == ["log_events", "otlp_metrics", "jsonl"]


def test_a_new_outlet_is_its_module_its_option_and_a_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    emitted: list[Any] = []

    class New(Outlet):
        name = "new"

        def emit(self, batch: Any) -> None:
            emitted.extend(batch)

    module = ModuleType("otel_agenteval.outlets.new")
    module.outlet_from = lambda wanted, setup: New()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(factory, "MODULES", {"new": ".new"})
    monkeypatch.setattr(OutletOptions, "new", True, raising=False)
    engine = engine_from(load_config({}))
    engine.outlets.emit([scored_turn()])
    engine.shutdown()
    assert len(emitted) == 1


def test_an_outlet_that_is_off_is_not_even_imported() -> None:
    script = """
import sys
from otel_agenteval.config.loader import load_config
from otel_agenteval.engine.builder import engine_from

engine_from(load_config({"outlets": {"prometheus": None, "log_events": False}})).shutdown()
print(sorted(name for name in sys.modules if name.startswith("otel_agenteval.outlets.")))
"""
    loaded = output_of(script)
    for module in MODULES.values():
        assert f"otel_agenteval.outlets{module}'" not in loaded
