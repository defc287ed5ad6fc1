"""Labeling in the web UI: random turns without their verdicts, or turns with the least certain verdicts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from otel_agenteval.page.api import Options
from tests.support.page import ServedPage
from tests.support.stored_turns import filled, some_turns

from .test_browser import opened


def test_labels_are_drawn_at_random_and_blind(browser: Any, tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    path = filled(tmp_path / "s.db", some_turns(200, content=True))
    with ServedPage(path, Options(content=True, labels=str(labels))) as served:
        drawn = served.get("labels/next")["turn_id"]
        assert served.get("labels/next")["turn_id"] == drawn  # a reload skips none
        for tab in opened(browser, served.url):
            tab.goto("/label")
            tab.wait_for_selector(".label-form")
            assert "Question" in tab.text_content("main")
            assert tab.locator("main .mark, main .evidence").count() == 0
            for number in range(1, 13):
                tab.keyboard.press("p")
                tab.wait_for_selector(f"text={number} labeled")
                tab.wait_for_selector(".label-form")
            tab.locator("label", has_text=re.compile("^Turns")).locator("select").select_option("doubtful")
            tab.wait_for_url("**/label?choice=doubtful")
            tab.wait_for_selector(".label-form .labels, main .labels .mark")
            tab.keyboard.press("f")
            tab.wait_for_selector("text=13 labeled")
            tab.goto(f"/turn/{list(served.all_turns())[-1]['turn_id']}")
            tab.wait_for_selector(".label-form")
            tab.keyboard.press("f")
            tab.wait_for_selector(".label-form .labels >> text=the whole turn")
        stored = served.get("labels")["labels"]
        assert [label["chosen"] for label in stored] == ["random"] * 12 + ["doubtful", "hand"]
        places = sorted(int(label["turn_id"][-4:], 16) for label in stored[:12])
        assert places[-1] - places[0] > 60  # from all of them, not a run
        response = served.client.post("/api/v1/labels", json={"turn_id": drawn, "label": "pass", "chosen": "luck"})
        assert (response.status_code, response.json()["error"]) == (
            400,
            "chosen: must be one of random, doubtful, hand, got 'luck'",
        )
