"""Facts of failed turns in reports with a baseline."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

from otel_agenteval.cli.scoring import Evaluation
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.turn import Turn
from otel_agenteval.report import Run, compare
from otel_agenteval.report.differences import causes_of
from otel_agenteval.report.run import MOST_WITH_FACTS
from tests.report.made_up import run_of
from tests.support.process import ROOT, run

APP = """
from opentelemetry import trace

WRONG = "nothing"

def answer(question):
    with trace.get_tracer("app").start_as_current_span("invoke_agent guide") as span:
        span.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"})
        return "soon" if WRONG not in question else "never"
"""
QUESTIONS = (
    "What is the status of my order, and when will it be delivered?",
    "Wie ist der Stand meiner Bestellung, und wann wird sie geliefert?",
)


def test_experiment_names_what_its_failed_turns_share(tmp_path: Path) -> None:
    cases = [{"case_id": f"c{n}", "input": f"{QUESTIONS[n % 3 == 0]} {n}", "ground_truth": "soon"} for n in range(90)]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    command = ["experiment", "app:answer", "cases.jsonl", "--metrics", "code_equals_ground_truth"]
    before = [*command, "--format", "jsonl", "--out", "before.jsonl"]
    files = ["--format", "markdown", "--out", "now.md", "--format", "html", "--out", "now.html", "--format", "table"]
    script = f"""
import os; os.chdir({str(tmp_path)!r})
from otel_agenteval.cli.main import main
import app
assert main({before}) == 0
app.WRONG = "Bestellung"
assert main({[*command, "--baseline", "before.jsonl", *files]}) == 0
"""
    done = run(script, env={"PYTHONPATH": f"{ROOT}:{tmp_path}"}, timeout=120)
    assert done.returncode == 0, done.stderr
    for report in (done.stdout, *((tmp_path / name).read_text(encoding="utf-8") for name in ("now.md", "now.html"))):
        assert "language = de (100 % of failed, 0 % of passed turns)" in " ".join(report.split())


def test_only_regressions_have_causes() -> None:
    before = run_of({"code_a": [True] * 60, "code_b": [False] * 60})
    after = run_of({"code_a": [n % 2 > 0 for n in range(60)], "code_b": [n % 2 > 0 for n in range(60)]})
    for n in range(60):
        after.add_facts(f"turn-{n}", {"tool": ["pay", "<b>"] if n % 2 == 0 else ["search"]})
    comparison = compare(before, after, "before")
    (cause,) = causes_of(comparison, after)
    assert cause.startswith("More frequent in failed turns of code_a: tool = pay (100 % of failed")
    assert causes_of(comparison, run_of({})) == []


def test_run_keeps_a_limited_number_of_facts() -> None:
    run = Run()
    for n in range(5 * MOST_WITH_FACTS):
        run.add_facts(f"turn-{n}", {"agent": "travel"})
    assert MOST_WITH_FACTS / 3 < len(run.facts) <= MOST_WITH_FACTS


def test_other_processes_return_facts_if_wanted() -> None:
    for wanted in (True, False):
        work = Evaluation(load_config({}, {}), "code_refusal", (), with_scores=True, with_facts=wanted)
        copy = pickle.loads(pickle.dumps(work))
        assert bool(copy.render(Turn(turn_id="t", agent="travel"), []).facts) == wanted
