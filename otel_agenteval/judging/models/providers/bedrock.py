"""Wire format of Amazon Bedrock's Converse API. Requests use an API key or are signed by botocore (extra ``[bedrock]``).

botocore reads credentials from the environment, a profile, or a container's or machine's role, and renews expired credentials.
"""

from __future__ import annotations

import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from ....core.errors import JudgeError
from ....core.extras import require
from ....core.wellformed import sum_of
from . import parsing
from .base import ChatReply, ChatRequest, Finish, HttpRequest, Media, TokenUsage, unsupported_media
from .openai import headers

__all__ = ["answer", "headers", "request"]

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
    "guardrail_intervened": "refusal", "content_filtered": "refusal", "refusal": "refusal",
}  # fmt: skip


def request(chat: ChatRequest) -> HttpRequest:
    """Return the HTTP request. Without a schema, only the prompt asks for JSON, because the API has no JSON mode."""
    settings: dict[str, Any] = {"maxTokens": chat.room}
    if chat.temperature is not None:
        settings["temperature"] = chat.temperature
    body: dict[str, Any] = {
        "system": [{"text": chat.system}],
        "messages": [{"role": one.role, "content": [{"text": one.text}, *map(_part, one.media)]} for one in chat.messages],
        "inferenceConfig": settings,
    }
    if chat.form == "schema":
        schema = {"name": "reply", "schema": json.dumps(chat.schema)}
        body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
    return HttpRequest(f"/model/{urllib.parse.quote(chat.model, safe='')}/converse", body)


def _part(media: Media) -> dict[str, Any]:
    if media.url or media.kind not in ("image", "video"):
        raise unsupported_media(media, "Converse")
    return {media.kind: {"format": media.form, "source": {"bytes": media.data}}}


def answer(body: Mapping[str, Any]) -> ChatReply:
    message = parsing.mapping(body.get("output")).get("message")
    if not isinstance(message, Mapping):
        raise parsing.no_answer("Converse")
    reply = "".join(parsing.text(block.get("text")) for block in parsing.mappings(message.get("content")))
    usage = parsing.mapping(body.get("usage"))
    cached = parsing.count(usage.get("cacheReadInputTokens"))
    fresh = parsing.count(usage.get("inputTokens"))
    given = None if fresh is None else sum_of((fresh, cached, parsing.count(usage.get("cacheWriteInputTokens"))))
    finish = _FINISHES.get(parsing.text(body.get("stopReason")))
    reply = parsing.said(reply, message.get("role"), body.get("stopReason"))
    return ChatReply(reply, TokenUsage(given, parsing.count(usage.get("outputTokens")), cached), finish)


Sign = Callable[[str, bytes, Mapping[str, str]], Mapping[str, str]]
# --- signatures

_SERVICE = "bedrock"
_HOST = re.compile(r"(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$")


def region_in(base_url: str) -> str | None:
    """Return the AWS region in a Bedrock URL. For other servers, return None, because their requests aren't signed."""
    found = _HOST.search(urllib.parse.urlsplit(base_url).hostname or "")
    return None if found is None else found[1]


class Signer:
    """Signer for requests to one AWS region, with credentials from botocore. Thread-safe."""

    def __init__(self, region: str, credentials: Any = None) -> None:
        self._auth = require("botocore.auth", feature="Bedrock without an API key", extra="bedrock")
        self._requests = require("botocore.awsrequest", feature="Bedrock without an API key", extra="bedrock")
        self._region = region
        self._credentials = credentials
        self._lock = threading.Lock()

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> Mapping[str, str]:
        request = self._requests.AWSRequest("POST", url, data=body, headers=dict(headers))
        fault: str | None = None
        try:
            self._auth.SigV4Auth(self._found(), _SERVICE, self._region).add_auth(request)
        except JudgeError:
            raise
        except Exception as error:  # renewal calls a server, and the error text can contain the request
            fault = type(error).__name__
        if fault is not None:
            raise JudgeError(f"can't sign the request with AWS credentials: {fault}", "no_credentials")
        return dict(request.headers.items())

    def _found(self) -> Any:
        with self._lock:
            if self._credentials is None:
                session = require("botocore.session", feature="Bedrock without an API key", extra="bedrock")
                self._credentials = session.Session().get_credentials()
            if self._credentials is None:
                raise JudgeError("api_key: required, because botocore found no AWS credentials", "no_credentials")
            return self._credentials
