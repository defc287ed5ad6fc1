"""Section ``serve.tls``: the sidecar's certificate."""

from __future__ import annotations

from .section import Section
from .types import FilePath


class TlsOptions(Section):
    """Certificate of the server, in PEM files. They are read again on SIGHUP."""

    cert_file: FilePath | None = None
    """Certificate, with its chain; null means no encryption."""
    key_file: FilePath | None = None
    """Its private key."""
    client_ca_file: FilePath | None = None
    """Authority of the clients' certificates: if set, only clients with such a certificate are served."""

    def _check(self) -> None:
        if (self.cert_file is None) != (self.key_file is None) or (self.client_ca_file is not None and self.cert_file is None):
            raise ValueError("cert_file and key_file must be set together, or neither of them; client_ca_file needs both")
