"""Metrics that individual dataset cases add to a run."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ..config.metrics import BESIDE_A_METRIC, MetricEntry
from ..config.root import Config, entry_from
from ..core import jsonio
from ..core.errors import ConfigError, Faults
from ..core.forms import misspelled
from ..metrics.bound_metric import BoundMetric, live_metric
from ..metrics.names import load_tool
from ..metrics.registry import resolve, under
from .datasets import PLACEHOLDER, Case, filled_in
from .selection import allow_media, complete_policies, told_apart, with_default_policy

EXPECTED_VALUE = ("value", "expected_output", "expcted_output")  # columns with the expected value; Trusys uses the last two
_MOST_FAULTS = 20
_FILE = re.compile("file://.")
_NAMED_BY = ("type", "metric")
"""Keys that can contain the metric's name in an entry, as in promptfoo and Trusys: ``{type: contains, value: refund}``."""


class CaseMetrics:
    """Metrics to evaluate for each case of a dataset.

    A case's ``metrics`` add metrics to the run, or change the parameters of run metrics with the same name. If a metric's parameter
    ``value`` isn't set, the case's expected value sets it. In parameters, the value in the case's column ``customer`` replaces
    ``{{customer}}``. If only other cases have this column, the metric is skipped.

    The constructor raises a ConfigError that lists errors. Each line begins with the case's position in the dataset.
    """

    def __init__(self, config: Config, run: Sequence[BoundMetric], cases: Iterable[Case]) -> None:
        self._config = config
        self._run = run
        self._placeholders = _placeholders_in([bound.params for bound in run])
        cases = [*cases]
        self._all_columns = {column for case in cases for column in _columns(case)}
        self._known: dict[str, list[BoundMetric]] = {"": [*run]}
        self.reads = set(self._placeholders)
        """Columns that provide parameter values, through placeholders or as a case's expected value."""
        faults = Faults()
        for case in cases:
            if (key := self._key(case)) not in self._known and len(faults.lines) < _MOST_FAULTS:
                with faults:
                    self._known[key] = self._metrics_of(case)
        faults.check()
        if len(self._known) > 1:
            self._give_all_cases_the_same_gates()

    def of(self, case: Case | None) -> Sequence[BoundMetric]:
        """Return the metrics for a turn that belongs to ``case`` or, if ``case`` is None, to no case."""
        return self._known["" if case is None else self._key(case)]

    @property
    def all(self) -> list[BoundMetric]:
        """The run's metrics and all cases' metrics. A metric that several cases list can occur several times."""
        return list({id(bound): bound for metrics in self._known.values() for bound in metrics}.values())

    @property
    def by_name(self) -> list[BoundMetric]:
        """One metric per name. If several metrics share a name, the first one with all required parameters is preferred."""
        found: dict[str, BoundMetric] = {}
        for bound in self.all:
            if bound.name not in found or found[bound.name].missing is not None:
                found[bound.name] = bound
        return list(found.values())

    def _give_all_cases_the_same_gates(self) -> None:
        """Make one case's gate a gate in all cases. If only other cases set a metric's required parameter, skip the metric."""
        known = self.all
        gates = {bound.name for bound in known if bound.policy == "gate"}
        complete = {bound.name for bound in known if bound.missing is None}
        for bound in known:
            if bound.name in gates:
                bound.set_policy("gate")
        for key, metrics in self._known.items():
            self._known[key] = [
                _skipping(bound, bound.missing) if bound.missing is not None and bound.name in complete else bound
                for bound in metrics
            ]

    def _key(self, case: Case) -> str:
        """Return a key. Cases with equal keys have the same metrics, and cases with the key ``""`` have the run's metrics."""
        value, columns = expected_value(case.references), _columns(case)
        named = (self._placeholders | _placeholders_in(case.metrics)) & self._all_columns
        filled = {name: columns.get(name) for name in sorted(named)}
        if value is None and case.metrics is None and not filled:
            return ""
        return jsonio.dumps([case.metrics, value, [] if value is None else sorted(case.references), filled])

    def _metrics_of(self, case: Case) -> list[BoundMetric]:
        value = expected_value(case.references)
        run = {bound.name: bound for bound in self._run}
        own: dict[str, dict[tuple[str, str], BoundMetric]] = {}
        for where, given in _entries(case):
            try:
                entry = _entry(given, self._config.preset)
                bound = self._with_value(self._bound(entry, run), value, case)
                if entry.metric.startswith("promptfoo:"):
                    _check_values(entry, bound.but(filled_in(bound.params, _columns(case))), case)
                if bound.missing is not None:
                    raise ConfigError(f"{bound.name}: {bound.missing} is required. Set {bound.missing} in the entry")
            except ConfigError as error:
                raise ConfigError("\n".join(f"{where}{line}" for line in str(error).splitlines())) from None
            same = own.setdefault(bound.name, {})
            if bound.name != bound.metric.name and any(other != bound.key for other in same):
                raise ConfigError(f"{where}two metrics have the name {bound.name}. Remove or rename one of them")
            same[bound.key] = bound
        found: list[BoundMetric] = []
        try:
            for bound in self._run:
                found += own.pop(bound.name).values() if bound.name in own else [self._with_value(bound, value, case)]
        except ConfigError as error:
            raise ConfigError(f"{case.place}: {error}") from None
        told_apart([*(one for same in own.values() for one in same.values()), *found], log=False)
        found += [one for same in own.values() for one in same.values()]
        return self._completed([self._filled(bound, case) for bound in found])

    def _filled(self, bound: BoundMetric, case: Case) -> BoundMetric:
        names, columns = _placeholders_in(bound.params) & self._all_columns, _columns(case)
        if lacking := sorted(names - columns.keys()):
            return _skipping(bound, lacking[0])
        return bound.but(filled_in(bound.params, columns)) if names else bound

    def _completed(self, found: list[BoundMetric]) -> list[BoundMetric]:
        """Change policy metrics that combine only metrics of the run, so that these policies combine the case's metrics instead."""
        for place, bound in enumerate(found):
            if bound.inner and all(one in self._run for one in bound.inner):
                found[place] = again = copy.copy(bound)
                again.inner = ()
        complete_policies(found)
        return found

    def _bound(self, entry: MetricEntry, run: Mapping[str, BoundMetric]) -> BoundMetric:
        resolved = resolve(entry.metric)
        metric = resolved.metric
        prefix = f"{metric.name}."
        series = entry.name or (entry.metric.removeprefix(prefix) if entry.metric.startswith(prefix) else None)
        base = run.get(metric.name if series is None else prefix + series)
        if base is not None:
            bound = base.but({**base.params, **resolved.parameters(entry.params, self._config.scale)})
            bound.when = None
        else:
            live = live_metric(entry.metric, entry.params, scale=self._config.scale, system=self._config.preset)
            bound = with_default_policy(self._config, live)
            bound.series_params = {}
            if series is not None:
                bound.call_series(series)
        if "policy" in entry.options_given:
            bound.set_policy(entry.policy)
        allow_media(self._config, bound)
        return bound

    def _with_value(self, bound: BoundMetric, value: Any, case: Case) -> BoundMetric:
        """Pass the case's expected value to a metric, unless a parameter or another reference already provides a value."""
        metric = bound.metric
        name = None if value is None else "value" if "value" in metric.parameters else metric.spellings.get("value")
        if name is None or name in bound.params:
            return bound
        others = {*metric.references, "ground_truth"} if metric.references or name == "ground_truth" else set()
        if not others.isdisjoint(case.references):
            return bound
        self.reads.update((*EXPECTED_VALUE, "expected"))
        return bound.but({**bound.params, name: value})


def expected_value(references: Mapping[str, Any]) -> Any:
    return next((references[name] for name in EXPECTED_VALUE if references.get(name) is not None), None)


def _columns(case: Case) -> dict[str, Any]:
    return {"input": case.input, **case.columns, **case.references}


def _placeholders_in(params: Any) -> set[str]:
    return set(PLACEHOLDER.findall(repr(params)))


def _skipping(bound: BoundMetric, missing: str) -> BoundMetric:
    found = copy.copy(bound)
    found.missing = None
    found.applies = lambda turn, params: f"missing:{missing}"
    return found


def _check_values(entry: MetricEntry, bound: BoundMetric, case: Case) -> None:
    """Raise a ConfigError if a value still contains ``{{…}}``, or is a ``file://…`` path, which only promptfoo reads."""
    if "{{" in repr(bound.params):
        name = min(_placeholders_in(bound.params), default="…")
        raise ConfigError(f"unknown column in {{{{{name}}}}}. This case has the columns {', '.join(_columns(case))}")
    given = filled_in(entry.params, _columns(case)).values()
    for text in chain.from_iterable(value if isinstance(value, list) else [value] for value in given):
        if isinstance(text, str) and _FILE.match(text):
            raise ConfigError(f"{text}: file paths aren't supported as values. Write the file's content instead")


def _entries(case: Case) -> Iterator[tuple[str, Any]]:
    """Yield an error prefix and each entry of a case's ``metrics``. Raise ConfigError if ``metrics`` has an invalid type."""
    given = [name.strip() for name in case.metrics.split(",")] if isinstance(case.metrics, str) else case.metrics
    given = [given] if isinstance(given, Mapping) else given
    if given is not None and not isinstance(given, (list, tuple)):
        raise ConfigError(f"{case.place}: metrics: use a list of NAME or {{NAME: {{parameters}}}}, got {given!r}")
    for place, entry in enumerate(given or ()):
        yield f"{case.place}: metrics[{place}]: ", entry


def _entry(given: Any, system: str | None) -> MetricEntry:
    """Parse an entry in the format of this package, promptfoo, or Trusys. Raise ConfigError if it has ``when`` or ``sample``."""
    entry = entry_from(_with_parameters(_keyed_by_metric(given), system) if isinstance(given, Mapping) else given)
    form = "trusys" if isinstance(given, Mapping) and "metric" in given and "type" not in given else None
    entry = entry.replaced(metric=under(form, under(system, entry.metric)))
    if unusable := entry.options_given & {"when", "sample"}:
        raise ConfigError(
            f"{min(unusable)}: not allowed, because a case evaluates all its metrics. Remove this key, or configure the metric for the run"
        )
    return entry


def _with_parameters(given: Mapping[str, Any], system: str | None) -> Mapping[str, Any]:
    """Pass a single value as the metric's first parameter: ``{OutputContains: Paris}`` sets ``value`` to ``Paris``."""
    names = [name for name in given if name not in BESIDE_A_METRIC]
    value = given[names[0]] if len(names) == 1 else None
    if value is None or (isinstance(value, Mapping) and names[0] != "Not"):
        return given
    first = next(iter(resolve(under(system, names[0])).metric.parameters), None)
    inner = _with_parameters(value, system) if isinstance(value, Mapping) else value
    return given if first is None else {**given, names[0]: {first: inner}}


def _keyed_by_metric(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make the metric's name the entry's key: ``{metric: Contains, value: x}`` becomes ``{Contains: {value: x}}``."""
    key = next((key for key in _NAMED_BY if isinstance(given.get(key), str)), None)
    if key is None and "value" in given:
        typo = next(
            (f"Did you mean {meant} instead of {word!r}? " for word in given if (meant := misspelled(word, _NAMED_BY))), ""
        )
        raise ConfigError(f"the metric's name is missing. {typo}Example: {{type: contains, value: Paris}}")
    if key == "type" and isinstance(label := given.get("metric"), str):  # promptfoo's name for an assertion
        given = {"name": label, **{name: value for name, value in given.items() if name != "metric"}}
    # Other tools may have the same name.
    if key == "type" and given["type"].removeprefix("not-") in load_tool("promptfoo").metrics:
        given = {**given, "type": f"promptfoo:{given['type']}"}
    if key is not None:
        beside = {name: given[name] for name in BESIDE_A_METRIC if name in given}
        inner = {name: value for name, value in given.items() if name != key and name not in beside}
        if len(inner) == 1 and isinstance(nested := inner.get("params", inner.get("parameters")), Mapping):
            inner = {**nested}
        given = {given[key]: inner, **beside}
    return given
