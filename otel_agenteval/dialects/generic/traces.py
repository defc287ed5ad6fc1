"""Correct inferred roles by comparing all spans in a trace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from ...core.wellformed import Later
from ...spans.record import ERROR, SpanRecord
from ..content import decode
from ..step import AGENT, CHAIN, EMBEDDING, INNER, LLM, RERANK, RETRIEVAL, TOOL, UNKNOWN
from .facts import KIND, MESSAGES, MODEL, TELLING, USAGE, Facts
from .keys import IN, OUT, SURE
from .kinds import ENDS, event_in, role_of_stem
from .reading import has_answer, returns_prompt
from .shapes import plain
from .values import opened

_ENOUGH = (
    USAGE | MODEL, USAGE | TELLING, USAGE | MESSAGES, USAGE | KIND, MODEL | TELLING, MODEL | MESSAGES, MODEL | KIND, KIND | TELLING,
)  # fmt: skip
"""Combinations of evidence that suffice to infer that a model was used. They rarely occur in ordinary applications' data."""
_WITHOUT_ANSWER = frozenset((EMBEDDING, RETRIEVAL, RERANK))
"""Roles of calls that don't answer a user. A trace that contains only calls with these roles doesn't need a turn."""
_DEEPEST = 10
_OTHER_WORK = ("http.", "db.", "messaging.", "rpc.", "url.")
_TOKENS = frozenset(("input_tokens", "output_tokens"))


def review_roles(records: Sequence[SpanRecord], infer: Callable[[SpanRecord], None]) -> None:
    """Remove or correct inferred roles that don't fit the trace. ``infer`` infers a role for a span that was skipped before."""
    inferred = [record for record in records if record.dialects.facts is not None and record.dialects.inferred]
    if not inferred:
        _open_loops(records)
        return
    inferred += _infer_skipped(records, inferred, infer)
    _settle_events(records)
    known = any(record.dialects.named and record.dialects.stated_role not in (None, UNKNOWN) for record in records)
    if known:
        for record in inferred:
            understood = record.dialects
            unsure = understood.facts.kind_strength < 2 and not (understood.role == CHAIN and understood.facts.has_dialog())
            if unsure or (understood.role == LLM and any(key.startswith(_OTHER_WORK) for key in record.attributes)):
                understood.reset_role()
    elif all(record.dialects.role is None or record.dialects.inferred for record in records) and not is_enough(inferred):
        for record in inferred:
            record.dialects.reset_role()
        return
    _drop_lone_chains(records, inferred)
    _drop_common_names(inferred)
    _name_tools(inferred, records)
    _split_sums(records)
    _open_loops(records)
    _drop_phantoms(inferred)
    if not known:
        _name_roots(records, inferred)


def _settle_events(records: Sequence[SpanRecord]) -> None:
    """If events have start and end spans, remove their inferred roles, except from starts and ends of model or tool calls."""
    found = [(record, *named) for record in records if (named := event_in(record.name)) is not None]
    stems = {stem for _, stem, event in found if event == "start"} & {stem for _, stem, event in found if event in ENDS}
    for record, stem, event in found:
        if stem in stems and record.dialects.inferred:
            facts = record.dialects.facts
            role, facts.name_without_role = role_of_stem(stem)
            facts.evidence |= KIND
            if role in (LLM, TOOL) and (event == "start" or event in ENDS):
                record.dialects.role = role
            else:
                record.dialects.reset_role()


def _infer_skipped(
    records: Sequence[SpanRecord], inferred: Sequence[SpanRecord], infer: Callable[[SpanRecord], None]
) -> list[SpanRecord]:
    """Infer roles for skipped spans if their scope has inferred model calls, tools, or agents. Return the spans that got a role."""
    scopes = {record.scope for record in inferred if record.dialects.role in (LLM, TOOL, AGENT)}
    found = []
    for record in records:
        about = record.dialects
        if about.facts is None and about.role is None and not about.named and record.scope in scopes:
            infer(record)
            if about.inferred:
                found.append(record)
    return found


def _drop_common_names(inferred: Sequence[SpanRecord]) -> None:
    """Remove names that tools share with spans of other roles. A shared name is probably an application's or user's."""
    roles: dict[str, set[str | None]] = {}
    for record in inferred:
        name = record.dialects.facts.fields.get("name")
        if name is not None and name != record.name:
            roles.setdefault(name, set()).add(record.dialects.role)
    common = {name for name, found in roles.items() if TOOL in found and len(found) > 1}
    for record in inferred if common else ():
        if record.dialects.facts.fields.get("name") in common:
            del record.dialects.facts.fields["name"]


def _drop_lone_chains(records: Sequence[SpanRecord], inferred: Sequence[SpanRecord]) -> None:
    """Remove inferred chain roles in scopes without other roles and without kind attributes."""
    scopes = {record.scope for record in records if record.dialects.role not in (None, CHAIN) or _states_kind(record)}
    for record in inferred:
        if record.dialects.role == CHAIN and record.scope not in scopes and not _states_kind(record):
            record.dialects.reset_role()


def _states_kind(record: SpanRecord) -> bool:
    facts = record.dialects.facts
    return record.dialects.role is not None and (facts is None or facts.kind_strength > 1)


def is_enough(records: Sequence[SpanRecord]) -> bool:
    """Return True if the spans' combined evidence shows that a model or an agent did the work."""
    evidence = 0
    roles = set()
    for record in records:
        evidence |= record.dialects.facts.evidence
        roles.add(record.dialects.role)
    if any(evidence & wanted == wanted for wanted in _ENOUGH):
        return bool(roles - {None})
    if evidence & KIND:
        return AGENT in roles or LLM in roles
    return {record.dialects.facts.kind for record in records} >= {AGENT, LLM}  # a run that failed before its first message


def resembles_call(record: SpanRecord) -> bool:
    """Return True if a span in an unknown format has a dialog, or an answer with sufficient evidence of a model."""
    facts = record.dialects.facts if record.dialects is not None else None
    if facts is None or record.dialects.role in _WITHOUT_ANSWER:
        return False
    # The span's own attributes have a model and an answer, not only JSON about them.
    enough = any(facts.evidence & wanted == wanted for wanted in _ENOUGH)
    return facts.has_dialog() or (enough and (facts.shows_model_at_top or bool(facts.evidence & KIND)) and has_answer(facts))


def is_agents_tool(record: SpanRecord) -> bool:
    """Return True if a dialect, a tool name, or a kind attribute identifies a tool call."""
    about = record.dialects
    if about.role == TOOL and not about.inferred:
        return True
    return about.facts is not None and (
        about.facts.strength_of("tool_name") >= SURE or (about.facts.kind == TOOL and about.facts.kind_strength > SURE)
    )


def answers_in(facts: Facts) -> set[str]:
    messages = (message for content in facts.messages for message in decode(plain(content.value), "assistant").messages)
    found = {message.content for message in messages if message.role == "assistant" and message.content}
    return found | {content.value for content in facts.texts if content.direction == OUT and content.value.__class__ is str}


def directions_in(facts: Facts) -> set[str | None]:
    """Return the directions of a span's content, ignoring content without words, such as IDs. An unknown direction is None."""
    return {content.direction for content in (*facts.messages, *facts.texts, *facts.whole_values) if has_words(content.value)}


def has_words(value: Any, depth: int = 0) -> bool:
    """Return True if a value contains text with a space or a non-ASCII character. IDs and codes rarely contain these."""
    if value.__class__ is Later:
        value = value.reader(value.raw)
    value = opened(value) if value.__class__ is str else plain(value)
    if value.__class__ is str:
        return " " in value.strip() or not value.isascii()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return depth < _DEEPEST and any(has_words(each, depth + 1) for each in inner)


def _name_tools(inferred: Sequence[SpanRecord], records: Sequence[SpanRecord]) -> None:
    """Correct roles based on the names of tools that models requested. A chain with such a name becomes a tool or, if the chain
    returns a prompt, an agent. A tool without such a name becomes a retrieval if it returns documents. Other tools can be renamed.
    """
    searches = [record for record in inferred if record.dialects.role == TOOL and _returns_documents(record)]
    chains = [
        record for record in inferred
        if record.dialects.role == CHAIN and (record.dialects.facts.kind_strength < 2 or record.dialects.facts.function)
    ]  # fmt: skip
    tools = [record for record in records if record.dialects.role == TOOL and _tool_name(record)]
    if not chains and not tools and not searches:
        return
    names = _requested_tools(records)
    for record in chains:
        if record.name in names or record.dialects.facts.fields.get("name") in names:
            record.dialects.role = AGENT if returns_prompt(record.dialects.facts) else TOOL
    for record in searches:
        if record.name not in names:
            record.dialects.role = RETRIEVAL
    for record in tools:
        _set_own_name(record, names)


def _set_own_name(record: SpanRecord, names: Collection[str]) -> None:
    """If models requested a tool by its span's name or last segment, use it: ``get_order`` instead of ``shop.orders.get_order``."""
    name = _tool_name(record)
    own = next((other for other in (record.name, name.rpartition(".")[2]) if other in names), None)
    if own is not None and name not in names:
        record.dialects.facts.fields["own_name"] = own


def _requested_tools(records: Sequence[SpanRecord]) -> set[str]:
    calls = (record.dialects.facts for record in records if record.dialects.role == LLM)
    contents = [content for facts in calls if facts is not None for content in facts.messages]
    made = [content for content in contents if content.direction != IN]
    messages = (message for content in made or contents for message in decode(plain(content.value), "assistant").messages)
    return {call.name or "" for message in messages for call in message.tool_calls}


def _returns_documents(record: SpanRecord) -> bool:
    facts = record.dialects.facts
    return facts.documents is not None and "tool_name" not in facts.fields and facts.name_role != TOOL


def _tool_name(record: SpanRecord) -> str:
    facts = record.dialects.facts
    return str(facts.fields.get("tool_name") or facts.fields.get("name") or "") if facts is not None else ""


def _split_sums(records: Sequence[SpanRecord]) -> None:
    """If a model span's tokens are the sum of the tokens below, change this span to a chain, and the spans below to model calls."""
    counted = [
        record for record in records
        if (facts := record.dialects.facts) is not None and facts.fields.keys() >= _TOKENS and record.dialects.role in (None, CHAIN, LLM)
    ]  # fmt: skip
    if len(counted) < 3:
        return
    by_id = {record.span_id: record for record in records}
    sums = {
        record.span_id for record in counted
        if record.dialects.role == LLM and record.dialects.facts.kind is None and record.dialects.facts.name_role != LLM
    }  # fmt: skip
    parts: dict[int, list[Any]] = {}
    for record in counted:
        for above in _spans_above(record, by_id):
            if above.dialects.role in (TOOL, AGENT):
                break
            if above.span_id in sums:
                parts.setdefault(above.span_id, []).append(record.dialects)
                break
    for span_id, found in parts.items():
        whole = by_id[span_id].dialects
        fields = whole.facts.fields
        if len(found) > 1 and all(sum(part.facts.fields[name] for part in found) == fields[name] for name in _TOKENS):
            whole.role = CHAIN
            for part in found:
                part.role, part.inferred = LLM, True
                part.facts.fields.setdefault("model", fields.get("model"))


def _drop_phantoms(inferred: Sequence[SpanRecord]) -> None:
    """If any model span has output tokens, change those without tokens, answers, or errors to chains. They only prepare calls."""
    calls = [record for record in inferred if record.dialects.role == LLM]
    if any("output_tokens" in record.dialects.facts.fields for record in calls):
        for record in calls:
            facts = record.dialects.facts
            if not ({"output_tokens", "input_tokens"} & facts.fields.keys()) and record.status != ERROR and not has_answer(facts):
                record.dialects.role = CHAIN


def _name_roots(records: Sequence[SpanRecord], inferred: Sequence[SpanRecord]) -> None:
    """If no model call or agent was inferred, change the topmost chains and inner steps to agents."""
    if any(record.dialects.role in (LLM, AGENT) for record in inferred):
        return
    by_id = {record.span_id: record for record in records}
    for record in inferred:
        if record.dialects.role in (CHAIN, INNER):
            roles = [above.dialects.role for above in _spans_above(record, by_id)]
            if len(roles) < _MOST_ABOVE and not any(roles):
                record.dialects.role = AGENT


_MOST_ABOVE = 100


def _spans_above(record: SpanRecord, by_id: Mapping[int, SpanRecord]) -> Iterator[SpanRecord]:
    """Yield at most 100 ancestors of a span, because a malicious trace can contain cycles."""
    above = by_id.get(record.parent_id)
    for _ in range(_MOST_ABOVE):
        if above is None:
            return
        yield above
        above = by_id.get(above.parent_id)


def _is_implied(record: SpanRecord) -> bool:
    """Return True if a model span's role is only implied: neither its operation nor its instrumentation shows a model call."""
    about = record.dialects
    return about.inferred or (not about.named and "gen_ai.operation.name" not in record.attributes)


def _open_loops(records: Sequence[SpanRecord]) -> None:
    """If a span's model role is implied, and calls below suggest another role, make it an agent (if a tool is below) or a chain."""
    by_id = {record.span_id: record for record in records}
    below: dict[int, list[int]] = {}
    for record in records:
        role = record.dialects.role
        if role not in (LLM, TOOL):
            continue
        for above in _spans_above(record, by_id):
            if above.dialects.role == LLM and _is_implied(above):
                counts = below.setdefault(above.span_id, [0, 0])
                counts[role == TOOL] += 1
                facts = above.dialects.facts
                counts[0] += _states_kind(record) and facts is not None and facts.kind is None and facts.name_role is None
                break
            if above.dialects.role in (TOOL, AGENT):
                break
    for span_id, (calls, tools) in below.items():
        if calls > 1 or (calls and tools):
            by_id[span_id].dialects.role = AGENT if tools else CHAIN
