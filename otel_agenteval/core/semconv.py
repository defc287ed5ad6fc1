"""Every name that leaves on the wire: events, attributes and metrics, each in one place.

The convention's names are OpenTelemetry's GenAI semantic conventions (development status); the others are ours and live
under ``agenteval.``. Dialects of other instrumentations, which are only *read*, stand with their readers.

A metric is added by adding it to :data:`INSTRUMENTS`; its Prometheus name follows from :func:`prometheus_name`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

SCOPE = "otel_agenteval"
"""Instrumentation scope of everything we emit; spans of this scope are never evaluated."""

# --- the convention's ------------------------------------------------------------------------------------------------

EVENT = "gen_ai.evaluation.result"
"""Name of the event: one evaluation of one turn."""

EVALUATION_NAME = "gen_ai.evaluation.name"
SCORE_VALUE = "gen_ai.evaluation.score.value"
"""Double."""
SCORE_LABEL = "gen_ai.evaluation.score.label"
"""Low cardinality: ``pass``, ``fail``, …"""
EXPLANATION = "gen_ai.evaluation.explanation"
RESPONSE_ID = "gen_ai.response.id"
"""Of the model call that answered."""
CONVERSATION_ID = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
ERROR_TYPE = "error.type"
SERVICE_NAME = "service.name"
SERVICE_VERSION = "service.version"

# --- ours ------------------------------------------------------------------------------------------------------------

RESULT_ID = "agenteval.result.id"
"""The same in every outlet."""
INSTANCE_ID = "agenteval.instance.id"
"""The engine that made the score: one id per process."""
CHANGE_EVENT = "agenteval.change"
"""Name of the event: the scores of a metric have changed."""
CHANGE_VERDICT = "agenteval.change.verdict"
"""``worse``, ``better``, or ``changed`` where the metric has no better."""
CHANGE_DETECTOR = "agenteval.change.detector"
"""``cusum``, ``ewma`` or ``release``."""
CHANGE_BEFORE = "agenteval.change.mean.before"
CHANGE_AFTER = "agenteval.change.mean.after"
CHANGE_DIFFERENCE = "agenteval.change.difference"
CHANGE_LOW = "agenteval.change.difference.ci_low"
CHANGE_HIGH = "agenteval.change.difference.ci_high"
CHANGE_SINCE = "agenteval.change.since"
"""ISO 8601."""
CHANGE_N = "agenteval.change.n_eff"
CHANGE_TURNS = "agenteval.change.turns"
"""Ids of turns that show it."""
CHANGE_TRACES = "agenteval.change.traces"
CHANGE_VERSION_BEFORE = "agenteval.change.version.before"
CHANGE_VERSION = "agenteval.change.version"
CASE_ID = "agenteval.case.id"
"""Baggage key of ``expect(case_id=…, propagate=True)``."""
TENANT = "agenteval.tenant"
"""The tenant that the turn belongs to, where the sidecar has tenants."""
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
THRESHOLD = "agenteval.threshold"
POLICY = "agenteval.policy"
SAMPLE_PROBABILITY = "agenteval.sample.probability"
"""Of a judged score: P(judged | the turn was seen)."""
UPSTREAM_PROBABILITY = "agenteval.sample.upstream_probability"
"""Of a judged score: P(the trace was kept by head samplers), where its trace state says so."""
DECIDED_BY = "agenteval.sample.decided_by"
"""Of a judged score: ``rate``, ``rule``, ``quota``, ``budget``, or the metric that was asked before and decided."""
JUDGE_MODEL = "agenteval.judge.model"
JUDGE_COST = "agenteval.judge.cost_usd"
"""Cost of the requests to models for this score, where it is known."""
JUDGE_INPUT_TRUNCATED = "agenteval.judge.input_truncated"
"""True where the judge did not see all of what it was to judge (``judge.max_input_tokens``)."""

# --- metrics: all ours, the convention has none for evaluations ------------------------------------------------------

SCORE = "agenteval.score"
MEASURE_DURATION = "agenteval.measure.duration"
MEASURE_TOKENS = "agenteval.measure.tokens"
MEASURE_COST = "agenteval.measure.cost.usd"
MEASURE_ITEMS = "agenteval.measure.items"
MEASURE_SEVERITY = "agenteval.measure.severity"
RESULTS = "agenteval.results"
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
BUDGET_TOKENS = "agenteval.budget.remaining.tokens"
ESTIMATE_MEAN = "agenteval.estimate.mean"
ESTIMATE_LOW = "agenteval.estimate.ci_low"
ESTIMATE_HIGH = "agenteval.estimate.ci_high"
ESTIMATE_N = "agenteval.estimate.n_eff"
ESTIMATES = (ESTIMATE_MEAN, ESTIMATE_LOW, ESTIMATE_HIGH, ESTIMATE_N)
"""What is believed of all turns, from those that were judged."""
ESTIMATE_PASSES = "agenteval.estimate.pass_rate"
ESTIMATE_PASSES_LOW = "agenteval.estimate.pass_rate.ci_low"
ESTIMATE_PASSES_HIGH = "agenteval.estimate.pass_rate.ci_high"
ALLOCATED_RATE = "agenteval.allocation.rate"
ALLOCATED_TURNS = "agenteval.allocation.turns"
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
"""Label value that takes what is over the cap."""

SPAN_LABELS = frozenset({"agent", "model", "service_name"})
"""Attributes of metrics whose values come from spans: without a cap, traffic could make any number of them."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric: what the Meter API and Prometheus both need to know of it."""

    name: str
    """As in OTLP."""
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    """UCUM; an annotation (``{turn}``) names what is counted."""
    attributes: tuple[str, ...]
    description: str
    buckets: tuple[float, ...] = ()
    """Upper bounds (inclusive) of a histogram's buckets, without the last, infinite one."""
    about_us: bool = False
    """Whether it measures this package instead of the agents."""
    over: Literal["sum", "min", "max"] = "sum"
    """What several processes' gauges are together; :data:`ESTIMATES` are something else."""


_FRACTIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)
_AGENT_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6)
"""As the convention has them for ``gen_ai.invoke_agent.duration``."""
_METRIC_SECONDS = (0.000_01, 0.000_1, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0)
_LATE_SECONDS = (0.1, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
_TOKENS = tuple(float(4**power) for power in range(14))
"""1 … 67108864, as the convention had them for token usage."""
_USD = (0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
_ITEMS = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_LEVELS = tuple(float(level) for level in range(11))

_OF_A_SCORE = ("metric", "kind", "agent", "model", "service_name")
_OF_A_TURN = ("agent", "model", "service_name")
_OF_A_BOUND = ("metric", "window")
"""The metric that a bound is for, empty for all; ``minute``, ``hour`` or ``day``."""
_OF_PASSES = ("metric", "agent", "window", "method")
_OF_AN_ESTIMATE = ("metric", "agent", "window")

INSTRUMENTS: tuple[Instrument, ...] = (
    Instrument(SCORE, "histogram", "1", _OF_A_SCORE, "Scores from 0 to 1.", _FRACTIONS),
    Instrument(MEASURE_DURATION, "histogram", "s", _OF_A_SCORE, "Scores that are durations.", _AGENT_SECONDS),
    Instrument(MEASURE_TOKENS, "histogram", "{token}", _OF_A_SCORE, "Scores that are numbers of tokens.", _TOKENS),
    Instrument(MEASURE_COST, "histogram", "{USD}", _OF_A_SCORE, "Scores that are costs in US dollars.", _USD),
    Instrument(MEASURE_ITEMS, "histogram", "{item}", _OF_A_SCORE, "Scores that are numbers of things.", _ITEMS),
    Instrument(MEASURE_SEVERITY, "histogram", "{level}", _OF_A_SCORE, "Scores that are levels of severity or risk.", _LEVELS),
    Instrument(ESTIMATE_MEAN, "gauge", "", _OF_AN_ESTIMATE, "Mean of a judged metric over all turns of the window, from those that were judged."),
    Instrument(ESTIMATE_LOW, "gauge", "", _OF_AN_ESTIMATE, "Lower end of its 95 % interval."),
    Instrument(ESTIMATE_HIGH, "gauge", "", _OF_AN_ESTIMATE, "Upper end of its 95 % interval."),
    Instrument(ESTIMATE_N, "gauge", "{turn}", _OF_AN_ESTIMATE, "How many turns, drawn alike, would tell as much."),
    Instrument(
        ESTIMATE_PASSES, "gauge", "", _OF_PASSES,
        "Share of all turns that pass a judged metric: as the judge has it (raw), or corrected by the mistakes that labels have shown (rogan_gladen, ppi).",
    ),
    Instrument(ESTIMATE_PASSES_LOW, "gauge", "", _OF_PASSES, "Lower end of its 95 % interval."),
    Instrument(ESTIMATE_PASSES_HIGH, "gauge", "", _OF_PASSES, "Upper end of its 95 % interval."),
    Instrument(ALLOCATED_RATE, "gauge", "", ("metric", "agent"), "Share of an agent's turns that judge.budget.allocate has judged by a metric.", over="max"),
    Instrument(ALLOCATED_TURNS, "gauge", "{turn}", ("metric", "agent"), "How many turns that is in an hour, as planned."),
    Instrument(CHANGE_TIME, "gauge", "s", ("metric", "agent", "verdict"), "When the scores of a metric were last found to have changed (worse, better, changed), in seconds since the Unix epoch.", over="max"),
    Instrument(CHANGE_SIZE, "gauge", "", ("metric", "agent", "verdict"), "By how much their mean moved then.", over="max"),
    Instrument(RESULTS, "counter", "{result}", ("metric", "agent", "outcome"), "What came of each metric on each turn."),
    Instrument(DROPPED, "counter", "{result}", ("metric", "reason"), "Results of the outcome dropped, by what was in the way."),
    Instrument(
        SKIPPED, "counter", "{result}", ("metric", "reason"),
        "Results of the outcome skipped, by why the metric had nothing to say about the turn.",
    ),
    Instrument(TURNS, "counter", "{turn}", ("agent", "service_name", "close_reason", "complete"), "Turns that were closed."),
    Instrument(
        FEEDBACK, "counter", "{feedback}", ("outcome",),
        "What users said of turns: in_trace, joined, unmatched (its turn is not known), no_turn, unreadable or dropped.", about_us=True,
    ),
    Instrument(
        TURNS_READ, "counter", "{turn}", ("scope", "reading"),
        "Turns by the instrumentation scope that wrote them, and by whether its dialect is known (exact) or they were read by their shape (inferred).",
        about_us=True,
    ),
    Instrument(
        UNREAD_TRACES, "counter", "{trace}", ("scope",), "Traces that hold what looks like a model's work, and gave no turn.", about_us=True,
    ),
    Instrument(
        VALUES_LIMITED, "counter", "{value}", ("kind",),
        "Values in spans that are out of bounds: a token count that is left out (count), a cost or duration that is left out (amount), a name that is cut (name).",
        about_us=True,
    ),
    Instrument(TURN_DURATION, "histogram", "s", _OF_A_TURN, "Time from the start to the end of a turn's root.", _AGENT_SECONDS),
    Instrument(TURN_COST, "counter", "{USD}", _OF_A_TURN, "Cost of the turns' model calls in US dollars."),
    Instrument(
        TURN_TOKENS, "counter", "{token}", (*_OF_A_TURN, "token_type"),
        "Tokens of the turns' model calls: input (cached ones included) and output (reasoning included).",
    ),
    Instrument(SPANS_RECEIVED, "counter", "{span}", (), "Spans that came in.", about_us=True),
    Instrument(SPANS_DROPPED, "counter", "{span}", ("reason",), "Spans that were not used.", about_us=True),
    Instrument(FAULTS, "counter", "{fault}", ("where",), "Faults of ours, kept away from the agent.", about_us=True),
    Instrument(LATE_SPANS, "counter", "{span}", (), "Spans that came after their turn was closed.", about_us=True),
    Instrument(LATE_SPAN_AGE, "histogram", "s", (), "Time from a turn's close to a span of it.", _LATE_SECONDS, True),
    Instrument(TURNS_OPEN, "gauge", "{turn}", (), "Turns that are not closed yet.", about_us=True),
    Instrument(QUEUE_SIZE, "gauge", "", ("queue",), "How much waits, in the unit of the queue's bound.", about_us=True),
    Instrument(QUEUE_CAPACITY, "gauge", "", ("queue",), "The queue's bound: bytes of turns, or jobs.", about_us=True),
    Instrument(QUEUE_HELD, "gauge", "{job}", ("queue",), "Jobs that wait in memory because the queue's file or server can't be used.", about_us=True),
    Instrument(METRIC_DURATION, "histogram", "s", ("kind",), "Time that a turn's metrics of a kind took.", _METRIC_SECONDS, True),
    Instrument(EMIT_ERRORS, "counter", "{error}", ("outlet", "reason"), "What an outlet could not do.", about_us=True),
    Instrument(
        EMIT_RECORDS, "counter", "{record}", ("outlet", "outcome"),
        "Scores, and spans about them, that an outlet sent or kept (sent), or why it did not.", about_us=True,
    ),
    Instrument(EMIT_WAITING, "gauge", "{record}", ("outlet",), "Scores, and spans about them, that an outlet still has to deliver.", about_us=True),
    Instrument(
        OUTLET_DELIVERING, "gauge", "", ("outlet",), "Whether an outlet delivers: 1, or 0 if its last attempt failed; the log and /readyz?verbose have the reason.",
        about_us=True, over="min",
    ),
    Instrument(SPAN_EVENTS, "counter", "{event}", ("outcome",), "Span events, by whether they could be added.", about_us=True),
    Instrument(
        JUDGE_REQUESTS, "counter", "{request}", ("outcome",),
        "Requests to judge and embedder: ok, error, unreadable (asked for again), or gated (not asked: the budget was used up).", about_us=True,
    ),
    Instrument(
        JUDGE_CACHE, "counter", "{question}", ("outcome",),
        "Questions to a judge that keeps replies: hit (not asked), miss, or audit (asked whatever is known).", about_us=True,
    ),
    Instrument(JUDGE_SPENT, "counter", "{USD}", (), "Cost of judge and embedder in US dollars, where it is known.", about_us=True),
    Instrument(BUDGET_REMAINING, "gauge", "{USD}", _OF_A_BOUND, "US dollars that are left of judge.budget.", about_us=True),
    Instrument(BUDGET_CALLS, "gauge", "{request}", _OF_A_BOUND, "Questions that are left of judge.budget.", about_us=True),
    Instrument(BUDGET_TOKENS, "gauge", "{token}", _OF_A_BOUND, "Tokens that are left of judge.budget.", about_us=True),
    Instrument(
        LOAD_LEVEL, "gauge", "{level}", (),
        "What is left out while the worker cannot follow: 0 nothing, 1 llm, 2 embed too, 3 heavy code metrics too.", about_us=True, over="max",
    ),
    Instrument(
        SERVE_REQUESTS, "counter", "{request}", ("transport", "signal", "outcome"),
        "Requests to the sidecar: ok, partial (some records rejected), or why it was refused.", about_us=True,
    ),
    Instrument(SERVE_SCRAPES, "counter", "{request}", ("client",), "Requests for /metrics, by who asked: prometheus, another scraper, or other.", about_us=True),
    Instrument(SERVE_BYTES, "counter", "By", (), "Bytes of requests to the sidecar, as they came.", about_us=True),
    Instrument(JOURNAL_SIZE, "gauge", "By", (), "Bytes of requests that the journal keeps.", about_us=True),
    Instrument(JOURNAL_AGE, "gauge", "s", (), "Time since the oldest request came that the journal keeps.", about_us=True),
    Instrument(JOURNAL_FAILURES, "counter", "{write}", (), "Writes of the journal that failed.", about_us=True),
    Instrument(JOURNAL_REPLAYED, "counter", "{request}", (), "Requests that an earlier process had left in the journal.", about_us=True),
    Instrument(TENANT_BYTES, "counter", "By", ("tenant",), "Bytes of a tenant's requests that were taken, unpacked.", about_us=True),
    Instrument(TENANT_SPANS, "counter", "{span}", ("tenant",), "Spans in a tenant's requests that were taken.", about_us=True),
    Instrument(
        TENANT_REFUSED, "counter", "{request}", ("tenant", "reason"),
        "A tenant's requests that were not taken, by the quota that was used up or what else was in the way.", about_us=True,
    ),
    Instrument(TENANT_OPEN, "gauge", "{turn}", ("tenant",), "A tenant's turns that are not closed yet.", about_us=True),
    Instrument(SERVE_RUNNING, "gauge", "{request}", (), "Requests that were admitted and are not answered yet.", about_us=True),
    Instrument(SERVE_CONNECTIONS, "gauge", "{connection}", ("listener",), "Open connections, by listener.", about_us=True),
    Instrument(
        SERVE_CONNECTIONS_REFUSED, "counter", "{connection}", ("listener",),
        "Connections that were closed at once, for there were too many, of all or of one client.", about_us=True,
    ),
    Instrument(BUILD_INFO, "gauge", "", ("version", "python"), "Always 1: which version runs, on which Python.", about_us=True, over="max"),
    Instrument(
        CERTIFICATE_EXPIRY, "gauge", "s", ("file",),
        "When the first certificate in cert_file or client_ca_file of serve.tls expires, in seconds since the Unix epoch.", about_us=True,
    ),
    Instrument(
        RELOAD_OK, "gauge", "", (), "Whether the configuration was taken when it was last read: 1, or 0 when the one before stays in use.",
        about_us=True,
    ),
    Instrument(RELOAD_TIME, "gauge", "s", (), "When a configuration was last taken, in seconds since the Unix epoch.", about_us=True),
    Instrument(KAFKA_LAG, "gauge", "{message}", ("topic", "partition"), "Messages of a partition that were not read yet.", about_us=True),
    Instrument(
        KAFKA_REPLAY, "gauge", "{message}", ("topic", "partition"),
        "Messages that were read and not committed: what is read again when the partition moves.", about_us=True,
    ),
    Instrument(
        KAFKA_MESSAGES, "counter", "{message}", ("topic", "outcome"),
        "Messages by what became of them: taken, dead_letter, or replayed (only looked at: their turns were scored before).", about_us=True,
    ),
    Instrument(KAFKA_PARTITIONS, "gauge", "{partition}", (), "Partitions that this worker reads.", about_us=True),
    Instrument(KAFKA_REBALANCES, "counter", "{rebalance}", ("kind",), "Partitions that were assigned, revoked or lost.", about_us=True),
)  # fmt: skip
"""Every metric that we emit."""

# --- label values that are known before anything happens -------------------------------------------------------------

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
        {"outlet": ("jsonl", "otlp_file"), "outcome": ("sent", "queue_full", "shutdown", "fault")},
        {"outlet": ("store",), "outcome": ("sent", "queue_full", "shutdown", "fault", "not_storable")},
        {"outlet": ("webhook",), "outcome": ("sent", "queue_full", "shutdown", "rejected", "expired", "fault")},
        {"outlet": ("otlp",), "outcome": ("sent", "queue_full", "shutdown", "refused", "rejected", "expired", "fault")},
    ),
    VALUES_LIMITED: ({"kind": ("count", "amount", "name")},),
    FEEDBACK: ({"outcome": ("in_trace", "joined", "unmatched", "no_turn", "unreadable", "dropped")},),
    SPAN_EVENTS: ({"outcome": ("ending", "late_order", "no_room", "root_already_ended", "unsupported")},),
    JUDGE_REQUESTS: ({"outcome": ("ok", "error", "gated", "unreadable")},),
    JUDGE_CACHE: ({"outcome": ("hit", "miss", "audit")},),
    SERVE_REQUESTS: (
        {"transport": ("grpc",), "signal": ("traces", "logs"), "outcome": (*_TAKEN, *_REFUSED, "cancelled")},
        {
            "transport": ("http",), "signal": ("traces", "logs"),
            "outcome": (*_TAKEN, *_REFUSED, "forbidden", "bad_method", "bad_type"),
        },
        {"transport": ("http",), "signal": ("other",), "outcome": ("not_found", "error")},
    ),
    KAFKA_MESSAGES: ({"outcome": ("taken", "dead_letter", "replayed")},),
    KAFKA_REBALANCES: ({"kind": ("assigned", "revoked", "lost")},),
}  # fmt: skip
"""Counter → groups of label values that may be counted. Their series are there from the start, as 0: ``rate()`` sees nothing of
a series that begins with its first burst. A value that is missing here is counted all the same, from its first time on."""


def known_label_sets(name: str, given: Mapping[str, Collection[str]]) -> Iterator[dict[str, str]]:
    """Every known combination of a counter's labels.

    Args:
        name: of the counter.
        given: values of labels that only configuration knows (``metric``); of a label that has known values, which ones are wanted.

    Raises:
        KeyError: a label has neither known values nor given ones.
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
    """The unit as OpenMetrics spells it, ``""`` for none: annotations have none, and ``1`` is a ratio on gauges only."""
    if instrument.unit == "1":
        return "ratio" if instrument.kind == "gauge" else ""
    return "" if instrument.unit.startswith("{") else _PROMETHEUS_UNITS.get(instrument.unit, instrument.unit)


def prometheus_name(instrument: Instrument) -> str:
    """The metric's name in Prometheus, as OpenTelemetry translates it (a histogram's series add ``_bucket`` and so on)."""
    name = instrument.name.replace(".", "_")
    unit = prometheus_unit(instrument)
    if unit and not name.endswith(f"_{unit}"):
        name = f"{name}_{unit}"
    return f"{name}_total" if instrument.kind == "counter" else name
