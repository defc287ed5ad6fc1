"""Masking of secrets in a configuration.

A value is masked if it has a key such as ``api_key``, has the format of a known token type, or is a password in a URL. Most values
of environment variables with names such as ``API_KEY`` are masked everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "****"
_LEAST_KNOWN = 6
"""Minimum length of a secret environment variable's value. Shorter values aren't masked elsewhere in the configuration."""
_SECRET_KEY = re.compile(
    r"(?:^|[_.\s-]|(?<=[a-z])(?=[A-Z]))(?:api[_-]?key|key|token|password|passwd|pwd|pass|passphrase|passcode|secret|authorization|auth|credentials?|cookies?|"
    r"private|jaas[._-]config|user[._-]?info|connection[_-]?string|dsn|webhook(?:[_-]?url)?|secrets|passwords)$",
    re.IGNORECASE,
)
_SECRET_NUMBER = re.compile(r"(?:password|passwd|passphrase|passcode|pwd|secret)$", re.IGNORECASE)
_PLURAL = re.compile(r"(?:api[_-]?keys|(?:^|[_.-])keys|tokens)$", re.IGNORECASE)
_HEADERS = re.compile(r"headers?$", re.IGNORECASE)
_AUTHORITY = re.compile(
    r"(?<=://)(?:([^/?#@\s:\"']*):[^\s\"'?#]*?(?:@[^/?#\s\"']*)?|[^/?#@\s:\"']+)@(?=[^@\s/?#]*(?:[/?#\s,\"']|$))"
)
_QUERY = re.compile(
    r"([?&;#](?:[\w.-]*[_.-])?(?:api[_-]?key|key|token|password|passwd|pwd|pass|secret|sig|signature|auth|authorization|credential|code|jwt|session)=)[^&#;\s\"']+",
    re.IGNORECASE,
)


def masked(value: Any, env: Mapping[str, str] | None = None) -> Any:
    """Return a value with its secrets masked, including most values of secret variables in ``env`` (default: ``os.environ``)."""
    secrets = {
        value
        for name, value in (os.environ if env is None else env).items()
        if _SECRET_KEY.search(name) is not None and len(value) >= _LEAST_KNOWN and not value.startswith("/")
    }
    known = {form for secret in secrets for form in (secret, quote(secret, safe=""), quote(secret), quote_plus(secret))}
    return _masked(value, "", sorted(known, key=len, reverse=True))


def _masked(value: Any, key: Any, known: Collection[str]) -> Any:
    name_of_value = str(key)
    if isinstance(value, dict):
        return _masked_mapping(value, name_of_value, known)
    if isinstance(value, (list, tuple, set, frozenset)):
        hide = _PLURAL.search(name_of_value) is not None
        return [_hidden(inner) if hide else _masked(inner, key, known) for inner in value]
    if isinstance(value, str):
        return MASK if value and _SECRET_KEY.search(name_of_value) is not None else _text(value, known)
    if isinstance(value, int) and not isinstance(value, bool) and _SECRET_NUMBER.search(name_of_value) is not None:
        return MASK
    return value


def _masked_mapping(value: dict[Any, Any], key: str, known: Collection[str]) -> dict[Any, Any]:
    if _HEADERS.search(key) is not None:
        return dict.fromkeys(value, MASK)
    if _PLURAL.search(key) is not None:
        return {_text(name, known): _hidden(inner) for name, inner in value.items()}
    masked_items = {_text(name, known): _masked(inner, name, known) for name, inner in value.items()}
    if key.lower().endswith("webhook") and "url" in value:  # the URL of a webhook is a secret
        masked_items["url"] = _masked(value["url"], "webhook_url", known)
    return masked_items


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _hidden(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_hidden(inner) for inner in value]
    return MASK if isinstance(value, str) and value else value


def _text(text: Any, known: Collection[str]) -> Any:
    if not isinstance(text, str):
        return text
    for secret in known:
        text = text.replace(secret, MASK)
    # a user name without a password is masked too, because it can be a token
    text = _AUTHORITY.sub(lambda found: f"{MASK}@" if found[1] is None else f"{found[1]}:{MASK}@", text)
    text = _QUERY.sub(rf"\1{MASK}", text)
    if "${" in text:
        return text
    from ..detectors.redaction.find import find_in  # imported on first use, because few processes show a configuration

    out: list[str] = []
    at = 0
    for start, end, _ in find_in(text, ("secret",)):
        out += text[at:start], MASK
        at = end
    return "".join([*out, text[at:]]) if at else text
