"""Read a dataset's cases from JSON, YAML, CSV, Parquet, or objects in memory."""

from __future__ import annotations

import codecs
import csv
import dataclasses
import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TextIO

from ..config.types import KeyPath
from ..core import jsonio, literals
from ..core.errors import ConfigError, likeness, nearest
from ..core.extras import require
from ..core.forms import misspelled
from ..core.wellformed import written

_ANSWERS = ("output", "answer", "response")
_CASE_COLUMNS = ("case_id", "id", "case")
PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
"""Placeholder for a column's value in an input or a parameter, as in promptfoo and Trusys: ``{{customer}}``."""
ASKED = ("prompt", "question", "query", "user_input", "inputs")
"""Other names for the column ``input``, as in Trusys, AgentUnit, ragas, and pydantic-evals."""
_CONTEXTS = dict.fromkeys(("contexts", "documents", "retrieved_contexts", "retrieval_context"), "context")
_OTHER_NAMES = {**_CONTEXTS, "tools": "expected_tools"}
_EXPECTATIONS = {"ground_truth", "value", "expected_output", "expcted_output"}
EXPECTED = ("reference", "expected", "expected_output")
"""Columns that provide the ground truth if a case lacks ``ground_truth``."""
_LIST_COLUMNS = {"context", "evaluation_criteria", *_OTHER_NAMES}
_LISTS_OF_CASES = ("cases", "data", "dataset", "examples", "items", "rows", "samples", "testCases", "test_cases")
HASH_OF_INPUT = re.compile(r"input-[0-9a-f]{10}(-\d+)?")
"""Pattern of an ID from :func:`id_of_inputs`. Later IDs for the same inputs end with a hyphen and a number."""


def id_of_inputs(asked: Sequence[str], seen: Counter[Any]) -> str:
    """Return a case ID derived from inputs. Each repetition of the same inputs (counted in ``seen``) adds a number to the ID."""
    name = f"input-{hashlib.sha256(jsonio.dumps(asked).encode()).hexdigest()[:10]}"
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}-{seen[name]}"


class Case(NamedTuple):
    case_id: str | None
    input: Any  # None if only the id is known
    references: dict[str, Any]  # values that metrics compare with the turn, by name
    metrics: Any = None
    """Metrics and parameters of this case, from a column in :data:`METRICS`. See :class:`~.case_metrics.CaseMetrics`."""
    place: str = ""  # prefix for error messages about the case: its file and line
    columns: Mapping[str, Any] = MappingProxyType({})  # by their names in the dataset, for placeholders


def cases_in(source: str | Path | Iterable[Any] | Any, where: str = "dataset", *, recorded: bool = False) -> Iterator[Case]:
    """Yield the cases in a file, a list of mappings, or a pandas DataFrame.

    Files contain JSON, JSON lines, YAML, CSV, tab-separated values, or Parquet. The case ID is in the column
    ``case_id``, ``id``, or ``case``, and the input is in ``input`` or a column in :data:`ASKED`. The case's metrics are in
    ``metrics``, ``evaluators``, ``assert``, or in ``value`` under the key ``metrics``. All other columns are references. So are the
    fields of an object in the column ``references``. If ``recorded`` is true, the agent's answer is in ``output``, ``answer``, or
    ``response``, and a missing value is an empty answer. :func:`renamed` describes which columns can be the ground truth.

    The function raises a ConfigError, for example if the file can't be read, two cases have the same ID, or a case has metrics in
    several columns or has neither an ID nor an input, ``turns``, or ``user``.
    """
    places: dict[str, str] = {}
    for place, row in rows_in(source, where):
        names = [*row]
        case, given, found, metrics = _read_row(row, f"{where}: {place}", recorded)
        known = [*found, *(name for name in names if row.get(name) is None)]  # a ``value`` with metrics isn't in ``found``
        columns = renamed(found, known)
        asked = filled_in(given, {**found, **columns})
        if case is None and (asked is None or asked == "") and "turns" not in found and "user" not in found:
            raise ConfigError(f"{where}: {_without_input(place, names, found, where)}")
        if case is not None and places.setdefault(case, place) != place:
            raise ConfigError(f"{where}: {place}: duplicate case_id {case!r}, already used in {places[case]}")
        yield Case(case, asked, found, metrics, f"{where}: {place}", columns)


def _read_row(row: dict[str, Any], at: str, recorded: bool) -> tuple[str | None, Any, dict[str, Any], Any]:
    if recorded and (name := next((name for name in _ANSWERS if name in row), None)) is not None:
        answer = row.pop(name)
        row["output"] = "" if answer is None else answer
    case = next((jsonio.rendered(row.pop(column)) for column in _CASE_COLUMNS if row.get(column) not in (None, "")), None)
    asked = input_of(row)
    inner, entries = row.pop("references", None), {name: row.pop(name, None) for name in METRICS}
    found = {key: value for key, value in row.items() if key not in _CASE_COLUMNS and value is not None}
    found |= inner if isinstance(inner, dict) else {} if inner is None else {"references": inner}
    return case, asked, found, metrics_in(entries, found, at)


def input_of(row: dict[str, Any]) -> Any:
    asked = row.pop("input", None)
    if asked is None and row.get("turns") is None and row.get("user") is None:
        asked = next((row.pop(column) for column in ASKED if row.get(column) is not None), None)
    return asked


METRICS = ("metrics", "assert", "evaluators")
"""Columns that can contain a case's or turn's metrics."""


def metrics_in(columns: Mapping[str, Any], others: dict[str, Any], at: str) -> Any:
    """Return a case's metrics, or None. Metrics are in a :data:`METRICS` column, or in ``value`` under the key ``metrics``.

    If the column ``value`` is an object with the key ``metrics``, its other keys replace ``value`` as columns in ``others``.
    The function raises a ConfigError if several columns contain metrics, or if a metrics column's name seems misspelled.
    """
    value = others.get("value")
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = literals.python_value(value)
    if isinstance(value, Mapping) and "metrics" in value:  # a Trusys test case: its other entries become columns
        del others["value"]
        others.update({key: item for key, item in _plain_row(value).items() if key != "metrics" and item is not None})
        columns = {**columns, "value.metrics": value["metrics"]}
    metrics = {name: entries for name, entries in columns.items() if entries is not None}
    for name, value in others.items():
        if isinstance(value, list) and any(map(_is_metric, value)) and (meant := misspelled(name, METRICS)):
            raise ConfigError(f"{at}: {name}: unknown column with metrics. Did you mean {meant}?")
    if len(metrics) > 1:
        raise ConfigError(f"{at}: must have only one of {', '.join(metrics)}. Move all entries into metrics")
    return next(iter(metrics.values()), None)


def _is_metric(entry: Any) -> bool:
    """Return True for a metric entry: ``{"code_contains": {…}}`` or ``{"type": "contains", "value": …}``."""
    names = entry.keys() if isinstance(entry, Mapping) else ()
    return {"type", "value"} <= set(names) or (len(names) == 1 and next(iter(names)).startswith(("code_", "embed_", "llm_")))


def renamed(found: dict[str, Any], known: Iterable[str] = ()) -> dict[str, Any]:
    """Replace other tools' reference names in ``found`` with this package's names. Return a copy of the original ``found``.

    A text or number in ``expected`` becomes the expected output and the ground truth, unless these are already set. ``reference``
    becomes the ground truth, unless the case has another expected value. ``known`` contains the dataset's columns. If none is for
    expected values, or ``expected`` is a list, ``answer`` or ``response`` is used like ``expected``.
    """
    before = dict(found)
    for name, ours in _OTHER_NAMES.items():
        if name in found and ours not in found and (name != "tools" or "{" not in str(found[name])):  # not definitions of tools
            found[ours] = found.pop(name)
    if "function" in found and "arguments" in found:
        found.setdefault("ground_truth", {"name": found.pop("function"), "arguments": found.pop("arguments")})
    has_tools = isinstance(found.get("expected"), list)
    others = ("answer", "response") if has_tools or {*found, *known}.isdisjoint({*_EXPECTATIONS, *EXPECTED}) else ()
    for name in ("expected", *others):
        if isinstance(found.get(name), (str, int, float)):
            found.setdefault("expected_output", found[name] if name == "expected" else found.pop(name))
            found.setdefault("ground_truth", found["expected_output"])
    if "reference" in found and _EXPECTATIONS.isdisjoint(found):
        found["ground_truth"] = found["reference"]
    return before


def filled_in(value: Any, columns: Mapping[str, Any]) -> Any:
    """Replace placeholders such as ``{{customer}}`` with values from ``columns``. Keep placeholders for unknown columns."""
    if isinstance(value, Mapping):
        return {key: filled_in(item, columns) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [filled_in(item, columns) for item in value]
    if not isinstance(value, str):
        return value
    return PLACEHOLDER.sub(lambda found: jsonio.text_of(columns[found[1]]) if found[1] in columns else found[0], value)


def _without_input(place: str, names: Sequence[str], others: Iterable[str], where: str) -> str:
    """Return the error message (with a hint about the likely cause) for a case that has neither an ID nor an input."""
    known = ("input", "turns", "user", *_CASE_COLUMNS)
    if empty := [name for name in (*known, *ASKED) if name in names]:
        return f"{place}: the column {empty[0]} is empty"
    if (file := place.rpartition(":")[0]).lower().endswith((".csv", ".tsv", ".parquet")):
        new = ("input", "output", "ground_truth") if len(names) == 3 else ("input", "output")
        others = (name for name in names if name not in (*new, "ground_truth", *_CASE_COLUMNS))
        pairs = [*map("=".join, zip((name for name in new if name not in names), others, strict=False))]
        how = "Rename one of them" if pairs else "Add a column input"
        if pairs and where == "dataset":
            how = f"Name them, for example --columns {shlex.quote(','.join(pairs))}"
        return f"{file}: no column input. Columns: {', '.join(names)}. {how}"
    close = [(column, *nearest(column, known, 1)) for column in others]
    meant = [f". Did you mean {name} instead of {column!r}?" for column, name in close if likeness(column, name) > 0.7]
    got = meant[0] if meant else f", got {', '.join(map(repr, others)) or 'neither'}"
    return f"{place}: a case must have a case_id, input, turns, or user{got}"


def rows_in(source: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (position for error messages, columns) of each row. Raise a ConfigError for invalid rows."""
    if isinstance(source, (str, Path)):
        for line, row in _rows_of_file(str(source), where):
            yield f"{source}:{line}", _plain_row(row)
        return
    is_frame = hasattr(source, "columns")
    rows = source.to_dict("records") if is_frame else source
    for number, given in enumerate(rows, 1):
        row = dataclasses.asdict(given) if dataclasses.is_dataclass(given) and not isinstance(given, type) else given
        if not isinstance(row, Mapping):
            raise ConfigError(f"{where}: case {number}: must be a mapping, got {type(row).__name__}")
        plain = _plain_row(row)
        if is_frame:  # perhaps read from a CSV file
            plain |= {
                name: _cell(name, plain[name])
                for name in _LIST_COLUMNS & plain.keys()
                if plain[name] and isinstance(plain[name], str)
            }
        yield getattr(row, "place", f"case {number}"), plain


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert dates, decimals, and other libraries' numbers to JSON values, even inside a row's references and turns."""
    found = {str(key): written(value) for key, value in row.items()}
    if isinstance(inner := row.get("references"), Mapping):
        found["references"] = _plain_row(inner)
    if isinstance(turns := row.get("turns"), (list, tuple)):
        found["turns"] = [_plain_row(turn) if isinstance(turn, Mapping) else turn for turn in turns]
    return found


def _without_nulls(value: Any) -> Any:
    """Remove nulls from objects in a Parquet cell. Parquet adds a null for each key that only other objects in the column have."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _rows_of_file(path: str, where: str) -> Iterator[tuple[int | str, dict[str, Any]]]:
    """Yield (line or case number, columns) of each row. Raise ConfigError if the file can't be read."""
    extension, at = Path(path).suffix.lower(), f"{where}: {path}"
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
        if (other := next((kind for marks, kind in _OTHER_FORMATS if head.startswith(marks)), None)) is not None:
            raise ConfigError(f"{at}: must be a JSON, YAML, CSV, or Parquet file, got {other}")
        if extension == ".parquet":
            table = require("pyarrow.parquet", feature="reading a Parquet dataset", extra="parquet").read_table(path)
            rows = ({name: _without_nulls(cell) for name, cell in row.items()} for row in table.to_pylist())
            yield from enumerate(rows, 1)
            return
        if extension in (".csv", ".tsv"):
            with Path(path).open(encoding="utf-8-sig", newline="") as file:
                yield from _csv_rows(file, at, "\t" if extension == ".tsv" else ",")
            return
        text = Path(path).read_bytes().decode("utf-8-sig")
    except (OSError, ValueError, csv.Error) as problem:  # pyarrow raises a ValueError
        why = f"can't be read: {getattr(problem, 'strerror', None) or problem}"
        if isinstance(problem, UnicodeDecodeError):
            why = 'isn\'t UTF-8 text. Save it as UTF-8 ("CSV UTF-8" in Excel), or convert it: iconv -f cp1252 -t utf-8'
        raise ConfigError(f"{at}: {'file not found' if isinstance(problem, FileNotFoundError) else why}") from None
    first, _, rest = text.lstrip().partition("\n")
    if extension in (".yaml", ".yml"):
        from ..config import yaml  # imported on first use: most programs read no dataset

        yield from _cases_of(*yaml.load(text, at, None), at)
    elif text.lstrip()[:1] == "[" or (extension == ".json" and not (first.rstrip()[-1:] == "}" and rest.lstrip()[:1] == "{")):
        yield from _cases_of(_parsed(text, at, "JSON"), {}, at)
    elif extension not in (".json", ".jsonl", ".ndjson") and text.lstrip()[:1] not in "{[":
        raise ConfigError(f"{at}: use .jsonl, .json, .yaml, .csv, .tsv, or .parquet, got {extension or 'no extension'}")
    else:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield number, _object(_parsed(line, f"{at}:{number}", "one JSON object per line"), f"{at}:{number}")


def _cases_of(document: Any, places: Mapping[KeyPath, str], at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the cases in a JSON or YAML document. The document's ``evaluators`` are added to each case."""
    key: KeyPath = ()
    shared, cases = [], document
    while isinstance(cases, dict) and cases.keys().isdisjoint(("input", "turns", "user", *ASKED)):
        if (name := next((name for name in _LISTS_OF_CASES if name in cases), None)) is None:
            break
        shared, cases, key = cases.get("evaluators", []), cases[name], (*key, name)
    cases = [cases] if isinstance(cases, dict) and cases else cases or []
    if not isinstance(cases, list) or not isinstance(shared, list):
        raise ConfigError(
            f"{at}: must be a list of cases, or an object with a list of cases under one of {', '.join(_LISTS_OF_CASES)}. evaluators must be a list"
        )
    for number, case in enumerate(cases):
        place = places.get((*key, number), f"{at}: case {number + 1}").removeprefix(f"{at}:")
        row = _object(case, f"{at}:{place}")
        own = row.get("evaluators", [])
        yield place, {**row, "evaluators": [*shared, *(own if isinstance(own, list) else [own])]} if shared else row


_LONGEST_CELL = 1 << 30
_DELIMITERS = (",", ";", "\t", "|")


def _csv_rows(file: TextIO, where: str, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each row's line number and cells. Ignore spaces after delimiters if a space follows every delimiter in the header.

    A first line such as ``sep=;`` sets the delimiter. Otherwise, the most frequent delimiter in the header is used. Raises
    ConfigError for a duplicate column, too many cells in a row, or an unclosed quote, and csv.Error for an invalid header.
    """
    csv.field_size_limit(_LONGEST_CELL)
    before, head = 0, file.readline()
    if head.lower().startswith("sep=") and len(head.rstrip("\r\n")) == 5:
        before, delimiter = 1, head[4]
    else:
        file.seek(0)
        delimiter = max((delimiter, *_DELIMITERS), key=head.count)
    spaced = 0 < head.count(delimiter) == head.count(f"{delimiter} ")
    reader = csv.reader(file, delimiter=delimiter, skipinitialspace=spaced, strict=True)
    columns = [name.strip() for name in next(reader, [])]
    if twice := [name for name in columns if name and columns.count(name) > 1]:
        raise ConfigError(f"{where}:{before + 1}: duplicate column {twice[0]!r}, used {columns.count(twice[0])} times")
    while True:
        line = before + reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error:
            raise ConfigError(f"{where}:{line}: a quote isn't closed. Close it, or double each quote inside a cell") from None
        if row is None:
            return
        if len(row) > len(columns):
            counts = f"must have at most {len(columns)}, got {len(row)}"
            raise ConfigError(f"{where}:{line}: too many cells: {counts}. Put quotes around a cell that contains {delimiter!r}")
        if any(row):
            named = [(name, cell) for name, cell in zip(columns, row, strict=False) if name]
            yield line, {name: _cell(name, cell) if cell else None for name, cell in named}


def _cell(column: str, text: str) -> Any:
    """Parse a list or object in JSON or Python notation, or split a list such as ``a||b``. Return other texts unchanged."""
    bars = r"\s*\|\|\s*|(?<=\S)\|(?=\S)" if column in _LIST_COLUMNS else "$^"  # not the bars of tables
    parts = [] if text[0] in "[{" else re.split(bars, text)
    return parts if parts[1:] else literals.python_value(text) if text[0] in "[{" else text


_HEAD = 64
_OTHER_FORMATS = (
    ((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"), "a spreadsheet or ZIP file; save the sheet as CSV"),  # .xlsx, .ods, .xls
    ((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"), "a compressed file; decompress it"),
    ((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "UTF-16 text; convert the file to UTF-8"),
)
_NAN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))|(?<!\w)NaN\b', re.DOTALL)  # written by Python's json


def _parsed(text: str, at: str, wanted: str) -> Any:
    try:
        return jsonio.loads(_NAN.sub(lambda found: found[1] or "null", text) if "NaN" in text else text)
    except ValueError as problem:
        raise ConfigError(f"{at}: must be {wanted}; {problem}") from None


def _object(row: Any, at: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ConfigError(f"{at}: must be an object, got {type(row).__name__}")
    return row


def parsed_value(raw: Any) -> Any:
    """Parse an attribute or baggage value as JSON if it's a list, an object, or a quoted text. Convert a tuple to a list."""
    if isinstance(raw, str) and raw[:1] in '[{"':
        try:
            return jsonio.loads(raw)
        except ValueError:
            return raw
    return list(raw) if isinstance(raw, tuple) else raw
