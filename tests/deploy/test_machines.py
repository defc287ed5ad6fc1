"""Tests of the image and the systemd unit that need no build or installation. Their commands run."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.process import ROOT
from tests.support.servers import Process, answers, free_port, program, until

DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
UNIT = ROOT / "deploy" / "systemd" / "otel-agenteval.service"


def instructions() -> list[tuple[str, str]]:
    """Return instructions and arguments, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [tuple(line.split(maxsplit=1)) for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]  # type: ignore[misc]


def final_stage() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, rest in instructions():
        if name == "FROM":
            found = {}
        found.setdefault(name, []).append(rest)
    return found


def test_the_image_runs_without_rights() -> None:
    stage = final_stage()
    user, _, group = stage["USER"][0].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert stage["STOPSIGNAL"] == ["SIGTERM"]
    assert stage["VOLUME"] == ["/var/lib/otel-agenteval"]  # all that is writable


def test_what_the_image_copies_is_there() -> None:
    ignored = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    sources = [part for name, rest in instructions() if name == "COPY" and "--from" not in rest for part in rest.split()[:-1]]
    assert [source for source in sources if not (ROOT / source).exists() or f"!{source}" not in ignored] == []


def test_the_image_takes_nothing_from_an_index_whose_hash_is_not_known() -> None:
    installs = re.findall(
        r"pip (?:install|wheel|download)[^&]*", " & ".join(rest for name, rest in instructions() if name == "RUN")
    )
    assert len(installs) == 4
    for install in installs:
        from_an_index = "--require-hashes" in install
        assert from_an_index or ("--no-deps" in install and ("--no-index" in install or "--no-build-isolation" in install))


def test_the_health_check_of_the_image_tells_a_healthy_sidecar_from_none(tmp_path: Path) -> None:
    stage = final_stage()
    command = [*json.loads(stage["ENTRYPOINT"][0]), *json.loads(stage["CMD"][0])]
    assert command == ["otel-agenteval", "serve"]
    port = free_port()
    env = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path)}
    others = ["--http=127.0.0.1:0", "--grpc=off", "--web=off"]
    check = json.loads(stage["HEALTHCHECK"][0].partition("CMD ")[2])
    check = [sys.executable, *(part.replace(":19464", f":{port}") for part in check[1:])]
    assert f":{port}" in check[-1]
    server = [sys.executable, "-m", "otel_agenteval", "serve", f"--metrics=127.0.0.1:{port}", *others]
    with Process(server, log=tmp_path / "log", ready=answers(f"http://127.0.0.1:{port}/healthz"), env=env):
        assert subprocess.run(check, timeout=120, check=False).returncode == 0
    assert subprocess.run(check, timeout=120, check=False, stderr=subprocess.DEVNULL).returncode != 0


def test_systemd_understands_every_line_of_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    text = UNIT.read_text(encoding="utf-8").replace("/opt/otel-agenteval/bin/otel-agenteval", "/bin/true")
    unit.write_text(text, encoding="utf-8")
    threshold = "--threshold=15"  # 1.5 of 10; an unconfined service has 9.6
    for options in (["verify"], ["security", "--offline=yes", threshold]):
        command = [program("systemd-analyze"), *options, unit]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout[-400:] + done.stderr
    assert done.stderr == ""


def test_the_unit_leaves_more_time_than_the_drain_takes_and_its_command_runs(tmp_path: Path) -> None:
    text = UNIT.read_text(encoding="utf-8")
    values = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    assert int(values["TimeoutStopSec"]) > 20
    config = tmp_path / "config.yaml"
    config.write_text("outlets: {log_events: false}\n", encoding="utf-8")
    program, *arguments = shlex.split(values["ExecStart"])
    assert program.endswith("/otel-agenteval")
    places = {"/etc/otel-agenteval/config.yaml": str(config), "${STATE_DIRECTORY}": str(tmp_path)}
    arguments = [places.get(part, part).replace("${STATE_DIRECTORY}", str(tmp_path)) for part in arguments]
    port = free_port()
    listen = [f"--http=127.0.0.1:{port}", "--grpc=off", "--metrics=off", "--web=off"]
    command = [sys.executable, "-m", "otel_agenteval", *arguments, *listen]
    env = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path)}
    assert values["ExecReload"] == "/bin/kill -HUP $MAINPID"
    with Process(command, log=tmp_path / "log", ready=answers(f"http://127.0.0.1:{port}/readyz"), env=env) as sidecar:
        os.kill(sidecar.pid, signal.SIGHUP)
        until(lambda: "reload" in sidecar.text(), "the configuration is read again")
        assert sidecar.stop() == 0
    assert (tmp_path / "journal").is_dir()
