"""Code that mypy in strict mode refuses. Each faulty line names its error, which the test compares."""

from __future__ import annotations

import otel_agenteval as oa


@oa.metric(needs=("output",))
def code_length(turn: oa.Turn, most: int = 100) -> float:
    """The length of the answer."""
    return float(len(turn.output))  # refused: arg-type


length: str = code_length(oa.Turn())  # refused: assignment
code_length(oa.Turn(), most="100")  # refused: arg-type
code_length(oa.Turn(), least=1)  # refused: call-arg
code_length()  # refused: call-arg

missing = oa.no_such_name  # refused: attr-defined
oa.metric(unit=1)  # refused: arg-type
oa.metric(direction="sideways")  # refused: arg-type
oa.metric(policy="gate")  # refused: call-arg
oa.skip()  # refused: call-arg
oa.Result("high")  # refused: arg-type
oa.Result(1.0, True)  # refused: call-arg
oa.get_metric("code_contains").evaluate({"output": "Paris"})  # refused: arg-type
oa.Turn().tool_calls[0]  # refused: index
misspelt = oa.Turn().outptu  # refused: attr-defined
oa.load_config(42)  # refused: arg-type
oa.load_turns(42)  # refused: arg-type
oa.instrument(oa.Config())  # refused: call-arg
oa.instrument(config=42)  # refused: arg-type
oa.Judge(base_url=1, model="m")  # refused: arg-type
raise oa.MetricError("without a message")  # refused: call-arg
