"""Run an agent's program in isolation from this machine, with limits on all resources.

The program can't use the network, your files, or your environment variables. Without a working sandbox, nothing runs.

- ``bubblewrap`` runs CPython in separate namespaces. It requires Linux, ``bwrap`` 0.8 or newer, and ``prlimit``.
- ``monty`` (package ``pydantic-monty``) interprets a subset of Python without any access to the operating system.

Before a process runs its first program, otel-agenteval tests the sandboxes with programs that try to escape.
"""

from __future__ import annotations

import ast
import builtins
import functools
import io
import json
import math
import os
import re
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...core.errors import ConfigError, MetricError
from ...core.extras import require
from .code import python_tree

Name = Literal["bubblewrap", "monty"]

MEMORY = 512 * 2**20
"""Maximum address space of one process in bytes."""
PROCESSES = 32
FILE_BYTES = 2**20
SCRATCH_BYTES = 16 * 2**20
"""Maximum total size in bytes of all files in ``/tmp``, and of all files in ``/dev/shm``. Nothing else is writable."""
OPEN_FILES = 64
STDERR_CHARS = 1_000

_PROBE_SECONDS = 10.0
_HOST_CALLS = 10_000
_SCRATCH, _SHARED = "/tmp", "/dev/shm"  # noqa: S108 - inside the sandbox
_UID = 61234
"""Unprivileged user and group ID for programs if this process runs as root, because process limits don't apply to root."""


@dataclass(frozen=True)
class ProgramResult:
    exit_code: int | None
    """None if the time limit stopped the program. 128 plus the signal number if a signal ended the program."""
    stderr: str
    timed_out: bool


@functools.cache
def usable() -> tuple[Name, ...]:
    """Return the sandboxes that pass their tests on this machine, the best sandbox first."""
    found: list[Name] = []
    if shutil.which("bwrap") is not None and _isolates("bubblewrap", [(_PROBE, 0)]):
        found.append("bubblewrap")
    if _isolates("monty", [("print(1)", 0), ("open('/usr')", 1)]):
        found.append("monty")
    return tuple(found)


def _isolates(sandbox: Name, probes: list[tuple[str, int]]) -> bool:
    try:
        return all(run(sandbox, program, "", _PROBE_SECONDS).exit_code == code for program, code in probes)
    except (MetricError, ConfigError, OSError):
        return False


def run(sandbox: Name, program: str, stdin: str, timeout_s: float) -> ProgramResult:
    """Run a Python program until it ends or reaches its time limit.

    Raises:
        MetricError: If the sandbox is unavailable or failed, or doesn't support a Python feature that the program uses.
        MissingExtra: If the sandbox's package isn't installed.
    """
    return (_run_in_bubblewrap if sandbox == "bubblewrap" else _run_in_monty)(program, stdin, timeout_s)


def require_package(sandbox: Name) -> None:
    if sandbox == "monty":
        _monty()


# --- bubblewrap ----------------------------------------------------------------------------------------------------

_PROBE = f"""
import os, resource, time
assert os.getuid() != 0, "root"
assert not any(map(os.path.exists, ("/home", "/root", "/var", "/run", "/etc/passwd"))), "files"
assert [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line] == ["lo"], "network"
assert resource.getrlimit(resource.RLIMIT_AS)[1] == {MEMORY}, "memory"
for path in ("/x", "/usr/x", "/dev/x", "/main.py"):
    try:
        open(path, "w")
    except OSError:
        continue
    raise AssertionError(path)
for _ in range({4 * PROCESSES}):
    try:
        child = os.fork()
    except OSError:
        break
    if not child:
        time.sleep(60)
else:
    raise AssertionError("processes")
"""


def _run_in_bubblewrap(program: str, stdin: str, timeout_s: float) -> ProgramResult:
    code, given, status = (_memory_file(text) for text in (program, stdin, ""))
    user: dict[str, Any] = {"user": _UID, "group": _UID, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        with subprocess.Popen(  # noqa: S603 - the program is only data; the command is fixed
            _command(code, status, timeout_s), stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            pass_fds=(code, status), cwd="/", env={}, start_new_session=True, **user,
        ) as process:  # fmt: skip
            try:
                stderr, timed_out = _wait_for(process, timeout_s)
            finally:
                process.kill()  # this also ends all processes inside
        reports = [json.loads(line) for line in os.pread(status, 4096, 0).splitlines()]
    finally:
        for descriptor in (code, given, status):
            os.close(descriptor)
    if timed_out:
        return ProgramResult(None, stderr, timed_out=True)
    ended = next((report["exit-code"] for report in reports if report.get("exit-code") is not None), None)
    if ended is None:
        raise MetricError("sandbox_failed", "sandbox: bubblewrap could not start the program; run bwrap manually to see why")
    return ProgramResult(int(ended), stderr, timed_out=False)


def _memory_file(text: str) -> int:
    descriptor = os.memfd_create("agenteval")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode("utf-8", "replace"))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _command(code: int, status: int, timeout_s: float) -> Sequence[str]:
    python = next((path for path in ("/usr/local/bin/python3", "/usr/bin/python3") if os.access(path, os.X_OK)), None)
    limiter, bwrap = shutil.which("prlimit"), shutil.which("bwrap")
    if python is None or limiter is None or bwrap is None:
        problem = "sandbox: bubblewrap requires bwrap, prlimit, and /usr/bin/python3 or /usr/local/bin/python3; install them"
        raise MetricError("sandbox_unavailable", problem)
    folders: list[str] = []  # /lib and similar folders often link to /usr
    for path in (Path("/bin"), Path("/sbin"), *sorted(Path("/").glob("lib*"))):
        if path.is_symlink():
            folders += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            folders += ["--ro-bind", str(path), str(path)]
    return (
        bwrap,
        "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", _SCRATCH, "--setenv", "LANG", "C.UTF-8",
        "--ro-bind", "/usr", "/usr", *folders, "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache",
        "--proc", "/proc", "--dev", "/dev", "--size", str(SCRATCH_BYTES), "--tmpfs", _SHARED, "--remount-ro", "/dev",
        "--size", str(SCRATCH_BYTES), "--tmpfs", _SCRATCH, "--ro-bind-data", str(code), "/main.py", "--remount-ro", "/",
        "--chdir", _SCRATCH, "--json-status-fd", str(status), "--",
        limiter, f"--as={MEMORY}", f"--nproc={PROCESSES}", f"--fsize={FILE_BYTES}", f"--nofile={OPEN_FILES}", "--core=0",
        f"--cpu={int(timeout_s) + 1}", "--",
        python, "-I", "/main.py",
    )  # fmt: skip


def _wait_for(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[str, bool]:
    deadline = time.monotonic() + timeout_s
    tail = b""
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and selector.select(left):
            if not (chunk := os.read(process.stderr.fileno(), 65536)):
                break
            tail = (tail + chunk)[-4 * STDERR_CHARS :]
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
        timed_out = False
    except subprocess.TimeoutExpired:
        timed_out = True
    return tail.decode("utf-8", "replace")[-STDERR_CHARS:], timed_out


# --- monty ---------------------------------------------------------------------------------------------------------


def _monty() -> Any:
    return require("pydantic_monty", feature="the sandbox monty", extra="code")


EXIT = {"monty": "exit_with({})", "bubblewrap": "raise SystemExit({})"}
"""Statement that exits with a status in each sandbox, even if the program defines its own ``exit``."""


def _run_in_monty(program: str, stdin: str, timeout_s: float) -> ProgramResult:
    monty = _monty()
    host = _HostFunctions(stdin)
    limits = {
        "max_feed_duration_secs": timeout_s, "max_total_sleep_secs": timeout_s, "max_memory": MEMORY, "max_suspensions": _HOST_CALLS,
    }  # fmt: skip
    try:
        with (
            monty.Monty(max_processes=1, request_timeout=timeout_s + 1.0) as pool,
            pool.checkout(limits=limits, os_policy={"sleep_system_max": math.inf}) as session,
        ):
            session.feed_run(
                _with_plain_exit(program),
                print_callback=lambda stream, text: None,
                external_lookup={"input": host.input, "exit": host.exit, "quit": host.exit, "exit_with": host.exit},
            )
    except monty.MontyCrashedError as error:
        if error.timed_out:
            return ProgramResult(None, "", timed_out=True)
        raise MetricError("sandbox_failed", "sandbox: the pydantic-monty worker ended unexpectedly; try bubblewrap") from None
    except monty.MontyError as error:
        return _result_of_error(error, host)
    except (OSError, RuntimeError):
        raise MetricError("sandbox_failed", "sandbox: pydantic-monty could not start a worker; try bubblewrap") from None
    return ProgramResult(0, "", timed_out=False)


class _HostFunctions:
    """Functions outside the sandbox that a sandboxed program may call: ``input`` and ``exit``."""

    def __init__(self, stdin: str) -> None:
        self._lines = io.StringIO(stdin, newline=None)  # reads lines as ``sys.stdin`` does
        self.code: Any = None

    def input(self, prompt: str = "") -> str:
        if not (line := self._lines.readline()):
            raise EOFError("EOF when reading a line")
        return line.removesuffix("\n")

    def exit(self, code: Any = None) -> None:
        self.code = code
        raise SystemExit


def _with_plain_exit(program: str) -> str:
    """Replace ``sys.exit`` with ``exit`` in a program, because monty's ``sys`` lacks ``exit``."""
    if (tree := python_tree(program)) is None:
        return program
    lines = program.encode("utf-8", "replace").splitlines(keepends=True)
    places = [
        (node.lineno, node.col_offset, node.end_col_offset)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "exit" and node.lineno == node.end_lineno
        if isinstance(node.value, ast.Name) and node.value.id == "sys"
    ]
    for line, start, end in sorted(places, reverse=True):
        lines[line - 1] = lines[line - 1][:start] + b"exit" + lines[line - 1][end:]
    return b"".join(lines).decode("utf-8", "replace")


def _result_of_error(error: Any, host: _HostFunctions) -> ProgramResult:
    inner = error.exception()
    message = str(inner)
    stderr = error.display()[-STDERR_CHARS:]
    if isinstance(inner, TimeoutError) and "limit exceeded" in message:
        return ProgramResult(None, stderr, timed_out=True)
    if isinstance(inner, SystemExit):
        code = host.code if host.code is not None or not message else message
        return ProgramResult(0 if code is None else code % 256 if isinstance(code, int) else 1, stderr, timed_out=False)
    if _unknown_to_monty(inner, message):
        raise MetricError("unsupported_program", "sandbox: pydantic-monty doesn't support the program; try bubblewrap")
    return ProgramResult(1, stderr, timed_out=False)


def _unknown_to_monty(inner: BaseException, message: str) -> bool:
    """Return True if a program failed because monty lacks a feature of CPython."""
    names = re.findall(r"'([\w.]+)'", message)
    if isinstance(inner, NotImplementedError):
        return "support" in message
    if isinstance(inner, RuntimeError):
        return message.startswith("Internal error in monty") or "not supported in this environment" in message
    if not names:
        return False
    if isinstance(inner, ModuleNotFoundError):
        return names[0].split(".")[0] in sys.stdlib_module_names
    if isinstance(inner, ImportError):
        return hasattr(sys.modules.get(names[-1]), names[0])
    if isinstance(inner, NameError):
        return hasattr(builtins, names[0])
    if isinstance(inner, AttributeError) and message.startswith("module '"):
        return hasattr(sys.modules.get(names[0]), names[-1])
    return False
