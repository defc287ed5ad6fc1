"""Run docs/operate/sidecar.md and the pages of docs/get-started/integrations as a reader would, and compare the outputs.

    python scripts/quickstarts.py                   all pages
    python scripts/quickstarts.py langgraph django  only these pages
    python scripts/quickstarts.py --within 600      starts no page after 600 seconds
    python scripts/quickstarts.py --write           also writes outputs, and the table of versions, to the pages
    python scripts/quickstarts.py --pin             installs the newest packages, and records them in requirements/quickstarts

Each page has its own environment in ``~/.cache/otel-agenteval/quickstarts``. The framework is real. The model is a script
(``tests/support/fake_llm.py``) with OpenAI's API on this machine. Creating an environment needs network access.

A page contains fenced blocks. If the line before a block ends in ``FILE``:, the block is the content of that file. Install lines of
``bash`` blocks run first, and only once. Other lines run in the folder with the files. A block after ``<!-- keep running -->`` runs in
the background until the page ends. ``<!-- printed -->`` precedes the expected output of the last command, and ``<!-- printed by the
server -->`` that of the background command. Times, ids and line breaks may differ. Nothing runs after ``<!-- end of steps -->``.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)] if str(ROOT) not in sys.path else []

from scripts.gen_docs import INSTALLED_AS  # noqa: E402 - found only now
from scripts.test_wheel import built  # noqa: E402 - the same
from tests.support import fake_llm  # noqa: E402 - the same

PAGES = ROOT / "docs" / "get-started" / "integrations"
SIDECAR = ROOT / "docs" / "operate" / "sidecar.md"
INDEX = PAGES / "README.md"
PINS = ROOT / "requirements" / "quickstarts"
ELSEWHERE = ("README", "fastapi", "celery")
"""The index, and pages that ``tests/test_docs.py`` runs, because their packages are among the test dependencies."""
INSTALLS = ("pip install", "npm install")
VENV = "python3 -m venv "
"""Begin of a line that isn't run, because each page already has an environment."""
TOOLS = ("npm", "node", "mvn", "java", "curl", "openssl")
"""Programs of other languages. A page that uses a missing program is skipped."""
_INSTALL_SECONDS, _RUN_SECONDS, _SERVER_SECONDS, _TURN_SECONDS = 900, 240, 90, 45


# --- a page --------------------------------------------------------------------------------------------------------


@dataclass
class Step:
    """A command of a page, with its expected output if the page shows one."""

    command: str
    keeps_running: bool = False
    printed: str | None = None


@dataclass
class Page:
    """Install lines, files and commands of a page."""

    name: str
    text: str
    installs: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


_FENCE = re.compile(r"^```([a-z]+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+)`:\s*\Z")
_SIDECAR = "otel-agenteval serve"
_KEEP, _PRINTED, _BY_SERVER = "<!-- keep running -->", "<!-- printed -->", "<!-- printed by the server -->"
_END = "<!-- end of steps -->"


def page_of(path: Path) -> Page:
    """Read a page.

    Raises:
        ValueError: If an output comes before the first command.
    """
    text = path.read_text(encoding="utf-8")
    page = Page(path.stem, text)
    for fence in _FENCE.finditer(text.partition(_END)[0]):
        before, body = text[: fence.start()].rstrip(), fence[2]
        named = _FILE.search(before)
        if named:
            page.files[named[1]] = body
        elif fence[1] == "bash":
            lines = body.replace("\\\n", "").splitlines()
            page.installs += [line.partition("  #")[0] for line in lines if line.startswith(INSTALLS)]
            commands = [line for line in lines if line.strip() and not line.startswith((*INSTALLS, VENV))]
            if commands:
                page.steps.append(Step("\n".join(commands), before.endswith(_KEEP)))
        elif before.endswith((_PRINTED, _BY_SERVER)):
            chosen = [step for step in page.steps if (_SIDECAR in step.command) == before.endswith(_BY_SERVER)]
            if not chosen:
                raise ValueError(f"{path.name}: no command before the output in line {text.count(chr(10), 0, fence.start()) + 1}")
            chosen[-1].printed = body
    return page


def all_pages() -> list[Path]:
    """Return the pages that this script runs."""
    return [*(path for path in sorted(PAGES.glob("*.md")) if path.stem not in ELSEWHERE), SIDECAR]


# --- its environment -----------------------------------------------------------------------------------------------


def cache() -> Path:
    """Return the folder of the environments."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otel-agenteval" / "quickstarts"


def prepare(page: Page, wheel: Path, *, pin: bool) -> Path:
    """Return the folder with the page's virtual environment and, if needed, Node.js modules.

    Raises:
        RuntimeError: If a package can't be installed.
    """
    pins = PINS / f"{page.name}.txt"
    constraints = [] if pin or not pins.exists() else ["--constraint", str(pins)]
    recipe = "\n".join([sys.version, *page.installs, pins.read_text(encoding="utf-8") if constraints else ""])
    folder = cache() / f"{page.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    done = folder / "installed"
    if pin or not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make_environment(page, wheel, folder, constraints)
        if pin:
            frozen = _run([str(folder / "venv" / "bin" / "python"), "-m", "pip", "freeze", "--exclude", "otel-agenteval"], folder)
            pins.write_text("".join(f"{line}\n" for line in frozen.splitlines() if "==" in line), encoding="utf-8")
        done.touch()
    _run([*_pip(folder), "--no-deps", "--force-reinstall", str(wheel)], folder)
    return folder


def make_environment(
    page: Page, wheel: Path, folder: Path, constraints: Sequence[str] = (), *, more: Mapping[str, str] | None = None
) -> None:
    """Install a page's packages into a folder.

    Raises:
        RuntimeError: If a package can't be installed.
    """
    _run([sys.executable, "-m", "venv", str(folder / "venv")], folder, more)
    for line in page.installs:
        tool, *words = shlex.split(line)
        if tool == "pip":
            wanted = [
                str(wheel) + word.removeprefix(INSTALLED_AS) if word.startswith(INSTALLED_AS) else word for word in words[1:]
            ]
            _run([*_pip(folder), *constraints, *wanted], folder, more)
        else:
            _run([tool, *words, "--no-audit", "--no-fund", "--loglevel=error"], folder, more)


def _environment() -> dict[str, str]:
    """Return this process's environment variables, except those that affect Python, its SDK or otel-agenteval."""
    ours = ("PYTHON", "OTEL_", "VIRTUAL_ENV", "AGENTEVAL_")
    return {name: text for name, text in os.environ.items() if not name.startswith(ours)}


def _pip(folder: Path) -> list[str]:
    return [
        str(folder / "venv" / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--quiet",
        "install",
        "--prefer-binary",
    ]


def _run(command: Sequence[str], folder: Path, more: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**_environment(), **(more or {})},
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(f"{command[0]}: {error}") from None
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-2_000:]}")
    return done.stdout


_BASH = shutil.which("bash") or "/bin/bash"

# --- a run ---------------------------------------------------------------------------------------------------------


class _Model(fake_llm.H):
    """The scripted model. It also accepts and ignores spans, for SDKs that send them to their own server."""

    def do_POST(self) -> None:  # noqa: N802 - as the standard library wants it
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":  # such as from Java's client
            body = b"".join(self._chunks())
            self.rfile, self.close_connection = io.BytesIO(body), True
            self.headers["Content-Length"] = str(len(body))
        if self.path.endswith(("/traces", "/ingestion", "/scores")):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_json({})
        else:
            super().do_POST()

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()


@contextmanager
def model() -> Iterator[str]:
    """Start the model server, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def run(
    page: Page,
    binaries: Path,
    folder: Path,
    modules: Path | None = None,
    *,
    timed: list[tuple[str, float]] | None = None,
    more: Mapping[str, str] | None = None,
) -> list[str]:
    """Run a page's steps in a folder, and return the outputs that the page shows. The seconds of each step are added to ``timed``.

    Raises:
        RuntimeError: If a step fails or times out, or a server doesn't start.
    """
    for name, body in page.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body, encoding="utf-8")
    if modules is not None and modules.exists():
        (folder / "node_modules").symlink_to(modules)
    printed: dict[int, str] = {}
    servers: list[tuple[int, subprocess.Popen[str], Path]] = []
    with model() as address:
        variables = {**_variables(address, binaries, folder), **(more or {})}
        try:
            for place, step in enumerate(page.steps):
                started = time.monotonic()
                if step.keeps_running:
                    servers.append((place, *_start(step, variables, folder, place)))
                else:
                    printed[place] = _finish(step, variables, folder)
                if timed is not None:
                    timed.append((step.command, time.monotonic() - started))
            for place, _, file in servers:
                wanted = page.steps[place].printed
                printed[place] = _said(file, wanted) if wanted is not None else ""
        finally:
            for _, process, _ in reversed(servers):
                os.killpg(process.pid, signal.SIGTERM)
            for _, process, _ in servers:
                process.wait(30)
    return [printed[place] for place, step in enumerate(page.steps) if step.printed is not None]


def _variables(address: str, binaries: Path, folder: Path) -> dict[str, str]:
    """Return the environment variables of a reader, with the scripted model instead of OpenAI."""
    return {
        **_environment(), "PATH": f"{binaries}{os.pathsep}{folder / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONUNBUFFERED": "1",
        "OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_BASE": f"{address}/v1", "MODEL_SERVER": address,
        "LANGFUSE_BASE_URL": address, "LANGFUSE_PUBLIC_KEY": "pk-scripted", "LANGFUSE_SECRET_KEY": "sk-scripted",
        "PHOENIX_COLLECTOR_ENDPOINT": address, "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo"), "COLUMNS": "100", "NO_COLOR": "1",
    }  # fmt: skip


def _finish(step: Step, variables: dict[str, str], folder: Path) -> str:
    try:
        done = subprocess.run(
            [_BASH, "-euo", "pipefail", "-c", step.command], cwd=folder, env=variables, capture_output=True, text=True,
            timeout=_RUN_SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not finished within {_RUN_SECONDS} s: {step.command}") from None
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {step.command}\n{done.stdout[-2_000:]}{done.stderr[-4_000:]}")
    return done.stdout + (_turns_in(done.stderr) if _TURN.search(done.stderr) else "")


def _start(step: Step, variables: dict[str, str], folder: Path, place: int) -> tuple[subprocess.Popen[str], Path]:
    file = folder / f"server-{place}.log"
    with file.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [_BASH, "-c", step.command], cwd=folder, env=variables, stdout=log, stderr=subprocess.STDOUT, text=True, start_new_session=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    started = time.monotonic()
    while not re.search(
        r"^listening: |Uvicorn running on|Started \w+ in|Listening at", file.read_text(encoding="utf-8"), re.MULTILINE
    ):
        if process.poll() is not None or time.monotonic() - started > _SERVER_SECONDS:
            os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
            raise RuntimeError(f"server didn't start: {step.command}\n{file.read_text(encoding='utf-8')[-4_000:]}")
        time.sleep(0.1)
    return process, file


def _said(file: Path, wanted: str) -> str:
    """Return the turns that a server printed. Wait until they match the page, or no more turns follow."""
    started = time.monotonic()
    said, since = "", started
    while time.monotonic() - started < _TURN_SECONDS:
        now = _turns_in(file.read_text(encoding="utf-8"))
        if now != said:
            said, since = now, time.monotonic()
        if said.strip() and (same(said, wanted) or time.monotonic() - since > 3):
            break
        time.sleep(0.2)
    return said


_TURN = re.compile(r"^── .*(?:\n(?: .*)?)*", re.MULTILINE)


def _turns_in(log: str) -> str:
    """Return the turns that the console outlet printed, without other lines."""
    return "\n".join(turn[0].rstrip() for turn in _TURN.finditer(log)) + "\n"


# --- what was printed ----------------------------------------------------------------------------------------------

_DIFFERS = (
    (re.compile(r"turn [0-9a-f]{6,}(?:-[0-9a-f]+)?"), "turn x"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}"), "today"),
    (re.compile(r"\b[0-9]+(?:\.[0-9]+)?(?:e-[0-9]+)? ?(?:ms|s)\b"), "0 s"),
    (re.compile(r"─+"), "─"),
    (re.compile(r"\s+"), " "),
)


def same(printed: str, wanted: str) -> bool:
    """Return True if two outputs differ only in times, ids and line breaks."""
    return _plain(printed) == _plain(wanted)


def _plain(text: str) -> str:
    for pattern, instead in _DIFFERS:
        text = pattern.sub(instead, text)
    return text.strip()


def written(page: Page, printed: Sequence[str]) -> str:
    """Return the page's text with the new outputs."""
    after = iter(printed)
    order = [step.printed for step in page.steps if step.printed is not None]
    text = page.text
    for wanted in order:
        new = next(after)
        if not same(new, wanted):
            text = text.replace(f"```text\n{wanted}```", f"```text\n{new.strip(chr(10))}\n```", 1)
    return text


# --- all of them ---------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    name: str
    wrong: str = ""
    skipped: str = ""
    installed: float = 0.0
    ran: float = 0.0


def try_page(path: Path, wheel: Path, *, pin: bool, write: bool) -> Outcome:
    page, outcome, started = page_of(path), Outcome(path.stem), time.monotonic()
    commands = "\n".join([*page.installs, *(step.command for step in page.steps)])
    missing = [tool for tool in TOOLS if re.search(rf"(?:^|[ (]){tool} ", commands, re.MULTILINE) and shutil.which(tool) is None]
    if missing:
        outcome.skipped = f"{', '.join(missing)} is not installed"
        return outcome
    try:
        environment = prepare(page, wheel, pin=pin)
    except RuntimeError as error:
        outcome.skipped = str(error)
        return outcome
    outcome.installed, started = time.monotonic() - started, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="quickstart-") as folder:
        try:
            printed = run(page, environment / "venv" / "bin", Path(folder), environment / "node_modules")
        except RuntimeError as error:
            outcome.wrong = str(error)
            return outcome
    outcome.ran = time.monotonic() - started
    if write:
        path.write_text(written(page, printed), encoding="utf-8")
    elif wrong := difference(page, printed):
        outcome.wrong = wrong
    return outcome


def difference(page: Page, printed: Sequence[str]) -> str:
    """Return the first difference between the outputs and the page, or ""."""
    wanted = [step.printed or "" for step in page.steps if step.printed is not None]
    for one, other in zip(printed, wanted, strict=True):
        if not same(one, other):
            return f"prints\n{one}\nand the page shows\n{other}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="pages, without .md")
    parser.add_argument(
        "--within", type=float, default=float("inf"), metavar="SECONDS", help="start no page after this many seconds"
    )
    parser.add_argument("--write", action="store_true", help="write outputs to the pages")
    parser.add_argument("--pin", action="store_true", help="install the newest packages, and record their versions")
    args = parser.parse_args(arguments)
    paths = [path for path in all_pages() if not args.names or path.stem in args.names]
    unknown = set(args.names) - {path.stem for path in paths}
    if unknown:
        parser.error(f"unknown page: {', '.join(sorted(unknown))}")
    started, outcomes = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        _, wheel = built(Path(folder))
        for path in paths:
            if time.monotonic() - started > args.within:
                outcome = Outcome(path.stem, skipped="no time was left")
            else:
                outcome = try_page(path, wheel, pin=args.pin, write=args.write)
                if outcome.wrong and not args.write:  # timing and other servers can cause a failure, so try again
                    print(f"retrying: {outcome.name}", flush=True)
                    outcome = try_page(path, wheel, pin=args.pin, write=False)
            outcomes.append(outcome)
            print(_line(outcome), flush=True)
    wrong = [outcome.name for outcome in outcomes if outcome.wrong]
    skipped = [outcome.name for outcome in outcomes if outcome.skipped]
    print(
        f"{len(outcomes) - len(wrong) - len(skipped)} of {len(outcomes)} pages passed; failed: {', '.join(wrong) or 'none'}; not run: {', '.join(skipped) or 'none'}"
    )
    return 1 if wrong else 0


def _line(outcome: Outcome) -> str:
    if outcome.wrong or outcome.skipped:
        return f"{'FAILED' if outcome.wrong else 'SKIPPED'}  {outcome.name}: {outcome.wrong or outcome.skipped}"
    return f"passed  {outcome.name}: {outcome.installed:.0f} s to install, {outcome.ran:.0f} s to run"


if __name__ == "__main__":
    sys.exit(main())
