"""Finding code and its language, and running it in a sandbox from which nothing escapes."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import MetricError
from otel_agenteval.metrics.bound_metric import get_metric
from otel_agenteval.metrics.lib import code
from otel_agenteval.metrics.lib import sandbox as sandboxes
from otel_agenteval.metrics.lib.code import Block
from otel_agenteval.metrics.llm import code_evaluation as judges
from tests.support.judges import ScriptedModels
from tests.support.servers import for_every_user

NAMES = ("code_code_language", "code_contains_code_language", "code_code_execution")


def evaluate(metric: str, output: str, **params: Any) -> oa.Score:
    return get_metric(metric, **params).evaluate(oa.Turn(output=output))


def fenced(code: str, info: str = "python") -> str:
    return f"Here you are:\n\n```{info}\n{code}\n```\n\nHope that helps."


# --- where code is


@pytest.mark.parametrize(
    ("output", "found"),
    [
        pytest.param("a\n```js\nf()\n```\nb\n~~~\ng()\n~~~\n", [("f()\n", "javascript"), ("g()\n", None)], id="both fences"),
        pytest.param("```python\nx = 1", [("x = 1\n", "python")], id="one that nothing closes"),
        pytest.param("````md\n```python\nx\n```\n````", [("```python\nx\n```\n", "md")], id="a fence inside a longer one"),
        pytest.param("~~~py\n```\n~~~", [("```\n", "python")], id="a fence of the other kind inside"),
        pytest.param("1. Run\n   ```sh\n   ls\n     -l\n   ```", [("ls\n  -l\n", "bash")], id="a list's indent goes"),
        pytest.param("```python\r\nx = 1\r\n```\r\n", [("x = 1\n", "python")], id="lines as Windows ends them"),
        pytest.param("```python\n\n```\n```py\n \n```", [], id="empty ones are none"),
        pytest.param("x = 1\n```\n```", [], id="with a fence, nothing outside counts"),
        pytest.param("def f():\n    pass", [("def f():\n    pass", None)], id="without one, the text if it is code"),
    ],
)
def test_code_is_what_stands_in_fences(output: str, found: list[tuple[str, str | None]]) -> None:
    assert [(block.text, block.label) for block in code.code_blocks(output)] == found


@pytest.mark.parametrize(
    ("info", "label"),
    [
        ("python", "python"), ("Python", "python"), ("py", "python"), ("py title=main.py", "python"), ("python,ignore", "python"),
        ("{.python}", "python"), ("python:main.py", "python"), ("language-python", "python"), (" JS ", "javascript"), ("ts", "typescript"),
        ("sh", "bash"), ("yml", "yaml"), ("c++", "cpp"), ("C#", "csharp"), ("golang", "go"), ("rb", "ruby"), ("rs", "rust"),
        ("brainfuck", "brainfuck"), ("", None), ("{}", None),
    ],
)  # fmt: skip
def test_the_word_after_the_fence_names_the_language(info: str, label: str | None) -> None:
    (block,) = code.code_blocks(f"```{info}\nx\n```")
    assert block.label == label


@pytest.mark.parametrize(
    ("output", "language"),
    [
        pytest.param('{"a": 1}', "json", id="a JSON object"),
        pytest.param(" [1, 2]\n", "json", id="a JSON array"),
        pytest.param("SELECT name FROM users WHERE id = 1", "sql", id="a query"),
        pytest.param("x = 5", "python", id="an assignment"),
        pytest.param("const a = 1;\nconsole.log(a);", "javascript", id="two lines with keywords"),
        pytest.param("Answer: Paris", None, id="a Python annotation"),
        pytest.param("42", None, id="a number is JSON, but no object or array"),
        pytest.param("const a = 1;", None, id="one line with a keyword"),
        pytest.param("Select a hotel from the list and book it.", None, id="a sentence that begins like a query"),
    ],
)
def test_unfenced_text_is_code_only_beyond_doubt(output: str, language: str | None) -> None:
    found = evaluate("code_contains_code_language", output, language=language or "python")
    assert (found.passed, found.detail["languages"]) == (language is not None, [language] if language else [])


SNIPPETS = {
    "python": "print(1 + 1)",
    "json": '{"a": [1, 2]}',
    "sql": "select * from t",
    "javascript": "let x = 1",
    "typescript": "interface User {\n  name: string;\n}\nconst u: User = { name: 'x' };",
    "java": 'public class Main {\n  public static void main(String[] args) {\n    System.out.println("x");\n  }\n}',
    "csharp": 'using System;\n\npublic class P {\n  public static void Main() { Console.WriteLine("x"); }\n}',
    "c": '#include <stdio.h>\n\nint main(void) {\n  printf("x");\n  return 0;\n}',
    "cpp": "#include <iostream>\n\nint main() {\n  std::cout << 1;\n}",
    "go": 'package main\n\nimport "fmt"\n\nfunc main() {\n  fmt.Println("x")\n}',
    "rust": 'fn main() {\n    let mut x = 5;\n    println!("{}", x);\n}',
    "ruby": 'def greet(name)\n  puts "Hi #{name}"\nend',
    "php": '<?php\n$x = 1;\necho "$x";',
    "bash": "cd /srv\nls -la",
    "kotlin": "fun main() {\n  val x = 1\n  println(x)\n}",
    "html": "<!DOCTYPE html>\n<div>x</div>",
    "xml": '<?xml version="1.0"?>\n<a/>',
    "css": ".a {\n  color: red;\n}",
    "yaml": "name: x\nversion: y",
}


@pytest.mark.parametrize("language", SNIPPETS)
def test_a_block_without_a_name_is_known_by_its_code(language: str) -> None:
    assert evaluate("code_code_language", fenced(SNIPPETS[language], ""), language=language).detail["languages"] == [language]


@pytest.mark.parametrize(
    ("code", "language"),
    [
        pytest.param("console.log(1)", "javascript", id="JavaScript that Python could read"),
        pytest.param("def f(:\n  pass", "python", id="Python with a mistake in it, by its keywords"),
        pytest.param("x = '\\d'", "python", id="an escape that the compiler warns about"),
        pytest.param("x = '\ud800'", None, id="half a character"),
        pytest.param("x = 1\0", None, id="a character that ends texts elsewhere"),
        pytest.param("x = " + "(" * 5000, None, id="more brackets than a parser takes"),
        pytest.param("-" * 90_000 + "1", None, id="deeper than a parser goes"),
    ],
)
def test_odd_code(code: str, language: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate("code_code_language", fenced(code, ""), language="python")
    assert found.detail["languages"] == [language]


def test_parsers_see_so_much_and_no_more() -> None:
    long = "x = 1\n" * 17_000
    assert evaluate("code_code_language", fenced(long, ""), language="python").detail["languages"] == [None]
    two = "```\n" + "x = 1\n" * 10_000 + "```\n```\n" + "y = 2\n" * 10_000 + "```\n```\nz = 3\n```"
    assert evaluate("code_code_language", two, language="python").detail["languages"] == ["python", None, "python"]
    many = evaluate("code_code_language", "```\nx\n```\n" * 500, language="python")
    assert len(many.detail["languages"]) == code.MAX_BLOCKS


# --- the two questions about it

PYTHON, SCRIPT, NAMELESS = fenced("x = 1"), fenced("let x = 1", "js"), fenced("x = 1", "")


@pytest.mark.parametrize(
    ("output", "params", "all_of_it", "any_of_it"),
    [
        pytest.param(PYTHON, {"language": "PY"}, True, True, id="another name for it"),
        pytest.param(PYTHON + SCRIPT, {"language": "python"}, False, True, id="both"),
        pytest.param(PYTHON + NAMELESS, {"language": "python"}, True, True, id="one that must be looked into"),
        pytest.param("no code", {"language": "python"}, False, False, id="no code"),
    ],
)
def test_all_code_or_any_code_in_a_language(output: str, params: dict[str, Any], all_of_it: bool, any_of_it: bool) -> None:
    for metric, passed in (("code_code_language", all_of_it), ("code_contains_code_language", any_of_it)):
        found = evaluate(metric, output, **params)
        assert (found.passed, found.value, found.type) == (passed, float(passed), "boolean")
        assert evaluate(metric, output, inverse=True, **params).passed is not passed


def test_the_fence_need_not_be_believed() -> None:
    wrong = fenced("const x = () => { return 1 }", "python")
    assert evaluate("code_code_language", wrong, language="python").passed is True
    assert evaluate("code_code_language", wrong, language="python", detector="heuristic").passed is False
    assert evaluate("code_code_language", wrong, language="js", detector="heuristic").passed is True


# --- running it: everywhere


def run(output: str, sandbox: str | None = "auto", **params: Any) -> oa.Score:
    return evaluate("code_code_execution", output, sandbox=sandbox, **params)


@pytest.fixture(scope="module")
def folder_of_bubblewrap() -> Iterator[Path]:
    with for_every_user("bwrap") as folder:
        sandboxes.usable.cache_clear()
        yield folder
    sandboxes.usable.cache_clear()


@pytest.fixture(params=["monty", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "bubblewrap":
        folder = request.getfixturevalue("folder_of_bubblewrap")
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    if request.param not in sandboxes.usable():
        pytest.skip(f"{request.param} does not work on this machine")
    return str(request.param)


def test_nothing_runs_unless_a_sandbox_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "run", lambda *args: pytest.fail("it ran"))
    monkeypatch.setattr(sandboxes, "usable", lambda: pytest.fail("it was tried out"))
    for output in (PYTHON, "no code"):
        found = get_metric("code_code_execution").evaluate(oa.Turn(output=output))
        assert (found.status, found.detail) == ("skipped", {"reason": "no_sandbox"})


def test_nothing_runs_where_no_sandbox_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "run", lambda *args: pytest.fail("it ran"))
    monkeypatch.setattr(sandboxes, "usable", tuple)
    assert run(PYTHON).detail == {"reason": "no_sandbox"}
    for name in ("monty", "bubblewrap"):
        assert run(PYTHON, name).error_type == "sandbox_unavailable"
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    missing = run(PYTHON, "monty")
    assert (missing.error_type, "[code]" in (missing.explanation or "")) == ("MissingExtra", True)


def test_auto_takes_the_first_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "usable", lambda: ("bubblewrap", "monty"))
    monkeypatch.setattr(sandboxes, "run", lambda name, *args: sandboxes.ProgramResult(0, "", timed_out=False))
    assert run(PYTHON).detail["sandbox"] == "bubblewrap"


@pytest.mark.parametrize(
    ("params", "allowed"),
    [
        ({"language": "py"}, True), ({"language": ""}, False), ({"language": "javascript"}, False), ({"sandbox": "none"}, False), ({"sandbox": None}, True),
        ({"timeout_s": 0}, False), ({"timeout_s": 61}, False), ({"timeout_s": 60}, True), ({"block": "second"}, False),
    ],
)  # fmt: skip
def test_parameters_are_checked_when_built(params: dict[str, Any], allowed: bool) -> None:
    if allowed:
        get_metric("code_code_execution", **params)
    else:
        with pytest.raises(oa.ConfigError):
            get_metric("code_code_execution", **params)


# --- running it: in each sandbox


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        pytest.param("def f(x):\n    return x + 1\n\nassert f(1) == 2", 0, id="an assertion that holds"),
        pytest.param("1 / 0", 1, id="an exception"),
        pytest.param("import no_such_module_anywhere", 1, id="a module that is not there"),
        pytest.param("import sys\nif __name__ == '__main__':\n    sys.exit(3)", 3, id="an exit code"),
        pytest.param("try:\n    exit(2)\nexcept SystemExit:\n    pass", 0, id="an exit that is caught"),
        pytest.param("name = '\u00fc'\nimport sys; sys.exit(4 if name else 5)", 4, id="an exit after letters of two bytes"),
        pytest.param("x = '\\d'", 0, id="an escape that the compiler warns about"),
    ],
)
def test_a_program_passes_when_it_ends_well(sandbox: str, code: str, exit_code: int) -> None:
    found = run(fenced(code), sandbox, timeout_s=20)
    assert (found.passed, found.value) == (exit_code == 0, float(exit_code == 0))
    assert (found.detail["exit_code"], found.detail["timed_out"], found.detail["sandbox"]) == (exit_code, False, sandbox)


@pytest.mark.parametrize(
    "output",
    ["just words", "", fenced("let x = 1", "js"), fenced("SELECT 1", "sql"), fenced(" ")],
    ids=["words", "none", "js", "sql", "blank"],
)
def test_without_python_nothing_runs_and_it_fails(sandbox: str, output: str) -> None:
    found = run(output, sandbox)
    assert (found.status, found.passed, found.detail) == ("ok", False, {})


SLOW = pytest.mark.slow
TWO = fenced("x = 1") + fenced("rm -rf /", "sh") + fenced("assert x == 1")


@pytest.mark.parametrize(
    ("output", "block", "passed"),
    [
        pytest.param(TWO, "last", False, id="the last, which needs the first"),
        pytest.param(TWO, "all", True, id="all, as one program"),
        pytest.param(fenced("assert False") + fenced("x = 1"), "last", True, id="the last, whatever the first does"),
        pytest.param("import math\nassert math.floor(1.5) == 1", "first", True, id="the whole text, without a fence"),
        pytest.param(fenced("x = 1", ""), "first", True, id="a block without a name"),
    ],
)
def test_which_block_runs(sandbox: str, output: str, block: str, passed: bool) -> None:
    assert run(output, sandbox, block=block).passed is passed


@pytest.mark.parametrize(
    ("code", "tests", "passed", "exit_code"),
    [
        ("def f(): return 1", "assert f() == 1", True, 0),
        ("def f(): return 1", "assert f() == 2", False, 1),
        ("import sys\nsys.exit(0)", "assert True", False, 0),
        ("import sys\nif True:\n    sys.exit()", "assert True", False, 0),
        ("import sys\nsys.exit(3)", "assert True", False, 3),
        ("import sys\ndef exit_early(): sys.exit(4)\nexit_early()", "assert True", False, 4),
        ("def exit(way): return way", "assert exit('north') == 'north'", True, 0),
    ],
)
def test_a_program_that_skips_its_tests_fails(sandbox: str, code: str, tests: str, passed: bool, exit_code: int) -> None:
    found = run(fenced(code), sandbox, tests=tests, timeout_s=20)
    assert (found.passed, found.detail["exit_code"]) == (passed, exit_code)


def test_a_program_reads_what_it_is_given(sandbox: str) -> None:
    code = fenced("assert input() == 'one'\nassert input('more? ') == 'two'")
    assert run(code, sandbox, stdin="one\ntwo\n").passed is True
    assert run(code, sandbox, stdin="one\n").passed is False
    assert run(fenced("assert input() == 'a\\u2028b'"), sandbox, stdin="a\u2028b\n").passed is True
    assert run(code, sandbox).passed is False


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("while True:\n    pass", id="an endless loop"),
        pytest.param("import time\ntime.sleep(1000)", id="an endless sleep"),
        pytest.param("while True:\n    print('x' * 100_000)", id="endless output"),
        pytest.param("while True:\n    try:\n        1 / 0\n    except Exception:\n        pass", id="endless exceptions"),
    ],
)
def test_what_never_ends_is_ended(sandbox: str, code: str) -> None:
    found = run(fenced(code), sandbox, timeout_s=0.5)
    assert (found.passed, found.detail["timed_out"], found.detail["exit_code"]) == (False, True, None)
    assert _left_over() == []


def _left_over() -> list[str]:
    """Return our processes that a sandbox should have ended."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            words = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if "main.py" in words or "bwrap" in words or "monty" in words:
            found.append(words)
    return found


# --- walls


def never_well(found: oa.Score) -> bool:
    """Return True if the code failed, or if monty reported it as unsupported."""
    return found.passed is False or (found.error_type == "unsupported_program" and found.value is None)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("open('/etc/passwd').read()", id="a file of the system"),
        pytest.param("import os\nassert os.listdir('/root') is not None", id="a home"),
        pytest.param("import os\nassert os.listdir('/home')", id="other homes"),
        pytest.param("open('/proc/1/environ', 'rb').read().index(b'PYTEST')", id="the environment of a process"),
        pytest.param("open('/usr/escaped', 'w')", id="a new file in the system"),
        pytest.param("open('/main.py', 'w')", id="its own text"),
        pytest.param("open('/dev/escaped', 'w')", id="a new device"),
        pytest.param("import os\nos.mkdir('/escaped')", id="a new folder"),
        pytest.param("import os\nos.setuid(0)", id="to be root"),
        pytest.param("import os\nos.chroot('/tmp')", id="another root"),
        pytest.param("import os\nassert os.getuid() == 0", id="being root"),
        pytest.param("import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0", id="a namespace of its own"),
        pytest.param("import ctypes\nassert ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0", id="a mount"),
        pytest.param("import os\nassert len(os.listdir('/proc/self/fd')) > 4", id="open files of ours"),
        pytest.param("import os\nassert [p for p in os.listdir('/proc') if p.isdigit() and int(p) > 50]", id="other processes"),
        pytest.param("import os\nos.kill(os.getppid() + 100, 9)", id="the end of another process"),
        pytest.param("import otel_agenteval", id="our own package"),
        pytest.param("import ctypes, os\nassert not ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)", id="ptrace", marks=SLOW),
        pytest.param("import os\nos.symlink('/etc/passwd', '/tmp/l')\nopen('/tmp/l').read()", id="a link to a file outside"),
        pytest.param("import os\nos.symlink('/', '/tmp/r')\nopen('/tmp/r/escaped', 'w')", id="a link to the root"),
        pytest.param("import os\nassert os.listdir('/proc/1/root/home')", id="the root of another process"),
        pytest.param("import os\nos.link('/usr/bin/env', '/tmp/env')", id="a hard link"),
    ],
)
def test_there_is_no_way_out(sandbox: str, code: str) -> None:
    assert never_well(run(fenced(code), sandbox, timeout_s=20))


def test_much_output_is_not_kept(sandbox: str) -> None:
    before = psutil.Process().memory_info().rss
    code = "import sys\nfor _ in range(128):\n    print('x' * 2**20)\n    print('x' * 2**20, file=sys.stderr)"
    found = run(fenced(code), sandbox, timeout_s=20)
    assert psutil.Process().memory_info().rss - before < 100 * 2**20
    assert len(str((found.detail or {}).get("stderr", ""))) <= 1_000


def test_each_block_has_a_result_of_its_own(sandbox: str) -> None:
    output = "\n".join(fenced(code) for code in ("print(1)", "1 / 0", *["print(3)"] * 10))
    found = run(output, sandbox, block="each")
    assert (found.passed, [one["exit_code"] for one in found.detail["blocks"]]) == (False, [0, 1, *[0] * 8])
    assert "ZeroDivisionError" in found.detail["stderr"]
    assert len(run(fenced("raise ValueError('x' * 100_000)"), sandbox).detail["stderr"]) == 1_000


def test_tests_that_are_given_decide(sandbox: str) -> None:
    code = fenced("def total(items):\n    return sum(items)")
    assert run(code, sandbox, tests="assert total([1, 2]) == 3").passed
    turn = oa.Turn.from_dict({"output": code, "references": {"tests": "assert total([]) == 1"}})
    assert oa.get_metric("code_code_execution", sandbox=sandbox).evaluate(turn).passed is False


def test_the_environment_stays_outside(sandbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_SECRET", "hush")
    assert never_well(run(fenced("import os\nassert 'hush' in str(dict(os.environ))"), sandbox))


def test_what_is_written_stays_inside(sandbox: str) -> None:
    name = f"/tmp/escaped-{uuid.uuid4().hex}"
    run(fenced(f"with open('{name}', 'w') as file:\n    file.write('x')"), sandbox)
    assert not Path(name).exists()


def test_there_is_no_network(sandbox: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        assert never_well(run(fenced(f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)"), sandbox))
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import os\nwhile True:\n    os.fork()", id="processes that double"),
        pytest.param("import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        time.sleep(60)", id="many processes"),
        pytest.param("import threading, time\nfor _ in range(200):\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
                     id="many threads"),
        pytest.param("x = 'a' * (4 * 2**30)", id="much memory at once"),
        pytest.param("x = []\nwhile True:\n    x.append('a' * 1_000_000)", id="much memory bit by bit"),
        pytest.param("x = 10 ** 10 ** 10", id="a large number"),
        pytest.param("def f():\n    return f()\nf()", id="a call without end"),
        pytest.param("for i in range(10_000):\n    with open(f'/tmp/{i}', 'w') as file:\n        file.write('x' * 900_000)", id="many files"),
        pytest.param("with open('/tmp/x', 'w') as file:\n    file.write('x' * 10_000_000)", id="a large file"),
        pytest.param("import ctypes\nctypes.string_at(0)", id="a crash"),
    ],
)  # fmt: skip
def test_what_grows_without_end_is_stopped(sandbox: str, code: str) -> None:
    assert never_well(run(fenced(code), sandbox, timeout_s=4))
    assert _left_over() == []


def test_what_is_left_behind_ends_with_the_program(sandbox: str) -> None:
    run(fenced("import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)"), sandbox)
    assert _left_over() == []


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("def g():\n    yield 1", id="generators"),
        pytest.param("class A(dict):\n    pass", id="inheritance"),
        pytest.param("import heapq", id="a module"),
        pytest.param("compile('1', '', 'eval')", id="a built-in"),
        pytest.param("raise SystemExit(2)", id="an exit code by exception"),
    ],
)
def test_what_monty_lacks_is_no_fault_of_the_program(code: str) -> None:
    if "monty" not in sandboxes.usable():
        pytest.skip("monty does not work on this machine")
    found = run(fenced(code), "monty")
    assert (found.status, found.error_type, found.value) == ("error", "unsupported_program", None)


# --- trying it out

OPEN_DOOR = """#!{python} -I
import json, os, sys
args = sys.argv[1:]
code = os.read(int(args[args.index("--ro-bind-data") + 1]), 1 << 20)
try:
    exec(code)
    exit_code = 0
except BaseException:
    exit_code = 1
os.write(int(args[args.index("--json-status-fd") + 1]), json.dumps({{"exit-code": exit_code}}).encode())
"""


@pytest.fixture
def other_bwrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Replace bubblewrap with another program that an unprivileged user can run."""
    sandboxes.usable.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)

        def place(text: str) -> None:
            path = Path(folder, "bwrap")
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
            monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

        yield place
    sandboxes.usable.cache_clear()


needs_linux = pytest.mark.skipif(
    sys.platform != "linux" or not Path("/usr/bin/python3").exists(), reason="bubblewrap is for Linux"
)


@needs_linux
def test_a_sandbox_without_walls_is_not_used(other_bwrap: Any) -> None:
    other_bwrap(OPEN_DOOR.format(python="/usr/bin/python3"))
    assert sandboxes.run("bubblewrap", "print(1)", "", 20).exit_code == 0  # it runs programs, and that is all
    assert "bubblewrap" not in sandboxes.usable()
    assert run(PYTHON, "bubblewrap").error_type == "sandbox_unavailable"


@needs_linux
def test_a_sandbox_that_does_not_start_is_not_used(other_bwrap: Any) -> None:
    other_bwrap("#!/bin/sh\nexit 1\n")
    assert "bubblewrap" not in sandboxes.usable()
    with pytest.raises(MetricError, match="could not start"):
        sandboxes.run("bubblewrap", "print(1)", "", 20)


def test_sandboxes_without_their_program_are_not_used(other_bwrap: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("MONTY_BIN", "/nonexistent/monty")
    assert sandboxes.usable() == ()


# --- all of them


@pytest.mark.parametrize("name", NAMES)
def test_absent_and_endless_outputs_are_skipped(name: str) -> None:
    metric = get_metric(name, **({"sandbox": "auto"} if name == "code_code_execution" else {"language": "sql"}))
    assert metric.evaluate(oa.Turn()).detail == {"reason": "missing:output"}
    assert metric.evaluate(oa.Turn(output="x" * (2**20 + 1))).detail == {"reason": "too_long"}


# --- what a judge says of the code

JUDGED = ("llm_code_readability", "llm_code_correctness")


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize(("said", "value", "passed"), [(3, 0.3, False), ("5", 0.5, True)])
def test_a_judge_rates_code_out_of_ten(models: ScriptedModels, name: str, said: Any, value: float, passed: bool) -> None:
    turn = oa.Turn(input="add two numbers", output=fenced("print(1 + 1)"))
    score = models.score(name, turn, {"score": said, "reason": "so"})
    assert (score.status, score.value, score.passed, score.explanation) == ("ok", pytest.approx(value), passed, "so")
    assert fenced("print(1 + 1)") in models.asked[0]
    if name == "llm_code_readability":
        assert score.detail["measured"]["deepest_nesting"] == 0
        assert "one_letter_names" in models.asked[0]


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (None, "missing:output"),
        ("words", "no_code"),
        (fenced(""), "no_code"),
        ("x = 1\n" * 200_000, "too_long"),
        (PYTHON, "no_judge"),
    ],
    ids=["no output", "words", "an empty fence", "too much", "no judge"],
)
def test_nobody_is_asked_about_code_that_is_not_there(name: str, output: str | None, reason: str) -> None:
    score = get_metric(name).evaluate(oa.Turn(input="do it", output=output))
    assert (score.status, score.detail["reason"]) == ("skipped", reason)
    assert name == "llm_code_readability" or get_metric(name).evaluate(oa.Turn(output=output)).detail["reason"] == "missing:input"


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("reply", [{}, {"score": True}, {"score": "good"}, {"issues": []}])
def test_a_rating_that_cannot_be_read_is_an_error(models: ScriptedModels, name: str, reply: Any) -> None:
    turn = oa.Turn(input="do it", output=fenced("x = 1"))
    assert models.score(name, turn, reply).error_type == "invalid_reply"


def test_correctness_is_judged_by_the_specification(models: ScriptedModels) -> None:
    asked = oa.Turn(input="the-input", output=fenced("x = 1"))
    score = models.score("llm_code_correctness", asked, {"score": 9, "issues": ["no tests", " "]})
    assert score.detail == {"issues": ["no tests"], "reason": None}
    assert "the-input" in models.asked[0]
    models.score("llm_code_correctness", asked, {"score": 9}, spec="the-spec")
    assert "the-spec" in models.asked[0]
    assert "the-input" not in models.asked[0]
    models.score("llm_code_correctness", oa.Turn(output=fenced("x = 1"), references={"spec": "of-the-case"}), {"score": 9})
    assert "of-the-case" in models.asked[0]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("", {"lines": 0}),
        (
            "x = 1\n\n# why\ny = 2\n",
            {"lines": 3, "longest_line": 5, "comments": 0.333, "deepest_nesting": 0, "one_letter_names": 1.0},
        ),
        ("if a:\n  if b:\n    go()\n", {"deepest_nesting": 2}),
        ("func main() {\n\tfor {\n\t\tif ok {\n\t\t\trun()\n\t\t}\n\t}\n}\n", {"deepest_nesting": 3, "comments": 0.0}),
    ],
)
def test_what_is_counted_in_code(code: str, expected: dict[str, Any]) -> None:
    found = judges.measured([Block(code, "text")])
    assert "complexity" not in found
    assert {name: found[name] for name in expected} == expected


BRANCHES = "def f(a, b):\n" + "".join(f"    if a == {n} and b:\n        return {n}\n" for n in range(6)) + "    return b\n"


def test_of_python_branches_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("radon")
    simple, branches = Block("def g(x):\n    return x\n", "python"), Block(BRANCHES, None)
    both = judges.measured([simple, branches])
    assert (both["complexity"], both["most_complex_function"]) == (7.0, 13)
    assert both["maintainability_index"] < judges.measured([simple])["maintainability_index"]
    broken = judges.measured([Block("def (:", "python"), Block("{}", None), Block("x\0", "py"), simple])
    assert (broken["complexity"], "maintainability_index" in judges.measured([Block("{}", None)])) == (1.0, False)
    monkeypatch.setattr(judges, "installed", lambda name: False)
    assert "complexity" not in judges.measured([simple])
