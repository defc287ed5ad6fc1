"""The demo as a new user runs it, and what its agent is made to show."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from otel_agenteval.cli import demo
from otel_agenteval.config.root import Config
from otel_agenteval.evaluation.scored_turn import ScoredTurn
from otel_agenteval.instrumentation.attach import instrument

COMMAND = [sys.executable, "-c", "import sys; from otel_agenteval.cli.main import main; sys.exit(main())", "demo"]
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


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], env={**environment(), **(env or {})}, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def once() -> subprocess.CompletedProcess[str]:
    return run("--once", "--port", "0")


@pytest.fixture(scope="module")
def scored() -> dict[str, ScoredTurn]:
    provider = demo.new_provider()
    handle = instrument(tracer_provider=provider, config=Config(), prometheus_port=0)
    try:
        return {scene.title: turn for scene, turn in demo.play(provider, handle)}
    finally:
        handle.shutdown()


def test_once_exits_well_and_complains_of_nothing(once: subprocess.CompletedProcess[str]) -> None:
    assert (once.returncode, once.stderr) == (0, "")


def test_every_scene_stands_under_its_title(once: subprocess.CompletedProcess[str]) -> None:
    headings = re.findall(r"^── \d · (.+?) ─+$", once.stdout, re.MULTILINE)
    assert headings == list(FAILS)


@pytest.mark.parametrize("title", FAILS)
def test_the_output_names_what_failed_in_each_turn_and_nothing_else(title: str, once: subprocess.CompletedProcess[str]) -> None:
    section = once.stdout.split(f" · {title} ", 1)[1].split("── ", 1)[0]
    assert set(re.findall(r"^  ✗ (code_\w+)", section, re.MULTILINE)) == FAILS[title]


@pytest.mark.parametrize(
    "words",
    [
        "code_repeated_tool_calls search_trains was called 4 times with the same arguments",
        "github_token",
        "numbers can't be found in, or calculated from, the sources: 64.50",
        "sources: https://night-trains.alpine-rail.ch/icn-797",
        "instruction_override in tool:read_page",
        "the answering call stopped by length",
    ],
)
def test_the_output_says_why(words: str, once: subprocess.CompletedProcess[str]) -> None:
    assert words in " ".join(once.stdout.split())


def test_the_excerpt_is_what_openmetrics_says(once: subprocess.CompletedProcess[str]) -> None:
    lines = [line.strip() for line in once.stdout.splitlines() if line.startswith("  agenteval_")]
    assert any('outcome="fail"' in line for line in lines)
    assert any("# {" in line and "trace_id" in line for line in lines), "an exemplar"


def test_no_line_but_those_of_metrics_is_wider_than_100_columns(once: subprocess.CompletedProcess[str]) -> None:
    wide = [line for line in once.stdout.splitlines() if len(line) > 100 and not line.startswith("  agenteval_")]
    assert wide == []


def test_a_pipe_gets_no_colours(once: subprocess.CompletedProcess[str]) -> None:
    assert "\033" not in once.stdout


def test_two_runs_differ_in_port_and_exemplar_time_only(once: subprocess.CompletedProcess[str]) -> None:
    def timeless(text: str) -> str:
        return re.sub(r":\d+/metrics|[0-9]{10}\.[0-9]+$", "", text, flags=re.MULTILINE)

    assert timeless(run("--once", "--port", "0").stdout) == timeless(once.stdout)


def test_a_port_in_use_is_a_warning_and_another_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--once", "--port", str(port))
    assert done.returncode == 0
    assert f"{port} is in use" in done.stderr
    assert re.search(r"http://127\.0\.0\.1:(\d+)/metrics", done.stdout)[1] != str(port)  # type: ignore[index]


def test_a_port_that_is_none_is_refused_with_what_is_allowed() -> None:
    done = run("--once", "--port", "99999")
    assert done.returncode == 2
    assert "must be a port from 0" in done.stderr


@pytest.mark.parametrize("switch", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_AGENTEVAL_ENABLED": "false"}], ids=str)
def test_the_demo_says_that_the_environment_switched_it_off(switch: dict[str, str]) -> None:
    done = run("--once", "--port", "0", env=switch)
    assert done.returncode == 2
    assert "OTEL_AGENTEVAL_ENABLED" in done.stderr


def test_the_demo_shows_the_defaults_whatever_is_configured() -> None:
    done = run(
        "--once", "--port", "0", env={"OTEL_AGENTEVAL_INLINE__METRICS": "[code_cost]", "OTEL_TRACES_SAMPLER": "always_off"}
    )
    assert done.returncode == 0
    assert "✗ code_repeated_tool_calls" in done.stdout


def test_without_a_terminal_it_ends_after_printing(once: subprocess.CompletedProcess[str]) -> None:
    done = run("--port", "0")
    assert done.returncode == 0
    assert "until Ctrl-C" not in done.stdout
    assert len(done.stdout.splitlines()) == len(once.stdout.splitlines())


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
        address = next(found[1] for line in shown if (found := re.search(r"^Serving (\S+) until Ctrl-C", line)))
        request = urllib.request.Request(address, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        with urllib.request.urlopen(request, timeout=10) as response:
            page = response.read().decode()
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)
    finally:
        server.kill()
        shown.close()
    turns = next(family for family in text_string_to_metric_families(page) if family.name == "agenteval_turns")
    assert sum(sample.value for sample in turns.samples if sample.name.endswith("_total")) == len(FAILS)
    assert server.returncode == 0


@pytest.mark.parametrize("title", FAILS)
def test_each_turn_is_understood_in_full(title: str, scored: dict[str, ScoredTurn]) -> None:
    turn = scored[title].turn
    scene = next(scene for scene in demo.SCENES if scene.title == title)
    assert isinstance(scene.steps[-1], demo.Answer)
    uses: Sequence[demo.Use] = [step for step in scene.steps if isinstance(step, demo.Use)]
    assert (turn.close_reason, turn.complete, turn.truncated) == ("root_ended", True, False)
    assert (turn.input, turn.output, turn.system) == (scene.user, scene.steps[-1].text, demo.SYSTEM)
    assert [(call.name, call.arguments) for call in turn.tool_calls or []] == [(use.tool, use.arguments) for use in uses]
    assert len(turn.llm_calls) == len(scene.steps)
    assert turn.duration_s == pytest.approx(0.02 + 0.8 * len(scene.steps) + 0.25 * len(uses))


def test_each_turn_has_the_whole_default_pack(scored: dict[str, ScoredTurn]) -> None:
    for turn in scored.values():
        assert len([score for score in turn.scores if score.status == "ok"]) >= 18
        assert [score.metric for score in turn.scores if score.status == "error"] == []
