"""The API compared with its own OpenAPI document, with generated requests (schemathesis)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from otel_agenteval.page.api import Options
from otel_agenteval.page.routes import document
from tests.support.page import ServedPage
from tests.support.stored_turns import filled, some_turns

schemathesis = pytest.importorskip("schemathesis", reason="it needs Python 3.11")
schema = schemathesis.openapi.from_dict(document())
refused = schema.config.checks.negative_data_rejection
refused.expected_statuses = [*refused.expected_statuses, "413", "431"]  # what is wrong may be long, too


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("schema")
    path = filled(folder / "s.db", some_turns(60, content=True))
    with ServedPage(path, Options(content=True, labels=str(folder / "labels.jsonl"))) as page:
        yield page.url
        assert page.faults == []


@schema.parametrize()
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_the_document_says(case: Any, url: str) -> None:
    if case.query:
        case.query.pop("cursor", None)  # it is what an answer gave, and nothing that can be made up
    case.call_and_validate(base_url=url)
