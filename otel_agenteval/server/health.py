"""``/healthz`` and ``/readyz``: liveness, readiness and delivery to outlets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from ..engine.engine import Engine
from .http_server import Head, Response


class Check(NamedTuple):
    name: str
    reason: str = ""
    """The problem, or an empty string. Contains no content of turns."""
    required: bool = False
    """True if the sidecar isn't ready while the problem persists."""


class Readiness(NamedTuple):
    unready: Callable[[], str]
    checks: Callable[[], Sequence[Check]]


def health(head: Head, readiness: Readiness) -> Response | None:
    if head.path not in ("/healthz", "/readyz"):
        return None
    if head.method not in ("GET", "HEAD"):
        return Response(405, b"GET only\n", headers=[("allow", "GET, HEAD")])
    why = readiness.unready() if head.path == "/readyz" else ""
    status = 503 if why else 200
    if head.path == "/healthz" or "verbose" not in parse_qs(head.query, keep_blank_values=True):
        return Response(status, f"{why or 'ok'}\n".encode())
    checks = readiness.checks()
    if "application/json" in head.headers.get("accept", ""):
        found = {"ready": not why, "reason": why, "checks": [{**check._asdict(), "ok": not check.reason} for check in checks]}
        return Response(status, json.dumps(found, ensure_ascii=False).encode(), "application/json")
    lines = [f"[{'-' if check.reason else '+'}] {_in_words(check)}" for check in checks]
    return Response(status, "\n".join([*lines, f"not ready: {why}" if why else "ready", ""]).encode())


def _in_words(check: Check) -> str:
    optional = "" if check.required else " (not required)"
    return f"{check.name}: {check.reason}{optional}" if check.reason else f"{check.name}: ok"


def checks_in(document: Any, prefix: str) -> list[Check]:
    """Return the checks in another process's JSON response, with a prefix before their names."""
    return [Check(f"{prefix}{one['name']}", str(one["reason"]), bool(one["required"])) for one in document["checks"]]


def delivery(engine: Engine, required: Iterable[str]) -> list[Check]:
    """Return a check for each outlet, ``required`` or not, the judge queue, and each metric, judge or embedder that hangs."""
    found = []
    for outlet in engine.outlets:
        reason = engine.outlets.trouble_of(outlet)
        if reason and outlet.records is not None:
            account = outlet.records
            reason = f"{reason}; {account.waiting} records waiting, {sum(account.failed.values())} dropped"
        found.append(Check(f"outlet {outlet.name}", reason, outlet.name in set(required)))
    found += [Check(f"metric {name}", reason) for name, reason in engine.hung_metrics().items()]
    found += [Check(name, reason) for name, reason in engine.silent_models().items()]
    if engine.judges:
        held = engine.unsent_jobs
        found.append(Check("judge queue", f"can't be used; {held} jobs wait in memory" if held else ""))
    return found
