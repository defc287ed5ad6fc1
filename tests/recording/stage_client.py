"""Play the stage's scenarios from a Python framework; see stage.py.

    play("set-name", prepare)

``prepare(plan)`` gives a function that takes what the user says and gives the agent's answer (either may be a coroutine function).
``plan`` is what the stage told: ``plan["tools"]``, ``plan["conversation_id"]``, ``plan["sub_agent"]``, ``plan["documents"]``,
``plan["stream"]``, and ``plan["scenario"]``; one that does not fit raises :class:`Skip`. The port is in STAGE_PORT, the scenarios to
play (all without it) in SCENARIOS. Each scenario has an event loop and a context of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import json
import os
import sys
import urllib.error
import urllib.request
from importlib.metadata import version

BASE = f"http://127.0.0.1:{os.environ.get('STAGE_PORT', '8511')}"


class Skip(Exception):
    """The framework has nothing for this scenario."""


class ToolError(Exception):
    """A tool that fails, as the stage says."""


def post(path: str, body: dict) -> dict:
    request = urllib.request.Request(BASE + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def tool(name: str, **arguments):
    """A tool's body."""
    try:
        result = post(f"/tools/{name}", arguments)["result"]
    except urllib.error.HTTPError as error:
        raise ToolError(json.loads(error.read())["message"]) from None
    return result if isinstance(result, str) else json.dumps(result)


def rescript(plan: dict, calls: dict[str, tuple[str, dict]], salt: str = "again") -> None:
    """The sub-agent scenario once more, with the framework's own name and arguments for a hand-over: name in the script -> both."""
    t = plan["steps"]
    steps = json.loads(json.dumps(t))
    for step in steps:
        for call in step.get("tool_calls", ()):
            if call["name"] in calls:
                call["name"], call["arguments"] = calls[call["name"]]
    post("/__script", {"steps": steps, "salt": salt})


def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return tool("get_weather", city=city)


def convert_currency(amount: float, currency: str) -> str:
    """Convert an amount of US dollars to another currency."""
    return tool("convert_currency", amount=amount, currency=currency)


def lookup_order(order_id: str) -> str:
    """Look up an order by its id."""
    return tool("lookup_order", order_id=order_id)


def check_job(job_id: str) -> str:
    """Check whether a job is done."""
    return tool("check_job", job_id=job_id)


TOOLS = {function.__name__: function for function in (get_weather, convert_currency, lookup_order, check_job)}


def tools_of(plan: dict) -> list:
    return [TOOLS[name] for name in plan["tools"] if name in TOOLS] or ([] if plan["documents"] else [get_weather])


def exporters(service: str, resource: dict | None = None, logs: bool = False):
    """A tracer provider (and a logger provider) that write to the stage, both set globally."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = Resource.create({"service.name": service, **(resource or {})})
    provider = TracerProvider(resource=about)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{BASE}/v1/traces"), schedule_delay_millis=300))
    trace.set_tracer_provider(provider)
    _FLUSH.append(provider.force_flush)
    if not logs:
        return provider
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    log_provider = LoggerProvider(resource=about)
    log_provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{BASE}/v1/logs"), schedule_delay_millis=300))
    set_logger_provider(log_provider)
    _FLUSH.append(log_provider.force_flush)
    return provider, log_provider


_FLUSH: list = []


def flush() -> None:
    for one in _FLUSH:
        one()


async def _await(value):
    return await value if inspect.isawaitable(value) else value


async def _play(name: str, scenario: str, prepare, packages: tuple[str, ...], said: dict) -> None:
    plan = post("/control/start", {"set": name, "scenario": scenario}) | {"scenario": scenario}
    try:
        ask = await _await(prepare(plan))
    except Skip as reason:
        sys.stderr.write(f"{name}/{scenario}: skipped {reason}\n")
        return
    for index, turn in enumerate(plan["turns"]):
        post("/control/turn", {"index": index})
        try:
            answer = {"answer": await _await(ask(turn["user_input"]))}
        except Exception as error:  # what the application sees when its agent fails
            answer = {"error": {"type": type(error).__name__, "message": str(error)[:300]}}
        post("/control/answer", answer)
    gc.collect()  # spans around generators that nobody read to their end
    await asyncio.sleep(0.1)
    await asyncio.to_thread(flush)
    versions = {package: version(package) for package in packages}
    done = post("/control/finish", {"versions": versions, **said})
    sys.stderr.write(f"{name}/{scenario}: {done} {str(answer)[:110]}\n")


def play(name: str, prepare, packages: tuple[str, ...] = (), scenarios: str = "", **said) -> None:
    """Play a set; ``said`` goes into its truth.json."""
    chosen = os.environ.get("SCENARIOS") or scenarios or "s1 s2 s3 s4 s5 s6 s7 s8 s10 s10b s11 s9 s9b"
    for scenario in chosen.split():
        contextvars.Context().run(asyncio.run, _play(name, scenario, prepare, packages, said))
