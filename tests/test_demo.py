"""The demo as a new user runs it, and the faults of its agent."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from otel_agenteval.cli.main import main

COMMAND = [sys.executable, "-c", "import sys; from otel_agenteval.cli.main import main; sys.exit(main())", "demo"]
Capture = pytest.CaptureFixture[str]
FAILS: dict[str, set[str]] = {
    "all is well": set(),
    "a tool fails, and the agent recovers": {"code_tool_schema_validity"},
    "the agent goes in circles": {"code_repeated_tool_calls"},
    "the answer leaks a customer's data and a token": {"code_pii_leakage", "code_secret_leak"},
    "the answer is made up": {"code_ungrounded_urls"},
    "a web page gives the agent orders, and it obeys": {"code_system_prompt_leak"},
    "the answer is cut off": {"code_truncated_answer"},
    "the answer is empty": {"code_empty_answer"},
}


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "NO_COLOR", "FORCE_COLOR"))}


@pytest.fixture(scope="module")
def once() -> subprocess.CompletedProcess[str]:
    """Run the demo as a program, and return its output."""
    command = [*COMMAND, "--once", "--port", "0"]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)


def test_once_prints_every_scene_and_complains_of_nothing(once: subprocess.CompletedProcess[str]) -> None:
    assert (once.returncode, once.stderr) == (0, "")
    assert re.findall(r"^── \d · (.+?) ─+$", once.stdout, re.MULTILINE) == list(FAILS)
    lines = once.stdout.splitlines()
    metrics = [line for line in lines if line.startswith("  agenteval_")]
    assert any('outcome="fail"' in line for line in metrics)
    assert any("# {" in line and "trace_id" in line for line in metrics), "an exemplar"
    assert [line for line in lines if len(line) > 100 and line not in metrics] == []
    assert "\033" not in once.stdout


def test_the_output_names_what_failed_in_each_turn_and_nothing_else(once: subprocess.CompletedProcess[str]) -> None:
    for title, fails in FAILS.items():
        section = once.stdout.split(f" · {title} ", 1)[1].split("── ", 1)[0]
        assert set(re.findall(r"^  ✗ (code_\w+)", section, re.MULTILINE)) == fails
    shown = " ".join(once.stdout.split())
    for reason in (
        "search_trains was called 4 times",
        "github_token",
        "64.50",
        "icn-797",
        "instruction_override in tool:read_page",
    ):
        assert reason in shown


def test_two_runs_differ_in_port_and_exemplar_time_only(once: subprocess.CompletedProcess[str], capsys: Capture) -> None:
    def timeless(text: str) -> str:
        return re.sub(r":\d+/metrics|[0-9]{10}\.[0-9]+$", "", text, flags=re.MULTILINE)

    assert main(["demo", "--once", "--port", "0"]) == 0
    assert timeless(capsys.readouterr().out) == timeless(once.stdout)
    assert main(["demo", "--port", "0"]) == 0  # without a terminal it ends too
    assert "until Ctrl+C" not in capsys.readouterr().out


def test_a_port_in_use_is_a_warning_and_another_port(capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["demo", "--once", "--port", str(port)]) == 0
    printed = capsys.readouterr()
    assert f"{port} is in use" in printed.err
    (other,) = re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", printed.out)
    assert other != str(port)
    assert main(["demo", "--once", "--port", "99999"]) == 2


@pytest.mark.parametrize("variable", ["OTEL_SDK_DISABLED=true", "OTEL_AGENTEVAL_ENABLED=false"])
def test_the_demo_says_that_it_is_switched_off(variable: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*variable.split("="))
    assert main(["demo", "--once", "--port", "0"]) == 2
    assert "OTEL_AGENTEVAL_ENABLED" in capsys.readouterr().err


def test_the_demo_shows_the_defaults_whatever_is_configured(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_AGENTEVAL_INLINE__METRICS", "[code_cost]")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    assert main(["demo", "--once", "--port", "0"]) == 0
    assert "✗ code_repeated_tool_calls" in capsys.readouterr().out


def test_it_serves_metrics_until_interrupted() -> None:
    interruptible = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # what runs in the background is not
    )
    here, terminal = pty.openpty()
    server = subprocess.Popen(
        [*COMMAND[:2], interruptible + COMMAND[2], *COMMAND[3:], "--port", "0"],
        env=environment(),
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(terminal)
    shown = os.fdopen(here, encoding="utf-8")
    try:
        address = next(found[1] for line in shown if (found := re.search(r"^Serving (\S+) until Ctrl\+C", line)))
        request = urllib.request.Request(address, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        with urllib.request.urlopen(request, timeout=60) as response:
            page = response.read().decode()
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
    finally:
        server.kill()
        shown.close()
    turns = next(family for family in text_string_to_metric_families(page) if family.name == "agenteval_turns")
    assert sum(sample.value for sample in turns.samples if sample.name.endswith("_total")) == len(FAILS)
    assert server.returncode == 0
