"""Write everything that is generated from the code: the catalog index, the metric and prompt pages, and tables in README.md and docs/.

    python scripts/gen_docs.py                      writes all files whose content changed
    python scripts/gen_docs.py --check              prints files that are out of date; exit status 1 if there are any
    python scripts/gen_docs.py --measure coverage   measures again and writes docs/reference/metrics/coverage.md (some minutes)
    python scripts/gen_docs.py --measure media      measures the table of media metrics in benchmarks/README.md
    python scripts/gen_docs.py --measure sizes      measures the table of extras in docs/get-started/installation.md

Text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is generated. A file isn't out of date if only times differ.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import inspect
import itertools
import json
import re
import sys
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_agenteval.cli import demo
from otel_agenteval.cli.main import COMMANDS, build_parser, command_named
from otel_agenteval.config.loader import variable_of
from otel_agenteval.config.root import Config
from otel_agenteval.config.section import Section, file_form, kind_of, option_paths, options_of, section_of
from otel_agenteval.core import semconv
from otel_agenteval.dialects.capture import CAPTURES
from otel_agenteval.instrumentation.attach import instrument
from otel_agenteval.metrics import names
from otel_agenteval.metrics.descriptions import type_name, value_of
from otel_agenteval.metrics.registry import GROUPS, Metric, catalog, group_of, groups_of, resolve
from otel_agenteval.metrics.spellings import Converted, Spelling, Spellings, Unsupported
from otel_agenteval.metrics.spellings import meaning_of as spelled

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from scripts import moving, promises, prompt_pages  # noqa: E402
from scripts.unwrap import unwrapped  # noqa: E402

_START_NS = 1_767_225_600_000_000_000
_CLOCK = re.compile(r"(?<=\} )([0-9.e-]+) [0-9]{10}\.[0-9]+$", re.MULTILINE)  # value and time of an exemplar

# --- docs/reference/metrics ----------------------------------------------------------------------------------------------------


def metric_pages() -> Iterator[tuple[str, str]]:
    """Yield the file name and text of the index and of one page per family."""
    families: dict[str, list[Metric]] = {}
    for metric in catalog():
        families.setdefault(metric.family, []).append(metric)
    index = [
        "# Metrics\n",
        (
            "This catalog lists every built-in metric. To print a metric's description, run `otel-agenteval explain NAME`. "
            "**●** marks the default metrics, which run without configuration.\n"
        ),
        "Each metric's description starts with a table of properties:\n",
        "| Property | Meaning |\n|---|---|",
        "| value | The unit, whether higher or lower is better, and the default threshold. |",
        "| needs | Turn fields that the metric requires. If one is missing, the score is skipped as `missing:FIELD`. |",
        "| applies to | Turns that the metric scores. Other turns are skipped, without a judge call. However, a metric's method `evaluate`, and composite metrics that contain the metric, can score these turns, often with a vacuous value. |",
        "| uses | Optional turn fields that the metric reads. |",
        "| references | Optional [reference data](../../concepts/reference-data.md) that the metric reads. |",
        "| groups | [Groups](#groups) that contain the metric. |",
        "| runs on | Thread that runs a slow metric. The exported span doesn't contain the scores of slow metrics. |",
        "| extra | The [extra](../../get-started/installation.md#extras) that the metric, or one of its options, requires. |",
        "| also called | Names of the metric in other tools, which you can use in otel-agenteval too. |\n",
        (
            "A score without a value is *skipped* (with a reason), is an *error* (with a type), or has only a label. "
            "A *vacuous* score has a fixed value, because the turn contains nothing to evaluate. Averages in reports exclude vacuous scores. "
            "The paragraph **Detail** lists the metric's own keys in a score's `detail`.\n"
        ),
        "See also: " + " · ".join(_SEE_ALSO) + "\n",
        *_groups(),
    ]
    for family, metrics in sorted(families.items()):
        index.append(f"## [{family}]({family}.md)\n")
        index += [f"- [`{m.name}`]({family}.md#{m.name}){' ●' if m.inline else ''}: {_short(m)}" for m in metrics]
        index.append("")
        about = dict.fromkeys(inspect.getdoc(inspect.getmodule(metric.fn)) or "" for metric in metrics)
        parts = [f"# {family} metrics\n", *(f"{_markdown(doc)}\n" for doc in about)]
        parts += [_section_of(metric) for metric in metrics]
        yield f"{family}.md", "\n".join(parts).replace("(vacuous)", _VACUOUS).rstrip() + "\n"
    yield "README.md", "\n".join(index).rstrip() + "\n"
    yield "other-tools.md", other_tools_page()


_VACUOUS = "([vacuous](../../concepts/metrics.md#results))"
_SEE_ALSO = (
    "[coverage](coverage.md) on recorded turns",
    "[detector accuracy](detectors.md)",
    "[facts that spans rarely contain](facts.md)",
    "[metric names of DeepEval, ragas, promptfoo, MLflow, Phoenix, and others](other-tools.md)",
)


def other_tools_page() -> str:
    """Return the page that maps metric names and parameters of other tools to ours."""
    families = {metric.name: metric.family for metric in catalog()}

    def linked(text: str) -> str:
        words = r"(?<![`\w])(?:code|embed|llm)_\w+(?!`)"
        return re.sub(words, lambda m: f"[`{m[0]}`]({families[m[0]]}.md#{m[0]})" if m[0] in families else m[0], text)

    parts = [unwrapped(_OTHER_TOOLS).rstrip("\n") + "\n", *_presets(linked)]
    for tool in map(names.load_tool, names.TOOLS):
        basis = "Source" if "/" in tool.version else "Version"
        parts.append(f"## {tool.title}\n\nPrefix: `{tool.prefix}:`. {basis}: {tool.version}.\n")
        parts += _spellings_table(tool.parameters, linked)
        accepted = [*_grouped(row for row in tool.metrics.values() if row.ours is not None)]
        if accepted:
            parts.append("| Name | Metric | Options | Notes |\n|---|---|---|---|")
        for named, row in accepted:
            sets = [", ".join(f"`{name}={value!r}`" for name, value in row.preset.items())] if row.preset else []
            options = linked(_cell("<br>".join([*sets, *itertools.starmap(_parameter, row.parameters.items())])))
            note = linked(_cell(_sentences(row.note)))
            parts.append(f"| {named} | {linked(row.ours)} | {options} | {note} |")
        if accepted:
            parts.append("")
        parts.append("| Rejected name | Difference and replacement |\n|---|---|")
        parts += [
            f"| {named} | {linked(_cell(_sentences(row.note)))} |"
            for named, row in _grouped(row for row in tool.metrics.values() if row.ours is None)
        ]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _grouped(rows: Iterable[names.ToolMetric]) -> Iterator[tuple[str, names.ToolMetric]]:
    """Yield rows with equal content only once, with all of their names."""
    groups: dict[str, list[names.ToolMetric]] = {}
    for row in rows:
        groups.setdefault(repr(row._replace(name="")), []).append(row)
    yield from ((", ".join(f"`{row.name}`" for row in group), group[0]) for group in groups.values())


_CODE_OR_SNAKE = re.compile(r"(`[^`]*`)|(?<![\w.=])[a-z]+_[a-z_]+(?![\w=])")


def _parameter(name: str, spelling: Spelling) -> str:
    """Return a parameter of another tool, and its meaning in otel-agenteval."""
    if isinstance(spelling, str):
        return f"`{name}` → `{spelling}`"
    text = spelling.ours if isinstance(spelling, Converted) else spelling.how
    if isinstance(spelling, Unsupported) and not text.startswith(("omit", "to ")):
        text = f"not supported ({text})"
    text = re.sub(r"; ([a-z])", lambda m: f". {m[1].upper()}", text)
    text = _CODE_OR_SNAKE.sub(lambda m: m[0] if m[1] or m[0].startswith(("code_", "llm_")) else f"`{m[0]}`", text)
    if text.startswith(own_name := f"`{name}` ("):  # only the values differ
        return f"`{name}`: {text[len(own_name) : -1]}"
    return f"`{name}`: {text}" if text.startswith(("no", "must", "omit", "to ")) else f"`{name}` → {text}"


def _sentences(note: str) -> str:
    """Turn clauses that are separated by semicolons outside parentheses into sentences."""
    clauses = (
        clause if clause.startswith(("code_", "llm_", "embed_")) else clause[:1].upper() + clause[1:]
        for clause in re.split(r"; (?![^(]*\))", note)
    )
    return f"{'. '.join(clauses)}." if note else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _spellings_table(spellings: Spellings, linked: Callable[[str], str]) -> Iterator[str]:
    if spellings:
        meanings: dict[str, list[str]] = {}
        for name, spelling in spellings.items():
            meanings.setdefault(spelling.how if isinstance(spelling, Unsupported) else spelled(spelling), []).append(f"`{name}`")
        yield "| Common parameter | In otel-agenteval |\n|---|---|"
        for meaning, named in meanings.items():
            yield f"| {', '.join(named)} | {linked(_cell(_sentences(meaning)))} |"
        yield ""


def _groups() -> Iterator[str]:
    yield "## Groups\n"
    yield (
        "You can select these groups in `inline.metrics`. For example, `[default, cost, -code_refusal]` selects the metrics of the groups `default` and `cost`, except `code_refusal`. "
        "In `eval --metrics`, write `@` before a group's name, as in `@cost`. Groups omit metrics whose extra isn't installed.\n"
    )
    yield "| Group | Purpose | Metrics |\n|---|---|---|"
    for name, meaning in GROUPS.items():
        members = group_of(name)
        listed = ", ".join(f"`{member}`" for member in members) if name != "all" else f"{len(members)} metrics"
        yield f"| `{name}` | {meaning} | {listed} |"
    yield ""


def _section_of(metric: Metric) -> str:
    """Return a metric's section of its family page: summary, fields, description and options."""
    text, options = _split(metric.doc)
    summary, _, description = text.partition("\n")
    cut = re.search(r"^(?:Detail|Sources?)\b", description, re.MULTILINE)
    description, ending = (description[: cut.start()], description[cut.start() :]) if cut else (description, "")
    parts = [f"## {metric.name}", _markdown(summary), _table_of(metric), _markdown(description)]
    rows = []
    for p in metric.parameters.values():
        if p.name in metric.spellings:  # another tool's parameter has this name
            continue
        default, kind = "required" if p.required else f"`{json.dumps(p.default)}`", type_name(p.annotation)
        if p.name == "inverse" and metric.direction == "neutral":  # null, false and true mean different things
            default, kind = "unset", "boolean or unset"
        meaning = options.get(p.name) or _generic(metric, p.name)
        rows.append(f"| `{p.name}` | {kind} | {_cell(default)} | {_cell(_markdown(meaning))} |")
    if rows:
        parts.append("\n".join(["| Option | Type | Default | Meaning |", "|---|---|---|---|", *rows]))
    return "\n\n".join(filter(None, [*parts, _markdown(ending)])) + "\n"


def _generic(metric: Metric, option: str) -> str:
    if option == "threshold":
        end = "Highest" if metric.direction == "down" else "Lowest"
        return f"{end} passing value, or `null` for {'no verdict' if metric.threshold is None else f'{metric.threshold:g}'}."
    if option == "ground_truth":
        return "Expected answer. The default is the turn's ground truth. Aliases: `value`, `expected_output`, `expcted_output` (spelled as in Trusys)."
    if option == "inverse" and metric.direction == "neutral":
        return "If unset, the score has no verdict. If `false`, 1 passes and 0 fails. If `true`, the value is reversed: a 1 becomes 0, which fails."
    return "If `true`, value and verdict are reversed." if option == "inverse" else "–"


def _split(doc: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its ``Args`` section, and the description of each parameter."""
    found = re.search(r"\nParameters:\n((?:    .*\n?)+)", doc)
    if found is None:
        return doc, {}
    lines = re.sub(r"\n {8,}", " ", found[1]).splitlines()
    named = (line.strip().partition(": ") for line in lines)
    meanings = {name: meaning for names, _, meaning in named for name in names.split(", ")}
    return doc[: found.start()] + doc[found.end() :], meanings


def _table_of(metric: Metric) -> str:
    rows = [("value", value_of(metric).replace("option threshold", "option `threshold`"))]
    if metric.needs:
        rows.append(("needs", ", ".join(f"`{need}`" for need in metric.needs)))
    if metric.applies_to:
        rows.append(("applies to", _markdown(metric.applies_to)))
    for name, facts in (("uses", metric.uses), ("references", metric.references)):
        if facts:
            rows.append((name, ", ".join(f"`{fact}`" for fact in facts)))
    if groups := groups_of(metric):
        rows.append(("groups", ", ".join(f"`{group}`" for group in groups)))
    if metric.live:
        set_there = ", ".join(f"`{name}={value!r}`" for name, value in metric.live.items())
        rows.append(
            ("default in a configuration", f"{set_there}, if the entry has this name and sets at most `threshold` and `inverse`")
        )
    if metric.heavy:
        thread = "a separate thread" if metric.media else "the worker thread"
        rows.append(("runs on", thread))
    if metric.extra:
        rows.append(("extra", f"`[{metric.extra}]`"))
    if metric.aliases:
        rows.append(("also called", ", ".join(f"`{alias}`" for alias in metric.aliases)))
    return "| | |\n|---|---|\n" + "\n".join(f"| {key} | {value} |" for key, value in rows)


def _markdown(doc: str) -> str:
    """Convert a docstring to Markdown, with code in single backticks and indented definitions as lists."""
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
    text = unwrapped("\n".join(out)).replace("``", "`")
    return re.sub(r"^- ([a-z_, ]+):", r"- **\1**:", text, flags=re.MULTILINE)


_OTHER_TOOLS = """\
# Metric names of other tools

You can use metric names and parameters of other evaluation tools. A name works if an otel-agenteval metric
measures the same thing in the same direction. If the configuration contains any
other metric name from these tools, otel-agenteval rejects the configuration with an error that names a replacement.

- You can write each name with its tool's prefix, as in `deepeval:FaithfulnessMetric`.
- You can omit the prefix, as in `KnowledgeRetentionMetric`, if the name means the same in all tools that use it. Metric names of otel-agenteval, and of the five systems with a [preset](#presets), take precedence.
- You can write parameter names of the tool or of otel-agenteval, in snake case or camel case. If both names of a parameter are set, otel-agenteval reports an error.
- If you use a metric name of one of the five systems, that system's parameter units and, usually, its default threshold apply.

```yaml
metrics:
  - deepeval:GEval: {criteria: The answer names a date., threshold: 0.6}
  - promptfoo:not-icontains: {value: as an AI}
  - agenteval:MRRMetric: {maxRank: 5, passThreshold: 50}
```

Tables of accepted names have these columns:

| Column | Content |
|---|---|
| Metric | otel-agenteval metric that the name runs |
| Options | parameters that the name sets, such as `threshold=0.5`, and then the tool's parameters with their equivalents in otel-agenteval (`original` → `equivalent`) |
| Notes | differences from the tool's metric, and instructions |

In the tables of rejected names, *original* means the tool's metric.

## Presets

A preset runs selected metrics of another evaluation system with that system's thresholds. To use
a preset, set `preset: NAME` in the configuration, or pass `--preset NAME` to `eval`, `experiment`, or `backfill`. The preset's metrics run
in addition to yours. If you configure one of these metrics yourself, your entry replaces the preset's entry. To run only the preset's
metrics, pass `--metrics @NAME` to `eval` or `experiment`.

```yaml
preset: hpd
metrics:
  - code_icontains: {value: refund}
  - code_contains: {value: order}
    policy: trend
```

As in HPD-Agent, the preset `hpd` sets `policy: gate` for most deterministic metrics with a verdict. In this example, `code_icontains`
becomes a gate, but `code_contains` doesn't, because an entry's own `policy` takes precedence. otel-agenteval's default metrics keep their
policy, `trend`.

"""


def _presets(linked: Callable[[str], str]) -> Iterator[str]:
    pages = ", ".join(f"[{preset.title}](../../guides/moving-from-{name}.md)" for name, preset in names.presets().items())
    yield f"The guide for each system lists all names, parameters, and differences: {pages}.\n"
    yield "| Preset | System | Turn metrics | Conversation metrics |\n|---|---|---|---|"
    for name, preset in names.presets().items():
        cells = (", ".join(linked(_preset_entry(entry)) for entry in part) for part in (preset.metrics, preset.conversation))
        yield f"| `{name}` | {preset.title} | {' | '.join(cells)} |"
    yield ""


def _preset_entry(entry: str | Mapping[str, Mapping[str, Any]]) -> str:
    ((name, given),) = ({entry: {}} if isinstance(entry, str) else entry).items()
    metric, preset, *_ = resolve(name)
    options = ", ".join(f"`{key}={value!r}`" for key, value in {**preset, **given}.items())
    return f"{metric.name} ({options})" if options else metric.name


# --- parts of other files --------------------------------------------------------------------------------------------


def default_pack() -> str:
    """Return the table of default metrics."""
    rows = [f"| [`{m.name}`](../reference/metrics/{m.family}.md#{m.name}) | {_short(m)} |" for m in catalog() if m.inline]
    return "| Metric | Description |\n|---|---|\n" + "\n".join(rows)


def _short(metric: Metric) -> str:
    text = re.sub(r" \((?:1\.0|1|0) = [^)]*\)\.?$", "", metric.summary).replace("``", "`").rstrip(".")
    return f"{text}." if ". " in text else text


FIRST_SIGHT = ROOT / "tests" / "data" / "first_sight.json"
"""Number of facts in each set of recordings of new frameworks, and how many facts were read correctly before any fix."""


_MOST, _LISTED = 0.94, 0.8
"""Share of correct facts for which an agent counts as read well, and share below which its errors are listed."""


def first_sight() -> str:
    """Return a sentence on the share of facts that were read correctly before any fix."""
    sets = json.loads(FIRST_SIGHT.read_text(encoding="utf-8"))
    facts, right = (sum(one[key] for one in sets.values()) for key in ("facts", "right"))
    most = sum(one["right"] >= _MOST * one["facts"] for one in sets.values())
    whole = sum(one["right"] == one["facts"] for one in sets.values())
    return (
        f"We recorded {len(sets)} agents with combinations of framework, SDK, and instrumentation that were new to otel-agenteval. "
        f"Before any fix, otel-agenteval read {100 * right / facts:.0f} % of the {facts:,} facts in these recordings correctly. "
        f"For {most} agents, the share was at least {100 * _MOST:.0f} %. For {whole} of these agents, all facts were correct."
    )


def first_sight_table() -> str:
    """Return a table of the agents whose facts were most often wrong before any fix."""
    sets = json.loads(FIRST_SIGHT.read_text(encoding="utf-8"))
    rows = [
        f"| {name} | {one['facts']} | {100 * one['right'] / one['facts']:.1f} % | {_sentences(one['wrong'])} |"
        for name, one in sorted(sets.items(), key=lambda item: (-item[1]["right"] / item[1]["facts"], item[0]))
        if one["right"] < _LISTED * one["facts"]
    ]
    return (
        f"The table lists the agents with a share below {100 * _LISTED:.0f} %, and why facts were wrong:\n\n"
        "| Agent | Facts | Correct before any fix | Reasons for wrong facts |\n|---|---|---|---|\n" + "\n".join(rows)
    )


def options(root: type[Section] = Config) -> str:
    """Return a table of all configuration options."""
    written, every = root().to_dict(), option_paths(root)
    paths = [path for path in every if not any(other[: len(path)] == path and other != path for other in every)]
    rows = [
        f"| `{'.'.join(path)}` | `{_default(written, path, root)}` | {_allowed(path, root)} | `{variable_of(path)}` | {_described(path, root)} |"
        for path in paths
    ]
    return "| Option | Default | Allowed values | Environment variable | Meaning |\n|---|---|---|---|---|\n" + "\n".join(rows)


def commands() -> str:
    """Return a section for each command, with its arguments and exit codes."""
    parsers = _subparsers(build_parser())
    inner_of = {name: _subparsers(parsers[name]) or {"": parsers[name]} for name in COMMANDS}
    counts = Counter(row for inside in inner_of.values() for parser in inside.values() for row in _arguments(parser))
    shared = [row for row in counts if counts[row] >= _SHARED_BY]
    parts = [
        "## Shared arguments",
        "Several commands accept these arguments. Each command's section lists the shared arguments that the command accepts.",
        _table(shared),
    ]
    for name in COMMANDS:
        parts += [f"## {name}", _with_code(parsers[name].description or "")]
        for inner_name, parser in inner_of[name].items():
            if inner_name:
                parts.append(f"`{name} {inner_name}`: {_with_code(parser.description or '')}")
            rows = _arguments(parser)
            named = ", ".join(f"`{spelt}`" for spelt, said in rows if (spelt, said) in shared)
            others = [f"| {named} | See [shared arguments](#shared-arguments). |"] if named else []
            parts.append("\n".join([_table([row for row in rows if row not in shared]), *others]))
        codes = [f"| {code} | {help_sentences(meaning)} |" for code, meaning in command_named(name).EXIT_CODES.items()]
        parts.append("\n".join(["| Exit code | Meaning |", "|---|---|", *codes]))
    return "\n\n".join(parts)


_SHARED_BY = 3
"""An argument of at least this many commands is documented only once."""


def _arguments(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    return [(spelt, said) for spelt, said in map(_argument, parser._actions) if said]


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(["| Argument | Meaning |", "|---|---|", *(f"| `{spelt}` | {said} |" for spelt, said in rows)])


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return next(found, {})


def _argument(action: argparse.Action) -> tuple[str, str]:
    """Return an argument's syntax and help. The help is "" for ``--help`` and internal arguments."""
    choices = _choice([f"`{choice}`" for choice in action.choices or ()])
    value = f" {action.metavar or action.dest.upper()}" if action.nargs != 0 and action.option_strings else ""
    spelt = action.option_strings[0] + value if action.option_strings else str(action.metavar or action.dest.upper())
    if action.dest == "help" or action.help in (None, argparse.SUPPRESS):
        return spelt, ""
    said = str(action.help) % {**vars(action), "prog": "otel-agenteval"}
    return spelt.replace("|", "\\|"), _cell(
        help_sentences("; ".join(filter(None, [said, choices and f"allowed values: {choices}"])))
    )


_CODE_IN_HELP = re.compile(
    r"(`[^`]*`)|(?<=default: )(?:table|jsonl|text|info|agent|llm_relevance|service\.version|[\w-]+\.jsonl|[0-9.]+:[0-9]+)(?=\))"
    r"|\b(?:https?|kafka|redis|clickhouse)://[^\s;)]*[^\s;).,]|\bapp:answer\b|\b\w+=\w+(?:,\w+=\w+)+|\b[0-9]+[hd]\b|\b2026-[0-9T:-]+[0-9]|\bservice\.version\b"
    r"|--[a-z][a-z-]*(?: (?:jsonl|FILE|daft)\b|\b)|\b(?:outlets|serve|judge|agenteval)(?:\.[a-z_]+)+\b|\bOTEL_AGENTEVAL_[A-Z_]+\b|@NAME\b|\bturn\.v1\b"
    r"|(?<![\w.])/(?:metrics|healthz|readyz)\b|(?<!\w)\.(?:jsonl?|csv|tsv|parquet|yaml|gz|zst)\b|\b(?:turn|case)_id\b|\bground_truth\b|\bpolicy: gate\b"
)


def _with_code(text: str) -> str:
    return _CODE_IN_HELP.sub(lambda found: found[1] or f"`{found[0]}`", text)


def help_sentences(text: str) -> str:
    """Convert command-line help to sentences, with code in backticks."""
    clauses = (clause.strip().rstrip(".") for clause in re.split(r"; (?![^(]*\))", _with_code(text)))
    return ". ".join(clause[:1].upper() + clause[1:] for clause in clauses) + "."


def _default(values: Any, path: tuple[str, ...], root: type[Section]) -> str:
    for key in path:
        if values is None:  # the section is null by default. Use the defaults of its class
            return _default_of(path, root)
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, str) else json.dumps(values)


def _default_of(path: tuple[str, ...], root: type[Section]) -> str:
    section, name = _field(path, root)
    field = options_of(section)[name]
    if field.default is ...:
        return "required"
    default = file_form(field.default, field.metadata, field.annotation)
    return default if isinstance(default, str) else json.dumps(default)


def _allowed(path: tuple[str, ...], root: type[Section]) -> str:
    section, name = _field(path, root)
    field = options_of(section)[name]
    kind = kind_of(field.metadata, field.annotation)
    found = kind.described if kind is not None else _choice([f"`{word}`" for word in _literals(field.annotation)])
    assert found, f"{'.'.join(path)}: the type of an option needs a Kind, which says in the documentation what it may be"
    return found


def _choice(words: list[str]) -> str:
    return f"{', '.join(words[:-1])}{',' * (len(words) > 2)} or {words[-1]}" if len(words) > 1 else "".join(words)


def _literals(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) is typing.Literal:
        yield from typing.get_args(annotation)
    else:
        for part in typing.get_args(annotation):
            yield from _literals(part)


def _described(path: tuple[str, ...], root: type[Section]) -> str:
    section, field = _field(path, root)
    owner = next(cls for cls in section.__mro__ if field in inspect.get_annotations(cls))
    body = _class(owner).body
    at = next(i for i, node in enumerate(body) if _declares(node, field))
    text = ast.literal_eval(body[at + 1].value)  # type: ignore[attr-defined]  # the string below the field
    plain = " ".join(text.split()).replace("``", "`").rstrip(".") + "."
    return re.sub(r"^(Maximum |Minimum |)(CPU |)[Ss]econds\b", _as_time, plain)  # stored in seconds, written as 5m


def _as_time(seconds: re.Match[str]) -> str:
    return f"{seconds[1]}{seconds[2]}{'time' if seconds[1] else 'Time'}"


def _field(path: tuple[str, ...], root: type[Section]) -> tuple[Any, str]:
    section: Any = root
    for key in path[:-1]:
        section = section_of(options_of(section)[key].annotation)
    return section, path[-1]


@functools.cache
def _class(section: type) -> ast.ClassDef:
    found = ast.parse(inspect.getsource(section)).body[0]
    assert isinstance(found, ast.ClassDef)
    return found


def _declares(node: ast.stmt, field: str) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == field


def captures() -> str:
    """Return a table of the settings with which each instrumentation captures content."""
    rows = [
        "| Instrumentation | Captured by default | Settings to turn capture on | Settings to turn capture off | Note |",
        "|---|---|---|---|---|",
    ]
    for one in CAPTURES:
        on, off = (" and ".join(f"`{name}={value}`" for name, value in found.items()) for found in (one.variables, one.off))
        if not one.by_default and not on:
            on, note = re.sub(r"docs/(get-started/\S+\.md)", r"see [Spring AI](../\1)", one.code), ""
        else:
            note = one.code
        if note.endswith(" turns it off"):
            off, note = note.removesuffix(" turns it off"), ""
        note = f"{note[:1].upper()}{note[1:]}." if note else "–"
        rows.append(f"| {one.name} | {'yes' if one.by_default else 'no'} | {on or '–'} | {off or '–'} | {note} |")
    return "\n".join(rows)


def instruments() -> str:
    """Return a table of all emitted metrics, with their OTLP and Prometheus names."""
    rows = [
        f"| `{item.name}` | `{semconv.prometheus_name(item)}` | {item.kind}{f', {item.unit}' if item.unit else ''} "
        f"| {', '.join(f'`{name}`' for name in item.attributes) or '–'} | {item.description.rstrip('.')}. |"
        for item in semconv.INSTRUMENTS
    ]
    return "| OTLP name | Prometheus name | Kind and unit | Attributes | Description |\n|---|---|---|---|---|\n" + "\n".join(rows)


class Recorded:
    """Output of the demo: the span event of its loop, and a page of Prometheus metrics."""

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
        """Return the event as the SDK prints it."""
        return f"```json\n{json.dumps(self.event, indent=2)}\n```"

    def metrics(self) -> str:
        """Return the excerpt that the demo prints."""
        lines = "\n".join(demo.excerpt(self.page))
        return f"```text\n{lines}\n```"


# --- files -----------------------------------------------------------------------------------------------------------


WITH_INSTALL_LINES = ("examples/langgraph_agent.py", "examples/pydantic_ai_agent.py", "deploy/systemd/otel-agenteval.service")


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each generated file and its text."""
    rows = ",\n".join(f"{json.dumps(metric.name)}: {json.dumps(index_row(metric))}" for metric in catalog() if metric.is_ours)
    yield ROOT / "otel_agenteval" / "metrics" / "catalog_index.json", f"{{\n{rows}\n}}\n"
    yield from prompt_pages.pages()
    yield from ((ROOT / name, text) for name, text in moving.pages())
    for name, text in metric_pages():
        yield ROOT / "docs" / "reference" / "metrics" / name, text
    recorded = Recorded()
    parts: dict[str, Callable[[], str]] = {
        "default pack": default_pack,
        "commands": commands,
        "options": options,
        "instruments": instruments,
        "captures": captures,
        "first sight": first_sight,
        "first sight table": first_sight_table,
        "span event": recorded.span_event,
        "metrics excerpt": recorded.metrics,
    }
    coverage = ROOT / "docs" / "reference" / "metrics" / "coverage.md"
    yield coverage, coverage.read_text(encoding="utf-8").partition(f"{promises.TITLE}\n")[0] + promises.section()
    others = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md") if "metrics" not in path.parts)
    for name in ("README.md", *others, *WITH_INSTALL_LINES):
        text = (ROOT / name).read_text(encoding="utf-8")
        for part, make in parts.items():
            text = renewed(text, part, make)
        yield ROOT / name, install_lines(text)


def index_row(metric: Metric) -> dict[str, Any]:
    """Return a metric's index row: module, aliases and values other than defaults, which are known without importing the module."""
    module = metric.fn.__module__
    defaults = {"family": module.rsplit(".", 1)[-1], "live": {}}
    row: dict[str, Any] = {"module": module.removeprefix("otel_agenteval.metrics."), "aliases": [*metric.aliases]}
    for field in dataclasses.fields(Metric):
        value = getattr(metric, field.name)
        if field.name not in ("name", "source") and value != defaults.get(field.name, field.default):
            row[field.name] = value
    return row


def renewed(text: str, part: str, make: Callable[[], str]) -> str:
    """Return a page with a generated part updated, if the page has this part and more than times changed."""
    begin, end = f"<!-- begin {part} -->\n", f"\n<!-- end {part} -->"
    before, found, rest = text.partition(begin)
    old, _, after = rest.partition(end)
    if not found or timeless(old) == timeless(new := make()):
        return text
    return f"{before}{begin}{new}{end}{after}"


INSTALLED_AS = "./otel-agenteval"
"""Package name in ``pip install`` commands of the docs: a local checkout, until ``otel-agenteval`` is published."""
_INSTALL = re.compile(r"pip install [^`\n]*")
_PACKAGE = re.compile(r"(?<![\w/.-])(?:\./)?otel-agenteval(?=[\['\"`\s]|$)")


def install_lines(text: str) -> str:
    """Replace the package in each ``pip install`` command by :data:`INSTALLED_AS`."""
    return _INSTALL.sub(lambda line: _PACKAGE.sub(INSTALLED_AS, line[0]), text)


def timeless(text: str) -> str:
    """Replace times, which differ in each run."""
    return _CLOCK.sub(r"\1 TIME", text)


def measured(name: str) -> tuple[Path, str]:
    """Measure a table, and return its file and the file's new text."""
    from scripts import install_sizes, media_costs, metric_coverage

    if name == "coverage":
        recorded = metric_coverage.read_recordings(metric_coverage.archives())
        return metric_coverage.PAGE, metric_coverage.page(metric_coverage.measured(recorded), recorded)
    module = {"media": media_costs, "sizes": install_sizes}[name]
    before, begin, rest = module.PAGE.read_text(encoding="utf-8").partition(f"<!-- begin {module.PART} -->\n\n")
    _, end, after = rest.partition(f"\n\n<!-- end {module.PART} -->")
    return module.PAGE, "".join((before, begin, "\n".join(module.table()), end, after))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check whether files are out of date")
    parser.add_argument("--measure", choices=("coverage", "media", "sizes"), help="measure only this table again")
    options = parser.parse_args()
    stale = []
    for path, text in [measured(options.measure)] if options.measure else pages():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
            if not options.check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if stale:
        print("out of date:" if options.check else "written:", *stale)
    return int(bool(stale) and options.check)


if __name__ == "__main__":
    sys.exit(main())
