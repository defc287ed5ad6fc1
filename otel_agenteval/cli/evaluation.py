"""Scoring of recorded turns for ``eval``, ``experiment`` and ``ui``, in one or several processes."""

from __future__ import annotations

import functools
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from ..config.loader import load_config
from ..config.root import Config
from ..core import jsonio
from ..core.score import Score
from ..core.threads import mark_as_ours
from ..core.turn import Turn
from ..evaluation.case_metrics import CaseMetrics, expected_value
from ..evaluation.evaluator import begin
from ..evaluation.names import WITHHELD, named_publicly
from ..evaluation.redaction import Redactor, redacted_score
from ..evaluation.references import ReferenceSources
from ..evaluation.selection import named, select_conversation_metrics, select_group, select_metrics
from ..evaluation.signals import with_signals
from ..evaluation.turn_facts import FactValue, facts_of
from ..judging.models import Embedder, InProcessEmbedder, Judge, JudgeGroup
from ..judging.sampling import rules_of
from ..metrics.bound_metric import BoundMetric, asks_one
from ..outlets.accounting import outcome
from ..report import About, Rendering, Run, parameters_hash
from ..report.outputs import Output
from ..report.run import MOST_TEXT
from ..turns.conversations import RecordedConversations, looks_back
from ..turns.spool import Key
from .options import names_of


def chosen(config: Config, names: str | None) -> tuple[list[BoundMetric], list[BoundMetric]]:
    """Return metrics of turns and of conversations, from ``--metrics`` or the configuration. Raises ConfigError."""
    selected, whole = select_metrics(config), select_conversation_metrics(config)
    for metrics in (selected, whole):
        rules_of(config, metrics)  # every turn is evaluated here, but an invalid rule is still reported
    if names is None:
        return selected, whole
    of_turns: list[BoundMetric] = []
    of_whole: list[BoundMetric] = []
    for name in names_of(names, "--metrics"):
        if name.startswith("@"):
            more, more_whole = select_group(config, name[1:], selected)
            more = [bound for bound in more if bound not in of_turns]
        else:
            more, more_whole = named(config, [name], selected, whole)
        of_turns += more
        of_whole += more_whole
    return with_signals(of_turns, of_whole, selected), of_whole


class Evaluated(NamedTuple):
    """A scored turn or conversation."""

    about: About
    texts: Sequence[str]
    """Its text in each output."""
    scored: Sequence[tuple[Score, str]]
    """Its scores, each with the hash of its metric's parameters; empty if no output needs them."""
    facts: Mapping[str, FactValue]
    """Its facts. Empty unless the run is compared with a baseline."""

    def add_to(self, outputs: Iterable[Output], run: Run | None) -> None:
        """Write the turn to the outputs, and keep its scores and facts in the run of all turns."""
        for output, text in zip(outputs, self.texts, strict=True):
            output.add(text, self.scored)
        if run is not None:
            for score, parameters in self.scored:
                run.add(self.about, score, parameters)
            if self.facts:
                run.add_facts(self.about.turn_id, self.facts)


class Evaluation:
    """Scores turns. A pickled copy in another process lacks judge and embedder. ``with_scores`` keeps all scores,
    ``with_content`` also input and output of turns with a failed score, and ``with_facts`` the facts of each turn. The default of
    ``cases`` is those of ``references.dataset``.
    """

    def __init__(
        self,
        config: Config,
        names: str | None,
        renderings: Sequence[Rendering],
        *,
        with_scores: bool,
        with_content: bool = True,
        with_facts: bool = False,
        judge: Judge | JudgeGroup | None = None,
        embedder: Embedder | InProcessEmbedder | None = None,
        cases: CaseMetrics | None = None,
    ) -> None:
        self._config = config
        self._names = names
        self._renderings = renderings
        self._with_scores, self._with_content, self._with_facts = with_scores, with_content, with_facts
        self._judge, self._embedder = judge, embedder
        self._metrics, self._whole = chosen(config, names)
        self._references = ReferenceSources(config)
        self._cases = cases or CaseMetrics(config, self._metrics, self._references.cases)
        self._hashes = {metric._facts: parameters_hash(metric) for metric in (*self._cases.all, *self._whole)}

    def __reduce__(self) -> tuple[Any, ...]:
        config, kept = json.dumps(self._config.to_dict()), (self._with_scores, self._with_content, self._with_facts)
        return _copy, (config, self._names, self._renderings, *kept)

    @property
    def asks(self) -> bool:
        """True if a metric calls a model."""
        return asks_one([*self._cases.all, *self._whole], self._judge, self._embedder)

    @property
    def looks_at_conversations(self) -> bool:
        """True if a metric reads several turns."""
        return bool(self._whole) or looks_back(self._cases.all)

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, Evaluated]]:
        """Yield each scored turn, then each scored conversation."""
        for key, turn, scores in self.scores(turns):
            yield key, self.render(turn, scores)

    def scores(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, Turn, list[Score]]]:
        """Yield each turn, then each conversation, with its unredacted scores."""
        conversations = RecordedConversations(
            self._config.conversation, history=looks_back(self._cases.all), whole=bool(self._whole)
        )

        def begin_turn(turn: Turn) -> Callable[[], list[Score]]:
            finish = self._begin(turn, self._metrics)
            conversations.take(turn)
            return finish

        for key, turn, scores in self._finished((key, turn, begin_turn(turn)) for key, turn in turns):
            conversations.note(turn, scores)
            yield (0, key), turn, scores
        wholes = ((ended.turn, self._begin(ended.turn, self._whole)) for ended in conversations.ended())
        for key, turn, scores in self._finished(((str(turn.start), turn.turn_id), turn, finish) for turn, finish in wholes):
            yield (1, key), turn, scores

    def _begin(self, turn: Turn, metrics: Sequence[BoundMetric]) -> Callable[[], list[Score]]:
        references = self._references if metrics is self._metrics else None
        redact = self._config.privacy.redact
        return begin(turn, metrics, references, judge=self._judge, embedder=self._embedder, redact=redact, cases=self._cases)

    def _finished(self, begun: Iterable[tuple[Key, Turn, Callable[[], list[Score]]]]) -> Iterator[tuple[Key, Turn, list[Score]]]:
        """Yield the turns with their scores, in the same order. Calls to models are concurrent."""
        if not self.asks:
            for key, turn, finish in begun:
                yield key, turn, finish()
            return
        most = self._config.judge.max_concurrency
        waiting: deque[tuple[Key, Turn, Future[list[Score]]]] = deque()
        pool = ThreadPoolExecutor(most, "otel-agenteval-eval", mark_as_ours)
        try:
            for key, turn, finish in begun:
                waiting.append((key, turn, pool.submit(finish)))
                if len(waiting) > most:
                    first, asked, future = waiting.popleft()
                    yield first, asked, future.result()
            while waiting:
                first, asked, future = waiting.popleft()
                yield first, asked, future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def render(self, turn: Turn, scores: Iterable[Score]) -> Evaluated:
        """Return a scored turn, redacted, with its text for each output."""
        kinds = self._config.privacy.redact
        public = named_publicly(turn, kinds)
        about = About.of(public)  # the references have set its case by now
        redactor = Redactor(kinds)
        scored = []
        for score in [redacted_score(score, redactor, turn) for score in scores]:
            if score.status != "skipped":
                score.about = (turn.turn_id, b"%d" % turn.revision)  # gives it the same id as in other outlets
            scored.append((score, self._hashes[score.facts]))
        if self._with_content and any(outcome(score) in ("fail", "error") for score, _ in scored):
            known = expected_value(turn.references) if turn.ground_truth is None else turn.ground_truth
            expected = None if known is None else jsonio.text_of(known)
            about = replace(
                about,
                asked=_beginning_of(turn.input, redactor),
                answered=_beginning_of(turn.output, redactor),
                expected=_beginning_of(expected, redactor),
            )
        texts = [rendering(public, about, scored, redactor) for rendering in self._renderings]
        return Evaluated(about, texts, scored if self._with_scores else (), facts_of(public) if self._with_facts else {})


def _beginning_of(text: str | None, redactor: Redactor) -> str | None:
    """Return the redacted beginning of a text. A text that can't be redacted is withheld."""
    if text is None:
        return None
    try:
        return redactor.text(text[: 4 * MOST_TEXT])[:MOST_TEXT]
    except Exception:
        return WITHHELD


@functools.lru_cache(maxsize=1)
def _copy(
    config: str, names: str | None, renderings: Sequence[Rendering], with_scores: bool, with_content: bool, with_facts: bool
) -> Evaluation:
    loaded = load_config(json.loads(config), env={})
    return Evaluation(loaded, names, renderings, with_scores=with_scores, with_content=with_content, with_facts=with_facts)
