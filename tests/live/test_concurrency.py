"""Many concurrent turns of all frameworks stay separate, and none is lost.

Every turn has a mark in its question, tool arguments, tool result, answer, tokens and conversation id.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from typing import NamedTuple

import pytest

pytest.importorskip("langchain")
pytest.importorskip("pydantic_ai")

import httpx
import openai
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from otel_agenteval import load_turns
from tests.support.agents import (
    ALL,
    asker,
    definitions,
    langchain_traced,
    langgraph_agent,
    openai_traced,
    pydantic_agent,
    said,
    settings_of,
    tool_loop,
)
from tests.support.fake_llm import SCRIPTS, C, T
from tests.support.live import Live
from tests.support.otlp_json import write_lines

TASKS = 16
THREADS, EACH = 8, 2
_MARK = re.compile(r"[mM](\d{4})x")


class Job(NamedTuple):
    """Content of one turn."""

    number: int

    @property
    def mark(self):
        return f"m{self.number:04}x"

    @property
    def question(self):
        return f"What is known of {self.mark}?"

    @property
    def answer(self):
        return f"This is known of {self.mark}."

    @property
    def conversation(self):
        return f"conv-{self.mark}"

    @property
    def tokens(self):
        """Return the input and output tokens of both calls together, which are unique for each job."""
        return 2 * self.number + 1_100, self.number + 30


def look_up(code: str) -> str:
    """Look a thing up."""
    return f"found {code}"


JOBS = [Job(number) for number in range(TASKS)]
OFFERED = definitions({"look_up": "code"})
TOOLS = {"look_up": look_up}


@pytest.fixture(autouse=True, scope="module")
def _scripts():
    """Return the scripted replies for every job. The tool call ids also contain the mark."""
    for job in JOBS:
        asked = C([("look_up", {"code": job.mark})], 100 + job.number, 10 + job.number)
        SCRIPTS[job.mark] = (job.question, [asked, T(job.answer, 1_000 + job.number, 20)])
    yield
    for job in JOBS:
        del SCRIPTS[job.mark]


@pytest.fixture
def live():
    live = Live(config={"queue": {"max_bytes": "256MiB"}})
    yield live
    live.close()


# --- the frameworks


def answering(history, info):
    """Return a model that identifies its job by the question."""
    (number,) = set(_MARK.findall(str(history[0].parts[-1].content)))
    job = Job(int(number))
    if len(history) == 1:
        call = ToolCallPart("look_up", {"code": job.mark}, f"call_{job.mark}")
        return ModelResponse(parts=[call], usage=RequestUsage(input_tokens=100 + job.number, output_tokens=10 + job.number))
    usage = RequestUsage(input_tokens=1_000 + job.number, output_tokens=20)
    return ModelResponse(parts=[TextPart(job.answer)], usage=usage)


class PydanticAi:
    def __init__(self, live, url):
        self._agent = pydantic_agent(live, FunctionModel(answering), tools=[look_up])

    @asynccontextmanager
    async def tasks(self):
        async def run(job):
            return (await self._agent.run(job.question, conversation_id=job.conversation)).output

        yield run


class OpenAi:
    """A hand-written loop around the OpenAI SDK, below an application span, with content in log records."""

    capture = "EVENT_ONLY"

    def __init__(self, live, url):
        self._live, self._url = live, url

    def _span(self, job):
        return self._live.tracer.start_as_current_span("handle_message", attributes={"session.id": job.conversation})

    @contextmanager
    def threads(self):
        with (
            openai_traced(self._live, self.capture),
            openai.OpenAI(base_url=self._url, api_key="none", max_retries=0, http_client=httpx.Client(limits=ALL)) as client,
        ):

            def run(job):
                with self._span(job):
                    return tool_loop(asker(client, OFFERED, stream=job.number % 2 == 1), job.question, TOOLS)

            yield run


class OpenAiWithoutSpan(OpenAi):
    """A hand-written loop without an application span, with content on spans. Every model call is a separate trace."""

    capture = "SPAN_ONLY"

    def _span(self, job):
        return ExitStack()


class LangGraph:
    def __init__(self, live, url):
        self._live, self._url = live, url

    @asynccontextmanager
    async def tasks(self):
        with langchain_traced(self._live), httpx.Client() as unused:
            async with httpx.AsyncClient(limits=ALL) as client:
                agent = langgraph_agent(self._url, [look_up], http_client=unused, http_async_client=client)

                async def run(job):
                    return (await agent.ainvoke(said(job.question), settings_of(job.conversation)))["messages"][-1].content

                yield run


# --- what must be true


def marks_in(value):
    return set(_MARK.findall(json.dumps(value, default=str)))


def check(live, jobs, folder, framework=None):
    """Check that each job is one complete turn without other data, that nothing is left, and that the exported file gives the same turns."""
    turns = [scored.turn for scored in live.scored()]
    assert len(turns) == len(jobs)
    by_number = {int(number): turn for turn in turns for number in marks_in(turn.to_dict())}
    assert by_number.keys() == {job.number for job in jobs}
    for job in jobs:
        check_turn(by_number[job.number], job, framework)
    ids = [span.id for turn in turns for span in turn.spans]
    assert len(ids) == len(set(ids))
    assert len({len(turn.spans) for turn in turns}) == 1 or framework is None
    check_nothing_stays(live)
    live.flush()
    assert live.logger_provider.force_flush()
    sent = {f"{int.from_bytes(span.span_id, 'big'):016x}" for span in live.receiver.spans() if span.name != "batch"}
    assert sent == set(ids)
    read = {turn.turn_id: told(turn) for turn in load_turns(write_lines(live.receiver.requests, folder / "sent.jsonl"))}
    assert read == {turn.turn_id: told(turn) for turn in turns}


def check_turn(turn, job, framework):
    assert marks_in(turn.to_dict()) == {f"{job.number:04}"}
    assert (turn.input, turn.output, turn.error) == (job.question, job.answer, None)
    assert (turn.close_reason, turn.complete, turn.revision) == ("root_ended", True, 1)
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [
        ("look_up", {"code": job.mark}, f"found {job.mark}")
    ]
    assert len(turn.llm_calls) == 2
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == job.tokens
    if framework is not OpenAiWithoutSpan:
        assert turn.conversation_id == job.conversation
        assert len({span.parent for span in turn.spans} - {span.id for span in turn.spans}) == 1  # one tree


def check_nothing_stays(live):
    assembler, pipeline = live.engine.assembler, live.engine.pipeline
    assert (assembler.open_turns, assembler.bytes, assembler.late_spans, assembler.orphan_parents) == (0, 0, 0, 0)
    assert (pipeline.composer.waiting, +pipeline.composer.spans.left_out, +live.engine.outlets.errors, +live.engine.failures) == (
        0,
        {},
        {},
        {},
    )


def told(turn):
    return {key: value for key, value in turn.to_dict().items() if key != "close_reason"}


# --- tasks


def run_tasks(runs):
    """Run (framework run, job) pairs concurrently."""

    async def all_at_once():
        begin = asyncio.Event()

        async def one(run, job):
            await begin.wait()
            return await run(job)

        tasks = [asyncio.create_task(one(run, job)) for run, job in runs]
        begin.set()
        return await asyncio.gather(*tasks)

    return all_at_once()


@pytest.mark.parametrize(
    ("framework", "below"),
    [(PydanticAi, None), (PydanticAi, "batch"), (LangGraph, None)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_turns_in_concurrent_tasks_hold_nothing_of_each_other(live, llm, framework, below, tmp_path):
    async def work():
        async with framework(live, llm).tasks() as run:
            with live.tracer.start_as_current_span(below) if below else nullcontext():
                return await run_tasks([(run, job) for job in JOBS])

    assert asyncio.run(work()) == [job.answer for job in JOBS]
    if below:
        assert len({scored.turn.trace_id for scored in live.scored()}) == 1
        assert live.engine.pipeline.composer.spans.left_out.pop("not_in_a_turn", 0) <= 1  # the span around all turns
    check(live, JOBS, tmp_path, framework)


def test_tool_calls_of_concurrent_agents_that_call_every_tool_stay_apart(live):
    """The calls of different agents differ only in the tools' names."""

    def tool_of(job):
        def tool() -> str:
            return f"found {job.mark}"

        tool.__name__ = f"look_up_{job.mark}"
        return tool

    async def work():
        agents = [pydantic_agent(live, TestModel(custom_output_text=job.answer), tools=[tool_of(job)]) for job in JOBS]
        await asyncio.gather(*(agent.run(job.question) for agent, job in zip(agents, JOBS, strict=True)))

    asyncio.run(work())
    turns = [scored.turn for scored in live.scored()]
    assert sorted((turn.input, turn.output, *(call.name for call in turn.tool_calls)) for turn in turns) == [
        (job.question, job.answer, f"look_up_{job.mark}") for job in JOBS
    ]
    assert all(len(marks_in(turn.to_dict())) == 1 for turn in turns)
    check_nothing_stays(live)


# --- threads


def run_threads(live, runs):
    """Run one list of (framework run, job) pairs per thread. All start together, and one more thread exports all the time."""
    start = threading.Barrier(len(runs) + 1)
    over = threading.Event()

    def work(mine):
        start.wait()
        return [run(job) for run, job in mine]

    def export():
        start.wait()
        while not over.is_set():
            live.provider.force_flush()

    with ThreadPoolExecutor(len(runs) + 1) as pool:
        exporting = pool.submit(export)
        try:
            return [answer for answers in pool.map(work, runs) for answer in answers]
        finally:
            over.set()
            exporting.result()


@pytest.mark.parametrize("framework", [OpenAi, OpenAiWithoutSpan], ids=lambda framework: framework.__name__)
def test_turns_in_concurrent_threads_hold_nothing_of_each_other(live, llm, framework, tmp_path):
    shares = [JOBS[first : first + EACH] for first in range(0, THREADS * EACH, EACH)]
    with framework(live, llm).threads() as run:
        answers = run_threads(live, [[(run, job) for job in share] for share in shares])
    assert answers == [job.answer for job in JOBS]
    check(live, JOBS, tmp_path, framework)
