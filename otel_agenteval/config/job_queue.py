"""Section ``judge.queue``: the queue of judge jobs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from .section import Section
from .types import Before, Count, Duration, FilePath, Kind, Size, Switch, Text

_QUEUE_SCHEMES = re.compile(r"(?:(?:redis|valkey)s?(?:\+(?:sentinel|cluster))?|unix)://.+", re.DOTALL)


def _queue_url(value: Any) -> str:
    if isinstance(value, str) and _QUEUE_SCHEMES.fullmatch(value):
        return value
    raise ValueError("must be a URL with redis, rediss, unix, redis+sentinel or redis+cluster. Example: redis://host:6379/0")


class JobQueueOptions(Section):
    """The queue of judge jobs: evaluations of judged metrics that wait for their judge calls."""

    backend: Literal["memory", "sqlite", "redis"] = "memory"
    """``memory`` is lost when the process ends (and counted), ``sqlite`` is a file that survives, and ``redis`` is a server that any
    number of processes share. ``sqlite`` and ``redis`` hold the turns' content."""
    path: FilePath | None = None
    """File of the backend ``sqlite``, in an existing folder. Processes of one machine can share it."""
    url: Annotated[str, Before(_queue_url), Kind("address", secret=True)] | None = None
    """Server of the backend ``redis``: ``redis://``, ``rediss://`` (TLS), ``unix://``, ``redis+sentinel://…/master`` or ``redis+cluster://``. ``valkey`` is allowed instead of ``redis``."""
    name: Text = "agenteval"
    """Prefix of all keys of the backend ``redis``, written in braces. Processes with the same prefix share their jobs."""
    shards: Count = 1
    """Number of parts of the backend ``redis``, spread over the nodes of a cluster. All processes need the same number."""
    work: Switch = True
    """Run jobs in this process too. ``false`` leaves them to other processes (``otel-agenteval worker --judge``)."""
    max_bytes: Size = 64 * 2**20
    """Maximum bytes of waiting jobs. Beyond it, the least important jobs are dropped and counted."""
    lease: Duration = 600.0
    """Seconds after which another process takes over the job of a process that died. Running jobs extend their lease."""
    max_age: Duration = 86_400.0
    """Seconds after which a waiting job is dropped and counted."""

    def _check(self) -> None:
        if (self.backend == "sqlite") != (self.path is not None) or (self.backend == "redis") != (self.url is not None):
            raise ValueError("must be {backend: memory}, {backend: sqlite, path: FILE} or {backend: redis, url: redis://…}")
        if not self.work and self.backend == "memory":
            raise ValueError("work: false requires backend: sqlite or redis, which other processes can share")
