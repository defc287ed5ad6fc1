"""The journal belongs to the service. Any number of processes replays all of it, however earlier processes ended."""

from __future__ import annotations

import fcntl
import os
import socket
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.server.journal_folder import ALONE, JournalFolder
from otel_agenteval.server.routing import shares_of
from otel_agenteval.server.wal import Journal, Record
from otel_agenteval.spans.split import split_spans
from tests.server.test_watchdog import post
from tests.support.collector import Collector
from tests.support.receiver import GrpcReceiver
from tests.support.servers import until
from tests.support.service import AGENT, Sidecar, left_in, request, turn_of
from tests.support.sidecar import Sidecar as Process

ENDPOINTS = [f"127.0.0.1:{14317 + 10 * number}" for number in range(4)]


def turns(numbers: Sequence[int]) -> bytes:
    """Return a request with the roots of several traces."""
    return request(*({"trace": number, "id": 1, "name": "invoke_agent bot", "attributes": AGENT} for number in numbers))


@pytest.mark.parametrize("count", [1, 3])
def test_shares_are_apart_and_together_everything(count: int) -> None:
    shares = shares_of(ENDPOINTS[:count])
    assert {sum(trace in share for share in shares) for trace in range(1, 500)} == {1}
    assert sum(share.bits for share in shares) == shares_of(ALONE)[0].bits


def test_share_is_that_of_the_collectors_endpoint(tmp_path: Path) -> None:
    receivers = [GrpcReceiver() for _ in range(3)]
    endpoints = [receiver.address for receiver in receivers]
    traces = range(1, 301)
    with Collector("load_balancing", tmp_path, AGENTEVAL_ENDPOINTS=f"[{', '.join(endpoints)}]") as collector:
        post(collector, turns(traces))
        until(lambda: sum(len(receiver.spans()) for receiver in receivers) == len(traces), "all spans are routed")
    shares = shares_of(endpoints)
    for receiver, share in zip(receivers, shares, strict=True):
        routed = {int.from_bytes(span.trace_id, "big") for span in receiver.spans()}
        assert routed == {trace for trace in traces if trace in share} != set()
        receiver.close()


# --- sharing out


class Fleet:
    """The journal code of all processes of a service."""

    def __init__(self, folder: Path, endpoints: Sequence[str]) -> None:
        whole = JournalFolder(str(folder))
        whole.share_out(endpoints)
        self.journals = [Journal(whole.part(number), 1 << 30) for number in range(len(endpoints))]
        self.shares = shares_of(endpoints)

    def replay(self) -> Counter[int]:
        """Replay the journal. Return how often each trace was taken. Each process takes only traces that are routed to it."""
        taken = Counter[int]()
        for journal, share in zip(self.journals, self.shares, strict=True):

            def take(record: Record, share: object = share) -> set[int]:
                parts, _ = split_spans(record.body)
                found = {int.from_bytes(trace, "big") for trace in parts}
                found = {trace for trace in found if trace in record.share}
                assert all(trace in share for trace in found)  # type: ignore[operator]
                taken.update(found)
                return found

            journal.replay(take)
        return taken

    def end(self, *, delivered: Sequence[int] = ()) -> None:
        """End all processes. Those with these numbers have delivered everything."""
        for number, journal in enumerate(self.journals):
            journal.close(number in delivered)


TRACES = range(1, 41)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """Create the journal of a service with one process. Each request has four traces."""
    left_in(tmp_path, *(("traces", turns(TRACES[at : at + 4]), False, None) for at in range(0, 40, 4)))
    return tmp_path


@pytest.mark.parametrize("counts", [(2, 3), (2, 2, 1, 3)])
def test_journal_is_replayed_once_by_each_number(left: Path, counts: Sequence[int]) -> None:
    for count in counts:
        fleet = Fleet(left, ENDPOINTS[:count])
        assert fleet.replay() == Counter(TRACES)
        fleet.end()
    fleet = Fleet(left, ALONE)
    assert fleet.replay() == Counter(TRACES)
    fleet.end(delivered=[0])
    assert not list(left.rglob("*.requests"))


def test_delivered_share_is_not_replayed_by_other_processes(left: Path) -> None:
    fleet = Fleet(left, ENDPOINTS[:2])
    fleet.replay()
    fleet.end(delivered=[0])
    other = shares_of(ENDPOINTS[:2])[1]
    for endpoints in (ENDPOINTS[1:3], ALONE):
        fleet = Fleet(left, endpoints)
        assert fleet.replay() == Counter(trace for trace in TRACES if trace in other)
        fleet.end()


def test_record_keeps_its_id_in_whatever_process(left: Path) -> None:
    def ids(endpoints: Sequence[str]) -> set[str]:
        found = set[str]()
        fleet = Fleet(left, endpoints)
        for journal in fleet.journals:
            journal.replay(lambda record: (found.add(record.id), {1})[1])
        fleet.end()
        return found

    assert ids(ALONE) == ids(ENDPOINTS[:3]) == ids(ENDPOINTS[:2])
    assert len(ids(ALONE)) == 10


def test_sharing_out_that_was_killed_is_done_again(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for where, step in ((os, "link"), (Path, "rename")):
        with monkeypatch.context() as patch:
            patch.setattr(where, step, killed)
            with pytest.raises(KeyboardInterrupt):
                Fleet(left, ENDPOINTS[:2])
    assert Fleet(left, ENDPOINTS[:2]).replay() == Counter(TRACES)
    assert not list(left.glob("*.part"))


def test_file_system_without_links_gets_copies(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    for count in (2, 3):
        fleet = Fleet(left, ENDPOINTS[:count])
        assert fleet.replay() == Counter(TRACES)
        fleet.end()


@pytest.mark.parametrize(("version", "place"), [(2, "1/0"), (4, "1/0"), (4, "elsewhere/1.requests")])
def test_journal_of_another_version_is_refused(left: Path, version: int, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    (segment,) = left.rglob("*.requests")
    data = bytearray(segment.read_bytes())
    data[8] = version
    path = left / place if place.endswith(".requests") else segment
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    listening = [part for name in ("grpc", "http", "metrics", "web") for part in (f"--{name}", "127.0.0.1:0")]
    assert main(["serve", "--journal", str(left), *listening]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"serve.journal: {path}: " in said
    assert ("upgrade otel-agenteval" in said) == (version > 3)
    assert path.read_bytes() == data


# --- real processes


def status(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_health_is_answered_while_another_process_has_the_journal(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def is_up() -> bool:
            return status(f"http://{address}/healthz")[0] == 200

        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        options = ["--metrics", address, "--journal", str(tmp_path)]
        with Process(tmp_path / "files", {}, options=options, ready=is_up) as sidecar:
            assert status(f"http://{address}/readyz") == (503, "starting: waiting for the journal\n")
            fcntl.flock(lock, fcntl.LOCK_UN)
            until(lambda: status(f"http://{address}/readyz")[0] == 200, "it is ready")
            assert sidecar.stop() == 0


def test_journal_is_free_after_a_stop(tmp_path: Path) -> None:
    for number in (1, 2):
        with Sidecar({"serve": {"journal": str(tmp_path)}}) as sidecar:
            assert sidecar.post("/v1/traces", turn_of(number))[0] == 200
