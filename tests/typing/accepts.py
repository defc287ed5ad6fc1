"""Code of users with the public names. mypy in strict mode accepts every line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter

import otel_agenteval as oa


@oa.metric(needs=("output",), boolean=True)
def code_order_number(turn: oa.Turn, digits: int = 6) -> bool | oa.Result:
    """Whether the answer gives an order number (1 = it does)."""
    if turn.output is None:
        return oa.skip("there is no answer")
    if not turn.output:
        return oa.vacuous(True, length=0)
    if digits < 1:
        raise oa.MetricError("invalid_parameter", "digits must be a number from 1")
    return oa.Result(True, label="found", explanation="six digits", detail={"digits": digits})


found: bool | oa.Result = code_order_number(oa.Turn(output="123456"), digits=5)
kept: Callable[..., bool | oa.Result] = code_order_number
bound: oa.BoundMetric = oa.get_metric("code_contains", value="Paris")
score: oa.Score = bound.evaluate(oa.Turn.from_dict({"output": "Paris"}))
value: float | None = score.value
passed: bool | None = score.passed
written: dict[str, Any] = score.to_dict()
turns: Iterator[oa.Turn] = oa.load_turns("traces.jsonl")
calls: list[str] = [call.name for turn in turns for call in turn.tool_calls or ()]
config: oa.Config = oa.load_config({"inline": {"metrics": ["code_latency"]}}, env={})
timeout: float = config.exit_timeout
handle: oa.Handle = oa.instrument(config=config, tracer_provider=TracerProvider())
done: bool = handle.flush(5.0)
processor: SpanProcessor = oa.AgentEvalSpanProcessor()
exporter: SpanExporter = oa.AgentEvalSpanExporter()

with oa.expect(case_id="c1", ground_truth="Paris"):
    pass
try:
    oa.Judge("http://localhost:11434/v1", "llama3")
except oa.MissingExtra as missing:
    extra: str = missing.extra
except oa.JudgeError as refused:
    seconds: float = refused.retry_after
except (oa.ConfigError, oa.AgentEvalError) as error:
    text: str = str(error)
