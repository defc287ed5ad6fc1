"""Receivers that stand where backends do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.receiver import GrpcReceiver


@pytest.fixture
def backend() -> Iterator[GrpcReceiver]:
    """Where traces and logs go besides us."""
    receiver = GrpcReceiver()
    yield receiver
    receiver.close()


@pytest.fixture
def ours() -> Iterator[GrpcReceiver]:
    """What stands where ``otel-agenteval serve`` does, to see what the Collector sends it."""
    receiver = GrpcReceiver()
    yield receiver
    receiver.close()
