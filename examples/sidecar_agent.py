"""Run an agent that exports OTLP. The sidecar, not the agent's process, scores its turns.

    otel-agenteval serve                                           # the sidecar
    python examples/sidecar_agent.py --endpoint http://127.0.0.1:14318 --turns 8

The endpoint is the address of a Collector or, as above, of the sidecar. deploy/compose/compose.yaml runs this agent with a Collector,
the sidecar, Prometheus and Grafana. The agent plays the scenes of ``otel-agenteval demo``. You can replace it with
any program that exports GenAI spans over OTLP, in any language.
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
    """Play the scenes in a loop, until ``--turns`` turns are sent."""
    parser = argparse.ArgumentParser(description="A scripted agent that exports its spans over OTLP/HTTP.")
    parser.add_argument("--endpoint", default="http://127.0.0.1:4318", help="OTLP/HTTP address of a Collector or of the sidecar")
    parser.add_argument("--turns", type=int, default=0, help="number of turns (default: 0, no limit)")
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
