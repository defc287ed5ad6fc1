"""Encryption of stored content: turns in a queue and replies in a cache.

Uses Fernet (AES-128 in CBC mode with HMAC-SHA256) from the package ``cryptography``, extra ``[encryption]``. To rotate keys,
configure several, separated by commas. The first key encrypts, and every key can decrypt.
"""

from __future__ import annotations

from typing import Any

from .errors import ConfigError, SealError
from .extras import require


class Seal:
    """Encrypts and decrypts bytes. Thread-safe.

    Args:
        keys: one or more keys, separated by commas. Each is 32 bytes in URL-safe base64, as ``Fernet.generate_key()`` returns
    it.

    Raises:
        ConfigError: If a key is invalid. The message doesn't contain it.
        MissingExtra: If ``cryptography`` isn't installed.
    """

    def __init__(self, keys: str) -> None:
        fernet = require("cryptography.fernet", feature="encryption of queue and cache", extra="encryption")
        self._invalid: type[Exception] = fernet.InvalidToken
        try:
            made = [fernet.Fernet(key.strip()) for key in keys.split(",") if key.strip()]
        except ValueError:
            made = []
        if not made:
            raise ConfigError(
                "encryption_key: must be one or more 32-byte keys in URL-safe base64, separated by commas, got another value"
            )
        self._fernet: Any = fernet.MultiFernet(made)

    def __repr__(self) -> str:
        return "Seal()"

    def encrypt(self, content: bytes) -> bytes:
        sealed: bytes = self._fernet.encrypt(content)
        return sealed

    def decrypt(self, sealed: bytes) -> bytes:
        """Return the content decrypted.

        Raises:
            SealError: If no key decrypts it.
        """
        try:
            content: bytes = self._fernet.decrypt(sealed)
        except (self._invalid, TypeError):
            raise SealError("judge.encryption_key: no key decrypts the stored content. Add the key that encrypted it") from None
        return content
