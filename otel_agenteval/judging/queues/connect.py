"""Clients of Redis and Valkey by URL: a single server, Sentinel or a cluster."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ...core.errors import ConfigError
from ...core.extras import require

SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
_CONNECT_SECONDS = 2.0
_CALL_SECONDS = 5.0


def connect(url: str) -> Any:
    """Return a ``redis-py`` client for a URL. Only Sentinel and cluster URLs connect at once.

    - ``redis://[user:password@]host[:port][/db]``: one server (``rediss`` uses TLS), or ``unix:///path/of/socket``
    - ``redis+sentinel://[user:password@]host:port,…/name``: the master ``name``, found through Sentinel
    - ``redis+cluster://[user:password@]host:port,…``: a cluster, found through some of its nodes

    ``valkey`` is allowed in place of ``redis``. Client parameters follow a ``?``: ``ssl_ca_certs``, ``ssl_certfile``,
    ``ssl_keyfile``, ``socket_timeout``, ``db``, ``sentinel_username``, ``sentinel_password``.
    """
    url = normal(url)
    redis = require("redis", feature="a queue in Redis", extra="redis")
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    # For a connection that broke while idle. The queue itself pauses between tries.
    retry = Retry(NoBackoff(), 1, (redis.exceptions.ConnectionError,))
    scheme, _, kind = urlsplit(url).scheme.partition("+")
    options: dict[str, Any] = {
        "socket_connect_timeout": _CONNECT_SECONDS,
        "socket_timeout": _CALL_SECONDS,
        "health_check_interval": 30,
    }
    if not kind:
        return redis.Redis.from_url(url, retry=retry, **options)
    parts = urlsplit(url)
    options |= {name: _number(values[-1]) for name, values in parse_qs(parts.query).items()}
    options |= {"ssl": True} if scheme == "rediss" else {}
    account, _, hosts = parts.netloc.rpartition("@")
    user, _, password = account.partition(":")
    options |= {key: unquote(value) for key, value in (("username", user), ("password", password)) if value}
    nodes = [_host_and_port(host, 26379 if kind == "sentinel" else 6379) for host in hosts.split(",")]
    if kind == "cluster":
        cluster = require("redis.cluster", feature="a queue in Redis", extra="redis")
        options.pop("db", None)
        return cluster.RedisCluster(startup_nodes=[cluster.ClusterNode(*node) for node in nodes], **options)
    sentinel = require("redis.sentinel", feature="a queue in Redis", extra="redis")
    sentinel_options = {key.removeprefix("sentinel_"): options.pop(key) for key in list(options) if key.startswith("sentinel_")}
    sentinel_options |= {key: value for key, value in options.items() if key.startswith(("ssl", "socket"))}
    return sentinel.Sentinel(nodes, sentinel_kwargs=sentinel_options).master_for(parts.path.strip("/"), retry=retry, **options)


def normal(url: str) -> str:
    """Return the URL with ``redis`` in place of ``valkey``, or raise a :class:`ConfigError`."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.replace("valkeys", "rediss").replace("valkey", "redis")
    if scheme not in SCHEMES or not separator or not rest:
        raise ConfigError(f"judge.queue.url: must begin with one of {', '.join(f'{s}://' for s in SCHEMES)}")
    if scheme.endswith("+sentinel") and not urlsplit(f"{scheme}://{rest}").path.strip("/"):
        raise ConfigError("judge.queue.url: must name a master as in redis+sentinel://host:26379/NAME")
    return f"{scheme}://{rest}"


def unreachable(error: BaseException) -> bool:
    """Return True for a temporary error: no connection, a failover, a starting server, no memory."""
    if isinstance(error, ConfigError):  # such as a missing redis-py
        return False
    from redis import exceptions as known

    passing = (known.ConnectionError, known.TimeoutError, known.ReadOnlyError, known.OutOfMemoryError, known.TryAgainError)
    if isinstance(error, (*passing, known.ClusterDownError, known.RedisClusterException, OSError)):
        return True
    return isinstance(error, known.ResponseError) and str(error).startswith(
        ("OOM", "LOADING", "MASTERDOWN", "NOREPLICAS", "READONLY")
    )


def _host_and_port(text: str, port: int) -> tuple[str, int]:
    host, colon, given = text.rpartition(":")
    return (host, int(given)) if colon else (text, port)


def _number(text: str) -> Any:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text
