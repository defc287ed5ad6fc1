"""Connections to a judge: one for each question at once, used again, released."""

from __future__ import annotations

import os
import threading

import pytest

from otel_agenteval.judge.connections import Connections
from tests.judge.wire import Request, Response, Server, said
from tests.support.clock import FakeClock


def post(connections: Connections, server: Server) -> int:
    with connections.client() as client:
        return client.post(f"{server.url}/chat/completions", json={}).status_code


def test_questions_one_after_the_other_share_a_connection(server: Server) -> None:
    server.reply({}, {}, {})
    connections = Connections()
    assert [post(connections, server) for _ in range(3)] == [200] * 3
    connections.close()
    assert len({request.connection for request in server.requests}) == 1


def test_questions_at_once_have_one_each_and_the_next_ones_use_them_again(server: Server) -> None:
    together = threading.Barrier(8)

    def answer(_: Request) -> Response:
        together.wait(10)
        return Response(said("openai", "{}"))

    server.answering = answer
    connections = Connections()
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
    connections = Connections()
    with connections.client() as client:
        client.post(f"{server.url}/chat/completions", json={})
        connections.close()
    assert client.is_closed
    post(connections, server)
    post(connections, server)
    connections.close()
    ports = [request.connection for request in server.requests]
    assert ports[0] != ports[1] == ports[2]


def test_what_nobody_needed_for_a_while_is_closed() -> None:
    clock = FakeClock()
    connections = Connections(clock)
    with connections.client() as one, connections.client() as other:
        pass
    clock.advance(20)
    with connections.client() as again:
        assert again is one
    assert not other.is_closed
    clock.advance(20)
    with connections.client() as again:
        assert again is one
    assert other.is_closed
    assert not one.is_closed
    connections.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_its_parent_s_connections_alone(server: Server) -> None:
    server.reply({}, {}, {})
    connections = Connections()
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
