"""Turn on the metrics that read the references from ``expect()``, without configuration.

A built-in computed metric is turned on if it reads one of the given references and can be evaluated without further
ones. It must have no required parameters, its packages must be installed, and it must not assume another form of the
answer. Judged metrics are never turned on.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from ..core.extras import extra_installed
from ..metrics.bound_metric import BoundMetric, live_metric
from ..metrics.registry import builtin, indexed
from .references import INVALID

_log = logging.getLogger("otel_agenteval")
_OF_OTHER_FORMS = frozenset(("code_json_equals", "code_audio_transcription_quality", "code_bleu"))
"""Metrics that aren't turned on, because they'd compare the answer as JSON or as a transcript.

BLEU is one of them, because it fails correct answers of fewer than four words.
"""
_READ_ANYWAY = frozenset(("context", "history", "session", "metadata", "attachments"))
"""Facts that don't turn on any metric, because too many metrics read them."""
_MOST_KEPT = 256
"""Maximum number of cached combinations of references."""


class ExpectedMetrics:
    """Metrics that run on turns with references from ``expect()``, in addition to the configured ones."""

    def __init__(self, configured: Collection[str]) -> None:
        self._configured = frozenset(configured)
        self._known: dict[frozenset[str], Sequence[BoundMetric]] = {}

    def of(self, sources: Mapping[str, str]) -> Sequence[BoundMetric]:
        """Return the additional metrics for a turn, given the sources of its references."""
        given = frozenset([name.partition(".")[0] for name, source in sources.items() if source.startswith(("expect", INVALID))])
        if not given:
            return ()
        found = self._known.get(given)
        if found is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            names = [name for name in turned_on_by(given) if name not in self._configured]
            found = self._known[given] = [live_metric(name, {}) for name in names]
            if names:
                _log.info("expect() sets %s and turns on %s", ", ".join(sorted(given)), ", ".join(names))
        return found


def turned_on_by(given: Collection[str]) -> list[str]:
    """Return the names of the metrics that these references turn on."""
    known = [metric for name in builtin() if name not in _OF_OTHER_FORMS and (metric := indexed(name)) is not None]
    return [
        metric.name
        for metric in known
        if metric.kind == "code"
        and not (metric.combines or metric.required)
        and not (metric.reads - _READ_ANYWAY).isdisjoint(given)
        and (metric.extra is None or extra_installed(metric.extra))
    ]
