"""Media that may be opened: their locations and sizes."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from otel_agenteval.core import outbound
from otel_agenteval.core.errors import MetricError
from otel_agenteval.media.access import content_of, may_open
from otel_agenteval.media.fetching import is_public
from otel_agenteval.media.rules import Rules, opening
from tests.support.certificates import Authority
from tests.support.drips import dripping
from tests.support.media import image, scenery, sound, tone, uri

PNG = image(scenery(64, 48))


class Files:
    """A media server. ``answers`` maps paths to functions of the handler, or to bytes."""

    def __init__(self, certificate: tuple[Path, Path] | None = None, host: str = "127.0.0.1") -> None:
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.answers: dict[str, Any] = {"/a.png": PNG}
        files = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                files.asked.append(self.path)
                files.headers.append(dict(self.headers))
                answer = files.answers.get(self.path)
                if callable(answer):
                    answer(self)
                elif answer is None:
                    self.send_error(404)
                else:
                    self.send_response(200)
                    self.send_header("content-length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *args: Any) -> None:
                pass

        class Listener(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = Listener((host, 0), Handler)
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def rules(self, **more: Any) -> Rules:
        return Rules(**{"hosts": (f"127.0.0.1:{self.port}", f"localhost:{self.port}"), "private_addresses": True, **more})

    def url(self, path: str = "/a.png", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def files() -> Iterator[Files]:
    found = Files()
    yield found
    found.close()


def fault(reference: str, rules: Rules | None = None, kind: str = "image") -> str:
    with opening(rules or Rules()), pytest.raises(MetricError) as caught:
        content_of(reference, kind)
    assert reference not in str(caught.value), "an error quotes an address"
    return caught.value.error_type


def redirect(to: str) -> Any:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("location", to)
        handler.send_header("set-cookie", "session=1; Path=/")
        handler.end_headers()

    return answer


# --- what travels inside


def test_base64_in_the_alphabet_of_addresses_and_without_padding() -> None:
    other = base64.urlsafe_b64encode(PNG).decode()
    assert "-" in other or "_" in other
    assert content_of(f"data:image/png;base64,{other}", "image").data == PNG
    assert content_of(f"data:image/png;base64,{other.rstrip('=')}", "image").data == PNG


def test_what_bytes_are_is_seen_in_them_and_not_believed() -> None:
    assert content_of(uri(image(scenery(64, 48), "JPEG"), "image/png"), "image").mime == "image/jpeg"
    for other in (b"<html>", b"PK\x03\x04" + bytes(50), sound(tone(0.2)), b"MZ" + bytes(100), b"#EXTM3U\nfile:///etc/passwd\n"):
        assert fault(uri(other, "image/png")) == "invalid_media"


@pytest.mark.parametrize(
    "broken", ["data:", "data:image/png", "data:image/png;base64,", "data:image/png;base64,%%%%", "data:image/png;base64,ä"]
)
def test_data_that_cannot_be_read(broken: str) -> None:
    with pytest.raises(MetricError) as caught:
        content_of(broken, "image")
    assert caught.value.error_type == "invalid_media"


def test_data_of_too_many_bytes_is_not_even_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base64, "b64decode", lambda *a, **k: pytest.fail("it was decoded"))
    assert fault(uri(PNG, "image/png"), Rules(max_bytes=100)) == "media_too_large"


# --- addresses


@pytest.mark.parametrize(
    "reference", ["img-7", "http://127.0.0.1/a.png", "https://h.example/a.png", "file:///etc/passwd", "s3://b/k", "ftp://h/a"]
)
def test_nothing_is_opened_that_is_not_allowed(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: pytest.fail("a name was looked up"))
    assert not may_open(reference)
    assert fault(reference) == "media_not_allowed"


def test_an_allowed_host_is_asked_without_anything_of_ours(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with opening(files.rules()):
        assert content_of(files.url(), "image").data == PNG
        assert content_of(files.url(host="localhost"), "image").data == PNG
        files.answers["/r"] = redirect("/a.png")
        assert content_of(files.url("/r"), "image").data == PNG
    assert files.headers[1]["host"] == f"localhost:{files.port}"
    for headers in files.headers:  # even after a redirect that sets a cookie
        assert not {name.lower() for name in headers} & {"cookie", "authorization", "referer"}


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("cdn.example.com", True), ("a.media.example", True), ("a.b.media.example", True), ("media.example", False), ("evilmedia.example", False),
        ("cdn.example.com.evil.example", False), ("cdn.example.com:8080", False), ("cdn.example.com:443", True), ("user@cdn.example.com", False),
        ("cdn.example.com@evil.example", False), ("CDN.EXAMPLE.COM", True), ("cdn.example.com.", True), ("", False), ("[", False),
    ],
)  # fmt: skip
def test_hosts_are_compared_whole(host: str, allowed: bool) -> None:
    with opening(Rules(hosts=("cdn.example.com", "*.media.example"))):
        assert may_open(f"https://{host}/a.png") is allowed


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.9", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1", "240.0.0.1", "192.88.99.1",
     "::1", "::", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "ff02::1", "100::1", "2001:db8::1", "4000::1",
     "64:ff9b:1::1", "64:ff9b:1::5db8:d822",
     "::127.0.0.1", "::10.0.0.1", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "::ffff:0:169.254.169.254", "64:ff9b::a9fe:a9fe",
     "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::f7f7:f7f7", "2001:0:5db8:d822:0:0:80ff:fffe",
     "2a00:1450::5efe:10.0.0.1", "2a00:1450::200:5efe:127.0.0.1"],
)  # fmt: skip
def test_a_name_with_a_private_address_is_not_asked(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """This also applies if the name has a public address too, because attackers use such names."""
    found = [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", (address, 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: found)
    monkeypatch.setattr(outbound.Transport, "handle_request", lambda *a, **k: pytest.fail("it was asked"))
    assert fault("http://cdn.example.com/a.png", Rules(hosts=("cdn.example.com",))) == "media_not_allowed"


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34", "2002:5db8:d822::1"]
)
def test_public_addresses_are_asked(address: str) -> None:
    assert is_public(address)


def test_the_address_that_was_looked_at_is_the_one_that_is_asked(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name isn't resolved a second time, because the second result could differ."""
    times: list[str] = []
    real = socket.getaddrinfo

    def answer(host: Any, port: Any, *more: Any, **options: Any) -> Any:
        text = host.decode() if isinstance(host, bytes) else host
        if text == "cdn.example.com":
            times.append(text)
            assert len(times) == 1, "the name was looked up again"
            return [(2, 1, 6, "", ("127.0.0.1", port))]
        return real(host, port, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with opening(files.rules(hosts=(f"cdn.example.com:{files.port}",))):
        assert content_of(files.url(host="cdn.example.com"), "image").data == PNG
    assert files.headers[0]["host"] == f"cdn.example.com:{files.port}"


def test_certificates_must_be_of_the_host_and_of_somebody_who_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    files = Files(authority.issue("media"))
    try:
        rules = Rules(hosts=(f"localhost:{files.port}", f"other.localhost:{files.port}"), private_addresses=True)
        names = ("localhost", "other.localhost")
        real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **options: real("127.0.0.1", *more, **options))
        addresses = [f"https://{name}:{files.port}/a.png" for name in names]
        outbound._read_trusted.cache_clear()
        assert [fault(address, rules) for address in addresses] == ["media_unreachable"] * 2
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        outbound._read_trusted.cache_clear()
        with opening(rules):
            assert content_of(addresses[0], "image").data == PNG
        assert fault(addresses[1], rules) == "media_unreachable", "the certificate is of another name"
        assert files.headers[0]["host"] == f"localhost:{files.port}"
    finally:
        outbound._read_trusted.cache_clear()
        files.close()


def test_addresses_of_ipv6_are_hosts_too() -> None:
    try:
        server = Files(host="::1")
    except OSError:
        pytest.skip("this machine has no IPv6")
    address = f"[::1]:{server.port}"
    with opening(Rules(hosts=(address,), private_addresses=True)):
        assert content_of(f"http://{address}/a.png", "image").data == PNG
    assert fault(f"http://{address}/a.png", Rules(hosts=(address,))) == "media_not_allowed"
    server.close()


def test_redirects_are_looked_at_like_the_first_address(files: Files) -> None:
    files.answers["/r"] = redirect("/a.png")
    with opening(files.rules()):
        assert content_of(files.url("/r"), "image").data == PNG
    files.answers["/out"] = redirect("http://metadata.example/latest")
    files.answers["/file"] = redirect("file:///etc/passwd")
    files.answers["/round"] = redirect("/round")
    assert fault(files.url("/out"), files.rules()) == "media_not_allowed"
    assert fault(files.url("/file"), files.rules()) == "media_not_allowed"
    assert fault(files.url("/round"), files.rules()) == "media_unreachable"
    assert files.asked.count("/round") == 4


def test_what_servers_answer_instead(files: Files) -> None:
    def compressed(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-encoding", "gzip")
        handler.end_headers()
        handler.wfile.write(b"\x1f\x8b" + bytes(1000))

    def dead(handler: BaseHTTPRequestHandler) -> None:
        handler.connection.close()

    files.answers |= {
        "/zip": compressed,
        "/dead": dead,
        "/500": lambda handler: handler.send_error(500),
        "/text": b"<html>no</html>",
    }
    found = {path: fault(files.url(path), files.rules()) for path in ("/zip", "/dead", "/500", "/none", "/text")}
    assert found == {
        "/zip": "media_unreachable", "/dead": "media_unreachable", "/500": "media_unreachable", "/none": "media_not_found", "/text": "invalid_media",
    }  # fmt: skip
    assert fault("http://127.0.0.1:1/a.png", Rules(hosts=("127.0.0.1:1",), private_addresses=True)) == "media_unreachable"


def test_a_file_without_an_end_is_not_read_to_it(files: Files) -> None:
    sent = []

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while len(sent) < 10_000:
                handler.wfile.write(PNG[:100] * 100)
                sent.append(1)
        except OSError:
            pass

    files.answers["/endless"] = endless
    assert fault(files.url("/endless"), files.rules(max_bytes=200_000)) == "media_too_large"
    assert len(sent) < 2_000


# --- files


def test_files_below_an_allowed_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "media"
    (folder / "a b").mkdir(parents=True)
    (folder / "a b" / "c.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "in.png").symlink_to(folder / "a b" / "c.png")
    os.mkfifo(folder / "pipe.png")
    rules = Rules(folders=(str(folder),))
    with opening(rules):
        assert content_of(f"file://{folder}/a%20b/c.png", "image").data == PNG
        assert content_of(f"file://localhost{folder}/in.png", "image").data == PNG
    for path in ("out.png", "../secret.png", "%2e%2e/secret.png", "pipe.png", "none.png", "a%20b", "c%00.png"):
        assert fault(f"file://{folder}/{path}", rules) == "media_not_found"
    assert fault(f"file://elsewhere{folder}/in.png", rules) == "media_not_found"
    assert fault("file:///dev/zero", Rules(folders=("/dev",))) == "media_not_found"
    assert fault(f"file://{folder}/in.png", Rules(folders=(str(folder),), max_bytes=50)) == "media_too_large"


# --- hosts that take their time


@pytest.mark.parametrize("place", ["head", "body"])
def test_a_host_that_drips_is_given_up(place: str) -> None:
    with dripping(place, PNG, "image/png") as host:
        rules = Rules(hosts=(f"127.0.0.1:{host.port}",), private_addresses=True, fetch_timeout=0.3)
        assert fault(f"{host.url}/a.png", rules) == "media_timeout"


def test_a_name_that_is_not_resolved_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: answered.wait(60) and [])
    rules = Rules(hosts=("cdn.example.com",), private_addresses=True, fetch_timeout=0.1)
    assert fault("http://cdn.example.com/a.png", rules) == "media_timeout"
    answered.set()


# --- object stores


def test_object_stores_are_read_below_an_allowed_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem

    class Store(MemoryFileSystem):
        protocol = ("s3",)
        store: ClassVar[dict[str, Any]] = {}
        pseudo_dirs: ClassVar[list[str]] = [""]

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return "/" + str(path).removeprefix("s3://").strip("/")

    before = dict(fsspec.registry)
    fsspec.register_implementation("s3", Store, clobber=True)
    try:
        with fsspec.open("s3://calls/2026/a.png", "wb") as file:
            file.write(PNG)
        rules = Rules(buckets=("s3://calls/2026",))
        with opening(rules):
            assert content_of("s3://calls/2026/a.png", "image").data == PNG
        for other in ("s3://calls/20260/a.png", "s3://calls/2026/../2025/a.png", "s3://other/a.png", "gs://calls/2026/a.png"):
            assert fault(other, rules) == "media_not_allowed"
        assert fault("s3://calls/2026/none.png", rules) == "media_not_found"
        assert fault("s3://calls/2026/a.png", Rules(buckets=("s3://calls/2026",), max_bytes=50)) == "media_too_large"
        answered = threading.Event()
        monkeypatch.setattr(Store, "_open", lambda *a, **k: answered.wait(60))
        assert fault("s3://calls/2026/a.png", Rules(buckets=("s3://calls/2026",), fetch_timeout=0.1)) == "media_timeout"
        answered.set()
    finally:
        fsspec.register_implementation("s3", before.get("s3", "s3fs.S3FileSystem"), clobber=True)
