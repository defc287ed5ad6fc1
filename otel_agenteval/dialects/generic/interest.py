"""Select the attributes to read, by name. For most spans, a single set operation shows that no attribute needs to be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .keys import LIKELY, MOST_NAMES, PROPERTIES, last_word, meaning_of, word_set, words_of
from .kinds import role_of_kind
from .shapes import may_be_message
from .values import Branch, Path, branches_of, paths_of, tree_of

SKIP, OBJECTS, ANY_VALUE = 0, 1, 2
"""Ways to treat an attribute: skip it, read its value only if it is an object or list (or its JSON text), or read any value."""

_OTHER_CONVENTIONS = tuple(word_set("""
    http. url. net. network. server. client. db. messaging. rpc. user_agent. exception. thread. code. process. host. os. k8s. container.
    service. telemetry. deployment. cloud. faas. otel. peer. enduser. tls. browser. device. dns. feature_flag. aws.s3 aws.sqs aws.dynamodb
    aws.request_id agenteval. gen_ai.evaluation. graphql. celery. signalr. aspnetcore. kestrel. jvm. destination. source. sampling.
    cloudevents. source_path file. geo. log. logger. webengine. vcs. cicd. test. artifact. error. hw. asyncio. fastapi. express. koa.
    nestjs. next. redis. sql. kafka. rabbitmq. temporal airflow jenkins.
"""))  # fmt: skip
"""Attribute prefixes of other conventions, which aren't about models."""
_CARRIERS = word_set("body payload")
"""Last words of attribute names whose values can be whole messages, even in other conventions: ``messaging.message.body``."""
_MODEL_WORDS = word_set("""
    llm genai prompt prompts completion completions token tokens agent agents tool tools model usage generation langchain llamaindex openai
    anthropic gemini bedrock embedding embeddings retriever retrieval assistant chat workflow
""")
"""Words that occur mainly in names of attributes about models, agents, or tools, such as ``llm`` in ``fw.llm.reply``."""
_DATA_WORDS = word_set("""
    input inputs output outputs body payload message messages request response content result results arg args kwargs arguments choices
    history events query question answer documents data state
""")
"""Words for data that any program has, and that can include messages: ``request`` in ``fw.request``."""
SPREAD_ARGUMENTS = word_set("arguments args kwargs params parameters input inputs")
SPREAD_RESULTS = word_set("result return returned")
SPREAD = SPREAD_ARGUMENTS | SPREAD_RESULTS
"""Words that precede an argument or a result field in an attribute's name: ``kwargs`` in ``kwargs.order_id``."""


@lru_cache(MOST_NAMES)
def interest_of(key: str) -> int:
    words = words_of(key)
    if not words or words[-1] == "types":
        return SKIP
    if key.startswith(_OTHER_CONVENTIONS):
        return OBJECTS if words[-1] in _CARRIERS else SKIP
    if not _MODEL_WORDS.isdisjoint(words) or words[:2] == ("gen", "ai"):
        return ANY_VALUE
    if _DATA_WORDS.isdisjoint(words):
        return SKIP
    is_property = words[-1] in PROPERTIES and words[-1] != "state" and last_word(key.rpartition(".")[0]) not in SPREAD
    return SKIP if is_property else OBJECTS


_CONTEXT_WORDS = word_set("""
    metadata attributes tags properties context contexts details error parameters params metrics timestamps
""")
"""Last words of attribute names such as ``fw.metadata``. These attributes can add data to a step, but aren't evidence of a step."""


@lru_cache(MOST_NAMES)
def is_useful(key: str) -> bool:
    """Return True if an attribute with this name can add data to a step, even if the attribute isn't evidence of a step."""
    if interest_of(key) != SKIP:
        return True
    if key.startswith(_OTHER_CONVENTIONS) or not words_of(key):
        return False
    return meaning_of(key).field is not None or last_word(key) in _CONTEXT_WORDS


# --- spans without a model, an agent or a tool

PLAIN_KEYS: set[str] = set()
"""Cached attribute names that aren't about a model. The number of cached names is limited."""


def is_plain(attributes: Mapping[str, Any]) -> bool:
    """Return True if no attribute indicates a model, an agent, or a tool. For most spans, this is a single set operation."""
    return PLAIN_KEYS.issuperset(attributes) or not _has_hint(attributes)


def _has_hint(attributes: Mapping[str, Any]) -> bool:
    for key in attributes:
        if key in PLAIN_KEYS or key.__class__ is not str:
            continue
        interest = interest_of(key)
        if interest == SKIP:
            if meaning_of(key).field == "kind":
                if attributes[key].__class__ is str and role_of_kind(attributes[key]) is not None:
                    return True
            elif len(PLAIN_KEYS) < MOST_NAMES:
                PLAIN_KEYS.add(key)
        elif interest == ANY_VALUE or holds_json(attributes[key]):
            return True
    return False


def holds_json(value: Any) -> bool:
    return value[:1] in ("{", "[", "@") and len(value) > 8 if value.__class__ is str else isinstance(value, (dict, list, tuple))


# --- attributes that make an object or a list together


class AttributeGroup(NamedTuple):
    """Attributes that are read as one value: ``fw.chat.0.role`` and ``fw.chat.0.content`` form the list ``fw.chat``."""

    path: str
    is_dotted: bool  # False for a path of one key, whose value is read even if it is empty
    name: str  # the attribute's name, or the last key of the path if there are several
    parts: tuple[tuple[str, Path], ...]  # several attributes with their keys from ``name`` on; empty for one

    def value_in(self, attributes: Mapping[str, Any]) -> Any:
        return tree_of(attributes, self.parts)[self.name] if self.parts else attributes[self.name]


def groups_of(names: Iterable[str]) -> tuple[AttributeGroup, ...]:
    """Group attributes that form one object or list. ``fw.model``, ``fw.chat.0.role``, and ``fw.chat.0.content`` become::

    AttributeGroup("fw.model", True, "fw.model", ())
    AttributeGroup("fw.chat", True, "chat", (("fw.chat.0.role", ("chat", "0", "role")), …))
    """
    paths = paths_of(names)
    tree = branches_of({name: (name, keys) for name, keys in paths}, paths)
    return tuple(group for key, node in tree.items() for group in _groups_in(node, key, 0))


def _groups_in(node: Any, path: str, level: int) -> Iterator[AttributeGroup]:
    """Yield the groups in the subtree ``node`` at ``path``. ``level`` is the number of keys before the path's last key."""
    if node.__class__ is not Branch:
        name, _ = node
        yield AttributeGroup(path, level > 0, name, ())
    elif _means_more_as_whole(node, path):
        parts = tuple((name, keys[min(level, len(keys) - 1) :]) for name, keys in _attributes_in(node))
        _, keys_of_first = parts[0]
        yield AttributeGroup(path, level > 0, keys_of_first[0], parts)
    else:
        for key, inner in node.items():
            yield from _groups_in(inner, f"{path}.{key}" if key else path, level + 1)


def _attributes_in(branch: Branch) -> Iterator[tuple[str, Path]]:
    for inner in branch.values():
        if inner.__class__ is Branch:
            yield from _attributes_in(inner)
        else:
            yield inner


def _means_more_as_whole(branch: Branch, path: str) -> bool:
    is_object = may_be_message(branch) or "tools" in branch or path.endswith("cost_details") or last_word(path) in SPREAD
    return is_object or any(map(str.isdecimal, branch))  # or a list: chat.0, chat.1


# --- attributes for one purpose


def may_hold_conversation(key: str) -> bool:
    """Return True if an attribute can contain a conversation ID, directly or in metadata."""
    if last_word(key) == "metadata":
        return True
    meaning = meaning_of(key)
    return meaning.field == "conversation_id" and meaning.strength >= LIKELY and is_useful(key)


FAILED = word_set("error fail failed failure errored exception timeout timed_out")
"""Tool outcomes and finish reasons that indicate an error."""
OUTCOMES = word_set("outcome status state")
_PROPERTIES_OF_EVENTS = word_set("""
    level target severity severity_text severity_number timestamp time ts logger module_path file line busy_ns idle_ns
""")


@lru_cache(MOST_NAMES)
def is_content_of_event(key: str) -> bool:
    """Return True if an event's attribute can be content. Log properties and other conventions' attributes can't be content."""
    return key.lower() not in _PROPERTIES_OF_EVENTS and not key.startswith(_OTHER_CONVENTIONS)


_DESCRIBES_CALL = word_set("""
    duration latency elapsed ms ns timeout time timestamp created started ended
    success successful ok error exception retries retry attempt attempts count cached cache
    trace span event logger level agent service environment env function class module method framework sdk scope turn
    tool execution version description definition tags metadata type kind schema
""")
"""Words for a call's properties, such as its time. Attributes with these words in their last segment aren't tool arguments."""


@lru_cache(MOST_NAMES)
def argument_in(key: str) -> str | None:
    """Return the tool argument that an attribute's name contains (``order_id`` in ``tool.order_id``), or None if there is none."""
    prefix, _, name = key.replace(":", ".").rpartition(".")
    if prefix and last_word(prefix) != "tool":
        return None
    words = words_of(name)
    if not words or not _DESCRIBES_CALL.isdisjoint(words) or name.lower() in PROPERTIES or name.lower() in _PROPERTIES_OF_EVENTS:
        return None
    return name if (meaning := meaning_of(key)).field is None and meaning.direction is None else None
