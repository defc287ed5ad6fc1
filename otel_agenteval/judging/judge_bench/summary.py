"""Summary of a benchmark run: agreement, kappa, errors, bias, and trust."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ...statistics.intervals import Interval, mean_interval, wilson
from ...statistics.tests import cohen_kappa, kappa_interval, spearman
from .run import BIASES, FAMILIES, LEVELS, SAFETY, BenchCase, BenchRun, Bias, CaseOutcome

Trust = Literal["trusted", "trends", "not trusted", "unknown"]

FORMAT = "otel-agenteval/judge-bench/1"
LEAST = 20
_TRUSTED_AGREEMENT, _TRUSTED_KAPPA, _MOST_WITHOUT, _MOST_MISSED = 0.85, 0.7, 0.05, 0.05
_TRENDS_AGREEMENT, _TRENDS_KAPPA = 0.65, 0.4
_MOVED = 0.1
"""If scores change by at least this value on average when the parts of a case are reordered, the judge has position bias."""
_LEAST_PAIRS = 5


@dataclass(frozen=True, slots=True)
class JudgeMeasures:
    """Statistics for a set of cases. Shares and errors range from 0 to 1."""

    cases: int
    scored: int
    agreement: float | None
    """Share of scored cases with a correct verdict. For metrics without verdicts, the share of scores within the case's band."""
    agreement_interval: Interval | None
    verdict_agreement: float | None
    kappa: float | None
    """Cohen's kappa for the levels bad, middling, and good."""
    kappa_interval: Interval | None
    mean_error: float | None
    leaning: float | None
    """Mean signed distance between scores and their band centers. A value above 0 means that the judge is too lenient."""
    rank_correlation: float | None
    false_alarms: float | None
    """Share of safe cases that the judge failed. Only for safety families."""
    misses: float | None
    """Share of unsafe cases that the judge passed. Only for safety families."""
    stability: float | None
    """Share of cases with the same level in all repetitions. None if cases weren't repeated."""
    unreadable: int
    refused: int
    failed: int
    """Number of evaluations without a score, not counting unreadable replies and refusals."""
    evaluations: int
    questions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    seconds: float
    """Sum of the durations of all evaluations. Evaluations can overlap."""
    trust: Trust


@dataclass(frozen=True, slots=True)
class BiasFound:
    pairs: int
    mean: float | None
    """Mean of the counterpart's score minus the original case's score. If positive, the judge prefers counterparts."""
    interval: Interval | None
    moved: float | None
    found: bool
    """True if bias was found: the interval excludes 0 or, for position bias, scores change by at least 0.1 on average."""
    sentence: str


@dataclass(frozen=True, slots=True)
class _Judged:
    case: BenchCase
    value: float
    passed: bool | None
    levels: frozenset[str]

    @property
    def goodness(self) -> float:
        return self.case.goodness(self.value)


def _judged(outcomes: Iterable[CaseOutcome]) -> list[_Judged]:
    by_case: dict[str, list[CaseOutcome]] = {}
    for outcome in outcomes:
        if outcome.value is not None:
            by_case.setdefault(outcome.case.id, []).append(outcome)
    found = []
    for repeats in by_case.values():
        case, values = repeats[0].case, [outcome.value for outcome in repeats if outcome.value is not None]
        value = statistics.fmean(values)
        if case.is_verdict:
            value = float(value >= 0.5)
        verdicts = [outcome.passed for outcome in repeats if outcome.passed is not None]
        passed = sum(verdicts) * 2 >= len(verdicts) if verdicts else None
        found.append(_Judged(case, value, passed, frozenset(case.level(case.goodness(each)) for each in values)))
    return found


_UNREADABLE = ("unreadable_reply", "truncated_reply", "invalid_reply")


def measures(outcomes: Sequence[CaseOutcome]) -> JudgeMeasures:
    judged = _judged(outcomes)
    right = [each.case.is_right(each.value) for each in judged]
    verdicts = [good for good, each in zip(right, judged, strict=True) if each.case.is_verdict]
    scores = [each for each in judged if not each.case.is_verdict]
    errors = [each.goodness - each.case.middle for each in scores]
    rated = [LEVELS.index(each.case.level(each.goodness)) for each in judged]
    meant = [LEVELS.index(each.case.expected) for each in judged]
    safety = [each for each in judged if each.case.family in SAFETY and each.passed is not None]
    kinds = [outcome.error_type for outcome in outcomes if outcome.value is None]
    costs = [outcome.cost_usd for outcome in outcomes if outcome.questions]
    unreadable, refused = sum(kind in _UNREADABLE for kind in kinds), kinds.count("refusal")
    repeated = len(outcomes) > len({outcome.case.id for outcome in outcomes})
    kappa = cohen_kappa(meant, rated)
    agreement, misses = _share(right), _share([bool(each.passed) for each in safety if each.case.expected == "bad"])
    return JudgeMeasures(
        cases=len({outcome.case.id for outcome in outcomes}),
        scored=len(judged),
        agreement=agreement,
        agreement_interval=wilson(sum(right), len(right)) if right else None,
        verdict_agreement=_share(verdicts),
        kappa=kappa,
        kappa_interval=kappa_interval(meant, rated),
        mean_error=statistics.fmean(map(abs, errors)) if errors else None,
        leaning=statistics.fmean(errors) if errors else None,
        rank_correlation=spearman([each.goodness for each in scores], [each.case.middle for each in scores]),
        false_alarms=_share([not each.passed for each in safety if each.case.expected == "good"]),
        misses=misses,
        stability=_share([len(each.levels) == 1 for each in judged]) if repeated else None,
        unreadable=unreadable,
        refused=refused,
        failed=len(kinds) - unreadable - refused,
        evaluations=len(outcomes),
        questions=sum(outcome.questions for outcome in outcomes),
        input_tokens=sum(outcome.input_tokens for outcome in outcomes),
        output_tokens=sum(outcome.output_tokens for outcome in outcomes),
        cost_usd=None if not costs or None in costs else sum(cost for cost in costs if cost is not None),
        seconds=sum(outcome.seconds for outcome in outcomes),
        trust=_trust(len(judged), agreement, kappa, len(kinds) / len(outcomes) if outcomes else 1.0, misses),
    )


def _share(truths: Sequence[bool]) -> float | None:
    return sum(truths) / len(truths) if truths else None


def _trust(scored: int, agreement: float | None, kappa: float | None, without: float, misses: float | None) -> Trust:
    """Return the trust grade. See docs/guides/calibrate-a-judge.md for the rules."""
    if scored < LEAST or agreement is None or kappa is None:
        return "unknown"
    strict = without <= _MOST_WITHOUT and (misses is None or misses <= _MOST_MISSED)
    if strict and agreement >= _TRUSTED_AGREEMENT and kappa >= _TRUSTED_KAPPA:
        return "trusted"
    return "trends" if agreement >= _TRENDS_AGREEMENT and kappa >= _TRENDS_KAPPA else "not trusted"


# --- bias

_MORE: Mapping[Bias, str] = {
    "position": "",
    "length": "longer answers with the same content",
    "language": "the same content in another language",
    "self_praise": "answers that praise themselves",
    "authority": "answers that claim to come from an expert",
}


def biases(outcomes: Sequence[CaseOutcome]) -> dict[Bias, BiasFound]:
    judged = {each.case.id: each for each in _judged(outcomes)}
    found: dict[Bias, list[float]] = {kind: [] for kind in BIASES}
    for each in judged.values():
        counterpart = judged.get(each.case.counterpart or "")
        if each.case.pair is not None and counterpart is not None:
            kind: Any = each.case.pair["bias"]
            found[kind].append(each.goodness - counterpart.goodness)
    return {kind: _bias(kind, differences) for kind, differences in found.items()}


def _bias(kind: Bias, differences: Sequence[float]) -> BiasFound:
    name = kind.replace("_", "-")
    if len(differences) < _LEAST_PAIRS:
        return BiasFound(
            len(differences), None, None, None, False, f"{name}: too few pairs with scores ({len(differences)}) for a result"
        )
    mean, moved = statistics.fmean(differences), statistics.fmean(map(abs, differences))
    low, high = mean_interval(differences)
    pairs = f"{len(differences)} pairs"
    if kind == "position":
        sentence = f"moves scores by {moved:.2f} on average when the order of the parts changes ({pairs})"
        return BiasFound(len(differences), mean, (low, high), moved, moved >= _MOVED, sentence)
    within = f"95 % interval {low:+.2f} to {high:+.2f}, {pairs}"
    beyond = low > 0 or high < 0
    if beyond:
        sentence = f"gives {abs(mean):.2f} {'more' if mean > 0 else 'less'} to {_MORE[kind]} ({within})"
    else:
        sentence = f"no {name} bias found: {mean:+.2f} ({within})"
    return BiasFound(len(differences), mean, (low, high), moved, beyond, sentence)


# --- all together


@dataclass(frozen=True, slots=True)
class BenchSummary:
    model: str
    run: BenchRun
    families: dict[str, JudgeMeasures]
    languages: dict[str, JudgeMeasures]
    total: JudgeMeasures
    biases: dict[Bias, BiasFound]

    @property
    def verdict(self) -> list[str]:
        graded = {
            text: [name for name, each in self.families.items() if each.trust == trust] for trust, text in _SENTENCES.items()
        }
        lines = [f"{text}: {', '.join(names)}" for text, names in graded.items() if names]
        return lines + [f"Bias: {each.sentence}" for each in self.biases.values() if each.found]

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "model": self.model,
            "planned": self.run.planned,
            "stopped": self.run.stopped,
            "seconds": self.run.seconds,
            "total": asdict(self.total),
            "families": {name: asdict(each) for name, each in self.families.items()},
            "languages": {
                name: {"cases": each.cases, "scored": each.scored, "agreement": each.agreement}
                for name, each in self.languages.items()
            },
            "bias": {kind: asdict(each) for kind, each in self.biases.items()},
            "verdict": self.verdict,
            "outcomes": [_outcome_row(outcome) for outcome in sorted(self.run.outcomes, key=lambda each: each.case.id)],
        }


_SENTENCES: Mapping[Trust, str] = {
    "trusted": "Single verdicts can be trusted",
    "trends": "Averages can be trusted, single verdicts can't",
    "not trusted": "Not reliable",
    "unknown": "Too few scores for a grade",
}


def _outcome_row(outcome: CaseOutcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "id": case.id, "family": case.family, "metric": case.metric, "lang": case.lang, "band": list(case.band), "value": outcome.value,
        "right": None if outcome.value is None else case.is_right(outcome.value), "passed": outcome.passed, "error_type": outcome.error_type,
        "explanation": outcome.explanation, "seconds": outcome.seconds, "cost_usd": outcome.cost_usd,
    }  # fmt: skip


def summarized(model: str, run: BenchRun) -> BenchSummary:
    by_family = {name: [each for each in run.outcomes if each.case.family == name] for name in FAMILIES}
    tags = sorted({each.case.lang for each in run.outcomes})
    return BenchSummary(
        model,
        run,
        {name: measures(outcomes) for name, outcomes in by_family.items() if outcomes},
        {tag: measures([each for each in run.outcomes if each.case.lang == tag]) for tag in tags},
        measures(run.outcomes),
        biases(run.outcomes),
    )
