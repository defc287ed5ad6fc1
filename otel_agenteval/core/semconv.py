"""Names of events, attributes, and metrics that this package emits.

The ``gen_ai.`` names follow OpenTelemetry's GenAI semantic conventions (status: development). This project defines the
``agenteval.`` names. Names that the package only reads are defined in the modules that read them.

To add a metric, add it to :data:`INSTRUMENTS`. :func:`prometheus_name` derives its Prometheus name.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

SCOPE = "otel_agenteval"
"""Instrumentation scope of all emitted telemetry. Spans of this scope are never evaluated."""

EVENT = "gen_ai.evaluation.result"
"""Name of the event that reports one metric's result on one turn or conversation."""

EVALUATION_NAME = "gen_ai.evaluation.name"
SCORE_VALUE = "gen_ai.evaluation.score.value"
SCORE_LABEL = "gen_ai.evaluation.score.label"
EXPLANATION = "gen_ai.evaluation.explanation"
RESPONSE_ID = "gen_ai.response.id"
"""Response ID of the turn's last model call."""
CONVERSATION_ID = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
ERROR_TYPE = "error.type"
SERVICE_NAME = "service.name"
SERVICE_VERSION = "service.version"

RESULT_ID = "agenteval.result.id"
"""ID of the score, identical in every outlet."""
INSTANCE_ID = "agenteval.instance.id"
"""ID of the engine that created the score. Each process has its own ID."""
CHANGE_EVENT = "agenteval.change"
"""Name of the event that reports a change in a metric's scores."""
CHANGE_VERDICT = "agenteval.change.verdict"
"""``worse`` or ``better``, or ``changed`` if the metric is neutral."""
CHANGE_DETECTOR = "agenteval.change.detector"
"""Method that detected the change: ``cusum``, ``ewma``, ``release``, or ``anchors`` (``otel-agenteval judge drift``)."""
CHANGE_BEFORE = "agenteval.change.mean.before"
CHANGE_AFTER = "agenteval.change.mean.after"
CHANGE_DIFFERENCE = "agenteval.change.difference"
CHANGE_LOW = "agenteval.change.difference.ci_low"
CHANGE_HIGH = "agenteval.change.difference.ci_high"
CHANGE_SINCE = "agenteval.change.since"
"""Start of the change, in ISO 8601."""
CHANGE_N = "agenteval.change.n_eff"
CHANGE_TURNS = "agenteval.change.turns"
CHANGE_TRACES = "agenteval.change.traces"
CHANGE_VERSION_BEFORE = "agenteval.change.version.before"
CHANGE_VERSION = "agenteval.change.version"
CHANGE_FACTS = "agenteval.change.facts"
"""Up to three attribute values that became more frequent in failed turns when the scores got worse. Requires a score store."""
CASE_ID = "agenteval.case.id"
"""Baggage key that sends the case ID to other services, set by ``expect(case_id=…, propagate=True)``."""
TENANT = "agenteval.tenant"
TURN_ID = "agenteval.turn.id"
TURN_SUPERSEDES = "agenteval.turn.supersedes"
TURN_REVISION = "agenteval.turn.revision"
TURN_CLOSE_REASON = "agenteval.turn.close_reason"
TURN_INPUT = "agenteval.turn.input"
TURN_OUTPUT = "agenteval.turn.output"
TURN_COMPLETE = "agenteval.turn.complete"
METRIC_KIND = "agenteval.metric.kind"
METRIC_VERSION = "agenteval.metric.version"
PASSED = "agenteval.passed"
SEVERITY = "agenteval.severity"
"""Urgency of a result: ``info``, ``warning``, or ``critical``. Absent if the metric didn't find a problem."""
THRESHOLD = "agenteval.threshold"
POLICY = "agenteval.policy"
SAMPLE_PROBABILITY = "agenteval.sample.probability"
"""Probability that a received turn is judged. Only judged scores have this attribute."""
UPSTREAM_PROBABILITY = "agenteval.sample.upstream_probability"
"""Probability that head samplers kept the trace, according to its trace state. Only judged scores have this attribute."""
DECIDED_BY = "agenteval.sample.decided_by"
"""Reason why the turn was judged: ``rate``, ``rule``, ``quota``, or the name of the metric that was judged first."""
JUDGE_MODEL = "agenteval.judge.model"
JUDGE_COST = "agenteval.judge.cost_usd"
JUDGE_INPUT_TRUNCATED = "agenteval.judge.input_truncated"
"""True if ``judge.max_input_tokens`` truncated the judge's input."""

SCORE = "agenteval.score"
MEASURE_DURATION = "agenteval.measure.duration"
MEASURE_TOKENS = "agenteval.measure.tokens"
MEASURE_COST = "agenteval.measure.cost.usd"
MEASURE_ITEMS = "agenteval.measure.items"
MEASURE_SEVERITY = "agenteval.measure.severity"
RESULTS = "agenteval.results"
FINDINGS = "agenteval.findings"
DROPPED = "agenteval.dropped"
SKIPPED = "agenteval.skipped"
TURNS = "agenteval.turns"
FEEDBACK = "agenteval.feedback"
TURNS_READ = "agenteval.turns.read"
UNREAD_TRACES = "agenteval.unread_traces"
VALUES_LIMITED = "agenteval.values.limited"
TURN_DURATION = "agenteval.turn.duration"
TURN_COST = "agenteval.turn.cost.usd"
TURN_TOKENS = "agenteval.turn.tokens"
SPANS_RECEIVED = "agenteval.spans.received"
SPANS_DROPPED = "agenteval.spans.dropped"
FAULTS = "agenteval.faults"
LATE_SPANS = "agenteval.late_spans"
LATE_SPAN_AGE = "agenteval.late_span.age"
TURNS_OPEN = "agenteval.turns.open"
QUEUE_SIZE = "agenteval.queue.size"
QUEUE_CAPACITY = "agenteval.queue.capacity"
METRIC_DURATION = "agenteval.metric.duration"
EMIT_ERRORS = "agenteval.emit.errors"
EMIT_RECORDS = "agenteval.emit.records"
EMIT_WAITING = "agenteval.emit.waiting"
OUTLET_DELIVERING = "agenteval.outlet.delivering"
SPAN_EVENTS = "agenteval.span_events"
QUEUE_HELD = "agenteval.queue.held"
JUDGE_REQUESTS = "agenteval.judge.requests"
JUDGE_CACHE = "agenteval.judge.cache"
JUDGE_SPENT = "agenteval.judge.cost.usd"
BUDGET_REMAINING = "agenteval.budget.remaining.usd"
BUDGET_CALLS = "agenteval.budget.remaining.calls"
ESTIMATE_MEAN = "agenteval.estimate.mean"
ESTIMATE_LOW = "agenteval.estimate.ci_low"
ESTIMATE_HIGH = "agenteval.estimate.ci_high"
ESTIMATE_N = "agenteval.estimate.n_eff"
ESTIMATE_PASSES = "agenteval.estimate.pass_rate"
ESTIMATE_PASSES_LOW = "agenteval.estimate.pass_rate.ci_low"
ESTIMATE_PASSES_HIGH = "agenteval.estimate.pass_rate.ci_high"
ESTIMATES = (
    ESTIMATE_MEAN, ESTIMATE_LOW, ESTIMATE_HIGH, ESTIMATE_N, ESTIMATE_PASSES, ESTIMATE_PASSES_LOW, ESTIMATE_PASSES_HIGH,
)  # fmt: skip
"""Names of estimates for all turns, based on the judged turns."""
CHANGE_TIME = "agenteval.change.timestamp"
CHANGE_SIZE = "agenteval.change.size"
LOAD_LEVEL = "agenteval.load_level"
SERVE_REQUESTS = "agenteval.serve.requests"
SERVE_SCRAPES = "agenteval.serve.scrapes"
SERVE_BYTES = "agenteval.serve.received"
JOURNAL_SIZE = "agenteval.journal.size"
JOURNAL_AGE = "agenteval.journal.age"
JOURNAL_FAILURES = "agenteval.journal.failures"
JOURNAL_REPLAYED = "agenteval.journal.replayed"
TENANT_BYTES = "agenteval.tenant.received"
TENANT_SPANS = "agenteval.tenant.spans"
TENANT_REFUSED = "agenteval.tenant.refused"
TENANT_OPEN = "agenteval.tenant.turns.open"
SERVE_RUNNING = "agenteval.serve.requests.running"
SERVE_CONNECTIONS = "agenteval.serve.connections"
SERVE_CONNECTIONS_REFUSED = "agenteval.serve.connections.refused"
BUILD_INFO = "agenteval.build.info"
CERTIFICATE_EXPIRY = "agenteval.serve.certificate.expiry.timestamp"
RELOAD_OK = "agenteval.config.last_reload.successful"
RELOAD_TIME = "agenteval.config.last_reload.success.timestamp"

KAFKA_LAG = "agenteval.kafka.lag"
KAFKA_REPLAY = "agenteval.kafka.uncommitted"
KAFKA_MESSAGES = "agenteval.kafka.messages"
KAFKA_PARTITIONS = "agenteval.kafka.partitions"
KAFKA_REBALANCES = "agenteval.kafka.rebalances"

OTHER = "__other__"
"""Label value that combines all values over the limit."""

SPAN_LABELS = frozenset({"agent", "model", "service_name"})
"""Labels whose values are from spans. The number of values per label is limited, because spans can contain any number of values."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """Definition of an emitted metric, for the OpenTelemetry Meter API and Prometheus."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    """UCUM unit. An annotation such as ``{turn}`` names the counted items."""
    attributes: tuple[str, ...]
    description: str
    buckets: tuple[float, ...] = ()
    """Inclusive upper bounds of a histogram's buckets, without the last bound, which is infinite."""
    about_us: bool = False
    """True if the metric measures otel-agenteval instead of the agents."""
    over: Literal["sum", "min", "max"] = "sum"
    """Operation that combines a gauge's values from several processes. Not used for :data:`ESTIMATES`."""


_FRACTIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)
_AGENT_SECONDS = (*(round(0.1 * 2**power, 1) for power in range(17)), 26214.4, 104857.6)
"""Buckets for ``gen_ai.invoke_agent.duration`` from the semantic conventions (up to 409.6), extended to more than a day."""
_METRIC_SECONDS = (0.000_01, 0.000_1, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_LATE_SECONDS = (0.1, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
_TOKENS = tuple(float(4**power) for power in range(14))
"""Buckets for token usage from the semantic conventions: powers of 4 from 1 to 67108864."""
_USD = (0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
_ITEMS = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_LEVELS = tuple(float(level) for level in range(11))

_OF_A_SCORE = ("metric", "kind", "agent", "model", "service_name")
_OF_A_TURN = ("agent", "model", "service_name")
_OF_A_BOUND = ("metric", "window")
"""Labels of a budget limit: ``metric`` (empty for all metrics) and ``window`` (``hour`` or ``day``)."""
_OF_PASSES = ("metric", "agent", "window", "method")
_OF_AN_ESTIMATE = ("metric", "agent", "window")

INSTRUMENTS: tuple[Instrument, ...] = (
    Instrument(SCORE, "histogram", "1", _OF_A_SCORE, "Scores without a unit, usually 0 to 1.", _FRACTIONS),
    Instrument(MEASURE_DURATION, "histogram", "s", _OF_A_SCORE, "Scores that are durations.", _AGENT_SECONDS),
    Instrument(MEASURE_TOKENS, "histogram", "{token}", _OF_A_SCORE, "Scores that are token counts.", _TOKENS),
    Instrument(MEASURE_COST, "histogram", "{USD}", _OF_A_SCORE, "Scores that are costs in US dollars.", _USD),
    Instrument(MEASURE_ITEMS, "histogram", "{item}", _OF_A_SCORE, "Scores that are counts or other numbers, such as a perplexity.", _ITEMS),
    Instrument(MEASURE_SEVERITY, "histogram", "{level}", _OF_A_SCORE, "Scores that are levels of severity or risk.", _LEVELS),
    Instrument(ESTIMATE_MEAN, "gauge", "", _OF_AN_ESTIMATE, "Estimated mean of a judged metric over all turns of the window."),
    Instrument(ESTIMATE_LOW, "gauge", "", _OF_AN_ESTIMATE, "Lower end of the mean's 95 % interval."),
    Instrument(ESTIMATE_HIGH, "gauge", "", _OF_AN_ESTIMATE, "Upper end of the mean's 95 % interval."),
    Instrument(ESTIMATE_N, "gauge", "{trace}", _OF_AN_ESTIMATE, "Effective sample size of the estimate: the number of equally weighted traces that would give the same precision."),
    Instrument(
        ESTIMATE_PASSES, "gauge", "", _OF_PASSES,
        "Estimated share of turns that pass a judged metric, by method: raw, or corrected for judge errors, based on human labels (rogan_gladen, ppi).",
    ),
    Instrument(ESTIMATE_PASSES_LOW, "gauge", "", _OF_PASSES, "Lower end of the pass rate's 95 % interval."),
    Instrument(ESTIMATE_PASSES_HIGH, "gauge", "", _OF_PASSES, "Upper end of the pass rate's 95 % interval."),
    Instrument(CHANGE_TIME, "gauge", "s", ("metric", "agent", "verdict"), "Time of the last detected change in a metric's scores, by verdict (worse, better, changed), in seconds since the Unix epoch.", over="max"),
    Instrument(CHANGE_SIZE, "gauge", "", ("metric", "agent", "verdict"), "Difference between the means before and after the last detected change.", over="max"),
    Instrument(RESULTS, "counter", "{result}", ("metric", "agent", "outcome"), "Results of metrics, by outcome."),
    Instrument(
        FINDINGS, "counter", "{result}", ("metric", "agent", "severity"),
        "Results that found a problem, by highest severity: info (only counted), warning, or critical (a person should act now).",
    ),
    Instrument(DROPPED, "counter", "{result}", ("metric", "reason"), "Dropped results, by reason."),
    Instrument(SKIPPED, "counter", "{result}", ("metric", "reason"), "Skipped results, by reason."),
    Instrument(TURNS, "counter", "{turn}", ("agent", "service_name", "close_reason", "complete"), "Closed turns."),
    Instrument(
        FEEDBACK, "counter", "{feedback}", ("outcome",),
        "User feedback, by outcome: in_trace (part of the turn's data), joined (with a scored turn), repeated (already received), unmatched (no turn has the span ID), no_turn (no span ID, and no turn in the trace), unreadable, or dropped.", about_us=True,
    ),
    Instrument(
        TURNS_READ, "counter", "{turn}", ("scope", "reading"),
        "Turns by instrumentation scope, and by how they were read: exact (a parser for the framework), inferred (data recognized by structure), "
        "or none (no input and output).",
        about_us=True,
    ),
    Instrument(
        UNREAD_TRACES, "counter", "{trace}", ("scope", "missing"),
        "Incomplete traces that seem to come from an agent, by missing part: turn, content (the turn's input and output), or caller (the turn that made a tool call).", about_us=True,
    ),
    Instrument(
        VALUES_LIMITED, "counter", "{value}", ("kind",),
        "Out-of-range values in spans, by kind: ignored token counts (count), ignored costs or durations (amount), and shortened names (name).",
        about_us=True,
    ),
    Instrument(TURN_DURATION, "histogram", "s", _OF_A_TURN, "Wall-clock duration of a turn, as in code_latency.", _AGENT_SECONDS),
    Instrument(
        TURN_COST, "counter", "{USD}", (*_OF_A_TURN, "estimated"),
        "Cost of the turns' model calls in US dollars, reported by spans or estimated from tokens and prices.",
    ),
    Instrument(
        TURN_TOKENS, "counter", "{token}", (*_OF_A_TURN, "token_type"),
        "Tokens of the turns' model calls: input (including cached) and output (including reasoning).",
    ),
    Instrument(SPANS_RECEIVED, "counter", "{span}", (), "Received spans.", about_us=True),
    Instrument(SPANS_DROPPED, "counter", "{span}", ("reason",), "Spans that weren't used, by reason. Missing parents (orphan_parent) and late log records (late_log_record) also count.", about_us=True),
    Instrument(FAULTS, "counter", "{fault}", ("where",), "Internal errors that didn't affect the agent, by location.", about_us=True),
    Instrument(LATE_SPANS, "counter", "{span}", (), "Spans that arrived after their turn was closed.", about_us=True),
    Instrument(LATE_SPAN_AGE, "histogram", "s", (), "Time from the close of a turn to the arrival of a late span.", _LATE_SECONDS, True),
    Instrument(TURNS_OPEN, "gauge", "{turn}", (), "Open turns.", about_us=True),
    Instrument(QUEUE_SIZE, "gauge", "", ("queue",), "Size of a queue, in bytes.", about_us=True, over="max"),
    Instrument(QUEUE_CAPACITY, "gauge", "", ("queue",), "Capacity of a queue, in bytes.", about_us=True, over="max"),
    Instrument(QUEUE_HELD, "gauge", "{job}", ("queue",), "Jobs that wait in memory because the queue's file or server can't be used.", about_us=True),
    Instrument(METRIC_DURATION, "histogram", "s", ("kind",), "Time to evaluate a turn's computed metrics, or one judged metric, by kind of metric.", _METRIC_SECONDS, True),
    Instrument(EMIT_ERRORS, "counter", "{error}", ("outlet", "reason"), "Errors of an outlet, by reason.", about_us=True),
    Instrument(
        EMIT_RECORDS, "counter", "{record}", ("outlet", "outcome"),
        "Records (scores, spans, or messages) of an outlet, by outcome: sent (including stored), or the reason why a record wasn't sent.", about_us=True,
    ),
    Instrument(EMIT_WAITING, "gauge", "{record}", ("outlet",), "Records (scores, spans, or messages) that are waiting in an outlet.", about_us=True),
    Instrument(
        OUTLET_DELIVERING, "gauge", "", ("outlet",), "1 if an outlet works, or 0 if its last delivery failed or hangs. For the reason, see the log.",
        about_us=True, over="min",
    ),
    Instrument(SPAN_EVENTS, "counter", "{event}", ("outcome",), "Score events for root spans, by outcome: ending or late_order (added), or why an event wasn't added.", about_us=True),
    Instrument(
        JUDGE_REQUESTS, "counter", "{request}", ("outcome",),
        "Calls to judges and embedders, by outcome: ok, error, gated (not sent, because of judge.budget), or unreadable (repeated, because the reply was unreadable).", about_us=True,
    ),
    Instrument(
        JUDGE_CACHE, "counter", "{question}", ("outcome",),
        "Judge calls that could use the reply cache: hit (not sent), miss (sent), or audit (sent without using the cache).", about_us=True,
    ),
    Instrument(JUDGE_SPENT, "counter", "{USD}", (), "Known cost of judges and embedders in US dollars.", about_us=True),
    Instrument(BUDGET_REMAINING, "gauge", "{USD}", _OF_A_BOUND, "US dollars left in judge.budget.", about_us=True, over="min"),
    Instrument(BUDGET_CALLS, "gauge", "{request}", _OF_A_BOUND, "Calls left in judge.budget.", about_us=True, over="min"),
    Instrument(
        LOAD_LEVEL, "gauge", "{level}", (),
        "Load level: 0 skips no metrics, 1 skips llm metrics, 2 also skips embed metrics, 3 also skips heavy code metrics.", about_us=True, over="max",
    ),
    Instrument(
        SERVE_REQUESTS, "counter", "{request}", ("transport", "signal", "outcome"),
        "Requests to the sidecar, by outcome: ok, partial (some records rejected), or the reason for refusal.", about_us=True,
    ),
    Instrument(SERVE_SCRAPES, "counter", "{request}", ("client",), "Requests for /metrics, by client: prometheus, another scraper, or other.", about_us=True),
    Instrument(SERVE_BYTES, "counter", "By", (), "Bytes of requests to the sidecar, before decompression.", about_us=True),
    Instrument(JOURNAL_SIZE, "gauge", "By", (), "Size of the requests in the journal.", about_us=True),
    Instrument(JOURNAL_AGE, "gauge", "s", (), "Age of the oldest request in the journal.", about_us=True),
    Instrument(JOURNAL_FAILURES, "counter", "{write}", (), "Failed journal writes.", about_us=True),
    Instrument(JOURNAL_REPLAYED, "counter", "{request}", (), "Requests replayed from an earlier process's journal.", about_us=True),
    Instrument(TENANT_BYTES, "counter", "By", ("tenant",), "Bytes of a tenant's requests, after decompression.", about_us=True),
    Instrument(TENANT_SPANS, "counter", "{span}", ("tenant",), "Spans in a tenant's requests.", about_us=True),
    Instrument(
        TENANT_REFUSED, "counter", "{request}", ("tenant", "reason"),
        "A tenant's refused requests, by reason, such as an exhausted quota.", about_us=True,
    ),
    Instrument(TENANT_OPEN, "gauge", "{turn}", ("tenant",), "A tenant's open turns.", about_us=True),
    Instrument(SERVE_RUNNING, "gauge", "{request}", (), "Admitted requests that haven't received a response yet.", about_us=True),
    Instrument(SERVE_CONNECTIONS, "gauge", "{connection}", ("listener",), "Open connections, by listener.", about_us=True),
    Instrument(
        SERVE_CONNECTIONS_REFUSED, "counter", "{connection}", ("listener", "reason"),
        "Refused connections, by reason: limit (too many), scheme (wrong use of TLS), server_certificate or client_certificate (rejected), or handshake (other TLS failures).", about_us=True,
    ),
    Instrument(BUILD_INFO, "gauge", "", ("version", "python"), "Always 1. The labels contain the otel-agenteval and Python versions.", about_us=True, over="max"),
    Instrument(
        CERTIFICATE_EXPIRY, "gauge", "s", ("file",),
        "Earliest expiry of the certificates in cert_file or client_ca_file of serve.tls, in seconds since the Unix epoch.", about_us=True,
    ),
    Instrument(
        RELOAD_OK, "gauge", "", (), "1 if the last configuration reload succeeded, or 0 if it failed and the previous configuration stays in use.",
        about_us=True,
    ),
    Instrument(RELOAD_TIME, "gauge", "s", (), "Time of the last successful configuration reload, in seconds since the Unix epoch.", about_us=True),
    Instrument(KAFKA_LAG, "gauge", "{message}", ("topic", "partition"), "Unread messages of a partition.", about_us=True),
    Instrument(
        KAFKA_REPLAY, "gauge", "{message}", ("topic", "partition"),
        "Messages that were read but not committed. They are read again if the partition moves to another worker.", about_us=True,
    ),
    Instrument(
        KAFKA_MESSAGES, "counter", "{message}", ("topic", "outcome"),
        "Messages by outcome: taken, dead_letter, or replayed (only read, because their turns are already scored).", about_us=True,
    ),
    Instrument(KAFKA_PARTITIONS, "gauge", "{partition}", (), "Partitions assigned to this worker.", about_us=True),
    Instrument(KAFKA_REBALANCES, "counter", "{partition}", ("kind",), "Partitions that were assigned, revoked, or lost in rebalances, by kind.", about_us=True),
)  # fmt: skip

_TAKEN = ("ok", "partial")
_REFUSED = ("bad_data", "too_large", "unauthenticated", "timeout", "throttled", "overloaded", "stopping", "error")
_GRPC_CODES = (
    "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
)  # fmt: skip
_HTTP_FAULTS = (
    "400", "401", "403", "404", "413", "415", "429", "500", "502", "503", "504", "ConnectError", "ConnectTimeout", "ReadError",
    "ReadTimeout", "RemoteProtocolError", "WriteError", "WriteTimeout",
)  # fmt: skip
_FILE_FAULTS = ("OSError", "FileNotFoundError", "PermissionError", "IsADirectoryError", "NotADirectoryError")

KNOWN_LABELS: Mapping[str, tuple[Mapping[str, tuple[str, ...]], ...]] = {
    SPANS_DROPPED: (
        {"reason": (
            "queue_full", "error", "duplicate", "orphan_parent", "pruned", "not_in_a_turn", "late_log_record", "invalid", "sampled_out",
            "late", "moved", "own", "left_for_next_start", "poisoned",
        )},
    ),
    FAULTS: (
        {"where": (
            "on_start", "on_end", "on_emit", "export", "take_content", "exit", "judging", "judge_queue", "judge_budget",
            "worker", "warm_up", "grpc", "http", "web", "loop", "journal", "kafka", "kafka_message", "kafka_commit",
        )},
    ),
    DROPPED: (
        {"reason": ("queue_full", "shutdown", "fault", "stuck", "too_long", "shed", "queue_error", "not_configured", "too_old")},
    ),
    EMIT_ERRORS: (
        {"outlet": ("metrics",), "reason": ("label_overflow", "watch")},
        {"outlet": ("prometheus",), "reason": ("name_clash", "port_in_use", "bind_failed", "workers_apart")},
        {"outlet": ("jsonl", "otlp_file"), "reason": _FILE_FAULTS},
        {"outlet": ("store",), "reason": ("OperationalError", "DatabaseError", "Unusable", "StoreError", "not_storable", *_FILE_FAULTS)},
        {"outlet": ("otlp",), "reason": ("spool_failed", "spool_not_opened", *_GRPC_CODES, *_HTTP_FAULTS)},
    ),
    EMIT_RECORDS: (
        {"outlet": ("jsonl", "otlp_file"), "outcome": ("sent", "queue_full", "no_answer", "shutdown", "fault")},
        {"outlet": ("store",), "outcome": ("sent", "queue_full", "no_answer", "shutdown", "fault", "not_storable")},
        {"outlet": ("webhook",), "outcome": ("sent", "queue_full", "shutdown", "rejected", "expired", "fault")},
        {"outlet": ("otlp",), "outcome": ("sent", "queue_full", "shutdown", "refused", "rejected", "expired", "fault")},
    ),
    VALUES_LIMITED: ({"kind": ("count", "amount", "name")},),
    FEEDBACK: ({"outcome": ("in_trace", "joined", "repeated", "unmatched", "no_turn", "unreadable", "dropped")},),
    SPAN_EVENTS: ({"outcome": ("ending", "late_order", "no_room", "root_already_ended", "unsupported")},),
    JUDGE_REQUESTS: ({"outcome": ("ok", "error", "gated", "unreadable")},),
    JUDGE_CACHE: ({"outcome": ("hit", "miss", "audit")},),
    SERVE_REQUESTS: (
        {"transport": ("grpc",), "signal": ("traces", "logs"), "outcome": (*_TAKEN, *_REFUSED, "cancelled")},
        {
            "transport": ("http",), "signal": ("traces", "logs"),
            "outcome": (*_TAKEN, *_REFUSED, "forbidden", "bad_method", "bad_type"),
        },
        {"transport": ("grpc", "http"), "signal": ("other",), "outcome": ("not_found", "error")},
    ),
    KAFKA_MESSAGES: ({"outcome": ("taken", "dead_letter", "replayed")},),
    KAFKA_REBALANCES: ({"kind": ("assigned", "revoked", "lost")},),
}  # fmt: skip
"""Mapping from counter to known label values. Series with known values start at 0, because ``rate()`` misses the first increase of
a new series. Any other series starts when its value first occurs.
"""


def known_label_sets(name: str, given: Mapping[str, Collection[str]]) -> Iterator[dict[str, str]]:
    """Yield every combination of a counter's known label values. ``given`` contains the values of configured labels, such as
    ``metric``, and can restrict the values of other labels. If a label's values are unknown, raise a KeyError.
    """
    attributes = next(instrument.attributes for instrument in INSTRUMENTS if instrument.name == name)
    for group in KNOWN_LABELS[name]:
        choices = []
        for attribute in attributes:
            known = group[attribute] if attribute in group else tuple(given[attribute])
            choices.append([value for value in known if attribute not in given or value in given[attribute]])
        for values in itertools.product(*choices):
            yield dict(zip(attributes, values, strict=True))


_PROMETHEUS_UNITS = {"s": "seconds", "By": "bytes"}


def prometheus_unit(instrument: Instrument) -> str:
    """Return the OpenMetrics unit: ``s`` → ``seconds``, ``{turn}`` → ``""``. The unit ``1`` becomes ``ratio`` for gauges only."""
    if instrument.unit == "1":
        return "ratio" if instrument.kind == "gauge" else ""
    return "" if instrument.unit.startswith("{") else _PROMETHEUS_UNITS.get(instrument.unit, instrument.unit)


def prometheus_name(instrument: Instrument) -> str:
    """Return the Prometheus name according to OpenTelemetry's rules, without histogram suffixes such as ``_bucket``."""
    name = instrument.name.replace(".", "_")
    unit = prometheus_unit(instrument)
    if unit and not name.endswith(f"_{unit}"):
        name = f"{name}_{unit}"
    return f"{name}_total" if instrument.kind == "counter" else name
