"""Fixtures: receivers in place of backends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.receiver import GrpcReceiver


@pytest.fixture
def backend() -> Iterator[GrpcReceiver]:
    """Yield a receiver in place of the user's backend."""
    receiver = GrpcReceiver()
    yield receiver
    receiver.close()


@pytest.fixture
def ours() -> Iterator[GrpcReceiver]:
    """Yield a receiver in place of ``otel-agenteval serve``, for requests from the Collector."""
    receiver = GrpcReceiver()
    yield receiver
    receiver.close()
