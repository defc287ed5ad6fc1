#!/usr/bin/env python3
"""Make files as the code of this checkout keeps them: what later versions must open.

Everything is made through the configuration and the command line, so that the script also runs at other commits. The processes are
killed: jobs stay claimed, write-ahead logs are not merged, and a journal's last segment is open.

    PYTHONPATH=. python scripts/make_stored_files.py tests/data/stores/NAME.tar.xz

The archive holds ``scores.db``, ``spool/``, ``journal/`` and ``made.json``, which says when and from what. Nothing is made anew for an archive that stands: a new format gets
an archive of its own.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ANSWERED, TURNS = 2, 6
"""Questions that the model answers, and turns that are judged: one is asked about when the process is killed, the others wait."""
TOKENS = {"a": "token-of-a", "b": "token-of-b"}

AGENT = """
import json, sys
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
import otel_agenteval as oa

provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
handle = oa.instrument(tracer_provider=provider, config=json.loads(sys.argv[1]))
tracer = provider.get_tracer("app")
for number in range(int(sys.argv[2])):
    with tracer.start_as_current_span("invoke_agent travel", attributes={
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel", "gen_ai.conversation.id": f"c{number // 2}",
    }):
        tracer.start_span("chat m-1", attributes={
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1",
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"Which capital has country {number}?"}]}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": f"City {number}."}]}]),
        }).end()
handle.flush(10)
print("flushed", flush=True)
sys.stdin.read()
"""


class Model:
    """A model that scores some questions and then hangs."""

    def __init__(self, answered: int) -> None:
        self.hangs = threading.Event()
        released = threading.Event()
        self.release = released.set
        left = [answered]
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                left[0] -= 1
                if left[0] < 0:
                    model.hangs.set()
                    released.wait()
                    return
                message = {"role": "assistant", "content": json.dumps({"score": 90, "reason": "It names the capital."})}
                usage = {"prompt_tokens": 100, "completion_tokens": 10}
                said = json.dumps(
                    {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                """Requests are not printed."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}/v1"


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 30.0) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.05)


def free_port() -> int:
    """A port that is free at the moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def run_agent(model: Model, queue: dict[str, Any], judge: dict[str, Any], outlets: dict[str, Any]) -> None:
    """Run turns in a process, and kill it while the model is asked."""
    config = {
        "inline": {"metrics": ["code_tool_success", "code_latency"]},
        "metrics": ["llm_relevance"],
        "judge": {
            "base_url": model.url,
            "model": "scripted",
            "api_key": "test",
            "max_concurrency": 1,
            "timeout": "60s",
            "queue": queue,
            **judge,
        },
        "outlets": {"prometheus": None, "log_events": False, **outlets},
    }
    child = subprocess.Popen(
        [sys.executable, "-c", AGENT, json.dumps(config), str(TURNS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "flushed\n"
    assert model.hangs.wait(30)
    time.sleep(2)  # the scores that came are written
    child.send_signal(signal.SIGKILL)
    child.communicate()
    model.release()


def make_files(folder: Path) -> None:
    """A store, a queue with its budget, a cache and a spool."""
    run_agent(
        Model(ANSWERED),
        {"backend": "sqlite", "path": str(folder / "queue.db"), "lease": "10m"},
        {
            "cache": {"path": str(folder / "verdicts.db"), "ttl": "365d"},
            "budget": {"calls_per_hour": 1000, "tokens_per_day": 1_000_000},
        },
        {
            "store": {"path": str(folder / "scores.db"), "content": True},
            "otlp": {"endpoint": f"http://127.0.0.1:{free_port()}", "spool": {"directory": str(folder / "spool")}},
        },
    )


def trace_of(number: int) -> bytes:
    """An OTLP request in JSON with the root of one turn."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel"}
    span = {
        "traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "invoke_agent travel",
        "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def make_journal(folder: Path) -> None:
    """A journal with requests of two tenants, of a sidecar that was killed before their turns were decided."""
    port = free_port()
    config = folder / "sidecar.yaml"
    tenants = [{"name": name, "token": token} for name, token in TOKENS.items()]
    config.write_text(
        json.dumps({"turn": {"decision_delay": "10m"}, "inline": {"metrics": ["code_latency"]}, "serve": {"tenants": tenants}})
    )
    child = subprocess.Popen([
        sys.executable, "-m", "otel_agenteval", "serve", "--config", str(config), "--http", f"127.0.0.1:{port}", "--grpc", f"127.0.0.1:{free_port()}",
        "--metrics", f"127.0.0.1:{free_port()}", "--web", f"127.0.0.1:{free_port()}", "--journal", str(folder / "journal"),
    ])  # fmt: skip

    def taken(number: int, token: str) -> bool:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/traces", trace_of(number), headers)
        try:
            with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310 - our own address
                return bool(response.status == 200)
        except (urllib.error.URLError, ConnectionError):
            return False

    try:
        for number, token in ((1, TOKENS["a"]), (2, TOKENS["a"]), (3, TOKENS["b"])):
            wait_until(lambda number=number, token=token: taken(number, token), "the sidecar acknowledges a request")  # type: ignore[misc]
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    config.unlink()


def main() -> int:
    """Make an archive."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("archive", type=Path)
    archive = parser.parse_args().archive
    if archive.exists():
        parser.error(f"{archive} exists: files of an earlier version are never made anew")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "files")
        folder.mkdir()
        make_files(folder)
        make_journal(folder)
        git = ["git", "rev-parse", "HEAD"]
        commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        (folder / "made.json").write_text(json.dumps({"at": time.time(), "commit": commit, "python": sys.version.split()[0]}))
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive, "w:xz") as packed:
            for file in sorted(folder.rglob("*")):
                if file.is_file() and not file.name.endswith("-shm") and file.name != "lock":
                    packed.add(file, str(file.relative_to(folder)))
                    print(f"{file.stat().st_size:>8} {file.relative_to(folder)}")
    archive.chmod(0o644)
    return 0


if __name__ == "__main__":
    sys.exit(main())
