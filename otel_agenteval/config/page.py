"""Section ``serve.page``: content and access of the web page."""

from __future__ import annotations

from typing import Annotated, Any

from .section import Section
from .types import Before, FilePath, Kind, Secret, Switch


def _trace_url(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")) or "{trace_id}" not in value:
        raise ValueError("must be a URL with {trace_id}. Example: https://grafana.example/explore?trace={trace_id}")
    if "@" in value.split("/")[2] or not value.isprintable() or " " in value:
        raise ValueError("must be a URL without credentials")
    return value


class PageOptions(Section):
    """The web page at ``serve.web``. It requires a score store (``outlets.store``)."""

    content: Switch = False
    """Show the messages of a turn, if ``outlets.store.content`` stores them."""
    trace_url: Annotated[str, Before(_trace_url), Kind("address with {trace_id}")] | None = None
    """Link to a trace in your tracing backend, with ``{trace_id}`` in it."""
    labels: FilePath | None = None
    """File for labels given on the page, for ``calibrate``. Null disables labeling."""
    read_token: Secret | None = None
    """Token for read-only access to the page and its API. Requires ``serve.token``."""
