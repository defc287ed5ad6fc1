"""The package is also a start-up hook of other programs: importing it must cost them nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pydantic", "numpy", "opentelemetry", "orjson", "httpx", "grpc", "prometheus_client", "yaml")


@pytest.mark.parametrize("module", ["otel_agenteval", "otel_agenteval.instrumentation.autoload"])
def test_importing_brings_in_no_other_package_and_starts_no_thread(module: str) -> None:
    program = f"import sys, threading, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}), threading.active_count())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    *modules, threads = done.stdout.split()
    assert "otel_agenteval" in modules
    assert set(modules) & set(HEAVY) == set()
    assert threads == "1"


INSTRUMENT = """
import sys
from opentelemetry.sdk.trace import TracerProvider
before = {*sys.modules}
import otel_agenteval as oa
handle = oa.instrument(tracer_provider=TracerProvider())
handle.processor.engine.warm_up.stop()
"""
UNUSED = (
    "numpy",
    "pydantic",
    "pydantic_core",
    "jsonschema_rs",
    "genai_prices",
    "httpx",
    "grpc",
    "google",
    "sqlite3",
    "yaml",
    "asyncio",
    "phonenumbers",
    "prometheus_client",
    "ssl",
    "email",
    "difflib",
)
OF_THE_PACK = {"answer", "guards", "performance_cost", "privacy", "text_matching", "tool_trace"}


def after_instrument(more: str) -> set[str]:
    """Modules that a fresh process has imported for ``instrument()``, and what it does then."""
    program = f"{INSTRUMENT}{more}\nprint(*sorted({{*sys.modules}} - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return {*done.stdout.split()}


def metrics_in(modules: set[str]) -> set[str]:
    """The families of metrics among them."""
    return {name.rpartition(".")[2] for name in modules if name.startswith("otel_agenteval.metrics.code.")}


def test_a_configuration_that_nobody_gives_is_not_read_by_pydantic() -> None:
    program = "import sys, otel_agenteval as oa; print(oa.load_config().exit_timeout, 'pydantic' in sys.modules, 'pydantic_core' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["5.0", "False", "False"]


def test_the_one_line_imports_no_metric_and_nothing_that_only_metrics_and_outlets_of_others_need() -> None:
    modules = after_instrument("")
    assert "otel_agenteval.metrics.registry" in modules
    assert metrics_in(modules) == set()
    assert {name.split(".")[0] for name in modules} & set(UNUSED) == set()
    assert not {name for name in modules if name.startswith("otel_agenteval.judging")}


def test_the_default_pack_imports_its_own_families_only() -> None:
    warm = "for step in handle.processor.engine.pipeline.evaluator.warm_up(): pass"
    modules = after_instrument(warm)
    assert metrics_in(modules) == OF_THE_PACK
    assert not {name for name in modules if name.startswith(("otel_agenteval.metrics.llm", "otel_agenteval.metrics.embed"))}


def test_a_metric_that_is_named_is_the_only_one_that_is_imported() -> None:
    assert metrics_in(after_instrument("oa.get_metric('code_bleu', threshold=0.2)")) == {"nlp_overlap"}


def test_the_help_of_the_sidecar_costs_the_import_of_no_server() -> None:
    program = "import sys; from otel_agenteval.cli.main import main\ntry: main(['serve', '--help'])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    modules = {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert {"otel_agenteval", "argparse"} <= modules
    assert modules & set(HEAVY) == set()


def test_the_program_above_would_see_a_heavy_package() -> None:
    program = "import sys, otel_agenteval.config.yaml, otel_agenteval as oa; oa.load_config({'exit_timeout': '1s'}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert {"pydantic", "yaml"} <= set(done.stdout.split())


def test_the_garbage_collector_has_little_to_go_over() -> None:
    """What is alive after the first turns is looked at by each full collection of the agent's process: 24,000 objects are the SDK's."""
    program = """
import gc
from opentelemetry.sdk.trace import TracerProvider
import otel_agenteval as oa
provider = TracerProvider()
handle = oa.instrument(tracer_provider=provider)
for _ in range(20):
    with provider.get_tracer("app").start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
        pass
assert handle.flush(30)
handle.processor.engine.warm_up.stop()
gc.collect()
print(len(gc.get_objects()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) < 54_000, done.stdout
