"""Classify the names of attributes and JSON fields in any spelling.

A name is split into words: ``gen_ai.usage.inputTokens`` → gen, ai, usage, input, tokens. Three rules then try to map the words to a
step field, and the first matching rule applies. The result doesn't depend on values, so it is cached.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
MOST_NAMES = 16_384
"""Maximum number of names in each cache, for example for names' words or meanings."""


@lru_cache(MOST_NAMES)
def words_of(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name[:400]))


def last_word(name: str) -> str:
    words = words_of(name)
    return words[-1] if words else ""


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


IN, OUT = "in", "out"
DERIVED, BY_FORM, GUESS, LIKELY, SURE, EXACT = 0, 0.5, 1, 2, 3, 4
"""Levels of confidence in a value. ``DERIVED`` values are computed from other fields. ``BY_FORM`` values have a typical form, such
as ``chatcmpl-9aXk``. The other levels depend on the attribute's name: for example, ``tool`` is a ``GUESS``, ``function.name`` is
``LIKELY``, ``tool.name`` is ``SURE``, and ``response.model`` is ``EXACT``.
"""
STEP, LEVELS_PER_STEP = 1, 20
"""Difference between two confidence levels, and number of nesting levels that lower the confidence by this difference."""
NO_SYSTEM, SYSTEM_IF_LONG, SYSTEM = 0, 1, 2
"""Conditions for a system prompt. A text in ``instructions`` must be long, but a text in ``system_prompt`` can be short."""
_SHORT_INSTRUCTIONS = 20  # characters up to which agent.instructions isn't a system prompt: "default"


class Meaning(NamedTuple):
    field: str | None
    """Step field for a scalar value with this name, such as ``input_tokens``, or None."""
    direction: str | None
    """Direction of content with this name: ``IN``, ``OUT``, or None."""
    text: bool
    """True if a string with this name, such as ``fw.user_input``, is message content."""
    content: bool
    """True if a value with this name can be content, or False for measures and properties."""
    strength: int
    """Confidence (such as ``SURE``) that a value with this name belongs to ``field``, or 0 if ``field`` is None."""
    system: int
    """Condition for a text with this name to be a system prompt: ``NO_SYSTEM``, ``SYSTEM_IF_LONG``, or ``SYSTEM``."""
    read_scalars: bool
    """True if a text or number with this name is also read inside objects and lists. If False, only attributes can be read."""

    def is_system(self, text: str) -> bool:
        return self.system == SYSTEM or (self.system == SYSTEM_IF_LONG and len(text) > _SHORT_INSTRUCTIONS)


class _Field(NamedTuple):
    name: str
    strength: int


_NO_MEANING = Meaning(None, None, False, False, 0, NO_SYSTEM, False)
PROPERTIES = word_set("""
    mime type types format id ids count counts tokens token length size time ms name schema cost reason reasons model status code usage
    index kind description definitions tools duration temperature version seed penalty stream tier level fingerprint state url path
    metadata usd total latency s attempt effort endpoint namespace origin originator seq slug source success timestamp truncated
""")
"""Words for measures and properties, which aren't content. For example, ``output.length`` isn't an output."""
_TEXT_NAMES = word_set("""
    input inputs prompt question query task user_input user_message user_query user_prompt input_text input_value user_msg goal request
    output outputs completion response answer result final_output final_result reply output_text output_value response_text final_answer
    generated_text return_value text content value message
""")
"""Last segments of names whose texts are content: ``user_input`` in ``fw.user_input``."""


@lru_cache(MOST_NAMES)
def meaning_of(path: str) -> Meaning:
    words = words_of(path)
    if not words:
        return _NO_MEANING
    last_name = words_of(path.rpartition(".")[2])
    field = _tokens(words) or _kind(words) or _by_ending(words)
    if field is _BARE_COST and last_name == ("cost",) != words:  # vendor.cost may count credits
        field = None
    text = ("_".join(last_name) or words[-1]) in _TEXT_NAMES
    system = _system_of(last_name)
    return Meaning(
        field=field.name if field is not None else None,
        direction=_direction_of(words),
        text=text,
        content=PROPERTIES.isdisjoint(last_name) and _word_before_last(words) != "invocation",
        strength=field.strength if field is not None else 0,
        system=system,
        read_scalars=field is not None or text or system != NO_SYSTEM or path.endswith("id"),
    )


def _word_before_last(words: tuple[str, ...]) -> str:
    return words[-2] if len(words) > 1 else ""


# --- direction: fw.llm.prompt is input, fw.prompt.answer is output

_IN_WORDS = word_set("""
    input inputs prompt prompts request query question history arg args kwargs arguments task questions instruction given params parameters
""")
_OUT_WORDS = word_set("""
    output outputs completion completions response responses result results choice choices answer answers generation generations generated
    candidate candidates reply return returned observation assistant
""")


def _direction_of(words: tuple[str, ...]) -> str | None:
    if "metadata" in words[:-1]:  # metadata of an output isn't an output
        words = words[words.index("metadata") + 1 :]
    for word in reversed(words):
        if word in _IN_WORDS:
            return IN
        if word in _OUT_WORDS:
            return OUT
    return None


# --- system prompts: agent.instructions, system_message

_SYSTEM_NAMES = word_set("system instructions instruction preamble")
_SYSTEM_TEXTS = word_set("prompt message instruction")


def _system_of(last_name: tuple[str, ...]) -> int:
    if not last_name:
        return NO_SYSTEM
    if last_name[-1] in _SYSTEM_NAMES:
        return SYSTEM_IF_LONG
    return SYSTEM if _word_before_last(last_name) == "system" and last_name[-1] in _SYSTEM_TEXTS else NO_SYSTEM


# --- rule 1: token counts. This rule is first, because a count can end in any word: usage.prompt_tokens.total, reasoning_tokens.type

_TOKEN_WORDS = word_set("token tokens usage")
_NO_COUNT = word_set("""
    max min limit budget price cost rate per audio image video accepted rejected prediction tool requests calls throughput characters chars
    images videos files words bytes ratio remaining ms time tier text first source documents type modality
""")
"""Words for limits, prices, partial counts, and non-token counts: ``llm.max_tokens``, ``usage.inputCharacters``."""
_COUNTS_WITH_DETAILS = word_set("token tokens prompt completion input output")
"""If one of these words precedes ``details``, the count is partial: ``tokens`` in ``prompt_tokens_details.text_tokens``."""
_PART_OF_COUNT = word_set("no non uncached ephemeral miss")
"""Words in names of partial counts, which aren't read: ``non`` in ``usage.non_cached_input_tokens``."""
_CACHE = word_set("cache cached")
_CACHE_WRITE = word_set("write creation")
_REASONING = word_set("reasoning thoughts thinking")
_INPUT_COUNTS = word_set("input inputs prompt request")
_OUTPUT_COUNTS = word_set("output outputs completion candidates response generated generation")


def _tokens(words: tuple[str, ...]) -> _Field | None:
    found = set(words)
    if words[-1] == "count" and "eval" in found:  # Ollama: prompt_eval_count
        return _Field("input_tokens" if "prompt" in found else "output_tokens", GUESS)
    if not found & _TOKEN_WORDS or found & _PART_OF_COUNT:
        return None
    if found & _CACHE:
        if found & _NO_COUNT:
            return None
        return _Field("cache_write_tokens" if found & _CACHE_WRITE else "cached_tokens", LIKELY)
    if found & _REASONING:
        return _Field("reasoning_tokens", LIKELY)
    if found & _NO_COUNT or any(word in _COUNTS_WITH_DETAILS and after == "details" for word, after in pairwise(words)):
        return None
    strength = GUESS if "aggregated" in found else SURE
    if words[-1] == "total" and words[-3:-2] and words[-3] in ("input", "prompt", "output", "completion"):  # inputTokens.total
        words, strength = words[:-1], GUESS
    for word in reversed(words):
        if word == "total":
            return _Field("total_tokens", GUESS)
        if word in _INPUT_COUNTS:
            return _Field("input_tokens", strength)
        if word in _OUTPUT_COUNTS:
            return _Field("output_tokens", strength)
    return None


# --- rule 2: span kinds. This rule precedes the endings, because operation.name is a kind, not a name

_KIND_NAMES = word_set("kind type subtype op operation")
_SPAN_WORDS = word_set("span observation run operation")
"""Words for the span itself: ``span`` in ``fw.span.kind``, ``run`` in ``run_type``."""
_SUBJECTS_OF_KIND = _SPAN_WORDS | word_set("node entity component step event llm ai agent trace action category")
"""Words before ``kind`` or ``type`` if the value is probably a span's kind: ``step`` in ``step.type``."""
_OTHER_KINDS = word_set("""
    content message messages mime response request tool output token error exception format media author user sender parameters schema
    document service invocation
""")
"""Words before ``kind`` or ``type`` if the value isn't a span's kind: ``message`` in ``message.type``."""


def _kind(words: tuple[str, ...]) -> _Field | None:
    *before, last = words
    if last == "name" and _word_before_last(words) == "operation":
        return _Field("kind", EXACT)
    if last not in _KIND_NAMES or not _OTHER_KINDS.isdisjoint(before):
        return None
    if not _SPAN_WORDS.isdisjoint(before):
        return _Field("kind", EXACT)
    if _word_before_last(words) in _SUBJECTS_OF_KIND:
        return _Field("kind", SURE)
    return _Field("kind", LIKELY if last in ("kind", "subtype") else GUESS)


# --- rule 3: all other fields, by the longest known ending of the name

_FIELDS: dict[str, dict[int, str]] = {
    "model": {EXACT: "response.model response.model.name response.model.id", LIKELY: "model model.name model.id", GUESS: "model.version"},
    "finish_reason": {LIKELY: "finish.reason finish.reasons stop.reason", GUESS: "done.reason completion.reason"},
    "provider": {LIKELY: "provider.name model.provider", GUESS: "provider llm.system ai.system llm.vendor"},
    "response_id": {LIKELY: "response.id", GUESS: "completion.id"},
    "agent": {SURE: "agent.name", LIKELY: "agent", GUESS: "agent.role assistant.name agent.title current.agent"},
    "handoff_to": {LIKELY: "to.agent to.agent.name"},
    "tool_name": {SURE: "tool.name tool.function.name tool.call.name", LIKELY: "function.name", GUESS: "tool"},
    "tool_call_id": {SURE: "tool.call.id tool.use.id function.call.id", LIKELY: "call.id", GUESS: "tool.id"},
    "tool_description": {GUESS: "tool.description"},
    "conversation_id": {
        EXACT: "conversation.id", SURE: "session.id convo.id", LIKELY: "thread.id", GUESS: "session group.id chat.id conversation",
    },
    "outcome": {GUESS: "state status span.status observation.level"},
    "failure": {GUESS: "error error.message is.error"},
    "error_message": {GUESS: "status.message"},
    "cost_usd": {
        SURE: "total.cost cost.total cost.details.total", LIKELY: "cost.usd usage.cost",
        GUESS: "llm.cost ai.cost model.cost request.cost response.cost operation.cost generation.cost call.cost metrics.cost litellm.cost cost",
    },
    "first_token_at": {GUESS: "completion.start.time first.token.at"},
    "user_id": {LIKELY: "user.id", GUESS: "enduser.id"},
    "name": {LIKELY: "entity.name", GUESS: "component.name node.name observation.name span.name step.name run.name name"},
}  # fmt: skip
"""Endings of names that identify a step field, such as ``user.id``. The endings are grouped by field and confidence."""
_BY_ENDING = {
    tuple(ending.split(".")): _Field(field, strength)
    for field, endings in _FIELDS.items()
    for strength, text in endings.items()
    for ending in text.split()
}
_BARE_COST = _BY_ENDING[("cost",)]
_TOOL_LISTS = word_set("tools functions definitions available")
_OTHERS: dict[str, frozenset[str]] = {
    "model": word_set("tool tools data user device host phone product vehicle car printer cost view domain"),  # device.model
    "tool_name": _TOOL_LISTS,  # tools.0.function.name
    "tool_call_id": _TOOL_LISTS,
    "name": _TOOL_LISTS,
    "agent": _TOOL_LISTS | {"user"},  # http.user_agent, a browser
    "response_id": word_set("previous request parent last"),  # request.previous_response.id
    "conversation_id": word_set("mcp http transport jsonrpc"),  # mcp.session.id
    "cost_usd": word_set("input output prompt completion cache cached reasoning per tool limit max"),  # input.cost, a part
}
"""Maps a field to words that exclude this field if they precede an ending: ``device`` in ``device.model``, which isn't a model."""
_MOST_WORDS_BEFORE_NAME = 3
_NAMED = word_set("span tool function agent agents entity step operation task messages")
"""Words before ``name`` if the attribute names the span's subject: ``tool`` in ``tool.name``."""
_OTHER_SUBJECTS = word_set("""
    user users organization org customer client account tenant team company owner author person contact employee display first last full
    sdk library service host instrumentation server package app application environment class module device domain region cluster model
    provider project workspace product policy event session thread trace metadata context schema file dataset database queue topic store
    collection index table
""")
"""Words before ``name`` if the attribute names a person, software, or a record: ``user.name``, ``sdk.name``, ``project.name``."""


def _by_ending(words: tuple[str, ...]) -> _Field | None:
    for length in range(min(3, len(words)), 0, -1):  # tool.call.id is surer than call.id
        if (found := _BY_ENDING.get(words[-length:])) is None:
            continue
        field, strength = found
        before = words[:-length]
        if field == "name" and (len(before) > _MOST_WORDS_BEFORE_NAME or (length == 1 and not _is_own_name(words))):
            continue
        if not _OTHERS.get(field, frozenset()).isdisjoint(before):
            return None
        if field == "agent" and "trace" in before:  # the trace's first agent, not the span's
            return _Field(field, strength - 1)
        if field == "model" and "response" in before and length < 3:  # response.metadata.model
            return _Field(field, strength + 2)
        return found
    return None


def _is_own_name(words: tuple[str, ...]) -> bool:
    """Return True if an attribute can name the span's subject. ``fw.name`` and ``tool.name`` can, but ``user.name`` can't."""
    subject = _word_before_last(words)
    return not subject or subject in _NAMED or (len(words) == 2 and subject not in _OTHER_SUBJECTS)
