"""Topics of failure modes for ``otel-agenteval failure-modes``: models, memory, and descriptions."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..config.root import Config
from ..core.display import escaped
from ..core.errors import ConfigError, JudgeError, StoreError
from ..evaluation.redaction import redacted_text
from ..judging.models import Embedder, InProcessEmbedder, LocalEmbedder, embedder_from, judge_from
from ..judging.session import CommandBudget
from ..outlets.store.reader import StoredTopic
from ..outlets.store.writer import write_topics
from ..outlets.turn_text import one_line
from ..report.failure_modes import FailureMode
from ..report.topics import FailureText, Topic, TopicFinder
from .scoring import close_models, warn_of_new_budget

_LONGEST_NAME, _LONGEST_DESCRIPTION = 60, 200
_TASK = (
    "Each text is about a failed turn of an AI agent. All texts are about the same problem. Name the problem in at most six words, "
    "and describe it in one sentence of at most 25 words. Don't repeat names, numbers or addresses of persons."
)
_REPLY = '{"description": "<one sentence>", "name": "<at most six words>"}'


def topic_embedder(config: Config) -> Embedder | InProcessEmbedder | None:
    """Return the configured embedder or, without one, the local embedder if it is installed."""
    try:
        return embedder_from(config) or LocalEmbedder()
    except ConfigError:
        if config.embedder.model is None and config.embedder.base_url is None:
            return None
        raise


def with_topics(
    modes: Sequence[FailureMode],
    texts: Mapping[str, Sequence[FailureText]],
    config: Config,
    embedder: Embedder | InProcessEmbedder,
    *,
    known: Sequence[StoredTopic] = (),
    store: str | None = None,
    describe: bool = False,
) -> list[FailureMode]:
    """Return the failure modes with their topics. ``known`` topics keep their names. The judge can ``describe`` new ones."""
    judge = judge_from(config) if describe else None
    if describe and judge is None:
        print("--describe: no judge is configured, so topics are named by their words", file=sys.stderr)
    budget, now = CommandBudget(config), time.time()
    try:
        finder = TopicFinder(budget.embedder(embedder).embed, embedder.model, known, now)
        found = []
        for mode in modes:
            name = mode.fault.mode
            others = [one.text for other, some in texts.items() if other != name for one in some[:50]]
            found.append((mode, finder.topics_of(name, texts.get(name, ()), others)))
        if judge is not None:
            warn_of_new_budget(budget)
            found = _described(found, budget.judge(judge), config.privacy.redact)
    except JudgeError as error:
        print(escaped(f"failure modes have no topics: {error}"), file=sys.stderr)
        return [*modes]
    finally:
        close_models(judge, embedder, budget)
    if store is not None:
        try:
            write_topics(store, [topic.about for _, topics in found for topic in topics], embedder.model, now)
        except (sqlite3.Error, OSError, StoreError) as error:
            print(escaped(f"topics can't be kept in the store: {error}"), file=sys.stderr)
    return [replace(mode, topics=topics) for mode, topics in found]


def _described(
    found: Sequence[tuple[FailureMode, list[Topic]]], judge: Any, redact: Collection[str]
) -> list[tuple[FailureMode, list[Topic]]]:
    """Return the topics with descriptions. After an error of the judge, topics keep their words."""
    described: dict[tuple[str, str], StoredTopic] = {}
    try:
        for about, nearest in ((topic.about, topic.nearest) for _, topics in found for topic in topics):
            if not about.description:
                reply = judge.ask("topic", _TASK, {"texts": [one.text for one in nearest]}, _REPLY)
                name, description = (
                    one_line(redacted_text(str(reply.get(key) or ""), redact), longest)
                    for key, longest in (("name", _LONGEST_NAME), ("description", _LONGEST_DESCRIPTION))
                )
                described[about.mode, about.id] = about._replace(name=name or about.name, description=description)
    except JudgeError as error:
        print(escaped(f"--describe: {error}"), file=sys.stderr)
    return [
        (mode, [replace(topic, about=described.get((topic.about.mode, topic.about.id), topic.about)) for topic in topics])
        for mode, topics in found
    ]
