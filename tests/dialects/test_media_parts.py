"""Images, audio, video and documents in messages of each API and framework are kept unchanged in the turn."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.metrics.lib.media import contents_of, media_of
from tests.support.media import image, scenery
from tests.support.spans import agent, chat, span, turn_of

PNG = image(scenery(32, 24))
B64 = base64.b64encode(PNG).decode()
DATA = f"data:image/png;base64,{B64}"
ADDRESS = "https://cdn.example.com/a.png"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param({"type": "blob", "modality": "image", "mime_type": "image/png", "content": B64}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="GenAI blob"),
        pytest.param({"type": "blob", "modality": "image", "mime_type": "image/png", "data": B64}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="ADK blob"),
        pytest.param({"type": "uri", "modality": "video", "uri": "gs://b/o.mp4"}, {"modality": "video", "uri": "gs://b/o.mp4"}, id="GenAI uri"),
        pytest.param({"type": "file_data", "mime_type": "video/mp4", "uri": "gs://b/o"}, {"modality": "video", "mime_type": "video/mp4", "uri": "gs://b/o"}, id="ADK file_data"),
        pytest.param({"type": "file", "modality": "document", "mime_type": "application/pdf", "file_id": "f1"}, {"modality": "document", "mime_type": "application/pdf", "file_id": "f1"}, id="GenAI file"),
        pytest.param({"type": "image_url", "image_url": {"url": DATA, "detail": "low"}}, {"modality": "image", "uri": DATA}, id="chat image"),
        pytest.param({"type": "image_url", "image_url": ADDRESS}, {"modality": "image", "uri": ADDRESS}, id="chat image as text"),
        pytest.param({"type": "input_audio", "input_audio": {"data": B64, "format": "wav"}}, {"modality": "audio", "mime_type": "audio/wav", "data": B64}, id="chat audio"),
        pytest.param({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}}, {"modality": "document", "uri": "data:application/pdf;base64,JVBERi0="}, id="chat file"),
        pytest.param({"type": "file", "file": {"file_id": "file-9"}}, {"modality": "document", "file_id": "file-9"}, id="chat file by id"),
        pytest.param({"type": "input_image", "image_url": ADDRESS, "detail": "auto"}, {"modality": "image", "uri": ADDRESS}, id="Responses image"),
        pytest.param({"type": "input_image", "file_id": "file-7"}, {"modality": "image", "file_id": "file-7"}, id="Responses image by id"),
        pytest.param({"type": "input_file", "file_url": "https://h.example/a.pdf"}, {"modality": "document", "uri": "https://h.example/a.pdf"}, id="Responses file"),
        pytest.param({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": B64}}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="Anthropic image"),
        pytest.param({"type": "image", "source": {"type": "url", "url": ADDRESS}}, {"modality": "image", "uri": ADDRESS}, id="Anthropic image by address"),
        pytest.param({"type": "document", "source": {"type": "file", "file_id": "f2"}}, {"modality": "document", "file_id": "f2"}, id="Anthropic file"),
        pytest.param({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}, {"modality": "document", "mime_type": "application/pdf", "data": "JVBERi0="}, id="Anthropic document"),
        pytest.param({"inline_data": {"mime_type": "audio/mpeg", "data": B64}}, {"modality": "audio", "mime_type": "audio/mpeg", "data": B64}, id="Gemini inline"),
        pytest.param({"fileData": {"mimeType": "video/mp4", "fileUri": "https://h.example/v"}}, {"modality": "video", "mime_type": "video/mp4", "uri": "https://h.example/v"}, id="Gemini file"),
        pytest.param({"image": {"format": "png", "source": {"bytes": B64}}}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="Bedrock image"),
        pytest.param({"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/v.mp4"}}}}, {"modality": "video", "mime_type": "video/mp4", "uri": "s3://b/v.mp4"}, id="Bedrock video"),
        pytest.param({"type": "image", "source_type": "base64", "data": B64, "mime_type": "image/png"}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="LangChain 0.3 image"),
        pytest.param({"type": "audio", "base64": B64, "mime_type": "audio/wav"}, {"modality": "audio", "mime_type": "audio/wav", "data": B64}, id="LangChain 1 audio"),
        pytest.param({"type": "video", "url": "https://h.example/v.mp4"}, {"modality": "video", "uri": "https://h.example/v.mp4"}, id="LangChain 1 video"),
        pytest.param({"type": "media", "mime_type": "video/mp4", "file_uri": "gs://b/v"}, {"modality": "video", "mime_type": "video/mp4", "uri": "gs://b/v"}, id="LangChain for Google"),
        pytest.param({"type": "image-url", "url": ADDRESS}, {"modality": "image", "uri": ADDRESS}, id="pydantic-ai image"),
        pytest.param({"type": "binary", "media_type": "image/png", "content": B64}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="pydantic-ai bytes"),
        pytest.param({"type": "file", "mediaType": "image/png", "data": B64}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="Vercel file"),
        pytest.param({"type": "image", "image": DATA}, {"modality": "image", "uri": DATA}, id="Vercel image"),
        pytest.param({"type": "image", "image": B64, "mediaType": "image/png"}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="Vercel image as base64"),
    ],
)  # fmt: skip
def test_a_medium_is_read_in_each_form(part: dict[str, Any], expected: dict[str, Any]) -> None:
    text = {"text": "What is this?"} if "type" not in part else {"type": "text", "text": "What is this?"}
    for raw in ([{"role": "user", "content": [text, part]}], json.dumps([{"role": "user", "parts": [text, part]}])):
        (message,) = decode(raw, "user").messages
        assert list(message.attachments) == [expected]
        assert message.content == "What is this?"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param({"type": "tool_call_response", "id": "c", "response": [{"type": "text", "text": "Here."}, {"type": "image", "data": B64, "mimeType": "image/png"}]}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="MCP image"),
        pytest.param({"type": "tool_call_response", "id": "c", "response": {"content": [{"type": "audio", "data": B64, "mimeType": "audio/wav"}], "isError": False}}, {"modality": "audio", "mime_type": "audio/wav", "data": B64}, id="MCP result"),
        pytest.param({"type": "tool_call_response", "id": "c", "response": json.dumps({"content": [{"type": "image", "data": B64, "mimeType": "image/png"}]})}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="MCP result as text"),
        pytest.param({"type": "tool_call_response", "id": "c", "response": [{"type": "resource", "resource": {"uri": "file:///a.png", "mimeType": "image/png", "blob": B64}}]}, {"modality": "image", "mime_type": "image/png", "uri": "file:///a.png", "data": B64}, id="MCP resource"),
        pytest.param({"type": "tool_result", "tool_use_id": "c", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": B64}}]}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="Anthropic"),
        pytest.param({"toolResult": {"toolUseId": "c", "content": [{"image": {"format": "png", "source": {"bytes": B64}}}]}}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="Bedrock"),
        pytest.param({"type": "tool-result", "toolCallId": "c", "toolName": "look", "output": {"type": "content", "value": [{"type": "media", "data": B64, "mediaType": "image/png"}]}}, {"modality": "image", "mime_type": "image/png", "data": B64}, id="Vercel"),
        pytest.param({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": ADDRESS}]}, {"modality": "image", "uri": ADDRESS}, id="Responses"),
    ],
)  # fmt: skip
def test_media_that_a_tool_returned(part: dict[str, Any], expected: dict[str, Any]) -> None:
    for raw in ([{"role": "tool", "parts": [part]}], json.dumps([{"role": "tool", "parts": [part]}])):
        (message,) = decode(raw, "user").messages
        assert [dict(found) for found in message.attachments] == [expected]
        assert len(message.tool_results) == 1


@pytest.mark.parametrize(
    "result",
    [
        [{"type": "text", "text": "no image"}], {"image": "sunset"}, [{"type": "image"}], [{"type": "file", "name": "a.txt"}], "data:image/png",
        [{"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "x"}}], {"content": "x", "image": {"name": "y"}}, [{"type": "document", "source": {"type": "text", "data": "x"}}], 5, None, [[]],
    ],
)  # fmt: skip
def test_other_results_are_no_media(result: Any) -> None:
    (message,) = decode(
        [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": result}]}], "user"
    ).messages
    assert list(message.attachments) == []
    assert len(message.tool_results) == 1


def test_a_turn_has_what_its_tools_returned_and_its_answer_as_before() -> None:
    call = {"type": "tool_call", "id": "c", "name": "camera", "arguments": {}}
    seen = {"type": "tool_call_response", "id": "c", "response": [{"type": "image", "data": B64, "mimeType": "image/png"}]}
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": "What is outside?"}]}, {"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [seen]},
    ]  # fmt: skip
    says = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "A hill."}]}])
    turn = turn_of(chat(1, attributes={"gen_ai.input.messages": json.dumps(messages), "gen_ai.output.messages": says}))
    assert (turn.input, turn.output) == ("What is outside?", "A hill.")
    assert [content.data for content in contents_of(turn, "image")] == [PNG]


def asked_with(part: dict[str, Any]) -> str:
    return json.dumps([{"role": "user", "parts": [{"type": "text", "content": "What is this?"}, part]}])


@pytest.mark.parametrize("where", ["agent", "model", "both"])
def test_media_are_seen_on_the_agent_s_span_and_on_the_model_s(where: str) -> None:
    part = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": B64}
    says = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "A hill."}]}])
    plain = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "What is this?"}]}])

    def messages(here: str) -> dict[str, Any]:
        return {"gen_ai.input.messages": asked_with(part) if where in (here, "both") else plain, "gen_ai.output.messages": says}

    turn = turn_of(agent(1, attributes=messages("agent")), chat(2, 1, attributes=messages("model"), at=1, ms=50))
    assert (turn.input, turn.output) == ("What is this?", "A hill.")
    assert len(media_of(turn, "image")) == 1
    assert [content.data for content in contents_of(turn, "image")] == [PNG]


def test_an_answer_of_a_model_can_be_an_image() -> None:
    says = json.dumps(
        [{"role": "assistant", "parts": [{"type": "blob", "modality": "image", "mime_type": "image/png", "content": B64}]}]
    )
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.output.messages": says,
                  "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Draw."}]}])}  # fmt: skip
    turn = turn_of(span(1, name="chat m", attributes=attributes))
    assert [content.data for content in contents_of(turn, "image")] == [PNG]


def test_openinference_images() -> None:
    flat = {"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.contents.0.message_content.type": "text",
            "llm.input_messages.0.message.contents.0.message_content.text": "What is this?",
            "llm.input_messages.0.message.contents.1.message_content.type": "image",
            "llm.input_messages.0.message.contents.1.message_content.image.image.url": DATA,
            "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "A hill."}  # fmt: skip
    turn = turn_of(span(1, name="ChatCompletion", attributes=flat, scope="openinference.instrumentation.openai"))
    assert [content.data for content in contents_of(turn, "image")] == [PNG]
