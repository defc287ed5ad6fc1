from __future__ import annotations

import copy
import json
import logging
import sys
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.metrics.lib import sql, xml
from otel_agenteval.metrics.lib.json_output import containers
from tests.support.judges import ScriptedModels

MEBIBYTE = 1 << 20


def evaluate(output: str | None, **params: Any) -> oa.Score:
    return oa.get_metric("code_is_json", **params).evaluate(oa.Turn(output=output))


IS_JSON = [
    pytest.param('{"a": [1, 2.5e3, null, true, "x"]}', True, id="an object"),
    pytest.param(" \t\r\n[] \n", True, id="white space around it"),
    pytest.param("5", True, id="a bare number"),
    pytest.param('"x"', True, id="a bare text"),
    pytest.param("null", True, id="null"),
    pytest.param('{"a": 1, "a": 2}', True, id="duplicate keys"),
    pytest.param('"\\ud800"', True, id="an escaped lone surrogate"),
    pytest.param("9" * 30, True, id="a large number"),
    pytest.param("", False, id="nothing"),
    pytest.param("   ", False, id="only white space"),
    pytest.param("Sure: {}", False, id="text before it"),
    pytest.param("{} {}", False, id="two documents"),
    pytest.param("```json\n{}\n```", False, id="a fenced block"),
    pytest.param("{'a': 1}", False, id="single quotes"),
    pytest.param("{a: 1}", False, id="keys without quotes"),
    pytest.param("[1,]", False, id="a trailing comma"),
    pytest.param("[1] // one", False, id="a comment"),
    pytest.param("[1,\nNaN]", False, id="NaN after a newline"),
    pytest.param("-Infinity", False, id="infinity"),
    pytest.param("01", False, id="a leading zero"),
    pytest.param("True", False, id="a Python constant"),
    pytest.param('"a\nb"', False, id="a raw newline in a text"),
    pytest.param('{"a": 1', False, id="a document that was cut"),
    pytest.param("\u00a0{}", False, id="white space that JSON does not know"),
    pytest.param("[" * 100_000, False, id="hostile nesting"),
]


@pytest.mark.parametrize(("output", "passed"), IS_JSON)
def test_is_json_scores(output: str, passed: bool) -> None:
    score = evaluate(output)
    assert (score.status, score.value, score.passed) == ("ok", float(passed), passed)
    assert evaluate(output, inverse=True).passed is not passed


PERSON = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}


@pytest.mark.parametrize(
    ("schema", "output", "passed"),
    [
        pytest.param(PERSON, '{"age": 5}', True, id="of the schema"),
        pytest.param(PERSON, '{"age": 2.0}', True, id="a whole number with a fraction"),
        pytest.param(PERSON, '{"age": "x"}', False, id="of the wrong type"),
        pytest.param(PERSON, "{}", False, id="without a required key"),
        pytest.param(PERSON, "not json", False, id="no document at all"),
        pytest.param(True, "[]", True, id="the schema that allows everything"),
        pytest.param(False, "[]", False, id="the schema that allows nothing"),
        pytest.param({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}, "5", True, id="a reference within the schema"),
        pytest.param({"pattern": "^(a+)+$"}, '"' + "a" * 60 + 'b"', False, id="a pattern that could backtrack"),
    ],
)
def test_is_json_checks_a_schema(schema: Any, output: str, passed: bool) -> None:
    assert evaluate(output, schema=schema).passed is passed


def test_is_json_shows_violations_without_the_values() -> None:
    score = evaluate('{"age": "top secret"}', schema=PERSON)
    (violation,) = score.detail["violations"]
    assert violation["path"] == "/age"
    assert "integer" in violation["message"]
    assert "top secret" not in violation["message"]


def test_is_json_shows_at_most_ten_violations() -> None:
    assert len(evaluate(str(["x"] * 50).replace("'", '"'), schema={"items": {"type": "number"}}).detail["violations"]) == 10


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "strin"}, id="an unknown type"),
        pytest.param({"$ref": "http://127.0.0.1:9/schema"}, id="a reference to the network"),
        pytest.param({"properties": {"a": {"$ref": "file:///etc/hostname"}}}, id="a reference to a file"),
        pytest.param({"$schema": "http://127.0.0.1:9/meta"}, id="an unknown draft"),
    ],
)
def test_is_json_errors_on_a_schema_that_cannot_be_used(schema: dict[str, Any]) -> None:
    score = evaluate("{}", schema=schema)
    assert (score.status, score.error_type) == ("error", "invalid_schema")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        pytest.param(None, "missing:output", id="the output is unknown"),
        pytest.param(" " * (MEBIBYTE + 1), "too_long", id="it has too many characters"),
        pytest.param('"' + "é" * (MEBIBYTE // 2) + '"', "too_long", id="it has too many bytes"),
    ],
)
def test_is_json_does_not_apply_when(output: str | None, reason: str) -> None:
    score = evaluate(output)
    assert (score.status, score.detail) == ("skipped", {"reason": reason})


def test_is_json_reads_an_output_of_exactly_one_mebibyte() -> None:
    assert evaluate("[]" + " " * (MEBIBYTE - 2)).passed is True


def score_of(metric: str, output: str | None, *, ground_truth: Any = None, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn(output=output, ground_truth=ground_truth))


# --- code_contains_json ---

CONTAINS_JSON = [
    pytest.param('Sure: {"a": 1}.', 1, '{"a": 1}', id="an object in prose"),
    pytest.param("```json\n[1, 2]\n```", 1, "[1, 2]", id="an array in a fence"),
    pytest.param("{} and []", 1, "{}", id="an empty object counts and an empty array does not"),
    pytest.param('[{"a": [1]}]{"b": 2}', 2, '[{"a": [1]}]', id="only the outermost ones"),
    pytest.param('{"a": {"b": 1}, oops', 1, '{"b": 1}', id="what is whole in something that broke off"),
    pytest.param('{"a": {"b": 1}, "c": [2], "d": {"e"', 2, '{"b": 1}', id="all that is whole in something that was cut"),
    pytest.param('["see {\\"a\\"} or [1, 2]", oops', 1, "[1, 2]", id="brackets in a text of something that broke off"),
    pytest.param('"{\\"a\\": 1}"', 0, None, id="escaped quotes outside of a text"),
    pytest.param('{"a": "}"} x', 1, '{"a": "}"}', id="a brace in a text"),
    pytest.param("cfg {a: 1} {'a': 1} [1,] [NaN] [01]", 0, None, id="what looks like it and is none"),
    pytest.param("no brackets", 0, None, id="no brackets"),
    pytest.param("", 0, None, id="nothing"),
    pytest.param("[" * 5_000 + "1" + "]" * 5_000, 1, "[" * 100, id="any depth"),
    pytest.param("x [" + "1, " * 5_000 + "2]", 1, ("[" + "1, " * 40)[:100], id="a long one is shown in part"),
]


@pytest.mark.parametrize(("output", "count", "first"), CONTAINS_JSON)
def test_contains_json_finds(output: str, count: int, first: str | None) -> None:
    score = score_of("code_contains_json", output)
    assert (score.status, score.passed) == ("ok", count > 0)
    assert score.detail == ({"count": count} if first is None else {"count": count, "first": first})
    assert score_of("code_contains_json", output, inverse=True).passed is (count == 0)


def test_contains_json_needs_one_value_of_the_schema() -> None:
    output = 'first {"a": 1} then {"age": 2} last []'
    assert score_of("code_contains_json", output, schema=PERSON).passed is True
    failed = score_of("code_contains_json", 'first {"a": 1} then {"age": -1}', schema=PERSON)
    assert (failed.passed, failed.detail["count"]) == (False, 2)
    assert "age" in failed.detail["violations"][0]["message"]
    assert score_of("code_contains_json", "none", schema=PERSON).detail == {"count": 0}
    assert score_of("code_contains_json", "[" * 5_000 + "]" * 5_000, schema=True).passed is False


@pytest.mark.parametrize("output", ["none", "{}"])
def test_contains_json_errors_on_a_schema_that_cannot_be_used(output: str) -> None:
    score = score_of("code_contains_json", output, schema={"type": "strin"})
    assert (score.status, score.error_type) == ("error", "invalid_schema")


def raw_decoded(text: str) -> list[tuple[int, int]]:
    """The specification word by word, in quadratic time."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    decoder = json.JSONDecoder(parse_constant=refuse)
    found, position = [], 0
    while position < len(text):
        end = position + 1
        if text[position] in "[{":
            try:
                value, end = decoder.raw_decode(text, position)
            except ValueError:
                pass
            else:
                found += [(position, end)] if value != [] else []
        position = end
    return found


JSON_PIECES = st.sampled_from([
    "{", "}", "[", "]", ",", ":", '"', '"a"', '"k":', '"[1', "\\", '\\"', "1", "-", "1.5e3", "01", "true", "NaN", "x", " ", "\n", "[]", "{}", "[1]",
    '{"a":1}', "\\u00e9",
])  # fmt: skip


@settings(max_examples=1000)
@given(st.lists(JSON_PIECES, max_size=20).map("".join))
@example('[ "see [1, " x')
@example('{"a" [1]}')
def test_contains_json_finds_what_raw_decode_finds(text: str) -> None:
    assert containers(text) == raw_decoded(text)


# --- code_is_xml and code_contains_xml ---

IS_XML = [
    pytest.param("<a/>", True, id="an empty element"),
    pytest.param(
        ' \r\n<?xml version="1.0" encoding="UTF-16"?>\n<!-- x --><a b="1"><c/></a><?p x?>\n', True, id="all that is allowed"
    ),
    pytest.param("<p:a/>", True, id="a prefix that is not declared"),
    pytest.param("<a>&amp;&#65;&lt;<![CDATA[<&]]></a>", True, id="references and CDATA"),
    pytest.param('<!DOCTYPE html SYSTEM "http://127.0.0.1:9/x.dtd"><html/>', True, id="a document type elsewhere, not looked up"),
    pytest.param("<a>" * 50_000 + "</a>" * 50_000, True, id="hostile nesting"),
    pytest.param("", False, id="nothing"),
    pytest.param("Paris", False, id="prose"),
    pytest.param("<a></b>", False, id="tags that do not match"),
    pytest.param("<a><b></a></b>", False, id="tags that cross"),
    pytest.param("<a>", False, id="an open element"),
    pytest.param("<a/><b/>", False, id="two roots"),
    pytest.param("Sure: <a/>", False, id="text before it"),
    pytest.param("```xml\n<a/>\n```", False, id="a fenced block"),
    pytest.param("<a b=1/>", False, id="a value without quotes"),
    pytest.param('<a b="1" b="2"/>', False, id="an attribute twice"),
    pytest.param("<a>&nbsp;</a>", False, id="an entity that nobody declares"),
    pytest.param("<a>\x00</a>", False, id="a character that XML does not have"),
    pytest.param("<a>\ud800</a>", False, id="a lone surrogate"),
    pytest.param('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', False, id="an entity of its own"),
    pytest.param("<!DOCTYPE a []><a/>", False, id="an internal subset that is empty"),
]


@pytest.mark.parametrize(("output", "passed"), IS_XML)
def test_is_xml_scores(output: str, passed: bool) -> None:
    score = score_of("code_is_xml", output)
    assert (score.status, score.value, score.passed) == ("ok", float(passed), passed)
    assert ("error" in score.detail) is not passed
    assert score_of("code_is_xml", output, inverse=True).passed is not passed


BOMB = "".join(f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(20))


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(f'<!DOCTYPE z [<!ENTITY a "aaaaaaaaaa">{BOMB}]><z>&u;</z>', id="an entity bomb"),
        pytest.param('<!DOCTYPE z [<!ENTITY x SYSTEM "file:///etc/hostname">]><z>&x;</z>', id="an entity in a file"),
        pytest.param('<!DOCTYPE z [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x"> %x;]><z/>', id="a parameter entity elsewhere"),
    ],
)
def test_xml_declarations_are_refused_before_they_are_read(output: str) -> None:
    score = score_of("code_is_xml", output, required_elements=["z"])
    assert (score.passed, score.detail) == (False, {"error": "declarations are not supported", "missing_elements": ["z"]})
    assert score_of("code_contains_xml", output).status == "ok"


@pytest.mark.parametrize(
    ("required", "missing"),
    [
        pytest.param(["analysis"], [], id="the root"),
        pytest.param(["rating"], [], id="a child of the root"),
        pytest.param(["analysis.rating", "analysis.text.p:q"], [], id="dotted paths"),
        pytest.param("rating, analysis.text", [], id="a text with commas"),
        pytest.param("", [], id="an empty text"),
        pytest.param(["q"], ["q"], id="a name without its prefix"),
        pytest.param(["p:q"], ["p:q"], id="a single name further down"),
        pytest.param(["rating.stars", "Rating", "text"], ["rating.stars", "Rating"], id="a path that does not begin at the root"),
        pytest.param(["analysis.rating.p:q"], ["analysis.rating.p:q"], id="a path whose parts are elsewhere"),
    ],
)
def test_xml_required_elements(required: Any, missing: list[str]) -> None:
    output = "<analysis><rating><stars/></rating><text>x<p:q/></text></analysis>"
    for metric, text in (("code_is_xml", output), ("code_contains_xml", f"Here & there: {output} <br>")):
        score = score_of(metric, text, required_elements=required)
        assert score.passed is (not missing)
        assert score.detail.get("missing_elements", []) == missing


CONTAINS_XML = [
    pytest.param("Sure: <a>1</a> ok", 1, id="an element in prose"),
    pytest.param("```xml\n<a/>\n```", 1, id="an element in a fence"),
    pytest.param("<p>one<br>two <b>bold</b></p>", 1, id="a part of something that is not well-formed"),
    pytest.param("<a><b><c/></b></a><a/>", 2, id="only the outermost ones"),
    pytest.param("<a>&nbsp;<b>x</b></a> <c/>", 2, id="an entity that nobody declares breaks what is around it"),
    pytest.param("<a><b x='1' x='2'/><c/></a>", 1, id="an attribute twice breaks what is around it"),
    pytest.param('if a <b and c> d <e f="</g>"/>', 0, id="what looks like tags"),
    pytest.param("<a><b></a></b>", 0, id="tags that cross"),
    pytest.param("<a><!-- <b> --><![CDATA[</a>]]><?p </a>?></a>", 1, id="markup that is no tag inside of an element"),
    pytest.param("<!-- <a/> -->", 0, id="what is commented out"),
    pytest.param('<?xml version="1.0"?><a/>', 1, id="a document"),
    pytest.param("<a>]]></a>", 0, id="the end of a section that never began"),
    pytest.param("<a>&#0;</a><b>&#x110000;</b>", 0, id="references to no character"),
    pytest.param("1 < 2 and 3 > 2", 0, id="no tag"),
    pytest.param("", 0, id="nothing"),
]


@pytest.mark.parametrize(("output", "count"), CONTAINS_XML)
def test_contains_xml_finds(output: str, count: int) -> None:
    score = score_of("code_contains_xml", output)
    assert (score.status, score.passed, score.detail) == ("ok", count > 0, {"count": count})
    assert score_of("code_contains_xml", output, inverse=True).passed is (count == 0)


def test_contains_xml_needs_one_element_with_all_that_is_required() -> None:
    apart = score_of("code_contains_xml", "<a><b/></a> <a><c/></a>", required_elements=["a.b", "a.c"])
    assert (apart.passed, apart.detail) == (False, {"count": 2, "missing_elements": ["a.c"]})
    assert score_of("code_contains_xml", "<a><b/></a> <a><b/><c/></a>", required_elements=["a.b", "a.c"]).passed is True
    assert score_of("code_contains_xml", "none", required_elements=["a"]).detail == {"count": 0, "missing_elements": ["a"]}


XML_PIECES = st.sampled_from([
    "<a>", "</a>", "<b>", "</b>", "<c/>", '<a x="1">', '<a x="1" x="2">', "x", " ", "&amp;", "&foo;", "&", "<", ">", "<!-- c -->", "<!-- c -- d -->",
    "<![CDATA[x]]>", "]]>", "<?p x?>", "<?XML x?>", "<?xmlx y?>", "<a b>", "&#0;", "&#65;", "<a y='<'>", '"', "--", '<a x="&">', '<a x="]]>">', "<é/>",
    "</a >", "<a\n/>", "\x00", "\ufffe", "&#xFFFE;", "&#x10FFFF;", "&#x110000;", '<a x = "1"/>', '<a x="1"y="2"/>', "<1/>", "<a-1.b/>", "<!-- \x00 -->",
])  # fmt: skip


def shortest_elements(text: str) -> list[tuple[int, int]]:
    """The specification word by word, in cubic time: from each start tag on, the shortest span that is a document."""
    found, position = [], 0
    while position < len(text):
        ends = (
            range(position + 1, len(text) + 1) if text[position] == "<" and text[position + 1 : position + 2] not in "!?" else ()
        )
        end = next((end for end in ends if text[end - 1] == ">" and xml.read(text[position:end]).fault is None), None)
        found += [(position, end)] if end is not None else []
        position = end or position + 1
    return found


@settings(max_examples=500)
@given(st.lists(XML_PIECES, max_size=14).map("".join))
def test_contains_xml_finds_every_element_that_the_parser_takes(text: str) -> None:
    assert xml.elements(text) == shortest_elements(text)


@settings(max_examples=300)
@given(st.lists(XML_PIECES, max_size=8).map(lambda pieces: f"<r>{''.join(pieces)}</r>"))
def test_is_xml_agrees_with_defusedxml(text: str) -> None:
    from xml.etree.ElementTree import ParseError

    from defusedxml.ElementTree import fromstring

    try:
        fromstring(text)
    except ParseError:
        well_formed = False
    else:
        well_formed = True
    assert score_of("code_is_xml", text).passed is well_formed


# --- code_is_sql and code_sql_shape ---

IS_SQL = [
    pytest.param("SELECT name FROM users WHERE id = 1", {}, 1, ["users"], id="a query"),
    pytest.param("  select 1;\n-- done\nSELECT 2;; ", {}, 2, [], id="two statements and a comment"),
    pytest.param("(SELECT a FROM t) UNION SELECT b FROM db.u", {}, 1, ["t", "db.u"], id="a union"),
    pytest.param("WITH x AS (SELECT 1 FROM t) SELECT * FROM x", {}, 1, ["t"], id="a CTE is no table"),
    pytest.param("WITH t AS (SELECT * FROM t) SELECT * FROM t", {}, 1, ["t"], id="a CTE that hides the table it reads"),
    pytest.param(
        "WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT n FROM x) SELECT * FROM x, t", {}, 1, ["t"], id="a CTE that reads itself"
    ),
    pytest.param("INSERT INTO t (a) VALUES (1)", {}, 1, ["t"], id="an insert"),
    pytest.param("INSERT INTO t DEFAULT VALUES", {}, 1, ["t"], id="an insert of defaults"),
    pytest.param("UPDATE t SET a = 1", {}, 1, ["t"], id="an update"),
    pytest.param("DELETE FROM t", {}, 1, ["t"], id="a delete"),
    pytest.param("CREATE TABLE t (a INT)", {}, 1, ["t"], id="a definition"),
    pytest.param("SELECT `a` FROM `t`", {}, 1, ["t"], id="backticks, without a dialect"),
    pytest.param("SELECT TOP 5 a FROM t", {"dialect": "tsql"}, 1, ["t"], id="what only one dialect has"),
    pytest.param("DELETE t", {"dialect": "TransactSQL"}, 1, ["t"], id="a delete without FROM where that is allowed"),
    pytest.param("SELECT a::int FROM t", {"dialect": "PostgreSQL"}, 1, ["t"], id="a dialect by another name"),
    pytest.param("SELECT DISTINCT name FROM t", {}, 1, ["t"], id="DISTINCT and a name"),
    pytest.param("SELECT a AS b FROM t", {}, 1, ["t"], id="an alias with AS"),
    pytest.param("SELECT 'select a b from' FROM t", {}, 1, ["t"], id="SQL in a text"),
    pytest.param("SELECT first last FROM users", {"strict": False}, 1, ["users"], id="two names, where that is allowed"),
]


@pytest.mark.parametrize(("output", "params", "statements", "tables"), IS_SQL)
def test_is_sql_reads(output: str, params: dict[str, Any], statements: int, tables: list[str]) -> None:
    score = score_of("code_is_sql", output, **params)
    assert (score.status, score.passed) == ("ok", True)
    assert score.detail == {"statements": statements, "tables": tables, "parser": "sqlglot"}
    assert score_of("code_is_sql", output, inverse=True, **params).passed is False


NOT_SQL = [
    "", "   ", "-- only a comment", ";", "hello", "hello world", "42", "'x'", "Paris is the capital of France.", "SELECT", "SELECT * FROM",
    "SELECT FROM WHERE", "SELECT (1", "SELECT 'a", "SELECT * FORM t", "SELECT a FROM t WHERE", "SELECT a b FROM t", "select 1; hello", "insert into t",
    "Update it", "Delete it", "Copy that", "Use the table", "From Paris", "Table salt", "Show me the money", "Grant me a wish", "If you want",
    "CALL p(1)", "```sql\nSELECT 1\n```", "SELECT 1 2", "\ud800", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("output", NOT_SQL)
def test_is_sql_refuses(output: str) -> None:
    score = score_of("code_is_sql", output)
    assert (score.status, score.value, score.passed, score.detail["parser"]) == ("ok", 0.0, False, "sqlglot")


@pytest.mark.parametrize(
    ("output", "refused"),
    [
        pytest.param("SELECT * FROM users", [], id="the table"),
        pytest.param('SELECT * FROM "Users" u', [], id="the table in quotes and in another case"),
        pytest.param("SELECT * FROM public.users", [], id="the table with its schema"),
        pytest.param("SELECT 1", [], id="no table"),
        pytest.param("SELECT * FROM generate_series(1, 2)", [], id="a function is no table"),
        pytest.param("SELECT * FROM users, secrets", ["secrets"], id="another table beside it"),
        pytest.param("SELECT (SELECT 1 FROM secrets) FROM users", ["secrets"], id="another table in a subquery"),
        pytest.param("SELECT 1 FROM users; DROP TABLE secrets", ["secrets"], id="another table in another statement"),
        pytest.param("WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets", ["secrets"], id="behind a CTE of its name"),
        pytest.param("SELECT * FROM audit.log", [], id="a table that is allowed with its schema"),
        pytest.param("SELECT * FROM log", ["log"], id="the same name without the schema"),
    ],
)
def test_is_sql_keeps_to_tables(output: str, refused: list[str]) -> None:
    score = score_of("code_is_sql", output, allowed_tables=["USERS", "audit.log"])
    assert (score.passed, score.detail["refused_tables"]) == (not refused, refused)


@pytest.mark.parametrize(
    ("output", "refused"),
    [
        pytest.param("SELECT u.id, Name FROM users u WHERE id = 1", [], id="the columns"),
        pytest.param("SELECT COUNT(*) FROM users", [], id="counting is no column"),
        pytest.param("SELECT COUNT(id) AS n FROM users GROUP BY name HAVING n > 1 ORDER BY n", [], id="an alias further on"),
        pytest.param("SELECT x FROM (SELECT id AS x FROM users) q", [], id="a column of a subquery"),
        pytest.param("WITH c(y) AS (SELECT id FROM users) SELECT y, c.*, * FROM c", [], id="a column of a CTE"),
        pytest.param("SELECT * FROM users", ["*"], id="all columns"),
        pytest.param("SELECT u.* FROM users u", ["*"], id="all columns of one table"),
        pytest.param("SELECT id AS secret, secret FROM users", ["secret"], id="a column behind an alias of its name"),
        pytest.param("SELECT id FROM users WHERE secret = 1", ["secret"], id="a column in a condition"),
        pytest.param("SELECT q.x FROM (SELECT secret AS x FROM users) q", ["secret"], id="a column inside of a subquery"),
        pytest.param("SELECT (SELECT secret FROM (SELECT 1 AS x) d) FROM users", ["secret"], id="a column of an outer query"),
        pytest.param("SELECT secret FROM (SELECT * FROM users) q", ["*"], id="a column through a star"),
        pytest.param("INSERT INTO t (id, secret) VALUES (1, 2)", ["secret"], id="a column that is written"),
        pytest.param("UPDATE t SET secret = 1", ["secret"], id="a column that is changed"),
        pytest.param("CREATE TABLE t (id INT, secret INT)", ["secret"], id="a column that is made"),
        pytest.param("SELECT id FROM a JOIN b USING (secret)", ["secret"], id="a column that joins"),
    ],
)
def test_is_sql_keeps_to_columns(output: str, refused: list[str]) -> None:
    score = score_of("code_is_sql", output, allowed_columns=["ID", "name"])
    assert (score.passed, score.detail["refused_columns"]) == (not refused, refused)


def test_is_sql_errors_on_an_unknown_dialect() -> None:
    score = score_of("code_is_sql", "SELECT 1", dialect="klingon")
    assert (score.status, score.error_type) == ("error", "invalid_dialect")


TOO_COMPLEX = [
    pytest.param("SELECT * FROM t" + " JOIN u" * 40, id="joins that double the time each"),
    pytest.param("SELECT " + "(" * 40 + "1" + ")" * 40, id="deep parentheses"),
    pytest.param("SELECT " + "NOT " * 2_000 + "a FROM t", id="deep without parentheses"),
    pytest.param("SELECT " + "a, " * 4_000 + "b FROM t", id="a long list"),
]


@pytest.mark.parametrize("output", TOO_COMPLEX)
def test_is_sql_goes_by_the_shape_where_parsing_would_take_too_much(output: str) -> None:
    score = score_of("code_is_sql", output)
    assert (score.passed, score.detail) == (True, {"parser": "shape"})
    assert score_of("code_is_sql", output, allowed_tables=["t", "u"]).passed is False


def test_is_sql_says_nothing_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        score_of("code_is_sql", "EXPLAIN confidential")
    assert caplog.text == ""
    logging.getLogger("sqlglot").warning("somebody else's")
    assert "somebody else's" in caplog.text


@pytest.fixture
def without_sqlglot(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    sql._parser.cache_clear()
    yield
    sql._parser.cache_clear()


@pytest.mark.usefixtures("without_sqlglot")
@pytest.mark.parametrize(
    ("output", "passed"),
    [
        pytest.param("SELECT name FROM users", True, id="a query"),
        pytest.param("SELECT *;", True, id="all columns at the end"),
        pytest.param("INSERT INTO t DEFAULT VALUES;", True, id="VALUES at the end"),
        pytest.param("SELECT * FROM ;", False, id="FROM at the end"),
        pytest.param("SELECT a, FROM", False, id="a comma and FROM"),
        pytest.param("SELECT 2 *", False, id="a sign at the end"),
        pytest.param("SELECT first last FROM users", False, id="two names"),
        pytest.param("Paris", False, id="prose"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_is_sql_goes_by_the_shape_without_the_parser(output: str, passed: bool) -> None:
    score = score_of("code_is_sql", output)
    assert (score.status, score.passed, score.detail) == ("ok", passed, {"parser": "shape"})


@pytest.mark.usefixtures("without_sqlglot")
def test_is_sql_cannot_check_tables_without_the_parser() -> None:
    score = score_of("code_is_sql", "SELECT 1", allowed_tables=[])
    assert (score.status, score.error_type) == ("error", "MissingExtra")


SQL_SHAPE = [
    pytest.param(" \nMERGE INTO t USING s ON t.a = s.a", "", id="another verb"),
    pytest.param("SELECT ')' FROM t", "", id="a parenthesis in a text"),
    pytest.param("SELECT 'it''s (' FROM t", "", id="a quote in a text"),
    pytest.param('SELECT "(" FROM t', "", id="a parenthesis in a name"),
    pytest.param("with x as (select 1) select * from x", "", id="WITH and AS"),
    pytest.param("WITH x\nAS (SELECT 1) SELECT 2", "", id="WITH and AS on another line"),
    pytest.param("With pleasure", "starts_with_verb", id="WITH without AS"),
    pytest.param("With pleasure: 'as'", "starts_with_verb", id="AS in a text only"),
    pytest.param("With great measures", "starts_with_verb", id="as inside of a word"),
    pytest.param("Dropping it", "starts_with_verb", id="a verb that goes on"),
    pytest.param("EXPLAIN SELECT 1", "starts_with_verb", id="a verb that is not listed"),
    pytest.param("", "starts_with_verb", id="nothing"),
    pytest.param("SELECT )(", "balanced_parentheses", id="parentheses the wrong way round"),
    pytest.param("SELECT (1", "balanced_parentheses", id="a parenthesis that stays open"),
    pytest.param("SELECT 'a", "even_single_quotes", id="a single quote that stays open"),
    pytest.param('SELECT "a', "even_double_quotes", id="a double quote that stays open"),
]


@pytest.mark.parametrize(("output", "fault"), SQL_SHAPE)
def test_sql_shape_scores(output: str, fault: str) -> None:
    score = score_of("code_sql_shape", output)
    assert (score.status, score.passed) == ("ok", not fault)
    assert score.detail == {
        name: name != fault for name in ("starts_with_verb", "balanced_parentheses", "even_single_quotes", "even_double_quotes")
    }


# --- code_html_shape ---

HTML_SHAPE = [
    pytest.param("<p>x", [], True, id="a tag that stays open"),
    pytest.param('< DIV class="a">', ["div"], True, id="white space, attributes and another case"),
    pytest.param("a<br>b<hr/>", ["br", "HR"], True, id="tags without an end"),
    pytest.param("<my-tag:x1\n>", ["my-tag:x1"], True, id="all that a name can have"),
    pytest.param("</p>", [], False, id="only an end tag"),
    pytest.param("a < b > c", [], True, id="a comparison that looks like one"),
    pytest.param("a < b", [], False, id="a comparison"),
    pytest.param("<3", [], False, id="a heart"),
    pytest.param("<!-- x --><!DOCTYPE>", [], False, id="other markup"),
    pytest.param("<mainly>", ["main"], False, id="a tag that only begins so"),
    pytest.param("<a.b>", ["a.b"], False, id="a required name that no tag can have"),
    pytest.param("", [], False, id="nothing"),
]


@pytest.mark.parametrize(("output", "required", "passed"), HTML_SHAPE)
def test_html_shape_scores(output: str, required: list[str], passed: bool) -> None:
    score = score_of("code_html_shape", output, required_tags=required)
    assert (score.status, score.passed) == ("ok", passed)


def test_html_shape_lists_what_is_missing() -> None:
    score = score_of("code_html_shape", "<main><p>", required_tags=["Main", "H1", "p", "a+"])
    assert (score.passed, score.detail) == (False, {"missing_tags": ["H1", "a+"]})


# --- code_json_equals ---

JSON_EQUALS = [
    pytest.param({"a": 1, "b": [True, None]}, '{"b": [true, null], "a": 1.0}', None, id="the order of keys"),
    pytest.param('{"a": 1}', '{"a": 1}', None, id="a text that is JSON"),
    pytest.param("Paris", '"Paris"', None, id="a text that is not"),
    pytest.param("null", "null", None, id="null as a text"),
    pytest.param((1, 2), "[1, 2]", None, id="a tuple"),
    pytest.param({1: "x"}, '{"1": "x"}', None, id="a key that is no text"),
    pytest.param([], "{}", "$", id="an array and an object"),
    pytest.param({"a": 1}, '{"a": true}', "$.a", id="true is not 1"),
    pytest.param({"a": [1, {"b": "x"}]}, '{"a": [1, {"b": "y"}]}', "$.a[1].b", id="a difference further down"),
    pytest.param([1, 2], "[2, 1]", "$[0]", id="the order of lists"),
    pytest.param([1], "[1, 2]", "$[1]", id="an element too many"),
    pytest.param({"a": 1, "b": 2}, '{"c": 3, "a": 1}', "$.b", id="a key that is missing comes before one too many"),
    pytest.param({}, '{"odd key": 1}', "$['odd key']", id="a key that is no name"),
    pytest.param({"a": None}, "{}", "$.a", id="null is not nothing"),
]


@pytest.mark.parametrize(("value", "output", "path"), JSON_EQUALS)
def test_json_equals_scores(value: Any, output: str, path: str | None) -> None:
    score = score_of("code_json_equals", output, value=value)
    assert (score.status, score.passed) == ("ok", path is None)
    assert score.detail == ({} if path is None else {"path": path})


@pytest.mark.parametrize(
    ("value", "output", "path"),
    [
        pytest.param([1, 2, 2], "[2, 1, 2.0]", None, id="another order"),
        pytest.param([{"a": [1, 2]}, {"b": 1}], '[{"b": 1}, {"a": [2, 1]}]', None, id="another order further down"),
        pytest.param({"x": [[], {}, True, "1"]}, '{"x": ["1", true, {}, []]}', None, id="elements of all types"),
        pytest.param({"x": [1, 2]}, '{"x": [1, 1, 2]}', "$.x", id="an element twice"),
        pytest.param({"x": [True]}, '{"x": [1]}', "$.x", id="true is not 1"),
        pytest.param([[1, 2], [3]], "[[1], [2, 3]]", "$", id="elements of another list"),
        pytest.param([[]], "[{}]", "$", id="an empty list is no empty object"),
    ],
)
def test_json_equals_can_ignore_the_order_of_lists(value: Any, output: str, path: str | None) -> None:
    score = score_of("code_json_equals", output, value=value, ignore_list_order=True)
    assert (score.passed, score.detail.get("path")) == (path is None, path)


def test_json_equals_takes_the_ground_truth() -> None:
    assert score_of("code_json_equals", '{"a": 1}', ground_truth='{"a": 1}').passed is True
    assert score_of("code_json_equals", '{"a": 1}', ground_truth={"a": 2}).passed is False
    assert score_of("code_json_equals", "[]", ground_truth="{}", value="[]").passed is True
    assert score_of("code_json_equals", "[]", expected_output="[]").passed is True
    skipped = score_of("code_json_equals", "[]")
    assert (skipped.status, skipped.detail) == ("skipped", {"reason": "missing:ground_truth"})


def test_json_equals_takes_nothing_for_equal_that_is_no_json() -> None:
    assert score_of("code_json_equals", "Paris", value="Paris").passed is False
    assert score_of("code_json_equals", "", value="").passed is False
    assert score_of("code_json_equals", "Paris", value="Paris", inverse=True).passed is True


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, "", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def rearranged(value: Any, shuffle: Any) -> Any:
    if isinstance(value, dict):
        return {key: rearranged(inner, shuffle) for key, inner in reversed(value.items())}
    return shuffle([rearranged(inner, shuffle) for inner in value]) if isinstance(value, list) else value


def sorted_form(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(sorted_form, value))) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{key}:{sorted_form(inner)}" for key, inner in value.items())) + "}"
    return json.dumps(value)


@given(JSON_VALUES, JSON_VALUES, st.randoms(use_true_random=False))
def test_json_equals_is_equality(one: Any, other: Any, random: Any) -> None:
    mixed = rearranged(one, lambda items: random.sample(items, len(items)))
    assert score_of("code_json_equals", json.dumps(mixed), value=json.dumps(one), ignore_list_order=True).passed is True
    strict = score_of("code_json_equals", json.dumps(other), value=json.dumps(one))
    assert strict.passed is (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))
    loose = score_of("code_json_equals", json.dumps(other), value=json.dumps(one), ignore_list_order=True)
    assert loose.passed is (sorted_form(one) == sorted_form(other))


# --- code_array_length ---


@pytest.mark.parametrize(
    ("output", "params", "length", "passed"),
    [
        pytest.param("[1, 2, 3]", {"value": 3}, 3, True, id="the length"),
        pytest.param("[1, 2, 3]", {"value": 2}, 3, False, id="another length"),
        pytest.param("[]", {"value": 0}, 0, True, id="nothing in it"),
        pytest.param("[1, 2]", {"min": 2}, 2, True, id="at the lower bound"),
        pytest.param("[1, 2]", {"max": 2}, 2, True, id="at the upper bound"),
        pytest.param("[1, 2]", {"min": 3, "max": 5}, 2, False, id="under the lower bound"),
        pytest.param("[1, 2]", {"value": 2, "max": 1}, 2, True, id="the value wins over the bounds"),
        pytest.param("[1]", {"value": 1, "path": "$"}, 1, True, id="the whole document"),
        pytest.param('{"$": [1]}', {"value": 1}, None, False, id="a key that looks like the whole document"),
        pytest.param('{"a": {"b": [1]}}', {"value": 1, "path": "a.b"}, 1, True, id="a path"),
        pytest.param('{"a": [{"b": [1, 2]}]}', {"value": 2, "path": "$.a[0].b"}, 2, True, id="a path with an index"),
        pytest.param("[[1], [1, 2]]", {"value": 2, "path": "1"}, 2, True, id="an index"),
        pytest.param("[[1], [1, 2]]", {"value": 2, "path": "$[1]"}, 2, True, id="an index in brackets"),
        pytest.param('{"a.b": [1]}', {"value": 1, "path": "a.b"}, 1, True, id="a key with a dot"),
        pytest.param("[[1]]", {"value": 1, "path": "7"}, None, False, id="an index too large"),
        pytest.param('{"a": 1}', {"value": 1, "path": "a.b"}, None, False, id="a path that leads nowhere"),
        pytest.param('{"a": "xyz"}', {"value": 3, "path": "a"}, None, False, id="a text is no array"),
        pytest.param('{"a": 1}', {"value": 1}, None, False, id="an object is no array"),
        pytest.param("1, 2, 3", {"value": 3}, None, False, id="no JSON"),
    ],
)
def test_array_length_scores(output: str, params: dict[str, Any], length: int | None, passed: bool) -> None:
    score = score_of("code_array_length", output, **params)
    assert (score.status, score.passed, score.detail.get("length")) == ("ok", passed, length)


@pytest.mark.parametrize(
    ("params", "error_type"),
    [
        pytest.param({}, "missing_parameter", id="no length and no bound"),
        pytest.param({"min": 3, "max": 2}, "invalid_parameter", id="bounds that nothing meets"),
    ],
)
def test_array_length_errors(params: dict[str, Any], error_type: str) -> None:
    score = score_of("code_array_length", "[]", **params)
    assert (score.status, score.error_type) == ("error", error_type)


# --- code_schema_conformance ---


@pytest.mark.parametrize(
    ("schema", "output", "paths"),
    [
        pytest.param(PERSON, '{"age": 5}', [], id="of the schema"),
        pytest.param(json.dumps(PERSON), '{"age": 5}', [], id="a schema that is a text"),
        pytest.param(PERSON, '{"age": "5"}', ["/age"], id="of the wrong type"),
        pytest.param(PERSON, '{"age": -1}', ["/age"], id="too small"),
        pytest.param(PERSON, "{}", ["/"], id="without a required key"),
        pytest.param(PERSON, "not json", [], id="no JSON"),
        pytest.param({"type": "integer"}, "2.0", [], id="a whole number with a fraction"),
        pytest.param({"type": "integer"}, "2.5", ["/"], id="a number that is not whole"),
        pytest.param({"type": "integer"}, "true", ["/"], id="true is no number"),
        pytest.param({"type": ["string", "null"]}, "null", [], id="one of two types"),
        pytest.param({"enum": [1, "a"]}, '"1"', ["/"], id="a text is no number of an enum"),
        pytest.param({"enum": [1, True]}, "1.0", [], id="a number of an enum by value"),
        pytest.param({"enum": [True]}, "1", ["/"], id="1 is not true"),
        pytest.param({"const": {"a": [1]}}, '{"a": [1.0]}', [], id="a constant by value"),
        pytest.param({"items": {"type": "number"}, "maxItems": 2}, '[1, "x", "y"]', ["/", "/1", "/2"], id="elements"),
        pytest.param({"additionalProperties": False, "properties": {"a": True}}, '{"a": 1, "b": 2}', ["/"], id="a key too many"),
        pytest.param({"additionalProperties": {"type": "null"}}, '{"a": null, "b": 2}', ["/b"], id="a key of the wrong type"),
        pytest.param({"minLength": 2, "maxLength": 2}, '"é😀"', [], id="lengths in characters"),
        pytest.param({"required": ["a"]}, "[]", [], id="keywords for other types"),
        pytest.param({"pattern": "b+$"}, '"abb"', [], id="a pattern is not anchored"),
        pytest.param({"pattern": "^b"}, '"abb"', ["/"], id="a pattern that does not match"),
        pytest.param(False, "1", ["/"], id="the schema that allows nothing"),
        pytest.param(
            {"title": "x", "default": 1, "$schema": "http://json-schema.org/draft-07/schema#"}, "1", [], id="annotations"
        ),
    ],
)
def test_schema_conformance_scores(schema: Any, output: str, paths: list[str]) -> None:
    score = score_of("code_schema_conformance", output, schema=schema)
    assert (score.status, score.passed) == ("ok", not paths and output != "not json")
    assert sorted(violation["path"] for violation in score.detail.get("violations", [])) == paths


@pytest.mark.parametrize("output", ["{}", "not json"])
@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "strin"}, id="an unknown type"),
        pytest.param({"properties": {"a": {"minimum": "1"}}}, id="a bound that is a text"),
        pytest.param({"required": "a"}, id="a required key that is no list"),
        pytest.param({"items": 5}, id="elements of no schema"),
        pytest.param("{type: string}", id="a text that is no JSON"),
        pytest.param(["type"], id="a list"),
        pytest.param(None, id="null"),
    ],
)
def test_schema_conformance_errors_on_a_schema_that_cannot_be_used(schema: Any, output: str) -> None:
    score = score_of("code_schema_conformance", output, schema=schema)
    assert (score.status, score.error_type) == ("error", "invalid_schema")


def test_schema_conformance_quotes_nothing_of_the_output() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1]}, "b": {"const": 2}, "c": {"maxLength": 1, "pattern": "^x"}}}
    score = score_of("code_schema_conformance", '{"a": "secret", "b": "secret", "c": "secret"}', schema=schema)
    assert {violation["path"] for violation in score.detail["violations"]} == {"/a", "/b", "/c"}
    assert "secret" not in str(score.to_dict())


def test_schema_conformance_shows_at_most_ten_violations() -> None:
    score = score_of("code_schema_conformance", json.dumps(["x"] * 50), schema={"items": {"type": "number"}})
    assert len(score.detail["violations"]) == 10


def test_schema_conformance_fetches_nothing() -> None:
    for reference in ("http://127.0.0.1:9/schema", "file:///etc/hostname"):
        score = score_of("code_schema_conformance", "{}", schema={"$ref": reference})
        assert (score.status, score.error_type) == ("error", "invalid_schema")


# --- code_field_completeness and code_field_accuracy ---


@pytest.mark.parametrize(
    ("output", "fields", "value", "missing"),
    [
        pytest.param('{"a": "", "b": 0, "c": false, "d": []}', ["a", "b", "c", "d"], 1.0, [], id="empty values are there"),
        pytest.param('{"a": null}', ["a", "b"], 0.0, ["a", "b"], id="null and nothing are not"),
        pytest.param('{"a": {"b": [{"c": 1}]}}', ["a.b", "a.b[0].c", "a.b.1"], 2 / 3, ["a.b.1"], id="paths"),
        pytest.param('{"a.b": 1}', ["a.b"], 1.0, [], id="a key with a dot"),
        pytest.param('{"A": 1}', ["a"], 0.0, ["a"], id="another case"),
        pytest.param("[1]", ["0"], 0.0, ["0"], id="no object"),
        pytest.param("nope", ["a"], 0.0, ["a"], id="no JSON"),
        pytest.param("", ["a"], 0.0, ["a"], id="nothing"),
    ],
)
def test_field_completeness_scores(output: str, fields: list[str], value: float, missing: list[str]) -> None:
    score = score_of("code_field_completeness", output, fields=fields)
    assert (score.status, score.value, score.passed, score.detail) == ("ok", value, None, {"missing": missing})
    assert score_of("code_field_completeness", output, fields=fields, threshold=0.5).passed is (value >= 0.5)


def test_field_completeness_without_fields_is_vacuous() -> None:
    score = score_of("code_field_completeness", "nope", fields=[])
    assert (score.value, score.vacuous) == (1.0, True)


@pytest.mark.parametrize(
    ("field", "expected", "params", "passed"),
    [
        pytest.param("city", "PARIS", {}, True, id="another case"),
        pytest.param("city", "PARIS", {"ignore_case": False}, False, id="another case where that counts"),
        pytest.param("city", "Paris ", {}, False, id="white space counts"),
        pytest.param("n", "3", {}, True, id="a number in a text"),
        pytest.param("n", 3, {}, True, id="a number by value"),
        pytest.param("n", "3e0", {}, True, id="a number in another spelling"),
        pytest.param("n", "03", {}, False, id="digits that are no number"),
        pytest.param("digits", 3, {}, True, id="a text with a number"),
        pytest.param("large", 9007199254740992, {}, False, id="numbers that only floats take for equal"),
        pytest.param("yes", "TRUE", {}, True, id="true in a text"),
        pytest.param("yes", True, {}, True, id="true"),
        pytest.param("yes", 1, {}, False, id="true is not 1"),
        pytest.param("none", "null", {}, True, id="null in a text"),
        pytest.param("none", None, {}, True, id="null"),
        pytest.param("none", "", {}, False, id="null is not nothing"),
        pytest.param("list", [1.0, {"b": 2, "a": 1}], {}, True, id="a list by value"),
        pytest.param("list", '[1, {"a": 1, "b": 2}]', {}, True, id="a list in a text"),
        pytest.param("list", "[1]", {}, False, id="another list"),
        pytest.param("list[1].a", 1, {}, True, id="a path"),
        pytest.param("nowhere", "null", {}, False, id="a field that is missing"),
    ],
)
def test_field_accuracy_scores(field: str, expected: Any, params: dict[str, Any], passed: bool) -> None:
    output = json.dumps({
        "city": "Paris", "n": 3.0, "digits": "3", "large": 9007199254740993, "yes": True, "none": None, "list": [1, {"a": 1, "b": 2}],
    })  # fmt: skip
    score = score_of("code_field_accuracy", output, field=field, expected=expected, **params)
    assert (score.status, score.passed) == ("ok", passed)
    assert score_of("code_field_accuracy", output, field=field, expected=expected, inverse=True, **params).passed is not passed


def test_field_accuracy_shows_what_it_found() -> None:
    def actual(value: Any) -> Any:
        return score_of("code_field_accuracy", json.dumps({"f": value}), field="f", expected="x").detail["actual"]

    assert [actual(value) for value in ("Paris", 3, None, False, "x" * 200, {"b": 1, "a": 2})] == [
        "Paris", 3, None, False, "x" * 100, '{"a":2,"b":1}',
    ]  # fmt: skip
    assert score_of("code_field_accuracy", "[1]", field="0", expected=1).detail == {}
    assert score_of("code_field_accuracy", "nope", field="f", expected="nope").passed is False


# --- all of them ---

REQUIRED: dict[str, dict[str, Any]] = {
    "code_is_json": {},
    "code_contains_json": {},
    "code_is_xml": {},
    "code_contains_xml": {},
    "code_is_sql": {},
    "code_sql_shape": {},
    "code_html_shape": {},
    "code_json_equals": {"value": "[1]"},
    "code_array_length": {"value": 1},
    "code_schema_conformance": {"schema": PERSON},
    "code_field_completeness": {"fields": ["a", "b.c"]},
    "code_field_accuracy": {"field": "a", "expected": "1"},
}
FURTHER: dict[str, dict[str, Any]] = {
    "code_is_json": {"schema": PERSON},
    "code_contains_json": {"schema": PERSON},
    "code_is_xml": {"required_elements": "a.b,c"},
    "code_contains_xml": {"required_elements": "a.b,c"},
    "code_is_sql": {"allowed_tables": ["t"], "allowed_columns": ["a"]},
    "code_html_shape": {"required_tags": ["a"]},
    "code_json_equals": {"value": [1, {"a": []}], "ignore_list_order": True},
    "code_array_length": {"min": 1, "path": "a[0]"},
}


@pytest.mark.parametrize("metric", REQUIRED)
@pytest.mark.parametrize(
    ("output", "reason"),
    [pytest.param(None, "missing:output", id="unknown"), pytest.param("x" * (MEBIBYTE + 1), "too_long", id="too long")],
)
def test_does_not_apply_when_the_output_is(metric: str, output: str | None, reason: str) -> None:
    score = score_of(metric, output, **REQUIRED[metric])
    assert (score.status, score.detail) == ("skipped", {"reason": reason})


@pytest.mark.parametrize("metric", ["code_schema_conformance", "code_field_completeness", "code_field_accuracy"])
def test_a_required_parameter_is_required_when_evaluated(metric: str) -> None:
    assert score_of(metric, "{}").error_type == "missing_parameter"


HOSTILE = [
    "[", "{", '{"a":', '["', "[1,", "{},", "<a>", "<a/>", "<a ", '<a x="1" ', "<a>&", "<!--", "<![CDATA[", "<?a ", "&lt;", "< ", "(", "'", '"',
    "/*", "--", "select ", "and ", " ", "\\", "é",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_run_of_anything_takes_time_that_is_linear_in_it(piece: str) -> None:
    output = piece * (MEBIBYTE // 4 // len(piece.encode()))
    started = time.process_time()
    for metric, params in REQUIRED.items():
        assert score_of(metric, output, **params).status == "ok"
    assert time.process_time() - started < 20  # it takes a second; in quadratic time it would be hours


OUTPUTS = st.one_of(
    st.none(),
    st.text(max_size=30),
    JSON_VALUES.map(json.dumps),
    st.lists(
        JSON_PIECES | XML_PIECES | st.sampled_from(NOT_SQL) | st.sampled_from([case.values[0] for case in IS_SQL]), max_size=6
    ).map("".join),
)


@given(OUTPUTS, st.sampled_from(list(REQUIRED)), st.booleans())
def test_any_output_gives_a_score_again_and_again_and_stays_as_it_is(output: str | None, metric: str, further: bool) -> None:
    bound = oa.get_metric(metric, **{**REQUIRED[metric], **(FURTHER.get(metric, {}) if further else {})})
    turn = oa.Turn(output=output, ground_truth={"a": [1]})
    before = copy.deepcopy(turn.to_dict())
    score = bound.evaluate(turn)
    assert score.status == ("skipped" if output is None else "ok")
    assert score.value is None or 0.0 <= score.value <= 1.0
    assert bound.evaluate(turn) == score
    assert turn.to_dict() == before


def test_a_name_of_trusys_can_be_turned_round() -> None:
    assert oa.get_metric("trusys:not-is-json").evaluate(oa.Turn(output="{}")).passed is False
    assert oa.get_metric("trusys:not-contains-xml").evaluate(oa.Turn(output="none")).passed is True


# --- a field's meaning


def city(output: str = '{"city": "Paris"}', **changes: Any) -> oa.Turn:
    return oa.Turn.from_dict({"output": output, "ground_truth": "The city of Paris", **changes})


@pytest.mark.parametrize(("said", "value"), [(0.9, 0.9), ("0.5", 0.5)])
def test_semantic_field_equality_is_the_judges_score(models: ScriptedModels, said: Any, value: float) -> None:
    score = models.score("llm_semantic_field_equality", city(), {"score": said, "reason": "so"}, field="city")
    assert (score.status, score.value, score.passed, score.explanation) == ("ok", value, None, "so")
    assert "\nParis\n" in models.asked[0]
    assert "The city of Paris" in models.asked[0]


@pytest.mark.parametrize(
    "output", ["", "Paris", '"Paris"', '["city"]', '{"city": "Paris"', "```json\n{}\n```", "{}", '{"a": {"city": "Paris"}}']
)
def test_semantic_field_equality_asks_nobody_where_there_is_no_field(models: ScriptedModels, output: str) -> None:
    score = models.score("llm_semantic_field_equality", city(output), field="city", threshold=0.5)
    assert (score.status, score.value, score.passed) == ("ok", 0.0, False)


@pytest.mark.parametrize(("value", "told"), [("null", "null"), ("12.5", "12.5"), ('{"b": 1, "a": [true]}', '{"a":[true],"b":1}')])
def test_semantic_field_equality_shows_any_value(models: ScriptedModels, value: str, told: str) -> None:
    models.score("llm_semantic_field_equality", city(f'{{"city": {value}}}', ground_truth=7), {"score": 1}, field="city")
    assert f"\n{told}\n" in models.asked[0]
    assert "\n7\n" in models.asked[0]


def test_semantic_field_equality_needs_its_facts(models: ScriptedModels) -> None:
    def found(turn: oa.Turn, **params: Any) -> tuple[str, Any]:
        score = models.score("llm_semantic_field_equality", turn, **params)
        return score.status, score.error_type or score.detail["reason"]

    assert found(oa.Turn()) == ("error", "missing_parameter")
    assert found(oa.Turn(), field="city") == ("skipped", "missing:output")
    assert found(city("{}", ground_truth=None), field="city") == ("skipped", "missing:ground_truth")
    assert found(city('{"city": "' + "x" * MEBIBYTE + '"}'), field="city") == ("skipped", "too_long")
    alone = oa.get_metric("llm_semantic_field_equality", field="city").evaluate(city())
    assert (alone.status, alone.detail["reason"]) == ("skipped", "no_judge")


@pytest.mark.parametrize("reply", [{}, {"score": True}, {"score": "nan"}, {"reason": "so"}])
def test_semantic_field_equality_takes_no_other_reply(models: ScriptedModels, reply: Any) -> None:
    assert models.score("llm_semantic_field_equality", city(), reply, field="city").error_type == "invalid_reply"


def test_schema_is_refused_if_its_alternatives_double() -> None:
    levels = {f"l{i}": {"anyOf": [{"$ref": f"#/$defs/l{i + 1}"}, {"$ref": f"#/$defs/l{i + 1}"}]} for i in range(40)}
    schema = {"$defs": {**levels, "l40": {"type": "string"}}, "$ref": "#/$defs/l0"}
    score = evaluate("1", schema=schema)
    assert (score.status, score.error_type) == ("error", "invalid_schema")


def test_schema_that_refers_to_itself_is_checked_at_any_depth() -> None:
    schema = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"]}
    fits = '{"next":' * 60 + "null" + "}" * 60
    assert [evaluate(text, schema=schema).passed for text in (fits, fits.replace("null", "1"))] == [True, False]


def test_schema_is_refused_if_each_level_of_a_value_doubles() -> None:
    schema = {"anyOf": [{"properties": {"next": {"$ref": "#"}}, "required": [name]} for name in ("next", "other")]}
    text = '{"next":' * 60 + "1" + "}" * 60
    score = evaluate(text, schema=schema)
    assert (score.status, score.error_type) == ("error", "invalid_schema")
