"""``otel-agenteval failure-modes``: groups of failed turns from a store and from recorded traces."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.turn import ErrorInfo, ToolCall, Turn
from otel_agenteval.evaluation.first_fault import Fault, failure_of
from otel_agenteval.outlets.store.reader import FailedTurns, ModeCounts, StoredModes
from otel_agenteval.report.failure_modes import FailedTurn, counted, modes_of
from tests.support.faults import faulty_turns
from tests.support.postgres import Anywhere
from tests.support.recordings import unpack_all
from tests.support.stored_turns import NOW, failed_row, filled, score_row, turn_row

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


def adjusted_rand_index(one: list[Any], other: list[Any]) -> float:
    """Return the agreement of two groupings: 1 if equal, 0 by chance (Hubert and Arabie 1985)."""

    def pairs(counts: Counter[Any]) -> float:
        return sum(n * (n - 1) / 2 for n in counts.values())

    both, first, second = pairs(Counter(zip(one, other, strict=True))), pairs(Counter(one)), pairs(Counter(other))
    expected = first * second / (len(one) * (len(one) - 1) / 2)
    return (both - expected) / ((first + second) / 2 - expected)


def turns_of(archives: int, folder: Path) -> list[Turn]:
    for archive in random.Random("modes").sample(sorted(RECORDINGS.glob("*.tar.xz")), archives):
        unpack_all(archive, folder)
    scored = oa.score_turns(oa.load_turns(sorted(folder.rglob("*.jsonl"))))
    return [turn for turn, scores in scored if turn.output and not any(score.verdict is False for score in scores)]


@pytest.mark.slow
def test_modes_agree_with_faults_that_were_put_in(tmp_path: Path) -> None:
    cases = list(faulty_turns(turns_of(60, tmp_path), 20))
    modes = [failure_of(turn, scores) for turn, scores in oa.score_turns([case.turn for case in cases])]
    found = [(case.kind, mode.kind) for case, mode in zip(cases, modes, strict=True) if mode is not None]
    assert len(found) >= 150
    assert adjusted_rand_index([kind for kind, _ in found], [mode for _, mode in found]) >= 0.8


def test_mode_names_fault_step_and_error() -> None:
    turn = Turn(turn_id="t", tool_calls=[ToolCall("book", error=ErrorInfo("timeout"))])
    failed = [oa.Score("code_task_success", 0.0, False, threshold=1.0)]
    fault = failure_of(turn, failed)
    assert fault is not None
    assert (fault.kind, fault.path, fault.step, fault.error) == ("tool_error", "tool_calls[0]", "book", "timeout")
    assert failure_of(Turn(turn_id="t"), failed) == Fault("code_task_success")
    assert failure_of(turn, [oa.Score("code_task_success", 1.0, True, threshold=1.0)]) is None


def test_names_of_a_fault_are_redacted() -> None:
    turn = Turn(turn_id="t", tool_calls=[ToolCall("mail ann@example.com", error=ErrorInfo("bob@example.com"))])
    fault = failure_of(turn, [oa.Score("code_task_success", 0.0, False, threshold=1.0)], ("email",))
    assert fault is not None
    assert "@example.com" not in "".join(fault)


def test_ids_are_the_same_from_day_to_day() -> None:
    one, later = (Fault("tool_error", f"tool_calls[{at}]", reason, "book", "timeout") for at, reason in ((0, "a"), (3, "b")))
    assert one.mode == later.mode == "fab4c5b8"
    assert len({Fault("tool_error", step=f"tool {number}").mode for number in range(1_000)}) == 1_000


def test_trend_of_a_mode_follows_its_interval() -> None:
    def times(before: int, after: int, name: str) -> list[FailedTurn]:
        ats = [1.0] * before + [3.0] * after
        return [FailedTurn(f"{name} {at} {number}", at, Fault(name)) for number, at in enumerate(ats)]

    counts = {"new": (0, 20), "growing": (10, 60), "steady": (10, 12), "shrinking": (60, 10), "gone": (20, 0)}
    failed = [one for name, (before, after) in counts.items() for one in times(before, after, name)]
    modes = {mode.fault.kind: mode for mode in modes_of(counted(failed, (500, 500), 2.0))}
    assert {name: mode.trend for name, mode in modes.items()} == {name: name for name in modes}
    assert modes["steady"].interval[0] < 0.022 < modes["steady"].interval[1]
    assert modes["growing"].examples[0].startswith("growing 3.0")


@pytest.mark.slow
def test_rates_of_judged_turns_are_unbiased() -> None:
    """A fifth of 2,000 turns fails, and a tenth is judged. In at least 93 % of runs, the interval contains the true rate."""
    held, rates = 0, []
    for seed in range(400):
        draw = random.Random(seed)
        judged = sum(draw.random() < 0.2 and draw.random() < 0.1 for _ in range(2_000))
        counts = FailedTurns(judged, judged * 10.0, judged * 100.0)
        (mode,) = modes_of(StoredModes([ModeCounts(Fault("llm_faithfulness"), (counts, FailedTurns()), [])], (2_000, 0)))
        held += mode.interval[0] <= 0.2 <= mode.interval[1]
        rates.append(mode.rate)
    assert held >= 0.93 * 400
    assert abs(sum(rates) / 400 - 0.2) < 0.005


def test_store_and_reports_have_the_modes(anywhere: Anywhere, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for number in range(100):
        fault = Fault("tool_error", "tool_calls[0]", "", "<b>book</b>", "timeout") if number % 8 else Fault("code_refusal")
        turn = turn_row(number, stored_at=NOW + number) if number % 4 else failed_row(number, fault, stored_at=NOW + number)
        rows.append((turn, [score_row(turn, value=float(number % 4 > 0))]))
    store = filled(anywhere(), rows)
    assert main(["failure-modes", "--store", store, "--format", "json"]) == 0
    modes = {mode["step"]: mode for mode in json.loads(capsys.readouterr().out)}
    assert {step: (mode["kind"], mode["failed"], len(mode["examples"])) for step, mode in modes.items()} == {
        "<b>book</b>": ("tool_error", 12, 3), None: ("code_refusal", 13, 3),
    }  # fmt: skip
    assert main(["failure-modes", "--store", store, "--metric", "code_refusal", "--format", "json"]) == 0
    assert [mode["failed"] for mode in json.loads(capsys.readouterr().out)] == [13, 12]
    assert main(["failure-modes", "--store", store, "--metric", "code_other"]) == 2
    assert main(["failure-modes", "--store", store, "--format", "html", "--out", str(tmp_path / "modes.html")]) == 0
    page = (tmp_path / "modes.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;book" in page
    assert "<b>book" not in page
    capsys.readouterr()
    for form in ("table", "markdown"):
        assert main(["failure-modes", "--store", store, "--format", form]) == 0
        assert "25 turns failed, in 2 failure modes" in capsys.readouterr().out


def test_recorded_traces_have_the_modes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unpack_all(RECORDINGS / "ag2-agent.tar.xz", tmp_path)
    files = sorted(str(file) for file in tmp_path.rglob("*.jsonl"))
    assert main(["failure-modes", *files, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(["failure-modes", *files, "--metric", "code_content_filtered"]) == 2
    assert "no turn failed code_content_filtered" in capsys.readouterr().err
    assert main(["failure-modes", *files, "--store", "x.db"]) == 2
    assert "--store" in capsys.readouterr().err


def test_modes_are_compared_by_release(anywhere: Anywhere, capsys: pytest.CaptureFixture[str]) -> None:
    """Among 100 turns of each of three releases, one mode ends, one starts, one stays. Turns without a release don't count."""
    gone, new, steady = (Fault("tool_error", step=step) for step in ("gone", "new", "steady"))
    rows = []
    for number in range(330):
        release, at = divmod(number, 100)
        fault = gone if release < 2 and at < 20 else new if release == 2 and at < 20 else steady if at > 95 else None
        version = {"service_version": f"1.{9 + release}"} if release < 3 else {}
        turn = turn_row(number, **version) if fault is None else failed_row(number, fault, **version)
        rows.append((turn, [score_row(turn, value=float(fault is None))]))
    store = filled(anywhere(), rows)
    assert main(["failure-modes", "--store", store, "--by", "service.version", "--format", "json"]) == 0
    modes = {mode["step"]: mode for mode in json.loads(capsys.readouterr().out)}
    assert {step: mode["trend"] for step, mode in modes.items()} == {step: step for step in ("gone", "new", "steady")}
    assert [(part["group"], part["turns"]) for part in modes["gone"]["groups"]] == [("1.9", 20), ("1.10", 20), ("1.11", 0)]
    low, high = modes["gone"]["change"]
    assert low < -0.2 < high < 0
    assert modes["new"]["groups"][2]["interval"][0] < 0.2 < modes["new"]["groups"][2]["interval"][1]
    for form in ("table", "markdown", "html"):
        assert main(["failure-modes", "--store", store, "--by", "version", "--format", form]) == 0
        assert "of 1.11" in capsys.readouterr().out
    assert main(["failure-modes", "--store", store, "--by", "gen_ai.prompt.version"]) == 2
    assert "among those with gen_ai.prompt.version" in capsys.readouterr().err
    for more in (["--by", "judge_model", "--store", store], ["--by", "model", "spans.jsonl"]):
        assert main(["failure-modes", *more]) == 2
        assert "--by: " in capsys.readouterr().err
