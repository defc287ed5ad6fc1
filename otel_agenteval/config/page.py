"""Section ``serve.page``: what the web page shows, and to whom."""

from __future__ import annotations

from typing import Annotated, Any

from .section import Section
from .types import Before, FilePath, Kind, Switch, Text


def _trace_url(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")) or "{trace_id}" not in value:
        raise ValueError("it must be an address with {trace_id} in it, as in https://grafana.example/explore?trace={trace_id}")
    if "@" in value.split("/")[2] or not value.isprintable() or " " in value:
        raise ValueError("it must be an address without credentials")
    return value


class PageOptions(Section):
    """The web page at ``serve.web``, of a sidecar that keeps its scores (``outlets.store``)."""

    content: Switch = False
    """Whether what was said in a turn is shown, as far as ``outlets.store.content`` keeps it."""
    trace_url: Annotated[str, Before(_trace_url), Kind("address with {trace_id}")] | None = None
    """Address of a trace in your tracing backend, with ``{trace_id}`` in it; each turn links to it."""
    labels: FilePath | None = None
    """The file that labels given on the page are written to, for ``calibrate``; null means that nobody may label."""
    read_token: Text | None = None
    """A token with which the page and its API may be read, without giving labels. It needs ``serve.token``."""
