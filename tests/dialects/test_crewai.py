"""CrewAI's spans: input and output of a crew, and the agents that did the work."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import chat, span, turn_of, turns_of

OPENINFERENCE = "openinference.instrumentation.crewai"
TRACELOOP = "opentelemetry.instrumentation.crewai.instrumentation"
TELEMETRY = "crewai.telemetry"


def kind(name: str, **more: object) -> dict[str, object]:
    return {"openinference.span.kind": name, **more}


def tasks(*descriptions: str) -> str:
    return json.dumps([{"description": text, "expected_output": "a text"} for text in descriptions])


def output(text: str) -> str:
    return json.dumps({"raw": text, "pydantic": None, "json_dict": None, "tasks_output": [{"raw": text, "content": "no"}]})


def crew(**more: object):
    return span(1, 0, "crew.kickoff", kind("CHAIN", **more), scope=OPENINFERENCE, ms=100)


def workflow(**more: object):
    attributes = {f"crewai.crew.{key}": value for key, value in more.items()}
    return span(1, 0, "crewai.workflow", {"gen_ai.operation.name": "invoke_agent", **attributes}, scope=TRACELOOP, ms=100)


@pytest.mark.parametrize(
    ("attributes", "scope", "name", "role"),
    [
        pytest.param(kind("TOOL", **{"tool.name": "Delegate work to coworker"}), OPENINFERENCE, "x", "agent", id="delegated"),
        pytest.param(kind("TOOL", **{"tool.name": "ask_question_to_coworker"}), OPENINFERENCE, "x", "agent", id="a question"),
        pytest.param(kind("TOOL", **{"tool.name": ["x"]}), OPENINFERENCE, "x", "tool", id="a name of the wrong type"),
        pytest.param({"gen_ai.operation.name": "invoke_agent"}, TRACELOOP, "crewai.workflow", "workflow", id="a crew"),
        pytest.param({"crew_key": "k", "crew_id": "i"}, TELEMETRY, "Crew Created", None, id="telemetry of the product"),
        pytest.param({"tool_name": "t", "llm": "m"}, TELEMETRY, "Tool Usage", None, id="of a tool in the product"),
    ],
)
def test_a_span_s_role(attributes, scope, name, role):
    assert role_of(attributes, scope, name) == role


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        pytest.param({"crew_tasks": tasks("Find a hotel")}, "Find a hotel", id="the task"),
        pytest.param({"crew_tasks": tasks("Find a hotel", "Book it")}, "Find a hotel", id="the first of several tasks"),
        pytest.param(
            {"crew_tasks": tasks("Answer: {question}"), "crew_inputs": '{"question": "Why?"}'}, "Why?", id="the input called question"
        ),
        pytest.param(
            {"crew_tasks": tasks("{a} {b} {user_input}"), "input.value": '{"a": "x", "b": "y", "user_input": "Why?"}'},
            "Why?", id="one input of several",
        ),
        pytest.param({"crew_tasks": tasks("About {thing}"), "crew_inputs": '{"thing": "bears"}'}, "bears", id="the only input"),
        pytest.param(
            {"crew_tasks": tasks("Compare {a} with {b}"), "crew_inputs": '{"a": "x", "b": "y"}'}, "Compare x with y",
            id="inputs of which none is the user's alone",
        ),
        pytest.param(
            {"crew_tasks": tasks("Compare {a} with {b}"), "crew_inputs": '{"a": "x", "n": 5}'}, "Compare x with {b}", id="an input is missing"
        ),
        pytest.param({"crew_tasks": tasks("About {thing}")}, None, id="a place for an input, and no inputs"),
        pytest.param({"crew_tasks": "[1]"}, None, id="tasks of the wrong type"),
        pytest.param({"crew_tasks": "no json", "crew_inputs": 5}, None, id="nothing that can be read"),
        pytest.param({}, None, id="nothing at all"),
    ],
)  # fmt: skip
def test_what_a_crew_was_asked(given, asked):
    assert read(crew(**given)).input_messages == asked


@pytest.mark.parametrize(
    ("template", "ran", "asked"),
    [
        pytest.param("{question}", "Why?", "Why?", id="the whole task"),
        pytest.param("Answer {customer}: {question}", "Answer Ada: Why?", "Why?", id="one of two"),
        pytest.param("Say it's {a}, {b}.", "Say it's x, y.", "Say it's x, y.", id="none of them the user's alone"),
        pytest.param("{a}{b}", "xy", "xy", id="nothing between two"),
        pytest.param("{a} {a}", "x x", None, id="one twice"),
        pytest.param("About {thing}", "Something else", None, id="another task ran"),
    ],
)
def test_inputs_that_nobody_wrote_are_read_off_the_task_that_ran(template, ran, asked):
    found = read(
        workflow(tasks=tasks("First", template), tasks_output=f"[TaskOutput(description='F'), TaskOutput(description={ran!r})]")
    )
    assert found.input_messages == asked


def test_a_crew_s_answer_is_the_text_of_its_output():
    turn = turn_of(crew(crew_tasks=tasks("Why?"), **{"output.value": output("Because.")}), chat(2, 1, says="{}"))
    assert (turn.input, turn.output, turn.error) == ("Why?", "Because.", None)


def test_what_the_calls_used_counts_before_what_the_run_says():
    used = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 1}
    turn = turn_of(workflow(tasks=tasks("Why?"), token_usage="prompt_tokens=7 completion_tokens=2"), chat(2, 1, attributes=used))
    assert turn.usage is not None
    assert turn.usage.total_tokens == 4


CALL = (
    "ChatCompletionMessageToolCall(function=Function(arguments='{\"city\": \"Nice\"}', name='weather'), id='c1', type='function')"
)


def test_tool_calls_that_were_written_as_text():
    parts = [{"type": "text", "content": f"[{CALL}]"}]
    attributes = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "openai/m", "gen_ai.provider.name": "openai",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
    }  # fmt: skip
    step = read(span(1, name="openai/m.llm", attributes=attributes, scope=TRACELOOP))
    (call,) = decode(step.output_messages, "assistant").messages[0].tool_calls
    assert (call.name, call.arguments, call.call_id) == ("weather", '{"city": "Nice"}', "c1")
    assert step.model == "m"


@pytest.mark.parametrize(
    "raw",
    ["[1]", '{"parts": 5}', '[{"parts": 5}]', '[{"parts": [5]}]', "no json"],
    ids=["number", "object", "no list", "no part", "text"],
)
def test_text_that_only_looks_like_tool_calls(raw):
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": f"{raw} ToolCall(function=Function(arguments="}
    assert read(span(1, attributes=attributes, scope=TRACELOOP)).output_messages == attributes["gen_ai.output.messages"]


def test_product_telemetry_makes_no_turn():
    assert turns_of(span(1, name="Crew Created", attributes={"crew_key": "k"}, scope=TELEMETRY)) == []


@pytest.mark.parametrize(
    "prompt",
    [
        "\nCurrent Task: Why?",
        "\nCurrent Task: Why?\n\nThis is the expected criteria for your final answer: A text.\nyou MUST return it.",
        "\nCurrent Task: Why?\n\nThis is the expect criteria for your final answer: A text.",
    ],
    ids=["alone", "with criteria", "with criteria, as they once were spelled"],
)
def test_a_crew_s_prompt_holds_the_question(prompt):
    assert turn_of(chat(1, user=prompt, says="Because.")).input == "Why?"


def ran(*tasks_run: str) -> str:
    return "[" + ", ".join(tasks_run) + "]"


def task_output(description: str, messages: str) -> str:
    return f"TaskOutput(description={description!r}, raw='x', output_format=<OutputFormat.RAW: 'raw'>, messages={messages}, tool_failures=[])"


def test_a_crew_that_ran_before_was_asked_what_it_ran_with():
    """The crew's tasks still contain the inputs of its previous run."""
    outputs = ran(task_output("What now?", "[]"))
    assert turn_of(workflow(tasks=tasks("What before?"), result="x", tasks_output=outputs), chat(2, 1)).input == "What now?"


def test_a_crew_that_failed_was_asked_what_its_task_says():
    root = span(1, 0, "crewai.workflow", {"crewai.crew.tasks": tasks("What before?")}, scope=TRACELOOP, ms=100, error="down")
    task = span(2, 1, "x.task", {"traceloop.span.kind": "task", "crewai.task.description": "What now?"}, scope=TRACELOOP, ms=90)
    assert turn_of(root, task).input == "What now?"


def test_tools_of_a_crew_without_their_spans():
    talk = [
        {"role": "user", "content": "It's [5]"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "a", "function": {"name": "look", "arguments": '{"at": "]"}'}},
            {"id": "d", "function": {"name": "delegate_work_to_coworker", "arguments": "{}"}}]},
        {"role": "tool", "content": 'he said "[no"', "tool_call_id": "a"},
    ]  # fmt: skip
    outputs = ran(task_output("Why?", repr(talk)), task_output("More?", "[cut"))
    turn = turn_of(workflow(tasks=tasks("Why?"), result="x", tasks_output=outputs))
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [("look", {"at": "]"}, 'he said "[no"')]
    assert turn.output == "x"
