"""Measure the cost of recorded spans: reading and assembling, and `eval`, `turns` and back-fill, in time per span and memory.

    python benchmarks/files.py                    prints the table
    python benchmarks/files.py --against TREE     compares with the package of another checkout
    python benchmarks/files.py --write | --check

Each command runs in a separate process on one OTLP/JSON lines file with the turns of ``receiving.py``. Results are the CPU time of
all its processes, including startup, the wall-clock time, and the peak memory of its largest process.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness
import reading
from harness import Row, Runs

REQUESTS = 12
COMMANDS: dict[str, list[str]] = {
    "`turns`, one process": ["turns", "FILE", "--jobs", "1"],
    "`eval`, one process": ["eval", "FILE", "--jobs", "1"],
    "`eval`, all cores": ["eval", "FILE"],
    "`backfill`, one process": ["backfill", "FILE", "--out", "OUT", "--jobs", "1"],
    "`backfill`, all cores": ["backfill", "FILE", "--out", "OUT"],
}
PARSE, *STAGES = reading.STAGES
BOUNDS = {"assembling and reading turns": 1.0}
ALLOWED_MB = (reading.FLOOD_BYTES + reading.QUEUE_BYTES + reading.PAST_BYTES) / 1e6


# --- the children


def run(what: dict[str, Any]) -> dict[str, Any]:
    """Run one command, or the measurements of ``reading.py``."""
    if what.get("stages"):
        return reading.cost_per_span()
    if what.get("flood"):
        return {"curve": [size for _, size in reading.flood_curve()]}
    with tempfile.TemporaryDirectory() as folder:
        return _command(what["args"], what["file"], what["spans"], Path(folder))


def _command(args: list[str], file: str, spans: int, folder: Path) -> dict[str, float]:
    known = subprocess.run(
        [sys.executable, "-m", "otel_agenteval", args[0], "--help"], capture_output=True, text=True, check=True, cwd=folder
    )
    if "--jobs" in args and "--jobs" not in known.stdout:
        args = args[: args.index("--jobs")]
    command = [{"FILE": file, "OUT": str(folder / "out")}.get(arg, arg) for arg in args]
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "otel_agenteval", *command], stdout=subprocess.DEVNULL, cwd=folder)
    _, status, used = os.wait4(process.pid, 0)
    taken = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} failed with exit status {process.returncode}")
    return {"us": (used.ru_utime + used.ru_stime) / spans * 1e6, "wall": taken / spans * 1e6, "mb": used.ru_maxrss / 1e3}


def write_file(file: Path) -> int:
    """Write OTLP/JSON lines with one request each. Return the number of spans."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from traffic import SPANS, TURNS, request

    dice = random.Random(11)
    with file.open("w", encoding="utf-8") as out:
        for number in range(REQUESTS):
            out.write(as_json_line(ExportTraceServiceRequest.FromString(request(number * TURNS, dice))) + "\n")
    return REQUESTS * TURNS * SPANS


def as_json_line(request: Any) -> str:
    """Return a trace request as OTLP/JSON, in which ids are hexadecimal."""
    from google.protobuf.json_format import MessageToDict

    message: dict[str, Any] = MessageToDict(request)
    for scope in message["resourceSpans"][0]["scopeSpans"]:
        for span in scope["spans"]:
            for key in {"traceId", "spanId", "parentSpanId"} & span.keys():
                span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(message)


# --- the table


def rows(found: Runs) -> list[Row]:
    parse = found.best("stages", PARSE)
    made = [Row("P: `json.loads` of one recorded span", f"{parse:.1f} µs", "1.00 P")]
    for stage in STAGES:
        us = found.best("stages", stage)
        row = Row(f"the same span: {stage}", f"{us:.1f} µs", f"{us / parse:.2f} P")
        if stage in BOUNDS:
            row.bound, row.over = f"≤ {BOUNDS[stage]:g} P", us / parse / BOUNDS[stage]
        made.append(row.compared(us, found.before("stages", stage), "{:.1f} µs"))
    for name in COMMANDS:
        us, wall, mb = (found.best(name, key) for key in ("us", "wall", "mb"))
        row = Row(f"{name}: CPU per span ({1e6 / wall:,.0f} spans/s, {mb:.0f} MB)", f"{us:.0f} µs")
        made.append(row.compared(us, found.before(name, "us")))
    curve = found.outcomes[harness.AFTER, "flood"][0]["curve"]
    what = f"memory in MB per 100,000 spans of turns that never close, {ALLOWED_MB:.0f} MB allowed by configuration"
    over = curve[-1] / ALLOWED_MB
    made.append(Row(what, " → ".join(f"{size:.0f}" for size in curve), f"{over:.2f} × allowed", "≤ 1.25 × allowed", over / 1.25))
    return made


def main() -> int:
    """Measure and print. Return 1 with ``--check`` if a limit is exceeded."""
    options = harness.parser(__doc__)
    options.add_argument("--rounds", type=int, default=2, help="runs of each command")
    options.add_argument("--only", metavar="TEXT", help="only commands whose name contains TEXT")
    args = options.parse_args()
    if args.child:
        print(json.dumps(run(json.loads(args.child))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "spans.jsonl")
        spans = write_file(file)
        setups: dict[str, dict[str, Any]] = {
            name: {"args": command, "file": str(file), "spans": spans} for name, command in COMMANDS.items()
        }
        if args.only:
            chosen = {name: what for name, what in setups.items() if args.only in name}
            found = harness.alternate(__file__, chosen, args.against, args.rounds)
            for name in chosen:
                print(f"{name}: {found.best(name, 'us'):.0f} µs per span", found.before(name, "us") or "")
            return 0
        found = harness.alternate(__file__, {**setups, "stages": {"stages": True}}, args.against, args.rounds)
    found.outcomes |= harness.alternate(__file__, {"flood": {"flood": True}}, None, 1).outcomes
    return harness.report(rows(found), args, "files")


if __name__ == "__main__":
    sys.exit(main())
