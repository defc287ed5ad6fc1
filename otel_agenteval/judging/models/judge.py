"""Client that sends judge calls to one model."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import threading
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ...core import jsonio
from ...core.errors import ConfigError, JudgeError, NotAnswered
from ...core.score import Exchange
from ...metrics.question import Question, current_evaluation
from .base import JudgeModel, admit_repair, record_exchange
from .cache import is_cache_bypassed, without_marker_numbers
from .model_server import ModelServer, RequestKeywords, RequestOptions, tokens_in
from .prompt import REPAIR, RESCALE, SYSTEM, VERSION, material_of, prompt_of, repair_of, trusted_of, visible
from .providers import PROVIDERS, chosen, openai
from .providers.base import FORMS, MAX_TOKENS, MORE_TOKENS, ChatMessage, ChatReply, ChatRequest, Form, TokenUsage
from .providers.bedrock import Signer, region_in
from .reply import fault_in, hints_of, ranges_of, schema_of, verdict_in

if TYPE_CHECKING:
    from typing_extensions import Unpack

Endpoint = Literal["chat", "moderations"]
ENDPOINTS: tuple[Endpoint, ...] = ("chat", "moderations")
_REPLY_TOKENS = 300
_TEMPERATURE = 0.0


@dataclass(frozen=True, slots=True)
class _Capabilities:
    strictest: Form = "schema"
    temperature: bool = True
    system: bool = True
    """False if the model rejects system messages. In that case, the first message contains the system prompt."""
    stream: bool = False
    """True if the model answers only with an event stream, as some reasoning models do."""
    accepted: frozenset[Form] = frozenset()
    """Reply forms that the model accepted with these settings. If a request in an accepted form fails, the form isn't the cause."""
    refused: frozenset[str] = frozenset()
    """Schemas that the model rejected, although it accepts other schemas."""


class Judge(JudgeModel):
    """Client for judge calls to one model. Thread-safe. Each judge call runs in the calling thread.

    Args:
        base_url: URL including the API version, such as ``http://127.0.0.1:11434/v1``, without credentials or query.
        model: name of the model on the server. If ``provider`` isn't set, a prefix ``anthropic/``, ``gemini/``, ``bedrock/``,
            ``responses/``, or ``openai/`` sets the provider.
        api_key: API key, sent in the provider's header. Without a key, requests to Bedrock are signed with AWS credentials that
            botocore finds (extra ``[bedrock]``).
        provider: ``openai`` (default), ``responses``, ``anthropic``, ``gemini``, or ``bedrock``. ``openai`` uses chat completions,
            which vLLM, Ollama, LiteLLM, and many other servers support. If ``provider`` is set, the model name is sent unchanged.
        endpoint: ``chat`` (default) or ``moderations``. With ``moderations``, the metric ``llm_moderation`` uses the server's
            ``/moderations`` endpoint. Only for provider ``openai``.
        max_input_tokens: approximate maximum input of a judge call. Longer texts are shortened in the middle, and the score has
            ``detail["input_truncated"]``. Metrics that need the complete turn send several pieces and use the worst score.
        cache: mapping from a call's hash to the reply text, so that identical calls aren't repeated. Default: no cache.
        **requests: ``headers``: additional headers. ``timeout``: maximum seconds for one attempt. ``deadline``: maximum seconds
            for one judge call, including retries, repair, and waiting. ``max_concurrency``, ``requests_per_minute``, and
            ``tokens_per_minute``: limits. Calls above a limit wait. ``prices``: prices by model in USD per million tokens, such
            as ``{"qwen3": {"input": 0.2, "output": 0.6, "cached_input": 0.1}}``. Default: known prices of public servers.

    Raises:
        ConfigError: an argument is invalid.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        provider: str | None = None,
        endpoint: Endpoint = "chat",
        max_input_tokens: int | None = None,
        cache: MutableMapping[str, str] | None = None,
        **requests: Unpack[RequestKeywords],
    ) -> None:
        options = RequestOptions.of("Judge", requests)
        self._explicit, self.name = provider, model
        self.provider, self.model = chosen(model, provider)
        self._wire = PROVIDERS[self.provider]
        if endpoint not in ENDPOINTS:
            raise ConfigError(f"endpoint: must be {' or '.join(ENDPOINTS)}, got {endpoint!r}")
        if endpoint == "moderations" and self.provider != "openai":
            raise ConfigError(f"endpoint: 'moderations' requires provider openai, got {self.provider}")
        self._endpoint = endpoint
        key = (api_key or "").strip() or None
        region = region_in(base_url) if self.provider == "bedrock" and key is None and isinstance(base_url, str) else None
        sign = None if region is None else Signer(region)
        self.server = ModelServer(self.provider, base_url, self._wire.headers(key), options, sign=sign)
        """Client for the judge's server. Judges for other models on this server share the client."""
        self.address = self.server.base_url
        self.ledger = self.server.ledger
        self._most_tokens = max_input_tokens
        self._cache = cache
        self.has_cache = cache is not None
        self._lock = threading.Lock()
        self._capabilities = _Capabilities()
        self._by_model: dict[str, Judge] = {}

    def __repr__(self) -> str:
        return f"Judge({self.server.base_url!r}, {self.model!r}, provider={self.provider!r})"

    @property
    def priced(self) -> bool:
        return self.server.priced(self.model)

    def with_model(self, model: str) -> Judge:
        """Return a judge for another model on the same server, with the same connections and usage records.

        Raises:
            ConfigError: ``model`` names another provider's model, which needs a separate judge.
        """
        provider, name = chosen(model, self._explicit)
        if provider != self.provider:
            how = "Add its server to judge.servers, and choose the model in judge.choose"
            raise ConfigError(f"model: must be a model of provider {self.provider} at this base_url, got {model!r}. {how}")
        other = copy.copy(self)
        other.model = name if provider == "openai" else name.removeprefix(f"{provider}/")
        other._capabilities = _Capabilities()
        return other

    def _for_metric(self) -> Judge:
        evaluation = current_evaluation()
        model = None if evaluation is None else evaluation.model
        if model is None:
            return self
        return self._by_model.get(model) or self._by_model.setdefault(model, self.with_model(model))

    def answer(self, question: Question) -> dict[str, Any]:
        judge = self._for_metric()
        if judge is not self:
            return judge.answer(question)
        try:
            message = None if self._moderates(question) else self._message(question)
            key = self._key(question) if self._cache is not None else ""
            cached = self._read_cache(key)
            if cached is not None:
                return cached
            until = self.server.until()
            if message is None:
                found = self._moderate(question, until)
            else:
                found = self._verdict(message, self._complete((message,), question, until), question, until)
        except JudgeError as error:
            raise JudgeError(f"{question.stage}: judge: {error}", error.error_type, error.retry_after) from None
        if self._cache is not None:  # stored once the metric accepts it, because a cached invalid reply would fail again
            store = functools.partial(self._store, key, json.dumps(found))
            evaluation = current_evaluation()
            if evaluation is None:
                store()
            else:
                evaluation.when_accepted(store)
        return found

    def cached(self, question: Question) -> dict[str, Any] | None:
        """Return the cached reply to a judge call, or None. Within :func:`bypassing_cache`, always return None."""
        if self._cache is None or is_cache_bypassed():
            return None
        if not self._moderates(question):
            self._message(question)
        return self._read_cache(self._for_metric()._key(question))

    def clear_cache(self) -> None:
        """Delete all cached replies."""
        if self._cache is not None:
            with self._lock:
                self._cache.clear()

    def close(self) -> None:
        self.server.close()
        close = getattr(self._cache, "close", None)
        if close is not None:
            close()

    # --- the question

    def _moderates(self, question: Question) -> bool:
        return self._endpoint == "moderations" and question.stage == "moderation" and "response" in question.data

    def _message(self, question: Question) -> ChatMessage:
        evaluation = current_evaluation()
        piece = evaluation.piece if evaluation is not None and evaluation.reads_all else None
        prompt = prompt_of(question, self._most_tokens, piece)
        if evaluation is not None:
            evaluation.learn(prompt.pieces, prompt.truncated)
        return prompt.message

    # --- the cache

    def _key(self, question: Question) -> str:
        texts = without_marker_numbers(json.dumps(dict(question.data), default=repr, ensure_ascii=False))
        evaluation = current_evaluation()
        identity, piece = ("", 0) if evaluation is None else (evaluation.identity, evaluation.piece)
        parts = [
            self.server.base_url, self.provider, self.model, self._endpoint, VERSION, _TEMPERATURE, MAX_TOKENS, self._most_tokens,
            identity, piece, question.task, texts, question.reply, trusted_of(question.criteria), list(question.media), question.schema,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()

    def _read_cache(self, key: str) -> dict[str, Any] | None:
        if self._cache is None or is_cache_bypassed():
            return None
        with self._lock:
            text = self._cache.get(key)
        try:
            found = None if text is None else jsonio.loads(text)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _store(self, key: str, text: str) -> None:
        assert self._cache is not None
        with self._lock:
            self._cache[key] = text

    # --- requests

    def _complete(
        self, messages: tuple[ChatMessage, ...], question: Question, until: float, *, repair: bool = False, room: int = MAX_TOKENS
    ) -> ChatReply:
        """Return a reply in the strictest form that the model supports (schema, JSON, or plain text), and remember this form."""
        schema = schema_of(question.reply) if question.schema is None else question.schema
        capabilities = self._capabilities
        while True:
            takes_schema = schema is not None and not (capabilities.refused and _name_of(schema) in capabilities.refused)
            form = max("schema" if takes_schema else "json", capabilities.strictest, key=FORMS.index)
            system, sent = SYSTEM, messages
            if not capabilities.system:
                system, sent = "", (replace(messages[0], text=f"{SYSTEM}\n\n{messages[0].text}"), *messages[1:])
            temperature = _TEMPERATURE if capabilities.temperature else None
            chat = ChatRequest(self.model, system, sent, form, schema, temperature, room, capabilities.stream)
            texts = [system, *(message.text for message in sent)]
            reply: ChatReply | None = None
            try:
                reply = self.server.call(
                    question.stage, self.model, self._wire.request(chat), lambda body: ((read := self._wire.answer(body)), read.usage), until=until,
                    estimate=TokenUsage(tokens_in(texts), _REPLY_TOKENS), repair=repair,
                )  # fmt: skip
            except NotAnswered as refusal:
                fewer = _without(capabilities, form, _name_of(schema), refusal)
                if fewer is None:
                    raise
                capabilities = fewer
                continue
            finally:
                record_exchange(Exchange(question.stage, self.model, texts[-1], None if reply is None else reply.text))
            if capabilities is not self._capabilities or form not in capabilities.accepted:
                self._capabilities = replace(capabilities, accepted=capabilities.accepted | {form})
            if reply.finish == "refusal":
                raise JudgeError("the model or a content filter declined to reply", "refusal")
            return reply

    def _verdict(self, message: ChatMessage, reply: ChatReply, question: Question, until: float) -> dict[str, Any]:
        """Return the verdict in ``reply``. If the reply is invalid or uses an unclear scale, send one repair request."""
        ranges, schema = ranges_of(question.reply), question.schema
        keys = tuple(hints_of(question.reply) if schema is None else schema.get("properties", ()))
        found = verdict_in(reply.text, keys, material="\n".join(material_of(question.data, ())[0].values()))
        fault = None if found is None else fault_in(found, keys, ranges)
        if found is None or fault is not None:
            reply = self._repair(message, reply, question, until, RESCALE if fault == "scale" else REPAIR)
            found = verdict_in(reply.text, keys) or (found if fault == "form" else None)
        if found is None and reply.finish == "length":
            raise JudgeError("the reply was truncated at the output limit", "truncated_reply")
        if found is None:
            raise JudgeError("the reply must be exactly one JSON object", "unreadable_reply")
        if fault_in(found, keys, ranges) == "scale":
            raise JudgeError("all scores are at most 1, but the scale is 0 to 100", "invalid_reply")
        return found

    def _repair(self, message: ChatMessage, reply: ChatReply, question: Question, until: float, request: str) -> ChatReply:
        """Request a new reply. After a blank reply, don't use structured output. After a truncated reply, raise the token limit. If
        the server rejects the higher limit, return the first reply.
        """
        cut = reply.finish == "length"
        room = MORE_TOKENS if cut else MAX_TOKENS
        if not reply.text.strip() and (reply.text or not cut):  # constrained decoding can fail, or only generate white space
            self._capabilities = replace(self._capabilities, strictest="plain")
        admit_repair()
        try:
            return self._complete(repair_of(message, reply.text, request), question, until, repair=True, room=room)
        except NotAnswered as refusal:
            if cut and refusal.status == 400:
                return reply
            raise

    def _moderate(self, question: Question, until: float) -> dict[str, Any]:
        response = visible(str(question.data["response"]))
        request, estimate = openai.moderation_request(self.model, response), TokenUsage(tokens_in([response]), 0)
        found: dict[str, Any] | None = None
        try:
            found = self.server.call(question.stage, self.model, request, openai.moderation, until=until, estimate=estimate)
        finally:
            record_exchange(Exchange(question.stage, self.model, response, None if found is None else jsonio.dumps(found)))
        return found


def _name_of(schema: Mapping[str, Any] | None) -> str:
    return "" if schema is None else json.dumps(schema, default=repr, sort_keys=True)


def _without(capabilities: _Capabilities, form: Form, schema: str, refusal: NotAnswered) -> _Capabilities | None:
    """Return capabilities without the setting that the model rejected. If the rejection has another cause, return None."""
    if refusal.status not in (400, 422, 500, 501) or refusal.transient or refusal.hints & {"context", "refusal", "credit"}:
        return None
    if not capabilities.stream and "stream" in refusal.hints:
        return replace(capabilities, stream=True)
    unsure = "parameter" in refusal.hints and not refusal.hints & {"format", "temperature"} and form not in capabilities.accepted
    if capabilities.temperature and "temperature" in refusal.hints:
        return replace(capabilities, temperature=False, accepted=frozenset())
    if capabilities.system and "system" in refusal.hints:
        return replace(capabilities, system=False, accepted=frozenset())
    if form == "schema" and form in capabilities.accepted and "format" in refusal.hints:
        return replace(capabilities, refused=capabilities.refused | {schema})
    if form != "plain" and ("format" in refusal.hints or unsure):
        return replace(capabilities, strictest=FORMS[FORMS.index(form) + 1])
    if capabilities.temperature and unsure:
        return replace(capabilities, temperature=False, accepted=frozenset())
    return None
