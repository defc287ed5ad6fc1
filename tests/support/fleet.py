"""Three services with four scripted agents and one sidecar, which trigger everything that dashboards and alerts show.

Spans, engine, judge client and ``/metrics`` are real. Behavior of agents and judge is random with a fixed seed. Spans have scripted
times, so turns take no real time.
"""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from typing_extensions import Self

import otel_agenteval as oa
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from tests.support.judges import ScriptedModels
from tests.support.service import Sidecar

AGENTS = {"shop": ("trip-planner", "concierge"), "desk": ("helpdesk",), "outpost": ("courier",)}
"""Agents by service. The service ``outpost`` doesn't use otel-agenteval. It exports OTLP to a sidecar."""

LEAK = "Your train leaves at 06:28. Log in with ghp_" + "x7Yk2LmQ9RtV4WbN1CzD8FgH5JsK3PaE6UvX"
"""An answer with a critical finding."""

_MODELS = {"trip-planner": "large-1", "concierge": "small-1", "helpdesk": "small-1", "courier": "small-1"}
_USD = {"large-1": (3e-6, 15e-6), "small-1": (3e-7, 12e-7)}


class _Judge(ScriptedModels):
    """Judge that finds most answers relevant, and sometimes fails."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self._dice = dice
        self._lock = threading.Lock()
        self.outage = False
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who is shut down hangs up

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            if self.outage or self._dice.random() < 0.04:
                return 400, {"error": {"message": "as scripted"}}
            score = round(100 * self._dice.betavariate(7, 1.6))
        text = json.dumps({"score": score, "reason": "As thrown."})
        return 200, {
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 700, "completion_tokens": 40},
        }


class _Service:
    """A service: a provider with our processor, and a metrics page."""

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        self.provider = TracerProvider(resource=Resource({"service.name": name}), shutdown_on_exit=False)
        self.handle = oa.instrument(tracer_provider=self.provider, config=config, prometheus_port=0)
        self.tracer = self.provider.get_tracer("acme.app")
        assert self.handle.processor is not None
        outlets = self.handle.processor.engine.outlets
        self.address = f"127.0.0.1:{next(outlet.port for outlet in outlets if isinstance(outlet, PrometheusOutlet))}"

    def flush(self) -> None:
        self.handle.flush(10)

    def close(self) -> None:
        judging = self.handle.processor.engine.judging
        self.handle.shutdown()
        for thread in judging._threads:  # a running scrape may have reconnected after the shutdown
            thread.join(10)
        judging.runner.models.judge.close()


class _Outpost:
    """A service that exports its spans, and the sidecar that scores them."""

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        store = str(Path(self.folder.name) / "scores.db")
        outlets, journal = {"log_events": False, "store": store}, str(Path(self.folder.name) / "journal")
        queue = {"backend": "sqlite", "path": str(Path(self.folder.name) / "queue.db")}  # don't use the default path
        config = {**config, "judge": {**config["judge"], "queue": queue}}
        self.sidecar = Sidecar({**config, "turn": {"decision_delay": "500ms"}, "outlets": outlets, "serve": {"journal": journal}})
        self.provider = TracerProvider(resource=Resource({"service.name": name}), shutdown_on_exit=False)
        self._spans = BatchSpanProcessor(self.sidecar.exporter("http"), schedule_delay_millis=3_600_000)
        self.provider.add_span_processor(self._spans)
        self.tracer = self.provider.get_tracer("acme.app")
        self.address = self.sidecar.addresses["metrics"]

    def flush(self) -> None:
        self._spans.force_flush()

    def close(self) -> None:
        self.provider.shutdown()
        self.sidecar.stop()
        self.folder.cleanup()


class Fleet:
    """The services. :meth:`play` sends turns through them. The ``with`` block ends them.

    Args:
        trouble: True if judge, queue, budget and outlets reach their limits too.
        seed: seed of the random numbers.
    """

    def __init__(self, *, trouble: bool = True, seed: int = 1) -> None:
        self._dice = random.Random(seed)
        self.judge = _Judge(random.Random(seed + 1))
        self.trace_ids: set[str] = set()
        """Trace ids of all turns."""
        self.failing = 0.05
        """Share of turns that end in an error."""
        self.raised: set[str] = set()
        """Alerts that the test has seen."""
        judge = {
            "base_url": self.judge.url, "model": "judge-1", "prices": {"judge-1": {"input": 0.4, "output": 1.6}}, "attempts": 1,
            "max_concurrency": 2,
        }  # fmt: skip
        config: dict[str, Any] = {
            "judge": {**judge, "budget": {"usd_per_hour": 2.0}},
            "metrics": [{"llm_relevance": {}, "sample": {"rate": 0.5, "always_if": "error"}}, "llm_coherence"],
            "outlets": {"log_events": False},
            # few scores, so that changes are found soon
            "statistics": {"changes": {"detect": True, "reference": 10, "false_alarm_every": 1}},
        }
        short = {
            **config,
            "judge": {**judge, "budget": {"usd_per_hour": 0.02}, "queue": {"max_bytes": "16KiB"}},
            "queue": {"max_bytes": "256KiB"},
            "outlets": {"log_events": False, "jsonl": "/dev/full"},
        }
        self.services: dict[str, Any] = {
            "shop": _Service("shop", config),
            "desk": _Service("desk", short if trouble else config),
            "outpost": _Outpost("outpost", config),
        }
        self.targets = {f"agenteval-{name}": service.address for name, service in self.services.items()}
        """``host:port`` of each ``/metrics`` page, by job."""

    def play(self, turns: int = 1) -> None:
        """Play some turns of each agent, with the surrounding events."""
        for name, agents in AGENTS.items():
            service = self.services[name]
            for agent in agents:
                for _ in range(turns):
                    self._turn(service, agent)
            service.tracer.start_span("GET /health").end()  # belongs to no turn
            service.flush()

    def _turn(self, service: Any, agent: str) -> None:
        dice, model = self._dice, _MODELS[agent]
        now = time.time_ns()
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
        root = service.tracer.start_span(f"invoke_agent {agent}", attributes=attributes, start_time=now)
        context = trace.set_span_in_context(root)
        self.trace_ids.add(f"{root.get_span_context().trace_id:032x}")
        for _ in range(dice.choice((0, 1, 1, 2, 5))):
            now = self._tool(service, context, now)
        now += round(dice.lognormvariate(0.2 if model == "small-1" else 1.2, 0.6) * 1e9)
        given, made = dice.randint(300, 4000), dice.randint(20, 600)
        luck = dice.random()
        says = "" if luck < 0.02 else LEAK if luck < 0.05 else "Your train leaves at 06:28."
        asks = "When does my train leave?" * (
            1 if dice.random() > 0.05 else 15_000
        )  # a pasted timetable that exceeds the queue of the service desk
        usd_in, usd_out = _USD[model]
        service.tracer.start_span(f"chat {model}", context, attributes={
            "gen_ai.operation.name": "chat", "gen_ai.request.model": model,
            "gen_ai.input.messages": _message("user", asks),
            "gen_ai.output.messages": _message("assistant", says),
            "gen_ai.response.finish_reasons": ["length" if dice.random() < 0.03 else "stop"],
            "gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": made,
            "operation.cost": given * usd_in + made * usd_out,
        }, start_time=now - 1).end(now)  # fmt: skip
        if dice.random() < self.failing:
            root.set_status(trace.StatusCode.ERROR, "as scripted")
            root.set_attribute("error.type", "TimeoutError")
        root.end(now)
        if dice.random() < 0.1:  # a cache write after the answer
            service.flush()
            late = service.tracer.start_span("execute_tool remember", context, attributes={
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "remember"}, start_time=now)  # fmt: skip
            late.end(now + 10**9)

    def _tool(self, service: Any, context: Any, now: int) -> int:
        dice = self._dice
        attributes = {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": dice.choice(("search_trains", "book_seat")),
            "gen_ai.tool.call.arguments": json.dumps({"train": dice.randint(1, 99)}),
        }  # fmt: skip
        span = service.tracer.start_span("execute_tool", context, attributes=attributes, start_time=now)
        if dice.random() < 0.1:
            span.set_status(trace.StatusCode.ERROR, "no seat")
            span.set_attribute("error.type", "SoldOut")
        now += round(dice.lognormvariate(-1.5, 0.5) * 1e9)
        span.end(now)
        return now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for service in self.services.values():
            service.close()
        self.judge.close()


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
