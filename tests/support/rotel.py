"""rotel, a Collector written in Rust, whose program is part of its Python package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.support import servers
from tests.support.servers import Process, free_port, listens


class Rotel(Process):
    """rotel on free ports, which forwards spans over OTLP.

    Args:
        folder: folder for its log.
        endpoint: URL of the receiver.
        protocol: ``grpc`` or ``http``.
    """

    def __init__(self, folder: Path, endpoint: str, protocol: str) -> None:
        grpc, http = free_port(), free_port()
        self.grpc = f"127.0.0.1:{grpc}"
        command: list[str | Path] = [
            _program(),
            "start",
            "--otlp-grpc-endpoint",
            self.grpc,
            "--otlp-http-endpoint",
            f"127.0.0.1:{http}",
        ]
        command += ["--exporter", "otlp", "--otlp-exporter-endpoint", endpoint, "--otlp-exporter-protocol", protocol]
        super().__init__([*command, "--batch-timeout", "200ms"], log=folder / "rotel.log", ready=listens(grpc), cwd=folder)


def _program() -> Path:
    found = importlib.util.find_spec("rotel")
    path = Path(found.origin).with_name("rotel-agent") if found is not None and found.origin else None
    if path is not None and path.exists():
        return path
    if servers.REQUIRED:
        pytest.fail("the package rotel is not installed", pytrace=False)
    pytest.skip("the package rotel is not installed")
