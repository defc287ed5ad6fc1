"""TLS certificates of the sidecar's servers, with warnings before a certificate expires.

The warnings are important, because an expired certificate locks out senders.
"""

from __future__ import annotations

import datetime
import logging
import re
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..config.serve import TlsOptions
from ..config.types import KeyPath, dotted
from ..core.errors import ConfigError

_log = logging.getLogger("otel_agenteval")

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_SOON = 14 * 86_400.0
"""Warnings start this many seconds before expiry or, if later, when a fifth of the certificate's lifetime remains."""
_UTC_TIME, _VERSION = 0x17, 0xA0


class Validity(NamedTuple):
    begin: float
    end: float


def checked_validities(tls: TlsOptions) -> dict[str, Validity]:
    """For each option with a certificate file, return the validity period of the file's certificate that expires first.

    If this certificate isn't valid or expires soon, log a warning. Skip unreadable files.
    """
    found: dict[str, Validity] = {}
    now = time.time()
    for option in ("cert_file", "client_ca_file"):
        file = getattr(tls, option)
        if file is None:
            continue
        try:
            blocks = _PEM.findall(Path(file).read_text(encoding="latin-1"))
            valid = min((_validity(ssl.PEM_cert_to_DER_cert(block)) for block in blocks), key=lambda one: one.end)
        except (OSError, ValueError, IndexError):
            continue
        found[option] = valid
        place, until = f"serve.tls.{option}: {file}", _date(valid.end)
        if valid.end <= now:
            _log.warning("%s: the certificate expired on %s, so TLS connections can fail; renew it", place, until)
        elif valid.begin > now:
            _log.warning("%s: the certificate isn't valid until %s; check this machine's clock", place, _date(valid.begin))
        elif valid.end - now < min(_SOON, (valid.end - valid.begin) / 5):
            _log.warning("%s: the certificate expires on %s; renew it", place, until)
    return found


def _date(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _validity(der: bytes) -> Validity:
    """Parse the validity period of a DER certificate. For a malformed certificate, raise ValueError or IndexError."""
    _, begin, _ = _field(der, 0)
    _, at, _ = _field(der, begin)
    for _ in range(4 if der[at] == _VERSION else 3):
        at = _field(der, at)[2]
    _, first, _ = _field(der, at)
    _, _, second = _field(der, first)
    return Validity(_time(der, first), _time(der, second))


def _field(der: bytes, at: int) -> tuple[int, int, int]:
    size, begin = der[at + 1], at + 2
    if size >= 0x80:
        count = size & 0x7F
        size = int.from_bytes(der[begin : begin + count], "big")
        begin += count
    return der[at], begin, begin + size


def _time(der: bytes, at: int) -> float:
    kind, begin, end = _field(der, at)
    text = der[begin:end].decode("ascii")
    form = "%y%m%d%H%M%SZ" if kind == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.timezone.utc).timestamp()


def tls_context(
    options: TlsOptions, protocol: str = "http/1.1", where: Callable[[KeyPath], str] = dotted
) -> ssl.SSLContext | None:
    """Return the TLS context for a protocol, or None if no certificate is configured.

    For an invalid or unreadable file, raise ConfigError. ``where`` returns an option's location for the error message.
    """
    if options.cert_file is None:
        return None
    for name, file in vars(options).items():
        if file is not None:
            place, kind = f"{where(('serve', 'tls', name))}: {file}", "private key" if name == "key_file" else "certificate"
            try:
                text = Path(file).read_text(encoding="latin-1")
            except OSError as error:
                raise ConfigError(f"{place}: can't read the file: {error.strerror or error}") from None
            if f"{kind.upper()}-----" not in text:
                raise ConfigError(f"{place}: must be a PEM {kind}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([protocol])
    try:
        context.load_cert_chain(options.cert_file, options.key_file, _no_pass_phrase)
    except _KeyIsEncrypted:
        raise ConfigError(
            f"{where(('serve', 'tls', 'key_file'))}: {options.key_file}: the key must not be encrypted. Use a key without a pass phrase"
        ) from None
    except (OSError, ssl.SSLError) as error:
        pair = f"cert_file {options.cert_file} and key_file {options.key_file}"
        raise ConfigError(f"{where(('serve', 'tls'))}: can't load {pair}: {getattr(error, 'reason', None) or error}") from None
    if options.client_ca_file is not None:
        try:
            context.load_verify_locations(options.client_ca_file)
        except (OSError, ssl.SSLError) as error:
            place = f"{where(('serve', 'tls', 'client_ca_file'))}: {options.client_ca_file}"
            raise ConfigError(f"{place}: can't load the file: {getattr(error, 'reason', None) or error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class _KeyIsEncrypted(Exception):
    """Error raised instead of OpenSSL's prompt for a pass phrase, which would block the process."""


def _no_pass_phrase() -> str:
    raise _KeyIsEncrypted
