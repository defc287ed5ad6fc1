"""Encryption of what we keep in files: the turns in a queue, the replies in a cache.

Fernet (AES-128 in CBC mode with HMAC-SHA256) from the package ``cryptography``, extra ``[encryption]``. Several keys, separated by
commas, let a key be replaced: the first one encrypts, and each of them decrypts.
"""

from __future__ import annotations

from typing import Any

from .errors import ConfigError, SealError
from .extras import require


class Seal:
    """Encrypts and decrypts bytes. Thread-safe.

    Args:
        keys: one or several, separated by commas: 32 bytes each in URL-safe base64, as ``Fernet.generate_key()`` makes them.

    Raises:
        ConfigError: a key is not valid. Its text is not shown.
        MissingExtra: ``cryptography`` is not installed.
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
                "encryption_key: this value is not allowed; it must be keys of 32 bytes in URL-safe base64, separated by commas"
            )
        self._fernet: Any = fernet.MultiFernet(made)

    def __repr__(self) -> str:
        return "Seal()"

    def encrypt(self, content: bytes) -> bytes:
        """The content, so that it may be kept."""
        sealed: bytes = self._fernet.encrypt(content)
        return sealed

    def decrypt(self, sealed: bytes) -> bytes:
        """The content that was encrypted.

        Raises:
            SealError: none of the keys decrypts it.
        """
        try:
            content: bytes = self._fernet.decrypt(sealed)
        except (self._invalid, TypeError):
            raise SealError("stored content cannot be decrypted: judge.encryption_key is not the key that encrypted it") from None
        return content
