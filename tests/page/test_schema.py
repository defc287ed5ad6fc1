"""The API against its own document, with requests that nobody would think of (schemathesis)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from otel_agenteval.page.api import Options
from otel_agenteval.page.openapi import document
from tests.support.page import ServedPage
from tests.support.stored_turns import filled, some_turns

schemathesis = pytest.importorskip("schemathesis", reason="it needs Python 3.11")
schema = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("schema")
    path = Path(filled(folder / "scores.db", some_turns(60, content=True)))
    with ServedPage(path, Options(content=True, labels=str(folder / "labels.jsonl"))) as page:
        yield page.url
        assert page.faults == []


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_the_document_says(case: Any, url: str) -> None:
    if case.query:
        case.query.pop("cursor", None)  # it is what an answer gave, and nothing that can be made up
    case.call_and_validate(base_url=url)
