"""Connection to a Redis or Valkey server, opened on first use. After a failure, calls are rejected for up to ten seconds.

The URL can name a single server, a Sentinel, or a cluster.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ...core import forks
from ...core.errors import ConfigError, Unusable
from ...core.extras import require
from ...core.pacing import backoff
from ...core.threads import may_wait

SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
_CONNECT_SECONDS = 2.0
_CALL_SECONDS = 5.0
_OPENING_SECONDS = 1.0
"""Maximum seconds that a scoring thread waits while another thread connects."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
"""First and longest pause between two attempts to reach the server, in seconds."""


class Script:
    """Lua script from files in ``lua/``. Calls send only the script's hash, unless the server doesn't have the script yet."""

    def __init__(self, *names: str, **constants: int) -> None:
        text = "".join((files(__package__) / "lua" / f"{name}.lua").read_text(encoding="utf-8") for name in names)
        for word, value in constants.items():
            text = text.replace(word, str(value))
        self._text = text
        self._hash = hashlib.sha1(self._text.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, client: Any, keys: Sequence[str], args: Sequence[Any]) -> Any:
        from redis.exceptions import NoScriptError

        try:
            return client.evalsha(self._hash, len(keys), *keys, *args)
        except NoScriptError:
            return client.eval(self._text, len(keys), *keys, *args)


class Server:
    """Client that connects on first use. After a failure, it rejects calls for a while. ``opened`` receives each new client."""

    def __init__(self, url: str, opened: Callable[[Any], None] = lambda client: None) -> None:
        self._url = normal(url)
        require("redis", feature="judge.queue.url: a queue in Redis", extra="redis")
        parts = urlsplit(self._url)
        self._address = parts.netloc.rpartition("@")[2] or parts.path
        self._opened = opened
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._client: Any = None
        self._closed = False
        self._failures = 0
        self._quiet_until = 0.0
        self._reason = ""

    @property
    def failing(self) -> bool:
        return self._failures > 0

    def call(self, call: Callable[..., Any], *args: Any) -> Any:
        """Call a function with the client and ``args``, and return the result.

        Raise Unusable if the server is unreachable, and for up to ten seconds afterwards. In threads that mustn't wait, keep
        raising Unusable until another thread's call succeeds.
        """
        if time.monotonic() < self._quiet_until or (self.failing and not may_wait()):
            raise self._unusable()
        try:
            found = call(self._open(), *args)
        except Exception as error:
            if unreachable(error):
                self._reason = str(error).rstrip(".") or type(error).__name__
                self._failures += 1
                self._quiet_until = time.monotonic() + backoff(self._failures, _FIRST_PAUSE, _LONGEST_PAUSE)
                if (pool := getattr(self._client, "connection_pool", None)) is not None:
                    pool.disconnect(inuse_connections=False)  # after a failover, the address can be another server's
                raise self._unusable() from None
            raise
        self._failures = 0
        return found

    def close(self) -> None:
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _open(self) -> Any:
        if not self._lock.acquire(timeout=-1 if may_wait() else _OPENING_SECONDS):
            raise ConnectionError("the server doesn't answer")
        try:
            if self._client is None:
                if self._closed:
                    raise ConnectionError("the queue is closed")
                client = connect(self._url)
                self._opened(client)
                self._client = client
            return self._client
        finally:
            self._lock.release()

    def _unusable(self) -> Unusable:
        return Unusable(f"Redis at {self._address}: {self._reason}; check judge.queue.url and the server", self._reason)


def connect(url: str) -> Any:
    """Return a ``redis-py`` client for a URL. Only cluster URLs connect immediately.

    - ``redis://[user:password@]host[:port][/db]``: one server. ``rediss`` uses TLS. ``unix:///path/to/socket`` uses a Unix socket.
    - ``redis+sentinel://[user:password@]host:port,…/name``: the master with this name, found through Sentinel
    - ``redis+cluster://[user:password@]host:port,…``: a cluster, found through some of its nodes

    ``valkey`` also means ``redis``. Client parameters follow ``?``, such as ``ssl_ca_certs``, ``ssl_certfile``, ``ssl_keyfile``,
    ``socket_timeout``, ``db``, ``sentinel_username``, and ``sentinel_password``.
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
    found = [urlsplit(f"//{node.strip()}") for node in hosts.split(",")]
    nodes = [(node.hostname, node.port or (26379 if kind == "sentinel" else 6379)) for node in found]
    if kind == "cluster":
        cluster = require("redis.cluster", feature="a queue in Redis", extra="redis")
        options.pop("db", None)
        return cluster.RedisCluster(startup_nodes=[cluster.ClusterNode(*node) for node in nodes], **options)
    sentinel = require("redis.sentinel", feature="a queue in Redis", extra="redis")
    sentinel_options = {key.removeprefix("sentinel_"): options.pop(key) for key in list(options) if key.startswith("sentinel_")}
    sentinel_options |= {key: value for key, value in options.items() if key.startswith(("ssl", "socket"))}
    return sentinel.Sentinel(nodes, sentinel_kwargs=sentinel_options).master_for(parts.path.strip("/"), retry=retry, **options)


def normal(url: str) -> str:
    """Return the URL with a ``redis`` scheme instead of ``valkey``. Raises :class:`ConfigError`, for example for an unknown scheme."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.replace("valkeys", "rediss").replace("valkey", "redis")
    if scheme not in SCHEMES or not separator or not rest:
        raise ConfigError(f"judge.queue.url: must be {', '.join(f'{s}://' for s in SCHEMES)} (or valkey) and a server")
    if scheme.endswith("+sentinel") and not urlsplit(f"{scheme}://{rest}").path.strip("/"):
        raise ConfigError("judge.queue.url: must end with the name of a master. Example: redis+sentinel://host:26379/NAME")
    return f"{scheme}://{rest}"


def unreachable(error: BaseException) -> bool:
    """Return True if an error might be temporary, such as a lost connection, a failover, or a lack of memory."""
    if isinstance(error, ConfigError):  # such as a missing redis-py
        return False
    from redis import exceptions as known

    passing = (known.ConnectionError, known.TimeoutError, known.ReadOnlyError, known.OutOfMemoryError, known.TryAgainError)
    if isinstance(error, (*passing, known.ClusterDownError, known.RedisClusterException, OSError)):
        return True
    return isinstance(error, known.ResponseError) and str(error).startswith(
        ("OOM", "LOADING", "MASTERDOWN", "NOREPLICAS", "READONLY")
    )


@contextmanager
def tolerated() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not unreachable(error):
            raise


def _number(text: str) -> Any:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text
