"""Texts that are made to take time: whatever an agent writes, a reader's time grows with its length, and no faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core import jsonio
from otel_agenteval.core.redaction.find import finds
from otel_agenteval.dialects import content
from otel_agenteval.dialects.generic import values
from otel_agenteval.evaluation.redaction import KINDS
from otel_agenteval.metrics.lib.credentials import credentials
from tests.support.growth import steep


def weigh(text: str) -> int:
    return jsonio.weight(text.encode())


def find_credentials(text: str) -> list[Any]:
    return credentials(text, given=str, asked="", users="")


def redact(text: str) -> list[Any]:
    return list(finds(text, KINDS))


def metric(name: str) -> Callable[[str], oa.Score]:
    bound = oa.get_metric(name)
    return lambda text: bound.evaluate(oa.Turn(output=text))


@pytest.mark.parametrize(
    ("call", "make", "sizes"),
    [
        pytest.param(find_credentials, lambda n: "0" + "-" * n + "|", (20, 80, 320), id="letters one by one"),
        pytest.param(weigh, lambda n: '"' + '{\\"' * (n // 3) + "\\", (4_000, 16_000, 64_000), id="an open string of JSON"),
        pytest.param(redact, lambda n: "eyJhbGciOiJIUzI1NiJ9\n" * (n // 21), (1_000, 4_000, 16_000), id="heads of tokens"),
        pytest.param(values.opened, lambda n: "['" + "\\'\\'\\'" * (n // 6), (1_000, 4_000, 16_000), id="an open repr"),
        pytest.param(
            content.literal, lambda n: "[f'" + "{1}" * (n // 3) + "']", (8_000, 32_000, 128_000), id="fields of an f-string"
        ),
        pytest.param(metric("code_is_sql"), lambda n: "(000).0" * (n // 7), (600, 2_400, 9_600), id="calls of calls in SQL"),
    ],
)
def test_hostile_text_takes_linear_time(call: Callable[[str], Any], make: Callable[[int], str], sizes: tuple[int, ...]) -> None:
    assert steep(call, make, sizes) is None
