"""References set in code: which turns get them, and which values never leave the process."""

from __future__ import annotations

import asyncio
import threading

import pytest
from opentelemetry import baggage, context

import otel_agenteval as oa
from tests.support.rig import Rig


@pytest.fixture
def rig():
    with Rig() as rig:
        yield rig


def references(rig):
    return {turn.agent: dict(turn.references) for turn in rig.turns()}


def test_only_a_turn_that_starts_inside_has_the_references(rig):
    given = {"ground_truth": "Paris", "expected_tools": ["search"], "case_id": "case-1"}
    with oa.expect(**given):
        rig.run("inside")
    rig.run("after")
    assert references(rig) == {"inside": given, "after": {}}


def test_metrics_compare_with_them():
    with Rig({"metrics": ["code_tool_selection"]}) as rig, oa.expect(expected_tools=["search", "book"]):
        rig.run()
        score = next(score for score in rig.scored()[0].scores if score.metric == "code_tool_selection")
        assert (score.status, score.passed) == ("ok", False)


def test_inner_references_win_name_by_name(rig):
    with oa.expect(ground_truth="outer", expected_tools=["search"]):
        with oa.expect(ground_truth="inner"):
            rig.run("inner")
        rig.run("outer")
    assert references(rig) == {
        "inner": {"ground_truth": "inner", "expected_tools": ["search"]},
        "outer": {"ground_truth": "outer", "expected_tools": ["search"]},
    }


def test_an_explicit_context_brings_its_own(rig):
    with oa.expect(ground_truth="explicit"):
        kept = context.get_current()
    rig.run(context=kept)
    assert rig.turn().ground_truth == "explicit"


def test_a_decorated_function_s_turns_have_them(rig):
    @oa.expect(ground_truth="Paris")
    def ask(name, *, says):
        """Ask."""
        rig.run(name, says=says)
        return says

    assert ask("bot", says="Paris.") == "Paris."
    assert rig.turn().ground_truth == "Paris"
    assert (ask.__name__, ask.__doc__) == ("ask", "Ask.")


def test_overlapping_calls_of_a_decorated_coroutine_keep_apart_from_the_rest(rig):
    @oa.expect(ground_truth="Paris")
    async def ask(i):
        for _ in range(3):
            await asyncio.sleep(0)
        rig.run(f"inside-{i}")

    async def other(i):
        for _ in range(2):
            await asyncio.sleep(0)
        rig.run(f"outside-{i}")

    async def both():
        await asyncio.gather(*(ask(i) for i in range(5)), *(other(i) for i in range(5)))

    asyncio.run(both())
    assert {agent: found for agent, found in references(rig).items() if found} == {
        f"inside-{i}": {"ground_truth": "Paris"} for i in range(5)
    }


def test_the_references_end_with_an_exception(rig):
    with pytest.raises(RuntimeError), oa.expect(ground_truth="Paris"):
        raise RuntimeError
    rig.run()
    assert rig.turn().ground_truth is None


def test_tasks_and_to_thread_inherit_them(rig):
    async def work():
        with oa.expect(ground_truth="Paris"):
            task = asyncio.create_task(started_inside())
            await asyncio.to_thread(rig.run, "thread")
        await task

    async def started_inside():
        await asyncio.sleep(0)
        rig.run("task")

    asyncio.run(work())
    assert references(rig) == {"thread": {"ground_truth": "Paris"}, "task": {"ground_truth": "Paris"}}


def test_a_plain_thread_does_not_inherit_them(rig):
    with oa.expect(ground_truth="Paris"):
        thread = threading.Thread(target=rig.run)
        thread.start()
        thread.join()
    assert rig.turn().ground_truth is None


def test_only_propagate_puts_the_case_id_into_baggage_and_nothing_else():
    with oa.expect(ground_truth="Paris", case_id="case-1"):
        assert baggage.get_all() == {}
    propagating = oa.expect(ground_truth="Paris", case_id="case-1", propagate=True)
    with propagating:
        assert dict(baggage.get_all()) == {"agenteval.case.id": "case-1"}
    assert propagating(lambda: dict(baggage.get_all()))() == {"agenteval.case.id": "case-1"}
    assert baggage.get_all() == {}


def test_references_are_not_exported(rig):
    with oa.expect(ground_truth="the-secret-truth"):
        rig.run()
    assert "the-secret-truth" not in rig.exported("invoke_agent bot").to_json()
    assert not any("the-secret-truth" in str(record.attributes) for record in rig.log_events())


def test_what_is_expected_of_a_turn_stands_when_it_starts(rig):
    with oa.expect(ground_truth="outer"), rig.agent("outer"), oa.expect(ground_truth="inner"):
        rig.run("inner")
    assert references(rig) == {"outer": {"ground_truth": "outer"}}


def test_what_comes_up_on_the_way_is_added_to_the_turns_that_started_inside(rig):
    with oa.expect(ground_truth="Paris") as given:
        with rig.tracer.start_as_current_span("invoke_agent inside", attributes={"gen_ai.operation.name": "invoke_agent"}):
            given.add(conflicts=[{"resolved": False}])
        rig.turns()
        given.add(ground_truth="Rome")
        rig.run("second")
    first, second = rig.turns()
    assert (first.ground_truth, first.conflicts) == ("Paris", [{"resolved": False}])
    assert (second.ground_truth, second.conflicts) == ("Rome", [{"resolved": False}])
    rig.run("outside")
    assert rig.turns()[-1].references == {}


def test_adding_reaches_neither_outer_blocks_nor_later_calls(rig):
    known = oa.expect(ground_truth="Paris")
    with known:
        known.add(ground_truth="Rome")
    with oa.expect():
        with known:
            known.add(ground_truth="Rome")
        rig.run("outer")
    with known:
        rig.run("again")
    assert references(rig) == {"outer": {}, "again": {"ground_truth": "Paris"}}


def test_nothing_is_added_outside():
    with pytest.raises(oa.ConfigError, match="inside the with block"):
        oa.expect(ground_truth="Paris").add(conflicts=[])
