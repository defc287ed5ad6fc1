"""Section ``serve.tls``: the sidecar's certificate."""

from __future__ import annotations

from .section import Section
from .types import FilePath


class TlsOptions(Section):
    """Certificate of the server, in PEM files. SIGHUP reloads them."""

    cert_file: FilePath | None = None
    """Certificate with its chain. Null means no TLS."""
    key_file: FilePath | None = None
    """Private key of the certificate."""
    client_ca_file: FilePath | None = None
    """Authority of client certificates. If set, clients without such a certificate are refused."""

    def _check(self) -> None:
        if (self.cert_file is None) != (self.key_file is None) or (self.client_ca_file is not None and self.cert_file is None):
            raise ValueError("set both cert_file and key_file, or neither. To use client_ca_file, set both")
