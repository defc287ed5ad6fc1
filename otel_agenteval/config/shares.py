"""Division of the limits of judge and embedder among the processes of one worker."""

from __future__ import annotations

from typing import Any

from ..core.errors import ConfigError
from .loader import load_config
from .root import Config

_LIMITS = ("max_concurrency", "requests_per_minute", "tokens_per_minute")
_CALLS_PER_PROCESS = 50
"""Concurrent judge calls that one process makes at nearly full speed, even if the model answers within 50 ms."""


def processes_for(config: Config, cores: int) -> int:
    """Return how many processes make the configured number of concurrent judge calls best."""
    return max(1, min(cores, config.judge.max_concurrency // _CALLS_PER_PROCESS, *_limits_of(config).values()))


def share_of(config: Config, number: int, count: int) -> Config:
    """Return the configuration of one of ``count`` processes. Together, they have the configured limits.

    Raises:
        ConfigError: a limit is less than the number of processes.
    """
    for path, limit in _limits_of(config).items():
        if limit < count:
            name = ".".join(path)
            raise ConfigError(f"--processes: must be at most {limit}, got {count}. Each process needs a share of {name}")
        share: Any = limit * (number + 1) // count - limit * number // count
        for key in reversed(path):
            share = {key: share}
        config = load_config(config, overrides=share)
    return config


def _limits_of(config: Config) -> dict[tuple[str, ...], int]:
    """Return the limits of all configured servers, by their option's path."""
    services: dict[tuple[str, ...], Any] = {("judge",): config.judge, ("embedder",): config.embedder}
    services |= {("judge", "servers", name): server for name, server in config.judge.servers.items()}
    return {
        (*path, name): limit
        for path, service in services.items()
        if service.base_url is not None
        for name in _LIMITS
        if (limit := getattr(service, name, None)) is not None
    }
