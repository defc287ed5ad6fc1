"""Model clients: judges score turns, and embedders compute vectors.

Modules in this folder may import the same packages as :mod:`~otel_agenteval.judging`. Start reading at :mod:`.judge`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...config.judge import ServiceOptions
from ...config.root import Config
from ...config.section import options_of
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.errors import ConfigError, MissingExtra
from .base import Account, Total, admitting_repairs, listening, recording
from .cache import VerdictCache, bypassing_cache, is_cache_bypassed
from .embedder import CLIP, PREFIX, ClipEmbedder, Embedder, InProcessEmbedder, LocalEmbedder
from .judge import Judge
from .panel import Choice, JudgeGroup, SecondOpinion
from .providers import PROVIDERS

__all__ = [
    "Account", "Choice", "Embedder", "InProcessEmbedder", "Judge", "JudgeGroup", "LocalEmbedder", "SecondOpinion", "Total",
    "VerdictCache", "admitting_repairs", "bypassing_cache", "embedder_from", "is_cache_bypassed", "judge_from", "listening",
    "recording",
]  # fmt: skip


def judge_from(
    config: Config, *, clock: Clock = SYSTEM_CLOCK, sleep: Callable[[float], None] = time.sleep
) -> Judge | JudgeGroup | None:
    """Return the configured judge or judge group, or None. If an option is invalid, raise a ConfigError with its name and line."""
    options = config.judge
    if not _is_configured(config, "judge", options):
        return None
    wanted = options.cache
    cache = None if wanted.path is None else VerdictCache(wanted.path, wanted.ttl, wanted.max_bytes)
    shared: dict[str, Any] = {"max_input_tokens": options.max_input_tokens, "cache": cache, "clock": clock, "sleep": sleep}
    with _located(config, "judge"):
        main = Judge(**_arguments(options), provider=options.provider, endpoint=options.endpoint, **shared)
    named, servers = {options.model or "": main}, dict[str, Judge]()

    def judge_named(name: str, *path: str | int) -> Judge:
        try:
            if name not in named:
                named[name] = _another_judge(config, name, main, servers, shared)
                named[name].name = name
        except ConfigError as error:
            hint = f". Configure the server in judge.servers.{name.partition('/')[0]}" if "/" in name else ""
            raise ConfigError(f"{config.where(('judge', *path))}: {error}{hint}") from None
        return named[name]

    chosen = [Choice(judge_named(one.model, "choose", n, "model"), one.metric, one.agent) for n, one in enumerate(options.choose)]
    second, other = None, options.second
    if other.model is not None:
        second = SecondOpinion(judge_named(other.model, "second", "model"), other.margin, other.tolerance)
    panel = [judge_named(model, "panel", "models", n) for n, model in enumerate(options.panel.models)]
    if not (chosen or second or panel):
        return main
    return JudgeGroup(main, chosen, second, panel, options.panel.combine)


def _another_judge(config: Config, name: str, main: Judge, servers: dict[str, Judge], shared: Mapping[str, Any]) -> Judge:
    """Return the judge ``name``: ``MODEL`` (on the server of ``main``) or ``SERVER/MODEL`` (on one of ``judge.servers``)."""
    server, slash, model = name.partition("/")
    options = config.judge.servers.get(server) if slash else None
    if options is None:
        return main.with_model(name)
    if server in servers:
        return servers[server].with_model(model)
    provider = options.provider or (server if server in PROVIDERS else "openai")
    arguments = {**_arguments(config.judge), **{key: getattr(options, key) for key in _OF_A_SERVER}, "model": model}
    servers[server] = Judge(**arguments, provider=provider, **shared)
    return servers[server]


_OF_A_SERVER = ("base_url", "api_key", "headers", "endpoint", "requests_per_minute", "tokens_per_minute")


def embedder_from(config: Config) -> Embedder | InProcessEmbedder | None:
    options = config.embedder
    if options.path is not None and (options.base_url is not None or options.model != CLIP):
        problem = "can't be combined with base_url. Remove one of them"
        problem = problem if options.model == CLIP else f"requires model {CLIP}, got {options.model!r}"
        raise ConfigError(f"{config.where(('embedder', 'path'))}: {problem}")
    with _located(config, "embedder"):
        if options.base_url is None and options.model == CLIP:
            if options.path is None:
                raise ConfigError(f"path: required with model {CLIP}")
            return ClipEmbedder(options.path)
        if options.base_url is None and (options.model or "").startswith(PREFIX):
            return LocalEmbedder(options.model or "")
    if not _is_configured(config, "embedder", options):
        return None
    with _located(config, "embedder"):
        return Embedder(**_arguments(options), images=options.images)


@contextmanager
def _located(config: Config, section: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        separator = ": " if isinstance(error, MissingExtra) else "."
        raise ConfigError(f"{config.where((section,))}{separator}{error}") from None


def _is_configured(config: Config, section: str, options: ServiceOptions) -> bool:
    if options.base_url is None and options.model is None:
        return False
    for name, other in (("base_url", "model"), ("model", "base_url")):
        if getattr(options, name) is None:
            raise ConfigError(f"{config.where((section, name))}: required, because {section}.{other} is set")
    return True


def _arguments(options: ServiceOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in options_of(ServiceOptions)}
