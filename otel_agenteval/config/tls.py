"""Section ``serve.tls``: the sidecar's certificate."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, model_validator

from .section import _Section
from .types import _file


class TlsOptions(_Section):
    """Certificate of the server, in files of PEM form. They are read again on SIGHUP."""

    cert_file: Annotated[str, BeforeValidator(_file)] | None = None
    """Certificate, with those that lead to its authority; null is without encryption."""
    key_file: Annotated[str, BeforeValidator(_file)] | None = None
    """Its private key."""
    client_ca_file: Annotated[str, BeforeValidator(_file)] | None = None
    """Authority of the clients' certificates: with it, only clients that have one are served."""

    @model_validator(mode="after")
    def _certificate_with_its_key(self) -> TlsOptions:
        if (self.cert_file is None) != (self.key_file is None) or (self.client_ca_file is not None and self.cert_file is None):
            raise ValueError("cert_file with key_file (and client_ca_file, if wanted), or none of them, is")
        return self
