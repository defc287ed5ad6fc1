"""A reload refuses the same configurations as a start, and never removes protection from addresses in use."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from tests.server.test_tls import sends, serve
from tests.support.certificates import Authority
from tests.support.servers import until
from tests.support.service import Sidecar, turn_of
from tests.support.sidecar import Sidecar as Process

OPEN = {"grpc": None, "http": "0.0.0.0:0", "metrics": "127.0.0.1:0", "web": "0.0.0.0:0"}
TENANTS = [{"name": "shop", "token": "of-the-shop"}]
RELOADED = "agenteval_config_last_reload_successful"


def reloaded(sidecar: Sidecar, file: Path, text: str) -> list[str]:
    file.write_text(text)

    async def reload() -> list[str]:
        return sidecar.service.reload(load_config(file))

    found: list[str] = sidecar.on_loop(reload)
    return found


def answers(sidecar: Sidecar) -> list[int]:
    """Return the statuses of requests without a token: of a sender, and of a reader of the web UI."""
    return [sidecar.post("/v1/traces", turn_of(1))[0], sidecar.get("/api/status", "web")[0]]


CHANGES: list[Mapping[str, Any]] = [
    {"token": ..., "tenants": ...}, {"token": "", "tenants": []}, {"token": 5, "tenants": 5}, {"token": "${env:UNSET_TOKEN}"},
    {"token": "${env:UNSET_TOKEN:-}", "tenants": []}, {"token": []}, {"token": ["of-all", ""]}, {"tenants": [{"name": "shop"}]},
    {"token": None, "tenants": None}, {"token": ..., "tenants": ..., "insecure": True},
    {"token": ..., "tenants": ..., "http": "127.0.0.1:0", "web": "127.0.0.1:0"},
    {"tls": {"cert_file": "missing.pem", "key_file": "missing.pem"}}, {"tls": {"client_ca_file": "missing.pem"}},
    {"allowed_hosts": [5]}, {"allowed_origins": {}}, {"page": {"read_token": "of-all"}}, {"ready_outlets": ["otlp"]},
]  # fmt: skip


@pytest.mark.parametrize("secured", [{"token": "of-all"}, {"tenants": TENANTS, "token": "of-all"}, {"tenants": TENANTS}])
def test_a_reload_without_a_security_option_is_refused(
    secured: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report: SIGHUP with a configuration that lost its token opened a reachable address."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    given = {**OPEN, **secured}
    file = tmp_path / "agenteval.yaml"
    with Sidecar({"serve": given}) as sidecar:
        for change in CHANGES:
            then = {key: value for key, value in {**given, **change}.items() if value is not ...}
            with pytest.raises(ConfigError):
                reloaded(sidecar, file, yaml.safe_dump({"serve": then, "statistics": {"state": None}}))
            assert answers(sidecar) == [401, 401], change
            reloaded(sidecar, file, yaml.safe_dump({"serve": given, "statistics": {"state": None}}))


def test_tokens_are_rotated_by_a_list_and_reloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    given = {**OPEN, "token": "old"}
    with Sidecar({"serve": given}) as sidecar:

        def accepted() -> list[str]:
            sent = {token: {"Authorization": f"Bearer {token}"} for token in ("old", "new", "other")}
            found = [token for token, headers in sent.items() if sidecar.post("/v1/traces", turn_of(1), headers)[0] == 200]
            assert found == [token for token, headers in sent.items() if sidecar.get("/api/status", "web", headers)[0] == 200]
            return found

        assert accepted() == ["old"]
        for tokens in (["old", "new"], ["new"]):
            reloaded(sidecar, tmp_path / "agenteval.yaml", yaml.safe_dump({"serve": {**given, "token": tokens}}))
            assert accepted() == tokens


@pytest.mark.parametrize("path", ["/api/status", "/api/why/none", "/api/v1/catalog"])
def test_paths_of_the_web_port_accept_the_same_credentials(path: str) -> None:
    with Sidecar({"serve": {"token": "of-all", "page": {"read_token": "of-readers"}}}) as sidecar:
        for token, is_known in (("of-all", True), ("of-readers", True), ("other", False)):
            basic = base64.b64encode(f"me:{token}".encode()).decode()
            for credentials in (f"Bearer {token}", f"Basic {basic}"):
                status = sidecar.get(path, "web", {"Authorization": credentials})[0]
                assert (status != 401) is is_known


def test_an_empty_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with Sidecar({"serve": {**OPEN, "token": "of-all"}}) as sidecar:
        for text in ("", "# nothing\n", "{}", "serve: {}"):
            with pytest.raises(ConfigError, match=r"serve\.http: 0\.0\.0\.0:0 is reachable"):
                reloaded(sidecar, tmp_path / "agenteval.yaml", text)
            assert answers(sidecar) == [401, 401], text


@pytest.mark.parametrize("change", [{"allowed_hosts": []}, {"allowed_origins": []}, {"allowed_hosts": ["other.example"]}])
def test_names_of_hosts_need_a_restart(change: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    given = {**OPEN, "token": "of-all", "allowed_hosts": ["own.example"], "allowed_origins": ["https://own.example"]}
    with Sidecar({"serve": given}) as sidecar:
        text = yaml.safe_dump({"serve": {**given, **change}, "statistics": {"state": None}})
        fixed = reloaded(sidecar, tmp_path / "agenteval.yaml", text)
        assert f"serve.{next(iter(change))}" in fixed
        assert sidecar.get("/api/status", "web", {"Host": "other.example", "Authorization": "Bearer of-all"})[0] == 403


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_reload_replaces_the_authority_of_clients(transport: Any, tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    trusted = tmp_path / "clients.pem"
    trusted.write_bytes(old.file.read_bytes())
    config = serve(old.issue("server"), trusted)
    file = tmp_path / "agenteval.yaml"
    with Sidecar(config) as sidecar:
        text = yaml.safe_dump(
            {**config, "serve": {**config["serve"], **dict.fromkeys(("grpc", "http", "metrics", "web"), "127.0.0.1:0")}}
        )
        clients = old.issue("client"), new.issue("client")
        assert [sends(sidecar, transport, old.file, one) for one in clients] == [True, False]
        trusted.write_text("")
        with pytest.raises(ConfigError, match="client_ca_file"):
            reloaded(sidecar, file, text)
        trusted.write_bytes(new.file.read_bytes())
        reloaded(sidecar, file, text)
        if transport == "grpc":  # the first new connection fetches the certificate
            sends(sidecar, transport, old.file, clients[1])
        assert [sends(sidecar, transport, old.file, one) for one in clients] == [False, True]


def test_several_processes_check_their_common_address(capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "serve",
        "--processes",
        "2",
        "--grpc",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--metrics",
        "0.0.0.0:0",
        "--web",
        "off",
    ]
    assert main(options) == 2
    assert "serve.metrics: 0.0.0.0:0 is reachable" in capsys.readouterr().err


def test_sighup_survives_every_file(tmp_path: Path) -> None:
    """Report: a control character in the file ended in a traceback, and the metric stayed 1."""
    with Process(tmp_path, {}) as sidecar:
        (file,) = tmp_path.glob("sidecar-*.yaml")
        good = file.read_bytes()
        for number, bad in enumerate((b"\0" * 64, b"serve: {token: a\x01b}\n", b"\xff\xfe\0", b"a: [\n"), 1):
            file.write_bytes(bad)
            os.kill(sidecar.pid, signal.SIGHUP)
            until(lambda n=number: sidecar.text().count("not reloaded") == n, "the fault is told")  # type: ignore[misc]
            assert sidecar.metric(RELOADED) == 0
            file.write_bytes(good)
            os.kill(sidecar.pid, signal.SIGHUP)
            until(lambda n=number: sidecar.text().count("configuration reloaded") == n, "it is reloaded")  # type: ignore[misc]
        assert "Traceback" not in sidecar.text()
