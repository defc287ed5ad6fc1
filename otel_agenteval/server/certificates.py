"""The dates of the certificates in use: an expired one locks every sender out, and only the senders would see why."""

from __future__ import annotations

import datetime
import logging
import re
import ssl
import time
from pathlib import Path
from typing import NamedTuple

from ..config.tls import TlsOptions

_log = logging.getLogger("otel_agenteval")

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_SOON = 14 * 86_400.0
"""Seconds before its end from which a certificate is reported to expire soon; for short-lived ones the last fifth of their time."""
_UTC_TIME, _VERSION = 0x17, 0xA0


class Validity(NamedTuple):
    """Of one certificate, in seconds since 1970."""

    begin: float
    end: float


def validities(tls: TlsOptions) -> dict[str, Validity]:
    """By option, of the certificate in its file that expires first. What cannot be read is left out: loading it reports that."""
    found: dict[str, Validity] = {}
    for option in ("cert_file", "client_ca_file"):
        file = getattr(tls, option)
        if file is None:
            continue
        try:
            blocks = _PEM.findall(Path(file).read_text(encoding="latin-1"))
            found[option] = min((_validity(ssl.PEM_cert_to_DER_cert(block)) for block in blocks), key=lambda one: one.end)
        except (OSError, ValueError, IndexError):
            continue
    return found


def warn(tls: TlsOptions, known: dict[str, Validity]) -> None:
    """Warn of certificates that are not valid, or soon will not be."""
    now = time.time()
    for option, valid in known.items():
        place, until = f"serve.tls.{option}: {getattr(tls, option)}", _date(valid.end)
        if valid.end <= now:
            _log.warning("%s: the certificate expired on %s; clients refuse it, or are refused", place, until)
        elif valid.begin > now:
            _log.warning("%s: the certificate is not valid before %s", place, _date(valid.begin))
        elif valid.end - now < min(_SOON, (valid.end - valid.begin) / 5):
            _log.warning("%s: the certificate expires on %s", place, until)


def _date(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _validity(der: bytes) -> Validity:
    """Of a certificate: the fourth field of the signed part, or the fifth if the first one is a version.

    Raises:
        ValueError, IndexError: it is none.
    """
    _, begin, _ = _field(der, 0)
    _, at, _ = _field(der, begin)
    for _ in range(4 if der[at] == _VERSION else 3):
        at = _field(der, at)[2]
    _, first, _ = _field(der, at)
    _, _, second = _field(der, first)
    return Validity(_time(der, first), _time(der, second))


def _field(der: bytes, at: int) -> tuple[int, int, int]:
    """Kind, begin of the content and end of a field."""
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
