"""Load turns from recorded telemetry.

Supported formats are OTLP/JSON lines (which the Collector's file exporter writes) and exports from other tools.
"""

from __future__ import annotations

import codecs
import functools
import gzip
import io
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ..core import jsonio
from ..core.display import escaped
from ..core.errors import AgentEvalError, NotASpan
from ..core.extras import require
from ..core.turn import Turn
from ..core.turn_cost import add_cost
from ..dialects.reader import CALLER, UnreadTrace, unread_trace
from ..spans.exports import otlp_lines
from ..spans.otlp import OtlpLog, from_json
from ..spans.record import MAX_VALUE_CHARS, LogPart, SpanRecord, cut_long_values, is_more_complete, join_logs
from .lost_tools import is_tool_alone, lone_tool_in, with_tools
from .readings import Readings
from .relations import stitch
from .roots import SpanGroup, split
from .stitching import reader_of

Report = Callable[[str], None]
"""Function that receives one line of text per error in the recordings."""
Fault = Callable[[str, int | None, str], None]
"""Function that receives an error's file, line number (or None, if the error concerns the whole file), and text."""
Unread = Callable[[UnreadTrace], None]
_MOST_REPORTED = 10
ANSWER_KEYS = ("output", "actual_output", "answer", "response", "prediction")
"""Possible names of the column that contains the answer, most likely name first."""
_CASE_KEYS = frozenset(("case_id", "input", "ground_truth", "references", "expected_output"))
_HEAD = 16_384
_NODE = b"  traceId: '"
_NODE_TEXT = "output of Node.js's ConsoleSpanExporter; export OTLP to `otel-agenteval serve` or a Collector with a file exporter"
_OTHER_KINDS = (
    (b"PAR1", "a Parquet file; use `otel-agenteval backfill`"),
    (b"\xff\xfe", "UTF-16 text; convert the file to UTF-8"),
    (b"\xfe\xff", "UTF-16 text; convert the file to UTF-8"),
)


@dataclass
class Reading:
    """Counts of lines, spans, log records, and turns read so far. ``on_progress`` is called after every thousand lines."""

    on_progress: Callable[[Reading], None] | None = None
    lines: int = 0
    bad: int = 0
    spans: int = 0
    logs: int = 0
    turns: int = 0
    scopes: Counter[str] = field(default_factory=Counter)


def load_turns(
    paths: Iterable[str | Path] | str | Path, *, report: Report | None = None, reading: Reading | None = None
) -> Iterator[Turn]:
    """Yield the turns in recorded traces, sorted by start time.

    Args:
        paths: files of OTLP/JSON lines with traces and logs in any order, or exports of other tools (:mod:`..spans.exports`).
            ``-`` is standard input. ``.gz`` and ``.zst`` files are decompressed.
        report: function that receives one text (such as ``file:line: reason``) per file, line, or span that can't be read. By
            default, up to ten errors per file are printed to standard error.
        reading: counts to update while reading.

    Raises:
        AgentEvalError: a file can't be opened.
    """
    if isinstance(paths, (str, Path)):
        paths = [paths]
    seen = reading if reading is not None else Reading()
    for turn in turns_of(read_items(paths, seen, report or to_stderr)):
        seen.turns += 1
        yield turn


def turns_of(items: Iterable[SpanRecord | OtlpLog]) -> Iterator[Turn]:
    """Yield the turns in spans and log records, sorted by start time. ``items`` can be in any order, and all stay in memory."""
    readings = Readings(math.inf)
    for _, turn in read_turns(wholes_of(items, readings.note_unread), readings):
        yield turn
    readings.finish()


def read_turns(groups: Iterable[SpanGroup], readings: Readings) -> Iterator[tuple[SpanGroup, Turn]]:
    """Yield (spans, turn) for each group. A turn is counted in ``readings`` when the caller requests the next turn."""
    for group in groups:
        turn = turn_of(group)
        yield group, turn
        readings.note(turn, reader_of(group))


def turn_of(group: SpanGroup) -> Turn:
    turn = reader_of(group).turn("recorded_file", group.all_seen)
    add_cost(turn)
    return turn


def wholes_of(items: Iterable[SpanRecord | OtlpLog], unread: Unread = lambda trace: None) -> list[SpanGroup]:
    """Return one span group per turn, by start time. If a trace without a turn seems related to agents, call ``unread``."""
    groups = [group for found in traces_of(items, unread) for group in found]
    groups.sort(key=lambda group: group.root.start_ns)
    turns, left = with_tools(stitch([group for group in groups if not is_tool_alone(group)]), filter(is_tool_alone, groups))
    for tool in left:
        unread(UnreadTrace(tool.root.scope, frozenset(), CALLER))
    return turns


def traces_of(items: Iterable[SpanRecord | OtlpLog], unread: Unread = lambda trace: None) -> Iterator[list[SpanGroup]]:
    """Yield one list per trace: its turns, a lone tool call, or nothing. Turns with several traces aren't joined yet."""
    traces: dict[int, dict[int, SpanRecord]] = {}
    logs: list[OtlpLog] = []
    for item in items:
        if isinstance(item, OtlpLog):
            logs.append(item)
            continue
        spans = traces.setdefault(item.trace_id, {})
        earlier = spans.get(item.span_id)  # exporters can send a span twice (retries) or before it ended
        if earlier is None or is_more_complete(item, earlier):
            spans[item.span_id] = item
    parts: dict[tuple[int, int], list[LogPart]] = {}
    for log in logs:
        parts.setdefault((log.trace_id, log.span_id), []).append(log.part)
    loose: dict[int, list[LogPart]] = {}
    for (trace_id, span_id), found in parts.items():
        if (record := traces.get(trace_id, {}).get(span_id)) is not None:
            join_logs(record, found)
        else:
            loose.setdefault(trace_id, []).extend(found)
    for trace_id, spans in traces.items():
        records = [*spans.values()]
        split_off = split(records, loose=loose.get(trace_id, ())) or lone_tool_in(records)
        if not split_off and (found_unread := unread_trace(records)) is not None:
            unread(found_unread)
        yield split_off


def to_stderr(line: str) -> None:
    sys.stderr.write(f"{escaped(line)}\n")


def read_items(paths: Iterable[str | Path], seen: Reading, report: Report) -> Iterator[SpanRecord | OtlpLog]:
    faults = RecordingErrors(report)
    for path, number, line in read_lines(paths, seen, faults):
        before = seen.spans + seen.logs
        yield from items_in(line, seen, functools.partial(faults, path, number))
        if seen.spans + seen.logs > before:
            faults.readable(path)
    faults.end()


def read_lines(paths: Iterable[str | Path], seen: Reading, faults: Fault) -> Iterator[tuple[str, int, bytes]]:
    """Yield (file, line number, content) for each line, except blank lines. Known formats are converted to OTLP/JSON."""
    for path in map(str, paths):
        for number, line in otlp_lines(_lines(path, seen, faults)):
            yield path, number, line


class RecordingErrors:
    """Reporter of errors in recordings. If ``report`` is :func:`to_stderr`, print at most ten errors per file."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._path, self._count, self._is_readable = "", 0, False
        self._held: list[str] = []

    def __call__(self, path: str, number: int | None, why: str) -> None:
        """Report an error in a file or line. Callers must report all errors of one file before the errors of the next file."""
        self.more(path, 1)
        line = f"{path}: {why}" if number is None else f"{path}:{number}: {why}"
        if self._report is not to_stderr:
            self._report(line)
        elif self._count <= _MOST_REPORTED:
            self._held.append(line)
            if self._is_readable or number is None:
                self._report_held()

    def more(self, path: str, count: int) -> None:
        self._begin(path)
        self._count += count

    def readable(self, path: str) -> None:
        self._begin(path)
        self._is_readable = True
        self._report_held()

    def end(self) -> None:
        if self._held and not self._is_readable and all(": not JSON" in line or ": not OTLP" in line for line in self._held):
            to_stderr(f"{self._path}: must be recorded traces, got {_kind_of(self._path, self._held[0])}")
        else:
            self._report_held()
            if self._count > _MOST_REPORTED and self._report is to_stderr:
                to_stderr(f"{self._path}: {self._count - _MOST_REPORTED:,} more lines or records can't be read")
        self._path, self._count, self._is_readable, self._held = "", 0, False, []

    def _begin(self, path: str) -> None:
        if path != self._path:
            self.end()
            self._path = path

    def _report_held(self) -> None:
        for line in self._held:
            to_stderr(line)
        self._held.clear()


def _kind_of(path: str, fault: str) -> str:
    try:
        with open_recording(path) if path != "-" else io.BytesIO() as stream:
            head = stream.read(_HEAD)
    except Exception:  # compression libraries raise different errors, and ``fault`` has the reason
        head = b""
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return "a spreadsheet or ZIP file"
    text = head.decode("utf-8", "replace")
    if b"\0" in head or text.count("\ufffd") > len(text) / 20:
        return "a binary file"
    first = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").strip().partition("\n")[0]
    try:
        row = jsonio.loads(first)
    except ValueError:
        row = None
    if isinstance(row, dict) and {"metric", "turn_id"} <= row.keys():
        return f"scores; show them with `otel-agenteval ui {path}`"
    columns = set(row) if isinstance(row, dict) else {name.strip(' "') for name in first.split(",")}
    answers = [name for name in ANSWER_KEYS if name in columns]
    if answers:
        more = "" if answers[0] == "output" else f" --columns output={answers[0]}"
        return f"a dataset with answers; score them with `otel-agenteval experiment recorded {path}{more}`"
    if columns & _CASE_KEYS:
        return f"a dataset; run your agent on it with `otel-agenteval experiment MODULE:FUNCTION {path}`"
    if path.endswith((".csv", ".tsv")):
        return "CSV or TSV; export the traces as OTLP/JSON"
    return f"text without spans (line {fault.removeprefix(f'{path}:')})"


def items_in(line: bytes, seen: Reading, report: Report) -> Iterator[SpanRecord | OtlpLog]:
    try:
        found = list(from_json(jsonio.loads_lenient(line)))
    except NotASpan as problem:
        seen.bad += 1
        report(f"not OTLP: {problem}")
        return
    except ValueError as problem:
        seen.bad += 1
        report(f"not JSON: {_NODE_TEXT if _NODE in line else str(problem)[:120]}")
        return
    for item in found:
        if isinstance(item, NotASpan):
            seen.bad += 1
            report(f"skipped: {item}")
        elif isinstance(item, OtlpLog):
            seen.logs += 1
            yield item
        else:
            seen.spans += 1
            seen.scopes[item.scope] += 1
            if len(line) > MAX_VALUE_CHARS:
                cut_long_values(item)
            yield item


def _lines(path: str, seen: Reading, faults: Fault) -> Iterator[tuple[int, bytes]]:
    number = 0
    with open_recording(path) as stream:
        try:
            for number, read in enumerate(stream, 1):
                line = read
                if number == 1:
                    kind = next((kind for mark, kind in _OTHER_KINDS if read.startswith(mark)), None)
                    if kind is not None:
                        seen.lines += 1
                        seen.bad += 1
                        faults(path, None, f"must be recorded traces, got {kind}")
                        return
                    line = read.removeprefix(codecs.BOM_UTF8)
                if not line.strip():
                    continue
                seen.lines += 1
                if seen.on_progress is not None and seen.lines % 1_000 == 0:
                    seen.on_progress(seen)
                yield number, line
        except Exception as problem:  # compression libraries raise different errors
            seen.lines += 1
            seen.bad += 1
            faults(path, number + 1, f"can't read this line and the lines after it: {problem}")


def open_recording(path: str) -> IO[bytes] | gzip.GzipFile | io.BufferedReader:
    """Open a file of JSON lines, decompressed if necessary. ``-`` is standard input. Raise AgentEvalError on failure."""
    try:
        if path == "-":
            return sys.stdin.buffer
        if path.endswith(".gz"):
            return gzip.open(path, "rb")
        if path.endswith((".zst", ".zstd")):
            zstandard = require("zstandard", feature="reading .zst files", extra="zstd")
            return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(Path(path).open("rb"), closefd=True))
        return Path(path).open("rb")
    except IsADirectoryError:
        raise AgentEvalError(f"{path}: must be a file, got a folder. Pass its files (in a shell: {Path(path)}/*.jsonl)") from None
    except FileNotFoundError:
        raise AgentEvalError(f"{path}: file not found") from None
    except OSError as problem:
        raise AgentEvalError(f"{path}: can't be read: {problem.strerror or problem}") from None
