"""Spans that public reports have in other JSON than OTLP. ``tests/data/other_forms`` has what the SDKs printed.

``go.txt`` is the output of ``stdouttrace`` 1.44 and ``go.otlp.jsonl`` the same spans from ``otlptracehttp``. ``python.txt`` is
the output of ``ConsoleSpanExporter`` 1.45 and ``app_insights.json`` the same spans as rows of the tables that Azure Monitor's
exporter 1.0.0b58 fills. ``node.txt`` is the output of ``ConsoleSpanExporter`` 2.1.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.turns.recordings import Reading, read_items
from tests.support.other_forms import cloudwatch_lines
from tests.support.recordings import files_in

DATA = Path(__file__).parent.parent / "data" / "other_forms"
ROWS = json.loads((DATA / "app_insights.json").read_text())


def turns_in(*files: Path) -> list[dict[str, Any]]:
    faults: list[str] = []
    found = [turn.to_dict() for turn in oa.load_turns(files, report=faults.append)]
    assert not faults
    return found


def test_output_of_gos_exporter_gives_the_turn_of_otlp() -> None:
    """open-telemetry/opentelemetry-go 3588: a file of ``stdouttrace``, and no tool that converts it."""
    assert turns_in(DATA / "go.txt") == turns_in(DATA / "go.otlp.jsonl")


def unscoped(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return turns without fields that depend on the instrumentation's name."""
    return [{key: value for key, value in turn.items() if key != "framework"} for turn in turns]


def test_output_of_pythons_exporter_gives_the_turn_of_otlp() -> None:
    """open-telemetry/opentelemetry-python 3525: indented objects, one after the other, are neither JSON nor JSON lines."""
    assert unscoped(turns_in(DATA / "python.txt")) == unscoped(turns_in(DATA / "python.otlp.jsonl"))


def test_service_name_is_read_from_pythons_first_exporters(tmp_path: Path) -> None:
    """open-telemetry/opentelemetry-python 1832: the resource's attributes without ``attributes``, the parent without ``0x``."""
    text = (DATA / "python.txt").read_text()
    (turn,) = turns_in(DATA / "python.txt")
    file = tmp_path / "old.txt"
    resource = (
        '"resource": {\n        "attributes": {\n            "service.name": "desk"\n        },\n        "schema_url": ""\n    }'
    )
    assert text.count(resource) == 3
    parent = f'"parent_id": "{turn["spans"][0]["id"]}"'
    file.write_text(
        text.replace(resource, '"resource": {\n        "service.name": "desk"\n    }').replace(
            parent.replace(': "', ': "0x'), parent
        )
    )
    assert turns_in(file) == [turn]


def test_text_of_nodes_exporter_is_named() -> None:
    """open-telemetry/opentelemetry-js 2245, 3990: the exporter prints JavaScript, over many lines."""
    faults: list[str] = []
    assert list(oa.load_turns(DATA / "node.txt", report=faults.append)) == []
    (fault,) = faults
    assert fault.startswith(f"{DATA / 'node.txt'}:1: not JSON: output of Node.js's ConsoleSpanExporter; export OTLP to ")


def classic(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the tables before workspaces, with other names and the operation as the root's parent."""
    return {
        "timestamp": row["TimeGenerated"],
        "id": row["Id"],
        "name": row["Name"],
        "success": str(row["Success"]),
        "duration": row["DurationMs"],
        "itemType": "request" if row["Type"] == "AppRequests" else "dependency",
        "customDimensions": json.loads(row["Properties"]),
        "operation_Id": row["OperationId"],
        "operation_ParentId": row["ParentId"] or row["OperationId"],
        "cloud_RoleName": row["AppRoleName"],
    }


NAMES = list(dict.fromkeys(name for row in ROWS for name in row))
TABLE = {
    "name": "PrimaryResult",
    "columns": [{"name": name, "type": "string"} for name in NAMES],
    "rows": [[row.get(name) for name in NAMES] for row in ROWS],
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROWS, indent=2),
        "".join(f"{json.dumps(row)}\n" for row in ROWS),
        json.dumps({"tables": [TABLE]}),
        json.dumps([classic(row) for row in ROWS]),
    ],
    ids=["az monitor", "lines", "query API", "classic tables"],
)
def test_rows_of_application_insights_give_the_turn_of_otlp(text: str, tmp_path: Path) -> None:
    """Azure-Samples/azure-search-openai-demo 847, Azure/azure-sdk-for-python 46300: the agent's traces are only there."""
    file = tmp_path / "rows.json"
    file.write_text(text)
    assert unscoped(turns_in(file)) == unscoped(turns_in(DATA / "python.otlp.jsonl"))


def test_row_with_invalid_values_is_reported_alone(tmp_path: Path) -> None:
    """Queries can compute columns, so a row may have any value."""
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([*ROWS, {**ROWS[0], "DurationMs": "1s"}]))
    faults: list[str] = []
    assert len([*oa.load_turns(file, report=faults.append)]) == 1
    assert faults == [f"{file}:1: not OTLP: neither resourceSpans nor resourceLogs found"]


def test_events_and_sessions_of_application_insights_are_read(tmp_path: Path) -> None:
    """Span events, exceptions, log records and the session id have rows and columns of their own."""
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    same = {"OperationId": trace, "SessionId": "s-1", "TimeGenerated": "2026-01-02T03:04:05Z"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.system": "az.ai.inference", "gen_ai.request.model": "gpt-5"}
    asked = {
        "gen_ai.system": "az.ai.inference",
        "gen_ai.event.content": json.dumps({"role": "user", "content": "Is room 4 free?"}),
    }
    raised = {"exception.type": "RateLimitError", "exception.message": "Slow down."}
    rows = [
        {
            **same,
            "Id": span,
            "ParentId": "",
            "Name": "chat gpt-5",
            "DurationMs": 20,
            "Success": False,
            "Properties": json.dumps(chat),
        },
        {**same, "ParentId": span, "Message": "gen_ai.user.message", "Properties": json.dumps(asked)},
        {**same, "ParentId": span, "ExceptionType": "RateLimitError", "Properties": json.dumps(raised)},
    ]
    file = tmp_path / "rows.json"
    file.write_text(json.dumps(rows))
    (turn,) = oa.load_turns(file)
    assert (turn.input, turn.conversation_id) == ("Is room 4 free?", "s-1")
    assert turn.error is not None
    assert (turn.error.type, turn.error.message) == ("RateLimitError", "Slow down.")


@pytest.fixture(scope="module")
def agentcore(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[dict[str, Any]]]:
    """Return log lines of a Strands agent with AWS's distribution, and its turns from OTLP."""
    folder = tmp_path_factory.mktemp("strands")
    files = [folder / "s8.jsonl", folder / "s8.logs.jsonl"]
    for file in files:
        file.write_text(files_in("recordings/aws-strands.tar.xz")[f"aws-strands/{file.name}"], encoding="utf-8")
    lines = cloudwatch_lines(read_items(files, Reading(), print))
    assert any('"body"' in line for line in lines)
    return lines, turns_in(*files)


def events(lines: list[str]) -> list[dict[str, Any]]:
    return [{"logStreamName": "otel-rt-logs", "timestamp": 1, "message": line, "ingestionTime": 2} for line in lines]


FORMS = {
    "lines": "\n".join,
    "sessionSpans": lambda lines: json.dumps([json.loads(line) for line in lines], indent=2),
    "filter-log-events": lambda lines: json.dumps({"events": events(lines), "searchedLogStreams": []}, indent=4),
    "S3 export": lambda lines: "\n".join(f"2026-01-02T03:04:05.678Z {line}" for line in lines),
    "subscription": lambda lines: json.dumps(
        {"messageType": "DATA_MESSAGE", "logGroup": "aws/spans", "logEvents": events(lines)}
    ),
    "get-query-results": lambda lines: json.dumps(
        {
            "results": [[{"field": "@message", "value": line}, {"field": "@ptr", "value": "C"}] for line in lines],
            "status": "Complete",
        }
    ),
    "Logs Insights": lambda lines: json.dumps(
        [{"@timestamp": "2026-01-02 03:04:05", "@message": json.loads(line)} for line in lines]
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_log_events_of_cloudwatch_give_the_turn_of_otlp(
    form: str, agentcore: tuple[list[str], list[dict[str, Any]]], tmp_path: Path
) -> None:
    """aws/agentcore-cli 1426, strands-agents/evals 99: spans are in ``aws/spans``, content in the agent's own log group."""
    lines, wanted = agentcore
    file = tmp_path / "events.json.gz"
    file.write_bytes(gzip.compress(FORMS[form](lines).encode()))
    assert turns_in(file) == wanted


def test_other_log_events_are_counted_and_the_rest_is_read(
    agentcore: tuple[list[str], list[dict[str, Any]]], tmp_path: Path
) -> None:
    """aws/agentcore-cli 1426: an agent's log group also has its standard output."""
    lines, wanted = agentcore
    file = tmp_path / "events.json"
    file.write_text(json.dumps({"events": events(["INFO: started", *lines, '{"_aws": {}}'])}))
    faults: list[str] = []
    assert [turn.to_dict() for turn in oa.load_turns(file, report=faults.append)] == wanted
    assert faults == [f"{file}:1: not OTLP: neither resourceSpans nor resourceLogs found"] * 2


def test_groups_of_javas_logging_exporter_are_read(tmp_path: Path) -> None:
    """open-telemetry/opentelemetry-java 6749: one resource's spans per line after a level, without ``resourceSpans`` around them."""
    groups = [json.loads(line)["resourceSpans"][0] for line in (DATA / "go.otlp.jsonl").read_text().splitlines()]
    file = tmp_path / "java.jsonl"
    file.write_text("".join(f"INFO: {json.dumps(group)}\n" for group in groups))
    assert turns_in(file) == turns_in(DATA / "go.otlp.jsonl")
