"""The command line: ``otel-agenteval``."""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import AgentEvalError, ConfigError, nearest
from ..metrics.bound_metric import BoundMetric
from ..metrics.registry import Metric, catalog, resolve
from ..report.table import columns
from ..server import logformat
from ..turns.recordings import Reading, load_turns

if TYPE_CHECKING:  # what only some commands need is imported by them
    from ..config.root import Config
    from ..judging.models import Bench, Embedder, Judge, LocalEmbedder
    from ..report import Report

_log = logging.getLogger("otel_agenteval")

NOTHING_READ, GATE_FAILED, BAD_USE = 2, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit status (0 well, 1 a gate failed, 2 wrong use or nothing to read)."""
    parser = _parser()
    args = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # agents write what a terminal's or file's encoding may not have
        sys.stdout.reconfigure(errors="backslashreplace")
    if hasattr(args, "log_format"):
        logformat.set_up(args.log_format, args.log_level)
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except AgentEvalError as error:
        if getattr(args, "log_format", None) == "json":
            _log.error("%s", error)
        else:
            print(f"otel-agenteval: {error}", file=sys.stderr)
        return BAD_USE
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="otel-agenteval", description="Scores for agent turns, from OpenTelemetry traces.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    files = argparse.ArgumentParser(add_help=False)
    files.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="OTLP/JSON lines: traces and logs; - is standard input; .gz and .zst are unpacked",
    )

    turns = commands.add_parser(
        "turns", parents=[files], help="print the turns of recorded traces, one JSON object (form turn.v1) per line"
    )
    turns.set_defaults(run=_turns)

    evaluate = commands.add_parser("eval", parents=[files], help="score the turns of recorded traces")
    evaluate.add_argument(
        "--metrics", metavar="A,B", help="only these; with the parameters and policy that the configuration gives them"
    )
    evaluate.add_argument(
        "--config", metavar="FILE", help="YAML configuration (default: OTEL_AGENTEVAL_CONFIG_FILE and environment)"
    )
    evaluate.add_argument(
        "--format",
        action="append",
        choices=("jsonl", "table", "junit", "markdown", "html"),
        help="one JSON object per score (the default), a table per turn, JUnit XML, a summary for a pull request, or a page; repeatable",
    )
    evaluate.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="file of the format in the same place (default: standard output)",
    )
    evaluate.add_argument("--gate", action="store_true", help="exit with status 1 when a metric whose policy is gate fails")
    evaluate.add_argument(
        "--baseline",
        metavar="FILE",
        help="compare with a former run, as --format jsonl wrote it; with --gate its gates may not regress",
    )
    evaluate.add_argument(
        "--fail-on-regression",
        metavar="A,B|all",
        help="with --gate and --baseline: also exit with status 1 when one of these regresses",
    )
    evaluate.set_defaults(run=_eval)

    _add_worker(commands)
    _add_backfill(commands)
    _add_store(commands)

    metrics = commands.add_parser("metrics", help="list the metrics")
    metrics.add_argument("--json", action="store_true", help="as one JSON list, with parameters and aliases")
    metrics.add_argument("--family", metavar="NAME", help="only those of a family")
    metrics.add_argument("--kind", choices=("code", "embed", "llm"), help="only those that compute, embed, or ask a judge")
    metrics.add_argument("--need", metavar="FIELD", help="only those that need a field of the turn, as in output or tool_calls")
    metrics.add_argument("--seed", metavar="NAME", help="only those of another catalogue, as in trusys or hpd")
    metrics.set_defaults(run=_metrics)

    explain = commands.add_parser("explain", help="print a metric's documentation")
    explain.add_argument("name", metavar="NAME", help="canonical name, or a name in another catalogue (trusys:icontains)")
    explain.set_defaults(run=_explain)

    check = commands.add_parser("check-config", help="validate a configuration and print what is in effect")
    check.add_argument("file", metavar="FILE")
    check.set_defaults(run=_check_config)

    demo = commands.add_parser("demo", help="a scripted agent, its turns and scores, and /metrics; no network, no key")
    demo.add_argument(
        "--once", action="store_true", help="exit after printing instead of serving /metrics until Ctrl-C, as without a terminal"
    )
    demo.add_argument("--port", type=int, default=19464, help="loopback port of /metrics (default %(default)s)")
    demo.set_defaults(run=_demo)

    judge = commands.add_parser("judge", help="check the configured judge").add_subparsers(required=True, metavar="COMMAND")
    probe = judge.add_parser("probe", help="try to talk it into a verdict, in more than fifty ways, and report how many succeed")
    probe.add_argument(
        "--config", metavar="FILE", help="YAML configuration (default: OTEL_AGENTEVAL_CONFIG_FILE and environment)"
    )
    probe.add_argument(
        "--max-rate", type=_share, default=0.0, metavar="SHARE", help="exit with status 1 when more succeed (default %(default)g)"
    )
    probe.add_argument("--json", action="store_true", help="as one JSON object, with each attempt")
    probe.set_defaults(run=_probe)

    serve = commands.add_parser(
        "serve", parents=[_logs()], help="the sidecar: take OTLP from Collectors and SDKs, score its turns, serve /metrics"
    )
    serve.add_argument(
        "--config", metavar="FILE", help="YAML configuration (default: OTEL_AGENTEVAL_CONFIG_FILE and environment)"
    )
    for name, what in (
        ("grpc", "OTLP/gRPC (127.0.0.1:14317)"),
        ("http", "OTLP/HTTP, /healthz and /readyz (127.0.0.1:14318)"),
        ("metrics", "/metrics, /healthz and /readyz (127.0.0.1:19464)"),
        ("web", "the API (127.0.0.1:19465)"),
    ):
        serve.add_argument(f"--{name}", metavar="HOST:PORT", help=f"address of {what}; off is none")
    serve.add_argument(
        "--processes",
        type=_processes,
        default=1,
        metavar="N",
        help="one for each core, on ports 10 apart, for a Collector that routes by trace id; /metrics is for all",
    )
    serve.add_argument("--journal", metavar="DIR", help="keep requests here until their turns are handed over")
    serve.add_argument(
        "--insecure",
        action="store_true",
        help="listen to other machines although neither token nor client certificates are asked for",
    )
    serve.set_defaults(run=_serve)
    return parser


def _logs() -> argparse.ArgumentParser:
    """Options of commands that run for long."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--log-format",
        choices=logformat.FORMATS,
        default=logformat.DEFAULT_FORMAT,
        help="of the lines on standard error: text (the default), or one JSON object each",
    )
    options.add_argument(
        "--log-level",
        choices=logformat.LEVELS,
        default=logformat.DEFAULT_LEVEL,
        help="the least that is logged (default %(default)s)",
    )
    return options


def _processes(text: str) -> int:
    if text.isdigit() and 1 <= int(text) <= 256:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not allowed; a number from 1 to 256 is")


def _add_worker(commands: Any) -> None:
    worker = commands.add_parser(
        "worker", parents=[_logs()], help="the engine beyond one machine: spans from Kafka, judge jobs from Redis"
    )
    worker.add_argument(
        "--spans",
        metavar="URL",
        help="kafka://BROKER:9092,BROKER:9092/TOPIC?group=NAME&logs=TOPIC: spans (OTLP protobuf or JSON) of a consumer group",
    )
    worker.add_argument("--judge", metavar="URL", help="redis://HOST:6379: work on the judge jobs of this server")
    worker.add_argument(
        "--config", metavar="FILE", help="YAML configuration (default: OTEL_AGENTEVAL_CONFIG_FILE and environment)"
    )
    worker.add_argument("--metrics", metavar="HOST:PORT", help="address of /metrics; off is none")
    worker.add_argument("--insecure", action="store_true", help="serve /metrics to other machines")
    worker.set_defaults(run=_worker)


def _worker(args: argparse.Namespace) -> int:
    from .worker import run

    return run(args)


def _add_store(commands: Any) -> None:
    """``why`` and ``export``."""
    store = argparse.ArgumentParser(add_help=False)
    store.add_argument("--store", metavar="FILE", help="the store (default: outlets.store of the configuration)")
    store.add_argument(
        "--config", metavar="FILE", help="YAML configuration (default: OTEL_AGENTEVAL_CONFIG_FILE and environment)"
    )
    why = commands.add_parser("why", parents=[store], help="say for each metric what became of it on a turn, and by what")
    why.add_argument("turn_id", metavar="TURN_ID", help="TRACE_ID-SPAN_ID of the turn's root, as in agenteval.turn.id")
    why.add_argument("--url", metavar="URL", help="ask a running sidecar instead: its address of --web")
    why.add_argument("--json", action="store_true", help="as one JSON object")
    why.set_defaults(run=_why)
    export = commands.add_parser("export", parents=[store], help="write the scores of a store: JSON lines, CSV or Parquet")
    export.add_argument("--out", metavar="FILE", help="file to write (default: standard output); its ending says the format")
    export.add_argument("--format", choices=("jsonl", "csv", "parquet"), help="default: by the file's ending, or jsonl")
    export.add_argument("--since", metavar="TIME", help="only turns kept since: 24h, 7d, 2026-11-20, 2026-11-20T12:00")
    export.add_argument("--until", metavar="TIME", help="only turns kept before")
    for name in ("agent", "service", "metric"):
        export.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=f"only this {name}; repeatable")
    export.add_argument("--revisions", action="store_true", help="also what was superseded by a revision")
    export.set_defaults(run=_export)


def _why(args: argparse.Namespace) -> int:
    from .why import run_why

    return run_why(args)


def _export(args: argparse.Namespace) -> int:
    from .export import run_export

    return run_export(args)


def _add_backfill(commands: Any) -> None:
    command = commands.add_parser(
        "backfill", parents=[_logs()], help="score traces that were stored: Parquet, OTLP/JSON, ClickHouse"
    )
    command.add_argument(
        "source",
        metavar="SOURCE",
        help="a Parquet or OTLP/JSON file, a folder of either, or clickhouse://user:password@host:8123/database?table=otel_traces",
    )
    command.add_argument(
        "--out", metavar="DIR", required=True, help="folder of the results; a run goes on where the last one stopped"
    )
    command.add_argument("--metrics", metavar="A,B", help="only these; with the parameters that the configuration gives them")
    command.add_argument(
        "--config", metavar="FILE", help="YAML configuration (default: OTEL_AGENTEVAL_CONFIG_FILE and environment)"
    )
    command.add_argument("--dry-run", action="store_true", help="say what would be asked and what it would cost, and ask nobody")
    command.add_argument("--buckets", type=int, metavar="N", help="parts that are scored one after the other (default: by size)")
    command.add_argument(
        "--shard", metavar="K/N", help="only the K-th of N parts of the traces, from 0: one process of a Kubernetes Job"
    )
    command.add_argument("--engine", choices=("local", "daft"), default="local", help="this process, or Daft on all cores")
    command.add_argument("--ray", metavar="ADDRESS", help="with --engine daft: a Ray cluster, or auto for this machine's")
    command.add_argument("--progress", action="store_true", help="show progress also where there is no terminal")
    command.set_defaults(run=_backfill)


def _backfill(args: argparse.Namespace) -> int:
    from .backfill import command_backfill

    return command_backfill(args)


def _version() -> str:
    from .. import __version__

    return f"otel-agenteval {__version__}"


# --- turns, eval


def _turns(args: argparse.Namespace) -> int:
    reading = Reading(_progress())
    for turn in load_turns(args.files, reading=reading):
        print(json.dumps(turn.to_dict(), ensure_ascii=False, default=str))
    return _end_of(reading)


def _eval(args: argparse.Namespace) -> int:
    from ..config.loader import load_config
    from ..evaluation.redaction import Redactor, leaving, redacted_score
    from ..evaluation.references import ReferenceSources, evaluate
    from ..judging.models import embedder_from, judge_from
    from ..report import About, Report, Run, compare, open_outputs, parameters_hash

    config = load_config(args.config)
    metrics = _chosen(args, config)
    references = ReferenceSources(config)
    judge, embedder = judge_from(config), embedder_from(config)
    _say_what_nobody_judges(metrics, judge, embedder)
    _say_what_lacks_a_parameter(metrics)
    watch = _watched(args, metrics)
    former = None if args.baseline is None else Run.read(args.baseline)
    hashes = {metric._facts: parameters_hash(metric) for metric in metrics}
    reading, run = Reading(_progress()), Run()
    with open_outputs(args.format or ["jsonl"], args.out, [*args.files, args.config or "-"]) as outputs:
        for turn in load_turns(args.files, reading=reading):
            scores = evaluate(turn, metrics, references, judge=judge, embedder=embedder, redact=config.privacy.redact)
            about = About.of(turn)  # now that it has its case
            scored, redactor = [], Redactor(config.privacy.redact)
            for score in [redacted_score(score, redactor) for score in scores]:
                if score.status != "skipped":
                    score.about = (turn.turn_id, b"%d" % turn.revision)  # its id is the one that every other door gives it
                parameters = hashes[score.facts]
                run.add(about, score, parameters)
                scored.append((score, parameters))
            shown = leaving(turn, redactor) if "table" in (args.format or ()) else turn  # no other format looks at content
            for output in outputs:
                output.add(shown, about, scored)
        status = _end_of(reading)
        if args.gate and not reading.turns:
            status = NOTHING_READ  # nothing was checked
        _end_asking(judge, embedder)
        report = Report(run, None if former is None else compare(former, run, Path(args.baseline).name, watch))
        if not status:
            for output in outputs:
                output.finish(report)
    return status or _gated(args, report)


def _say_what_nobody_judges(
    metrics: Sequence[BoundMetric], judge: Judge | Bench | None, embedder: Embedder | LocalEmbedder | None
) -> None:
    for kind, given, section in (("llm", judge, "judge"), ("embed", embedder, "embedder")):
        names = dict.fromkeys(metric.name for metric in metrics if metric.metric.kind == kind)
        if names and given is None:
            where = f"set {section}.base_url and {section}.model in the configuration"
            print(f"skipped, for there is no {section} ({where}): {', '.join(names)}", file=sys.stderr)


def _say_what_lacks_a_parameter(metrics: Sequence[BoundMetric]) -> None:
    for metric in metrics:
        if metric.missing is not None:
            print(f"{metric.name}: an error on every turn, for its parameter {metric.missing!r} is required", file=sys.stderr)


def _end_asking(judge: Judge | Bench | None, embedder: Embedder | LocalEmbedder | None) -> None:
    """Say what judge and embedder took, and release their connections."""
    for asked in (judge, embedder):
        if asked is None:
            continue
        asked.close()
        total = asked.total()
        if total.requests:
            cost = "cost unknown" if total.unpriced == total.requests - total.failed else f"{total.cost_usd:.4g} USD"
            unpriced = f" (and {total.unpriced} requests of unknown cost)" if total.unpriced and "USD" in cost else ""
            counts = f"{total.requests:,} requests, {total.failed:,} without an answer, {total.input_tokens + total.output_tokens:,} tokens"
            print(f"{asked.model}: {counts}, {cost}{unpriced}", file=sys.stderr)


def _watched(args: argparse.Namespace, metrics: Sequence[BoundMetric]) -> set[str]:
    """The metrics whose regression is a failure, beside the gates."""
    if args.fail_on_regression is None:
        if args.gate and not any(metric.policy == "gate" for metric in metrics):
            print("--gate: no metric has policy gate in the configuration, so none can fail", file=sys.stderr)
        return set()
    if not args.gate or args.baseline is None:
        raise ConfigError("--fail-on-regression needs --baseline FILE and --gate")
    names = _names(args.fail_on_regression, "--fail-on-regression")
    watch = {name if name == "all" else resolve(name)[0].name for name in names}
    for name in sorted(watch - {"all"}):
        if name not in {metric.name for metric in metrics}:
            raise ConfigError(f"--fail-on-regression: {name} is not evaluated in this run; name it in --metrics or --config")
        if resolve(name)[0].direction == "neutral":
            raise ConfigError(f"--fail-on-regression: {name} is neutral: it can change, but not get worse")
    return watch


def _gated(args: argparse.Namespace, report: Report) -> int:
    if not args.gate or not report.failures:
        return 0
    for failure in report.failures:
        print(failure, file=sys.stderr)
    return GATE_FAILED


def _chosen(args: argparse.Namespace, config: Config) -> list[BoundMetric]:
    from ..evaluation.selection import select_group, select_metrics

    selected = select_metrics(config)
    if args.metrics is None:
        return selected
    chosen: list[BoundMetric] = []
    for name in _names(args.metrics, "--metrics"):
        if name.startswith("@"):
            chosen += [bound for bound in select_group(config, name[1:], selected) if bound not in chosen]
            continue
        metric, preset = resolve(name)
        configured = [] if preset else [bound for bound in selected if bound.name == metric.name]
        chosen += configured or [BoundMetric(metric, preset)]
    return chosen


def _names(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError(f"{option}: at least one name is required")
    return names


def _end_of(reading: Reading) -> int:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if reading.bad:
        print(f"{reading.bad} of {reading.lines} lines or records could not be read", file=sys.stderr)
    if not reading.spans and not reading.logs:
        print("no spans found in the given files", file=sys.stderr)
        return NOTHING_READ
    if not reading.turns:
        print(f"{reading.spans:,} spans were read, but no agent or model call is among them: no turns", file=sys.stderr)
    return 0


def _progress() -> Any:
    if not sys.stderr.isatty():
        return None

    def show(reading: Reading) -> None:
        print(f"\rread {reading.lines:,} lines, {reading.spans:,} spans …", end="", file=sys.stderr, flush=True)

    return show


# --- metrics, explain


def _metrics(args: argparse.Namespace) -> int:
    found = _filtered(list(catalog()), args)
    if args.json:
        print(json.dumps([_described(metric) for metric in found], indent=1, default=str))
        return 0
    if not found:
        print("no metric is all of that", file=sys.stderr)
        return 0
    width = columns(sys.stdout)
    family = None
    for metric in sorted(found, key=lambda m: (m.family, m.name)):
        if metric.family != family:
            print(metric.family if family is None else f"\n{metric.family}")
            family = metric.family
        lead = f"  {'*' if metric.inline else ' '} {metric.name:<28} "
        print(textwrap.fill(_headline(metric), width, initial_indent=lead, subsequent_indent=" " * len(lead)))
    print("\n* in the default inline pack.  More on one: otel-agenteval explain NAME")
    return 0


def _filtered(metrics: list[Metric], args: argparse.Namespace) -> list[Metric]:
    """The metrics that the filters leave; a filter that nothing can match names what it could be."""
    choices: dict[str, tuple[str | None, Callable[[Metric], set[str]]]] = {
        "family": (args.family, lambda metric: {metric.family}),
        "need": (args.need, lambda metric: set(metric.needs)),
        "seed": (args.seed, lambda metric: {alias.split(":")[0] for alias in metric.aliases if ":" in alias}),
    }
    for name, (wanted, words_of) in choices.items():
        if wanted is not None:
            known = set().union(*(words_of(metric) for metric in catalog()))
            if wanted not in known:
                close = nearest(wanted, known, 1)[0]
                raise ConfigError(f"--{name}: {wanted!r} is unknown; did you mean {close!r}? (known: {', '.join(sorted(known))})")
            metrics = [metric for metric in metrics if wanted in words_of(metric)]
    return [metric for metric in metrics if args.kind in (None, metric.kind)]


_SCALE = re.compile(r" \((?:1\.0|1|0) = [^)]*\)\.?$")


def _headline(metric: Metric) -> str:
    """The summary without what the numbers mean: in a list the sentence says it."""
    return _SCALE.sub(".", metric.summary).replace("``", "")


def _described(metric: Metric) -> dict[str, Any]:
    parameters = {
        p.name: {"type": type_name(p.annotation), **({"required": True} if p.required else {"default": p.default})}
        for p in metric.parameters.values()
    }
    return {
        "name": metric.name, "kind": metric.kind, "family": metric.family, "type": metric.type, "unit": metric.unit,
        "direction": metric.direction, "threshold": metric.threshold, "version": metric.version, "needs": list(metric.needs),
        "parameters": parameters, "aliases": list(metric.aliases), "inline": metric.inline, "heavy": metric.heavy, "extra": metric.extra, "summary": metric.summary,
        "doc": metric.doc,
    }  # fmt: skip


_BOUNDS = (("ge", "≥ "), ("gt", "> "), ("le", "≤ "), ("lt", "< "), ("min_length", "at least "))


def type_name(annotation: Any) -> str:
    """A parameter's type for a person: ``float 0..1 or null``, ``list of str``, ``"mean" or "max"``."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        bounds = {word: getattr(item, key) for item in args[1:] for key, word in _BOUNDS if getattr(item, key, None) is not None}
        if bounds.keys() == {"≥ ", "≤ "}:
            return f"{type_name(args[0])} {bounds['≥ ']}..{bounds['≤ ']}"
        return " ".join([type_name(args[0]), ", ".join(f"{word}{bound}" for word, bound in bounds.items())]).strip()
    if origin is typing.Literal:
        return " or ".join(json.dumps(arg) for arg in args)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_name(arg) for arg in args))
    if origin in (list, tuple, set, frozenset):
        return f"list of {type_name(args[0])}"
    if origin is dict:
        return f"mapping of {type_name(args[1])}"
    if annotation is type(None):
        return "null"
    return "anything" if annotation is Any else getattr(annotation, "__name__", str(annotation))


def _explain(args: argparse.Namespace) -> int:
    metric, preset = resolve(args.name)
    print(f"{metric.name}  ({metric.family})\n")
    print(metric.doc.replace("``", "`"))
    print(f"\nValue:       {value_of(metric)}")
    print(f"Needs:       {', '.join(metric.needs) or 'nothing'}")
    print(f"Default:     {'in the inline pack' if metric.inline else 'off; configure it under metrics'}")
    if metric.heavy:
        print("Heavy:       runs on the worker alone, so it has no span event")
    if metric.extra:
        print(f"Extra:       pip install 'otel-agenteval[{metric.extra}]'")
    for p in metric.parameters.values():
        default = "required" if p.required else f"default {json.dumps(preset.get(p.name, p.default))}"
        if p.name in preset and not p.required:
            default += f", which {args.name} sets"
        print(f"Parameter:   {p.name} ({type_name(p.annotation)}), {default}")
    if metric.aliases:
        print(
            textwrap.fill(
                ", ".join(metric.aliases), 100, initial_indent="Also called: ", subsequent_indent=" " * 13, break_on_hyphens=False
            )
        )
    return 0


def value_of(metric: Metric) -> str:
    """What the numbers of a metric mean, in a line."""
    if metric.type == "boolean":
        return "1 passes, 0 fails" if metric.direction != "neutral" else "1 found, 0 not found; neither is a failure"
    unit = "" if metric.unit == "1" else f"{metric.unit}, "
    better = {"up": "more is better", "down": "less is better", "neutral": "neither more nor less is better"}[metric.direction]
    if metric.threshold is None:
        return f"{unit}{better}"
    return f"{unit}{better}; passes {'up to' if metric.direction == 'down' else 'from'} {metric.threshold:g}"


# --- check-config, demo


def _check_config(args: argparse.Namespace) -> int:
    from ..config.loader import load_config
    from ..config.writing import effective_yaml
    from ..evaluation.selection import select_metrics
    from ..judging.models import embedder_from, judge_from

    if not Path(args.file).exists():
        raise ConfigError(f"{args.file}: no such file")
    config = load_config(args.file)
    metrics = select_metrics(config)
    judge_from(config), embedder_from(config)  # they say what is missing
    _say_what_lacks_a_parameter(metrics)
    print(effective_yaml(config), end="")
    names = ", ".join(metric.name for metric in metrics)
    print(
        textwrap.fill(f"valid; {len(metrics)} metrics on every turn: {names}", 100, initial_indent="# ", subsequent_indent="#   ")
    )
    return 0


def _demo(args: argparse.Namespace) -> int:
    from .demo import run

    return run(once=args.once, port=args.port)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not allowed; a share from 0 to 1 is")
    return value


def _probe(args: argparse.Namespace) -> int:
    from .judge import run_probe

    return run_probe(args)


def _serve(args: argparse.Namespace) -> int:
    from .serve import run

    return run(args)
