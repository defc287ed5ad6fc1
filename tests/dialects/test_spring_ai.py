"""Spring AI's attributes that the recordings don't contain."""

from __future__ import annotations

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import is_genai_scope, read, role_of
from otel_agenteval.spans.record import LogPart
from tests.support.spans import span

BOOT = "org.springframework.boot"


def step_of(logs=(), *, name="one", **attributes):
    record = span(1, name=name, attributes={key.replace("__", "."): value for key, value in attributes.items()}, scope=BOOT)
    record.logs = [LogPart("", {}, body, time) for time, body in enumerate(logs)]
    return read(record)


def texts(raw, role):
    return [(message.role, message.content) for message in decode(raw, role).messages]


@pytest.mark.parametrize(
    ("attributes", "role"),
    [
        pytest.param({"spring.ai.kind": "chat_client", "gen_ai.operation.name": "framework"}, "agent", id="a client's run"),
        pytest.param({"spring.ai.kind": "advisor"}, "inner", id="an advisor"),
        pytest.param({"spring.ai.kind": "tool_call", "gen_ai.operation.name": "framework"}, "tool", id="a tool"),
        pytest.param({"spring.ai.kind": "vector_store", "db.operation.name": "query"}, "retrieval", id="a search"),
        pytest.param({"spring.ai.kind": "vector_store", "db.operation.name": "add"}, "inner", id="filling a store"),
        pytest.param({"gen_ai.operation.name": "chat"}, "llm", id="a request"),
        pytest.param({"http.url": "http://127.0.0.1"}, None, id="a request of the application's"),
    ],
)
def test_roles(attributes, role):
    """The span kind determines the role, because all spans of an application have the same scope."""
    assert role_of(attributes, BOOT, "one") == role


def test_log_records_are_spring_ai_s_by_their_scope():
    """Loggers are named after classes. Spans have Spring Boot's scope, which isn't specific to GenAI."""
    assert is_genai_scope("org.springframework.ai.chat.observation.ChatModelCompletionObservationHandler")
    assert not is_genai_scope(BOOT)


def test_a_milestone_s_client_holds_what_the_user_said():
    """Milestone releases wrote the user's message as an attribute."""
    step = step_of(
        spring__ai__kind="chat_client",
        spring__ai__chat__client__user__text="Hi",
        spring__ai__chat__client__system__text="Be kind",
    )
    assert texts(step.input_messages, "user") == [("user", "Hi")]
    assert step.system == "Be kind"


def test_a_failed_call_has_no_model_named_none():
    """Micrometer writes ``none`` for missing values."""
    asked = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4.1-mini", "gen_ai.response.model": "none"}
    assert read(span(1, attributes=asked, scope=BOOT)).model == "gpt-4.1-mini"


def test_a_search_holds_its_query_and_logs_its_documents():
    """Document texts are in a log record or, in milestone releases, in an attribute."""
    found = 'Vector Store Query Response:\n["returns: 30 days", "a \\"quote\\""]'
    step = step_of([found], spring__ai__kind="vector_store", db__operation__name="query", db__vector__query__content="how long?")
    assert step.query == "how long?"
    assert [document.content for document in step.documents] == ["returns: 30 days", 'a \\"quote\\"']
    old = step_of(spring__ai__kind="vector_store", name="simple query", db__vector__query__response__documents='["one"]')
    assert [document.content for document in old.documents] == ["one"]


def test_a_prompt_has_texts_without_roles():
    """The prompt contains texts without roles. The last non-empty text is the user's, without documents added by an advisor."""
    rag = "How long?\n\nContext information is below, surrounded by ---------------------\n\n30 days"
    log = f'Chat Model Prompt Content:\n["Be kind", "{rag}", "null", ""]'
    step = step_of([log, "Chat Model Completion:\n[]", "something else", None], gen_ai__operation__name="chat")
    assert texts(step.input_messages, "user") == [
        ("system", "Be kind"),
        ("system", "Context information is below, surrounded by ---------------------\n\n30 days"),
        ("user", "How long?"),
    ]
    assert texts(step.output_messages, "assistant") == []
    assert texts(step_of(gen_ai__operation__name="chat", gen_ai__prompt='["", ""]').input_messages, "user") == []


def test_a_client_s_answer_in_a_log():
    """Newer versions also log the client's answer."""
    step = step_of(['Chat Client Completion:\n["Hi"]'], spring__ai__kind="chat_client")
    assert texts(step.output_messages, "assistant") == [("assistant", "Hi")]


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ('"30 days"', False),
        ("30 days", False),
        ('{"a": 1}', False),
        ("order service timed out", True),
        ("true", False),
        ("", False),
    ],
)
def test_a_tool_s_failure_is_no_json(result, failed):
    """Results are written as JSON, but an exception's message is plain text."""
    step = step_of(spring__ai__kind="tool_call", spring__ai__tool__definition__name="t", spring__ai__tool__call__result=result)
    assert (step.error is not None) is failed
