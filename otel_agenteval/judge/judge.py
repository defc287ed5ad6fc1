"""A judge: one model that is asked about turns, one question at a time."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import JudgeError
from .prompt import REPAIR, Message, messages_of, read_reply
from .transport import Transport

_CACHED = 1_000


class Judge:
    """Asks a model that speaks OpenAI's chat completions: OpenAI itself, vLLM, Ollama, llama.cpp, LiteLLM and many more.

    Args:
        base_url: up to and including the version, as in ``http://127.0.0.1:11434/v1``.
        model: the model's name there.
        api_key: sent as bearer token.
        timeout: seconds that one call may take.
        transport: for tests, and for other ways to ask.

    Thread-safe. The same question is asked once: replies are kept (:meth:`clear_cache`).
    """

    def __init__(
        self, base_url: str, model: str, api_key: str | None = None, *, timeout: float = 30.0, transport: Transport | None = None
    ) -> None:
        self.model = model
        self._transport = transport or Transport(base_url, api_key, timeout)
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, str] = OrderedDict()

    def ask(self, stage: str, task: str, data: Mapping[str, Any], reply: str, *, media: Sequence[str] = ()) -> dict[str, Any]:
        """One question; the JSON object that the model replied. A reply that cannot be read is asked for once more.

        Args:
            stage: what the question is for, in the metric's words: for errors and accounts.
            task: what to judge and by which criteria.
            data: the material by name: texts, or values that are written as JSON. Not trusted.
            reply: the JSON object that is asked for, with a word on each value.
            media: uris of images, for models that see.

        Raises:
            JudgeError: the model could not be asked, or its reply could not be read twice.
        """
        messages = messages_of(task, data, reply, media)
        text = self._complete(messages)
        found = read_reply(text)
        if found is None:
            repair = [*messages, {"role": "assistant", "content": text}, {"role": "user", "content": REPAIR}]
            found = read_reply(self._complete(repair))
        if found is None:
            raise JudgeError(f"{stage}: the judge's reply holds no JSON object", "unreadable_reply")
        return found

    def clear_cache(self) -> None:
        """Forget all replies."""
        with self._lock:
            self._cache.clear()

    def close(self) -> None:
        """Release connections."""
        self._transport.close()

    def _complete(self, messages: list[Message]) -> str:
        key = json.dumps(messages, sort_keys=True)
        with self._lock:
            known = self._cache.get(key)
        if known is not None:
            return known
        body = {"model": self.model, "messages": messages, "temperature": 0, "response_format": {"type": "json_object"}}
        answer = self._transport.post("/chat/completions", body)
        text = _text_in(answer)
        with self._lock:
            self._cache[key] = text
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        return text


def _text_in(answer: Mapping[str, Any]) -> str:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        raise JudgeError("the judge's answer is no chat completion", "invalid_answer")
    content = message.get("content")
    return content if isinstance(content, str) else ""
