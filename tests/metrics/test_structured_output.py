from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa

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


@pytest.mark.parametrize("alias", ["trusys:is-json", "hpd:JsonValidityEvaluator"])
def test_names_of_other_catalogues_resolve(alias: str) -> None:
    assert oa.get_metric(alias).name == "code_is_json"
    assert oa.get_metric("trusys:not-is-json").evaluate(oa.Turn(output="{}")).passed is False
