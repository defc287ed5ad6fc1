"""Tests of the Redis queue that don't apply to other queues, with real servers."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.config.loader import effective_yaml, load_config
from otel_agenteval.core.errors import ConfigError, MissingExtra, Unusable
from otel_agenteval.core.threads import own_work
from otel_agenteval.engine.status import InternalErrors
from otel_agenteval.judging.queues import Job, queue_from, redis_server
from otel_agenteval.judging.queues.redis import RedisQueue
from otel_agenteval.judging.queues.redis_server import connect
from tests.support.certificates import Authority
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.rig import Rig
from tests.support.servers import free_port, until

ROOM = 1_000_000
METRIC = "llm_relevance"
GOOD = {"score": 90, "reason": "It answers."}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """Return a separate server for the test."""
    found = RedisServer(tmp_path / "redis")
    yield found
    found.stop()


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[Proxy]:
    """Return a proxy to the server, which the test can cut."""
    found = Proxy(server.port)
    yield found
    found.close()


def jobs(*ids: str, size: int = 100) -> list[Job]:
    return [Job(one, b"x" * size) for one in ids]


def ids(found: list[Job]) -> list[str]:
    return [job.id for job in found]


def test_shards_share_the_jobs_and_the_bound(server: RedisServer) -> None:
    queue = RedisQueue(server.url, 4 * 10_000, shards=4)
    left = queue.put_many(jobs(*(f"job-{i}" for i in range(200))))
    assert queue.bytes == (200 - len(left)) * 356
    assert 4 * 9_600 < queue.bytes <= 4 * 10_000
    client = server.client()
    assert [client.hget(f"{{agenteval:{i}}}:totals", "jobs") for i in range(4)] == [b"28"] * 4
    client.close()
    found = []
    while some := queue.claim(7, 60.0):
        found += ids(some)
        for one in some:
            queue.ack(one.id)
    assert sorted([*found, *ids(left)]) == sorted(f"job-{i}" for i in range(200))
    assert queue.depth == 0
    queue.close()


def test_what_was_put_survives_a_server_that_is_killed(server: RedisServer) -> None:
    queue = RedisQueue(server.url, ROOM)
    names_of = [f"job-{i}" for i in range(500)]
    queue.put_many(jobs(*names_of))
    claimed = ids(queue.claim(10, 60.0))
    server.kill()
    server.start()
    until(lambda: works(queue), "the server answers")
    assert queue.depth == 500
    rest = ids(queue.claim(1_000, 60.0))
    assert sorted(claimed + rest) == sorted(names_of)
    queue.close()


def test_an_unreachable_server_is_logged_with_its_address(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    queue = RedisQueue(f"redis://judge:s3cret@127.0.0.1:{port}/0", ROOM)
    for _ in range(2):  # the second call doesn't connect
        with pytest.raises(Unusable) as caught:
            queue.claim(1, 60.0)
        InternalErrors().report("judge_queue", caught.value)
    queue.close()
    assert caplog.text.count(f"judge_queue failed: Redis at 127.0.0.1:{port}: Error") == 2
    assert caplog.text.count("refused; check judge.queue.url") == 2
    assert "s3cret" not in caplog.text


def test_a_missing_extra_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    queue = {"backend": "redis", "url": "redis://127.0.0.1:1"}
    with pytest.raises(MissingExtra, match=r"otel-agenteval\[redis\]"):
        Rig({"metrics": [METRIC], "judge": {"base_url": "http://127.0.0.1:1/v1", "model": "m", "queue": queue}})


def works(queue: RedisQueue) -> bool:
    try:
        return queue.depth >= 0
    except Unusable:
        return False


def test_while_the_network_is_cut_jobs_wait_here_within_a_bound_and_retries_are_paced(server: RedisServer, proxy: Proxy) -> None:
    queue = RedisQueue(f"redis://127.0.0.1:{proxy.port}", ROOM, held_bytes=10_000)
    queue.put_many(jobs("before"))
    [taken] = queue.claim(1, 600.0)
    proxy.cut()
    before = proxy.connections
    left = [job for i in range(500) for job in queue.put_many(jobs(f"job-{i}"))]
    queue.ack(taken.id)
    assert queue.unsent == 28
    assert len(left) == 472
    for _ in range(2_000):
        with pytest.raises(Unusable):
            queue.claim(1, 60.0)
    assert proxy.connections - before <= 12  # with a pause after each try, however often it was asked
    proxy.heal()
    until(queue.flush, "all is sent")
    assert (queue.unsent, queue.depth) == (0, 28)
    assert ids(queue.claim(100, 60.0)) == [f"job-{i}" for i in range(28)]
    queue.close()


def test_a_server_that_says_nothing_is_given_up_after_a_moment(server: RedisServer, proxy: Proxy) -> None:
    queue = RedisQueue(f"redis://127.0.0.1:{proxy.port}?socket_timeout=1", ROOM)
    queue.put_many(jobs("a"))
    proxy.silence()
    assert queue.put_many(jobs("b")) == []  # it returns
    assert queue.put_many(jobs("c")) == []
    assert queue.unsent == 2
    proxy.heal()
    until(queue.flush, "all is sent")
    assert sorted(ids(queue.claim(10, 60.0))) == ["a", "b", "c"]
    queue.close()


def test_scoring_waits_a_moment_for_another_thread_that_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "_OPENING_SECONDS", 0.0)
    server = redis_server.Server("redis://127.0.0.1:1")
    with server._lock, own_work(), pytest.raises(Unusable, match="doesn't answer"):
        server.call(lambda client: client.ping())


def test_a_server_without_memory_keeps_what_it_has_and_the_rest_waits_here(server: RedisServer) -> None:
    client = server.client()
    queue = RedisQueue(server.url, ROOM)
    queue.put_many(jobs("a"))
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1")
    assert queue.put_many(jobs("b")) == []
    assert queue.unsent == 1
    until(lambda: works(queue), "the server answers")
    other = RedisQueue(server.url, ROOM)
    assert ids(other.claim(1, 60.0)) == ["a"]  # what is there can be done, which makes room
    other.ack("a")
    assert other.depth == 0
    other.close()
    client.config_set("maxmemory", "0")
    until(queue.flush, "all is sent")
    assert queue.depth == 1
    queue.close()
    client.close()


def test_what_never_reached_the_server_is_returned_at_the_end() -> None:
    queue = RedisQueue(f"redis://127.0.0.1:{free_port()}", ROOM)
    assert queue.put_many(jobs("a", "b")) == []
    assert sorted(ids(queue.close())) == ["a", "b"]
    assert queue.depth == 0


def test_a_server_that_may_throw_jobs_away_is_warned_of(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    client = server.client()
    client.config_set("maxmemory", "100mb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    queue = RedisQueue(server.url, ROOM)
    queue.put_many(jobs("a"))
    assert "noeviction" in caplog.text
    queue.close()
    client.close()


def test_time_is_the_server_s_so_a_wrong_clock_does_no_harm(server: RedisServer, clock: FakeClock) -> None:
    right = RedisQueue(server.url, ROOM)
    right.put_many(jobs("a"))
    [job] = right.claim(1, 600.0)
    right.retry_at(job.id, time.time() - 1_000)
    assert ids(right.claim(1, 600.0)) == ["a"]
    now = time.time()
    right.retry_at("a", now + 500)
    [(_, due)] = server.client().zrange("{agenteval:0}:wait", 0, -1, withscores=True)
    assert now + 499 < due < time.time() + 501
    right.close()


# --- several processes


def test_a_job_is_acknowledged_when_its_score_was_kept(server: RedisServer, models: ScriptedModels, tmp_path: Path) -> None:
    """If the process is killed while the store's file is locked, another process must find the job again."""
    models.play(GOOD, GOOD)
    store = tmp_path / "scores.db"
    given: dict[str, Any] = {
        "judge": {"base_url": models.url, "model": "scripted", "queue": {"backend": "redis", "url": server.url}},
        "metrics": [METRIC], "inline": {"metrics": []}, "outlets": {"store": str(store)},
    }  # fmt: skip
    kept_when_acknowledged: list[int] = []
    with Rig(given) as rig:
        rig.run("one")
        assert rig.engine.drain(60, judges=True)
        judging = rig.engine.judging
        assert judging is not None
        acknowledge = judging.queue.ack_many

        def ack_many(done: Sequence[Job | str]) -> list[str]:
            with closing(sqlite3.connect(store)) as reader:
                kept_when_acknowledged.append(reader.execute("SELECT count(*) FROM scores").fetchone()[0])
            return acknowledge(done)

        judging.queue.ack_many = ack_many  # type: ignore[method-assign]
        rig.run("two")
        with closing(sqlite3.connect(store, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            until(
                lambda: rig.engine.outlets.errors["store", "OperationalError"] > 1, "the store fails"
            )  # its turn, and its score
            other.execute("ROLLBACK")
        assert rig.engine.drain(60, judges=True)
    assert kept_when_acknowledged == [2]


# --- ways to a server


def test_a_server_behind_tls_and_an_account(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("redis")
    port = free_port()
    folder = tmp_path / "redis"
    folder.mkdir()
    rules = folder / "users.acl"
    rules.write_text("user default off\nuser judge on >s3cret ~{agenteval:* +@all\n")
    options = ["--port", "0", "--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    server = RedisServer(folder, [*options, "--tls-auth-clients", "no", "--aclfile", str(rules)], port, plain=False)
    try:
        url = f"rediss://judge:s3cret@127.0.0.1:{port}/0?ssl_ca_certs={authority.file}"
        queue = RedisQueue(url, ROOM)
        queue.put_many(jobs("a"))
        assert ids(queue.claim(1, 60.0)) == ["a"]
        queue.close()
        wrong = RedisQueue(url.replace("s3cret", "guess"), ROOM)
        with pytest.raises(Unusable, match="invalid username-password"):
            wrong.claim(1, 60.0)
        wrong.close()
    finally:
        server.stop()


def test_a_cluster_keeps_each_shard_on_one_node(tmp_path: Path) -> None:
    nodes = [
        RedisServer(tmp_path / f"node-{i}", ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]) for i in range(2)
    ]
    try:
        first, second = (node.client() for node in nodes)
        first.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, second.config_get("cluster-port")["cluster-port"])
        first.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        second.execute_command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        until(
            lambda: all(b"cluster_state:ok" in one.execute_command("CLUSTER", "INFO") for one in (first, second)),
            "the cluster is up",
        )
        until(lambda: all(len(one.execute_command("CLUSTER", "SLOTS")) == 2 for one in (first, second)), "both know both")
        queue = RedisQueue(f"redis+cluster://127.0.0.1:{nodes[0].port},127.0.0.1:{nodes[1].port}", ROOM, shards=8)
        wanted = [f"job-{i}" for i in range(100)]
        queue.put_many(jobs(*wanted))
        assert min(first.dbsize(), second.dbsize()) > 0
        assert sorted(ids(queue.claim(100, 60.0))) == sorted(wanted)
        queue.dead("job-1", "why")
        assert (queue.depth, queue.dead_letters()) == (99, [("job-1", "why")])
        queue.close()
        first.close()
        second.close()
    finally:
        for node in nodes:
            node.stop()


@pytest.mark.slow
def test_sentinels_name_the_master_also_after_a_failover(tmp_path: Path) -> None:
    master = RedisServer(tmp_path / "master")
    replica = RedisServer(tmp_path / "replica", ["--replicaof", "127.0.0.1", str(master.port)])
    port = free_port()
    folder = tmp_path / "sentinel"
    folder.mkdir()
    (folder / "sentinel.conf").write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor turns 127.0.0.1 {master.port} 1\n"
        "sentinel down-after-milliseconds turns 500\nsentinel failover-timeout turns 2000\n"
    )
    sentinel = RedisServer(folder, [str(folder / "sentinel.conf"), "--sentinel"], port, plain=False)
    running = [replica, sentinel]
    try:
        with connect(f"redis+sentinel://127.0.0.1:{port}/turns") as client:
            assert client.ping()
        queue = RedisQueue(f"redis+sentinel://127.0.0.1:{port}/turns", ROOM)
        queue.put_many(jobs("a"))
        until(lambda: replica.client().exists("{agenteval:0}:jobs") == 1, "the replica has the job")
        until(
            lambda: b"slave" in str(sentinel.client().execute_command("SENTINEL", "REPLICAS", "turns")).encode(),
            "the sentinel knows it",
        )
        master.kill()
        until(lambda: replica.client().info("replication")["role"] == "master", "the replica takes over")
        queue.put_many(jobs("b"))
        until(lambda: queue.flush() and queue.unsent == 0, "all is sent")
        assert ids(queue.claim(10, 60.0)) == ["a", "b"]
        queue.close()
    finally:
        for one in running:
            one.stop()


# --- configuration


@pytest.mark.parametrize(
    "queue",
    [{"backend": "redis"}, {"url": "redis://127.0.0.1"}, {"backend": "redis", "url": "http://127.0.0.1"}, {"work": False}],
)
def test_a_wrong_address_is_refused(queue: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"judge\.queue"):
        load_config({"judge": {"queue": queue}}, {})


def test_sentinels_need_the_name_of_a_master() -> None:
    given = load_config({"judge": {"queue": {"backend": "redis", "url": "redis+sentinel://judge:s3cret@127.0.0.1:26379"}}}, {})
    with pytest.raises(ConfigError, match=r"redis\+sentinel") as raised:
        queue_from(given.judge.queue, FakeClock(), lambda where, error: None)
    assert "s3cret" not in str(raised.value)


def test_the_password_of_a_server_is_not_shown() -> None:
    given = {"judge": {"queue": {"backend": "redis", "url": "rediss://judge:s3cret@queue.example:6380/0"}}}
    shown = effective_yaml(load_config(given, {}))
    assert "rediss://judge:****@queue.example:6380/0" in shown
    assert "s3cret" not in shown
