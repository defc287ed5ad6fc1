"""``otel-agenteval why``: the outcome of each metric on a turn, and its reason.

A running sidecar remembers its last turns, and a store has all that it keeps. The command asks either.
"""

from __future__ import annotations

import argparse
import json
import urllib.parse
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..config.serve import ServeOptions
from ..config.types import http_url
from ..core.errors import AgentEvalError, ConfigError
from ..core.tenancy import qualified
from ..outlets.sqlite.store import StoreReader, store_path
from .exit_codes import FAILED, OK, UNUSABLE
from .options import add_store

_TIMEOUT = 10.0

EXIT_CODES = {
    OK: "the outcomes were printed",
    FAILED: "the turn is unknown",
    UNUSABLE: "wrong use, or neither the store nor the sidecar can be read",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_store(parser)
    parser.add_argument("turn_id", metavar="TURN_ID", help="TRACE_ID-SPAN_ID of the turn's root, as in agenteval.turn.id")
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
        print(json.dumps({"turn_id": args.turn_id, "metrics": found}, ensure_ascii=False))
    elif found is None:
        print(f"no turn {args.turn_id} is known")
    else:
        width = max((len(metric) for metric in found), default=0)
        for metric, outcome in sorted(found.items(), key=lambda item: (item[1] == "scored", item[1].startswith("skipped"), item)):
            print(f"{metric:<{width}}  {outcome}")
    return OK if found is not None else FAILED


def _of_store(path: str | None, turn_id: str, config: Config) -> dict[str, str] | None:
    with StoreReader(store_path(path, config)) as reader:
        return reader.why(turn_id)


def _token_for(turn_id: str, options: ServeOptions) -> str | None:
    """The token of the API, which covers all turns, or the token of the turn's tenant."""
    if options.token is not None:
        return options.token
    return next((tenant.token for tenant in options.tenants if turn_id.startswith(qualified(tenant.name, ""))), None)


def _of_url(url: str, turn_id: str, config: Config) -> dict[str, str] | None:
    import httpx

    try:
        base = http_url(url)
    except ValueError as error:
        raise ConfigError(f"--url: {url!r} is not allowed; {error}") from None
    token = _token_for(turn_id, config.serve)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    try:
        reply = httpx.get(f"{base}/api/why/{urllib.parse.quote(turn_id, safe='')}", headers=headers, timeout=_TIMEOUT)
    except httpx.HTTPError as error:
        raise AgentEvalError(f"{base}: cannot be reached: {type(error).__name__}") from None
    if reply.status_code == 401:
        raise AgentEvalError(
            f"{base}: a token is required: serve.token in the configuration (--config, OTEL_AGENTEVAL_SERVE__TOKEN)"
        )
    try:
        metrics: Any = reply.json()["metrics"]
        return None if metrics is None else {str(metric): str(outcome) for metric, outcome in metrics.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise AgentEvalError(
            f"{base}: the reply (status {reply.status_code}) has no metrics of a turn; --url takes the address that `serve` has for --web (serve.web)"
        ) from None
