"""Media in the telemetry of real SDKs and frameworks: the turn has the bytes or the address that the user gave."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("openai")
pytest.importorskip("langchain")
pytest.importorskip("pydantic_ai")
pytest.importorskip("opentelemetry.instrumentation.genai.openai")

import httpx
import openai
from pydantic_ai import Agent, AudioUrl, BinaryContent, DocumentUrl, ImageUrl
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel

import otel_agenteval as oa
from otel_agenteval.metrics.lib.media import attachments_of, contents_of, media_of
from tests.support.agents import langchain_traced, langgraph_agent, openai_traced
from tests.support.fake_llm import SCRIPTS
from tests.support.live import Live
from tests.support.media import blurred, image, scenery, sound, tone, uri

QUESTION, ANSWER = SCRIPTS["s1"][0], SCRIPTS["s1"][1][0]["text"]
PNG = image(scenery(64, 48))
WAV = sound(tone(0.5))
IMAGE, ADDRESS = uri(PNG, "image/png"), "https://cdn.example.com/a.jpg"
TEXT = {"type": "text", "text": QUESTION}


@pytest.fixture
def client(llm: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=llm, api_key="none", max_retries=0) as found:
        yield found


def asked(turn: oa.Turn) -> oa.Turn:
    """Return the turn, and check that media don't change its text."""
    assert turn.input == QUESTION
    assert IMAGE not in str(turn.output)
    return turn


@pytest.mark.parametrize("capture", ["SPAN_ONLY", "EVENT_ONLY"])
def test_openai_chat(live: Live, client: openai.OpenAI, capture: str) -> None:
    parts: list[Any] = [
        TEXT, {"type": "image_url", "image_url": {"url": IMAGE}}, {"type": "image_url", "image_url": {"url": ADDRESS, "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": base64.b64encode(WAV).decode(), "format": "wav"}},
    ]  # fmt: skip
    with openai_traced(live, capture):
        client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": parts}])
    turn = asked(live.turn())
    assert {type(attachment["modality"]) for attachment in attachments_of(turn)} == {str}, (
        "the package gives members of an enumeration"
    )
    assert [content.data for content in contents_of(turn, "image")] == [PNG]
    assert ADDRESS in [medium.reference for medium in media_of(turn, "image")]
    assert [content.data for content in contents_of(turn, "audio")] == [WAV]


def test_langgraph(live: Live, llm: str) -> None:
    openai_form = {"type": "image_url", "image_url": {"url": IMAGE}}
    own_form = {"type": "image", "base64": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
    with langchain_traced(live), httpx.Client() as http:
        langgraph_agent(llm, [], http_client=http).invoke(
            {"messages": [{"role": "user", "content": [TEXT, openai_form, own_form]}]}
        )
    turn = asked(live.turn())
    assert {content.data for content in contents_of(turn, "image")} == {PNG}
    score = oa.get_metric("code_image_blank").evaluate(turn)
    assert (score.status, score.passed) == ("ok", True)


@pytest.mark.parametrize("version", [5, 6])
def test_pydantic_ai(live: Live, version: int) -> None:
    settings = InstrumentationSettings(tracer_provider=live.provider, version=version, include_binary_content=True)
    agent = Agent(TestModel(custom_output_text=ANSWER), name="viewer", capabilities=[Instrumentation(settings)])
    agent.run_sync([
        QUESTION, BinaryContent(PNG, media_type="image/png"), ImageUrl(ADDRESS), BinaryContent(WAV, media_type="audio/wav"),
        AudioUrl("https://cdn.example.com/a.mp3"), DocumentUrl("https://cdn.example.com/a.pdf"),
    ])  # fmt: skip
    turn = asked(live.turn())
    assert [content.data for content in contents_of(turn, "image")] == [PNG]
    assert ADDRESS in [medium.reference for medium in media_of(turn, "image")]
    assert [content.data for content in contents_of(turn, "audio")] == [WAV]
    assert "https://cdn.example.com/a.mp3" in [medium.reference for medium in media_of(turn, "audio")]
    assert "https://cdn.example.com/a.pdf" in [attachment.get("uri") for attachment in attachments_of(turn)]


def test_a_turn_with_an_image_is_scored_as_it_runs(llm: str) -> None:
    """From the agent's spans over our worker to the image's measurements."""
    live = Live(config={"metrics": ["code_image_sharpness"], "inline": {"metrics": []}})
    try:
        settings = InstrumentationSettings(tracer_provider=live.provider, version=5, include_binary_content=True)
        agent = Agent(TestModel(custom_output_text=ANSWER), name="viewer", capabilities=[Instrumentation(settings)])
        agent.run_sync([QUESTION, BinaryContent(image(blurred(scenery(), 5), "JPEG"), media_type="image/jpeg")])
        (scored,) = live.scored()
        (score,) = [score for score in scored.scores if score.metric == "code_image_sharpness"]
        assert (score.status, score.passed) == ("ok", False)
        assert score.detail["images"][0]["width"] == 320
    finally:
        live.close()
