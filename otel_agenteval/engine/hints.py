"""Log hints for users who don't get scores. Each engine logs a hint once.

``otel-agenteval doctor`` finds many such problems before the agent runs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from ..core.extras import extra_installed
from ..core.packages import broken
from ..evaluation.scored_turn import ScoredTurn
from ..metrics.bound_metric import BoundMetric, asked_in
from ..metrics.registry import GROUPS, group_of, resolve

_log = logging.getLogger("otel_agenteval")

SPANS_WITHOUT_TURN = 1_000
TURNS_WITHOUT_SCORE = 100


def name_missing_packages(metrics: Iterable[BoundMetric], selection: str | Sequence[str]) -> None:
    """Warn about each selected metric whose package is missing. At level INFO, also log metrics that a group omits for this reason."""
    for metric in metrics:
        extra = metric.metric.extra
        if extra is not None and not extra_installed(extra):
            _log.warning("%s can't be evaluated; run: pip install 'otel-agenteval[%s]'", metric.name, extra)
    if _log.isEnabledFor(logging.INFO):
        for group in [selection] if isinstance(selection, str) else selection:
            for name in group_of(group, is_installed=False) if group in GROUPS else ():
                _log.info("%s is off; run: pip install 'otel-agenteval[%s]'", name, resolve(name).metric.extra)


def name_missing_models(metrics: Sequence[BoundMetric], models: Any) -> None:
    """Log metrics that are skipped because their judge or embedder isn't configured."""
    for kind, section in (("llm", "judge"), ("embed", "embedder")):
        names = dict.fromkeys(one.name for one in asked_in(metrics) if one.metric.kind == kind and not models.can_ask(one))
        if names:
            text = "no %s is configured, so these metrics are skipped: %s; set %s.base_url and %s.model"
            _log.warning(text, section, ", ".join(names), section, section)


class Hints:
    """Logger of hints about missing scores. Not thread-safe.

    ``configured`` contains the computed turn metrics that the configuration lists explicitly.
    """

    def __init__(self, configured: Collection[str]) -> None:
        self._waits_for_turn = True
        self._never: dict[str, Counter[str]] = {name: Counter() for name in configured}
        """Maps each metric that was skipped on all turns so far to the reasons, with the number of turns per reason."""
        self._turns = 0

    def check_spans(self, received: int, may_hold_turn: Callable[[], bool]) -> None:
        """Warn once if 1,000 spans arrived without an agent or model span, and ``may_hold_turn()`` returns False."""
        if self._waits_for_turn and received >= SPANS_WITHOUT_TURN and not may_hold_turn():
            self._waits_for_turn = False
            versions = broken()
            _log.warning(
                "received %d spans, but no agent or model spans. %s. For details, run `otel-agenteval doctor`", received,
                f"These instrumentations create no spans with the installed versions: {', '.join(versions)}" if versions
                else "Check that an instrumentation for your framework is installed and enabled",
            )  # fmt: skip

    def check_turn(self) -> None:
        self._waits_for_turn = False

    def check_scores(self, done: Sequence[ScoredTurn]) -> None:
        """Warn once about each configured metric that was skipped on all of the first 100 turns."""
        if not self._never:
            return
        for scored in done:
            if not scored.of_turn_itself or scored.conversation or not scored.new:
                continue
            self._turns += 1
            for score in scored.scores:
                reasons = self._never.get(score.metric)
                if reasons is not None:
                    if score.status == "skipped":
                        reasons[str(score.detail.get("reason", "")) or "no reason"] += 1
                    else:
                        del self._never[score.metric]
        if self._turns >= TURNS_WITHOUT_SCORE:
            for name, reasons in sorted(self._never.items()):
                if reasons:
                    _log.warning(
                        "%s is configured, but was skipped on all %d turns: %s. For the rules, run `otel-agenteval explain %s`",
                        name, self._turns, reasons.most_common(1)[0][0], name,
                    )  # fmt: skip
            self._never = {}
