"""Concurrent turns keep their own scores and references, in host programs that need no packages.

``scripts/hosts.py`` runs all kinds, on every installed Python, with the oldest and the newest SDK.
"""

from __future__ import annotations

import json
import sys

import pytest

from scripts import hosts


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_every_turn_gets_its_scores_under(kind: str) -> None:
    assert hosts.run_kind(sys.executable, kind) == ""


def test_a_turn_without_a_score_is_a_difference() -> None:
    right = hosts.host_agent.expected()
    assert hosts.difference(0, json.dumps(right), "") == ""
    assert "roots with scores" in hosts.difference(0, json.dumps({**right, "roots with scores": 39}), "")
    assert hosts.difference(1, "", "Traceback\nImportError: no module") == "ImportError: no module"
