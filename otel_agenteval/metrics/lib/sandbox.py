"""Running a program of the agent in isolation from this machine: no files, network or environment, and limits on everything.

Nothing ever runs outside a sandbox: where none works, nothing runs. ``bubblewrap`` is CPython in namespaces of its own
(Linux with ``bwrap`` 0.8 or newer and ``prlimit``), ``monty`` an interpreter of a subset of Python without any access
to the operating system (package ``pydantic-monty``). Both are tested once per process, with programs that try to get out.
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
"""Bytes of address space of one process."""
PROCESSES = 32
"""Processes and threads together."""
FILE_BYTES = 2**20
"""Bytes of one file."""
SCRATCH_BYTES = 16 * 2**20
"""Bytes of all files in ``/tmp``, and again in ``/dev/shm``: the only places that can be written."""
OPEN_FILES = 64
STDERR_CHARS = 1_000
"""What is kept of standard error: its end."""

_PROBE_SECONDS = 10.0
_HOST_CALLS = 10_000
_SCRATCH, _SHARED = "/tmp", "/dev/shm"  # noqa: S108 - inside the sandbox
_UID = 61234
"""The user ``nobody``: no limit on processes holds for root, so root becomes this user before anything else."""


@dataclass(frozen=True)
class Outcome:
    """How a program ended."""

    exit_code: int | None
    """None when it was stopped because its time was over; 128 and the signal's number when a limit killed it."""
    stderr: str
    timed_out: bool


@functools.cache
def usable() -> tuple[Name, ...]:
    """The sandboxes that isolate programs on this machine, best first: bubblewrap runs all of Python. Tested once."""
    found: list[Name] = []
    if _bubblewrap_holds():
        found.append("bubblewrap")
    if _monty_holds():
        found.append("monty")
    return tuple(found)


def run(sandbox: Name, program: str, stdin: str, timeout_s: float) -> Outcome:
    """Run a Python program to its end, or until its time limit.

    Raises:
        MetricError: the sandbox failed, or does not know what the program uses; that says nothing about the program.
        MissingExtra: the package of the sandbox is not installed.
    """
    runner = _run_in_bubblewrap if sandbox == "bubblewrap" else _run_in_monty
    return runner(program, stdin, timeout_s)


def require_package(sandbox: Name) -> None:
    """Say what to install, where that is all that is missing.

    Raises:
        MissingExtra: the package of the sandbox is not installed.
    """
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


def _bubblewrap_holds() -> bool:
    if shutil.which("bwrap") is None:
        return False
    try:
        return _run_in_bubblewrap(_PROBE, "", _PROBE_SECONDS).exit_code == 0
    except (MetricError, OSError):
        return False


def _run_in_bubblewrap(program: str, stdin: str, timeout_s: float) -> Outcome:
    code, given, status = (_memory_file(text) for text in (program, stdin, ""))
    user: dict[str, Any] = {"user": _UID, "group": _UID, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        with subprocess.Popen(  # noqa: S603 - the program is data here; the command is ours
            _command(code, status, timeout_s), stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            pass_fds=(code, status), cwd="/", env={}, start_new_session=True, **user,
        ) as process:  # fmt: skip
            try:
                stderr, timed_out = _attend(process, timeout_s)
            finally:
                process.kill()  # everything inside dies with it
        ended = _exit_code(os.pread(status, 4096, 0))
    finally:
        for descriptor in (code, given, status):
            os.close(descriptor)
    if timed_out:
        return Outcome(None, stderr, timed_out=True)
    if ended is None:
        raise MetricError("sandbox_failed", "bubblewrap could not start the program")
    return Outcome(ended, stderr, timed_out=False)


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
        raise MetricError("sandbox_unavailable", "bubblewrap needs bwrap, prlimit and a python3 below /usr")
    return (
        bwrap,
        "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", _SCRATCH, "--setenv", "LANG", "C.UTF-8",
        "--ro-bind", "/usr", "/usr", *_system_folders(), "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache",
        "--proc", "/proc", "--dev", "/dev", "--size", str(SCRATCH_BYTES), "--tmpfs", _SHARED, "--remount-ro", "/dev",
        "--size", str(SCRATCH_BYTES), "--tmpfs", _SCRATCH, "--ro-bind-data", str(code), "/main.py", "--remount-ro", "/",
        "--chdir", _SCRATCH, "--json-status-fd", str(status), "--",
        limiter, f"--as={MEMORY}", f"--nproc={PROCESSES}", f"--fsize={FILE_BYTES}", f"--nofile={OPEN_FILES}", "--core=0",
        f"--cpu={int(timeout_s) + 1}", "--",
        python, "-I", "/main.py",
    )  # fmt: skip


def _system_folders() -> list[str]:
    """``/lib`` and its like, which are links into ``/usr`` on most systems."""
    arguments: list[str] = []
    for path in (Path("/bin"), Path("/sbin"), *sorted(Path("/").glob("lib*"))):
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    return arguments


def _attend(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[str, bool]:
    """The end of standard error, and whether the time limit was reached. Only the end is kept, whatever a program writes."""
    deadline = time.monotonic() + timeout_s
    tail = b""
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and selector.select(left):
            chunk = os.read(process.stderr.fileno(), 65536)
            if not chunk:
                break
            tail = (tail + chunk)[-4 * STDERR_CHARS :]
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
        timed_out = False
    except subprocess.TimeoutExpired:
        timed_out = True
    return tail.decode("utf-8", "replace")[-STDERR_CHARS:], timed_out


def _exit_code(status: bytes) -> int | None:
    """What bubblewrap reports of the program; None when the program never started."""
    for line in status.splitlines():
        code = json.loads(line).get("exit-code")
        if code is not None:
            return int(code)
    return None


# --- monty ---------------------------------------------------------------------------------------------------------


def _monty() -> Any:
    return require("pydantic_monty", feature="the sandbox monty", extra="code")


def _monty_holds() -> bool:
    try:
        good = _run_in_monty("print(1)", "", _PROBE_SECONDS)
        bad = _run_in_monty("open('/usr')", "", _PROBE_SECONDS)
    except (MetricError, ConfigError):
        return False
    return (good.exit_code, bad.exit_code) == (0, 1)


def _run_in_monty(program: str, stdin: str, timeout_s: float) -> Outcome:
    monty = _monty()
    outside = _Outside(stdin)
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
                print_callback=_discard,
                external_lookup={"input": outside.input, "exit": outside.exit, "quit": outside.exit},
            )
    except monty.MontyCrashedError as error:
        if error.timed_out:
            return Outcome(None, "", timed_out=True)
        raise MetricError("sandbox_failed", "the worker of pydantic-monty died") from None
    except monty.MontyError as error:
        return _ended_by(error, outside)
    except (OSError, RuntimeError):
        raise MetricError("sandbox_failed", "pydantic-monty could not start a worker") from None
    return Outcome(0, "", timed_out=False)


class _Outside:
    """The two things of the outer world that a program may ask for: the lines of its input, and to end."""

    def __init__(self, stdin: str) -> None:
        self._lines = io.StringIO(stdin, newline=None)  # reads lines as ``sys.stdin`` does
        self.code: Any = None

    def input(self, prompt: str = "") -> str:
        line = self._lines.readline()
        if not line:
            raise EOFError("EOF when reading a line")
        return line.removesuffix("\n")

    def exit(self, code: Any = None) -> None:
        self.code = code
        raise SystemExit


def _discard(stream: str, text: str) -> None:
    """What is printed is not judged."""


def _with_plain_exit(program: str) -> str:
    """The program with ``sys.exit`` written ``exit``: monty's ``sys`` has none."""
    tree = python_tree(program)
    if tree is None:
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


def _ended_by(error: Any, outside: _Outside) -> Outcome:
    inner = error.exception()
    message = str(inner)
    stderr = error.display()[-STDERR_CHARS:]
    if isinstance(inner, TimeoutError) and "limit exceeded" in message:
        return Outcome(None, stderr, timed_out=True)
    if isinstance(inner, SystemExit):
        code = outside.code if outside.code is not None or not message else message
        return Outcome(0 if code is None else code % 256 if isinstance(code, int) else 1, stderr, timed_out=False)
    if _unknown_to_monty(inner, message):
        raise MetricError("unsupported_program", "the program uses what pydantic-monty does not have; bubblewrap may run it")
    return Outcome(1, stderr, timed_out=False)


def _unknown_to_monty(inner: BaseException, message: str) -> bool:
    """Whether a program failed for what CPython has and monty has not: syntax, a module, a name in one, a built-in."""
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
