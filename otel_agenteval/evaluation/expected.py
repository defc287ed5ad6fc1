"""The metrics that ``expect()`` turns on: what somebody gives is used, without a word of configuration.

A computed metric of ours is turned on by a reference that it reads, if it can be evaluated by that alone: no parameter is missing, its packages are
installed, and it presupposes no form of the answer that the reference does not have. Nothing that asks a model is turned on.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from ..core.extras import extra_installed
from ..metrics.bound_metric import BoundMetric, live_metric
from ..metrics.catalog_index import METRICS
from ..metrics.registry import indexed

_log = logging.getLogger("otel_agenteval")
_OF_OTHER_FORMS = frozenset(("code_json_equals", "code_audio_transcription_quality", "code_bleu"))
"""Would compare a sentence as JSON, or as what was spoken; and BLEU fails answers of less than four words that are the truth itself."""
_READ_ANYWAY = frozenset(("context", "history", "session", "metadata", "attachments"))
"""Facts that so many metrics look at that giving one says nothing about which are wanted."""
_MOST_KEPT = 256
"""Combinations of references whose metrics are remembered."""


class ExpectedMetrics:
    """What is evaluated besides the configured metrics on turns that got references from ``expect()``.

    Args:
        configured: names of metrics that are evaluated anyway.
    """

    def __init__(self, configured: Collection[str]) -> None:
        self._configured = frozenset(configured)
        self._known: dict[frozenset[str], Sequence[BoundMetric]] = {}

    def of(self, sources: Mapping[str, str]) -> Sequence[BoundMetric]:
        """The metrics for a turn whose references came from these sources."""
        given = frozenset([name.partition(".")[0] for name, source in sources.items() if source == "expect"])
        if not given:
            return ()
        found = self._known.get(given)
        if found is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            names = [name for name in turned_on_by(given) if name not in self._configured]
            found = self._known[given] = [live_metric(name, {}) for name in names]
            if names:
                _log.info("expect() gave %s: also evaluating %s", ", ".join(sorted(given)), ", ".join(names))
        return found


def turned_on_by(given: Collection[str]) -> list[str]:
    """Names of the metrics that these references turn on."""
    return [name for name in METRICS if _can_use(name, given)]


def _can_use(name: str, given: Collection[str]) -> bool:
    metric = indexed(name)
    return (
        metric is not None
        and metric.kind == "code"
        and not metric.combines
        and not metric.required
        and name not in _OF_OTHER_FORMS
        and not (metric.reads - _READ_ANYWAY).isdisjoint(given)
        and (metric.extra is None or extra_installed(metric.extra))
    )
