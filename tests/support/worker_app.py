"""A web application with an agent, for a server's workers. ``/ask`` makes a turn (``/ask?fail=1`` a failed turn), ``/metrics`` is its metrics.

Both return the process id. The application exists as WSGI (``wsgi``), ASGI (``asgi``, FastAPI) and Celery task (``celery``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa

if not isinstance(trace.get_tracer_provider(), TracerProvider):
    trace.set_tracer_provider(TracerProvider())
handle = oa.instrument()
tracer = trace.get_tracer("acme.desk")


def answer(*, fails: bool = False) -> int:
    """Make one turn, and return the process id."""
    with tracer.start_as_current_span(
        "invoke_agent desk", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    ):
        call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "rooms", "gen_ai.tool.call.id": "1"}
        with tracer.start_as_current_span("execute_tool rooms", attributes=call) as tool:
            if fails:
                tool.set_status(trace.Status(trace.StatusCode.ERROR, "no such room"))
                tool.set_attribute("error.type", "LookupError")
    return os.getpid()


_metrics = oa.metrics_app()


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The application for gunicorn."""
    process = ("X-Process", str(os.getpid()))
    if environ["PATH_INFO"] == "/metrics":

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, process], *more)

        found: Iterable[bytes] = _metrics(environ, start)
        return found
    answer(fails="fail" in environ["QUERY_STRING"])
    start_response("200 OK", [("Content-Type", "text/plain"), process])
    return [b"done"]


def make_asgi() -> Any:
    """Return the application for uvicorn."""
    from fastapi import FastAPI, Request, Response

    application = FastAPI()

    @application.middleware("http")
    async def say_process(request: Request, go_on: Any) -> Response:
        response: Response = await go_on(request)
        response.headers["X-Process"] = str(os.getpid())
        return response

    @application.get("/ask")
    def ask(fail: int = 0) -> str:
        answer(fails=bool(fail))
        return "done"

    application.mount("/metrics", _metrics)
    return application


def make_celery() -> Any:
    """Return the Celery application. Its broker uses files in ``WORKER_APP_FOLDER``."""
    from celery import Celery

    folder = Path(os.environ["WORKER_APP_FOLDER"])
    (folder / "queue").mkdir(exist_ok=True)
    (folder / "control").mkdir(exist_ok=True)
    application = Celery("worker_app", broker="filesystem://")
    application.conf.update(
        broker_transport_options={
            "data_folder_in": str(folder / "queue"), "data_folder_out": str(folder / "queue"), "control_folder": str(folder / "control"),
        },
        worker_prefetch_multiplier=1,
    )  # fmt: skip

    @application.task(name="ask")
    def ask(fail: bool = False) -> None:
        with (folder / "done.jsonl").open("a") as done:
            done.write(json.dumps({"process": answer(fails=fail)}) + "\n")

    return application


def __getattr__(name: str) -> Any:
    """Create ``asgi`` and ``celery`` on first use, because each needs its framework."""
    made = {"asgi": make_asgi, "celery": make_celery}.get(name)
    if made is None:
        raise AttributeError(name)
    value = globals()[name] = made()
    return value
