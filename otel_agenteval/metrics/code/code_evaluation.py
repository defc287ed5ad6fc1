"""Whether there is code in the output, in which language, and whether it runs.

Code is the content of fenced Markdown blocks. Without any fence it is the whole output, if that is clearly code: a JSON
object or array, SQL (by ``code_is_sql``), Python with more than bare expressions, or two lines with the keywords of one
language. "hello" and "Answer: Paris" parse as Python, but are not code.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Gt, Le, MinLen
from pydantic import AfterValidator

from ...core import jsonio
from ...core.errors import MetricError
from ...core.turn import Turn
from ..lib import sandbox as sandboxes
from ..lib.code import OUTPUT_CHARS, Block, code_blocks, language_name, languages
from ..lib.references import reference
from ..registry import Result, metric, skip

Language = Annotated[str, MinLen(1), AfterValidator(language_name)]


@metric(needs=("output",), boolean=True, aliases=("trusys:code-language",), heavy=True)
def code_code_language(turn: Turn, *, language: Language, detector: Literal["fence", "heuristic"] = "fence") -> Result:
    """Whether all code in the output is in one language.

    Code is every fenced block that is not empty; without any fence the whole output, if it is clearly code: a JSON object
    or array, SQL (by ``code_is_sql``), Python with a statement that is more than a bare expression or annotation, or two lines
    with keywords of one language. No code fails.

    The word after the fence names the language. A block without one is Python if it parses as such with more than bare
    expressions, JSON if it is an object or array, SQL by ``code_is_sql``, else what its keywords say (bash, C, C++, C#, CSS, Go,
    HTML, Java, JavaScript, Kotlin, PHP, Python, Ruby, Rust, TypeScript, XML), else Python if it parses at all. Parsers see at
    most 100 000 characters of such blocks, 200 blocks are looked at, and an output over 1 MiB is skipped with ``too_long``.

    Parameters:
        language: required; any name, in any case. Short ones count as the long ones: ``py``, ``js``, ``ts``, ``sh``, ``yml``,
            ``c++``, ``c#``, ``golang``, ``rb``, ``rs``, ``kt``.
        detector: ``fence`` believes the word after the fence; ``heuristic`` goes by the code alone.

    Detail: ``languages``, of each block in order (null where unknown).

    Source: Trusys code-language.
    """
    output = turn.output or ""
    if len(output) > OUTPUT_CHARS:
        return skip("too_long")
    found = languages(code_blocks(output), labels=detector == "fence")
    return Result(bool(found) and all(one == language for one in found), detail={"languages": found})


@metric(needs=("output",), boolean=True, aliases=("trusys:contains-code-language",), heavy=True)
def code_contains_code_language(turn: Turn, *, language: Language) -> Result:
    """Whether any code in the output is in a language.

    What code is, and in which language, is as in ``code_code_language``. No code fails; an output over 1 MiB is skipped with
    ``too_long``.

    Parameters:
        language: required; as in ``code_code_language``.

    Detail: ``languages``, of each block in order (null where unknown).

    Source: Trusys contains-code-language.
    """
    output = turn.output or ""
    if len(output) > OUTPUT_CHARS:
        return skip("too_long")
    found = languages(code_blocks(output))
    return Result(language in found, detail={"languages": found})


def _only_python(name: str) -> str:
    if language_name(name) != "python":
        raise ValueError("the sandboxes run Python only")
    return "python"


_MOST_PROGRAMS = 10


@metric(needs=("output",), references=("tests",), boolean=True, extra="code", aliases=("trusys:code-execution",), heavy=True)
def code_code_execution(
    turn: Turn,
    *,
    language: Annotated[str, AfterValidator(_only_python)] = "python",
    timeout_s: Annotated[float, Gt(0), Le(60)] = 5.0,
    sandbox: Literal["auto", "monty", "bubblewrap"] | None = None,
    stdin: str = "",
    block: Literal["first", "all", "last", "each"] = "first",
    tests: str | None = None,
) -> Result:
    """Whether the code in the output runs, and passes tests where there are some: exit status 0 within its time, and no exception.

    Runs programs that a model wrote, so it is off until a sandbox is configured, and skipped (``no_sandbox``) until then.
    Nothing ever runs without one. It takes as long as the program: keep it out of the inline metrics.

    Code is as in ``code_code_language``; only blocks in ``language`` are run, and an output without one fails. An output over
    1 MiB is skipped with ``too_long``. A sandbox that fails is an error, never a failed program.

    Sandboxes: ``bubblewrap`` is the system's CPython (Linux; ``bwrap`` 0.8 or newer and ``prlimit`` must be installed, and user
    namespaces allowed): no network, no files but ``/usr`` and 16 MiB of scratch space, 32 processes of 512 MiB each, an
    unprivileged user, an empty environment, no packages but the system's. ``monty`` (extra ``[code]``) is an interpreter of a
    subset of Python with 512 MiB of memory and no access to the operating system; a program that uses what it lacks (generators,
    inheritance, most of the standard library) is an error (``unsupported_program``). Both are tested once per process; one
    that does not isolate programs is not used.

    Parameters:
        language: ``python``.
        timeout_s: seconds of wall-clock time, at most 60; a program that takes longer fails.
        sandbox: ``auto`` (bubblewrap, else monty, else skipped with ``no_sandbox``), or one of the two, which is an error where it
            cannot be used.
        stdin: what the program reads from standard input (in monty only through ``input()``).
        block: which block runs; ``all`` makes one program of all of them, in order; ``each`` runs each by itself, at most 10 of them, and all have to pass.
        tests: code that is run behind the program, in the same file, and fails by an exception: ``assert total([1, 2]) == 3``. Default the turn's reference ``tests``,
            else none.

    Detail: ``exit_code`` (null after a timeout), ``stderr`` (its last 1 000 characters), ``timed_out``, ``sandbox``; with ``each`` those of the first block that failed, or
    of the last one, and ``blocks`` with ``exit_code`` and ``timed_out`` of each. Nothing when there was no code.

    Source: Trusys code-execution.
    """
    if sandbox is None:
        return skip("no_sandbox")
    output = turn.output or ""
    if len(output) > OUTPUT_CHARS:
        return skip("too_long")
    chosen = _choose(sandbox)
    if chosen is None:
        return skip("no_sandbox")
    programs = _programs(output, language, block)
    if not programs:
        return Result(False, explanation=f"there is no {language} code in the output")
    checks = jsonio.text_of(reference(turn, tests, "tests"))
    outcomes = [sandboxes.run(chosen, f"{program}\n\n{checks}" if checks else program, stdin, timeout_s) for program in programs]
    shown = next((outcome for outcome in outcomes if outcome.exit_code != 0), outcomes[-1])
    detail: dict[str, Any] = {
        "exit_code": shown.exit_code,
        "stderr": shown.stderr,
        "timed_out": shown.timed_out,
        "sandbox": chosen,
    }
    if block == "each":
        detail["blocks"] = [{"exit_code": outcome.exit_code, "timed_out": outcome.timed_out} for outcome in outcomes]
    return Result(shown.exit_code == 0, detail=detail)


def _choose(wanted: Literal["auto", "monty", "bubblewrap"]) -> sandboxes.Name | None:
    usable = sandboxes.usable()
    if wanted == "auto":
        return usable[0] if usable else None
    if wanted not in usable:
        sandboxes.require_package(wanted)
        raise MetricError("sandbox_unavailable", f"the sandbox {wanted} cannot be used on this machine")
    return wanted


def _programs(output: str, language: str, block: Literal["first", "all", "last", "each"]) -> list[str]:
    blocks: list[Block] = code_blocks(output)
    texts = [one.text for one, found in zip(blocks, languages(blocks), strict=True) if found == language]
    if block == "all":
        return ["\n".join(texts)] if texts else []
    return {"first": texts[:1], "last": texts[-1:], "each": texts[:_MOST_PROGRAMS]}[block]
