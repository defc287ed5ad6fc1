"""The servers that tests run against: where they come from, and what happens without them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import get_servers
from tests.support import servers
from tests.support.process import run
from tests.support.servers import Process, answers, for_every_user, free_port, program, until

PROGRAMS = [program for kit in get_servers.KITS.values() for program in kit.programs]


def kit(fetch=None, programs=("thing",), version="1"):
    def default(folder: Path, final: Path) -> None:
        get_servers._script(folder / "bin" / "thing", f'echo "from {final}"')

    return get_servers.Kit(programs, lambda: version, fetch or default)


@pytest.fixture
def kits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, get_servers.Kit]:
    """Only the kits of the test, in a cache of its own, and nothing on PATH."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(get_servers, "KITS", {"kit": kit()})
    return get_servers.KITS


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_server_can_be_had(name: str) -> None:
    path = program(name)
    assert os.access(path, os.X_OK)


def test_a_program_is_got_once(kits: dict[str, get_servers.Kit], tmp_path: Path) -> None:
    assert get_servers.find("thing") is None
    path = get_servers.get("thing")
    assert path == tmp_path / "otel-agenteval" / "kit-1" / "bin" / "thing"
    assert subprocess.run([path], capture_output=True, text=True, check=True).stdout == f"from {path.parent.parent}\n"
    kits["kit"] = kit(fetch=lambda *_: pytest.fail("got again"))
    assert get_servers.get("thing") == path
    kits["kit"] = kit(version="2")
    assert get_servers.get("thing").parent.parent.name == "kit-2"


def test_a_program_on_path_is_used_when_it_will_do(kits: dict[str, get_servers.Kit], monkeypatch, tmp_path: Path) -> None:
    get_servers._script(tmp_path / "thing", "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert get_servers.get("thing") == tmp_path / "thing"
    kits["kit"] = get_servers.Kit(("thing",), lambda: "1", kits["kit"].fetch, usable=lambda path: False)
    assert get_servers.get("thing") != tmp_path / "thing"


def test_what_cannot_be_had_is_skipped_or_fails_with_the_reason(kits: dict[str, get_servers.Kit], monkeypatch) -> None:
    tries = []

    def fetch(folder: Path, final: Path) -> None:
        tries.append(folder)
        raise get_servers.Unavailable("no such place")

    kits["kit"] = kit(fetch)
    monkeypatch.setattr(servers, "REQUIRED", False)
    with pytest.raises(pytest.skip.Exception, match="thing cannot be had: no such place"):
        program("thing")
    monkeypatch.setattr(servers, "REQUIRED", True)
    with pytest.raises(pytest.fail.Exception, match="thing cannot be had: no such place"):
        program("thing")
    assert len(tries) == 1, "the failure is remembered for a while"
    assert not tries[0].exists()


def test_another_user_can_run_what_is_in_this_user_s_cache(kits: dict[str, get_servers.Kit], monkeypatch, tmp_path: Path) -> None:
    with for_every_user("thing") as folder:
        assert (folder / "thing").exists()
        assert tmp_path not in folder.parents
        assert all(
            path.stat().st_mode & 0o005 == 0o005 for path in (folder / "thing", folder, folder.parent, folder.parent.parent)
        )
    assert not folder.exists()
    get_servers._script(tmp_path / "thing", "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    with for_every_user("thing") as folder:
        assert folder == tmp_path, "what is on PATH is run from there"


def test_programs_of_a_package_find_the_libraries_that_came_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command, cwd, env=None):
        if "--simulate" in command:
            return "Inst libthing [1] (2 Debian)\nInst libc6 [1] (2 Debian)\nConf libthing (2 Debian)\n"
        if "download" in command:
            for package in command[command.index("download") + 1 :]:
                (cwd / f"{package}.deb").touch()
        if "-x" in command:
            root, package = Path(command[3]), Path(command[2]).stem
            (root / "usr" / "bin").mkdir(parents=True, exist_ok=True)
            if package == "thing":
                get_servers._script(root / "usr" / "bin" / "thing", 'echo "$LD_LIBRARY_PATH $*"')
            else:
                (root / "lib" / package).mkdir(parents=True)
                (root / "lib" / package / "libthing.so.1").touch()
        return ""

    monkeypatch.setattr(get_servers, "_run", run)
    (tmp_path / "bin").mkdir()
    get_servers._debian("thing", programs={"thing": "usr/bin/thing"}, libraries=True)(tmp_path, tmp_path)
    said = subprocess.run([tmp_path / "bin" / "thing", "a b"], capture_output=True, text=True, check=True).stdout
    assert said == f"{tmp_path}/bin/../root/lib/libthing a b\n", "the system's C library stays"


def test_what_is_got_in_part_is_not_taken(kits: dict[str, get_servers.Kit]) -> None:
    kits["kit"] = kit(programs=("thing", "other"))
    with pytest.raises(get_servers.Unavailable, match="other is not in what was got"):
        get_servers.get("thing")
    assert get_servers.find("thing") is None


def test_the_command_says_what_it_has_and_fails_when_something_is_missing(kits: dict[str, get_servers.Kit], capsys) -> None:
    assert get_servers.main(["--list"]) == 0
    assert capsys.readouterr().out == "thing: not here yet\n"
    assert get_servers.main(["kit"]) == 0
    assert capsys.readouterr().out == f"thing: {get_servers.find('thing')}\n"
    kits["kit"] = get_servers.Kit(("thing",), lambda: "3", lambda *_: get_servers._run(["no-such-program"], Path()))
    assert get_servers.main([]) == 1
    assert capsys.readouterr().out == "thing: cannot be had: no-such-program is not installed\n"


def test_a_command_that_fails_shows_the_end_of_its_output() -> None:
    with pytest.raises(get_servers.Unavailable, match=r"ended with 3:\nline 9"):
        get_servers._run([sys.executable, "-c", "print('line 9'); raise SystemExit(3)"], Path())


def server(port: int) -> list[str]:
    return [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]


def test_a_process_is_ready_is_killed_and_starts_again(tmp_path: Path) -> None:
    port = free_port()
    ready = answers(f"http://127.0.0.1:{port}/")
    with Process(server(port), log=tmp_path / "log", ready=ready, cwd=tmp_path) as process:
        first = process.pid
        assert ready()
        process.kill()
        assert not process.running
        process.start()
        assert process.pid != first
        assert ready()
    assert not process.running
    assert "GET / " in process.text()


def test_a_process_that_ends_at_once_says_why(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"ended with 1\n.*out of luck"):
        Process([sys.executable, "-c", "raise SystemExit('out of luck')"], log=tmp_path / "log", ready=lambda: False)


def test_a_condition_that_never_holds_is_given_up_on() -> None:
    with pytest.raises(AssertionError, match=r"not within 0.01 s: the moon \(.*refused"):
        until(answers(f"http://127.0.0.1:{free_port()}/"), "the moon", timeout=0.01)


def test_no_two_processes_have_the_same_port(tmp_path: Path) -> None:
    script = "from tests.support import servers; import sys; print(servers._hold(int(sys.argv[1])))"
    port = free_port()
    assert run(script, str(port)).stdout == "False\n", "nothing listens on it, but it was given to this process"
    theirs = int(run("from tests.support import servers; print(servers.free_port())").stdout)
    assert theirs != port
    assert servers._hold(theirs), "that process has ended"
    assert not servers._hold(theirs), "it is given once"


def test_neighbours_of_a_port_are_free_too() -> None:
    port = free_port(beside=[10])
    assert not servers._hold(port + 10)
