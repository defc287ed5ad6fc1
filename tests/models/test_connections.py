"""Connections to a judge: one for each question at once, used again, released."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

import otel_agenteval as oa
from otel_agenteval.judging.models.connections import Bounds, Connections, Posts
from tests.models.wire import Request, Response, Server, said
from tests.support.clock import FakeClock


def post(connections: Connections, server: Server) -> int:
    with connections.one() as connection:
        return sent(connection, server)


def sent(connection: Posts, server: Server, stop: float | None = None) -> int:
    stop = time.monotonic() + 10 if stop is None else stop
    return connection.post(f"{server.url}/chat/completions", {}, b"{}", stop, Bounds(1_000_000, 1_000)).status


def test_questions_one_after_the_other_share_a_connection(server: Server) -> None:
    server.reply({}, {}, {})
    connections = Connections(server.url)
    assert [post(connections, server) for _ in range(3)] == [200] * 3
    connections.close()
    assert len({request.connection for request in server.requests}) == 1


def test_questions_at_once_have_one_each_and_the_next_ones_use_them_again(server: Server) -> None:
    together = threading.Barrier(8)

    def answer(_: Request) -> Response:
        together.wait(10)
        return Response(said("openai", "{}"))

    server.answering = answer
    connections = Connections(server.url)
    for _ in range(2):
        threads = [threading.Thread(target=post, args=(connections, server)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    connections.close()
    assert len(server.requests) == 16
    assert len({request.connection for request in server.requests}) == 8


def test_what_is_released_is_not_used_again_even_if_it_was_in_use(server: Server) -> None:
    server.reply({}, {}, {})
    connections = Connections(server.url)
    with connections.one() as connection:
        sent(connection, server)
        connections.close()
    post(connections, server)
    post(connections, server)
    connections.close()
    ports = [request.connection for request in server.requests]
    assert ports[0] != ports[1] == ports[2]


def test_what_was_not_needed_for_a_while_is_closed(server: Server) -> None:
    server.reply(*[{}] * 6)
    clock = FakeClock()
    connections = Connections(server.url, clock)
    with connections.one() as one, connections.one() as other:
        sent(one, server, clock.monotonic() + 10)
        sent(other, server, clock.monotonic() + 10)
    for pause in (20, 20, 1):  # after the second the other one was not needed for 40 seconds
        clock.advance(pause)
        with connections.one() as again:
            assert again is one
    with connections.one() as again, connections.one() as new:
        assert again is one
        assert new is not other
    sent(other, server, clock.monotonic() + 10)  # what is used after all connects anew
    ports = [request.connection for request in server.requests]
    assert ports[2] not in ports[:2]
    other.close()
    connections.close()


def test_nothing_else_is_needed_where_no_proxy_is(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    server.reply({"score": 1})
    judge = oa.Judge(server.url, "m-1")
    assert judge.ask("relevance", "Rate it.", {"input": "x"}, '{"score": number}') == {"score": 1}
    judge.close()


def test_the_environment_s_proxy_is_asked_unless_the_server_is_excepted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server.reply({"score": 1}, {"score": 2})
    for address in ("http://models.example/v1", server.url):
        judge = oa.Judge(address, "m-1")
        judge.ask("relevance", "Rate it.", {"input": "x"}, '{"score": number}')
        judge.close()
    assert [request.path for request in server.requests] == ["http://models.example/v1/chat/completions", "/v1/chat/completions"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_its_parent_s_connections_alone(server: Server) -> None:
    server.reply({}, {}, {})
    connections = Connections(server.url)
    post(connections, server)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if post(connections, server) == 200 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert post(connections, server) == 200
    connections.close()
    ports = [request.connection for request in server.requests]
    assert ports[0] == ports[2] != ports[1]
