"""``otel-agenteval ui``: show turns and scores in a browser."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.loader import load_config
from ..core import jsonio
from ..core.errors import AgentEvalError, ConfigError
from ..outlets.store.postgres import without_password
from ..outlets.turn_text import number_of
from . import OK, UNUSABLE
from .options import add_config, check_address

if TYPE_CHECKING:  # the command's help doesn't import the server
    from ..core.score import Score
    from ..core.turn import Turn
    from ..evaluation.scored_turn import ScoredTurn
    from ..page.api import Api, Reader
    from ..server.http_server import Head

EXIT_CODES = {
    OK: "a signal, such as Control+C, stopped the command",
    UNUSABLE: "an argument is invalid, PATH can't be read or is empty, or the address can't be used",
}
_ADDRESS = "127.0.0.1:19475"
_AT_ONCE = 200
_OF_TURNS = ("turn_id", "conversation_id", "service", "agent", "start", "duration_s", "cost_usd", "input", "output", "ground_truth")  # fmt: skip
_AMOUNTS = {"code_latency": "duration_s", "code_cost": "cost_usd"}
"""Mapping from metric to the turn field that contains the metric's value."""
_SQLITE = b"SQLite format 3\0"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="+",
        help="score store (file or PostgreSQL address), recorded traces (file or folder), or JSON Lines from `eval` or `experiment`; recorded traces are scored as in `eval`; several PATHs are shown as versions, named after their files; a store must be the only PATH",
    )  # fmt: skip
    parser.add_argument("--port", help=argparse.SUPPRESS)
    parser.add_argument(
        "--web", metavar="HOST:PORT", default=_ADDRESS,
        help=f"address of the web UI (default: {_ADDRESS}); port 0 means any free port",
    )  # fmt: skip
    parser.add_argument("--labels", metavar="FILE", help="file for the labels that you set in the web UI; `calibrate` reads it")
    parser.add_argument(
        "--trace-url", metavar="URL",
        help="address of a trace in your tracing backend, with the placeholder `{trace_id}`; the web UI then links to the trace",
    )  # fmt: skip
    parser.add_argument("--no-content", action="store_true", help="hide messages, inputs, and outputs")
    parser.add_argument("--metrics", metavar="A,B", help="for recorded traces: run only these metrics")
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    from ..config.serve import PageOptions
    from ..outlets.store.postgres import is_address
    from ..page.api import Api, Options

    given = {name: value for name, value in (("trace_url", args.trace_url), ("labels", args.labels)) if value is not None}
    if args.port is not None:
        raise ConfigError(f"--port: unknown option. Use --web 127.0.0.1:{args.port}")
    check_address("--web", args.web)
    config = load_config(args.config, overrides={"serve": {"web": args.web, "page": given}})
    page: PageOptions = config.serve.page
    with contextlib.ExitStack() as stack:
        path = args.paths[0]
        for one in args.paths:
            if is_address(one) and len(args.paths) > 1:
                raise ConfigError(
                    f"{without_password(one)}: a store can't be combined with other paths. Pass only the store, and compare its versions in the web UI"
                )
            if not is_address(one) and not Path(one).exists():
                raise ConfigError(f"{one}: file or folder not found")
        if len(args.paths) > 1 or not (is_address(path) or _is_sqlite(Path(path))):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="otel-agenteval-"))
            path = str(stored(args.paths, Path(folder) / "scores.db", config, args.metrics))
        names = _versions(args.paths)
        options = Options(not args.no_content, page.trace_url, page.labels, (names[0], names[1]) if len(names) == 2 else None)
        asyncio.run(_serve(Api(path, options), str(config.serve.web), config.serve.token or ()))
    return OK


async def _serve(api: Api, address: str, tokens: Sequence[str]) -> None:
    """Serve the web UI until SIGINT or SIGTERM. If other machines can reach the address without a token, raise ConfigError."""
    from ..outlets.store.reader import StoreReader
    from ..page.api import Reader
    from ..server.auth import Guard, is_loopback, is_token
    from ..server.http_server import HttpServer
    from ..server.responses import Refusal
    from ..server.web import Web, credentials_in

    if not tokens and not is_loopback(address):
        raise ConfigError(f"--web: {address} is reachable from other machines without a token. Set serve.token, or use 127.0.0.1")

    def authorize(head: Head) -> Reader:
        name, given = credentials_in(head.headers.get("authorization")) or ("someone", None)
        if tokens and not is_token(given, tokens):
            raise Refusal("unauthenticated", "a token is required")
        return Reader("label", None, name)

    StoreReader(api.path).close()  # raises an error for a broken store before the start

    def report_fault(where: str, error: BaseException) -> None:
        print(f"{where}: {type(error).__name__}", file=sys.stderr)

    web = Web(Guard(address, (), (), serves_page=True), authorize, api, report_fault)
    server = HttpServer(web)
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    try:
        await server.start("--web", address)
        print(f"http://{server.address}{'/compare' if api.options.compared else ''}  (press Ctrl+C to stop)", flush=True)
        await over.wait()
    finally:
        await server.stop(0.5)
        web.close()


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def stored(paths: Sequence[str | Path], store: Path, config: Any, names: str | None) -> Path:
    from ..config.outlets import StoreOptions
    from ..core.telemetry import Telemetry
    from ..outlets.store.outlet import StoreOutlet

    wanted: StoreOptions = load_config(
        {"outlets": {"store": {"path": str(store), "content": True, "max_age": "365d", "max_bytes": "100GiB"}}}, env={}
    ).outlets.store  # type: ignore[assignment]
    outlet = StoreOutlet(wanted, Telemetry(), lambda: "ui", config.privacy.redact)
    for path, version in zip(map(Path, paths), _versions(paths), strict=True):
        if _is_sqlite(path):
            raise ConfigError(
                f"{path}: a store can't be combined with other paths. Pass only the store, and compare its versions in the web UI"
            )
        files = [str(path)]
        if path.is_dir():
            files = sorted(str(one) for one in path.rglob("*") if one.is_file() and not one.name.startswith("."))
        has_scores = len(files) == 1 and _has_scores(files[0])
        turns = _of_scores(files[0]) if has_scores else _of_recordings(files, config, names)
        count = 0
        while batch := list(itertools.islice(turns, _AT_ONCE)):
            for one in batch if len(paths) > 1 else ():
                _as_version(one, version)
            outlet.emit(batch)
            count += len(batch)
        if not count:
            raise AgentEvalError(f"{path}: contains neither turns nor scores")
        print(f"{path}: {number_of(count, 'turn')}", file=sys.stderr)
    outlet.close()
    return store


def _versions(paths: Sequence[str | Path]) -> list[str]:
    """Return a version name for each path: the file's name or, if two files have the same name, the path."""
    names = [Path(path).name for path in paths]
    return [str(path) if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True)]


def _as_version(scored: ScoredTurn, name: str) -> None:
    """Make the IDs of a turn and its scores unique to the version ``name``, because several versions can contain the same turn."""
    scored.root.resource = {**scored.root.resource, "service.version": name}
    scored.turn.turn_id = f"{name}:{scored.turn.turn_id}"
    for score in scored.scores:
        if score.result_id:
            score._result_id = f"{name}:{score.result_id}"


def _of_recordings(files: list[str], config: Any, names: str | None) -> Iterator[ScoredTurn]:
    from ..judging.models import embedder_from, judge_from
    from ..judging.session import CommandBudget
    from ..turns.recordings import load_turns
    from .scoring import Evaluation, close_models

    found: list[ScoredTurn] = []

    def collect(turn: Turn, about: Any, scored: Any, redactor: Any) -> str:
        found.append(_scored_turn(turn, [score for score, _ in scored]))
        return ""

    judge, embedder, budget = judge_from(config), embedder_from(config), CommandBudget(config)
    within = {"judge": budget.judge(judge), "embedder": budget.embedder(embedder)}
    work = Evaluation(config, names, (collect,), with_content=False, **within)
    for _ in work((turn.turn_id, turn) for turn in load_turns(files)):  # type: ignore[misc]  # the key is only for sorting
        yield from found
        found.clear()
    close_models(judge, embedder, budget)


def _scored_turn(turn: Turn, scores: list[Score]) -> ScoredTurn:
    from ..evaluation.scored_turn import Root, ScoredTurn

    trace, _, span = turn.turn_id.rpartition("-")
    resource = {"service.name": turn.service} if turn.service else {}
    return ScoredTurn(turn, Root(_hex(trace), _hex(span), resource=resource), scores)


def _hex(text: str) -> int:
    try:
        return int(text.rpartition("/")[2], 16)
    except ValueError:
        return 0


def _has_scores(file: str) -> bool:
    with Path(file).open("rb") as stream:
        line = stream.readline(1 << 20)
    try:
        found = jsonio.loads(line)
    except ValueError:
        return False
    return isinstance(found, dict) and "metric" in found and "turn_id" in found


def _of_scores(file: str) -> Iterator[ScoredTurn]:
    from ..core.score import FIELDS, Score
    from ..core.turn import Turn

    turns: dict[str, tuple[dict[str, Any], list[Score]]] = {}
    for number, line in enumerate(Path(file).read_bytes().splitlines(), 1):
        try:
            row = jsonio.loads(line)
            known: dict[str, Any] = {"llm_calls": [{"model": row["model"]}]} if row.get("model") else {}
            known |= {key: row[key] for key in _OF_TURNS if row.get(key)}
            if row.get("case_id"):
                known["references"] = {"case_id": row["case_id"]}
            amount = _AMOUNTS.get(str(row["metric"]))
            if amount is not None and row.get("value") is not None:
                known[amount] = row["value"]
            score = Score.from_dict({key: row[key] for key in FIELDS if row.get(key) is not None})
        except (ValueError, KeyError, TypeError, AgentEvalError) as error:
            raise AgentEvalError(f"{file}:{number}: must be a score written by `eval` or `experiment`: {error}") from None
        about, scores = turns.setdefault(row["turn_id"], ({}, []))
        about |= known
        scores.append(score)
    for about, scores in turns.values():
        yield _scored_turn(Turn.from_dict(about), scores)
