"""``otel-agenteval record`` with real programs."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from tests.support.process import PRELUDE, ROOT, environment
from tests.support.servers import until

SET_UP = """
trace.set_tracer_provider(TracerProvider())
tracer = trace.get_tracer("app")
"""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Record:
    """The command in this process. The recorded program has its own processes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capture = monkeypatch, capture

    def __call__(self, folder: Path, *program: str, out: str = "spans.jsonl", **env: str) -> Done:
        with self._monkeypatch.context() as here:
            for name, value in {**environment(), "PYTHONPATH": str(ROOT), **env}.items():
                here.setenv(name, value)
            here.chdir(folder)
            code = main(["record", "-o", out, "--", *program])
        said = self._capture.readouterr()
        return Done(code, said.out, said.err)


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Record:
    return Record(monkeypatch, capfd)


def script(folder: Path, text: str, name: str = "app.py") -> str:
    (folder / name).write_text(PRELUDE + SET_UP + text)
    return name


def agents_in(file: Path) -> list[str]:
    return sorted(str(turn.agent) for turn in oa.load_turns(file))


def test_a_programs_turns_are_in_the_file_and_it_is_left_as_it_is(record: Record, tmp_path: Path) -> None:
    app = script(tmp_path, "turn(tracer, 'desk'); print('out'); print('err', file=sys.stderr); print(sys.argv); sys.exit(3)")
    done = record(tmp_path, sys.executable, app, "--", "-o", "x")
    assert done.returncode == 3
    assert done.stdout == "out\n['app.py', '--', '-o', 'x']\n"
    assert done.stderr.startswith("err\nspans.jsonl: 2 spans, 0 log records, 1 turn (desk 1)\n")
    assert "otel-agenteval eval spans.jsonl\n" in done.stderr
    assert agents_in(tmp_path / "spans.jsonl") == ["desk"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.py", "spans.jsonl"]
    assert stat.S_IMODE((tmp_path / "spans.jsonl").stat().st_mode) == 0o600

    again = record(tmp_path, sys.executable, app)
    assert "4 spans, 0 log records, 2 turns (desk 2), including earlier" in again.stderr


def test_all_processes_of_the_program_share_the_file(record: Record, tmp_path: Path) -> None:
    script(tmp_path, "turn(tracer, sys.argv[1])", "child.py")
    app = script(
        tmp_path,
        "import subprocess\nturn(tracer, 'parent')\nsubprocess.run([sys.executable, 'child.py', 'started'], check=True)\n"
        "if os.fork() == 0:\n    turn(tracer, 'forked')\n    os._exit(0)\nos.wait()\n",
    )
    assert record(tmp_path, sys.executable, app).returncode == 0
    assert agents_in(tmp_path / "spans.jsonl") == ["forked", "parent", "started"]


def test_content_in_log_records_and_providers_beside_the_global_one(record: Record, tmp_path: Path) -> None:
    app = script(
        tmp_path,
        """
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.trace import set_span_in_context
logger = LoggerProvider().get_logger("app")
other = TracerProvider().get_tracer("other")
with agent(other, "desk"):
    with other.start_as_current_span("chat m-1", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}) as span:
        logger.emit(LogRecord(context=set_span_in_context(span), event_name="gen_ai.client.inference.operation.details", attributes={
            "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Where is Lima?"}]}],
            "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "In Peru."}]}],
        }))
""",
    )
    done = record(tmp_path, sys.executable, app)
    assert "2 spans, 1 log record, 1 turn (desk 1)" in done.stderr, done.stderr
    (turn,) = oa.load_turns(tmp_path / "spans.jsonl")
    assert (turn.input, turn.output) == ("Where is Lima?", "In Peru.")


def test_a_sitecustomize_that_was_there_runs_too(record: Record, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os\nif 'OTEL_AGENTEVAL_RECORD_FILE' in os.environ: print('theirs')"
    )
    app = script(tmp_path, "turn(tracer)")
    done = record(tmp_path, sys.executable, app, PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path / 'site'}")
    assert done.stdout == "theirs\n", done.stderr
    assert agents_in(tmp_path / "spans.jsonl") == ["bot"]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("pass", "created no TracerProvider"),
        ("from opentelemetry.sdk.trace import TracerProvider; TracerProvider()", "created a TracerProvider"),
    ],
)
def test_why_nothing_was_recorded(record: Record, code: str, why: str, tmp_path: Path) -> None:
    done = record(tmp_path, sys.executable, "-c", code)
    assert done.returncode == 0
    assert why in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", [["sh", "-c", "exit 7"], [sys.executable, "-S", "-c", "import sys; sys.exit(7)"]])
def test_programs_without_our_package_are_no_recording(record: Record, program: list[str], tmp_path: Path) -> None:
    done = record(tmp_path, *program)
    assert (done.returncode, "the program didn't load otel-agenteval" in done.stderr) == (7, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--"], "PROGRAM: "),
        (["--", "no-such-program"], "no-such-program: "),
        (["-o", "no/where.jsonl", "--", "true"], "no doesn't exist"),
    ],
)
def test_wrong_use(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_a_signal_reaches_the_program_and_its_exit_code_us(tmp_path: Path) -> None:
    app = script(tmp_path, "import time\nturn(tracer, 'desk')\nopen('ready', 'w').close()\ntime.sleep(600)")
    process = subprocess.Popen(
        [sys.executable, "-m", "otel_agenteval", "record", "--", sys.executable, app],
        cwd=tmp_path, env={**environment(), "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until((tmp_path / "ready").exists, "the program has started")
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert "1 turn (desk 1)" in said
    assert json.loads((tmp_path / "spans.jsonl").read_text().splitlines()[0])
