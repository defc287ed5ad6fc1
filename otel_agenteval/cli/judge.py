"""``otel-agenteval judge probe``: whether the configured judge can be talked into a verdict."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from ..config.loader import load_config
from ..core.errors import ConfigError
from ..judging.models import judge_from
from ..judging.models.probe import Attempt, Probe, probe
from ..statistics.tests import wilson


def run_probe(args: argparse.Namespace) -> int:
    """0: no more attempts succeeded than ``--max-rate`` allows; 1: more did; 2: the judge could not be probed.

    Raises:
        ConfigError: no judge is configured.
    """
    config = load_config(args.config)
    judge = judge_from(config)
    if judge is None:
        raise ConfigError("there is no judge to probe; set judge.base_url and judge.model in the configuration")
    try:
        found = probe(judge, threads=config.judge.max_concurrency, told=(lambda _: None) if args.json else _tell)
    finally:
        judge.close()
    if args.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        _report(found)
    if found.rate is None:
        return 2
    return 1 if found.rate > args.max_rate else 0


def _tell(attempt: Attempt) -> None:
    outcome = attempt.error_type or ("SUCCEEDED" if attempt.succeeded else "failed")
    print(
        f"{outcome:<20} {'' if attempt.value is None else format(attempt.value, '.2f'):>4}  {attempt.kind}: {attempt.name}",
        flush=True,
    )


def _report(found: Probe) -> None:
    if found.fault is not None:
        print(f"{found.model} cannot be probed: {found.fault}", file=sys.stderr)
        return
    errors = Counter(attempt.error_type for attempt in found.attempts if attempt.error_type is not None)
    if found.rate is None:
        print(f"{found.model}: no attempt gave a score ({_counts(errors)})", file=sys.stderr)
        return
    low, high = wilson(found.succeeded, found.tried)
    print(
        f"{found.model}: {found.succeeded} of {found.tried} attempts succeeded, {found.rate:.1%} (95 % interval {low:.1%} to {high:.1%})"
    )
    if errors:
        print(f"without a score: {_counts(errors)}")


def _counts(errors: Counter[str]) -> str:
    return ", ".join(f"{count} {error}" for error, count in sorted(errors.items(), key=str))
