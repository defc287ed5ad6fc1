"""Write the parts of the documentation that the code knows best.

    python scripts/gen_docs.py            # rewrites README.md and docs/ in place
    python scripts/gen_docs.py --check    # exit status 1 when a file is out of step, and says which

``docs/metrics/`` is made from the registry as a whole. In other files a part between ``<!-- begin NAME -->`` and
``<!-- end NAME -->`` is: tables of metrics, options, instruments and names, and what the demo's agent leaves on a span and
on ``/metrics``. Times on the clock differ in each run; they alone do not put a file out of step.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BeforeValidator

from otel_agenteval.cli import demo
from otel_agenteval.cli.descriptions import type_name, value_of
from otel_agenteval.config import loader, otlp, selector, serve, service, types, writing
from otel_agenteval.config.metrics import _names
from otel_agenteval.config.root import Config, option_paths
from otel_agenteval.config.section import _section_of
from otel_agenteval.core import semconv
from otel_agenteval.instrumentation.attach import instrument
from otel_agenteval.metrics.registry import Metric, catalog

ROOT = Path(__file__).parent.parent
_START_NS = 1_767_225_600_000_000_000
_CLOCK = re.compile(r"(?<=\} )([0-9.e-]+) [0-9]{10}\.[0-9]+$", re.MULTILINE)  # value and time of an exemplar

# --- docs/metrics ----------------------------------------------------------------------------------------------------


def metric_pages() -> Iterator[tuple[str, str]]:
    """(file, text) of the index and of one page per family, with everything that is known of each metric."""
    families: dict[str, list[Metric]] = {}
    for metric in catalog():
        families.setdefault(metric.family, []).append(metric)
    index = [
        "# Metrics\n",
        "Written by `scripts/gen_docs.py` from the metrics themselves; `otel-agenteval explain NAME` prints the same.\n",
        "A metric whose *needs* are absent is *skipped*: it has a reason and no value, is counted and never sent.",
        "What it *uses*, and its *references*, it reads where they are known.",
        "One that fails has an error type and no value.",
        "*Vacuous* is a good value that only means that there was nothing to evaluate; no average has it.",
        "**●** marks the default pack, which is evaluated on every turn.\n",
    ]
    for family, metrics in sorted(families.items()):
        index.append(f"## [{family}]({family}.md)\n")
        index += [f"- [`{m.name}`]({family}.md#{m.name}){' ●' if m.inline else ''}: {_short(m)}" for m in metrics]
        index.append("")
        about = dict.fromkeys(inspect.getdoc(inspect.getmodule(metric.fn)) or "" for metric in metrics)
        parts = [f"# {family}\n", *(f"{_markdown(doc)}\n" for doc in about)]
        parts += [f"## {metric.name}\n\n{_markdown(metric.doc)}\n\n{_table_of(metric)}\n" for metric in metrics]
        yield f"{family}.md", "\n".join(parts).rstrip() + "\n"
    yield "README.md", "\n".join(index).rstrip() + "\n"


def _table_of(metric: Metric) -> str:
    rows = [("value", value_of(metric)), ("needs", ", ".join(f"`{need}`" for need in metric.needs) or "nothing")]
    for name, facts in (("uses", metric.uses), ("references", metric.references)):
        if facts:
            rows.append((name, ", ".join(f"`{fact}`" for fact in facts)))
    rows.append(("default pack", "yes" if metric.inline else "no"))
    if metric.heavy:
        rows.append(("heavy", "runs on the worker alone, so it has no span event"))
    if metric.extra:
        rows.append(("extra", f"`[{metric.extra}]`"))
    for p in metric.parameters.values():
        default = "required" if p.required else f"default `{json.dumps(p.default)}`"
        rows.append((f"`{p.name}`", f"{type_name(p.annotation)}; {default}"))
    if metric.aliases:
        rows.append(("also called", ", ".join(f"`{alias}`" for alias in metric.aliases)))
    return "| | |\n|---|---|\n" + "\n".join(f"| {key} | {value} |" for key, value in rows)


def _markdown(doc: str) -> str:
    """A docstring as Markdown: code in single backticks, indented definitions as lists."""
    out: list[str] = []
    for line in doc.strip().splitlines():
        if line.startswith("        ") and out:
            out[-1] += f" {line.strip()}"
        elif line.startswith("    "):
            if not out[-1].startswith("- "):
                out.append("")
            out.append(f"- {line.strip()}")
        else:
            out.append(line)
    text = "\n".join(out).replace("``", "`")
    return re.sub(r"^- ([a-z_, ]+):", r"- **\1**:", text, flags=re.MULTILINE)


# --- parts of other files --------------------------------------------------------------------------------------------


def default_pack() -> str:
    """What is evaluated on every turn, one row per metric."""
    rows = [f"| [`{m.name}`](docs/metrics/{m.family}.md#{m.name}) | {_short(m)} |" for m in catalog() if m.inline]
    return "| metric | what it says |\n|---|---|\n" + "\n".join(rows)


def _short(metric: Metric) -> str:
    return re.sub(r" \((?:1\.0|1|0) = [^)]*\)\.?$", "", metric.summary).replace("``", "`").rstrip(".")


def options() -> str:
    """Every option of the configuration."""
    written = Config().to_dict()
    paths = [path for path in option_paths() if not any(other[: len(path)] == path and other != path for other in option_paths())]
    rows = [
        f"| `{'.'.join(path)}` | `{_default(written, path)}` | {_allowed(path)} | `{loader._variable(path)}` | {_described(path)} |"
        for path in paths
    ]
    return "| option | default | value | variable | meaning |\n|---|---|---|---|---|\n" + "\n".join(rows)


def _default(written: Any, path: tuple[str, ...]) -> str:
    for key in path:
        if written is None:  # a section that is off: what its options would be
            return _default_of(path)
        written = written.get(key) if isinstance(written, dict) else None
    return written if isinstance(written, str) else json.dumps(written)


def _default_of(path: tuple[str, ...]) -> str:
    section, name = _field(path)
    field = section.model_fields[name]
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    validators = writing._validators(field.metadata)
    if types.size in validators:
        return types.size_text(default)
    if isinstance(default, float):
        return types.duration_text(default)
    return default if isinstance(default, str) else json.dumps(default)


_KINDS = {
    types._positive: "duration above 0", types.seconds: "duration", types._delay: "`auto` or duration", types.size: "size",
    types._count: "whole number from 1", types._switch: "`true` or `false`", types._port: "port",
    types._file: "path", _names: "`default` or list of names",
    types.http_url: "http(s) address", types._text: "text", service._prices: "mapping of prices",
    otlp._headers: "mapping of headers", types._usd: "US dollars", types._rate: "share from 0 to 1",
    types._address: "HOST:PORT", serve._hosts: "list of names", selector._some_patterns: "text or list of texts",
}  # fmt: skip


def _allowed(path: tuple[str, ...]) -> str:
    section, name = _field(path)
    field = section.model_fields[name]
    annotated = typing.Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    found = next((_KINDS[kind] for kind in _validators(annotated) if kind in _KINDS), None)
    if found is None and (name != "metrics" or section is serve.ServeOptions):
        found = " or ".join(f"`{word}`" for word in _literals(annotated))
    return found or _SHAPES.get(".".join(path), "list of metrics, see [below](#metrics)")


_SHAPES = {
    "serve.tenants": "list of tenants, see [the sidecar](sidecar.md#tenants)",
    "judge.budget.metrics": "bounds by metric, see [judging](judging.md#budget-and-failures)",
    "judge.queue.url": "address",
    "groups": "groups by their names, see [below](#groups)",
    "references.accept_from": "list, or mapping",
    "references.given": "list, see [references](references.md)",
}


def _validators(annotation: Any) -> Iterator[Any]:
    for part in typing.get_args(annotation):
        if isinstance(part, BeforeValidator):
            yield part.func
        yield from _validators(part)


def _literals(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) is typing.Literal:
        yield from typing.get_args(annotation)
    else:
        for part in typing.get_args(annotation):
            yield from _literals(part)


def _described(path: tuple[str, ...]) -> str:
    section, field = _field(path)
    owner = next(cls for cls in section.__mro__ if field in inspect.get_annotations(cls))
    body = _class(owner).body
    at = next(i for i, node in enumerate(body) if _declares(node, field))
    text = ast.literal_eval(body[at + 1].value)  # type: ignore[attr-defined]  # the string below the field
    plain = " ".join(text.split()).replace("``", "`").rstrip(".")
    return plain.replace("Seconds", "Time", 1)  # they are read as seconds, and written as 5m


def _field(path: tuple[str, ...]) -> tuple[Any, str]:
    section: Any = Config
    for key in path[:-1]:
        section = _section_of(section.model_fields[key].annotation)
    return section, path[-1]


@functools.cache
def _class(section: type) -> ast.ClassDef:
    found = ast.parse(inspect.getsource(section)).body[0]
    assert isinstance(found, ast.ClassDef)
    return found


def _declares(node: ast.stmt, field: str) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == field


def instruments() -> str:
    """Every metric that leaves, under both of its names."""
    rows = [
        f"| `{item.name}` | `{semconv.prometheus_name(item)}` | {item.kind}{f', {item.unit}' if item.unit else ''} "
        f"| {', '.join(f'`{name}`' for name in item.attributes) or '–'} | {item.description.rstrip('.')} |"
        for item in semconv.INSTRUMENTS
    ]
    return "| OTLP | Prometheus | kind, unit | attributes | what |\n|---|---|---|---|---|\n" + "\n".join(rows)


class Recorded:
    """What the demo's agent leaves behind: the span event of its loop, and a page of metrics."""

    def __init__(self) -> None:
        provider, exporter = demo.new_provider(), InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        handle = instrument(tracer_provider=provider, config=Config(), prometheus_port=0)
        for _ in demo.play(provider, handle, start_ns=_START_NS):
            pass
        self.page = demo.scrape(demo.metrics_address(handle))
        handle.shutdown()
        events = [event for span in exporter.get_finished_spans() for event in json.loads(span.to_json())["events"]]
        self.event = next(
            event
            for event in events
            if event["attributes"][semconv.EVALUATION_NAME] == "code_repeated_tool_calls"
            and not event["attributes"][semconv.PASSED]
        )

    def span_event(self) -> str:
        """The event as the SDK prints it."""
        return f"```json\n{json.dumps(self.event, indent=2)}\n```"

    def metrics(self) -> str:
        """The same excerpt that the demo prints."""
        lines = "\n".join(demo.excerpt(self.page))
        return f"```text\n{lines}\n```"


# --- files -----------------------------------------------------------------------------------------------------------


def pages() -> Iterator[tuple[Path, str]]:
    """Each generated file and what should stand in it."""
    for name, text in metric_pages():
        yield ROOT / "docs" / "metrics" / name, text
    recorded = Recorded()
    parts: dict[str, Callable[[], str]] = {
        "default pack": default_pack,
        "options": options,
        "instruments": instruments,
        "span event": recorded.span_event,
        "metrics excerpt": recorded.metrics,
    }
    for name in ("README.md", "docs/configuration.md", "docs/outlets.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for part, make in parts.items():
            begin, end = f"<!-- begin {part} -->\n", f"\n<!-- end {part} -->"
            if begin in text:
                before, _, rest = text.partition(begin)
                old, _, after = rest.partition(end)
                new = make()
                text = f"{before}{begin}{old if timeless(old) == timeless(new) else new}{end}{after}"
        yield ROOT / name, text


def timeless(text: str) -> str:
    """The text without what the clock puts into it."""
    return _CLOCK.sub(r"\1 TIME", text)


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` compare; the exit status."""
    stale = []
    for path, text in pages():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT))
            if "--check" not in arguments:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if stale:
        print("out of step:" if "--check" in arguments else "written:", *stale)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
