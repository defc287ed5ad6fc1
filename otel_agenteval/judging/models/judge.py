"""A judge: one model that is asked about turns, one question at a time."""

from __future__ import annotations

import copy
import hashlib
import json
import threading
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core import jsonio
from ...core.errors import ConfigError, JudgeError, NotAnswered
from ...core.exchange import Exchange
from ...metrics.evaluation_context import current_evaluation
from . import moderations
from .accounts import Account, Total, admit_repair, note
from .aws import Signer, region_in
from .base import JudgeModel
from .cache import Closes, is_cache_bypassed, without_marker_numbers
from .invisible import shown
from .model_server import ModelServer, tokens_in
from .prompt import (
    SYSTEM,
    VERSION,
    Criteria,
    fits,
    in_pieces,
    material_of,
    message_of,
    repair_of,
    room_of,
    trusted_of,
    within,
)
from .providers import PROVIDERS, Answer, Form, Message, Question, Usage, chosen
from .providers.base import FORMS, MAX_TOKENS, MORE_TOKENS
from .reply import verdict_in
from .reply_schema import keys_of, schema_of
from .request_options import RequestKeywords, RequestOptions
from .transport import Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

_REPLY_TOKENS = 300
_TEMPERATURE = 0.0


@dataclass(frozen=True, slots=True)
class _Capabilities:
    """What a model was found to take."""

    strictest: Form = "schema"
    temperature: bool = True
    accepted: frozenset[Form] = frozenset()
    """Forms that were taken with these settings: a refusal then is about something else."""
    refused: frozenset[str] = frozenset()
    """Schemas that are not taken where others are."""


class Judge(JudgeModel):
    """Asks a model, one question at a time.

    Args:
        base_url: up to and including the version, as in ``http://127.0.0.1:11434/v1``; without credentials or query.
        model: the model's name there. A beginning ``anthropic/``, ``gemini/``, ``bedrock/``, ``responses/`` or ``openai/`` says the
            provider, unless ``provider`` does.
        api_key: sent in the header that the provider knows. Without one, requests to Bedrock are signed with the AWS credentials of
            the environment (extra ``[bedrock]``).
        provider: ``openai`` (chat completions: OpenAI, vLLM, Ollama, llama.cpp, LiteLLM and many others; the default),
            ``responses``, ``anthropic``, ``gemini`` or ``bedrock``. The model's name is then sent as it is.
        endpoint: ``moderations`` puts what ``llm_moderation`` asks to the server's ``/moderations`` (of the provider ``openai``), with
            this model and the response alone; all else goes to ``chat``, the default.
        headers: further headers.
        timeout: seconds that one attempt may take.
        deadline: seconds that one question may take, with retries, repair and waiting for its turn.
        max_concurrency: questions at once; more wait. None is no limit, here and below.
        requests_per_minute: rate of requests.
        tokens_per_minute: rate of input and output tokens.
        prices: by model, USD per million tokens: ``{"qwen3": {"input": 0.2, "output": 0.6, "cached_input": 0.1}}``. Without,
            those of the public servers are known; else the cost is unknown.
        max_input_tokens: about how many a question may have; past it the longest texts are cut in the middle, and the score says so
            (``detail["input_truncated"]``). A metric that must have read all of a turn asks in pieces, and the worst one counts.
        cache: keeps replies by question, so that the same one is asked once; any mapping of text to text. Default: none.
        clock: for tests.
        sleep: for tests.

    Thread-safe; each question runs in the thread that asks.

    Raises:
        ConfigError: an argument that is not allowed.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        provider: str | None = None,
        endpoint: moderations.Endpoint = "chat",
        max_input_tokens: int | None = None,
        cache: MutableMapping[str, str] | None = None,
        **requests: Unpack[RequestKeywords],
    ) -> None:
        options = RequestOptions.of("Judge", requests)
        self._explicit = provider
        self.provider, self.model = chosen(model, provider)
        self._wire = PROVIDERS[self.provider]
        if endpoint not in moderations.ENDPOINTS:
            raise ConfigError(f"endpoint: {endpoint!r} is not allowed; it must be {' or '.join(moderations.ENDPOINTS)}")
        if endpoint == "moderations" and self.provider != "openai":
            raise ConfigError(f"endpoint: 'moderations' is not allowed with the provider {self.provider}; only openai has it")
        self._endpoint = endpoint
        key = (api_key or "").strip() or None
        region = region_in(base_url) if self.provider == "bedrock" and key is None and isinstance(base_url, str) else None
        sign = None if region is None else Signer(region)
        self.server = ModelServer(self.provider, Transport(base_url, self._wire.headers(key), options, sign=sign), options)
        """Where it is asked; models with the same one share connections, limits and accounts."""
        self._most_tokens = max_input_tokens
        self._cache = cache
        self._lock = threading.Lock()
        self._capabilities = _Capabilities()

    def __repr__(self) -> str:
        return f"Judge({self.server.transport.base_url!r}, {self.model!r}, provider={self.provider!r})"

    @property
    def priced(self) -> bool:
        """Whether the price of the model is known: from ``prices``, or for public servers from the table of list prices."""
        return self.server.priced(self.model)

    def with_model(self, model: str) -> Judge:
        """A judge of another model at the same server: connections, limits and accounts are shared.

        Raises:
            ConfigError: the model's name says another provider, which needs a judge of its own.
        """
        provider, name = chosen(model, self._explicit)
        if provider != self.provider:
            raise ConfigError(
                f"model: {model!r} is of another provider than {self.provider}; it needs a judge with its own base_url"
            )
        other = copy.copy(self)
        other.model = name
        other._capabilities = _Capabilities()
        return other

    def ask(
        self,
        stage: str,
        task: str,
        data: Mapping[str, Any],
        reply: str,
        *,
        criteria: Criteria | None = None,
        media: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One question; the JSON object that the model replied. A reply that cannot be read is asked for once more.

        Args:
            stage: what the question is for, in the metric's words: for errors and accounts.
            task: what to judge, how, and what each level means. Trusted: nothing of a turn belongs into it.
            data: the material by name: texts, or values that are written as JSON. Not trusted.
            reply: the JSON object that is asked for, with a word on each value; the reason before the verdict.
            criteria: what the user configured to judge by, by name: a rubric, a policy, a role, labels, steps. Trusted, never cut.
            media: uris of images and the like, for models that see.
            schema: JSON schema of the reply, for servers that hold a model to one; default: what ``reply`` says.
                Others are asked for JSON.

        Raises:
            JudgeError: the model could not be asked, declined, or its reply could not be read twice.
        """
        try:
            asked = None if self._moderates(stage, data) else self._question(task, data, reply, criteria, media)
            key = self._key(task, data, reply, media, schema, criteria) if self._cache is not None else ""
            known = self._known(key)
            if known is not None:
                return known
            until = self.server.until()
            if asked is None:
                found = self._moderated(str(data["response"]), stage, until)
            else:
                found = self._verdict(asked, data, reply, schema, stage, until)
        except JudgeError as error:
            raise JudgeError(f"{stage}: judge: {error}", error.error_type, error.retry_after) from None
        self._keep_if_accepted(key, found)
        return found

    def known(
        self,
        stage: str,
        task: str,
        data: Mapping[str, Any],
        reply: str,
        *,
        criteria: Criteria | None = None,
        media: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any] | None:
        """What the cache has for a question, without asking; None if it has nothing, or if questions are asked anew.

        Raises:
            JudgeError: the question is not one that can be asked.
        """
        if self._cache is None or is_cache_bypassed():
            return None
        if not self._moderates(stage, data):
            self._question(task, data, reply, criteria, media)
        return self._known(self._key(task, data, reply, media, schema, criteria))

    @property
    def keeps(self) -> bool:
        """Whether replies are kept."""
        return self._cache is not None

    def accounts(self) -> list[Account]:
        """The last thousand requests, oldest first: tokens, cost, attempts, errors. See also :func:`recording`."""
        return self.server.ledger.last()

    def total(self) -> Total:
        """The sum over all requests."""
        return self.server.ledger.total()

    def clear_cache(self) -> None:
        """Forget all replies."""
        if self._cache is not None:
            with self._lock:
                self._cache.clear()

    def close(self) -> None:
        """Release connections, and the file of a cache that has one."""
        self.server.transport.close()
        if isinstance(self._cache, Closes):
            self._cache.close()

    # --- the question

    def _moderates(self, stage: str, data: Mapping[str, Any]) -> bool:
        """Whether the server's moderation endpoint is asked."""
        return self._endpoint == "moderations" and stage == moderations.STAGE and "response" in data

    def _question(
        self, task: str, data: Mapping[str, Any], reply: str, criteria: Criteria | None, media: Sequence[str]
    ) -> Message:
        """The message that asks it. The evaluation learns what had to be left out of it, or for another piece.

        Raises:
            JudgeError: media that are not passed on, or material that must be read as a whole and is too long.
        """
        texts, seen = material_of(data, media)
        trusted = trusted_of(criteria)
        room = None if self._most_tokens is None else room_of(task, trusted, reply, self._most_tokens)
        if room is None or fits(texts, room):
            return message_of(task, trusted, texts, reply, seen)
        evaluation = current_evaluation()
        if evaluation is None or not evaluation.reads_all:
            if evaluation is not None:
                evaluation.learn(1, truncated=True)
            return message_of(task, trusted, within(texts, room), reply, seen)
        pieces = in_pieces(texts, room)
        evaluation.learn(len(pieces), truncated=False)
        return message_of(task, trusted, pieces[min(evaluation.piece, len(pieces) - 1)], reply, seen)

    # --- the cache

    def _key(
        self,
        task: str,
        data: Mapping[str, Any],
        reply: str,
        media: Sequence[str],
        schema: Mapping[str, Any] | None,
        criteria: Criteria | None = None,
    ) -> str:
        """A hash of which model is asked what, and how: all that the answer may depend on, and nothing that is random."""
        texts = without_marker_numbers(json.dumps(dict(data), default=repr, ensure_ascii=False))
        evaluation = current_evaluation()
        identity, piece = ("", 0) if evaluation is None else (evaluation.identity, evaluation.piece)
        asked = [
            self.server.transport.base_url, self.provider, self.model, self._endpoint, VERSION, _TEMPERATURE, MAX_TOKENS, self._most_tokens,
            identity, piece, task, texts, reply, trusted_of(criteria), list(media), schema,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(asked, default=repr).encode()).hexdigest()

    def _known(self, key: str) -> dict[str, Any] | None:
        if self._cache is None or is_cache_bypassed():
            return None
        with self._lock:
            text = self._cache.get(key)
        try:
            found = None if text is None else jsonio.loads(text)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _keep_if_accepted(self, key: str, found: Mapping[str, Any]) -> None:
        """Keep a reply once the metric took it: what it refuses would else be refused again without asking, for as long as it is kept."""
        if self._cache is None:
            return
        text = json.dumps(found)
        evaluation = current_evaluation()
        if evaluation is None:
            self._keep(key, text)
        else:
            evaluation.when_accepted(lambda: self._keep(key, text))

    def _keep(self, key: str, text: str) -> None:
        if self._cache is not None:
            with self._lock:
                self._cache[key] = text

    # --- one request

    def _verdict(
        self, asked: Message, data: Mapping[str, Any], reply: str, schema: Mapping[str, Any] | None, stage: str, until: float
    ) -> dict[str, Any]:
        """Return the verdict. A first reply that does not consist of one is asked for once more."""
        keys = keys_of(reply) if schema is None else tuple(schema.get("properties", ()))
        schema = schema_of(reply) if schema is None else schema
        answer = self._complete((asked,), schema, stage, until)
        found = verdict_in(answer.text, keys, material="\n".join(material_of(data, ())[0].values()))
        if found is None:
            answer = self._repaired(asked, answer, schema, stage, until)
            found = verdict_in(answer.text, keys)
        if found is not None:
            return found
        if answer.finish == "length":
            raise JudgeError("the reply was cut at the limit of its length", "truncated_reply")
        raise JudgeError("the reply holds no JSON object that stands by itself", "unreadable_reply")

    def _moderated(self, response: str, stage: str, until: float) -> dict[str, Any]:
        def read(body: dict[str, object]) -> tuple[dict[str, Any], Usage]:
            return moderations.reply_in(body), Usage()

        request = moderations.request(self.model, shown(response))
        found: dict[str, Any] | None = None
        try:
            found = self.server.call(stage, self.model, request, read, until=until, estimate=Usage(tokens_in([response]), 0))
        finally:
            note(Exchange(stage, self.model, shown(response), None if found is None else jsonio.dumps(found)))
        return found

    def _repaired(self, asked: Message, answer: Answer, schema: Mapping[str, Any] | None, stage: str, until: float) -> Answer:
        """The answer to the same question, asked again; with more room if that is what was missing, and the model has it."""
        cut = answer.finish == "length"
        admit_repair()
        try:
            return self._complete(
                repair_of(asked, answer.text), schema, stage, until, repair=True, room=MORE_TOKENS if cut else MAX_TOKENS
            )
        except NotAnswered as refusal:
            if cut and refusal.status == 400:
                return answer
            raise

    def _complete(
        self,
        messages: tuple[Message, ...],
        schema: Mapping[str, Any] | None,
        stage: str,
        until: float,
        *,
        repair: bool = False,
        room: int = MAX_TOKENS,
    ) -> Answer:
        """The answer, asked for in the strictest form that the model takes; what it refuses is left out, and remembered."""
        capabilities = self._capabilities
        while True:
            takes = schema is not None and not (capabilities.refused and _name_of(schema) in capabilities.refused)
            form = max("schema" if takes else "json", capabilities.strictest, key=FORMS.index)
            question = Question(
                self.model, SYSTEM, messages, form, schema, _TEMPERATURE if capabilities.temperature else None, room
            )
            try:
                answer = self._post(question, stage, until, repair=repair)
            except NotAnswered as refusal:
                fewer = _without(capabilities, form, _name_of(schema), refusal)
                if fewer is None:
                    raise
                capabilities = fewer
                continue
            if capabilities is not self._capabilities or form not in capabilities.accepted:
                self._capabilities = replace(capabilities, accepted=capabilities.accepted | {form})
            if answer.finish == "refusal":
                raise JudgeError("the model or a filter declined to reply", "refusal")
            return answer

    def _post(self, question: Question, stage: str, until: float, *, repair: bool) -> Answer:
        def read(body: dict[str, object]) -> tuple[Answer, Usage]:
            answer = self._wire.answer(body)
            return answer, answer.usage

        texts = [question.system, *(message.text for message in question.messages)]
        answer: Answer | None = None
        try:
            answer = self.server.call(
                stage, self.model, self._wire.request(question), read, until=until, estimate=Usage(tokens_in(texts), _REPLY_TOKENS),
                repair=repair,
            )  # fmt: skip
        finally:
            note(Exchange(stage, self.model, texts[-1], None if answer is None else answer.text))
        return answer


def _name_of(schema: Mapping[str, Any] | None) -> str:
    """The same for equal schemas."""
    return "" if schema is None else json.dumps(schema, default=repr, sort_keys=True)


def _without(capabilities: _Capabilities, form: Form, schema: str, refusal: NotAnswered) -> _Capabilities | None:
    """How to ask after a refusal; None if nothing that was asked for can be its reason."""
    if refusal.status not in (400, 422, 501) or refusal.hints & {"context", "refusal", "credit"}:
        return None
    unsure = "parameter" in refusal.hints and not refusal.hints & {"format", "temperature"} and form not in capabilities.accepted
    if capabilities.temperature and "temperature" in refusal.hints:
        return replace(capabilities, temperature=False, accepted=frozenset())
    if form == "schema" and form in capabilities.accepted and "format" in refusal.hints:
        return replace(capabilities, refused=capabilities.refused | {schema})
    if form != "plain" and ("format" in refusal.hints or unsure):
        return replace(capabilities, strictest=FORMS[FORMS.index(form) + 1])
    if capabilities.temperature and unsure:
        return replace(capabilities, temperature=False, accepted=frozenset())
    return None
