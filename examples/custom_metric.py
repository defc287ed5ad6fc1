"""Write your own metric with a parameter, and turn it on next to the default metrics.

Run ``python examples/custom_metric.py``.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge

import otel_agenteval as oa


@oa.metric(needs=("output",), boolean=True)
def code_answer_is_short(turn: oa.Turn, *, max_words: Annotated[int, Ge(1)] = 50) -> bool | oa.Result:
    """Check that the answer has at most ``max_words`` words (1.0 = short enough, 0.0 = too long).

    Words are separated by white space. ``detail.words`` contains the number of words. An empty answer is skipped.
    """
    words = len((turn.output or "").split())
    if not words:
        return oa.skip("empty_output")
    return oa.Result(words <= max_words, detail={"words": words}, explanation=f"{words} words, {max_words} are allowed")


# evaluates the metric directly, as in a test
score = oa.get_metric("code_answer_is_short", max_words=3).evaluate(oa.Turn(output="It depends on many things."))
print(score.metric, score.value, score.explanation)

# evaluates the metric on every turn of an application. You can also list it in a configuration file.
config = {"metrics": [{"code_answer_is_short": {"max_words": 120}, "policy": "gate"}]}
handle = oa.instrument(config=config, create_provider=True)
print("attached:", handle.enabled)
handle.shutdown()
