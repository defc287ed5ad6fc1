"""The real Collector with the configurations of collector_config/, and agents that send to it."""

from __future__ import annotations

import itertools
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from prometheus_client.parser import text_string_to_metric_families

from otel_agenteval.cli.demo import SCENES, Scene, ScriptedAgent
from tests.support.process import ROOT
from tests.support.servers import Process, answers, free_port, program

CONFIGS = ROOT / "collector_config"


def value(url: str, name: str, **labels: str) -> float:
    """Return the sum of a metric's samples with these labels, from a metrics page. Return 0 if the metric is missing."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.removesuffix("_total") == name.removesuffix("_total") and labels.items() <= sample.labels.items()
    )


class Collector(Process):
    """A Collector with one of the shipped configurations, on free ports.

    Args:
        config: name of the file without ``.yaml``, or a path.
        folder: folder for its log and files.
        port: port for OTLP over gRPC (default: a free port).
        env: environment variables for the configuration, in addition to its addresses.
    """

    def __init__(self, config: str | Path, folder: Path, port: int = 0, **env: object) -> None:
        grpc, http, health, telemetry = port or free_port(), *(free_port() for _ in range(3))
        self.grpc, self.http = f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}"
        self._telemetry = f"http://127.0.0.1:{telemetry}/metrics"
        path = CONFIGS / f"{config}.yaml" if isinstance(config, str) else config
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(
            [program("otelcol"), "--config", path],
            log=folder / f"{path.stem}-{grpc}.log",
            ready=answers(f"http://127.0.0.1:{health}/"),
            env={
                "OTLP_GRPC_LISTEN": self.grpc,
                "OTLP_HTTP_LISTEN": f"127.0.0.1:{http}",
                "HEALTH_LISTEN": f"127.0.0.1:{health}",
                "TELEMETRY_PORT": str(telemetry),
                "STORAGE": str(folder / "storage"),
                "SCORES_FILE": str(folder / "scores.jsonl"),
                **{name: str(text) for name, text in env.items()},
            },
        )

    def metric(self, name: str, **labels: str) -> float:
        """Return one of the Collector's own metrics, or 0 if it is missing."""
        return value(self._telemetry, name, **labels)


class _Checked(SpanExporter):
    """An exporter whose exports must succeed."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.failed = 0

    def export(self, spans: Any) -> SpanExportResult:
        result = self._exporter.export(spans)
        self.failed += result is not SpanExportResult.SUCCESS
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class Alternating(OTLPSpanExporter):
    """Exporter that sends every other span to another Collector, as a simple load balancer would."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(endpoint=one, insecure=True)
        self._others = [OTLPSpanExporter(endpoint=other, insecure=True), super()]
        self._turn = 0

    def export(self, spans: Any) -> Any:
        self._turn += 1
        return self._others[self._turn % 2].export(spans)

    def shutdown(self, *args: Any, **kwargs: Any) -> None:
        self._others[0].shutdown()
        super().shutdown(*args, **kwargs)


class Agent:
    """The demo's scripted agent with its own provider, which exports each span immediately.

    Args:
        exporter: an exporter, or an address for OTLP over gRPC.
        service: service name.
        attributes: resource attributes.
    """

    def __init__(self, exporter: SpanExporter | str, service: str = "demo", attributes: Mapping[str, str] | None = None) -> None:
        if isinstance(exporter, str):
            exporter = OTLPSpanExporter(endpoint=exporter, insecure=True, timeout=60)
        self._exporter = _Checked(exporter)
        self.provider = TracerProvider(
            resource=Resource({"service.name": service, **(attributes or {})}), sampler=ALWAYS_ON, shutdown_on_exit=False
        )
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._agent = ScriptedAgent(self.provider, time.time_ns())
        self._scenes = itertools.cycle(SCENES)
        self.turns = 0
        """Number of turns played so far."""

    @property
    def failed(self) -> int:
        """Number of failed exports."""
        return self._exporter.failed

    def play(self, turns: int = len(SCENES), scene: Scene | None = None) -> None:
        """Play ``turns`` turns of ``scene``. Without a scene, play all scenes in order, repeatedly."""
        for _ in range(turns):
            self._agent.play(scene or next(self._scenes))
            self.turns += 1

    def close(self) -> None:
        self.provider.shutdown()
