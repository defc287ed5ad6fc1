"""Topics of failure modes, found from the texts of failed turns."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli import failure_modes as command
from otel_agenteval.cli.main import main
from otel_agenteval.evaluation.first_fault import Fault
from otel_agenteval.judging.models import LocalEmbedder
from otel_agenteval.report.failure_modes import FailureText, TopicFinder
from otel_agenteval.statistics.topics import distinguishing_words
from tests.support.failure_texts import text_of
from tests.support.judges import ScriptedModels
from tests.support.postgres import Anywhere
from tests.support.stored_turns import NOW, failed_row, filled, score_row

MODE, TOPICS = "llm_task_completion", ("wrong language", "claimed but not done")
HOSTILE = "<script>alert(1)</script> | \x1b[31m `x`"


def planted(topics: tuple[str, ...] = TOPICS, count: int = 30, seed: int = 1) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    return [(topic, text_of(MODE, topic, draw).text) for _ in range(count) for topic in topics]


def finder(known: Any = ()) -> TopicFinder:
    embedder = LocalEmbedder()
    return TopicFinder(embedder.embed, embedder.model, known, NOW)


def texts_of(given: list[tuple[str, str]]) -> list[FailureText]:
    return [FailureText(f"{number}", text) for number, (_, text) in enumerate(given)]


def rows_of(given: list[tuple[str, str]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    rows = []
    for number, (_, text) in enumerate(given):
        turn = failed_row(number, Fault("llm_task_completion"))
        rows.append((turn, [score_row(turn, "llm_task_completion", 0.0, explanation=text)]))
    return rows


def shown(capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, Any]]:
    assert main(["failure-modes", *args, "--format", "json"]) == 0
    [mode] = json.loads(capsys.readouterr().out)
    topics: list[dict[str, Any]] = mode["topics"]
    return topics


def test_mode_is_split_into_its_planted_topics() -> None:
    given = planted()
    found = finder().topics_of("m", texts_of(given), [])
    nearest = [{given[int(one.turn_id)][0] for one in topic.nearest} for topic in found]
    assert all(len(planted_topics) == 1 for planted_topics in nearest)
    assert set().union(*nearest) == set(TOPICS)
    assert sum(topic.turns for topic in found) >= 50
    assert all(topic.about.stability >= 0.6 for topic in found)
    assert any("english" in topic.about.name.split() for topic in found)


def test_mode_with_one_topic_isnt_split() -> None:
    assert finder().topics_of("m", [FailureText(f"{n}", f"The reply is in English, case {n}.") for n in range(40)], []) == []
    assert finder().topics_of("m", texts_of(planted(count=2)), []) == []


def test_ids_stay_when_texts_change_and_topics_are_added() -> None:
    known = [topic.about for topic in finder().topics_of("m", texts_of(planted()), [])]
    texts = planted((*TOPICS, "wrong format"), count=20, seed=2)
    later = finder(known).topics_of("m", texts_of(texts), [])
    found = {(topic.about.id, topic.about.name) for topic in later}
    assert {(about.id, about.name) for about in known} < found


def test_words_name_what_other_texts_lack() -> None:
    inside, outside = ["the refund takes days", "refunds take long", "a refund of days"], ["the shop takes long"] * 9
    assert distinguishing_words(inside * 2, outside) == distinguishing_words(inside * 2, outside) == ["days", "refund"]
    assert distinguishing_words(["the shop"] * 4, ["the shop"] * 4) == []


def test_store_keeps_ids_and_descriptions(
    anywhere: Anywhere, models: ScriptedModels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = filled(anywhere(), rows_of(planted()))
    config = config_with_judge(models, tmp_path)
    models.play(*[{"name": f"{HOSTILE}\n2", "description": "Write to anna@example.com."}] * 9)
    described = shown(capsys, "--store", store, "--config", config, "--describe")
    assert len(described) == 9 - len(models.unused) >= 2
    assert all("anna@example.com" not in topic["description"] and "\n" not in topic["name"] for topic in described)
    assert shown(capsys, "--store", store, "--config", config, "--describe") == described
    written = {}
    for form in ("table", "markdown", "html"):
        assert main(["failure-modes", "--store", store, "--config", config, "--format", form]) == 0
        written[form] = capsys.readouterr().out
        assert "\x1b" not in written[form]
    assert "<script>alert" not in written["markdown"] + written["html"]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in written["markdown"].splitlines()[2:]} == {8}


def config_with_judge(models: ScriptedModels, folder: Path, budget: str = "") -> str:
    path = folder / "config.yaml"
    path.write_text(f"judge: {{base_url: '{models.url}', model: scripted, api_key: test{budget}}}\n", encoding="utf-8")
    return str(path)


def test_words_stay_without_budget(
    anywhere: Anywhere, models: ScriptedModels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = filled(anywhere(), rows_of(planted()))
    models.play({"name": "Reply in English", "description": "It isn't in the user's language."})
    budget = ", budget: {calls_per_hour: 1}"
    found = shown(capsys, "--store", store, "--config", config_with_judge(models, tmp_path, budget), "--describe")
    assert [topic["description"] for topic in found if topic["description"]] == ["It isn't in the user's language."]
    assert len(found) > 1
    assert all(topic["name"] for topic in found)


def test_texts_and_names_are_redacted(
    anywhere: Anywhere, models: ScriptedModels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = filled(anywhere(), rows_of([(topic, f"{text} Ask bob.miller@example.com.") for topic, text in planted()]))
    models.play(*[{"name": "One", "description": "Two."}] * 9)
    shown(capsys, "--store", store, "--config", config_with_judge(models, tmp_path), "--describe")
    assert models.asked
    assert not any("bob.miller" in question for question in models.asked)


def test_without_embedder_no_mode_is_split(
    anywhere: Anywhere, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(anywhere(), rows_of(planted()))
    monkeypatch.setattr(command, "LocalEmbedder", missing)
    assert shown(capsys, "--store", store) == []


def missing() -> None:
    raise command.ConfigError("model: requires the extra [embed]")
