"""Spans created by metrics aren't part of a turn. Otherwise, a metric that calls a traced model would be scored endlessly."""

import threading
from contextvars import copy_context

import pytest

import otel_agenteval as oa
from tests.support.rig import Rig, chat_attributes

tracers, asked = [], []


def ask():
    """Make a traced model call like an agent's."""
    tracer = tracers[-1]
    asked.append(threading.get_ident())
    with tracer.start_as_current_span("invoke_agent grader", attributes={"gen_ai.operation.name": "invoke_agent"}):
        tracer.start_span("chat m-1", attributes=chat_attributes("Is it good?", "Yes.")).end()


@pytest.fixture
def metrics():
    """Register metrics that call a model: on the worker, and from a thread."""

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


@pytest.mark.usefixtures("metrics")
@pytest.mark.parametrize("metric", ["code_asks_a_model", "code_asks_a_model_later"])
@pytest.mark.parametrize("read", [False, True], ids=["worker", "reader of the events"])
def test_model_that_a_metric_calls_is_not_scored(metric, read):
    asked.clear()
    with Rig({"inline": {"metrics": [metric]}}) as rig:
        tracers.append(rig.provider.get_tracer("acme.metrics"))
        for _ in range(3):
            rig.run()
        if read:
            assert all(list(span.events) is not None for span in rig._spans.get_finished_spans())
        assert len(rig.turns()) == 3
        assert len(asked) == 3


def test_thread_of_the_host_is_its_own_again():
    """The command line scores on the main thread."""
    with Rig() as other:
        other.engine.work_here(other.engine.end_work)
    with Rig() as rig:
        rig.run()
        assert len(rig.turns()) == 1
