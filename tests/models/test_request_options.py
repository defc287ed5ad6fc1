"""The keywords that judges and embedders have in common."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import pytest

import otel_agenteval as oa
from otel_agenteval.judging.models.request_options import RequestKeywords, RequestOptions

URL = "http://127.0.0.1:1/v1"
GIVEN: dict[str, Any] = {
    "headers": {"X-Team": "a"}, "timeout": 1.0, "deadline": 2.0, "max_concurrency": 3, "requests_per_minute": 4.0,
    "tokens_per_minute": 5.0, "prices": {"m": {"input": 1.0, "output": 1.0}},
}  # fmt: skip


def test_type_checkers_know_the_keywords_that_there_are() -> None:
    assert list(get_type_hints(RequestKeywords)) == [field.name for field in fields(RequestOptions)]


@pytest.mark.parametrize("taker", [oa.Judge, oa.Embedder])
def test_what_both_take_may_be_given_as_keywords(taker: Any) -> None:
    made = taker(base_url=URL, model="m", api_key="k", cache={}, **GIVEN)
    server = made.server if taker is oa.Judge else made._server
    assert server.transport._timeout == 1.0
    assert server.until() - server.transport.clock.monotonic() == pytest.approx(2.0, abs=0.5)
    assert server.transport._headers["X-Team"] == "a"
    assert made.priced
    assert not taker(URL, "m").priced


@pytest.mark.parametrize("taker", [oa.Judge, oa.Embedder])
def test_an_unknown_keyword_is_refused_in_the_name_of_the_class(taker: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{taker.__name__}\(\) got an unexpected keyword argument 'timeuot'$"):
        taker(URL, "m", timeuot=3)


@pytest.mark.parametrize("name", ["a b", "X-Key:", "", "X-Key\r\nY", "ключ"])
def test_header_name_is_refused_with_invalid_characters(name: str) -> None:
    with pytest.raises(oa.ConfigError, match="headers: invalid"):
        oa.Judge(URL, "m-1", headers={name: "v"})
