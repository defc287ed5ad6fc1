"""Pytest plugin with a fixture that captures a test's turns and asserts their scores.

    def test_the_agent_finds_the_weather(agenteval):
        run_agent("What is the weather in Paris?")
        agenteval.assert_scores("code_tool_success", {"code_contains": {"value": "Paris"}}, at_most={"code_latency": 5})

pytest loads the plugin (entry point ``pytest11``), which imports the evaluation when a test uses the fixture. The fixture attaches
to the global tracer provider, or creates one. To use another provider, override the fixture ``agenteval_tracer_provider``.
"""

from __future__ import annotations

import json
import textwrap
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..core.score import Score
    from ..core.turn import Turn

_FLUSH_SECONDS = 30.0


class AgentTurns:
    def __init__(self, handle: Any, kept: deque[Any], report: Path | None, test: str) -> None:
        self._handle = handle
        self._kept = kept
        self._report = report
        self._test = test
        self._since_ns = time.time_ns()

    @property
    def turns(self) -> list[Turn]:
        """Turns that started and closed during the test. If an agent is still running, its turn isn't included."""
        assert self._handle.flush(_FLUSH_SECONDS), f"the test's turns were not complete after {_FLUSH_SECONDS:g} s"
        latest = {}
        for scored in self._kept:
            turn = scored.turn
            if turn.start is None or turn.start.timestamp() * 1e9 >= self._since_ns - 1e6:
                latest[turn.turn_id] = turn
        return sorted(latest.values(), key=lambda turn: turn.start.timestamp() if turn.start else 0.0)

    @property
    def turn(self) -> Turn:
        """The test's only turn. Raises AssertionError if the test has several turns or no turn."""
        __tracebackhide__ = True
        turns = self.turns
        assert len(turns) == 1, f"expected one turn, got {len(turns)}: {[turn.input for turn in turns]}"
        return turns[0]

    def evaluate(self, *metrics: Any, turns: Sequence[Turn] | None = None) -> list[tuple[Turn, list[Score]]]:
        """Evaluate turns, and return (turn, scores) pairs.

        Args:
            *metrics: names, ``{name: {parameters}}``, or results of ``get_metric``. If empty, the default metrics are used.
            turns: the turns to evaluate. The default is all of the test's turns.

        Raises:
            ConfigError: If a metric or parameter is unknown.
        """
        from ..evaluation.evaluator import score_one
        from ..metrics.bound_metric import BoundMetric, live_metric
        from ..metrics.registry import default_pack

        wanted: list[Any] = []
        for metric in metrics or default_pack():
            wanted += metric.items() if isinstance(metric, Mapping) else [metric]
        named = [item if isinstance(item, (tuple, BoundMetric)) else (item, {}) for item in wanted]
        bound = [item if isinstance(item, BoundMetric) else live_metric(*item) for item in named]
        found = [(turn, [score_one(metric, turn) for metric in bound]) for turn in (self.turns if turns is None else turns)]
        self._write(found)
        return found

    def assert_scores(
        self,
        *metrics: Any,
        at_least: Mapping[str, float] | None = None,
        at_most: Mapping[str, float] | None = None,
        allow_skipped: bool = False,
        turns: Sequence[Turn] | None = None,
    ) -> list[Score]:
        """Assert that every turn passes every metric.

        Args:
            *metrics: as for :meth:`evaluate`. The default is the metrics in ``at_least`` and ``at_most``, if any. A metric that
                doesn't give a verdict passes if it returns a value.
            at_least: minimum value by metric name, instead of the metric's own verdict. The metric needn't be in ``metrics``.
            at_most: maximum value by metric name, in the same way.
            allow_skipped: True to accept metrics that don't apply to a turn. By default, a skipped metric fails.
            turns: turns to evaluate, at least one. The default is all turns of the test.

        Returns:
            The scores of all turns, in order.

        Raises:
            AssertionError: If a score fails, has an error, or is skipped, or if there are no turns. The message quotes the turns.
        """
        __tracebackhide__ = True
        at_least, at_most = dict(at_least or {}), dict(at_most or {})
        named = {name for one in metrics for name in (one if isinstance(one, Mapping) else (getattr(one, "name", one),))}
        more = [name for name in {**at_least, **at_most} if name not in named]
        found = self.evaluate(*metrics, *more, turns=turns) if metrics or more else self.evaluate(turns=turns)
        assert found, "expected at least one turn, got none; check that the agent is instrumented and has finished"
        faults = []
        for turn, scores in found:
            wrong = [line for score in scores if (line := _fault(score, at_least, at_most, allow_skipped))]
            if wrong:
                faults.append("\n".join([_about(turn), *wrong]))
        if faults:
            raise AssertionError("\n\n".join(faults))
        return [score for _, scores in found for score in scores]

    def _write(self, found: Sequence[tuple[Turn, list[Score]]]) -> None:
        if self._report is None:
            return
        from ..config.outlets import PrivacyOptions
        from ..core.files import private
        from ..evaluation.redaction import redacted_scores

        with open(self._report, "a", encoding="utf-8", opener=private) as file:
            for turn, scores in found:
                known = {"test": self._test, "turn_id": turn.turn_id, "agent": turn.agent}
                file.writelines(
                    json.dumps({**known, **score.to_dict()}, ensure_ascii=False, default=str) + "\n"
                    for score in redacted_scores(scores, PrivacyOptions().redact)
                )


def _fault(score: Score, at_least: Mapping[str, float], at_most: Mapping[str, float], allow_skipped: bool) -> str | None:
    name = score.metric
    why = f": {score.explanation}" if score.explanation else ""
    if score.status == "skipped":
        reason = score.detail.get("reason", "not applicable")
        hint = (
            ": this fixture calls no model; use oa.score_turns(agenteval.turns)" if reason in ("no_judge", "no_embedder") else ""
        )
        return None if allow_skipped else f"  {name} was skipped ({reason}){hint}"
    if score.status == "error" or score.value is None:
        return f"  {name} could not be evaluated ({score.error_type}){why}"
    low, high = at_least.get(name), at_most.get(name)
    if low is not None and score.value < low:
        return f"  {name} is {score.value:g}, expected at least {low:g}{why}"
    if high is not None and score.value > high:
        return f"  {name} is {score.value:g}, expected at most {high:g}{why}"
    if low is None and high is None and score.verdict is False:
        return f"  {name} failed with {score.value:g}{why}"
    return None


def _about(turn: Turn) -> str:
    lines = [f"turn {turn.turn_id} of {turn.agent or 'an unnamed agent'}"]
    for label, text in (("input", turn.input), ("output", turn.output)):
        if text is not None:
            lines.append(f"  {label}: {textwrap.shorten(text, 200, placeholder=' …')}")
    return "\n".join(lines)


# --- the plugin ----------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("agenteval", "scores of agent turns").addoption(
        "--agenteval-report",
        metavar="FILE",
        help="append every score that a test computes to FILE as JSON lines (with xdist, to FILE.<worker>)",
    )


@pytest.fixture(scope="session")
def agenteval_tracer_provider() -> Any:
    """Return the tracer provider whose spans are captured. Override this fixture to use your own provider.

    If the fixture returns None, the global SDK provider is used, or created if it is missing.
    """
    return None


@pytest.fixture(scope="session")
def _agenteval_handle(agenteval_tracer_provider: Any) -> Iterator[Any]:
    from .attach import CONFIG, instrument

    handle = instrument(tracer_provider=agenteval_tracer_provider, config=CONFIG, create_provider=True)
    yield handle
    handle.shutdown()


@pytest.fixture
def agenteval(request: pytest.FixtureRequest, _agenteval_handle: Any) -> Iterator[AgentTurns]:
    """Capture the test's turns, and provide them as :class:`AgentTurns`."""
    handle = _agenteval_handle
    if not handle.enabled:
        pytest.fail("agenteval can't capture turns: OTEL_SDK_DISABLED or an OTEL_AGENTEVAL_… variable turns evaluation off")
    from .attach import kept_turns

    path = request.config.getoption("--agenteval-report")
    worker = getattr(request.config, "workerinput", {}).get("workerid")
    report = Path(f"{path}.{worker}" if worker else path) if path else None
    with kept_turns(handle.processor.engine, _FLUSH_SECONDS) as kept:
        yield AgentTurns(handle, kept, report, request.node.nodeid)
