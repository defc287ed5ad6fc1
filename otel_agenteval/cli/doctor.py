"""``otel-agenteval doctor``: find the reason why scores are missing."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable

from ..config.loader import load_config
from ..core.display import escaped
from ..core.errors import ConfigError, refusal
from ..engine.selected import selected
from ..outlets.turn_text import colors_wanted
from . import FAILED, OK, UNUSABLE
from .diagnosis import BAD, GOOD, NOTE, DoctorFinding
from .diagnosis.configuration import configuration_findings, judge_findings, option_findings
from .diagnosis.environment import instrumentation_findings, python_findings
from .diagnosis.program import program_findings
from .diagnosis.sidecar import sidecar_findings
from .options import add_config, add_program, program_of

EXIT_CODES = {
    OK: "no problem was found",
    FAILED: "a problem was found; the output contains a fix",
    UNUSABLE: "an argument is invalid, the program can't be started, or the configuration is invalid",
}

_MARKS = {GOOD: "✓", NOTE: "·", BAD: "✗"}
_COLORS = {GOOD: "\033[32m", NOTE: "", BAD: "\033[31m"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument(
        "--url", metavar="URL", help="check a running sidecar at the address of its /metrics, for example http://127.0.0.1:19464"
    )
    parser.add_argument(
        "--header", metavar="NAME: VALUE", action="append", default=[],
        help="header for --url, if a proxy requires one: --header 'Authorization: Bearer …'; repeatable",
    )  # fmt: skip
    add_program(parser, "run a program and check its spans: otel-agenteval doctor -- python app.py")


def run(args: argparse.Namespace) -> int:
    program, headers = program_of(args), _headers(args.header)
    config = load_config(args.config)
    metrics = selected(config)
    worst = _show("this Python", [*python_findings(os.environ), *instrumentation_findings(os.environ)])
    of_configuration = [*option_findings(config), *configuration_findings(config, metrics), *judge_findings(config)]
    worst = max(worst, _show("configuration", of_configuration))
    if args.url is not None:
        worst = max(worst, _show(args.url, sidecar_findings(args.url, headers)))
    if program:
        worst = max(worst, _show(shlex.join(program), program_findings(program, config, metrics)))
    elif args.url is None:
        print("\nto check the spans of your program: otel-agenteval doctor -- python app.py")
    return worst


def _headers(given: Iterable[str]) -> dict[str, str]:
    """Parse headers, or raise ConfigError."""
    headers = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise ConfigError(refusal("--header", repr(name), "must be 'NAME: VALUE'. Example: 'Authorization: Bearer …'"))
        headers[name.strip()] = value.strip()
    return headers


def _show(title: str, findings: Iterable[DoctorFinding]) -> int:
    """Print a section of findings, and return FAILED if one is a problem."""
    color = colors_wanted(sys.stdout)
    print(f"\n{escaped(title)}")
    worst = OK
    for level, text, advice in findings:
        mark = f"{_COLORS[level]}{_MARKS[level]}\033[0m" if color and _COLORS[level] else _MARKS[level]
        print(f"  {mark} {escaped(text)}", flush=True)
        if advice:
            print(f"      → {escaped(advice)}")
        worst = FAILED if level == BAD else worst
    return worst
