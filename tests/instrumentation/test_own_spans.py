"""Spans that metrics create are part of no turn. Otherwise, a metric that calls a traced model would be scored for ever."""

import threading
from contextvars import copy_context

import pytest

import otel_agenteval as oa
from tests.support.rig import Rig, chat_attributes

tracers, asked = [], []


def ask():
    """A traced call of a model, like an agent's."""
    tracer = tracers[-1]
    asked.append(threading.get_ident())
    with tracer.start_as_current_span("invoke_agent grader", attributes={"gen_ai.operation.name": "invoke_agent"}):
        tracer.start_span("chat m-1", attributes=chat_attributes("Is it good?", "Yes.")).end()


@oa.metric()
def code_asks_a_model(turn):
    """Asks a model."""
    ask()
    return 1.0


@oa.metric(traits=("heavy",))
def code_asks_a_model_later(turn):
    """Asks a model on the worker, from a thread of its own."""
    thread = threading.Thread(target=copy_context().run, args=(ask,))
    thread.start()
    thread.join()
    return 1.0


@pytest.mark.parametrize("metric", [code_asks_a_model, code_asks_a_model_later], ids=lambda metric: metric.__name__)
@pytest.mark.parametrize("read", [False, True], ids=["worker", "reader of the events"])
def test_model_that_a_metric_calls_is_not_scored(metric, read):
    asked.clear()
    with Rig({"inline": {"metrics": [metric.__name__]}}) as rig:
        tracers.append(rig.provider.get_tracer("acme.metrics"))
        for _ in range(3):
            rig.run()
        if read:
            assert all(list(span.events) is not None for span in rig._spans.get_finished_spans())
        assert len(rig.turns()) == 3
        assert len(asked) == 3
