"""An agent that knows nothing of us: it exports OTLP to a Collector, and the sidecar behind that scores its turns.

    otel-agenteval serve                                           # the sidecar
    python examples/sidecar_agent.py --endpoint http://127.0.0.1:14318 --turns 8

The endpoint is a Collector's, or the sidecar's own as above. deploy/compose/compose.yaml runs this agent with a Collector,
the sidecar, Prometheus and Grafana. The agent plays the scripted scenes of ``otel-agenteval demo``; any program in any
language that exports GenAI spans over OTLP can take its place.
"""

from __future__ import annotations

import argparse
import itertools
import time

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_agenteval.cli.demo import SCENES, ScriptedAgent


def main() -> None:
    """Play scenes, one after the other, until all turns are done."""
    parser = argparse.ArgumentParser(description="A scripted agent that exports its spans over OTLP/HTTP.")
    parser.add_argument("--endpoint", default="http://127.0.0.1:4318", help="of a Collector or of the sidecar")
    parser.add_argument("--turns", type=int, default=0, help="how many; 0 never ends")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two turns")
    options = parser.parse_args()

    provider = TracerProvider(resource=Resource({"service.name": "trains"}))
    exporter = OTLPSpanExporter(endpoint=f"{options.endpoint}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=500))
    scenes = itertools.cycle(SCENES)
    for played in itertools.count(1):
        ScriptedAgent(provider, time.time_ns()).play(next(scenes))
        if played == options.turns:
            break
        time.sleep(options.every)
    provider.shutdown()
    print(f"{played} turns sent to {options.endpoint}")


if __name__ == "__main__":
    main()
