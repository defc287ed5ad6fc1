"""Fixtures: model servers and judges."""

from __future__ import annotations

from tests.models.conftest import judge, judge_of, server, sleeps  # noqa: F401 - fixtures
