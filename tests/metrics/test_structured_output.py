from __future__ import annotations

import json
import logging
import sys
from typing import Any
from xml.etree.ElementTree import ParseError

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import example, given
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.metrics.lib import sql
from otel_agenteval.metrics.lib.documents import containers, read_xml, xml_elements
from tests.support.judges import ScriptedModels

MEBIBYTE = 1 << 20


def evaluate(output: str | None, **params: Any) -> oa.Score:
    return oa.get_metric("code_is_json", **params).evaluate(oa.Turn(output=output))


def shown(value: object) -> str:
    """Return a short id for a long text."""
    return repr(value)[:40]


JSON_TEXTS = ['{"a": [1, 2.5e3, null, true, "x"]}', " \t\r\n[] \n", "5", "null", '{"a": 1, "a": 2}', '"\\ud800"', "9" * 30]
NO_JSON_TEXTS = ["", "Sure: {}", "```json\n{}\n```", "{'a': 1}", "[1,\nNaN]", '"a\nb"', "\u00a0{}", "[" * 100_000]


@pytest.mark.parametrize(
    ("output", "passed"), [*((text, True) for text in JSON_TEXTS), *((text, False) for text in NO_JSON_TEXTS)], ids=shown
)
def test_is_json_scores(output: str, passed: bool) -> None:
    score = evaluate(output)
    assert (score.status, score.value, score.passed) == ("ok", float(passed), passed)
    assert evaluate(output, inverse=True).passed is not passed


PERSON = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}


@pytest.mark.parametrize(
    ("schema", "output", "passed"),
    [
        pytest.param(PERSON, "not json", False, id="no document at all"),
        pytest.param(False, "[]", False, id="the schema that allows nothing"),
        pytest.param({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}, "5", True, id="a reference within the schema"),
        pytest.param({"pattern": "^(a+)+$"}, '"' + "a" * 60 + 'b"', False, id="a pattern that could backtrack"),
    ],
)
def test_is_json_checks_a_schema(schema: Any, output: str, passed: bool) -> None:
    assert evaluate(output, schema=schema).passed is passed


def test_is_json_reads_an_output_of_up_to_one_mebibyte() -> None:
    assert evaluate("[]" + " " * (MEBIBYTE - 2)).passed is True
    assert evaluate('"' + "é" * (MEBIBYTE // 2) + '"').detail == {"reason": "too_long"}


def score_of(metric: str, output: str | None, *, ground_truth: Any = None, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn(output=output, ground_truth=ground_truth))


# --- code_contains_json ---

CONTAINS_JSON = [
    pytest.param('Sure: {"a": 1}.', 1, '{"a": 1}', id="an object in prose"),
    pytest.param("{} and []", 1, "{}", id="an empty object counts and an empty array does not"),
    pytest.param('[{"a": [1]}]{"b": 2}', 2, '[{"a": [1]}]', id="only the outermost ones"),
    pytest.param('{"a": {"b": 1}, oops', 1, '{"b": 1}', id="what is whole in something that broke off"),
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


def raw_decoded(text: str) -> list[tuple[int, int]]:
    """Return the result of a direct implementation of the specification, in quadratic time."""

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


@given(st.lists(JSON_PIECES, max_size=20).map("".join))
@example('[ "see [1, " x')
@example('{"a" [1]}')
def test_contains_json_finds_what_raw_decode_finds(text: str) -> None:
    assert containers(text) == raw_decoded(text)


# --- code_is_xml and code_contains_xml ---

XML_TEXTS = [
    ' \r\n<?xml version="1.0" encoding="UTF-16"?>\n<!-- x --><a b="1"><c/></a><?p x?>\n',
    "<p:a/>",
    "<a>&amp;&#65;&lt;<![CDATA[<&]]></a>",
    '<!DOCTYPE html SYSTEM "http://127.0.0.1:9/x.dtd"><html/>',
    "<a>" * 50_000 + "</a>" * 50_000,
]
NO_XML_TEXTS = [
    "",
    "Paris",
    "Sure: <a/>",
    "<a>&nbsp;</a>",
    "<a>\x00</a>",
    "<a>\ud800</a>",
    '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
    "<!DOCTYPE a []><a/>",
]


@pytest.mark.parametrize(
    ("output", "passed"), [*((text, True) for text in XML_TEXTS), *((text, False) for text in NO_XML_TEXTS)], ids=shown
)
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
        pytest.param(["q"], ["q"], id="a name without its prefix"),
        pytest.param(["rating.stars", "Rating", "text"], ["rating.stars", "Rating"], id="a path that does not begin at the root"),
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
    pytest.param("<p>one<br>two <b>bold</b></p>", 1, id="a part of something that is not well-formed"),
    pytest.param("<a><b><c/></b></a><a/>", 2, id="only the outermost ones"),
    pytest.param("<a>&nbsp;<b>x</b></a> <c/>", 2, id="an entity that nobody declares breaks what is around it"),
    pytest.param('if a <b and c> d <e f="</g>"/>', 0, id="what looks like tags"),
    pytest.param("<a><!-- <b> --><![CDATA[</a>]]><?p </a>?></a>", 1, id="markup that is no tag inside of an element"),
    pytest.param("<!-- <a/> -->", 0, id="what is commented out"),
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
    """Return the shortest document from each start tag, by a direct implementation of the specification in cubic time."""
    found, position = [], 0
    while position < len(text):
        ends = (
            range(position + 1, len(text) + 1) if text[position] == "<" and text[position + 1 : position + 2] not in "!?" else ()
        )
        end = next((end for end in ends if text[end - 1] == ">" and read_xml(text[position:end]).fault is None), None)
        found += [(position, end)] if end is not None else []
        position = end or position + 1
    return found


@given(st.lists(XML_PIECES, max_size=14).map("".join))
def test_contains_xml_finds_every_element_that_the_parser_takes(text: str) -> None:
    assert xml_elements(text) == [text[start:end] for start, end in shortest_elements(text)]


@given(st.lists(XML_PIECES, max_size=8).map(lambda pieces: f"<r>{''.join(pieces)}</r>"))
def test_is_xml_agrees_with_defusedxml(text: str) -> None:
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
    pytest.param("WITH x AS (SELECT 1 FROM t) SELECT * FROM x", {}, 1, ["t"], id="a CTE is no table"),
    pytest.param("WITH t AS (SELECT * FROM t) SELECT * FROM t", {}, 1, ["t"], id="a CTE that hides the table it reads"),
    pytest.param(
        "WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT n FROM x) SELECT * FROM x, t", {}, 1, ["t"], id="a CTE that reads itself"
    ),
    pytest.param("INSERT INTO t (a) VALUES (1)", {}, 1, ["t"], id="an insert"),
    pytest.param("INSERT INTO t DEFAULT VALUES", {}, 1, ["t"], id="an insert of defaults"),
    pytest.param("CREATE TABLE t (a INT)", {}, 1, ["t"], id="a definition"),
    pytest.param("SELECT `a` FROM `t`", {}, 1, ["t"], id="backticks, without a dialect"),
    pytest.param("SELECT TOP 5 a FROM t", {"dialect": "tsql"}, 1, ["t"], id="what only one dialect has"),
    pytest.param("DELETE t", {"dialect": "TransactSQL"}, 1, ["t"], id="a delete without FROM where that is allowed"),
    pytest.param("SELECT a::int FROM t", {"dialect": "PostgreSQL"}, 1, ["t"], id="a dialect by another name"),
    pytest.param("SELECT a AS b FROM t", {}, 1, ["t"], id="an alias with AS"),
    pytest.param("SELECT first last FROM users", {"strict": False}, 1, ["users"], id="two names, where that is allowed"),
]


@pytest.mark.parametrize(("output", "params", "statements", "tables"), IS_SQL)
def test_is_sql_reads(output: str, params: dict[str, Any], statements: int, tables: list[str]) -> None:
    score = score_of("code_is_sql", output, **params)
    assert (score.status, score.passed) == ("ok", True)
    assert score.detail == {"statements": statements, "tables": tables, "parser": "sqlglot"}
    assert score_of("code_is_sql", output, inverse=True, **params).passed is False


NOT_SQL = [
    "", "-- only a comment", ";", "hello", "42", "Paris is the capital of France.", "SELECT * FROM", "SELECT 'a", "SELECT * FORM t", "SELECT a b FROM t",
    "select 1; hello", "Delete it", "Copy that", "Use the table", "From Paris", "Show me the money", "CALL p(1)", "```sql\nSELECT 1\n```", "SELECT 1 2", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("output", NOT_SQL)
def test_is_sql_refuses(output: str) -> None:
    score = score_of("code_is_sql", output)
    assert (score.status, score.value, score.passed, score.detail["parser"]) == ("ok", 0.0, False, "sqlglot")


@pytest.mark.parametrize(
    ("output", "refused"),
    [
        pytest.param("SELECT * FROM users", [], id="the table"),
        pytest.param("SELECT * FROM public.users", [], id="the table with its schema"),
        pytest.param("SELECT 1", [], id="no table"),
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
    assert score_of("code_is_sql", output, dialect="klingon").error_type == "invalid_dialect"


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
        pytest.param("INSERT INTO t DEFAULT VALUES;", True, id="VALUES at the end"),
        pytest.param("SELECT * FROM ;", False, id="FROM at the end"),
        pytest.param("SELECT first last FROM users", False, id="two names"),
        pytest.param("Paris", False, id="prose"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_is_sql_goes_by_the_shape_without_the_parser(output: str, passed: bool) -> None:
    score = score_of("code_is_sql", output)
    assert (score.status, score.passed, score.detail) == ("ok", passed, {"parser": "shape"})
    assert score_of("code_is_sql", output, allowed_tables=[]).error_type == "MissingExtra"


SQL_SHAPE = [
    pytest.param(" \nMERGE INTO t USING s ON t.a = s.a", "", id="another verb"),
    pytest.param("SELECT ')' FROM t", "", id="a parenthesis in a text"),
    pytest.param("with x as (select 1) select * from x", "", id="WITH and AS"),
    pytest.param("With pleasure", "starts_with_verb", id="WITH without AS"),
    pytest.param("With great measures", "starts_with_verb", id="as inside of a word"),
    pytest.param("Dropping it", "starts_with_verb", id="a verb that goes on"),
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
    pytest.param("</p>", [], False, id="only an end tag"),
    pytest.param("a < b > c", [], True, id="a comparison that looks like one"),
    pytest.param("<!-- x --><!DOCTYPE>", [], False, id="other markup"),
    pytest.param("<mainly>", ["main"], False, id="a tag that only begins so"),
    pytest.param("", [], False, id="nothing"),
]


@pytest.mark.parametrize(("output", "required", "passed"), HTML_SHAPE)
def test_html_shape_scores(output: str, required: list[str], passed: bool) -> None:
    score = score_of("code_html_shape", output, required_tags=required)
    assert (score.status, score.passed) == ("ok", passed)
    missing = score_of("code_html_shape", f"{output}<main><p>", required_tags=["Main", "H1", "p", "a+"])
    assert (missing.passed, missing.detail) == (False, {"missing_tags": ["H1", "a+"]})


# --- code_json_equals ---

JSON_EQUALS = [
    pytest.param("Paris", '"Paris"', None, id="a text that is not"),
    pytest.param({1: "x"}, '{"1": "x"}', None, id="a key that is no text"),
    pytest.param([], "{}", "$", id="an array and an object"),
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
        pytest.param([{"a": [1, 2]}, {"b": 1}], '[{"b": 1}, {"a": [2, 1]}]', None, id="another order further down"),
        pytest.param({"x": [1, 2]}, '{"x": [1, 1, 2]}', "$.x", id="an element twice"),
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
    assert score_of("code_json_equals", "[]").detail == {"reason": "missing:ground_truth"}
    assert score_of("code_json_equals", "Paris", value="Paris").passed is False
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
        pytest.param("[1, 2]", {"min": 2}, 2, True, id="at the lower bound"),
        pytest.param("[1, 2]", {"max": 2}, 2, True, id="at the upper bound"),
        pytest.param("[1, 2]", {"min": 3, "max": 5}, 2, False, id="under the lower bound"),
        pytest.param("[1, 2]", {"value": 2, "max": 1}, 2, True, id="the value wins over the bounds"),
        pytest.param("[1]", {"value": 1, "path": "$"}, 1, True, id="the whole document"),
        pytest.param('{"$": [1]}', {"value": 1}, None, False, id="a key that looks like the whole document"),
        pytest.param("[[1], [1, 2]]", {"value": 2, "path": "1"}, 2, True, id="an index"),
        pytest.param('{"a.b": [1]}', {"value": 1, "path": "a.b"}, 1, True, id="a key with a dot"),
        pytest.param('{"a": 1}', {"value": 1}, None, False, id="an object is no array"),
        pytest.param("1, 2, 3", {"value": 3}, None, False, id="no JSON"),
    ],
)
def test_array_length_scores(output: str, params: dict[str, Any], length: int | None, passed: bool) -> None:
    score = score_of("code_array_length", output, **params)
    assert (score.status, score.passed, score.detail.get("length")) == ("ok", passed, length)


def test_array_length_needs_a_length_or_bounds_that_something_meets() -> None:
    assert score_of("code_array_length", "[]").error_type == "missing_parameter"
    assert score_of("code_array_length", "[]", min=3, max=2).error_type == "invalid_parameter"


# --- code_schema_conformance ---


@pytest.mark.parametrize(
    ("schema", "output", "paths"),
    [
        pytest.param(json.dumps(PERSON), '{"age": 5}', [], id="a schema that is a text"),
        pytest.param(PERSON, '{"age": "5"}', ["/age"], id="of the wrong type"),
        pytest.param(PERSON, "not json", [], id="no JSON"),
        pytest.param({"items": {"type": "number"}, "maxItems": 2}, '[1, "x", "y"]', ["/", "/1", "/2"], id="elements"),
        pytest.param(False, "1", ["/"], id="the schema that allows nothing"),
    ],
)
def test_schema_conformance_scores(schema: Any, output: str, paths: list[str]) -> None:
    score = score_of("code_schema_conformance", output, schema=schema)
    assert (score.status, score.passed) == ("ok", not paths and output != "not json")
    assert sorted(violation["path"] for violation in score.detail.get("violations", [])) == paths


@pytest.mark.parametrize("output", ["{}", "not json"])
@pytest.mark.parametrize("schema", ["{type: string}", ["type"], None])
def test_schema_conformance_errors_on_what_is_no_schema(schema: Any, output: str) -> None:
    score = score_of("code_schema_conformance", output, schema=schema)
    assert (score.status, score.error_type) == ("error", "invalid_schema")


@pytest.mark.parametrize("metric", ["code_is_json", "code_contains_json", "code_schema_conformance"])
@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "strin"}, id="an unknown type"),
        pytest.param({"$ref": "http://127.0.0.1:9/schema"}, id="a reference to the network"),
        pytest.param({"properties": {"a": {"$ref": "file:///etc/hostname"}}}, id="a reference to a file"),
        pytest.param({"$schema": "http://127.0.0.1:9/meta"}, id="an unknown draft"),
    ],
)
def test_a_schema_that_cannot_be_used_is_an_error(metric: str, schema: dict[str, Any]) -> None:
    score = score_of(metric, "{}", schema=schema)
    assert (score.status, score.error_type) == ("error", "invalid_schema")


@pytest.mark.parametrize("metric", ["code_is_json", "code_schema_conformance"])
def test_violations_of_a_schema_quote_nothing_of_the_output(metric: str) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1]}, "b": {"const": 2}, "c": {"maxLength": 1, "pattern": "^x"}}}
    score = score_of(metric, '{"a": "secret", "b": "secret", "c": "secret"}', schema=schema)
    assert {violation["path"] for violation in score.detail["violations"]} == {"/a", "/b", "/c"}
    assert "secret" not in str(score.to_dict())
    many = score_of(metric, json.dumps(["x"] * 50), schema={"items": {"type": "number"}})
    assert len(many.detail["violations"]) == 10


# --- code_field_completeness and code_field_accuracy ---


@pytest.mark.parametrize(
    ("output", "fields", "value", "missing"),
    [
        pytest.param('{"a": "", "b": 0, "c": false, "d": []}', ["a", "b", "c", "d"], 1.0, [], id="empty values are there"),
        pytest.param('{"a": {"b": [{"c": 1}]}}', ["a.b", "a.b[0].c", "a.b.1"], 2 / 3, ["a.b.1"], id="paths"),
        pytest.param('{"a.b": 1}', ["a.b"], 1.0, [], id="a key with a dot"),
        pytest.param('{"A": 1}', ["a"], 0.0, ["a"], id="another case"),
        pytest.param("nope", ["a"], 0.0, ["a"], id="no JSON"),
    ],
)
def test_field_completeness_scores(output: str, fields: list[str], value: float, missing: list[str]) -> None:
    score = score_of("code_field_completeness", output, fields=fields)
    assert (score.status, score.value, score.passed, score.detail) == ("ok", value, None, {"missing": missing})
    assert score_of("code_field_completeness", output, fields=fields, threshold=0.5).passed is (value >= 0.5)


@pytest.mark.parametrize(
    ("field", "expected", "params", "passed"),
    [
        pytest.param("city", "PARIS", {}, True, id="another case"),
        pytest.param("city", "PARIS", {"ignore_case": False}, False, id="another case where that counts"),
        pytest.param("city", "Paris ", {}, False, id="white space counts"),
        pytest.param("n", "3", {}, True, id="a number in a text"),
        pytest.param("n", "3e0", {}, True, id="a number in another spelling"),
        pytest.param("digits", 3, {}, True, id="a text with a number"),
        pytest.param("n", "3e9999999999999999999", {}, False, id="an exponent out of range"),
        pytest.param("large", 9007199254740992, {}, False, id="numbers that only floats take for equal"),
        pytest.param("yes", "TRUE", {}, True, id="true in a text"),
        pytest.param("yes", 1, {}, False, id="true is not 1"),
        pytest.param("none", "null", {}, True, id="null in a text"),
        pytest.param("list", [1.0, {"b": 2, "a": 1}], {}, True, id="a list by value"),
        pytest.param("list", '[1, {"a": 1, "b": 2}]', {}, True, id="a list in a text"),
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
    for value, shown in (("Paris", "Paris"), (3, 3), (None, None), ("x" * 200, "x" * 100), ({"b": 1, "a": 2}, '{"a":2,"b":1}')):
        score = score_of("code_field_accuracy", json.dumps({"f": value}), field="f", expected="x")
        assert score.detail["actual"] == shown
    assert score_of("code_field_accuracy", "[1]", field="0", expected=1).detail == {}
    assert score_of("code_field_accuracy", "nope", field="f", expected="nope").passed is False


# --- all of them ---

NEEDED: dict[str, dict[str, Any]] = {
    "code_schema_conformance": {"schema": PERSON},
    "code_field_completeness": {"fields": ["a", "b.c"]},
    "code_field_accuracy": {"field": "a", "expected": "1"},
}
GIVEN = {"code_json_equals": {"value": "[1]"}, "code_array_length": {"value": 1}, **NEEDED}
OTHERS = [
    "code_is_json",
    "code_contains_json",
    "code_is_xml",
    "code_contains_xml",
    "code_is_sql",
    "code_sql_shape",
    "code_html_shape",
]


@pytest.mark.parametrize("metric", [*OTHERS, *GIVEN])
def test_no_score_of_an_unknown_or_too_long_output_or_without_parameters(metric: str) -> None:
    for output, reason in ((None, "missing:output"), ("x" * (MEBIBYTE + 1), "too_long")):
        score = score_of(metric, output, **GIVEN.get(metric, {}))
        assert (score.status, score.detail) == ("skipped", {"reason": reason})
    if metric in NEEDED:
        assert score_of(metric, "{}").error_type == "missing_parameter"


# --- a field's meaning


def city(output: str = '{"city": "Paris"}', **changes: Any) -> oa.Turn:
    return oa.Turn.from_dict({"output": output, "ground_truth": "The city of Paris", **changes})


@pytest.mark.parametrize("output", ["", '"city"', '["city"]', '{"city": "Paris"', '{"a": {"city": "Paris"}}'])
def test_semantic_field_equality_asks_nobody_where_there_is_no_field(models: ScriptedModels, output: str) -> None:
    score = models.score("llm_semantic_field_equality", city(output), field="city", threshold=0.5)
    assert (score.status, score.value, score.passed) == ("ok", 0.0, False)


@pytest.mark.parametrize(("value", "told"), [("12.5", "12.5"), ('{"b": 1, "a": [true]}', '{"a":[true],"b":1}')])
def test_semantic_field_equality_shows_any_value(models: ScriptedModels, value: str, told: str) -> None:
    turn = city(f'{{"city": {value}}}', ground_truth=7)
    score = models.score("llm_semantic_field_equality", turn, {"score": "0.5", "reason": "so"}, field="city")
    assert (score.value, score.passed, score.explanation) == (0.5, None, "so")
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


def test_schema_is_refused_if_its_alternatives_or_the_levels_of_a_value_double() -> None:
    levels = {f"l{i}": {"anyOf": [{"$ref": f"#/$defs/l{i + 1}"}, {"$ref": f"#/$defs/l{i + 1}"}]} for i in range(40)}
    schema = {"$defs": {**levels, "l40": {"type": "string"}}, "$ref": "#/$defs/l0"}
    assert evaluate("1", schema=schema).error_type == "invalid_schema"
    again = {"anyOf": [{"properties": {"next": {"$ref": "#"}}, "required": [name]} for name in ("next", "other")]}
    assert evaluate('{"next":' * 60 + "1" + "}" * 60, schema=again).error_type == "invalid_schema"


def test_schema_that_refers_to_itself_is_checked_at_any_depth() -> None:
    schema = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"]}
    fits = '{"next":' * 60 + "null" + "}" * 60
    assert [evaluate(text, schema=schema).passed for text in (fits, fits.replace("null", "1"))] == [True, False]
