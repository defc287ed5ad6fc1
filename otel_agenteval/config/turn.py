"""Sections ``turn``, ``queue``, ``conversation``, ``feedback``, and ``statistics``."""

from __future__ import annotations

from typing import Annotated

from .metrics import MetricEntry
from .section import Section
from .types import Before, Count, Duration, DurationOrAuto, DurationOrZero, FilePath, Kind, Share, Size, Toggle, file_path, names


class TurnOptions(Section):
    idle_timeout: Duration = 300.0
    """Maximum seconds without a new span in a turn whose root span hasn't arrived. After that, the turn closes."""
    max_duration: Duration = 3600.0
    """Maximum seconds from a turn's first span until the turn closes."""
    decision_delay: DurationOrAuto = "auto"
    """Seconds to wait for open or delayed spans after the root span ended (in your process) or arrived (from OTLP or Kafka).
    ``auto`` is usually 2 s in your process, and 10 s in a sidecar."""
    stitch_timeout: DurationOrZero = 30.0
    """Seconds to wait for the next model call after a call that is alone in its trace and requested a tool. If the next call
    contains the tool's result, both calls are one turn. With 0, each of these calls is a separate turn."""
    max_open: Count = 50_000
    """Maximum number of open turns. Above the limit, a turn closes early and is evaluated. A sidecar first makes senders retry."""
    max_spans: Count = 2_000
    """Maximum number of spans in one turn or OTLP trace. Above the limit, the turn closes and is evaluated."""
    max_bytes: Size = 4 * 2**20
    """Maximum bytes of one turn or OTLP trace. Above the limit, the turn closes and is evaluated."""
    total_bytes: Size = 256 * 2**20
    """Maximum bytes of all open turns. Above the limit, turns close early and are evaluated. A sidecar first makes senders retry."""
    max_work: Duration = 10.0
    """Maximum CPU seconds to read and score one turn in ``serve`` and ``worker``. A turn that takes longer is dropped and
    counted. A custom metric that waits longer than 1.5 times this limit, for example for a server, returns an error."""


class QueueOptions(Section):
    max_bytes: Size = 64 * 2**20
    """Maximum bytes of turns that wait to be scored. Above the limit, new turns are dropped and counted. A sidecar makes senders retry instead, and a Kafka worker pauses reading."""


class ConversationOptions(Section):
    """Metrics over all turns with one conversation ID, evaluated when the conversation ends."""

    metrics: Annotated[tuple[MetricEntry, ...], Kind("[list of metrics](#metrics)")] = ()
    """Metrics that score a whole conversation. Each metric receives the inputs and outputs of all turns as messages, and all turns except
    the last one as history."""
    idle_timeout: Duration = 1800.0
    """Seconds without a new turn until a conversation ends. A later turn can resume the conversation."""
    max_open: Count = 10_000
    """Maximum number of open conversations. Above the limit, the conversation that was idle longest ends."""
    max_turns: Count = 200
    """Maximum number of turns in one conversation. Above the limit, the oldest turns are dropped."""
    max_bytes: Size = 64 * 2**20
    """Maximum bytes of all conversations. Above the limit, ended conversations are dropped, then the longest idle ones end."""


class FeedbackOptions(Section):
    """User feedback on turns (thumbs, ratings, edited answers), which becomes the metric ``code_user_feedback``."""

    threshold: Share = 0.5
    """Minimum feedback score (0 to 1) at which a turn passes."""
    attributes: Annotated[tuple[str, ...], Before(names("span attributes")), Kind("list of span attributes")] = ()
    """Span attributes that contain feedback. Feedback in events and log records is read without this option."""
    wait: DurationOrZero = 60.0
    """Seconds that feedback waits for its turn. Then, feedback with a span ID becomes a score with only the turn's IDs, and other feedback is dropped."""


_state = Before(lambda value: value if value in ("auto", None) else file_path(value))
StateFile = Annotated[str | None, _state, Kind("`auto` or path")]


class ChangeOptions(Section):
    detect: Toggle = "auto"
    """Detect changes in scores. With ``auto``, only ``serve`` and ``worker`` detect changes."""
    false_alarm_every: Count = 100_000
    """Average number of scores between two false alarms for the same metric and agent."""
    least: Share = 0.01
    """Smallest change in a mean to report, for scores from 0 to 1."""
    reference: Count = 200
    """Number of scores in the baseline of a metric and agent. Until the baseline is complete, only changes between releases are reported."""


class StatisticsOptions(Section):
    changes: ChangeOptions = ChangeOptions()
    """Detection of changes in scores."""
    calibration: FilePath | None = None
    """File with the output of ``otel-agenteval calibrate --format json``. For the metrics in this file, otel-agenteval also exports pass
    rates that are corrected for the judge's mistakes."""
    state: StateFile = "auto"
    """File that keeps estimates and baselines across restarts. ``auto`` means a file under ``$XDG_STATE_HOME``
    (default: ``~/.local/state``) in ``serve`` and ``worker``, and no file in other programs. Null means no file."""
