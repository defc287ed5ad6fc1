"""Write the Grafana dashboards, as the JSON that Grafana loads.

    python deploy/grafana/build.py            # rewrites deploy/grafana/dashboards/*.json
    python deploy/grafana/build.py --check    # exit status 1 if a file is out of date, and prints its name

Panels find each Prometheus metric by its OTLP name in ``otel_agenteval.core.semconv``, so they can't query a metric that doesn't
exist. Requires the package ``grafana-foundation-sdk`` (extra ``dev``).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from grafana_foundation_sdk.builders import bargauge, common, heatmap, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
    ThresholdsConfig,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from otel_agenteval.core import semconv

FOLDER = Path(__file__).parent / "dashboards"
SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")

# --- queries -----------------------------------------------------------------------------------------------------------

_SERIES = {instrument.name: semconv.prometheus_name(instrument) for instrument in semconv.INSTRUMENTS}
AGENT = 'agent=~"$agent"'
AGENT_AND_SERVICE = 'agent=~"$agent",service_name=~"$service"'
JUDGED = f'metric=~"(llm|embed)_.*",{AGENT}'
REFUSED = 'outcome!~"ok|partial|cancelled"'
WINDOW = "$__rate_interval"
A_VALUE_OF = '__name__=~"agenteval_(score|measure_.+)_{part}",metric="$metric",' + AGENT_AND_SERVICE
"""Selector of the score's histogram. Its name depends on the unit of the score's metric."""


def _selector(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def rate(name: str, labels: str = "", window: str = WINDOW, part: str = "") -> str:
    """Return the increase per second of a counter, or of a histogram's part (``_bucket``, ``_sum``, ``_count``)."""
    return f"rate({_SERIES[name]}{part}{_selector(labels)}[{window}])"


def rates(name: str, by: str, labels: str = "") -> str:
    """Return the increase per second, summed by labels."""
    return f"sum by ({by}) ({rate(name, labels)})"


def mean(name: str, labels: str, by: str) -> str:
    """Return the mean of a histogram's values."""
    return f"sum by ({by}) ({rate(name, labels, part='_sum')}) / (sum by ({by}) ({rate(name, labels, part='_count')}) > 0)"


def estimate(labels: str, by: str) -> str:
    """Return the estimated mean over all turns, with instances weighted by their effective sample size."""
    known = gauge(semconv.ESTIMATE_N, labels)
    return f"sum by ({by}) ({gauge(semconv.ESTIMATE_MEAN, labels)} * {known}) / (sum by ({by}) ({known}) > 0)"


def gauge(name: str, labels: str = "") -> str:
    """Return the current values of a gauge."""
    return f"{_SERIES[name]}{_selector(labels)}"


def share(name: str, part: str, whole: str, by: str = "", window: str = WINDOW) -> str:
    """Return the share of ``part`` (labels) in ``whole``, 0 to 1. Series without ``part`` are 0."""
    added = f"sum by ({by}) " if by else "sum"
    total = f"{added}({rate(name, whole, window)})"
    return f"({added}({rate(name, part, window)}) or {total} * 0) / ({total} > 0)"


def passed(by: str = "", labels: str = AGENT, window: str = WINDOW) -> str:
    """Return the share of verdicts that pass."""
    return share(semconv.RESULTS, f'outcome="pass",{labels}', f'outcome=~"pass|fail",{labels}', by, window)


def quantile(q: float, name: str, labels: str, by: str = "") -> str:
    """Return a quantile of a histogram."""
    inner = ", ".join(filter(None, ("le", by)))
    return f"histogram_quantile({q}, sum by ({inner}) ({rate(name, labels, part='_bucket')}))"


# --- why a panel is empty ----------------------------------------------------------------------------------------------

_EMPTY = (
    ("agenteval_journal", "No sidecar with a journal (serve.journal) is scraped"),
    (r"agenteval_(judge|budget|estimate)|metric=~\"\(llm", "No judge has scored a turn in this time range"),
    ("agenteval_change", "No change was detected"),
    ("agenteval_(late|findings|emit_errors|spans_dropped|dropped)|refused", "None in this time range"),
    ("agenteval_(serve|config)", "No sidecar is scraped"),
    ("agenteval_span_events", "Prometheus scrapes no agent process"),
    ("", "No turn in this time range, or Prometheus doesn't scrape otel-agenteval"),
)
"""Texts for panels without data, by a pattern of the query. The first match is used."""


def why_empty(expr: str) -> str:
    return next(text for pattern, text in _EMPTY if re.search(pattern, expr))


# --- panels ------------------------------------------------------------------------------------------------------------

Query = tuple[str, str]
"""A PromQL query, and the legend of its series."""


def _target(number: int, query: Query, *, instant: bool = False, exemplar: bool = False, buckets: bool = False) -> Dataquery:
    expr, legend = query
    target = Dataquery().datasource(SOURCE).expr(expr).legend_format(legend).ref_id(chr(ord("A") + number))
    if buckets:
        target.format(PromQueryFormat.HEATMAP)
    if exemplar:
        target.exemplar(True)
    return target.instant() if instant else target.range()


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    span: int = 8,
    stacked: bool = False,
    exemplars: bool = False,
    most: float | None = None,
) -> timeseries.Panel:
    """Return a chart of values over time. ``exemplars`` adds points that link to their traces. ``most`` is the end of the axis."""
    panel = timeseries.Panel().title(title).description(description).datasource(SOURCE).unit(unit).span(span).height(8)
    panel.no_value(why_empty(queries[0][0])).min(0).line_width(1).fill_opacity(30 if stacked else 0).show_points(
        common_model.VisibilityMode.NEVER
    )
    panel.legend(
        common.VizLegendOptions()
        .display_mode(common_model.LegendDisplayMode.LIST)
        .placement(common_model.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )
    panel.tooltip(common.VizTooltipOptions().mode(common_model.TooltipDisplayMode.MULTI).sort(common_model.SortOrder.DESCENDING))
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL).group("A"))
    if most is not None:
        panel.max(most)
    for number, query in enumerate(queries):
        panel.with_target(_target(number, query, exemplar=exemplars))
    return panel


def number(
    title: str, description: str, unit: str, expr: str, *, bad_below: float | None = None, decimals: int = 1
) -> stat.Panel:
    """Return one number over the dashboard's time range. It is red below ``bad_below``."""
    panel = stat.Panel().title(title).description(description).datasource(SOURCE).unit(unit).span(4).height(4)
    panel.no_value(why_empty(expr)).decimals(decimals).graph_mode(common_model.BigValueGraphMode.NONE)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    steps = [model.Threshold(None, "text")]
    if bad_below is not None:
        steps = [model.Threshold(None, "red"), model.Threshold(bad_below, "green")]
    panel.thresholds(ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
    return panel.with_target(_target(0, (expr, ""), instant=True))


def bars(title: str, description: str, unit: str, expr: str, legend: str, *, span: int = 8, height: int = 8) -> bargauge.Panel:
    """Return one bar per series, over the dashboard's time range."""
    panel = bargauge.Panel().title(title).description(description).datasource(SOURCE).unit(unit).span(span).height(height)
    panel.no_value(why_empty(expr)).orientation(common_model.VizOrientation.HORIZONTAL).display_mode(
        common_model.BarGaugeDisplayMode.BASIC
    ).min(0)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    panel.thresholds(ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps([model.Threshold(None, "blue")]))
    return panel.with_target(_target(0, (expr, legend), instant=True))


def spread(title: str, description: str, unit: str, expr: str, *, span: int = 12, exemplars: bool = False) -> heatmap.Panel:
    """Return a heatmap of a histogram's buckets over time. ``exemplars`` adds points that link to their traces."""
    panel = heatmap.Panel().title(title).description(description).datasource(SOURCE).span(span).height(9)
    panel.no_value(why_empty(expr)).calculate(False).y_axis(
        heatmap.YAxisConfig().unit(unit).axis_placement(common_model.AxisPlacement.LEFT)
    )
    panel.color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Blues").steps(32).reverse(False))
    return panel.with_target(_target(0, (expr, "{{le}}"), exemplar=exemplars, buckets=True))


# --- dashboards --------------------------------------------------------------------------------------------------------


def _new(uid: str, title: str, description: str) -> Dashboard:
    found = Dashboard(title).uid(uid).description(description).tags(["agenteval"]).timezone("browser").refresh("30s")
    found.time("now-3h", "now").editable().tooltip(model.DashboardCursorSync.CROSSHAIR)
    links = DashboardLink("Evaluation").type(model.DashboardLinkType.DASHBOARDS).tags(["agenteval"]).as_dropdown(True)
    found.link(links.include_vars(True).keep_time(True))
    return found.with_variable(DatasourceVariable("datasource").label("Prometheus").type("prometheus"))


def _choice(name: str, label: str, query: str, *, several: bool) -> QueryVariable:
    found = QueryVariable(name).label(label).datasource(SOURCE).query(query)
    found.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    if several:
        found.multi(True).include_all(True).all_value(".*")
        found.current(model.VariableOption(selected=True, text="All", value="$__all"))
    return found


def _services() -> QueryVariable:
    return _choice("service", "Service", f"label_values({_SERIES[semconv.TURNS]}, service_name)", several=True)


def _agents(*, several: bool = True) -> QueryVariable:
    labels = 'service_name=~"$service"'
    return _choice("agent", "Agent", f"label_values({_SERIES[semconv.TURNS]}{{{labels}}}, agent)", several=several)


def fleet() -> Dashboard:
    """Return the dashboard of all agents: quality, cost, latency, errors, and judge coverage."""
    turns, verdicts = semconv.TURNS, 'metric="code_turn_error"'
    chosen = f'outcome!~"sampled_out|skipped|superseded|gated",{JUDGED}'
    found = _new("agenteval-fleet", "Agents: fleet overview", "Quality, cost, latency, errors, and judge coverage of all agents.")
    found.with_variable(_services()).with_variable(_agents())
    found.with_row(Row("The time range at a glance"))
    found.with_panel(
        number(
            "Turns per minute", "A turn is one user request and everything the agent did to answer it.", "short",
            f"60 * sum({rate(turns, AGENT_AND_SERVICE, '$__range')})",
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Verdicts that pass", "Share of passed verdicts, over all metrics.", units.PercentUnit,
            passed(window="$__range"), bad_below=0.9,
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Turns without error", "Share of turns whose root span didn't end in an error.", units.PercentUnit,
            passed(labels=f"{verdicts},{AGENT}", window="$__range"), bad_below=0.95,
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Turn time, p95", "95 % of the turns are faster. Interpolated from histogram buckets.", units.Seconds,
            f"histogram_quantile(0.95, sum by (le) ({rate(semconv.TURN_DURATION, AGENT_AND_SERVICE, '$__range', '_bucket')}))",
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Cost per hour", "Cost of the agents' model calls: reported by spans, or estimated from tokens and prices.", units.Dollars,
            f"3600 * sum({rate(semconv.TURN_COST, AGENT_AND_SERVICE, '$__range')})", decimals=2,
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Judge coverage", "Share of sampled turns with a score, over all judged metrics.",
            units.PercentUnit,
            share(semconv.RESULTS, f'outcome=~"pass|fail|ok|vacuous",{JUDGED}', chosen, window="$__range"), bad_below=0.9,
        )
    )  # fmt: skip
    found.with_row(Row("Quality"))
    found.with_panel(
        lines(
            "Verdicts that pass, by agent", "Share of passed verdicts, over all metrics.", units.PercentUnit,
            (passed("agent"), "{{agent}}"), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        bars(
            "Metrics that fail most", "Share of failed verdicts of each metric in the time range.", units.PercentUnit,
            "topk(10, "
            + share(semconv.RESULTS, f'outcome="fail",{AGENT}', f'outcome=~"pass|fail",{AGENT}', "metric", "$__range")
            + " > 0)", "{{metric}}",
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Judged metrics: estimated means",
            "Means over all turns of the last hour, judged or not. For intervals, see the dashboard of one metric.",
            units.Short, (estimate(f'window="1h",{AGENT}', "agent, metric"), "{{agent}}: {{metric}}"), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        bars(
            "Changed scores", "Change of the mean, for changes that were detected in the last day.", units.Short,
            f"min by (metric, agent, verdict) ({gauge(semconv.CHANGE_SIZE, AGENT)} and on (metric, agent, verdict) "
            f"(time() - {gauge(semconv.CHANGE_TIME, AGENT)} < 86400))", "{{agent}}: {{metric}} ({{verdict}})",
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Findings, by severity",
            "Results per hour that found a problem: critical (look now), warning (the metric failed), or info (counted only).", units.Short,
            (f"3600 * sum by (severity) ({rate(semconv.FINDINGS, AGENT)})", "{{severity}}"),
        )
    )  # fmt: skip
    found.with_row(Row("Cost and latency"))
    cost = rate(semconv.TURN_COST, AGENT_AND_SERVICE)
    found.with_panel(
        lines(
            "Cost per hour, by agent", "Cost of the agents' model calls: reported by spans, or estimated from tokens and prices.", units.Dollars,
            (f"3600 * sum by (agent) ({cost})", "{{agent}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Cost per turn, by agent", "Cost divided by turns.", units.Dollars,
            (f"sum by (agent) ({cost}) / (sum by (agent) ({rate(turns, AGENT_AND_SERVICE)}) > 0)", "{{agent}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Turn time", "Median and 95th percentile, interpolated from histogram buckets.", units.Seconds,
            (quantile(0.5, semconv.TURN_DURATION, AGENT_AND_SERVICE, "agent"), "{{agent}} p50"),
            (quantile(0.95, semconv.TURN_DURATION, AGENT_AND_SERVICE, "agent"), "{{agent}} p95"), exemplars=True,
        )
    )  # fmt: skip
    found.with_row(Row("Errors"))
    found.with_panel(
        lines(
            "Turns in error, by agent", "Share of turns whose root span ended in an error.", units.PercentUnit,
            (
                share(semconv.RESULTS, f'outcome="fail",{verdicts},{AGENT}', f'outcome=~"pass|fail",{verdicts},{AGENT}', "agent"),
                "{{agent}}",
            ), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Metric errors", "Results without a value because the metric failed.", units.CountsPerSecond,
            (rates(semconv.RESULTS, "metric", f'outcome="error",{AGENT}'), "{{metric}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Turns, by close reason", "Reasons why turns closed. A turn can be incomplete for any close reason.",
            units.CountsPerSecond,
            (f"sum by (close_reason) ({rate(turns, AGENT_AND_SERVICE)})", "{{close_reason}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_row(Row("Coverage of judging"))
    found.with_panel(
        lines(
            "Results of judged metrics", "sampled_out: not chosen by sampling. gated: excluded by the metric's condition (when). dropped: not judged, for example because the queue was full.",
            units.CountsPerSecond, (rates(semconv.RESULTS, "outcome", JUDGED), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Share of turns that are judged", "Share of turns with a score, of all turns that the metric applies to.", units.PercentUnit,
            (
                share(semconv.RESULTS, f'outcome=~"pass|fail|ok|vacuous",{JUDGED}', f'outcome!~"skipped|superseded|gated",{JUDGED}', "metric"),
                "{{metric}}",
            ), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Judge: spending per hour and remaining budget", "Cost of judge and embedder, and the smallest remaining budget of an instance.",
            units.Dollars,
            (f"3600 * sum({rate(semconv.JUDGE_SPENT)})", "spent per hour"),
            (f"min({gauge(semconv.BUDGET_REMAINING)})", "remaining budget"),
        )
    )  # fmt: skip
    return found


def agent() -> Dashboard:
    found = _new("agenteval-agent", "Agents: one agent", "Traffic, quality, latency, and cost of one agent.")
    found.with_variable(_services()).with_variable(_agents(several=False))
    found.with_row(Row("Traffic"))
    turns = rate(semconv.TURNS, AGENT_AND_SERVICE)
    found.with_panel(
        lines(
            "Turns, by service", "Turns per second.", units.CountsPerSecond,
            (f"sum by (service_name) ({turns})", "{{service_name}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Complete turns", "Share of turns without missing spans. Incomplete turns closed before their root ended, or lost spans.", units.PercentUnit,
            (share(semconv.TURNS, f'complete="true",{AGENT_AND_SERVICE}', AGENT_AND_SERVICE), "complete"), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Tokens per turn", "Tokens of the model calls. Input includes cached tokens, and output includes reasoning.", units.Short,
            (
                rates(semconv.TURN_TOKENS, "token_type", AGENT_AND_SERVICE) + f" / ignoring(token_type) group_left () (sum({turns}) > 0)",
                "{{token_type}}",
            ),
        )
    )  # fmt: skip
    found.with_row(Row("Quality"))
    found.with_panel(
        bars(
            "Verdicts that pass, by metric", "Share of passed verdicts in the time range, worst first.", units.PercentUnit,
            f"sort({passed('metric', window='$__range')})", "{{metric}}",
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Metrics that fail", "Failures per second.", units.CountsPerSecond,
            (rates(semconv.RESULTS, "metric", f'outcome="fail",{AGENT}'), "{{metric}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Mean scores", "Means of metrics from 0 to 1. A metric with a constant score isn't informative.", units.Short,
            (mean(semconv.SCORE, AGENT_AND_SERVICE, "metric"), "{{metric}}"), most=1,
        )
    )  # fmt: skip
    found.with_row(Row("Time and money"))
    found.with_panel(
        spread(
            "Turn time", "Turns per bucket. Points are turns with an exported trace. Select one to open its trace.", units.Seconds,
            f"sum by (le) (increase({_SERIES[semconv.TURN_DURATION]}_bucket{{{AGENT_AND_SERVICE}}}[{WINDOW}]))", exemplars=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Cost per hour, by model",
            "The model of the call that wrote the answer. Estimated costs come from tokens and prices, others from spans.", units.Dollars,
            (f"3600 * sum by (model, estimated) ({rate(semconv.TURN_COST, AGENT_AND_SERVICE)})", "{{model}} (estimated: {{estimated}})"),
            span=12, stacked=True,
        )
    )  # fmt: skip
    return found


def metric() -> Dashboard:
    """Return the dashboard of one metric, with links to traces."""
    found = _new(
        "agenteval-metric", "Agents: one metric", "Distribution of one metric, by agent and model, with links to traces."
    )
    found.with_variable(_services()).with_variable(_agents())
    results = _SERIES[semconv.RESULTS]
    found.with_variable(_choice("metric", "Metric", f"label_values({results}{{{AGENT}}}, metric)", several=False))
    bucket, total, count = (A_VALUE_OF.format(part=part) for part in ("bucket", "sum", "count"))
    this = f'metric="$metric",{AGENT}'
    last_hour = f'window="1h",{this}'
    found.with_row(Row("Values"))
    found.with_panel(
        spread(
            "Distribution of values", "Results per bucket. Points are single turns. Select one to open its trace.", units.Short,
            f"sum by (le) (increase({{{bucket}}}[{WINDOW}]))", exemplars=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Quantiles", "Interpolated from histogram buckets. Points are single turns. Select one to open its trace.", units.Short,
            *(
                (f"histogram_quantile({q}, sum by (le) (rate({{{bucket}}}[{WINDOW}])))", f"p{round(q * 100)}")
                for q in (0.1, 0.5, 0.9)
            ), span=12, exemplars=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Mean, by agent", "Mean of the observed values.", units.Short,
            (f"sum by (agent) (rate({{{total}}}[{WINDOW}])) / (sum by (agent) (rate({{{count}}}[{WINDOW}])) > 0)", "{{agent}}"),
            span=12,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Mean, by model", "The model of the call that wrote the answer.", units.Short,
            (f"sum by (model) (rate({{{total}}}[{WINDOW}])) / (sum by (model) (rate({{{count}}}[{WINDOW}])) > 0)", "{{model}}"),
            span=12,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Estimate for all turns", "For judged metrics: mean over all turns of the last hour, judged or not, with the widest 95 % interval of an instance.",
            units.Short,
            (estimate(last_hour, "metric"), "mean"),
            (f"min({gauge(semconv.ESTIMATE_LOW, last_hour)})", "low"),
            (f"max({gauge(semconv.ESTIMATE_HIGH, last_hour)})", "high"), span=12,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Effective sample size", "Number of equally sampled turns with the same precision. Unequal sampling makes it smaller than the number of judged turns.",
            units.Short, (f"sum by (agent) ({gauge(semconv.ESTIMATE_N, last_hour)})", "{{agent}}"), span=12,
        )
    )  # fmt: skip
    found.with_row(Row("Verdicts"))
    found.with_panel(
        lines(
            "Results, by outcome", "Results per second: verdicts, values without a verdict (ok), and reasons for a missing value.",
            units.CountsPerSecond, (rates(semconv.RESULTS, "outcome", this), "{{outcome}}"), span=12, stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Verdicts that pass, by agent", "Share of passed verdicts.", units.PercentUnit,
            (passed("agent", this), "{{agent}}"), span=12, most=1,
        )
    )  # fmt: skip
    return found


def itself() -> Dashboard:
    """Return the dashboard of otel-agenteval's own health."""
    found = _new(
        "agenteval-self",
        "Agents: health of the evaluation",
        "Received data, dropped data with reasons, and resource use of otel-agenteval.",
    )
    found.with_row(Row("What comes in, and what is lost"))
    found.with_panel(
        lines(
            "Spans", "Received spans, by instance.", units.CountsPerSecond,
            (rates(semconv.SPANS_RECEIVED, "instance"), "{{instance}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Dropped spans, by reason", "Spans that no turn contains.", units.CountsPerSecond,
            (rates(semconv.SPANS_DROPPED, "reason"), "{{reason}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Open turns", "Turns that aren't closed yet, by instance. turn.max_open is their limit.", units.Short,
            (f"sum by (instance) ({gauge(semconv.TURNS_OPEN)})", "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Late spans", "Spans that arrived after their turn closed.", units.CountsPerSecond,
            (rates(semconv.LATE_SPANS, "instance"), "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Delay of late spans", "95th percentile of the time between the close of a turn and a late span. A longer turn.decision_delay includes those spans.",
            units.Seconds, (quantile(0.95, semconv.LATE_SPAN_AGE, ""), "p95"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Missing results", "Results without a value, by reason: error, gated (excluded by the metric's condition), or dropped (for example, full queue).",
            units.CountsPerSecond,
            (rates(semconv.RESULTS, "outcome", 'outcome=~"error|gated|dropped"'), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_row(Row("Load"))
    found.with_panel(
        lines(
            "Queues", "Fill level of the fullest instance, by queue.", units.PercentUnit,
            (f"max by (queue) ({gauge(semconv.QUEUE_SIZE)} / {gauge(semconv.QUEUE_CAPACITY)})", "{{queue}}"), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Metric time per turn", "Mean and 95th percentile, by kind of metric.", units.Seconds,
            (mean(semconv.METRIC_DURATION, "", "kind"), "{{kind}} mean"),
            (quantile(0.95, semconv.METRIC_DURATION, "", "kind"), "{{kind}} p95"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Load level", "Metrics that an overloaded instance skips. 1: llm, 2: also embed, 3: also heavy code metrics.", units.Short,
            (f"max by (instance) ({gauge(semconv.LOAD_LEVEL)})", "{{instance}}"), most=3,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Sidecar: requests, by outcome", "Senders retry refused requests, except for malformed or unauthorized ones.", units.CountsPerSecond,
            (rates(semconv.SERVE_REQUESTS, "outcome"), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Dropped results, by reason", "Judged metrics without a result because their evaluation was dropped.", units.CountsPerSecond,
            (rates(semconv.DROPPED, "reason"), "{{reason}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_row(Row("Sidecar: who sends, and what runs"))
    found.with_panel(
        lines(
            "Refused requests, by outcome", "Share of all requests. Senders retry overloaded, throttled, stopping, and error.",
            units.PercentUnit,
            (
                f"sum by (outcome) ({rate(semconv.SERVE_REQUESTS, REFUSED)}) / on () group_left () (sum({rate(semconv.SERVE_REQUESTS)}) > 0)",
                "{{outcome}}",
            ), stacked=True, most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Open connections, by listener", "Number of open connections.", units.Short,
            (f"sum by (listener) ({gauge(semconv.SERVE_CONNECTIONS)})", "{{listener}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Refused connections", "Connections beyond a limit, and failed TLS handshakes.", units.CountsPerSecond,
            (rates(semconv.SERVE_CONNECTIONS_REFUSED, "listener, reason"), "{{listener}}: {{reason}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Requests in progress", "Admitted requests without a response yet. serve.max_requests is their limit.", units.Short,
            (f"sum by (instance) ({gauge(semconv.SERVE_RUNNING)})", "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Journal: age of the oldest request", "A request stays in the journal while a turn is open, or while an outlet can't deliver its scores.", units.Seconds,
            (f"max by (instance) ({gauge(semconv.JOURNAL_AGE)})", "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Journal: failed writes", "The requests of failed writes weren't acknowledged.", units.CountsPerSecond,
            (rates(semconv.JOURNAL_FAILURES, "instance"), "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Instances, by version", "Versions of otel-agenteval and of Python.", units.Short,
            (f"count by (version, python) ({gauge(semconv.BUILD_INFO)})", "{{version}} on {{python}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Configuration reloaded", "1 if the last reload of a sidecar succeeded, 0 if its configuration was invalid.", units.Short,
            (f"min by (instance) ({gauge(semconv.RELOAD_OK)})", "{{instance}}"), most=1,
        )
    )  # fmt: skip
    found.with_row(Row("What goes out"))
    found.with_panel(
        lines(
            "Outlet errors", "Errors per second, by outlet and reason.", units.CountsPerSecond,
            (rates(semconv.EMIT_ERRORS, "outlet, reason"), "{{outlet}}: {{reason}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Exported scores, by outlet", "Scores per second that an outlet sent, or the reason why it didn't.", units.CountsPerSecond,
            (rates(semconv.EMIT_RECORDS, "outlet, outcome"), "{{outlet}}: {{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Span events, by outcome", "In-process only. ending means that the events are on the exported span.", units.CountsPerSecond,
            (rates(semconv.SPAN_EVENTS, "outcome"), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_row(Row("Judge"))
    found.with_panel(
        lines(
            "Judge calls, by outcome", "gated calls waited, because the budget was used up.", units.CountsPerSecond,
            (rates(semconv.JUDGE_REQUESTS, "outcome"), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Spending per hour", "Cost of judge and embedder, for models with known prices.", units.Dollars,
            (f"3600 * sum by (instance) ({rate(semconv.JUDGE_SPENT)})", "{{instance}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Remaining budget", "US dollars by instance, metric (empty: all metrics), and window.", units.Dollars,
            (gauge(semconv.BUDGET_REMAINING), "{{instance}} {{metric}} per {{window}}"),
        )
    )  # fmt: skip
    return found


DASHBOARDS = {"fleet": fleet, "agent": agent, "metric": metric, "self": itself}
"""Functions that build the dashboards, by file name without the ending."""


def render() -> dict[Path, str]:
    """Return the content of each dashboard file."""
    encoder = JSONEncoder(sort_keys=True, indent=2)
    found = {}
    for name, make in DASHBOARDS.items():
        built = make().build()
        for number, panel in enumerate(built.panels or [], 1):
            panel.id_val = number  # stable ids, so that links to panels stay valid
        found[FOLDER / f"{name}.json"] = encoder.encode(built) + "\n"
    return found


def main(arguments: list[str]) -> int:
    stale = [file for file, text in render().items() if not file.exists() or file.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for file in stale:
            print(f"{file.name} is out of date. To update it, run python deploy/grafana/build.py")
        return 1 if stale else 0
    for file, text in render().items():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
