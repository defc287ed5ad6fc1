"""The pytest plugin in a user's test suite. Each suite runs in a separate pytest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap

import pytest

AGENT = """
from opentelemetry import trace

def agent(user="Weather in Paris?", says="It is sunny in Paris.", *, fails=False, name="bot"):
    tracer = trace.get_tracer("acme")
    messages = lambda role, text: '[{"role": "%s", "parts": [{"type": "text", "content": "%s"}]}]' % (role, text)
    with tracer.start_as_current_span("run", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}):
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", **({"error.type": "timeout"} if fails else {})}
        with tracer.start_as_current_span("execute_tool search", attributes=tool):
            pass
        call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": messages("user", user),
                "gen_ai.output.messages": messages("assistant", says), "gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 5}
        with tracer.start_as_current_span("chat m", attributes=call):
            pass
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """Return a function that runs a test suite with an agent. It returns (exit status, output)."""
    (tmp_path / "agent.py").write_text(AGENT)

    def run(tests, *options, conftest=""):
        (tmp_path / "conftest.py").write_text(textwrap.dedent(conftest))
        (tmp_path / "test_agent.py").write_text("from agent import agent\n" + textwrap.dedent(tests))
        # the plugins of other packages take longer to import than all else
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "agenteval", "-W", "error", *options]
        done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_test_sees_its_turns_and_their_scores(suite):
    status, out = suite("""
        def test_agent(agenteval):
            agent()
            scores = agenteval.assert_scores(
                "code_tool_success", {"code_contains": {"value": "Paris"}}, at_most={"code_latency": 60, "code_token_usage": 10}
            )
            assert [score.metric for score in scores] == ["code_tool_success", "code_contains", "code_latency", "code_token_usage"]
            assert agenteval.turn.output == "It is sunny in Paris."
            both = agenteval.assert_scores({"code_tool_success": {}, "code_contains": {"value": "Paris"}}, at_least={"code_contains": 1})
            assert [score.metric for score in both] == ["code_tool_success", "code_contains"]

        def test_another_agent(agenteval):
            agent("one", "1", name="first")
            agent("two", "2", name="second")
            assert [turn.agent for turn in agenteval.turns] == ["first", "second"]

        def test_a_metric_that_does_not_apply_can_be_allowed(agenteval):
            agent()
            agenteval.assert_scores("code_mrr", "code_tool_success", allow_skipped=True)
            agenteval.assert_scores(allow_skipped=True)
    """)
    assert status == 0, out
    assert "3 passed" in out


FAILURES = {
    "agenteval.assert_scores(at_least={'code_tool_success': 1})": "code_tool_success is 0, expected at least 1",
    "agenteval.assert_scores({'code_contains': {'value': 'Rome'}})": "code_contains failed with 0",
    "agenteval.assert_scores(at_most={'code_token_usage': 9})": "code_token_usage is 10, expected at most 9",
    "agenteval.assert_scores('code_mrr')": "missing:retrieved_ids",
    "agenteval.assert_scores('code_contains')": "missing_parameter",
    "agenteval.assert_scores('llm_relevance')": "llm_relevance was skipped (no_judge): this fixture calls no model",
    "agenteval.assert_scores('code_contians')": "code_contains",
    "agenteval.assert_scores(turns=[])": "at least one turn",
    "agent('b'); agenteval.turn": "got 2: ['Weather in Paris?', 'b']",
}


def test_what_fails_is_said_with_the_turn(suite):
    tests = [f"def test_{i}(agenteval):\n    agent(fails=True)\n    {call}\n" for i, call in enumerate(FAILURES)]
    status, out = suite("\n".join(tests))
    assert status == 1, out
    assert f"{len(FAILURES)} failed" in out
    told = re.split(r"^_+ test_\d _+$", out.partition("short test summary")[0], flags=re.MULTILINE)[1:]
    for message, text in zip(FAILURES.values(), told, strict=True):
        assert message in text
    assert "input: Weather in Paris?" in told[0]


@pytest.mark.slow
def test_tests_in_several_processes_and_coroutines_keep_their_turns_apart(suite, tmp_path):
    status, out = suite(
        """
        import asyncio
        import pytest

        async def ask(text):
            agent(text, text)

        @pytest.mark.parametrize("number", range(8))
        def test_agent(agenteval, number):
            async def all_of_them():
                await asyncio.gather(*(ask(f"{number}.{i}") for i in range(5)))
            asyncio.run(all_of_them())
            assert sorted(turn.output for turn in agenteval.turns) == [f"{number}.{i}" for i in range(5)]
            agenteval.assert_scores("code_tool_success")
        """,
        "-p", "xdist", "-n", "2", "--agenteval-report", "scores.jsonl",
    )  # fmt: skip
    assert status == 0, out
    lines = [line for path in tmp_path.glob("scores.jsonl.gw*") for line in path.read_text().splitlines()]
    assert len(lines) == 40
    assert {json.loads(line)["metric"] for line in lines} == {"code_tool_success"}


def test_a_suite_can_name_its_own_provider_and_loads_nothing_before(suite):
    status, out = suite(
        """
        import sys
        def test_nothing_is_loaded():
            ours = {name.removeprefix("otel_agenteval").lstrip(".") for name in sys.modules if name.startswith("otel_agenteval")}
            assert ours == {"", "core", "core.version", "instrumentation", "instrumentation.pytest_plugin"}

        def test_agent(agenteval, agenteval_tracer_provider):
            from opentelemetry import trace
            assert not hasattr(trace.get_tracer_provider(), "add_span_processor")
            with agenteval_tracer_provider.get_tracer("acme").start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
                pass
            assert len(agenteval.turn.llm_calls) == 1
        """,
        conftest="""
        import pytest
        from opentelemetry.sdk.trace import TracerProvider

        @pytest.fixture(scope="session")
        def agenteval_tracer_provider():
            return TracerProvider(shutdown_on_exit=False)
        """,
    )
    assert status == 0, out


def test_a_switched_off_sdk_is_said_and_not_passed(suite, monkeypatch):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    status, out = suite("def test_agent(agenteval):\n    agent()\n")
    assert status == 1
    assert "OTEL_SDK_DISABLED" in out
