"""Record the hash of each metric version's prompts in ``tests/data/prompt_versions.json``.

    python scripts/prompt_versions.py             adds new versions; exit status 1 if a prompt changed without a new version
    python scripts/prompt_versions.py --renew X   also replaces the current version's hash of metrics that match X, such as
                                                  'llm_plan_*'. Use this only for versions that were never released

The metric's version identifies a series of scores, so a changed prompt needs a new version. Raise ``version`` in the metric's
decorator (for the prompt of all judges: ``VERSION`` in otel_agenteval/judging/models/prompt.py), then run this script. Without
``--renew``, recorded hashes are never replaced.

The hash covers the judge calls of a metric on the catalog's examples: stage, task and reply form.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import otel_agenteval as oa
from otel_agenteval.core.errors import JudgeError
from otel_agenteval.judging.models.prompt import REPAIR, SYSTEM, VERSION
from otel_agenteval.judging.models.reply import verdict_in
from otel_agenteval.metrics.registry import catalog

TESTS = Path(__file__).parent.parent / "tests" / "data"
FILE = TESTS / "prompt_versions.json"
EVERY_JUDGE = "every judge"


_RICH = {
    "input": "Add two numbers.", "output": "```python\ndef add(a, b):\n    return a + b\n```", "reasoning": "I add them.",
    "history": [{"input": "Hello.", "output": "Hello."}],
}  # fmt: skip
"""A turn for metrics whose examples don't cause a judge call."""


class _Heard:
    """Judge that returns an example's replies, and records the calls."""

    def __init__(self, replies: list[Any]) -> None:
        self.asked: list[str] = []
        self._replies = replies

    def ask(
        self, stage: str, task: str, data: Mapping[str, Any], reply: str, *, criteria: Mapping[str, Any] | None = None, **_: Any
    ) -> dict[str, Any]:
        self.asked.append(json.dumps([stage, task, sorted(data), reply, *([sorted(criteria)] if criteria else [])]))
        if not self._replies:
            raise JudgeError("no reply left", "no_reply")
        given = self._replies.pop(0)
        found = given["reply"] if "reply" in given else verdict_in(given["raw"])
        if not isinstance(found, dict):
            raise JudgeError("unreadable", "unreadable_reply")
        return dict(found)


def prompts() -> dict[str, tuple[str, str]]:
    """Return (version, hash of its prompts) of each metric that uses a judge, by name."""
    asked: dict[str, set[str]] = {metric.name: set() for metric in catalog() if metric.kind == "llm"}
    for path in sorted((TESTS / "vectors").glob("*.json")):
        for vector in json.loads(path.read_text(encoding="utf-8"))["vectors"]:
            if vector["metric"] in asked:
                try:
                    metric = oa.get_metric(vector["metric"], **vector["params"])
                except oa.ConfigError:
                    continue
                heard = _Heard(list(vector.get("judge_replies") or []))
                metric.evaluate(oa.Turn.from_dict(vector["turn"]), judge=heard)
                asked[vector["metric"]].update(heard.asked)
    for name, questions in asked.items():
        if not questions:
            heard = _Heard([])
            oa.get_metric(name).evaluate(oa.Turn.from_dict(_RICH), judge=heard)
            questions.update(heard.asked)
    found = {metric.name: (metric.version, _hash(sorted(asked[metric.name]))) for metric in catalog() if metric.name in asked}
    return {EVERY_JUDGE: (VERSION, _hash([SYSTEM, REPAIR])), **found}


def _hash(texts: list[str]) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


def changed(known: Mapping[str, Mapping[str, str]], found: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return one message for each changed prompt without a new version, and each version that isn't recorded."""
    faults = []
    for name, (version, digest) in found.items():
        kept = known.get(name, {}).get(version)
        if kept is None:
            faults.append(f"{name}: version {version} is not in {FILE.name}; run scripts/prompt_versions.py")
        elif kept != digest:
            faults.append(
                f"{name}: the prompt is not that of version {version}; raise its version, then run scripts/prompt_versions.py"
            )
    return faults


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Add the prompts of new versions to the file.")
    parser.add_argument("--renew", metavar="PATTERN", help="replace the recorded hash of the current version of these metrics")
    renewed: str | None = parser.parse_args(arguments).renew
    known: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    found = prompts()
    for name, (version, digest) in found.items():
        kept = known.setdefault(name, {})
        if renewed is not None and fnmatch.fnmatchcase(name, renewed):
            kept[version] = digest
        kept.setdefault(version, digest)
    FILE.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    faults = changed(known, found)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
