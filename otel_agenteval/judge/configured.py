"""From configuration to judge and embedder."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..clock import SYSTEM_CLOCK, Clock
from ..config import CacheOptions, Config, ServiceOptions
from ..encryption import Seal
from ..errors import ConfigError
from .cache import VerdictCache
from .embedder import Embedder
from .judge import Judge


def judge_from(config: Config, *, clock: Clock = SYSTEM_CLOCK, sleep: Callable[[float], None] = time.sleep) -> Judge | None:
    """The configured judge; None if none is. Clock and sleep are for tests.

    Raises:
        ConfigError: half of it is missing, or a value is not allowed; with its path and, where it comes from a file, its line.
    """
    options = config.judge
    if not _is_configured(config, "judge", options):
        return None
    try:
        return Judge(
            **_arguments(options),
            provider=options.provider,
            cache=_cache(options.cache, seal_from(config)),
            clock=clock,
            sleep=sleep,
        )
    except ConfigError as error:
        raise ConfigError(f"{config.where(('judge',))}.{error}") from None


def seal_from(config: Config) -> Seal | None:
    """What encrypts the files of queue and cache; None if nothing does.

    Raises:
        ConfigError: the key is none, or the extra is not installed.
    """
    if config.judge.encryption_key is None:
        return None
    try:
        return Seal(config.judge.encryption_key)
    except ConfigError as error:
        raise ConfigError(f"{config.where(('judge',))}.{error}") from None


def embedder_from(config: Config) -> Embedder | None:
    """The configured embedder; None if none is.

    Raises:
        ConfigError: as :func:`judge_from`.
    """
    options = config.embedder
    if not _is_configured(config, "embedder", options):
        return None
    try:
        return Embedder(**_arguments(options))
    except ConfigError as error:
        raise ConfigError(f"{config.where(('embedder',))}.{error}") from None


def _is_configured(config: Config, section: str, options: ServiceOptions) -> bool:
    if options.base_url is None and options.model is None:
        return False
    for name, what in (("base_url", "the server's address"), ("model", "the model's name")):
        if getattr(options, name) is None:
            raise ConfigError(
                f"{config.where((section, name))}: null is not allowed; {what} is, as the other of the two is given"
            )
    return True


def _cache(options: CacheOptions, seal: Seal | None) -> VerdictCache | None:
    return None if options.path is None else VerdictCache(options.path, options.ttl, options.max_bytes, seal)


def _arguments(options: ServiceOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ServiceOptions.model_fields}
