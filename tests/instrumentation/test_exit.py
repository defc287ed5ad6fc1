"""Process exit: scores are delivered before providers shut down, in any order of creation, and without long waits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.support.process import PRELUDE, environment, output_of, run

_NEEDS = "import grpc, numpy, opentelemetry.sdk, opentelemetry.exporter.otlp.proto.http, orjson, prometheus_client, pydantic, sys; assert sys.version_info[:2] == (3, 12)"


def python_3_12():
    """Return a Python 3.12 with the core's packages (``AGENTEVAL_TEST_PYTHON312`` or ``python3.12``), or None."""
    if sys.version_info[:2] == (3, 12):
        return None
    found = os.environ.get("AGENTEVAL_TEST_PYTHON312") or shutil.which("python3.12")
    if found is None or subprocess.run([found, "-c", _NEEDS], env=environment(), capture_output=True, check=False).returncode:
        return None
    return found


@pytest.fixture(scope="module", params=["this Python", "Python 3.12"])
def python(request):
    if request.param == "this Python":
        return sys.executable
    return python_3_12() or pytest.skip(
        "no other python3.12 with the package's dependencies (AGENTEVAL_TEST_PYTHON312 can name one)"
    )


FILE_EXPORTER = """
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult

class FileExporter(LogRecordExporter):
    def __init__(self, path):
        self.path = path
    def export(self, batch):
        with open(self.path, "a") as file:
            for item in batch:
                file.write(json.dumps(dict(item.log_record.attributes)) + "\\n")
        return LogRecordExportResult.SUCCESS
    def shutdown(self):
        pass
    def force_flush(self, timeout_millis=30000):
        return True

def make_logger_provider():
    provider = LoggerProvider()
    provider.add_log_record_processor(BatchLogRecordProcessor(FileExporter(sys.argv[1] + "/logs"), schedule_delay_millis=3_600_000))
    _logs.set_logger_provider(provider)

def make_tracer_provider():
    trace.set_tracer_provider(TracerProvider())

for name in sys.argv[2].split(","):
    {"tracer": make_tracer_provider, "logger": make_logger_provider}[name]()

config = {"outlets": {"prometheus": None, "log_events": "all", "jsonl": sys.argv[1] + "/scores"}}
"""


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("order", ["tracer,logger", "logger,tracer"], ids=["tracer provider first", "logger provider first"])
def test_at_exit_each_score_is_in_the_file_and_at_the_log_exporter_once(order, python, tmp_path):
    output_of(
        FILE_EXPORTER + """
oa.instrument(config=config)
tracer = trace.get_tracer("app")
turn(tracer, "closed")
opened = agent(tracer, "opened")
opened.__enter__()
chat(tracer)
""",
        str(tmp_path), order, command=[python],
    )  # fmt: skip
    scores, logs = lines(tmp_path / "scores"), lines(tmp_path / "logs")
    assert {(score["agent"], score["close_reason"], score["complete"]) for score in scores} == {
        ("closed", "root_ended", True), ("opened", "exit", False),
    }  # fmt: skip
    ids = [score["result_id"] for score in scores]
    assert len(set(ids)) == len(ids)
    assert sorted(ids) == sorted(record["agenteval.result.id"] for record in logs)
    assert {record["agenteval.turn.close_reason"] for record in logs} == {"root_ended", "exit"}


def test_a_turn_that_was_never_handed_over_leaves_at_exit_without_a_worker(python, tmp_path):
    output_of(
        FILE_EXPORTER + """
handle = oa.instrument(config=config)
handle.processor.engine.worker.may_start = False  # as if the first turn ended while the interpreter goes down
turn(trace.get_tracer("app"))
""",
        str(tmp_path), "logger,tracer", command=[python],
    )  # fmt: skip
    assert lines(tmp_path / "scores")
    assert len(lines(tmp_path / "logs")) == len(lines(tmp_path / "scores"))


def test_at_exit_no_thread_is_started(python, tmp_path):
    printed = output_of(
        """
import atexit
started = []
begin = threading.Thread.start
def start(thread):
    started.append(thread.name)
    begin(thread)
atexit.register(lambda: print(started))        # the first to register is the last to run
provider = TracerProvider()
config = {"outlets": {"prometheus": None, "log_events": "all", "jsonl": sys.argv[1] + "/scores"}}
oa.instrument(tracer_provider=provider, config=config)
tracer = provider.get_tracer("app")
opened = agent(tracer)
opened.__enter__()
chat(tracer)
atexit.register(lambda: setattr(threading.Thread, "start", start))   # the last to register is the first to run
""",
        str(tmp_path), command=[python],
    )  # fmt: skip
    assert printed == "[]\n"
    assert lines(tmp_path / "scores")


def test_a_turn_that_ends_in_an_exit_handler_is_evaluated(python, tmp_path):
    output_of(
        """
import atexit
provider = TracerProvider()
oa.instrument(tracer_provider=provider, config={"outlets": {"prometheus": None, "jsonl": sys.argv[1] + "/scores"}})
tracer = provider.get_tracer("app")
chat(tracer)
atexit.register(lambda: turn(tracer, "last words"))
""",
        str(tmp_path), command=[python],
    )  # fmt: skip
    assert "last words" in {score.get("agent") for score in lines(tmp_path / "scores")}


HANGING = """
from opentelemetry.sdk._logs import LogRecordProcessor

class Hanging(LogRecordProcessor):
    def on_emit(self, log_record):
        threading.Event().wait()
    def shutdown(self):
        pass
    def force_flush(self, timeout_millis=30000):
        return True

logger_provider = LoggerProvider(shutdown_on_exit=False)
logger_provider.add_log_record_processor(Hanging())
provider = TracerProvider()
oa.instrument(tracer_provider=provider, logger_provider=logger_provider, config={"exit_timeout": "100ms", "outlets": {"prometheus": None}})
turn(provider.get_tracer("app"))
opened = agent(provider.get_tracer("app"))
opened.__enter__()
"""


def test_an_outlet_that_hangs_does_not_keep_the_process(python):
    done = run(PRELUDE + HANGING, command=[python])
    assert done.returncode == 0, done.stderr
    assert "not all scores were delivered" in done.stderr
