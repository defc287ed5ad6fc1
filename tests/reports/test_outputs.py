"""Situations of public reports on what scrapers, browsers, spreadsheets and databases read. Each docstring names the reports."""

from __future__ import annotations

import csv
import itertools
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.turn import TurnOptions
from otel_agenteval.core import semconv
from otel_agenteval.core.display import facts_html, table_html
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.core.wellformed import for_document
from otel_agenteval.outlets.otlp.encoding import MetricsEncoder
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.outlets.store.export import for_csv
from otel_agenteval.report.render import markdown_table, page

ODD = ["\x00", "\x0b", "\x0c", "\r", "\x1b", "\x1c", "\x1d", "\x1e", "\x7f", "\x85", "\u2028", "\u2029", "\ud800", "\ufdd0", "\ufffe", "\U0001ffff"]  # fmt: skip
FINE = ["plain", 'quo"te', "back\\slash", "new\nline", "tab\t", "agent 👩‍💻", "نمی‌دانم", "中文"]


def test_metrics_page_can_be_split_into_lines() -> None:
    """litellm 20600, 25071: names of models and users make lines of /metrics that scrapers refuse."""
    telemetry, registry = Telemetry(), CollectorRegistry()
    outlet = PrometheusOutlet(telemetry, registry=registry)
    names = [*FINE, *(f"a{char}b" for char in ODD)]
    for name in names:
        telemetry.add(semconv.TURNS, agent=name, service_name=name, close_reason="root_ended", complete="true")
        telemetry.observe(
            semconv.TURN_DURATION, 1, {"trace_id": "1" * 32, "span_id": "2" * 16}, agent=name, model=name, service_name="s"
        )
    telemetry.add(semconv.SKIPPED, metric="x\u2028y", reason="r")
    telemetry.watch(semconv.TURNS_READ, lambda: [({"scope": f"a{char}b", "reading": "exact"}, 1) for char in ODD])
    try:
        text, exemplars = generate_latest(registry).decode(), generate_openmetrics(registry).decode()
    finally:
        outlet.close()
    families = list(read_prometheus("\n".join(text.splitlines())))
    agents = {sample.labels["agent"] for family in families for sample in family.samples if "agent" in sample.labels}
    assert agents >= set(FINE)
    assert len(agents) == len(names), "each name has a series of its own"
    assert len(list(read_openmetrics("\n".join(exemplars.splitlines()) + "\n"))) == len(families)


def test_metrics_over_otlp_have_labels_for_prometheus(monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm 20600, for labels and resources that a Collector makes labels of."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a\u2028\udcffb")
    telemetry = Telemetry()
    telemetry.add(semconv.TURNS, agent="x\u2029\x85\ud800", service_name="s", close_reason="root_ended", complete="true")
    sent = MetricsEncoder(telemetry, "1", 0).request(1, "i")
    assert "x\\u2029\\u0085�".encode() in sent
    assert r"a\u2028�b".encode() in sent


def test_duration_histograms_reach_the_longest_turn() -> None:
    """bifrost 3828, vllm 15167: long durations are all in the infinite bucket."""
    for instrument in semconv.INSTRUMENTS:
        if instrument.kind == "histogram" and instrument.unit == "s":
            longest = 600 if instrument.name == semconv.METRIC_DURATION else TurnOptions().max_duration
            assert instrument.buckets[-1] >= longest, instrument.name


def test_documents_have_only_characters_they_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """promptfoo 10994, schemathesis 4794: control characters of outputs make reports unreadable."""
    monkeypatch.chdir(tmp_path)
    Path("odd_app.py").write_text("def answer(q):\n    return q\n")
    texts = [f"a{char}b|c" for char in ODD]
    Path("cases.jsonl").write_text(
        "".join(json.dumps({"case_id": text, "input": text, "ground_truth": "x"}) + "\n" for text in texts)
    )
    Path("gate.yaml").write_text("metrics:\n  - code_equals_ground_truth: {}\n    policy: gate\n")
    kinds = ("junit", "html", "markdown")
    files = itertools.chain(*(("--format", kind, "--out", f"report.{kind}") for kind in kinds))
    assert (
        main(
            [
                "experiment",
                "odd_app:answer",
                "cases.jsonl",
                "--config",
                "gate.yaml",
                "--metrics",
                "code_equals_ground_truth",
                "--gate",
                *files,
            ]
        )
        == 1
    )
    for kind in kinds:
        text = Path(f"report.{kind}").read_text(encoding="utf-8")
        assert text == for_document(text), kind
    names = [case.get("name") for case in ET.parse("report.junit").getroot().iter("testcase")]
    assert len(set(names)) == len(texts)


@pytest.mark.parametrize("char", ODD[:3] + ODD[4:10] + ODD[12:], ids=ascii)
def test_texts_of_other_reports_are_allowed(char: str) -> None:
    """jest-junit 197, bats-core 846, for notebooks, CSV and the reports on failures, releases and judges."""
    text = f"a{char}b"
    for made in (page(text, [text]), table_html(text, [text], [[text]]), facts_html(text, text, [(text, text)]), for_csv(text)):
        assert "a�b" in made
        assert char not in made
    assert next(csv.reader([for_csv(f'{text}"')])) == ['a�b"']
    assert markdown_table([["a"], ["b\nc\u2028d|e"]]).splitlines()[2] == "| b c d\\|e |"


# --- SQL


def is_sql(text: str, dialect: str) -> Any:
    return oa.get_metric("code_is_sql", dialect=dialect).evaluate(oa.Turn.from_dict({"turn_id": "t", "output": text})).passed


NOT_SQL = """
SELECT a, FROM t
SELECT , a FROM t
SELECT a,, b FROM t
SELECT f(a,) FROM t
SELECT a FROM t,
SELECT a FROM t WHERE a IN (1, 2,)
SELECT a FROM t GROUP BY a, HAVING count(*) > 1
UPDATE t SET a = 1, WHERE b = 2
INSERT INTO t (a, b,) VALUES (1, 2)
CREATE TABLE t (a INT,)
SELECT a FROM t ORDER
SELECT a FROM t ORDER a
SELECT a FROM t ORDER LIMIT 3
SELECT a FROM t GROUP
SELECT a FROM t GROUP HAVING a > 1
SELECT a FROM t GROUP BY
SELECT a FROM t WHERE
SELECT a FROM t WHERE ORDER BY a
SELECT a FROM t WHERE (a = 1
SELECT a FROM t WHERE a = 1)
SELECT a FROM t ORDER BY a WHERE b = 1
SELECT a FROM (SELECT b FROM u LIMIT 5 WHERE b = 1) x
SELECT a FROM t HAVING a > 1 GROUP BY a
FROM t SELECT a
SELECT 1 SELECT 2
SELECT a FROM t; SELECT
SELECT a FROM t JOIN u ON WHERE a = 1
SELECT a FROM t WHERE a IN
SELECT sum(a) OVER FROM t
SELECT * a FROM t
INSERT INTO t (a) VALUES ()
UPDATE t SET a WHERE b = 1
CREATE TABLE t
CREATE VIEW v SELECT 1
"""
SQL = {
    "": """
        SELECT "order", "group" FROM "table" WHERE "where" = ', FROM'
        SELECT o.order, o.from FROM orders AS o ORDER BY 1
        SELECT a, count(*) FROM t WHERE b = 1 GROUP BY a HAVING count(*) > 1 ORDER BY a LIMIT 5
        SELECT a FROM t WHERE b IN (SELECT c FROM u ORDER BY d LIMIT 1) GROUP BY a
        (SELECT a FROM t ORDER BY a LIMIT 1) UNION SELECT b FROM u WHERE c = 1
        SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t
        SELECT rank() OVER (), sum(a) OVER w FROM t WINDOW w AS (PARTITION BY a ORDER BY b)
        INSERT INTO t SELECT * FROM u ORDER BY a ON CONFLICT (a) DO UPDATE SET b = 1 WHERE t.c > 0
        GRANT SELECT, INSERT ON t TO bob
        CREATE TABLE t AS SELECT 1 AS a
        """,
    "bigquery": "SELECT a, FROM t",
    "clickhouse": "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a\nSELECT (1,), order FROM t LIMIT 1 BY b",
    "duckdb": "FROM t SELECT a\nSELECT a, FROM t",
    "mysql": "INSERT INTO t () VALUES ()\nSELECT `a`, `group` FROM `t` ORDER BY NULL\nDELETE FROM t WHERE a = 1 ORDER BY b LIMIT 3",
    "oracle": "SELECT a FROM t START WITH a = 1 CONNECT BY PRIOR a = b ORDER SIBLINGS BY a",
    "postgres": "TABLE t\nSELECT $$SELECT a, FROM t$$\nSELECT array_agg(a ORDER BY b) FILTER (WHERE c) FROM t",
    "snowflake": "CREATE SEQUENCE s START = 1 ORDER\nSELECT a, FROM t",
    "sqlite": "SELECT a FROM t WHERE a IN ()",
    "tsql": "SET NOCOUNT ON; SELECT [a], [order] FROM t WHERE limit = 1 ORDER BY a",
}


@pytest.mark.parametrize("dialect", ["", "postgres", "mysql", "sqlite", "tsql"])
@pytest.mark.parametrize("text", NOT_SQL.strip().splitlines())
def test_faults_are_not_sql(text: str, dialect: str) -> None:
    """sqlglot 1926, 3795, promptfoo 4184: a dangling comma and other faults pass as SQL."""
    assert is_sql(text, dialect) is False


@pytest.mark.parametrize(
    ("dialect", "text"), [(name, text.strip()) for name, block in SQL.items() for text in block.strip().splitlines()]
)
def test_valid_sql_of_a_dialect_is_sql(dialect: str, text: str) -> None:
    """sqlglot 4487: valid SQL of a database is refused."""
    assert is_sql(text, dialect) is True
