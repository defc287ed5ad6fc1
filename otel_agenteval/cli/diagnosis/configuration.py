"""Checks of the configured metrics and of the judge."""

from __future__ import annotations

from ...config.root import Config
from ...core.extras import extra_installed
from ...engine.selected import Selected
from ...judging.models import judge_from
from ...judging.models.probe import probe
from .finding import BAD, GOOD, DoctorFinding, Findings


def configuration_findings(metrics: Selected) -> Findings:
    """Yield the number of metrics, and what they lack."""
    yield DoctorFinding(GOOD, f"{len(metrics.computed)} computed and {len(metrics.judged)} judged metrics on each turn")
    for metric in (*metrics.of_turns, *metrics.of_conversations):
        if metric.missing is not None:
            yield DoctorFinding(
                BAD, f"{metric.name}: the required parameter {metric.missing!r} is missing, so each score is an error"
            )
        extra = metric.metric.extra
        if extra is not None and not extra_installed(extra):
            yield DoctorFinding(BAD, f"{metric.name}: its packages aren't installed", f"pip install 'otel-agenteval[{extra}]'")


def judge_findings(config: Config, metrics: Selected) -> Findings:
    """Check with two judge calls that the judge answers and scores a good case better than a bad one."""
    judge = judge_from(config)
    if judge is None:
        if any(metric.metric.kind == "llm" for metric in metrics.judged):
            yield DoctorFinding(BAD, "llm_ metrics are skipped: no judge is configured", "set judge.base_url and judge.model")
        return
    try:
        found = probe(judge, [])
    finally:
        judge.close()
    model = found.model or "judge"
    if found.fault is None:
        yield DoctorFinding(
            GOOD, f"{model} answers, and scores a good case better than a bad one; `otel-agenteval judge bench` measures how well"
        )
    else:
        yield DoctorFinding(
            BAD,
            f"the judge {model} can't be used: {found.fault}",
            "check judge.base_url, judge.model and judge.api_key, or use a more capable model",
        )
