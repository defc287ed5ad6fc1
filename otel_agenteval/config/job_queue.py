"""Section ``judge.queue``: where judged metrics wait."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from .section import Section
from .types import Before, Count, Duration, FilePath, Kind, Size, Switch, Text

_QUEUE_SCHEMES = re.compile(r"(?:(?:redis|valkey)s?(?:\+(?:sentinel|cluster))?|unix)://.+", re.DOTALL)


def _queue_url(value: Any) -> str:
    if isinstance(value, str) and _QUEUE_SCHEMES.fullmatch(value):
        return value
    raise ValueError("it must be a URL as in redis://host:6379/0 (or rediss, unix, redis+sentinel, redis+cluster)")


class JobQueueOptions(Section):
    """Where judged metrics wait for their turn."""

    backend: Literal["memory", "sqlite", "redis"] = "memory"
    """``memory``, which is lost with the process (and counted); ``sqlite``, a file that outlives it; or ``redis``, a server that any
    number of processes share. The last two hold turns."""
    path: FilePath | None = None
    """File for the backend ``sqlite``; its folder must exist. Processes of one machine may share it."""
    url: Annotated[str, Before(_queue_url), Kind("address")] | None = None
    """Server for the backend ``redis``: ``redis://``, ``rediss://`` (TLS), ``unix://``, ``redis+sentinel://…/master``, ``redis+cluster://``; ``valkey`` may be written for ``redis``."""
    name: Text = "agenteval"
    """Prefix, in braces, of every key of the backend ``redis``; processes with the same prefix share their jobs."""
    shards: Count = 1
    """Parts of the backend ``redis``, spread over the nodes of a cluster; the same for all processes."""
    work: Switch = True
    """Whether this process works on the jobs too; false leaves them to other processes (``otel-agenteval worker --judge``)."""
    max_bytes: Size = 64 * 2**20
    """Bytes that may wait; what does not fit is dropped and counted, the least important first."""
    lease: Duration = 600.0
    """Seconds after which another process takes over a job whose process has died. The lease is extended while the job runs."""
    max_age: Duration = 86_400.0
    """Seconds after which a job that is still waiting is dropped and counted, because its score comes too late."""

    def _check(self) -> None:
        if (self.backend == "sqlite") != (self.path is not None) or (self.backend == "redis") != (self.url is not None):
            raise ValueError(
                "it must be {backend: sqlite, path: FILE} or {backend: redis, url: redis://…}; memory has neither path nor url"
            )
        if not self.work and self.backend == "memory":
            raise ValueError("work: false needs a backend that other processes share: sqlite or redis")
