"""``otel-agenteval why``: the outcome of each metric on a turn, and its reason.

A running sidecar remembers its last turns, and a store has all that it keeps. The command asks either.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.parse
from typing import Any, NamedTuple

from ..config.loader import load_config
from ..config.root import Config
from ..config.serve import ServeOptions
from ..config.types import http_url
from ..core import jsonio
from ..core.errors import AgentEvalError, ConfigError
from ..core.tenancy import qualified
from ..core.terminal import escaped
from ..outlets.sqlite.store import StoreReader, score_of_row, store_path
from ..outlets.turn_text import colours_wanted, columns, render_outcomes
from .exit_codes import FAILED, OK, UNUSABLE
from .options import add_store

_TIMEOUT = 10.0
_LARGEST_ANSWER = 16 * 2**20

EXIT_CODES = {
    OK: "the outcomes were printed",
    FAILED: "the turn is unknown",
    UNUSABLE: "wrong use, or neither the store nor the sidecar can be read",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_store(parser)
    parser.add_argument(
        "turn_id", metavar="TURN_ID", help="TRACE_ID-SPAN_ID of the turn's root, as in agenteval.turn.id, or the beginning of it"
    )
    parser.add_argument("--url", metavar="URL", help="ask a running sidecar instead, at its address of --web")
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the outcome of each metric on a turn.

    Raises:
        AgentEvalError: the store or the sidecar cannot be read, or neither is configured.
    """
    config = load_config(args.config)
    found = _of_url(args.url, args.turn_id, config) if args.url is not None else _of_store(args.store, args.turn_id, config)
    if args.json:
        scores = {score["metric"]: score for score in found.scores}
        print(escaped(json.dumps({"turn_id": found.turn_id, "metrics": found.outcomes, "scores": scores}, ensure_ascii=False)))
    elif found.outcomes is None:
        print(f"no turn {args.turn_id} is known")
    else:
        print(f"turn {escaped(found.turn_id)}")
        scores_of = [score_of_row(row) for row in found.scores]
        print(render_outcomes(found.outcomes, scores_of, columns(sys.stdout), colour=colours_wanted(sys.stdout)), end="")
    return OK if found.outcomes is not None else FAILED


class _Found(NamedTuple):
    """What is known of a turn."""

    turn_id: str
    outcomes: dict[str, str] | None
    """Of each metric; None for an unknown turn."""
    scores: list[dict[str, Any]]
    """Rows of the store."""


def _of_store(path: str | None, short: str, config: Config) -> _Found:
    with StoreReader(store_path(path, config)) as reader:
        turn_id = reader.find(short) or short
        return _Found(turn_id, reader.why(turn_id), reader.scores(turn_id))


def _token_for(turn_id: str, options: ServeOptions) -> str | None:
    """The token of the API, which covers all turns, or the token of the turn's tenant."""
    if options.token is not None:
        return options.token
    return next((tenant.token for tenant in options.tenants if turn_id.startswith(qualified(tenant.name, ""))), None)


def _of_url(url: str, turn_id: str, config: Config) -> _Found:
    import httpx

    from ..core.outbound import answer_of, client_to

    try:
        base = http_url(url)
    except ValueError as error:
        raise ConfigError(f"--url: {url!r} is not allowed; {error}") from None
    token = _token_for(turn_id, config.serve)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    try:
        address = f"{base}/api/why/{urllib.parse.quote(turn_id, safe='')}"
        with client_to(base) as client:
            reply, body = answer_of(client, "GET", address, seconds=_TIMEOUT, most=_LARGEST_ANSWER, headers=headers)
    except httpx.HTTPError as error:
        raise AgentEvalError(f"{base}: cannot be reached: {type(error).__name__}") from None
    if reply.status_code == 401:
        raise AgentEvalError(
            f"{base}: a token is required: serve.token in the configuration (--config, OTEL_AGENTEVAL_SERVE__TOKEN)"
        )
    try:
        said: Any = jsonio.loads(body)
        metrics: Any = said["metrics"]
        if reply.status_code == 409:
            raise AgentEvalError(str(said["error"]))
        outcomes = None if metrics is None else {str(metric): str(outcome) for metric, outcome in metrics.items()}
        return _Found(str(said.get("turn_id", turn_id)), outcomes, [dict(score) for score in said.get("scores") or ()])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise AgentEvalError(
            f"{base}: the reply (status {reply.status_code}) has no metrics of a turn; --url takes the address that `serve` has for --web (serve.web)"
        ) from None
