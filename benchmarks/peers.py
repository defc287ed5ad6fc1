"""Compare with other packages that evaluate agents, on the same turns. Each package has its own environment in the cache folder.

    python benchmarks/peers.py                    prints the tables
    python benchmarks/peers.py --only langfuse    only one package
    python benchmarks/peers.py --write            also writes the tables to docs/operate/performance.md

Each package is set up as its documentation recommends for production, with a receiver on this machine and evaluators without models.
Live, an agent makes 100 turns per second (``paced.py``), next to a process with only the SDK. Offline, all packages evaluate the same recorded turns.
"""

from __future__ import annotations

import datetime
import io
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import paced
import scenario
from sink import sink

PAGE = harness.ROOT / "docs" / "operate" / "performance.md"
RATE, SECONDS, ROUNDS = 100, 5.0, 3
WARM_UP, TURNS = 20, 200
"""Numbers of turns in the two files. The first file is only for warm-up."""
UV = "uv==0.13.9"
"""Installer of the environments. Older pip versions can't resolve some of them."""
CASE = "turn"
"""Name of the reference answer that recorded turns contain for agentevals-cli."""
Turn = Callable[[Any], object]
"""Function that makes one turn with a tracer."""


@dataclass(frozen=True)
class Peer:
    package: str
    """Pinned requirements, with the package first. Empty for this checkout."""
    evaluates: str
    """The checks that run here, and the data that they read."""
    live: Callable[[Any, str], Turn] | None = None
    """Function that adds the package to a tracer provider, with a server address. It returns a function that makes one turn."""
    offline: Callable[[Path, str], object] | None = None
    """Function that evaluates the turns of an OTLP/JSON file, with a server address."""
    missing: str = ""
    """Explanation of a mode without figures."""


# --- the packages


def _ours(provider: Any, _: str) -> Turn:
    import otel_agenteval

    provider.add_span_processor(otel_agenteval.AgentEvalSpanProcessor())
    return scenario.turn


def _ours_offline(file: Path, _: str) -> object:
    import otel_agenteval

    return list(otel_agenteval.score_turns(otel_agenteval.load_turns(str(file))))


def _langfuse(provider: Any, address: str) -> Turn:
    from langfuse import Langfuse

    Langfuse(public_key="pk", secret_key="sk", base_url=address, tracer_provider=provider)
    return scenario.turn


def _langfuse_offline(file: Path, address: str) -> object:
    from langfuse import Evaluation, Langfuse

    client = Langfuse(public_key="pk", secret_key="sk", base_url=address)
    checks = [
        lambda *, output, **_: Evaluation(name="names_city", value="Paris" in output),
        lambda *, output, **_: Evaluation(name="is_text", value=isinstance(output, str)),
        lambda *, output, **_: Evaluation(name="is_short", value=len(output) < 2_000),
    ]
    data = [{"input": scenario.QUESTION, "metadata": {"answer": answer}} for answer in _answers(file)]
    found = client.run_experiment(
        name="answers", data=data, task=lambda *, item, **_: item["metadata"]["answer"], evaluators=checks
    )
    client.flush()
    return found


def _phoenix(provider: Any, address: str) -> Turn:
    from phoenix.otel import BatchSpanProcessor

    provider.add_span_processor(BatchSpanProcessor(endpoint=f"{address}/v1/traces"))
    return scenario.turn


def _phoenix_offline(file: Path, _: str) -> object:
    import pandas
    from phoenix.evals import create_evaluator, evaluate_dataframe

    checks = [
        create_evaluator(name="names_city", kind="code")(lambda output: "Paris" in output),
        create_evaluator(name="is_text", kind="code")(lambda output: isinstance(output, str)),
        create_evaluator(name="is_short", kind="code")(lambda output: len(output) < 2_000),
    ]
    return evaluate_dataframe(pandas.DataFrame({"output": _answers(file)}), checks)


def _pydantic_evals(_: Any, __: str) -> Turn:
    from pydantic_evals import evaluators, online

    @online.evaluate(evaluators.Contains("Paris"), evaluators.IsInstance("str"), evaluators.MaxDuration(60.0))
    def answer(tracer: Any) -> str:
        scenario.turn(tracer)
        return scenario.ANSWER

    return answer


def _pydantic_evals_offline(file: Path, _: str) -> object:
    from pydantic_evals import Case, Dataset, evaluators

    checks = (evaluators.Contains("Paris"), evaluators.IsInstance("str"), evaluators.MaxDuration(60.0))
    data = Dataset(name="answers", cases=[Case(inputs=answer) for answer in _answers(file)], evaluators=checks)
    return data.evaluate_sync(lambda answer: answer, progress=False)


def _guards() -> Callable[[str, str], object]:
    """Return a function that guards a model call. It gets the call's messages as JSON, as the package's client wrappers do."""
    import openlit

    guards = openlit.Pipeline(
        [openlit.PII(action="warn"), openlit.PromptInjection(action="warn"), openlit.SensitiveTopic(), openlit.Moderation()]
    )

    def text_of(messages: str) -> str:
        return " ".join(
            part["content"] for message in json.loads(messages) for part in message["parts"] if part["type"] == "text"
        )

    return lambda asked, said: (guards.evaluate(text_of(asked), "preflight"), guards.evaluate(text_of(said), "postflight"))


def _openlit(provider: Any, address: str) -> Turn:
    import openlit
    from opentelemetry import trace

    trace.set_tracer_provider(provider)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as prices:
        prices.write("{}")
        prices.flush()
        openlit.init(otlp_endpoint=address, pricing_json=prices.name)
    guard = _guards()

    class Guarding:
        """Tracer that guards each model call inside its span."""

        def __init__(self, tracer: Any) -> None:
            self._tracer = tracer

        @contextmanager
        def start_as_current_span(self, name: str, **options: Any) -> Iterator[Any]:
            with self._tracer.start_as_current_span(name, **options) as span:
                yield span
                if name.startswith("chat"):
                    guard(span.attributes["gen_ai.input.messages"], span.attributes["gen_ai.output.messages"])

    return lambda tracer: scenario.turn(Guarding(tracer))  # type: ignore[arg-type]


def _openlit_offline(file: Path, _: str) -> object:
    guard = _guards()
    return [guard(call["gen_ai.input.messages"], call["gen_ai.output.messages"]) for call in _model_calls(file)]


def _splunk(provider: Any, _: str) -> Turn:
    """Write the turn with the package's own handler, because the package doesn't evaluate spans."""
    os.environ["OTEL_INSTRUMENTATION_GENAI_EVALS_EVALUATORS"] = "length"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    from opentelemetry.util.genai import types
    from opentelemetry.util.genai.handler import get_telemetry_handler

    handler = get_telemetry_handler(tracer_provider=provider)

    def parts_of(message: Mapping[str, Any]) -> list[Any]:
        return [
            types.Text(part["content"]) if part["type"] == "text"
            else types.ToolCall(name=part["name"], arguments=part["arguments"], id=part["id"]) if part["type"] == "tool_call"
            else types.ToolCallResponse(id=part["id"], response=part["response"])
            for part in message["parts"]
        ]  # fmt: skip

    inputs = [[types.InputMessage(one["role"], parts_of(one)) for one in json.loads(text)] for text in scenario.INPUTS]
    outputs = [
        [types.OutputMessage(one["role"], parts_of(one), one["finish_reason"]) for one in json.loads(text)]
        for text in scenario.OUTPUTS
    ]

    def turn(_: Any) -> None:
        agent = handler.start_agent(types.AgentInvocation(name="travel", provider="openai", system_instructions=scenario.SYSTEM))
        for i in range(3):
            call = types.LLMInvocation(
                request_model="gpt-4o", provider="openai", server_address="llm.test", input_messages=inputs[i]
            )
            handler.start_llm(call)
            call.output_messages = outputs[i]
            call.input_tokens, call.output_tokens, call.response_id = 620 + i, 240, f"response-{i}"
            handler.stop_llm(call)
            if i < 2:
                tool = types.ToolCall(name=scenario.TOOLS[i], arguments=scenario.ARGUMENTS[i], id=f"call_{i}")
                handler.start_tool_call(tool)
                tool.tool_result = scenario.RESULTS[i]
                handler.stop_tool_call(tool)
        handler.stop_agent(agent)

    return turn


def _trajectories(file: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages and tool calls of each turn, in OpenAI's form."""
    for call in _model_calls(file):
        if '"tool_call"' not in call["gen_ai.output.messages"]:
            yield [
                {
                    "role": message["role"],
                    "content": "".join(str(part.get("content", part.get("response", ""))) for part in message["parts"]),
                    "tool_calls": [
                        {"type": "function", "id": part["id"], "function": {"name": part["name"], "arguments": json.dumps(part["arguments"])}}
                        for part in message["parts"] if part["type"] == "tool_call"
                    ],
                }
                for key in ("gen_ai.input.messages", "gen_ai.output.messages") for message in json.loads(call[key])
            ]  # fmt: skip


def _agentevals(file: Path, _: str) -> object:
    from agentevals.trajectory.match import create_trajectory_match_evaluator

    strict, superset = (create_trajectory_match_evaluator(trajectory_match_mode=mode) for mode in ("strict", "superset"))
    return [match(outputs=one, reference_outputs=one) for one in _trajectories(file) for match in (strict, superset)]


def _agentevals_cli(file: Path, _: str) -> object:
    import asyncio

    from agentevals import config, runner

    calls = [{"name": name, "args": args} for name, args in zip(scenario.TOOLS, scenario.ARGUMENTS, strict=True)]
    golden = {"eval_set_id": "s", "eval_cases": [{"eval_id": CASE, "conversation": [{
        "invocation_id": "i", "user_content": {"role": "user", "parts": [{"text": scenario.QUESTION}]},
        "final_response": {"role": "model", "parts": [{"text": scenario.ANSWER}]}, "intermediate_data": {"tool_uses": calls},
    }]}]}  # fmt: skip
    expected = file.with_suffix(".golden.json")
    expected.write_text(json.dumps(golden))
    metrics = [config.BuiltinMetricDef(name=name) for name in ("tool_trajectory_avg_score", "response_match_score")]
    found = asyncio.run(
        runner.run_evaluation(
            config.EvalRunConfig(trace_files=[str(file)], eval_set_file=str(expected), evaluators=metrics, group_by="trace")
        )
    )
    assert not found.errors, found.errors
    assert all(one.score is not None for result in found.trace_results for one in result.metric_results), found
    return found


def _mlflow(file: Path, _: str) -> object:
    os.environ["MLFLOW_GENAI_EVAL_MAX_WORKERS"] = "2"  # the default of ten exceeds its SQLite connection pool
    import mlflow
    from mlflow.genai import scorers

    mlflow.set_tracking_uri(f"sqlite:///{file.with_suffix('.db')}")
    checks = [scorers.PIIDetection(), scorers.RegexMatch(pattern="Paris"), scorers.ResponseLength(max_length=2_000)]
    return mlflow.genai.evaluate(
        data=[{"inputs": {"question": scenario.QUESTION}, "outputs": answer} for answer in _answers(file)], scorers=checks
    )


PEERS: dict[str, Peer] = {
    "otel-agenteval": Peer("", "the default metrics on the whole turn, which it rebuilds from spans", _ours, _ours_offline),
    "langfuse": Peer(
        "langfuse==5.0.4", "in the agent's process, it only sends the spans to its server. Offline, it runs `run_experiment` with three functions on the answer",
        _langfuse, _langfuse_offline,
    ),
    "phoenix": Peer(
        "arize-phoenix-evals==3.9.4 arize-phoenix-otel==0.17.2", "in the agent's process, it only sends the spans to its server. Offline, it runs `evaluate_dataframe` with three functions on the answer",
        _phoenix, _phoenix_offline,
    ),
    "pydantic-evals": Peer(
        "pydantic-evals==2.62.0", "`Contains`, `IsInstance` and `MaxDuration` on the answer", _pydantic_evals, _pydantic_evals_offline
    ),
    "openlit": Peer(
        "openlit==1.45.0", "on the agent's thread, its guards' regular expressions for PII, injection, topics and profanity, for each model call",
        _openlit, _openlit_offline,
    ),
    "splunk-evals": Peer(
        "splunk-otel-util-genai-evals==0.1.8 opentelemetry-sdk==1.43.0", "`length` of each model call's answer, its only evaluator without a model", _splunk, None,
        "Its handler replaces the SDK's tracer, so its figures include creating the spans. It can't read recordings.",
    ),
    "agentevals": Peer(
        "agentevals==0.0.9", "messages and tool calls, compared with a reference in the modes strict and superset", None, _agentevals,
        "Its evaluators are functions for tests, so nothing runs in the agent's process.",
    ),
    "agentevals-cli": Peer(
        "agentevals-cli==0.11.0", "`tool_trajectory_avg_score` and `response_match_score`, which compare spans with a golden answer", None, _agentevals_cli,
        "In the agent's process, its SDK only sends spans to `agentevals serve`.",
    ),
    "mlflow": Peer(
        "mlflow==3.17.2", "`PIIDetection`, `RegexMatch` and `ResponseLength` on the answer, with results in its SQLite store", None, _mlflow,
        "It monitors live traces with LLM judges only.",
    ),
}  # fmt: skip
"""All packages. To add a package, add its functions above and a line here."""


# --- the same turns for all of them


def write_turns(file: Path, turns: int) -> None:
    """Write turns of ``scenario.py`` as OTLP/JSON lines."""
    from files import as_json_line
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), TracerProvider(resource=Resource({"agentevals.eval.case.id": CASE}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    with file.open("w", encoding="utf-8") as out:
        for _ in range(turns):
            scenario.turn(provider.get_tracer("benchmark"))
            out.write(as_json_line(encode_spans(kept.get_finished_spans())) + "\n")
            kept.clear()


def _model_calls(file: Path) -> Iterator[dict[str, str]]:
    """Yield the texts of each model call in a file."""
    for line in file.open(encoding="utf-8"):
        for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            if span["name"].startswith("chat"):
                yield {one["key"]: one["value"].get("stringValue", "") for one in span["attributes"]}


def _answers(file: Path) -> list[str]:
    return [messages[-1]["content"] for messages in _trajectories(file)]


# --- the children


def run(what: Mapping[str, Any]) -> dict[str, float]:
    """Measure one package in one mode, or only the SDK."""
    logging.disable(logging.CRITICAL)
    peer = PEERS.get(what["peer"])
    if what["mode"] == "live":
        live = peer.live if peer is not None else lambda *_: scenario.turn
        assert live is not None
        return paced.measured(lambda provider: live(provider, what["sink"]), RATE, SECONDS)
    assert peer is not None
    assert peer.offline is not None
    bare = harness.resident_mb()
    with redirect_stdout(io.StringIO()):
        peer.offline(Path(what["folder"], f"{WARM_UP}.jsonl"), what["sink"])
        start = time.process_time()
        peer.offline(Path(what["folder"], f"{TURNS}.jsonl"), what["sink"])
    return {"offline": TURNS / (time.process_time() - start), "memory": harness.resident_mb() - bare}


def python_of(peer: Peer) -> str:
    """Return the interpreter of a package's environment, and create the environment if it is missing."""
    if not peer.package:
        return sys.executable
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otel-agenteval"
    folder = cache / f"peer-{peer.package.replace('==', '-').replace(' ', '+')}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"installing {peer.package} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", UV], check=True)
        wanted = (*peer.package.split(), "opentelemetry-sdk", "psutil")
        subprocess.run([str(python), "-m", "uv", "pip", "install", "--quiet", "--python", str(python), *wanted], check=True)
        (folder / "complete").touch()
    return str(python)


# --- the tables


HEADS = ("Package", "Agent's thread", "All threads", "Start", "Memory", "Offline", "Memory, offline")


def title_of(name: str, peer: Peer) -> str:
    """Return a package's name with its version."""
    return "`{}` {}".format(*peer.package.split()[0].split("==")) if peer.package else f"**{name}**"


def line_of(name: str, peer: Peer, folder: str, address: str, rounds: int) -> tuple[str, ...]:
    """Measure one package, and return its table row."""
    live, offline = ["–"] * 4, ["–"] * 2
    python = python_of(peer)
    what = {"peer": name, "folder": folder, "sink": address}
    if peer.live is not None:
        found = harness.Runs()
        for _ in range(rounds):
            alone = {**what, "peer": "sdk", "mode": "live"}
            found.add(harness.child_beside(__file__, harness.ROOT, {**what, "mode": "live"}, alone, python), name)
        now, sdk = (paced.Figures(outcomes[harness.AFTER, name]) for outcomes in (found.outcomes, found.beside))
        live = [
            f"+{(now.thread - sdk.thread) / sdk.thread:.2f} F", f"{now.all / sdk.all:.1f} ×", f"{now.start / sdk.start:.1f} ×",
            f"+{now.started + now.grown - sdk.started - sdk.grown:.0f} MB",
        ]  # fmt: skip
    if peer.offline is not None:
        outcomes = [harness.child(__file__, harness.ROOT, {**what, "mode": "offline"}, python) for _ in range(rounds)]
        rate, memory = (statistics.median(outcome[key] for outcome in outcomes) for key in ("offline", "memory"))
        offline = [f"{rate:,.0f}", f"+{memory:.0f} MB"]
    return title_of(name, peer), *live, *offline


def tables(chosen: Mapping[str, Peer], rounds: int) -> str:
    """Measure all packages, and return the table with notes."""
    lines = [HEADS]
    notes = []
    with tempfile.TemporaryDirectory() as folder, sink("http") as address:
        for turns in (WARM_UP, TURNS):
            write_turns(Path(folder, f"{turns}.jsonl"), turns)
        for name, peer in chosen.items():
            notes.append(f"- {title_of(name, peer)}: {peer.evaluates}. {peer.missing}".rstrip())
            try:
                lines.append(line_of(name, peer, folder, address, rounds))
            except (RuntimeError, subprocess.CalledProcessError) as error:
                print(error, file=sys.stderr)
                notes[-1] += f" Its benchmark fails ({type(error).__name__})."
    return (
        f"Measured on {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}:\n\n{harness.plain_table(lines)}\n\n"
        + "\n".join(notes)
    )


def main() -> int:
    parser = harness.parser(__doc__, against=False)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of each package")
    parser.add_argument("--only", metavar="TEXT", help="only packages whose name contains TEXT")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(json.loads(options.child))))
        sys.stdout.flush()
        os._exit(0)  # don't wait for the packages' threads
    text = tables({name: peer for name, peer in PEERS.items() if not options.only or options.only in name}, options.rounds)
    print(text)
    if options.write:
        harness.write(text, "peers", PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
