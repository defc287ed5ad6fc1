"""Write the Grafana dashboards, which are code, as the JSON that Grafana loads.

    python deploy/grafana/build.py            # rewrites deploy/grafana/dashboards/*.json
    python deploy/grafana/build.py --check    # exit status 1 when a file is out of step, and says which

Every metric is named by its OTLP name and looked up in ``otel_agenteval.core.semconv``: a panel cannot ask for a metric that
does not exist. Needs the package ``grafana-foundation-sdk`` (extra ``dev``).
"""

from __future__ import annotations

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
"""The metric's histogram, whichever it is: a metric is observed in the one of its unit."""


def _selector(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def rate(name: str, labels: str = "", window: str = WINDOW, part: str = "") -> str:
    """Increase per second of a counter, or of a histogram's part (``_bucket``, ``_sum``, ``_count``)."""
    return f"rate({_SERIES[name]}{part}{_selector(labels)}[{window}])"


def rates(name: str, by: str, labels: str = "") -> str:
    """The same, added up by labels."""
    return f"sum by ({by}) ({rate(name, labels)})"


def mean(name: str, labels: str, by: str) -> str:
    """Mean of what a histogram of ours observed."""
    return f"sum by ({by}) ({rate(name, labels, part='_sum')}) / (sum by ({by}) ({rate(name, labels, part='_count')}) > 0)"


def estimate(labels: str, by: str) -> str:
    """Estimated mean over all turns; several instances count by how much each of them knows."""
    known = gauge(semconv.ESTIMATE_N, labels)
    return f"sum by ({by}) ({gauge(semconv.ESTIMATE_MEAN, labels)} * {known}) / (sum by ({by}) ({known}) > 0)"


def gauge(name: str, labels: str = "") -> str:
    """The present values of a gauge."""
    return f"{_SERIES[name]}{_selector(labels)}"


def share(name: str, part: str, whole: str, by: str = "", window: str = WINDOW) -> str:
    """Share, 0 to 1, that ``part`` (labels) has in ``whole``; series where nothing of ``part`` came are 0."""
    added = f"sum by ({by}) " if by else "sum"
    total = f"{added}({rate(name, whole, window)})"
    return f"({added}({rate(name, part, window)}) or {total} * 0) / ({total} > 0)"


def passed(by: str = "", labels: str = AGENT, window: str = WINDOW) -> str:
    """Share of verdicts that are a pass."""
    return share(semconv.RESULTS, f'outcome="pass",{labels}', f'outcome=~"pass|fail",{labels}', by, window)


def quantile(q: float, name: str, labels: str, by: str = "") -> str:
    """A quantile of a histogram of ours."""
    inner = ", ".join(filter(None, ("le", by)))
    return f"histogram_quantile({q}, sum by ({inner}) ({rate(name, labels, part='_bucket')}))"


# --- panels ------------------------------------------------------------------------------------------------------------

Query = tuple[str, str]
"""PromQL, and the legend of its series."""


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
    """Values over time. ``exemplars`` shows points that open their trace; ``most`` is the end of the axis."""
    panel = timeseries.Panel().title(title).description(description).datasource(SOURCE).unit(unit).span(span).height(8)
    panel.min(0).line_width(1).fill_opacity(30 if stacked else 0).show_points(common_model.VisibilityMode.NEVER)
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
    """One number over the dashboard's time range; red below ``bad_below``."""
    panel = stat.Panel().title(title).description(description).datasource(SOURCE).unit(unit).span(4).height(4)
    panel.decimals(decimals).graph_mode(common_model.BigValueGraphMode.NONE)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    steps = [model.Threshold(None, "text")]
    if bad_below is not None:
        steps = [model.Threshold(None, "red"), model.Threshold(bad_below, "green")]
    panel.thresholds(ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
    return panel.with_target(_target(0, (expr, ""), instant=True))


def bars(title: str, description: str, unit: str, expr: str, legend: str, *, span: int = 8, height: int = 8) -> bargauge.Panel:
    """One bar per series, over the dashboard's time range."""
    panel = bargauge.Panel().title(title).description(description).datasource(SOURCE).unit(unit).span(span).height(height)
    panel.orientation(common_model.VizOrientation.HORIZONTAL).display_mode(common_model.BarGaugeDisplayMode.BASIC).min(0)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    panel.thresholds(ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps([model.Threshold(None, "blue")]))
    return panel.with_target(_target(0, (expr, legend), instant=True))


def spread(title: str, description: str, unit: str, expr: str, *, span: int = 12, exemplars: bool = False) -> heatmap.Panel:
    """A histogram's buckets over time, darker where there is more; ``exemplars`` are points that open their trace."""
    panel = heatmap.Panel().title(title).description(description).datasource(SOURCE).span(span).height(9)
    panel.calculate(False).y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(common_model.AxisPlacement.LEFT))
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
    """All agents: quality, cost, latency, errors, and how much of it judges have seen."""
    turns, verdicts = semconv.TURNS, 'metric="code_turn_error"'
    chosen = f'outcome!~"sampled_out|skipped|superseded",{JUDGED}'
    found = _new("agenteval-fleet", "Agents: fleet overview", "Quality, cost, latency, errors and coverage of judging.")
    found.with_variable(_services()).with_variable(_agents())
    found.with_row(Row("The time range at a glance"))
    found.with_panel(
        number(
            "Turns per minute", "One turn is a user's request and all that was done to answer it.", "short",
            f"60 * sum({rate(turns, AGENT_AND_SERVICE, '$__range')})",
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Verdicts that pass", "Of all metrics with a verdict, the share that passed.", units.PercentUnit,
            passed(window="$__range"), bad_below=0.9,
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Turns without error", "Turns whose root did not end in an error.", units.PercentUnit,
            passed(labels=f"{verdicts},{AGENT}", window="$__range"), bad_below=0.95,
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Turn time, p95", "19 of 20 turns are faster. Interpolated in the histogram's buckets.", units.Seconds,
            f"histogram_quantile(0.95, sum by (le) ({rate(semconv.TURN_DURATION, AGENT_AND_SERVICE, '$__range', '_bucket')}))",
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Cost per hour", "Of the agents' model calls, where their price is known.", units.Dollars,
            f"3600 * sum({rate(semconv.TURN_COST, AGENT_AND_SERVICE, '$__range')})", decimals=2,
        )
    )  # fmt: skip
    found.with_panel(
        number(
            "Judged, of what was chosen", "Of the judged metrics' results that sampling let through, the share that has a score.",
            units.PercentUnit,
            share(semconv.RESULTS, f'outcome=~"pass|fail|ok|vacuous",{JUDGED}', chosen, window="$__range"), bad_below=0.9,
        )
    )  # fmt: skip
    found.with_row(Row("Quality"))
    found.with_panel(
        lines(
            "Verdicts that pass, by agent", "Share of passes in passes and failures, all metrics together.", units.PercentUnit,
            (passed("agent"), "{{agent}}"), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        bars(
            "Metrics that fail most", "Share of failures in the metric's verdicts, over the time range.", units.PercentUnit,
            "topk(10, "
            + share(semconv.RESULTS, f'outcome="fail",{AGENT}', f'outcome=~"pass|fail",{AGENT}', "metric", "$__range")
            + " > 0)", "{{metric}}",
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Judged metrics: estimated means",
            "Over all turns of the last hour, not only those that were judged; the dashboard of one metric has the interval.",
            units.Short, (estimate(f'window="1h",{AGENT}', "agent, metric"), "{{agent}}: {{metric}}"), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        bars(
            "Scores that have changed", "By how much their mean moved, of the changes that were found within the last day.", units.Short,
            f"min by (metric, agent, verdict) ({gauge(semconv.CHANGE_SIZE, AGENT)} and on (metric, agent, verdict) "
            f"(time() - {gauge(semconv.CHANGE_TIME, AGENT)} < 86400))", "{{agent}}: {{metric}} ({{verdict}})",
        )
    )  # fmt: skip
    found.with_row(Row("Cost and latency"))
    cost = rate(semconv.TURN_COST, AGENT_AND_SERVICE)
    found.with_panel(
        lines(
            "Cost per hour, by agent", "Of the agents' model calls, where their price is known.", units.Dollars,
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
            "Turn time", "Median and 95th percentile, interpolated in the histogram's buckets.", units.Seconds,
            (quantile(0.5, semconv.TURN_DURATION, AGENT_AND_SERVICE, "agent"), "{{agent}} p50"),
            (quantile(0.95, semconv.TURN_DURATION, AGENT_AND_SERVICE, "agent"), "{{agent}} p95"), exemplars=True,
        )
    )  # fmt: skip
    found.with_row(Row("Errors"))
    found.with_panel(
        lines(
            "Turns in error, by agent", "Share of turns whose root ended in an error.", units.PercentUnit,
            (
                share(semconv.RESULTS, f'outcome="fail",{verdicts},{AGENT}', f'outcome=~"pass|fail",{verdicts},{AGENT}', "agent"),
                "{{agent}}",
            ), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Metrics that could not be computed", "Results that are errors; an error is never a score.", units.CountsPerSecond,
            (rates(semconv.RESULTS, "metric", f'outcome="error",{AGENT}'), "{{metric}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Turns, by how they closed", "A turn may be complete whatever closed it; complete=false says that a part is missing.",
            units.CountsPerSecond,
            (f"sum by (close_reason) ({rate(turns, AGENT_AND_SERVICE)})", "{{close_reason}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_row(Row("Coverage of judging"))
    found.with_panel(
        lines(
            "What came of judged metrics", "sampled_out is by choice; gated means the budget had no room, dropped that the queue had none.",
            units.CountsPerSecond, (rates(semconv.RESULTS, "outcome", JUDGED), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Share of turns that are judged", "With a score, of all turns that the metric applies to.", units.PercentUnit,
            (
                share(semconv.RESULTS, f'outcome=~"pass|fail|ok",{JUDGED}', f'outcome!~"skipped|superseded",{JUDGED}', "metric"),
                "{{metric}}",
            ), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Judge: spending per hour, and what is left", "What judge and embedder cost, and the least that is left of an instance's budget.",
            units.Dollars,
            (f"3600 * sum({rate(semconv.JUDGE_SPENT)})", "spent per hour"),
            (f"min({gauge(semconv.BUDGET_REMAINING)})", "least that is left"),
        )
    )  # fmt: skip
    return found


def agent() -> Dashboard:
    """One agent."""
    found = _new("agenteval-agent", "Agents: one agent", "What one agent does, how well, how fast and for how much.")
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
            "Turns that were seen as a whole", "The others closed before their root ended, or lost spans.", units.PercentUnit,
            (share(semconv.TURNS, f'complete="true",{AGENT_AND_SERVICE}', AGENT_AND_SERVICE), "complete"), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Tokens per turn", "Of the turns' model calls. Input has cached tokens, output has reasoning.", units.Short,
            (
                rates(semconv.TURN_TOKENS, "token_type", AGENT_AND_SERVICE) + f" / ignoring(token_type) group_left () (sum({turns}) > 0)",
                "{{token_type}}",
            ),
        )
    )  # fmt: skip
    found.with_row(Row("Quality"))
    found.with_panel(
        bars(
            "Verdicts that pass, by metric", "Over the time range, the worst first.", units.PercentUnit,
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
            "Mean scores", "Of metrics from 0 to 1. A metric that always gives the same score says nothing.", units.Short,
            (mean(semconv.SCORE, AGENT_AND_SERVICE, "metric"), "{{metric}}"), most=1,
        )
    )  # fmt: skip
    found.with_row(Row("Time and money"))
    found.with_panel(
        spread(
            "Turn time", "Turns per bucket. The points are turns of which a trace was kept: they open it.", units.Seconds,
            f"sum by (le) (increase({_SERIES[semconv.TURN_DURATION]}_bucket{{{AGENT_AND_SERVICE}}}[{WINDOW}]))", exemplars=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Cost per hour, by model", "The model is that of the call that wrote the answer.", units.Dollars,
            (f"3600 * sum by (model) ({rate(semconv.TURN_COST, AGENT_AND_SERVICE)})", "{{model}}"), span=12, stacked=True,
        )
    )  # fmt: skip
    return found


def metric() -> Dashboard:
    """One metric, down to the traces behind it."""
    found = _new(
        "agenteval-metric", "Agents: one metric", "How one metric is spread, for which agents, and the traces behind it."
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
            "How the values are spread", "Results per bucket. The points are single turns: they open their trace.", units.Short,
            f"sum by (le) (increase({{{bucket}}}[{WINDOW}]))", exemplars=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Quantiles", "Interpolated in the histogram's buckets. The points are single turns: they open their trace.", units.Short,
            *(
                (f"histogram_quantile({q}, sum by (le) (rate({{{bucket}}}[{WINDOW}])))", f"p{round(q * 100)}")
                for q in (0.1, 0.5, 0.9)
            ), span=12, exemplars=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Mean, by agent", "Of the values that were observed.", units.Short,
            (f"sum by (agent) (rate({{{total}}}[{WINDOW}])) / (sum by (agent) (rate({{{count}}}[{WINDOW}])) > 0)", "{{agent}}"),
            span=12,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Mean, by model", "The model is that of the call that wrote the answer.", units.Short,
            (f"sum by (model) (rate({{{total}}}[{WINDOW}])) / (sum by (model) (rate({{{count}}}[{WINDOW}])) > 0)", "{{model}}"),
            span=12,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Estimate for all turns", "Of judged metrics: mean over the last hour's turns, judged or not, and the widest 95 % interval of an instance.",
            units.Short,
            (estimate(last_hour, "metric"), "mean"),
            (f"min({gauge(semconv.ESTIMATE_LOW, last_hour)})", "low"),
            (f"max({gauge(semconv.ESTIMATE_HIGH, last_hour)})", "high"), span=12,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "What the estimate rests on", "How many turns, drawn alike, would tell as much: unequal chances and conditions make it fewer than were judged.",
            units.Short, (f"sum by (agent) ({gauge(semconv.ESTIMATE_N, last_hour)})", "{{agent}}"), span=12,
        )
    )  # fmt: skip
    found.with_row(Row("Verdicts"))
    found.with_panel(
        lines(
            "What came of it", "Results per second: verdicts, values without one (ok), and why there was none.",
            units.CountsPerSecond, (rates(semconv.RESULTS, "outcome", this), "{{outcome}}"), span=12, stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Verdicts that pass, by agent", "Share of passes in passes and failures.", units.PercentUnit,
            (passed("agent", this), "{{agent}}"), span=12, most=1,
        )
    )  # fmt: skip
    return found


def itself() -> Dashboard:
    """The evaluation's own health."""
    found = _new("agenteval-self", "Agents: health of the evaluation", "What comes in, what is lost and why, what it costs.")
    found.with_row(Row("What comes in, and what is lost"))
    found.with_panel(
        lines(
            "Spans", "Received, by instance.", units.CountsPerSecond,
            (rates(semconv.SPANS_RECEIVED, "instance"), "{{instance}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Spans that were not used", "By reason.", units.CountsPerSecond,
            (rates(semconv.SPANS_DROPPED, "reason"), "{{reason}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Open turns", "Not closed yet, by instance. turn.max_open bounds them.", units.Short,
            (f"sum by (instance) ({gauge(semconv.TURNS_OPEN)})", "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Late spans", "That came after their turn was closed.", units.CountsPerSecond,
            (rates(semconv.LATE_SPANS, "instance"), "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "How late", "95th percentile of the time from the close to the span: turn.decision_delay above it takes them in.",
            units.Seconds, (quantile(0.95, semconv.LATE_SPAN_AGE, ""), "p95"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Results that are missing", "By what took them: an error, the budget (gated), or a full queue (dropped).",
            units.CountsPerSecond,
            (rates(semconv.RESULTS, "outcome", 'outcome=~"error|gated|dropped"'), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_row(Row("Load"))
    found.with_panel(
        lines(
            "Queues", "How full the fullest one of all instances is.", units.PercentUnit,
            (f"max by (queue) ({gauge(semconv.QUEUE_SIZE)} / {gauge(semconv.QUEUE_CAPACITY)})", "{{queue}}"), most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Time of a turn's metrics", "Mean and 95th percentile, by kind of metric.", units.Seconds,
            (mean(semconv.METRIC_DURATION, "", "kind"), "{{kind}} mean"),
            (quantile(0.95, semconv.METRIC_DURATION, "", "kind"), "{{kind}} p95"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Load level", "What is left out while an instance cannot follow: 1 llm metrics, 2 embed too, 3 heavy code metrics too.", units.Short,
            (f"max by (instance) ({gauge(semconv.LOAD_LEVEL)})", "{{instance}}"), most=3,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Sidecar: requests, by outcome", "Refused ones come again, but for those that are malformed or not allowed.", units.CountsPerSecond,
            (rates(semconv.SERVE_REQUESTS, "outcome"), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Results that were dropped, by reason", "What was in the way of a judged metric.", units.CountsPerSecond,
            (rates(semconv.DROPPED, "reason"), "{{reason}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_row(Row("Sidecar: who sends, and what runs"))
    found.with_panel(
        lines(
            "Requests that were refused, by outcome", "Share of all requests. overloaded, throttled, stopping and error are sent again.",
            units.PercentUnit,
            (
                f"sum by (outcome) ({rate(semconv.SERVE_REQUESTS, REFUSED)}) / on () group_left () (sum({rate(semconv.SERVE_REQUESTS)}) > 0)",
                "{{outcome}}",
            ), stacked=True, most=1,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Connections, by listener", "Open ones.", units.Short,
            (f"sum by (listener) ({gauge(semconv.SERVE_CONNECTIONS)})", "{{listener}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Connections that were refused", "Closed at once: there were too many, of all or of one client.", units.CountsPerSecond,
            (rates(semconv.SERVE_CONNECTIONS_REFUSED, "listener"), "{{listener}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Requests under way", "Admitted and not answered yet. serve.max_requests bounds them.", units.Short,
            (f"sum by (instance) ({gauge(semconv.SERVE_RUNNING)})", "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Journal: oldest request", "How long ago it came. A turn that is open, or an outlet that does not take its scores, holds it.", units.Seconds,
            (f"max by (instance) ({gauge(semconv.JOURNAL_AGE)})", "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Journal: writes that failed", "Their requests were not acknowledged.", units.CountsPerSecond,
            (rates(semconv.JOURNAL_FAILURES, "instance"), "{{instance}}"),
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Instances, by version", "Of this package, and of Python.", units.Short,
            (f"count by (version, python) ({gauge(semconv.BUILD_INFO)})", "{{version}} on {{python}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Configuration taken", "Of sidecars: 1, or 0 while a configuration that was read again is not in use, for it has a fault.", units.Short,
            (f"min by (instance) ({gauge(semconv.RELOAD_OK)})", "{{instance}}"), most=1,
        )
    )  # fmt: skip
    found.with_row(Row("What goes out"))
    found.with_panel(
        lines(
            "Outlets: what they could not do", "Errors per second.", units.CountsPerSecond,
            (rates(semconv.EMIT_ERRORS, "outlet, reason"), "{{outlet}}: {{reason}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Scores that left, by outlet", "Of outlets that send or store single scores: sent, or why not.", units.CountsPerSecond,
            (rates(semconv.EMIT_RECORDS, "outlet, outcome"), "{{outlet}}: {{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Span events, by outcome", "In-process only; ending is the good one.", units.CountsPerSecond,
            (rates(semconv.SPAN_EVENTS, "outcome"), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_row(Row("Judge"))
    found.with_panel(
        lines(
            "Questions, by outcome", "gated were not asked: the budget was used up.", units.CountsPerSecond,
            (rates(semconv.JUDGE_REQUESTS, "outcome"), "{{outcome}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Spending per hour", "Where prices are known.", units.Dollars,
            (f"3600 * sum by (instance) ({rate(semconv.JUDGE_SPENT)})", "{{instance}}"), stacked=True,
        )
    )  # fmt: skip
    found.with_panel(
        lines(
            "Left of the budget", "In US dollars, by instance, metric (none: all together) and window.", units.Dollars,
            (gauge(semconv.BUDGET_REMAINING), "{{instance}} {{metric}} per {{window}}"),
        )
    )  # fmt: skip
    return found


DASHBOARDS = {"fleet": fleet, "agent": agent, "metric": metric, "self": itself}
"""Name of the file → what makes it."""


def render() -> dict[Path, str]:
    """File → its text, for every dashboard."""
    encoder = JSONEncoder(sort_keys=True, indent=2)
    found = {}
    for name, make in DASHBOARDS.items():
        built = make().build()
        for number, panel in enumerate(built.panels or [], 1):
            panel.id_val = number  # links to a panel stay good
        found[FOLDER / f"{name}.json"] = encoder.encode(built) + "\n"
    return found


def main(arguments: list[str]) -> int:
    """Write the files, or compare them; the exit status."""
    stale = [file for file, text in render().items() if not file.exists() or file.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for file in stale:
            print(f"{file.name} is out of step: python deploy/grafana/build.py rewrites it")
        return 1 if stale else 0
    for file, text in render().items():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
