"""``otel-agenteval doctor``: find the reason for missing scores."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from ..config.loader import load_config
from ..config.root import Config
from ..core.display import escaped
from ..core.errors import ConfigError, refusal
from ..core.outbound import answer_of, client_to
from ..core.turn import Turn
from ..dialects.capture import advice_on, advice_without_turn
from ..dialects.reader import CALLER, CONTENT, TURN
from ..engine.selected import Selected, selected
from ..evaluation.evaluator import evaluate
from ..evaluation.references import ReferenceSources
from ..outlets.turn_text import colors_wanted, number_of
from ..spans.record import SpanRecord
from ..turns.readings import Readings, scope_of_call
from ..turns.recordings import Reading, read_items, read_turns, wholes_of
from ..turns.roots import SpanGroup
from ..turns.stitching import reader_of
from . import FAILED, OK, UNUSABLE
from .diagnosis import (
    BAD,
    GOOD,
    NOTE,
    DoctorFinding,
    Findings,
    bad,
    configuration_findings,
    good,
    instrumentation_findings,
    judge_findings,
    not_enabled,
    note,
    option_findings,
    outlet_findings,
    python_findings,
)
from .options import add_config, add_program, program_of, scopes_text
from .record import facts_about, run_recorded, why_nothing

EXIT_CODES = {
    OK: "no problem was found",
    FAILED: "a problem was found; the output usually contains a fix",
    UNUSABLE: "an argument is invalid, the program can't be started, or the configuration is invalid",
}

_MARKS = {GOOD: "✓", NOTE: "·", BAD: "✗"}
_COLORS = {GOOD: "\033[32m", NOTE: "", BAD: "\033[31m"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument(
        "--url", metavar="URL", help="check the sidecar with this address of /metrics, such as http://127.0.0.1:19464"
    )
    parser.add_argument(
        "--header", metavar="NAME: VALUE", action="append", default=[],
        help="header of requests to --url, if a proxy requires one, such as `Authorization: Bearer …`; repeatable",
    )  # fmt: skip
    add_program(parser, "run this program, and check its spans: `otel-agenteval doctor -- python app.py`")


def run(args: argparse.Namespace) -> int:
    program, headers = program_of(args), dict[str, str]()
    for text in args.header:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise ConfigError(refusal("--header", repr(name), "must be 'NAME: VALUE'. Example: 'Authorization: Bearer …'"))
        headers[name.strip()] = value.strip()
    worst = OK if args.url is None else _show(args.url, sidecar_findings(args.url, headers))
    if args.url is not None and not program and args.config is None:
        return worst
    config = load_config(args.config)
    metrics = selected(config)
    if args.url is None or program:  # a sidecar has its own Python
        worst = max(worst, _show("this Python", [*python_findings(os.environ), *instrumentation_findings(os.environ)]))
    of_configuration = chain(
        option_findings(config), configuration_findings(config, metrics), judge_findings(config), outlet_findings(config)
    )
    worst = max(worst, _show("configuration", of_configuration))
    if program:
        worst = max(worst, _show(shlex.join(program), program_findings(program, config, metrics)))
    elif args.url is None:
        print("\nto check the spans of your program: otel-agenteval doctor -- python app.py")
    return worst


def _show(title: str, findings: Iterable[DoctorFinding]) -> int:
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


def missing_finding(scope: str, missing: str, traces: float) -> DoctorFinding:
    """Return a finding about a tracer's traces that lack a turn, content, or the caller of tool calls (``missing``)."""
    what = {TURN: "similar to an agent's traces, but without a turn", CALLER: "tool calls of an unknown turn"}
    found = f"{number_of(int(traces), 'trace')} of {scope or 'a tracer without a name'}: "
    return bad(found + what.get(missing, "turns without input and output"), advice_on(missing, [scope]))


# --- a program, which is run

_MOST_REASON = 40


def program_findings(program: Sequence[str], config: Config, metrics: Selected) -> Findings:
    with tempfile.TemporaryDirectory(prefix="otel-agenteval-") as folder:
        out = Path(folder) / "spans.jsonl"
        code = run_recorded(program, out)
        if code:
            yield note(f"the program exited with code {code}")
        facts = facts_about(out)
        here = Path(sys.executable)
        pythons = sorted({fact["python"] for fact in facts if fact.get("python") is not None})
        # one environment can have several names for its interpreter, such as python3
        others = [one for one in pythons if Path(one).parent != here.parent or Path(one).resolve() != here.resolve()]
        if others:
            yield note(f"the program ran in another Python, {others[0]}; the checks above apply to this Python")
        if not out.exists():
            failed = facts and 0 < code < 128
            what = "the program failed before it created one" if failed else why_nothing(facts)
            yield bad(f"no spans: {what}", "" if failed else not_enabled(()))
            return
        reading = Reading()
        items = list(read_items([out], reading, lambda line: None))
    spans = [item for item in items if isinstance(item, SpanRecord)]
    what = f"{number_of(reading.spans, 'span')} and {number_of(reading.logs, 'log record')} arrived"
    yield good(f"{what} ({scopes_text(reading.scopes)})")
    cut = sum(span.truncated for span in spans)
    if cut:
        yield note(f"{number_of(cut, 'span')} lost attributes to a limit", "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT")
    readings = Readings(math.inf)
    found = [*read_turns(wholes_of(items, readings.note_unread), readings)]
    readings.finish(log=False)
    yield from turn_findings(found, reading.scopes)
    for (scope, missing), count in readings.unread.items():
        if missing != CONTENT:
            yield missing_finding(scope, missing, count)
    turns = [turn for _, turn in found]
    if turns:
        yield from metric_findings(turns, config, metrics)


def turn_findings(found: Sequence[tuple[SpanGroup, Turn]], scopes: Iterable[str]) -> Findings:
    if not found:
        yield bad("the spans contain no turn", not_enabled([*scopes]) or advice_without_turn([*scopes]))
        return
    turns = [turn for _, turn in found]
    agents = Counter(turn.agent or "an unnamed agent" for turn in turns)
    yield good(f"{number_of(len(turns), 'turn')}: {', '.join(f'{name} {count}' for name, count in agents.most_common(5))}")
    silent = [group for group, turn in found if turn.input is None and turn.output is None and turn.error is None]
    if silent:
        silent_scopes = [*dict.fromkeys(scope_of_call(reader_of(group)) for group in silent)]
        what = f"{number_of(len(silent), 'turn')} with neither input nor output ({', '.join(silent_scopes)})"
        yield bad(what, advice_on(CONTENT, [*silent_scopes, *scopes]))
    else:
        yield good("all turns have input or output, or failed")
    unfinished = [turn for turn in turns if not turn.complete]
    if unfinished:
        what = f"{number_of(len(unfinished), 'incomplete turn')}, usually because a span never ended"
        yield note(what, "end all spans before the program exits")


def metric_findings(turns: Sequence[Turn], config: Config, metrics: Selected) -> Findings:
    applied: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {}
    references = ReferenceSources(config)
    for turn in turns:
        for score in evaluate(turn, metrics.computed, references):
            if score.status == "skipped":
                reasons.setdefault(score.metric, Counter())[str(score.detail.get("reason", ""))[:_MOST_REASON]] += 1
            else:
                applied[score.metric] += 1
    never = {name: found for name, found in reasons.items() if name not in applied}
    what = f"{len(applied)} of {len(applied) + len(never)} computed metrics apply to the turns"
    yield DoctorFinding(GOOD if applied else BAD, what)
    for reason in dict.fromkeys(found.most_common(1)[0][0] for found in never.values()):
        names = [name for name, found in never.items() if found.most_common(1)[0][0] == reason]
        kind, _, lacks = reason.partition(":")
        why = f"no {lacks.replace('_', ' ')} in the spans" if kind == "missing" else reason
        yield note(f"{why}: {', '.join(names)} {'is' if len(names) == 1 else 'are'} skipped")


# --- a running sidecar

_REQUESTS, _RESULTS = "agenteval_serve_requests_total", "agenteval_results_total"
_TAKEN = ("ok", "partial")
_RUNBOOK = "docs/operate/runbook.md"
_SECTIONS = {
    "outlet": "#agentevaloutletdeliversnothing", "authentication": "#agentevalunauthenticated",
    "configuration": "#agentevalreloadfailed", "certificate": "#agentevalcertificateexpires",
}  # fmt: skip
_HARMLESS = ("not_in_a_turn", "orphan_parent", "sampled_out", "duplicate", "own")
_MOST_METRICS = 5
_TIMEOUT = 10.0
_LARGEST_PAGE = 64 * 2**20


class _Page:
    def __init__(self, text: str) -> None:
        self.samples: defaultdict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.samples[sample.name].append((sample.labels, sample.value))

    def total(self, name: str, **labels: str) -> float:
        return sum(value for have, value in self.samples[name] if all(have.get(key) == one for key, one in labels.items()))

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        found = {have[label]: self.total(name, **labels, **{label: have[label]}) for have, _ in self.samples[name]}
        return {value: total for value, total in found.items() if total}


def sidecar_findings(url: str, headers: Mapping[str, str]) -> Findings:
    if not url.startswith(("http://", "https://")):
        raise ConfigError(refusal("--url", repr(url), "must start with http:// or https://"))
    address = url.rstrip("/").removesuffix("/metrics")
    try:
        with client_to(address, headers={"User-Agent": "otel-agenteval-doctor", **headers}) as client:
            answer, body = answer_of(client, "GET", f"{address}/metrics", seconds=_TIMEOUT, most=_LARGEST_PAGE)
            _, checks = answer_of(client, "GET", f"{address}/readyz?verbose", seconds=_TIMEOUT, most=_LARGEST_PAGE)
        answer.raise_for_status()
        page = _Page(body.decode("utf-8", "replace"))
    except (httpx.HTTPError, ValueError) as error:
        why, where = str(error), "use the metrics address that `otel-agenteval serve` prints, by default http://127.0.0.1:19464"
        if isinstance(error, httpx.HTTPStatusError):
            answer = error.response
            why = f"status {answer.status_code} {answer.reason_phrase}".rstrip()
            if 'realm="otel-agenteval"' in answer.headers.get("www-authenticate", ""):
                where = f"this is the web UI; {where}"
            elif answer.status_code in (401, 403):
                where = "if a proxy requires credentials, pass --header 'Authorization: Bearer …'"
        yield bad(f"{address}/metrics can't be read: {why}", where)
        return
    if "agenteval_build_info" not in page.samples:
        yield bad(f"{address}/metrics isn't a metrics page of otel-agenteval", "use the address of the sidecar's /metrics")
        return
    yield from _handled(page)
    failed = r"^\[-\] ((?:process \d+: )?(\w+).*?)(?: \(not required\))?$"
    for check, kind in re.findall(failed, checks.decode("utf-8", "replace"), re.MULTILINE):
        yield bad(check, f"{_RUNBOOK}{_SECTIONS.get(kind, '')}")
    clients = [client for client in page.by("client", "agenteval_serve_scrapes_total") if client != "other"]
    target = f"static_configs: [{{targets: ['{address.partition('//')[2]}']}}]"
    if clients:
        yield good(f"scraped by {', '.join(sorted(clients))}")
    else:
        yield note("Prometheus hasn't scraped the sidecar yet", f"scrape_configs: [{{job_name: agenteval, {target}}}]")


def _handled(page: _Page) -> Findings:
    spans, turns = page.total("agenteval_spans_received_total"), page.total("agenteval_turns_total")
    if not spans:
        yield bad("the sidecar received no spans", "send OTLP to it: docs/operate/collector.md")
    elif not turns:
        what = f"{number_of(int(spans), 'span')} received, but no turn"
        yield bad(what, "check that agent or model spans are among them, and wait for turn.idle_timeout")
    else:
        yield good(f"{number_of(int(spans), 'span')} received, {number_of(int(turns), 'turn')}")
    for labels, traces in page.samples["agenteval_unread_traces_total"]:
        yield missing_finding(labels["scope"], labels["missing"], traces)
    for outcome, count in page.by("outcome", _REQUESTS).items():
        if outcome not in _TAKEN:
            section = f"agenteval{'unauthenticated' if outcome in ('unauthenticated', 'forbidden') else 'requestsrefused'}"
            yield note(f"{number_of(int(count), 'refused request')}: {outcome}", f"{_RUNBOOK}#{section}")
    for reason, count in page.by("reason", "agenteval_serve_connections_refused_total").items():
        yield note(f"{number_of(int(count), 'refused connection')}: {reason}", f"{_RUNBOOK}#agentevalconnectionsrefused")
    for reason, count in page.by("reason", "agenteval_spans_dropped_total").items():
        if reason not in _HARMLESS:
            what = "without a valid trace or span ID" if reason == "invalid" else reason
            yield note(f"{number_of(int(count), 'dropped span')}: {what}", f"{_RUNBOOK}#agentevalspansdropped")
    if turns and not page.total(_RESULTS):
        yield bad("no metric has a result", "run otel-agenteval check-config FILE to see the effective configuration")
    failed = page.by("metric", _RESULTS, outcome="error")
    for metric in sorted(failed, key=lambda name: -failed[name])[:_MOST_METRICS]:
        yield note(f"{metric} failed {number_of(int(failed[metric]), 'time')}", f"otel-agenteval explain {metric}")
    gated = page.total("agenteval_judge_requests_total", outcome="gated")
    if gated:
        yield note(f"{number_of(int(gated), 'judge call')} waited for the budget", "raise judge.budget, or lower sample.rate")
