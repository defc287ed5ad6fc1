"""These metrics check that the output is or contains JSON, XML, SQL, or HTML, and has the expected content.

JSON must strictly follow RFC 8259. A fenced Markdown block isn't a JSON document. An output over 1 MiB is skipped as ``too_long``.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from annotated_types import MinLen

from ...core import jsonio
from ...core.errors import MetricError, MissingExtra
from ...core.turn import Turn
from ...core.wellformed import plain
from ..lib import sql
from ..lib.documents import ABSENT, as_text, containers, first_difference, lookup, object_of, read_xml, too_long, xml_elements
from ..lib.schema import Schema, violations
from ..lib.values import excerpt, json_equal
from ..registry import Result, metric, skip, vacuous
from .text_matching import EXPECTED_OUTPUT, Bound, in_range

_EXAMINED = 10_000
_SHOWN = 100
_SHOWN_TABLES = 100


def _document_of(turn: Turn) -> Any:
    if too_long(output := turn.output or ""):
        return skip("too_long")
    try:
        return jsonio.loads_exact(output)
    except ValueError:
        return Result(False)


def _conforms(turn: Turn, schema: Any, feature: str) -> Result:
    if isinstance(document := _document_of(turn), Result):
        if document.skipped is None:
            violations(schema, None, feature=feature)  # an invalid schema is always an error
        return document
    found = violations(schema, document, feature=feature)
    return Result(not found, detail={"violations": found} if found else None)


@metric(needs=("output",), boolean=True, aliases=("trusys:is-json", "hpd:JsonValidityEvaluator"))
def code_is_json(turn: Turn, *, schema: Schema | str | None = None) -> Result:
    """Check that the output is one JSON document, and optionally that it matches a schema.

    Any JSON value passes, unless the value is nested more than 200 levels deep or contains a number that is too large for a
    ``float``. Whitespace around the document is allowed. An output fails if it is empty, is in a fenced Markdown block, or
    contains comments, trailing commas, single-quoted strings, or ``NaN``. If a key occurs twice, its last value counts.

    Parameters:
        schema: JSON Schema. See ``code_schema_conformance``. Requires the extra ``[structured]``. An invalid schema is an error.

    Detail: ``violations``, at most ten schema violations as ``[{path, message}]``.
    """
    if schema is not None:
        return _conforms(turn, schema, "code_is_json with a schema")
    document = _document_of(turn)
    return document if isinstance(document, Result) else Result(True)


@metric(needs=("output",), boolean=True, aliases=("trusys:contains-json",))
def code_contains_json(turn: Turn, *, schema: Schema | str | None = None) -> Result:
    """Check that the output contains JSON, and optionally JSON that matches a schema.

    JSON means an object or array. The metric reads the output from left to right. At each ``{`` or ``[``, it finds the longest JSON
    value, and continues after this value. It ignores empty arrays and invalid JSON such as ``{a: 1}``. A footnote such as ``[1]``
    counts as an array, unless a schema excludes it. If you set a schema, at least one of the first 10,000 values must match it.

    Parameters:
        schema: JSON Schema. See ``code_schema_conformance``. Requires the extra ``[structured]``. An invalid schema is an error.

    Detail: ``count`` (number of values), ``first`` (the first 100 characters of the first value), and ``violations`` of the first
    value if no value matches the schema.
    """
    if too_long(output := turn.output or ""):
        return skip("too_long")
    found = containers(output)
    detail: dict[str, Any] = {"count": len(found)}
    if found:
        start, end = found[0]
        detail["first"] = output[start : min(end, start + _SHOWN)]
    if schema is None:
        return Result(bool(found), detail=detail)
    feature = "code_contains_json with a schema"
    if not found:
        violations(schema, None, feature=feature)  # an invalid schema is always an error
    first: list[dict[str, str]] = []
    for start, end in found[:_EXAMINED]:
        try:
            value = jsonio.loads_exact(output[start:end])
        except ValueError:  # nested too deeply
            continue
        if not (faults := violations(schema, value, feature=feature)):
            return Result(True, detail=detail)
        first = first or faults
    if first:
        detail["violations"] = first
    return Result(False, detail=detail)


def _element_names(given: tuple[str, ...] | str) -> list[str]:
    names = given.split(",") if isinstance(given, str) else given
    return [name.strip() for name in names if name.strip()]


@metric(needs=("output",), boolean=True, aliases=("trusys:is-xml", "hpd:XmlValidityEvaluator"))
def code_is_xml(turn: Turn, *, required_elements: tuple[str, ...] | str = ()) -> Result:
    """Check that the whole output is one XML document that contains all required elements.

    The document must have one root and matching tags. It can have a declaration, comments, processing instructions, and whitespace
    around it. Namespace prefixes don't need a declaration. The metric doesn't load external files or expand entities. To prevent
    entity bombs, a document fails if its DOCTYPE has an internal subset. An empty output fails.

    Parameters:
        required_elements: Required elements, as a list or as comma-separated text. A dotted path starts at the root (``analysis.rating``). A name
            without dots matches the root or one of its children. Namespace prefixes are part of names.

    Detail: ``missing_elements`` (required elements that the document lacks) and, if the output isn't XML, ``error`` and usually
    ``line`` and ``column``.
    """
    if too_long(output := turn.output or ""):
        return skip("too_long")
    document = read_xml(output, _element_names(required_elements))
    detail = dict(document.fault or {})
    if document.missing:
        detail["missing_elements"] = document.missing
    return Result(not detail, detail=detail)


@metric(needs=("output",), boolean=True, aliases=("trusys:contains-xml",))
def code_contains_xml(turn: Turn, *, required_elements: tuple[str, ...] | str = ()) -> Result:
    """Check that the output contains an XML element that contains all required elements.

    At least one of the first 10,000 outermost elements must contain all required elements. An element extends from its start tag to
    the matching end tag, or is an empty-element tag (``<a/>``).

    Parameters:
        required_elements: Required elements. See ``code_is_xml``. Paths start at the outermost element.

    Detail: ``count`` (number of elements). If the output fails, ``missing_elements`` lists the required elements that the first
    element lacks.
    """
    if too_long(output := turn.output or ""):
        return skip("too_long")
    required = _element_names(required_elements)
    found = xml_elements(output)
    detail: dict[str, Any] = {"count": len(found)}
    missing = required
    for number, element in enumerate(found[:_EXAMINED]):
        document = read_xml(element, required)
        if document.fault is None and not document.missing:
            return Result(True, detail=detail)
        if number == 0:
            missing = document.missing
    if missing:
        detail["missing_elements"] = missing
    return Result(False, detail=detail)


@metric(needs=("output",), boolean=True, version="2", aliases=("trusys:is-sql",), traits=("heavy",))
def code_is_sql(
    turn: Turn,
    *,
    dialect: str = "",
    allowed_tables: tuple[str, ...] | None = None,
    allowed_columns: tuple[str, ...] | None = None,
    strict: bool = True,
) -> Result:
    """Check that the output is SQL, and optionally that all tables and columns are allowed.

    The parser ``sqlglot`` (extra ``[structured]``) must find one or more statements. The following outputs fail:

    - an empty output, or only a name or expression
    - an incomplete statement such as "update it", and commands that the parser doesn't analyze, such as ``CALL``
    - SQL with faults that the parser accepts, such as a dangling comma, ORDER or GROUP without BY, ``IN ()``, or clauses in the
      wrong order. SQLite allows ``IN ()``. BigQuery, ClickHouse, DuckDB, and Snowflake allow a comma after the last item

    If the parser isn't installed, or the output is too complex or longer than 10,000 characters, the metric checks only the shape
    (``detail.parser`` is ``shape``). The output must then pass ``code_sql_shape``, have none of the faults above, and not end with a
    word such as FROM. With ``allowed_tables`` or ``allowed_columns``, unparsable outputs fail, and a missing parser is an error.

    Parameters:
        dialect: Name of a dialect in sqlglot: ``mysql``, ``postgres``, ``sqlite``, ``tsql``, ``bigquery``, ``snowflake``, … The default is a
            generic dialect or, if parsing fails and the output contains backticks, MySQL. If the dialect is unknown, the score is an error.
        allowed_tables: Names of allowed tables, with or without schema, in any case. Common table expressions are always allowed.
        allowed_columns: Names of allowed columns, without their tables. Case is ignored. ``*`` is allowed only if the list contains
            ``*``, or in ``COUNT(*)``. Names that the statement defines, such as aliases, are always allowed.
        strict: If true, ``SELECT a b FROM`` fails, because a comma is probably missing.

    Detail: ``statements`` (number of statements), ``tables``, ``parser`` (``sqlglot`` or ``shape``), and the tables and columns
    that aren't allowed (``refused_tables``, ``refused_columns``).
    """
    if too_long(output := (turn.output or "").strip()):
        return skip("too_long")
    has_lists = allowed_tables is not None or allowed_columns is not None
    try:
        parsed = sql.parse(output, dialect)
    except (MissingExtra, sql.TooComplex) as error:
        if has_lists and isinstance(error, MissingExtra):
            raise
        passed = not has_lists and sql.resembles_sql(output, dialect) and not (strict and sql.lacks_comma(output))
        return Result(passed, detail={"parser": "shape"})
    if parsed is None:
        return Result(False, detail={"parser": "sqlglot"})
    detail: dict[str, Any] = {"statements": len(parsed.trees), "tables": parsed.tables[:_SHOWN_TABLES], "parser": "sqlglot"}
    passed = not (strict and sql.lacks_comma(output))
    if allowed_tables is not None:
        refused = sql.refused_tables(parsed, allowed_tables)
        passed = passed and not refused
        detail["refused_tables"] = refused[:_SHOWN_TABLES]
    if allowed_columns is not None:
        refused = sql.refused_columns(parsed, allowed_columns)
        passed = passed and not refused
        detail["refused_columns"] = refused[:_SHOWN_TABLES]
    return Result(passed, detail=detail)


@metric(needs=("output",), boolean=True, aliases=("hpd:SqlShapeEvaluator",), traits=("heavy",))
def code_sql_shape(turn: Turn) -> Result:
    """Check that the output looks like SQL, without parsing it.

    To parse the SQL instead, use ``code_is_sql``. The output passes if all of these conditions are met:

    - It starts with select, insert, update, delete, with, create, alter, drop, or merge, in any case. After ``with``, it must
      contain ``as``.
    - Its parentheses outside quotes are balanced.
    - It has an even number of single quotes and an even number of double quotes.

    Leading and trailing whitespace is ignored. An empty output fails.

    Detail: ``starts_with_verb``, ``balanced_parentheses``, ``even_single_quotes``, and ``even_double_quotes``.

    Source: ``SqlShapeEvaluator`` in HPD-Agent, which also accepts "Selecting a plan" as SQL.
    """
    if too_long(output := turn.output or ""):
        return skip("too_long")
    shape = sql.shape_of(output)
    return Result(all(shape.values()), detail=shape)


_HTML_TAG = re.compile(r"<\s*[A-Za-z][A-Za-z0-9:-]*(?:\s|/?>)")


@metric(needs=("output",), boolean=True, aliases=("hpd:HtmlShapeEvaluator",))
def code_html_shape(turn: Turn, *, required_tags: tuple[Annotated[str, MinLen(1)], ...] = ()) -> Result:
    """Check that the output contains HTML and all required tags. The HTML isn't validated.

    The output must contain at least one opening tag. An opening tag is ``<``, optional whitespace, a name, and then whitespace,
    ``>``, or ``/>``. For example, ``<br>`` and ``<br/>`` are opening tags, but ``</p>`` isn't. Text such as ``a < b and c`` also
    counts as an opening tag. An empty output fails.

    Parameters:
        required_tags: Names of opening tags that the output must contain. Case is ignored.

    Detail: ``missing_tags`` (required tags that the output lacks).
    """
    if too_long(output := turn.output or ""):
        return skip("too_long")
    missing = [tag for tag in required_tags if not re.search(rf"<\s*{re.escape(tag)}(?:\s|/?>)", output, re.IGNORECASE)]
    return Result(not missing and _HTML_TAG.search(output) is not None, detail={"missing_tags": missing})


@metric(needs=("output",), uses=("ground_truth",), boolean=True, aliases=("trusys:json-equals",))
def code_json_equals(turn: Turn, *, value: Annotated[Any, EXPECTED_OUTPUT] = None, ignore_list_order: bool = False) -> Result:
    """Check that the output is JSON that equals an expected value.

    The order of keys doesn't matter, but the order of list items does. Numbers are compared by value, so ``1`` equals ``1.0``. ``true``
    doesn't equal 1. An output that isn't JSON fails. Without an expected value, the score is skipped as ``missing:ground_truth``.

    Parameters:
        value: Expected JSON value. Text is parsed as JSON if possible. To expect null, write ``"null"``. The default is the turn's
            ground truth. Aliases: ``expected_output``, ``expcted_output`` (spelled as in Trusys).
        ignore_list_order: If true, the order of list items doesn't matter.

    Detail: ``path``, the JSONPath of the first difference. With ``ignore_list_order``, the path ends at the list that contains the difference.
    """
    expected = turn.ground_truth if value is None else value
    if expected is None or (expected == "" and value is None):
        return skip("missing:ground_truth")
    if isinstance(actual := _document_of(turn), Result):
        return actual
    if value is None and not isinstance(expected, str):  # a turn stores integers over 64 bits as floats
        actual = plain(actual)
    path = first_difference(_as_json(expected), actual, ignore_list_order=ignore_list_order)
    return Result(path is None, detail={"path": path} if path is not None else None)


def _as_json(value: Any) -> Any:
    if not isinstance(value, str):
        return jsonio.loads_exact(jsonio.dumps(value))
    try:
        return jsonio.loads_exact(value)
    except ValueError:
        return value


@metric(needs=("output",), boolean=True, aliases=("trusys:array-length",))
def code_array_length(
    turn: Turn,
    *,
    value: Annotated[Bound | None, EXPECTED_OUTPUT] = None,
    min: Bound | None = None,  # noqa: A002 - the catalog's parameter name
    max: Bound | None = None,  # noqa: A002 - the catalog's parameter name
    path: str = "$",
) -> Result:
    """Check that the output is JSON with an array of the expected length.

    Set ``value``, ``min``, or ``max``. Otherwise, the score is an error. The metric fails if the output isn't JSON, or if ``path``
    doesn't lead to an array.

    Parameters:
        value: Exact number of elements. Overrides ``min`` and ``max``. Aliases: ``expected_output``, ``expcted_output`` (spelled as in Trusys).
        min: Minimum number of elements.
        max: Maximum number of elements.
        path: Keys and indices that lead to the array (``a.b``, ``a[0].b``, ``a.0.b``). The default is the whole document.

    Detail: ``length`` (number of elements), if the array exists.
    """
    if value is None and min is None and max is None:
        raise MetricError("missing_parameter", "code_array_length: set value, min, or max")
    if value is None and min is not None and max is not None and min > max:
        raise MetricError("invalid_parameter", f"code_array_length.min: must be at most max ({max}), got {min}")
    if isinstance(document := _document_of(turn), Result):
        return document
    found = document if path in ("", "$") else lookup(document, path)
    if not isinstance(found, list):
        return Result(False)
    return Result(in_range(len(found), value, min, max), detail={"length": len(found)})


@metric(needs=("output",), boolean=True, extra="structured", aliases=("hpd:SchemaConformanceEvaluator",))
def code_schema_conformance(turn: Turn, *, schema: Any) -> Result:
    """Check that the output is JSON that conforms to a JSON Schema.

    JSON Schema drafts 4 to 2020-12 are supported. ``$schema`` selects the draft. The default is 2020-12. From draft 6 on, ``2.0``
    is an integer. ``"1"`` doesn't equal 1 in an ``enum``. An output that isn't JSON fails. The score is an error if the schema is
    invalid, refers to another document, or takes too many validation steps.

    Parameters:
        schema: Schema as an object, a boolean, or JSON text. The schema can be wrapped as in requests to models: ``{"name": …,
            "schema": {…}}``. If a keyword is misspelled, the score is an error.

    Detail: ``violations`` as ``[{path, message}]``, at most ten. Paths and messages can contain the output's keys, but not its
    values.
    """
    return _conforms(turn, schema, "code_schema_conformance")


@metric(needs=("output",), aliases=("hpd:FieldCompletenessEvaluator",))
def code_field_completeness(turn: Turn, *, fields: tuple[str, ...]) -> Result:
    """Share of the required fields that exist in the output's JSON object and aren't null.

    A field also counts if it contains an empty string, 0, false, or an empty list. If ``fields`` is empty, the value is 1
    (vacuous). Otherwise, the value is 0 if the output isn't a JSON object.

    Parameters:
        fields: Names of top-level fields, or paths (``a.b``, ``a[0].b``). If the object has a key ``a.b``, this key is used instead of the path.

    Detail: ``missing``, the fields that are absent or null.
    """
    if not fields:
        return vacuous(1.0, missing=[])
    if too_long(output := turn.output or ""):
        return skip("too_long")
    document = object_of(output)
    missing = [name for name in fields if document is None or lookup(document, name) in (None, ABSENT)]
    return Result((len(fields) - len(missing)) / len(fields), detail={"missing": missing})


@metric(needs=("output",), boolean=True, aliases=("hpd:FieldAccuracyEvaluator",))
def code_field_accuracy(turn: Turn, *, field: str, expected: Any, ignore_case: bool = True) -> Result:
    """Check that a field of the output's JSON object has the expected value.

    Text must match, including whitespace. Values that aren't text are compared as JSON text, so null equals ``"null"``. The order
    of keys doesn't matter. Numbers are compared by value, even if they are text: ``3.0`` equals ``"3"``. The metric fails if the
    output isn't a JSON object or lacks the field.

    Parameters:
        field: Name of a top-level field, or a path (``a.b``). If the object has a key ``a.b``, this key is used instead of the path.
        expected: Expected text or JSON value.
        ignore_case: If true, case is ignored.

    Detail: ``actual``, the field's value. Text and JSON are truncated to 100 characters.
    """
    if too_long(output := turn.output or ""):
        return skip("too_long")
    document = object_of(output)
    actual = ABSENT if document is None else lookup(document, field)
    if actual is ABSENT:
        return Result(False)
    is_text = isinstance(actual, (str, dict, list)) or plain(actual) is not actual  # an integer over 64 bits
    shown = excerpt(as_text(actual), _SHOWN) if is_text else actual
    return Result(_is_expected(actual, expected, ignore_case=ignore_case), detail={"actual": shown})


def _is_expected(actual: Any, expected: Any, *, ignore_case: bool) -> bool:
    one, other = as_text(actual), as_text(expected)
    if one == other or (ignore_case and one.lower() == other.lower()):
        return True
    number, wanted = _number(one), _number(other)
    if number is not None and wanted is not None:
        return number == wanted
    return not isinstance(actual, str) and json_equal(actual, _as_json(expected))  # {"a": 1} and {"a": 1.0}


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,15})?")  # Decimal doesn't support larger exponents


def _number(text: str) -> Decimal | None:
    return Decimal(text) if len(text) <= _SHOWN and _NUMBER.fullmatch(text) else None
