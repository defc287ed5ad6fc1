"""Reloads of a configuration that lost a security option."""

from __future__ import annotations

import http.client
import os
import signal
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.certificates import Authority
from tests.support.servers import answers, until
from tests.support.service import turn_of
from tests.support.sidecar import Sidecar

TENANTS = [{"name": "shop", "token": "of-the-shop"}]
RELOADED = "agenteval_config_last_reload_successful"
_OTHER_HOST = {"Host": "other.example", "Authorization": "Bearer of-all"}
_OTHER_ORIGIN = {"Origin": "https://other.example", "Authorization": "Bearer of-all"}


@dataclass(frozen=True)
class Secured:
    """A configuration that is protected only by one option.

    Attributes:
        serve: section ``serve``.
        option: path of the option in this section, or empty for the whole file.
        emptied, invalid: values that the option can get.
        headers: headers of requests that must be refused.
        tls: True if the server has a certificate and requests use TLS, except if the option is the certificate.
    """

    serve: Mapping[str, Any]
    option: tuple[str, ...]
    emptied: Any = ""
    invalid: Any = 5
    headers: Mapping[str, str] | None = None
    tls: bool = False


OPTIONS: Mapping[str, Secured] = {
    "token": Secured({"token": "of-all"}, ("token",)),
    "tenants": Secured({"tenants": TENANTS}, ("tenants",), []),
    "a tenant's token": Secured({"tenants": TENANTS}, ("tenants", "0", "token")),
    "page.read_token": Secured({"token": "of-all", "page": {"read_token": "of-readers"}}, ("page", "read_token")),
    "tls.client_ca_file": Secured({}, ("tls", "client_ca_file"), tls=True),
    "tls.cert_file": Secured({"token": "of-all"}, ("tls", "cert_file"), invalid="missing.pem"),
    "allowed_hosts": Secured(
        {"token": "of-all", "allowed_hosts": ["own.example"]}, ("allowed_hosts",), [], headers=_OTHER_HOST
    ),
    "allowed_origins": Secured(
        {"token": "of-all", "allowed_origins": ["https://own.example"]}, ("allowed_origins",), [], headers=_OTHER_ORIGIN
    ),
    "whole file": Secured({"token": "of-all"}, ()),
}  # fmt: skip
CHANGES = ("removed", "emptied", "replaced by invalid data")


@dataclass(frozen=True)
class Reloaded:
    """Responses to a sender and to a reader of the web UI, before and after a reload."""

    before: tuple[str, str]
    after: tuple[str, str]
    successful: bool
    """``last_reload_successful``."""
    needs_restart: bool
    """True if the log names the option as one that needs a restart."""

    @property
    def is_well(self) -> bool:
        """Return True if no one gets access, and the sidecar doesn't report that the change is in use."""
        return "200" not in self.before + self.after and self.after == self.before and (not self.successful or self.needs_restart)


def reloaded(option: str, change: str, folder: Path) -> Reloaded:
    """Reload a configuration whose option is ``removed``, ``emptied`` or ``replaced by invalid data``, at a reachable address."""
    secured = OPTIONS[option]
    serve = dict(secured.serve)
    trusted = None
    if secured.option[:1] == ("tls",):
        authority = Authority(folder)
        cert, key = authority.issue("server")
        serve["tls"] = {"cert_file": str(cert), "key_file": str(key)}
        if secured.tls:
            serve["tls"]["client_ca_file"] = str(authority.file)
            trusted = authority.file
    with Sidecar(folder, {"serve": serve}, host="127.1", ready=lambda: True) as sidecar:
        until(answers(f"http://{sidecar.metrics}/healthz"), "it is up")
        until(lambda: "listening:" in sidecar.text(), "it listens")
        requests = (
            ("POST", sidecar.http, "/v1/traces", turn_of(1)), ("GET", sidecar.web, "/api/v1/turns", b""),
        )  # fmt: skip

        def responses() -> tuple[str, str]:
            found = [_status(*request, secured.headers or {}, trusted) for request in requests]
            return found[0], found[1]

        before = responses()
        (file,) = folder.glob("sidecar-*.yaml")
        _change(file, secured, change)
        os.kill(sidecar.pid, signal.SIGHUP)
        until(lambda: any(text in sidecar.text() for text in ("not reloaded", "configuration reloaded")), "it has reloaded")
        names = f"serve.{secured.option[0]}" if secured.option else "nothing"
        needs_restart = any("restart to apply" in line and names in line for line in sidecar.text().splitlines())
        return Reloaded(before, responses(), sidecar.metric(RELOADED) == 1, needs_restart)


def _change(file: Path, secured: Secured, change: str) -> None:
    if not secured.option:
        if change == "removed":
            file.unlink()
        else:
            file.write_bytes(b"" if change == "emptied" else b"serve: {token: of-\x01all}\n")
        return
    given = yaml.safe_load(file.read_text())
    place: Any = given["serve"]
    *path, last = secured.option
    for key in path:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if change == "removed":
        del place[last]
    else:
        place[last] = secured.emptied if change == "emptied" else secured.invalid
    file.write_text(yaml.safe_dump(given))


def _status(method: str, url: str, path: str, body: bytes, headers: Mapping[str, str], trusted: Path | None) -> str:
    """Return the status of a request without credentials, or ``refused`` if the connection is closed."""
    address = url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=30)
    if trusted is not None:
        context = ssl.create_default_context(cafile=str(trusted))
        context.check_hostname = False
        connection = http.client.HTTPSConnection(address, context=context, timeout=30)
    try:
        connection.request(method, path, body, {"Content-Type": "application/x-protobuf", **headers})
        return str(connection.getresponse().status)
    except (OSError, http.client.HTTPException):
        return "refused"
    finally:
        connection.close()
