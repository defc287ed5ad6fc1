"""Fail a build if a turn in recorded traces breaks a rule. The exit status is then 1.

    python examples/gate_recorded.py traces.jsonl [traces.logs.jsonl …]

The files contain OTLP/JSON lines, as the OpenTelemetry Collector's file exporter writes them. The command line can also gate a build:
``otel-agenteval eval traces.jsonl --config agenteval.yaml --gate``.
"""

from __future__ import annotations

import sys

import otel_agenteval as oa

RULES = [
    oa.get_metric("code_turn_error"),
    oa.get_metric("code_secret_leak"),
    oa.get_metric("code_repeated_tool_calls", max_repeats=2),
    oa.get_metric("code_max_duration", max_seconds=30),
]


def main(files: list[str]) -> int:
    """Print each broken rule, and return the exit status. A run without turns also fails."""
    turns = broken = 0
    for turn in oa.load_turns(files):
        turns += 1
        for rule in RULES:
            score = rule.evaluate(turn)
            if score.status == "error" or score.verdict is False:
                broken += 1
                print(f"{turn.turn_id}: {score.metric}: {score.error_type or score.detail or score.value}")
    print(f"turns: {turns}, broken rules: {broken}")
    return 1 if broken or not turns else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]) if sys.argv[1:] else "gate_recorded: pass at least one file of recorded traces")
    except oa.AgentEvalError as error:
        sys.exit(f"gate_recorded: {error}")
