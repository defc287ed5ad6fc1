"""``otel-agenteval why``: print each metric's result on a turn, with reason and evidence. The command reads a score store or the
latest turns of a running sidecar.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import textwrap
import urllib.parse
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..config.loader import load_config
from ..config.root import Config
from ..config.types import http_url
from ..core import jsonio
from ..core.display import escaped
from ..core.errors import AgentEvalError, ConfigError, refusal
from ..core.finding import value_at, with_evidence
from ..core.score import Score
from ..core.tenancy import qualified
from ..core.turn import Turn, usd_text
from ..evaluation.first_fault import Fault, judged_fault
from ..evaluation.turn_facts import EFFECTS
from ..outlets.store.postgres import without_password
from ..outlets.store.reader import LEAST_OF_ID, StoreReader, cost_in, fault_of_row, score_of_row, store_path
from ..outlets.turn_text import colors_wanted, columns, one_line, render_outcomes
from . import FAILED, OK, UNUSABLE
from .options import add_store

_TIMEOUT = 10.0
_LARGEST_ANSWER = 16 * 2**20
_ITS_CA = "set SSL_CERT_FILE to the file of its CA certificate"
_FIXES = {
    "issuer certificate": _ITS_CA, "signed certificate": _ITS_CA, "WRONG_VERSION": "if the port doesn't use TLS, use http://",
    "RemoteProtocolError": "if the port uses TLS, use https://",
}  # fmt: skip

EXIT_CODES = {
    OK: "the results were printed",
    FAILED: "the turn wasn't found",
    UNUSABLE: "an argument is invalid, or the store, the sidecar, or the judge's reply can't be read",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument(
        "turn_id", metavar="TURN_ID",
        help="turn ID (agenteval.turn.id), its first 4 or more characters, or TRACE_ID-SPAN_ID of any span, if the trace has one turn",
    )  # fmt: skip
    parser.add_argument("--url", metavar="URL", help="read from a sidecar instead of a store; URL is the address of the sidecar's web UI (`serve --web`)")  # fmt: skip
    parser.add_argument(
        "--judge", action="store_true",
        help="let the configured judge find a failed turn's first fault if no rule finds it; requires stored content",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    if args.judge and args.url is not None:
        raise ConfigError("--judge: can't be combined with --url, because the judge reads stored content")
    config = load_config(args.config)
    if args.url is not None:
        found = _of_url(args.url, args.turn_id, config)
    else:
        found = _of_store(args.store, args.turn_id, config, args.judge)
    if args.json:
        by_metric = {score["metric"]: score for score in found.scores}
        shown = {"turn_id": found.turn_id, "metrics": found.outcomes, "scores": by_metric, **found.cost}
        if found.fault is not None:
            shown["first_fault"] = {**found.fault._asdict(), "by": found.by}
        print(escaped(json.dumps(shown, ensure_ascii=False)))
    elif found.outcomes is None and len(args.turn_id) < LEAST_OF_ID:
        print(escaped(f"{args.turn_id!r} is too short: enter at least {LEAST_OF_ID} characters of the turn id"))
    elif found.outcomes is None:
        store = "" if args.url is not None else without_password(store_path(args.store, config))
        where = f"store {store}" if store else f"the latest turns of {args.url}"
        hint = f"; `otel-agenteval turns --store {store}` lists the ids" if store else ""
        print(escaped(f"turn {args.turn_id} not found in {where}{hint}"))
    else:
        _print_results(found, "" if args.url is not None or args.judge else " (to let the judge find it, add --judge)")
    return OK if found.outcomes is not None else FAILED


class _Found(NamedTuple):
    turn_id: str
    outcomes: dict[str, str] | None
    """Mapping from metric to result. None if the turn is unknown."""
    scores: list[dict[str, Any]]
    """The turn's scores from the store, with evidence."""
    cost: dict[str, Any]
    """``cost_usd`` and ``cost_estimated``, if known."""
    fault: Fault | None = None
    by: str = "rule"
    """Source of the first fault: ``rule`` or ``judge``."""
    start: str = ""
    """Start time of the turn, as shown in the first line. Empty if unknown."""
    facts: Sequence[str] = ()
    """The turn's version, and its text attributes and properties that a failure can't change. Empty for results from a sidecar."""


def _print_results(found: _Found, advice: str) -> None:
    assert found.outcomes is not None  # callers check this
    usd, estimated = found.cost.get("cost_usd"), found.cost.get("cost_estimated")
    cost = "" if usd is None else f", {usd_text(usd, estimated)}{' estimated from tokens and prices' if estimated else ''}"
    print(f"turn {escaped(found.turn_id)}{found.start}{cost}")
    scores = [score_of_row(row) for row in found.scores]
    evidence = {row["metric"]: row.get("evidence", ()) for row in found.scores}
    width, color = columns(sys.stdout), colors_wanted(sys.stdout)
    for line in textwrap.wrap(escaped(", ".join(found.facts)), width):
        print(line)
    if found.fault is not None:
        by = ", by the judge" if found.by == "judge" else ""
        print(escaped(f"first fault{by}: {found.fault.path}: {found.fault.reason}"))
    elif any(score.verdict is False for score in scores):
        print(f"first fault: unknown{advice}")
    print(render_outcomes(found.outcomes, scores, width, evidence=evidence, color=color), end="")


def _of_store(path: str | None, short: str, config: Config, asks: bool) -> _Found:
    with StoreReader(store_path(path, config)) as reader:
        turn_id = reader.find(short) or short
        turn = reader.turn(turn_id) or {}
        rows, outcomes = reader.scores(turn_id), reader.why(turn_id)
    content, fault, by = turn.get("content"), fault_of_row(turn), "rule"
    scores = [score_of_row(row) for row in rows]
    if asks and fault is None and any(score.verdict is False for score in scores):
        if not content:
            raise ConfigError(f"--judge: the store lacks the content of turn {turn_id}. Set outlets.store.content")
        fault, by = _judged(Turn.from_dict(content), scores, config), "judge"
    elif fault is not None and content:
        error = value_at(content, f"{fault.path}.error")
        texts = [str(error[key]) for key in ("type", "message") if error.get(key)] if isinstance(error, dict) else []
        fault = fault._replace(reason=f"{fault.reason} ({one_line(': '.join(texts))})") if texts else fault
    start = ""
    if turn.get("start") is not None:
        start = f", {datetime.datetime.fromtimestamp(turn['start'], datetime.timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    facts = {"service.version": turn.get("service_version"), **(turn.get("attributes") or {}), **(turn.get("facts") or {})}
    shown = [f"{name}={value}" for name, value in facts.items() if isinstance(value, str) and name not in EFFECTS]
    return _Found(turn_id, outcomes, with_evidence(rows, content), cost_in(turn), fault, by, start, shown)


def _judged(turn: Turn, scores: Sequence[Score], config: Config) -> Fault:
    """Let the configured judge find the first fault, within the budget. If the reply is invalid, raise AgentEvalError."""
    from ..judging.session import CommandBudget
    from .judge import configured_judge
    from .scoring import close_models, warn_of_new_budget

    judge, budget = configured_judge(config), CommandBudget(config)
    warn_of_new_budget(budget)
    try:
        return judged_fault(turn, scores, budget.judge(judge), config.privacy.redact)
    finally:
        close_models(judge, None, budget)


def _of_url(url: str, turn_id: str, config: Config) -> _Found:
    import httpx

    from ..core.outbound import answer_of, cause_of, client_to

    try:
        base = http_url(url)
    except ValueError as error:
        raise ConfigError(refusal("--url", repr(url), str(error))) from None
    token = next(iter(config.serve.token or ()), None)  # valid for all turns, unlike a tenant's token
    if token is None:
        own = (tenant.token for tenant in config.serve.tenants if turn_id.startswith(qualified(tenant.name, "")))
        token = next(own, None)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    try:
        address = f"{base}/api/why/{urllib.parse.quote(turn_id, safe='')}"
        with client_to(base) as client:
            reply, body = answer_of(client, "GET", address, seconds=_TIMEOUT, most=_LARGEST_ANSWER, headers=headers)
    except httpx.HTTPError as error:
        cause = cause_of(error)
        fix = next(
            (fix for sign, fix in _FIXES.items() if sign in cause), "use the web address that `otel-agenteval serve` prints"
        )
        raise AgentEvalError(f"--url: {base} can't be reached: {cause}; {fix}") from None
    if reply.status_code == 401:
        raise AgentEvalError(
            f"--url: {base} requires a valid token. Set serve.token in the configuration, or OTEL_AGENTEVAL_SERVE__TOKEN"
        )
    try:
        said: Any = jsonio.loads(body)
        metrics: Any = said["metrics"]
        if reply.status_code == 409:
            raise AgentEvalError(str(said["error"]))
        outcomes = None if metrics is None else {str(metric): str(outcome) for metric, outcome in metrics.items()}
        scores = [dict(score) for score in said.get("scores") or ()]
        fault = Fault(**said["first_fault"]) if said.get("first_fault") else None
        return _Found(str(said.get("turn_id", turn_id)), outcomes, scores, cost_in(said), fault)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise AgentEvalError(
            f"--url: {base} returned status {reply.status_code} without a turn. Use the address of `serve --web` (serve.web)"
        ) from None
