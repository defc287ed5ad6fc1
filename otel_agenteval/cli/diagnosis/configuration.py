"""Checks of the configuration, the metrics and the judge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...config.root import Config
from ...config.section import Option, Section, kind_of, options_of
from ...config.types import FILE
from ...core.extras import extra_installed, installed
from ...engine.selected import Selected
from ...judging.models import embedder_from, judge_from
from ...judging.models.probe import probe
from ...metrics.bound_metric import asked_in
from ...outlets.store.postgres import is_address
from . import Findings, bad, good, note

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SHORT = 0.2
"""Seconds below which a duration with a default of a second or more was hardly meant."""
_IN_DOLLARS = ("usd_per_hour", "usd_per_day")


def option_findings(config: Config) -> Findings:
    """Yield the values that are valid but hardly meant."""
    for path, text in _texts(config.to_dict(), ""):
        if (found := _VARIABLE.search(text)) is not None:
            yield bad(f"{path}: {found[0]} isn't replaced by a variable", f"write ${{env:{found[1]}}}")
    for path, value, option in _options(config, ""):
        kind = kind_of(option.metadata, option.annotation)
        if kind is FILE and isinstance(value, str) and not is_address(value) and not Path(value).absolute().parent.is_dir():
            yield bad(f"{path}: folder not found: {Path(value).absolute().parent}", "create it before you start")
        elif (
            kind is not None
            and "duration" in kind.described
            and isinstance(option.default, float)
            and 0 < value < _SHORT
            and option.default >= 1
        ):
            number = f"{value * 1000:g}"
            yield note(f"{path}: means {number} ms", f"write {number}s for seconds, or {number}ms to be clear")
    yield from _server_findings(config)


def _server_findings(config: Config) -> Findings:
    """Yield the extras that configured servers need and that aren't installed."""
    store = config.outlets.store
    if store is not None and is_address(store.path) and not installed("psycopg"):
        yield bad("outlets.store: PostgreSQL needs an extra", "pip install 'otel-agenteval[postgres]'")
    if config.judge.queue.backend == "redis" and not installed("redis"):
        yield bad("judge.queue.backend: Redis needs an extra", "pip install 'otel-agenteval[redis]'")


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{number}]")


def _options(section: Section, path: str) -> Iterator[tuple[str, Any, Option]]:
    for name, option in options_of(type(section)).items():
        value, place = getattr(section, name), f"{path}{name}"
        if isinstance(value, Section):
            yield from _options(value, f"{place}.")
        else:
            yield place, value, option


def configuration_findings(config: Config, metrics: Selected) -> Findings:
    """Yield the number of metrics, and their missing requirements."""
    yield good(f"{len(metrics.computed)} computed and {len(metrics.judged)} judged metrics on each turn")
    every = [*metrics.of_turns, *metrics.of_conversations]
    for kind, section, made in (("llm", "judge", judge_from), ("embed", "embedder", embedder_from)):
        names = dict.fromkeys(metric.name for metric in asked_in(every) if metric.metric.kind == kind)
        model = made(config) if names else None
        if names and model is None:
            text = f"no {section} is configured, so these metrics are skipped: {', '.join(names)}"
            yield bad(text, f"set {section}.base_url and {section}.model")
        elif model is not None:
            if not model.priced and any(getattr(config.judge.budget, name) is not None for name in _IN_DOLLARS):
                text = f"{section}.model: the price of {model.model} is unknown, so a budget in USD stops every call"
                yield bad(text, f"set {section}.prices, or limit calls")
            model.close()
    for metric in (*metrics.of_turns, *metrics.of_conversations):
        if metric.missing is not None:
            yield bad(f"{metric.name}: the required parameter {metric.missing!r} is missing, so each score is an error")
        extra = metric.metric.extra
        if extra is not None and not extra_installed(extra):
            yield bad(f"{metric.name}: its packages aren't installed", f"pip install 'otel-agenteval[{extra}]'")


def judge_findings(config: Config) -> Findings:
    """Check with two judge calls that the judge answers and scores a good case better than a bad one."""
    judge = judge_from(config)
    if judge is None:
        return
    try:
        found = probe(judge, [])
    finally:
        judge.close()
    model = found.model or "judge"
    if found.fault is None:
        yield good(
            f"{model} answers, and scores a good case better than a bad one; `otel-agenteval judge bench` measures how well"
        )
    else:
        yield bad(
            f"the judge {model} can't be used: {found.fault}",
            "check judge.base_url, judge.model and judge.api_key, or use a more capable model",
        )
