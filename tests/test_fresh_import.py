"""Importing the package is cheap, because other programs import it as a startup hook."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"pydantic", "numpy", "opentelemetry", "orjson", "httpx", "grpc", "prometheus_client", "yaml"}
UNUSED = {
    "numpy", "pydantic", "pydantic_core", "jsonschema_rs", "genai_prices", "httpx", "grpc", "google", "sqlite3", "yaml", "asyncio", "phonenumbers",
    "prometheus_client", "ssl", "email", "difflib",
}  # fmt: skip
OF_THE_PACK = {"answer", "guards", "performance_cost", "privacy", "text_matching", "tool_trace"}
INSTRUMENT = """
import json, sys
from opentelemetry.sdk.trace import TracerProvider
before = {*sys.modules}
import otel_agenteval as oa
handle = oa.instrument(tracer_provider=TracerProvider())
handle.processor.engine.warm_up.stop()
steps = [sorted({*sys.modules} - before)]
oa.get_metric('code_bleu', threshold=0.2)
steps.append(sorted({*sys.modules} - before))
for step in handle.processor.engine.pipeline.evaluator.warm_up():
    pass
steps.append(sorted({*sys.modules} - before))
print(json.dumps(steps))
"""


def output_of(program: str) -> str:
    """Return the output of a new process."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100).stdout


def packages(modules: list[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def metrics_in(modules: list[str]) -> set[str]:
    """Return the metric families among modules."""
    return {name.rpartition(".")[2] for name in modules if name.startswith("otel_agenteval.metrics.code.")}


@pytest.mark.parametrize("module", ["otel_agenteval", "otel_agenteval.instrumentation.autoload"])
def test_importing_brings_in_no_other_package_and_starts_no_thread(module: str) -> None:
    *modules, threads = output_of(f"import sys, threading, {module}; print(*sys.modules, threading.active_count())").split()
    assert "otel_agenteval" in modules
    assert packages(modules) & HEAVY == set()
    assert threads == "1"


def test_instrumenting_imports_only_what_the_configured_metrics_need() -> None:
    instrumented, with_bleu, warm = json.loads(output_of(INSTRUMENT))
    assert "otel_agenteval.metrics.registry" in instrumented
    assert metrics_in(instrumented) == set()
    assert packages(instrumented) & UNUSED == set()
    assert not {name for name in instrumented if name.startswith("otel_agenteval.judging")}
    assert metrics_in(with_bleu) == {"nlp_overlap"}
    assert metrics_in(warm) == {*OF_THE_PACK, "nlp_overlap"}
    assert not {name for name in warm if name.startswith(("otel_agenteval.metrics.llm", "otel_agenteval.metrics.embed"))}


def test_instrumenting_with_a_judge_imports_no_http_client() -> None:
    config = {"metrics": ["llm_relevance"], "judge": {"base_url": "http://127.0.0.1:9/v1", "model": "none"}}
    program = f"""
import sys
from opentelemetry.sdk.trace import TracerProvider
import otel_agenteval as oa
oa.instrument(tracer_provider=TracerProvider(), config={config!r})
print(*sys.modules)
"""
    modules = output_of(program).split()
    assert "otel_agenteval.judging.models" in modules
    assert not packages(modules) & {"httpx", "httpcore", "grpc", "asyncio"}


def test_default_configuration_and_help_of_the_sidecar_import_no_server() -> None:
    program = (
        "import sys, otel_agenteval as oa; assert oa.load_config().exit_timeout == 5; from otel_agenteval.cli.main import main\n"
        "try: main(['serve', '--help'])\nfinally: print(*sys.modules)"
    )
    modules = packages(output_of(program).splitlines()[-1].split())
    assert {"otel_agenteval", "argparse"} <= modules
    assert modules & HEAVY == set()


def test_the_garbage_collector_has_little_to_go_over() -> None:
    """Each full garbage collection of the agent's process visits the live objects. 24,000 of them are the SDK's."""
    program = """
import gc
from opentelemetry.sdk.trace import TracerProvider
import otel_agenteval as oa
provider = TracerProvider()
handle = oa.instrument(tracer_provider=provider)
for _ in range(20):
    with provider.get_tracer("app").start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
        pass
assert handle.flush(60)
handle.processor.engine.warm_up.stop()
gc.collect()
print(len(gc.get_objects()))
"""
    assert int(output_of(program)) < 54_000
