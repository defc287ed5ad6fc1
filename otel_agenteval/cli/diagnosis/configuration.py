"""What is configured, and whether the judge can be asked."""

from __future__ import annotations

from ...config.root import Config
from ...core.extras import extra_installed
from ...engine.selected import Selected
from ...judging.models import judge_from
from ...judging.models.probe import probe
from .finding import BAD, GOOD, Finding, Findings


def configuration_findings(metrics: Selected) -> Findings:
    """How many metrics there are, and what they lack."""
    yield Finding(GOOD, f"{len(metrics.computed)} computed and {len(metrics.judged)} judged metrics on each turn")
    for metric in (*metrics.of_turns, *metrics.of_conversations):
        if metric.missing is not None:
            yield Finding(BAD, f"{metric.name} is an error on every turn: its parameter {metric.missing} is required")
        extra = metric.metric.extra
        if extra is not None and not extra_installed(extra):
            yield Finding(BAD, f"{metric.name} needs packages that are not installed", f"pip install 'otel-agenteval[{extra}]'")


def judge_findings(config: Config, metrics: Selected) -> Findings:
    """Whether the judge answers, and tells a good answer from a bad one: two questions."""
    judge = judge_from(config)
    if judge is None:
        if any(metric.metric.kind == "llm" for metric in metrics.judged):
            yield Finding(
                BAD, "llm_ metrics are configured, and no judge: they are skipped", "set judge.base_url and judge.model"
            )
        return
    try:
        found = probe(judge, [])
    finally:
        judge.close()
    model = found.model or "judge"
    if found.fault is None:
        yield Finding(
            GOOD, f"{model} answers, and tells a good answer from a bad one; `otel-agenteval judge bench` measures how well"
        )
    else:
        yield Finding(
            BAD,
            f"the judge {model} cannot be used: {found.fault}",
            "judge.base_url, judge.model and judge.api_key say whom to ask",
        )
