"""Measure the CPU time of ``otel-agenteval serve`` per span, with different outlets.

    python benchmarks/serving.py                    prints the table
    python benchmarks/serving.py --against TREE     compares with the package of another checkout
    python benchmarks/serving.py --write | --check

The sidecar is a process with open listeners. Each request has 64 turns of eight spans (``receiving.py``). Scores are sent to an OTLP
receiver in another process, and ``/metrics`` is scraped. The result is the CPU time of all threads from the first request until
everything is delivered, the best of some rounds. Setups alternate.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import harness
import psutil
from harness import Row, Runs
from sink import sink

WARM_UP, REQUESTS, BURSTS, ROUNDS = 4, 8, 2, 2
SETUPS: dict[str, dict[str, Any]] = {
    "no metrics, no outlets": {"config": {"inline": {"metrics": []}}},
    "default metrics, no outlets": {},
    "default metrics, no outlets, received over gRPC": {"receive": "grpc"},
    "default metrics, Prometheus": {"prometheus": True},
    "default metrics, OTLP over gRPC and Prometheus": {"prometheus": True, "otlp": "grpc"},
    "default metrics, OTLP over HTTP and Prometheus": {"prometheus": True, "otlp": "http"},
    "default metrics, OTLP metrics only": {"otlp": "grpc", "otlp_options": {"log_events": False}},
    "default metrics, OTLP over gRPC and Prometheus, journal": {"prometheus": True, "otlp": "grpc", "journal": True},
    "lower bound: as many metrics, which do nothing, no outlets": {"nothing": True},
    "lower bound: the same metrics, OTLP over gRPC and Prometheus": {"nothing": True, "prometheus": True, "otlp": "grpc"},
    "lower bound: the OpenTelemetry Collector drops the spans": {"collector": ["filter"]},
    "lower bound: the OpenTelemetry Collector exports the spans, OTLP over gRPC": {"collector": []},
}
"""Setups by name. Vector isn't included, because no package registry contains it."""
OUTLETS_OFF, GRPC, HTTP, FLOOR = (list(SETUPS)[place] for place in (1, 4, 5, 9))
OVER_OFF, OVER_FLOOR, FLOOR_OF_BEFORE = 1.25, 2.75, 0.5
"""Limits: the default metrics relative to no outlets and to the floor, and the floor relative to the other checkout's floor."""
NOTHING = 18
"""Number of metrics in the floor setup. They return 1 immediately, so that only the cost around a metric is measured."""


# --- the child: one sidecar and its sender


def run(what: dict[str, Any]) -> dict[str, float]:
    """Return the CPU µs per span of one setup."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        outlets: dict[str, Any] = {"log_events": False, "prometheus": None}
        if what.get("prometheus"):
            outlets["prometheus"] = {"registry": "default"}
        if what.get("otlp"):
            endpoint = stack.enter_context(sink(what["otlp"]))
            outlets["otlp"] = {
                "endpoint": endpoint, "protocol": what["otlp"], "metrics_interval": "5s", "queue_bytes": "256MiB",
                **what.get("otlp_options", {}),
            }  # fmt: skip
        config = {"turn": {"decision_delay": "300ms"}, "outlets": outlets, **what.get("config", {})}
        if what.get("nothing"):
            config["inline"] = {"metrics": _metrics_that_do_nothing(folder)}
        if "collector" in what:
            sidecar: Sidecar = stack.enter_context(_collector(folder, stack.enter_context(sink("grpc")), what["collector"]))
        else:
            sidecar = stack.enter_context(_served(folder, config, journal=bool(what.get("journal"))))
        send = stack.enter_context(_sender(sidecar, what.get("receive", "http")))
        bodies = _bodies()
        sent = _burst(sidecar, send, bodies, WARM_UP, 0)
        best = float("inf")
        for _ in range(BURSTS):
            before = sidecar.cpu()
            total = _burst(sidecar, send, bodies, REQUESTS, sent)
            best = min(best, (sidecar.cpu() - before) / (total - sent) * 1e6)
            sent = total
        return {"us": best, "rss": sidecar.process.memory_info().rss / 1e6}


def _metrics_that_do_nothing(folder: Path) -> list[str]:
    """Return the names of metrics that do nothing. They are installed in the folder as a plugin package."""
    names = [f"code_nothing_{number}" for number in range(NOTHING)]
    lines = [
        "import otel_agenteval as oa",
        *(
            f'@oa.metric(groups=("default",), boolean=True)\ndef {name}(turn):\n    """Nothing."""\n    return True'
            for name in names
        ),
    ]
    (folder / "nothing.py").write_text("\n".join(lines), encoding="utf-8")
    info = folder / "nothing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nothing\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[otel_agenteval.metrics]\nnothing = nothing\n", encoding="utf-8")
    return names


class Sidecar:
    """A running sidecar."""

    def __init__(self, pid: int, ports: dict[str, int]) -> None:
        self.process = psutil.Process(pid)
        self.ports = ports

    def cpu(self) -> float:
        """Return the CPU seconds of all threads."""
        if sys.platform == "linux":  # exact to the nanosecond, unlike /proc (hundredths of a second)
            return time.clock_gettime((~self.process.pid << 3) | 2)
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def get(self, server: str, path: str) -> bytes:
        """Return the response body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[server], timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    def is_done(self, spans: int) -> bool:
        """Return True if ``spans`` spans have arrived, and all their results were delivered."""
        ledger = json.loads(self.get("web", "/api/status"))
        ledger = ledger.get("ledger", ledger)
        turns, waiting = ledger["turns"], sum(outlet.get("waiting", 0) for outlet in ledger.get("outlets", {}).values())
        return ledger["spans"]["received"] >= spans and not turns["open"] and not turns["waiting"] and not waiting


@contextmanager
def _served(folder: Path, config: dict[str, Any], *, journal: bool) -> Iterator[Sidecar]:
    file = folder / "agenteval.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    ports = {name: harness.free_port() for name in ("grpc", "http", "metrics", "web")}
    command = [sys.executable, "-m", "otel_agenteval", "serve", "--config", str(file)]
    for name, port in ports.items():
        command += [f"--{name}", f"127.0.0.1:{port}"]
    if journal:
        command += ["--journal", str(folder / "journal")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(folder)))}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder, env=environment)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("listening:"):
                break
        else:
            raise RuntimeError(f"serve exited with status {process.wait()}")
        yield Sidecar(process.pid, ports)
    finally:
        process.kill()
        process.wait()


class Collector(Sidecar):
    """A running Collector. It responds after forwarding the spans."""

    def get(self, server: str, path: str) -> bytes:
        return b""

    def is_done(self, spans: int) -> bool:
        return True


@contextmanager
def _collector(folder: Path, endpoint: str, processors: Sequence[str]) -> Iterator[Collector]:
    """Start a Collector that forwards the spans that its processors keep, without a queue or compression."""
    port = harness.free_port()
    config = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
        "processors": {"filter": {"traces": {"span": ["true"]}}},
        "exporters": {
            "otlp_grpc": {"endpoint": endpoint, "tls": {"insecure": True}, "compression": "none", "sending_queue": {"enabled": False}},
        },
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "processors": processors, "exporters": ["otlp_grpc"]}},
        },
    }  # fmt: skip
    file = folder / "collector.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    process = subprocess.Popen([harness.server_program("otelcol"), "--config", file], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the Collector didn't start, exit status {process.returncode}")
            time.sleep(0.1)
        yield Collector(process.pid, {"http": port})
    finally:
        process.kill()
        process.wait()


Send = Callable[[bytes], bool]


@contextmanager
def _sender(sidecar: Sidecar, protocol: str) -> Iterator[Send]:
    """Yield a function that sends a request over one open connection, and returns True if it is accepted."""
    if protocol == "grpc":
        import grpc

        with grpc.insecure_channel(f"127.0.0.1:{sidecar.ports['grpc']}") as channel:
            export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")

            def send(body: bytes) -> bool:
                try:
                    export(body, timeout=30)
                except grpc.RpcError as error:
                    if error.code() is not grpc.StatusCode.UNAVAILABLE:
                        raise
                    return False
                return True

            yield send
        return
    connection = http.client.HTTPConnection("127.0.0.1", sidecar.ports["http"], timeout=30)

    def post(body: bytes) -> bool:
        connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        answer.read()
        if answer.status not in (200, 429, 503):
            raise RuntimeError(f"status {answer.status}")
        return answer.status == 200

    yield post
    connection.close()


def _bodies() -> Iterator[tuple[bytes, int]]:
    """Yield endless requests with their numbers of spans. Texts repeat, and traces are new."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from traffic import SPANS, TURNS, request

    dice = random.Random(7)
    templates = [ExportTraceServiceRequest.FromString(request(number * TURNS, dice)) for number in range(4)]
    while True:
        for template in templates:
            for scope in template.resource_spans[0].scope_spans:
                ids: dict[bytes, bytes] = {}
                for span in scope.spans:
                    span.trace_id = ids.get(span.trace_id) or ids.setdefault(span.trace_id, dice.randbytes(16))
            yield template.SerializeToString(), TURNS * SPANS


def _burst(sidecar: Sidecar, send: Send, bodies: Iterator[tuple[bytes, int]], count: int, sent: int) -> int:
    """Send some requests, scrape, and wait until everything is delivered. Return the total number of spans."""
    for _ in range(count):
        body, spans = next(bodies)
        while not send(body):
            time.sleep(0.05)
        sent += spans
    sidecar.get("metrics", "/metrics")
    while not sidecar.is_done(sent):
        time.sleep(0.2)
    return sent


# --- the table


def rows(found: Runs) -> list[Row]:
    made = []
    off, floor = (found.best(name, "us") if (harness.AFTER, name) in found.outcomes else None for name in (OUTLETS_OFF, FLOOR))
    for name in SETUPS:
        if (harness.AFTER, name) not in found.outcomes:
            continue
        now, before = found.best(name, "us"), found.before(name, "us")
        row = Row(name, f"{now:.1f} µs ({1e6 / now:,.0f} spans/s)", f"{now / off:.2f} × outlets off" if off else "")
        if name in (GRPC, HTTP) and off:
            row.bound, row.over = f"≤ {OVER_OFF} × outlets off", now / off / OVER_OFF
            if floor:
                row.bound += f", ≤ {OVER_FLOOR} × lower bound"
                row.over = max(row.over, now / floor / OVER_FLOOR)
        if name == FLOOR and before is not None:
            row.bound, row.over = f"≤ {FLOOR_OF_BEFORE} × before", now / before / FLOOR_OF_BEFORE
        made.append(row.compared(now, before, "{:.1f} µs"))
    return made


def main() -> int:
    """Measure and print. Return 1 with ``--check`` if a limit is exceeded."""
    options = harness.parser(__doc__)
    options.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of each setup")
    options.add_argument("--only", metavar="TEXT", help="only setups whose name contains TEXT")
    args = options.parse_args()
    if args.child:
        print(json.dumps(run(json.loads(args.child))))
        return 0
    chosen = {name: what for name, what in SETUPS.items() if not args.only or args.only in name}
    return harness.report(rows(harness.alternate(__file__, chosen, args.against, args.rounds)), args, "serving")


if __name__ == "__main__":
    sys.exit(main())
