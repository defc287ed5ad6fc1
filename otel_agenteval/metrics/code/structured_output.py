"""Whether the output is machine-readable. JSON is strict RFC 8259; a fenced Markdown block is not a JSON document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

from annotated_types import Ge, MinLen

from ...core import jsonio
from ...core.errors import MetricError, MissingExtra
from ...core.extras import extra_installed
from ...core.turn import Turn
from ..lib import schema as schemas
from ..lib import schema_subset, sql, xml
from ..lib.excerpt import excerpt
from ..lib.json_output import object_of, too_long, written
from ..lib.json_paths import ABSENT, first_difference, lookup
from ..lib.json_text import containers
from ..lib.schema import Schema
from ..lib.values import json_equal
from ..registry import Result, metric, skip, vacuous

_EXAMINED = 10_000
"""Values or elements in a text that are looked at one by one."""
_SHOWN = 100
"""Characters of output in ``detail``."""
_SHOWN_TABLES = 100

_TRUSYS_VALUE = {"expected_output": "value", "expcted_output": "value"}


def _violations(schema: Schema, value: Any, feature: str) -> list[dict[str, str]]:
    validate = schemas.violations if extra_installed("structured") else schema_subset.violations
    return validate(schema, value, feature=feature)


@metric(needs=("output",), boolean=True, aliases=("trusys:is-json", "hpd:JsonValidityEvaluator"))
def code_is_json(turn: Turn, *, schema: Schema | None = None) -> Result:
    """Whether the whole output is one JSON document, optionally of a given schema.

    Any JSON value counts, not only objects; white space around it is allowed. Comments, trailing commas, single quotes,
    ``NaN`` and fenced Markdown blocks are not JSON. Of duplicate keys the last wins. An empty output is not JSON. An output
    over 1 MiB is skipped with ``too_long``.

    Parameters:
        schema: JSON Schema that the value must also meet, as in ``code_schema_conformance``; a schema that is not valid is
            an error.

    Detail: ``violations`` ``[{path, message}]``, at most ten, when the document is JSON but not of the schema.

    Sources: Trusys is-json, HPD JsonValidityEvaluator.
    """
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    try:
        value = jsonio.loads(output)
    except ValueError:
        return Result(False)
    if schema is None:
        return Result(True)
    found = _violations(schema, value, "code_is_json with a schema")
    return Result(not found, detail={"violations": found} if found else None)


@metric(needs=("output",), boolean=True, aliases=("trusys:contains-json",))
def code_contains_json(turn: Turn, *, schema: Schema | None = None) -> Result:
    """Whether a JSON object or a non-empty array occurs somewhere in the output, optionally one of a given schema.

    From every ``{`` and ``[``, from left to right, the longest JSON value counts; the search continues after it. The JSON is
    strict: ``{a: 1}`` does not count. A footnote such as ``[1]`` is an array of one number; give a schema to tell them apart.
    With a schema one value that meets it is enough; the first 10 000 are tried. An output over 1 MiB is skipped with
    ``too_long``.

    Parameters:
        schema: as in ``code_schema_conformance``; a schema that is not valid is an error.

    Detail: ``count`` of values; ``first``, the beginning (100 characters) of the first one; ``violations`` of the first one,
    when none meets the schema.

    Source: Trusys contains-json.
    """
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    found = containers(output)
    detail: dict[str, Any] = {"count": len(found)}
    if found:
        start, end = found[0]
        detail["first"] = output[start : min(end, start + _SHOWN)]
    if schema is None:
        return Result(bool(found), detail=detail)
    first = _violations_of_texts(schema, [output[start:end] for start, end in found[:_EXAMINED]])
    if first:
        detail["violations"] = first
    return Result(first == [], detail=detail)


def _violations_of_texts(schema: Schema, texts: Sequence[str]) -> list[dict[str, str]] | None:
    """Nothing if one of the documents meets the schema, else the violations of the first; None if there is no document."""
    feature = "code_contains_json with a schema"
    if not texts:
        _violations(schema, None, feature)  # a schema that is not valid is an error whatever the output
    first = None
    for text in texts:
        try:
            value = jsonio.loads(text)
        except ValueError:  # nested deeper than documents are read
            continue
        violations = _violations(schema, value, feature)
        if not violations:
            return []
        first = first or violations
    return first


def _names(given: tuple[str, ...] | str) -> list[str]:
    names = given.split(",") if isinstance(given, str) else given
    return [name.strip() for name in names if name.strip()]


@metric(needs=("output",), boolean=True, aliases=("trusys:is-xml", "hpd:XmlValidityEvaluator"))
def code_is_xml(turn: Turn, *, required_elements: tuple[str, ...] | str = ()) -> Result:
    """Whether the whole output is one well-formed XML document, optionally with given elements.

    One root, matching tags, and optionally a declaration, comments and processing instructions; white space around it is
    allowed. Nothing is loaded, expanded or looked up: a document type that declares something of its own (an internal
    subset, as entity bombs need it) is not accepted. Prefixes need not be declared. An empty output is not XML. An output over
    1 MiB is skipped with ``too_long``.

    Parameters:
        required_elements: elements that must occur, a list or a text with commas. A dotted path goes from the root
            (``analysis.rating``); a single name is that of the root or of a child of the root. Prefixes are part of names.

    Detail: ``missing_elements``; ``error`` with ``line`` and ``column`` when the output is not XML.

    Sources: Trusys is-xml, HPD XmlValidityEvaluator.
    """
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    document = xml.read(output, _names(required_elements))
    detail = dict(document.fault or {})
    if document.missing:
        detail["missing_elements"] = document.missing
    return Result(not detail, detail=detail)


@metric(needs=("output",), boolean=True, aliases=("trusys:contains-xml",))
def code_contains_xml(turn: Turn, *, required_elements: tuple[str, ...] | str = ()) -> Result:
    """Whether a well-formed XML element occurs somewhere in the output, optionally one with given elements.

    An element goes from its start tag to the end tag that balances it; only the outermost well-formed ones count, and text
    between them may be anything. One element that has everything that is required is enough; the first 10 000 are tried. An
    output over 1 MiB is skipped with ``too_long``.

    Parameters:
        required_elements: as in ``code_is_xml``, where the element that was found is the root.

    Detail: ``count`` of elements; ``missing_elements`` of the first one, when none has all.

    Source: Trusys contains-xml.
    """
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    required = _names(required_elements)
    found = xml.elements(output)
    detail: dict[str, Any] = {"count": len(found)}
    missing = required
    for number, (start, end) in enumerate(found[:_EXAMINED]):
        document = xml.read(output[start:end], required)
        if document.fault is None and not document.missing:
            return Result(True, detail=detail)
        if number == 0:
            missing = document.missing
    if missing:
        detail["missing_elements"] = missing
    return Result(False, detail=detail)


@metric(needs=("output",), boolean=True, aliases=("trusys:is-sql",), heavy=True)
def code_is_sql(
    turn: Turn,
    *,
    dialect: str = "",
    allowed_tables: tuple[str, ...] | None = None,
    allowed_columns: tuple[str, ...] | None = None,
    strict: bool = True,
) -> Result:
    """Whether the whole output is one or more SQL statements, optionally on given tables and columns only.

    Parsed with ``sqlglot`` (extra ``[structured]``). A lone name or expression is not a statement, nor are "update it" and
    commands that the parser does not look into (``CALL``). Where the parser is not installed, the output is over 10 000
    characters, or reading it would take too deep or too long, the shape decides instead (``code_sql_shape``, and it must not
    break off after a word such as FROM), and the detail says ``parser: shape``; a list of tables or columns then fails,
    because what they are is not known, and without the parser it is an error. An empty output is not SQL. An output over 1 MiB
    is skipped with ``too_long``.

    Parameters:
        dialect: ``mysql``, ``postgres``, ``sqlite``, ``tsql``, ``bigquery``, ``snowflake``, … as sqlglot names them; default a
            generic one, or MySQL's where the generic one fails and there are backticks. An unknown one is an error.
        allowed_tables: the only tables that may occur, case-insensitive, with or without their schema. CTEs are not tables.
        allowed_columns: the only columns that may occur, case-insensitive, without their tables; ``*`` must be in the list to
            be allowed (that of ``COUNT(*)`` is not a column). Names that the statement itself defines are not columns.
        strict: whether ``SELECT a b FROM`` fails, where a comma is probably missing.

    Detail: ``statements`` (how many), ``tables``; ``refused_tables`` and ``refused_columns`` where they are not allowed;
    ``parser``, ``sqlglot`` or ``shape``.

    Source: Trusys is-sql.
    """
    output = (turn.output or "").strip()
    if too_long(output):
        return skip("too_long")
    bare = sql.bare(output)
    has_lists = allowed_tables is not None or allowed_columns is not None
    try:
        reading = sql.read(output, bare, dialect)
    except MissingExtra:
        if has_lists:
            raise
        return _sql_by_shape(output, bare, strict=strict, known=True)
    except sql.TooComplex:
        return _sql_by_shape(output, bare, strict=strict, known=not has_lists)
    if reading is None:
        return Result(False, detail={"parser": "sqlglot"})
    detail: dict[str, Any] = {"statements": len(reading.trees), "tables": reading.tables[:_SHOWN_TABLES], "parser": "sqlglot"}
    passed = not (strict and sql.lacks_comma(bare))
    if allowed_tables is not None:
        tables = frozenset(name.lower() for name in allowed_tables)
        refused = [name for name in reading.tables if not sql.is_allowed_table(name, tables)]
        passed = passed and not refused
        detail["refused_tables"] = refused[:_SHOWN_TABLES]
    if allowed_columns is not None:
        refused = sql.refused_columns(reading, frozenset(name.lower() for name in allowed_columns))
        passed = passed and not refused
        detail["refused_columns"] = refused[:_SHOWN_TABLES]
    return Result(passed, detail=detail)


def _sql_by_shape(output: str, bare: str, *, strict: bool, known: bool) -> Result:
    passed = known and sql.Shape.of(output).fits and not sql.is_unfinished(bare) and not (strict and sql.lacks_comma(bare))
    return Result(passed, detail={"parser": "shape"})


@metric(needs=("output",), boolean=True, aliases=("hpd:SqlShapeEvaluator",), heavy=True)
def code_sql_shape(turn: Turn) -> Result:
    """Whether the output looks like SQL. A quick look without a parser; ``code_is_sql`` uses one.

    It begins with one of select, insert, update, delete, with, create, alter, drop, merge as a whole word, whatever the case
    (``with`` needs an ``as`` later); its parentheses balance, those within quotes apart; its single quotes are even in
    number, and so are its double quotes. White space around it is ignored. An empty output is not SQL. An output over 1 MiB
    is skipped with ``too_long``.

    Detail: ``starts_with_verb``, ``balanced_parentheses``, ``even_single_quotes``, ``even_double_quotes``.

    Source: HPD SqlShapeEvaluator, which takes "Selecting a plan" for SQL.
    """
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    shape = sql.Shape.of(output)
    return Result(
        shape.fits,
        detail={
            "starts_with_verb": shape.starts_with_verb,
            "balanced_parentheses": shape.balanced_parentheses,
            "even_single_quotes": shape.even_single_quotes,
            "even_double_quotes": shape.even_double_quotes,
        },
    )


_HTML_TAG = re.compile(r"<\s*[A-Za-z][A-Za-z0-9:-]*(?:\s|/?>)")


@metric(needs=("output",), boolean=True, aliases=("hpd:HtmlShapeEvaluator",))
def code_html_shape(turn: Turn, *, required_tags: tuple[Annotated[str, MinLen(1)], ...] = ()) -> Result:
    """Whether the output has something like an HTML tag, and opens all required ones. This is not a validator.

    A tag is ``<``, a name, and white space, ``>`` or ``/>``. ``<br>`` and ``<br/>`` open a tag, ``</p>`` and ``a < b`` do not.
    An empty output has none. An output over 1 MiB is skipped with ``too_long``.

    Parameters:
        required_tags: names of tags that must be opened, whatever the case.

    Detail: ``missing_tags``, as they were configured.

    Source: HPD HtmlShapeEvaluator.
    """
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    missing = [tag for tag in required_tags if not _opens(output, tag)]
    return Result(not missing and _HTML_TAG.search(output) is not None, detail={"missing_tags": missing})


def _opens(text: str, tag: str) -> bool:
    return re.search(rf"<\s*{re.escape(tag)}(?:\s|/?>)", text, re.IGNORECASE) is not None


@metric(needs=("output",), uses=("ground_truth",), boolean=True, aliases=("trusys:json-equals",), spellings=_TRUSYS_VALUE)
def code_json_equals(turn: Turn, *, value: Any = None, ignore_list_order: bool = False) -> Result:
    """Whether the output is JSON that equals an expected value.

    The order of keys does not matter, that of lists does; numbers compare by value (``1`` equals ``1.0``), and ``true`` is not
    1. An output that is not JSON equals nothing. An output over 1 MiB is skipped with ``too_long``; skipped with
    ``missing:ground_truth`` when there is nothing to compare with.

    Parameters:
        value: any JSON value, or a text that is parsed where it is JSON (so null is ``"null"``) and stands for itself where
            it is not; default the turn's ground truth. Trusys also spells it ``expected_output`` and ``expcted_output``.
        ignore_list_order: whether lists are equal that have the same elements, each as often, in another order.

    Detail: ``path``, the JSONPath of the first difference (of a list, where its order is ignored).

    Source: Trusys json-equals.
    """
    expected = turn.ground_truth if value is None else value
    if expected is None:
        return skip("missing:ground_truth")
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    try:
        actual = jsonio.loads(output)
    except ValueError:
        return Result(False)
    path = first_difference(_as_json(expected), actual, ignore_list_order=ignore_list_order)
    return Result(path is None, detail={"path": path} if path is not None else None)


def _as_json(value: Any) -> Any:
    """A configured value as a parser would give it; a text that is JSON is what it says."""
    if not isinstance(value, str):
        return jsonio.loads(jsonio.dumps(value))
    try:
        return jsonio.loads(value)
    except ValueError:
        return value


Bound = Annotated[int, Ge(0)]


@metric(needs=("output",), boolean=True, aliases=("trusys:array-length",), spellings=_TRUSYS_VALUE)
def code_array_length(
    turn: Turn,
    *,
    value: Bound | None = None,
    min: Bound | None = None,  # noqa: A002 - the catalogue's parameter name
    max: Bound | None = None,  # noqa: A002 - the catalogue's parameter name
    path: str = "$",
) -> Result:
    """Whether the output is JSON with an array of the expected length.

    An output that is not JSON fails, as does one that has no array at the path. Without any of ``value``, ``min`` and ``max``
    the result is an error. An output over 1 MiB is skipped with ``too_long``.

    Parameters:
        value: number of elements; it wins over the bounds. Trusys also spells it ``expected_output`` and ``expcted_output``.
        min, max: inclusive bounds of the number of elements.
        path: where the array is, by keys and indices: ``a.b``, ``a[0].b``, ``a.0.b``; default the whole document.

    Detail: ``length``, where there is an array.

    Source: Trusys array-length.
    """
    if value is None and min is None and max is None:
        raise MetricError("missing_parameter", "code_array_length: one of 'value', 'min' and 'max' is required")
    if value is None and min is not None and max is not None and min > max:
        raise MetricError("invalid_parameter", f"code_array_length: min {min} is more than max {max}")
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    try:
        document = jsonio.loads(output)
    except ValueError:
        return Result(False)
    found = document if path in ("", "$") else lookup(document, path)
    if not isinstance(found, list):
        return Result(False)
    length = len(found)
    if value is not None:
        passed = length == value
    else:
        passed = (min is None or length >= min) and (max is None or length <= max)
    return Result(passed, detail={"length": length})


@metric(needs=("output",), boolean=True, aliases=("hpd:SchemaConformanceEvaluator",))
def code_schema_conformance(turn: Turn, *, schema: Any) -> Result:
    """Whether the output is JSON that conforms to a JSON Schema.

    All of JSON Schema with the extra ``[structured]``, drafts 4 to 2020-12 (by ``$schema``, default 2020-12). Without it
    ``type``, ``required``, ``properties``, ``additionalProperties``, ``items``, ``enum``, ``const``, ``minimum``, ``maximum``,
    ``minLength``, ``maxLength``, ``minItems``, ``maxItems`` and, with the extra ``[text]``, ``pattern``; any other keyword is
    an error that names the extra, never ignored. ``2.0`` is an integer; ``"1"`` is not the 1 of an ``enum``. References to
    other documents are refused: nothing is fetched.

    An output that is not JSON does not conform. A schema that is not valid is an error, whatever the output. An output over
    1 MiB is skipped with ``too_long``.

    Parameters:
        schema: required; an object or boolean, or the JSON text of one.

    Detail: ``violations`` ``[{path, message}]``, at most ten. Messages do not quote the output.

    Source: HPD SchemaConformanceEvaluator.
    """
    known = _schema_of(schema)
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    feature = "code_schema_conformance"
    try:
        value = jsonio.loads(output)
    except ValueError:
        _violations(known, None, feature)
        return Result(False)
    found = _violations(known, value, feature)
    return Result(not found, detail={"violations": found} if found else None)


def _schema_of(given: Any) -> Schema:
    try:
        schema = jsonio.loads(given) if isinstance(given, str) else given
    except ValueError:
        schema = None
    if not isinstance(schema, (dict, bool)):
        raise MetricError("invalid_schema", "not a usable JSON Schema: neither an object nor a boolean, nor the JSON text of one")
    return schema


@metric(needs=("output",), aliases=("hpd:FieldCompletenessEvaluator",))
def code_field_completeness(turn: Turn, *, fields: tuple[str, ...]) -> Result:
    """Share of the fields that the output, a JSON object, has and that are not null.

    An empty text, 0, false and an empty list are there. An output that is not a JSON object scores 0. Without any field the value
    is 1 and vacuous. An output over 1 MiB is skipped with ``too_long``.

    Parameters:
        fields: required; names of top-level fields, or dotted paths (``a.b``, ``a[0].b``). A key that is spelled exactly
            like the path wins.

    Detail: ``missing``, the fields that are absent or null.

    Source: HPD FieldCompletenessEvaluator.
    """
    if not fields:
        return vacuous(1.0, missing=[])
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    document = object_of(output)
    missing = [name for name in fields if document is None or lookup(document, name) in (None, ABSENT)]
    return Result((len(fields) - len(missing)) / len(fields), detail={"missing": missing})


@metric(needs=("output",), boolean=True, aliases=("hpd:FieldAccuracyEvaluator",))
def code_field_accuracy(turn: Turn, *, field: str, expected: Any, ignore_case: bool = True) -> Result:
    """Whether a field of the output, a JSON object, has the expected value.

    Texts compare as they are, all other values by their JSON text: true is ``true``, null is ``null`` (and equal to
    nothing else), an object has no particular order of keys. Two numbers compare by value, also when one is written in a text:
    ``3.0`` equals ``"3"``. An output that is not a JSON object fails, as does one without the field. An output over 1 MiB is
    skipped with ``too_long``.

    Parameters:
        field: required; name of a top-level field, or a dotted path (``a.b``). A key that is spelled exactly like the path wins.
        expected: required; a text or any JSON value.
        ignore_case: whether upper and lower case are the same.

    Detail: ``actual``, the value of the field where there is one; the first 100 characters of anything but a number.

    Source: HPD FieldAccuracyEvaluator.
    """
    output = turn.output or ""
    if too_long(output):
        return skip("too_long")
    document = object_of(output)
    actual = ABSENT if document is None else lookup(document, field)
    if actual is ABSENT:
        return Result(False)
    shown = actual if actual is None or isinstance(actual, (bool, int, float)) else excerpt(written(actual), _SHOWN)
    return Result(_same_field(actual, expected, ignore_case=ignore_case), detail={"actual": shown})


def _same_field(actual: Any, expected: Any, *, ignore_case: bool) -> bool:
    one, other = written(actual), written(expected)
    if one == other or (ignore_case and one.lower() == other.lower()):
        return True
    number, wanted = _number(one), _number(other)
    if number is not None and wanted is not None:
        return number == wanted
    return not isinstance(actual, str) and json_equal(actual, _as_json(expected))  # {"a": 1} and {"a": 1.0}


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _number(text: str) -> Decimal | None:
    """The number that a text is in JSON, or None."""
    return Decimal(text) if len(text) <= _SHOWN and _NUMBER.fullmatch(text) else None
