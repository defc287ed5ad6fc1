"""The ``code_`` metrics check the programming language of code in the output, or run the code. If the output has more than
1,048,576 characters, all metrics on this page are skipped, usually as ``too_long``.

Code is the content of fenced Markdown blocks. An output without a fenced block counts as code only if it is one of these:

- a JSON object or array
- SQL, as ``code_is_sql`` defines it
- Python that contains more than expressions and annotations
- text with keywords of one programming language in at least two lines

Without a fenced block, "hello" and "Answer: Paris" don't count as code, although they are valid Python.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Literal

from annotated_types import Gt, Le, MinLen
from pydantic import AfterValidator

from ...core import jsonio
from ...core.errors import MetricError
from ...core.turn import Turn
from ..lib import sandbox as sandboxes
from ..lib.code import OUTPUT_CHARS, Block, code_blocks, language_name, languages
from ..lib.values import reference
from ..registry import Result, metric, skip

Language = Annotated[str, MinLen(1), AfterValidator(language_name)]


@metric(needs=("output",), boolean=True, aliases=("trusys:code-language",), traits=("heavy",))
def code_code_language(turn: Turn, *, language: Language, detector: Literal["fence", "heuristic"] = "fence") -> Result:
    """Check that all code in the output is in a given language.

    The metric reads every fenced block that isn't empty. If the output doesn't contain fenced blocks, the metric reads the whole
    output. An output without code fails. The word after the opening fence names the language. If this word is missing, the first
    matching rule determines the language:

    - Python, if the block is valid Python and contains more than expressions and annotations
    - JSON, if the block is an object or array
    - SQL, as ``code_is_sql`` defines it
    - the language of the block's keywords: bash, C, C++, C#, CSS, Go, HTML, Java, JavaScript, Kotlin, PHP, Python, Ruby, Rust,
      TypeScript, or XML
    - YAML, if the block contains only lines such as ``name: value`` (Python parses these lines as annotations)
    - Python, if the block is valid Python

    The metric reads at most 200 blocks, and parses at most 100,000 characters as Python or SQL.

    Parameters:
        language: Name of the language. Case is ignored. You can also use short names: ``py``, ``js``, ``ts``, ``sh``, ``yml``,
            ``c++``, ``c#``, ``golang``, ``rb``, ``rs``, and ``kt``.
        detector: ``fence`` uses the word after the opening fence. ``heuristic`` ignores this word, and applies the rules above.

    Detail: ``languages``, the languages of the code blocks in order. An unknown language is null.
    """
    if len(output := turn.output or "") > OUTPUT_CHARS:
        return skip("too_long")
    found = languages(code_blocks(output), labels=detector == "fence")
    return Result(bool(found) and all(one == language for one in found), detail={"languages": found})


@metric(needs=("output",), boolean=True, aliases=("trusys:contains-code-language",), traits=("heavy",))
def code_contains_code_language(turn: Turn, *, language: Language) -> Result:
    """Check that at least one code block in the output is in a given language.

    The rules of ``code_code_language`` determine the language. An output without code fails.

    Parameters:
        language: Name of the language. See ``code_code_language``.

    Detail: ``languages``, the languages of the code blocks in order. An unknown language is null.
    """
    if len(output := turn.output or "") > OUTPUT_CHARS:
        return skip("too_long")
    found = languages(code_blocks(output))
    return Result(language in found, detail={"languages": found})


def _only_python(name: str) -> str:
    if language_name(name) != "python":
        raise ValueError("must be python, the only supported language")
    return "python"


_MOST_PROGRAMS = 10


@metric(
    needs=("output",),
    references=("tests",),
    boolean=True,
    aliases=("trusys:code-execution",),
    extra="code",
    traits=("heavy",),
    version="2",
)
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
    """Check that Python code in the output exits with status 0 and passes your tests, if any.

    The metric runs programs that a model wrote, so it requires a sandbox. If ``sandbox`` is null, or if ``auto`` doesn't find a
    usable sandbox, the score is skipped as ``no_sandbox``. The evaluation takes as long as the program runs, so don't use this
    metric for live scoring.

    An output without Python blocks fails. If the sandbox itself fails, the score is an error.

    | sandbox | runs | limits |
    |---|---|---|
    | ``bubblewrap`` | CPython on Linux. Requires ``bwrap`` 0.8 or newer, ``prlimit``, and user namespaces | no privileges, no network, and none of your environment variables. Programs can read ``/usr``, write 16 MiB to ``/tmp`` (1 MiB per file), and run 32 processes or threads. Each process can use 512 MiB of memory |
    | ``monty`` (extra ``[code]``) | an interpreter for a subset of Python | 512 MiB of memory, and no access to the operating system |

    If a program in ``monty`` uses unsupported features, such as generators, inheritance, or most standard modules, the metric
    returns the error ``unsupported_program``. Before the first program runs, the metric tests the isolation of the sandboxes.

    Parameters:
        language: Language of the blocks that run. Only ``python`` is supported.
        timeout_s: Maximum run time of a program, in wall-clock seconds. A slower program fails.
        sandbox: ``auto`` selects bubblewrap or, if it isn't usable, monty. If you select a sandbox that isn't usable, the score is
            an error. With null, the score is skipped.
        stdin: Standard input of the program. In monty, programs can read it only with ``input()``.
        block: Python blocks to run. ``all`` runs all blocks as one program, in order. ``each`` runs the first 10 blocks separately,
            and all of these must pass.
        tests: Python code that runs after the program in the same file, such as ``assert total([1, 2]) == 3``. The metric fails
            if this code raises an exception, or if the program exits before this code runs. The default is the turn's reference ``tests``.

    Detail: ``exit_code`` (null after a timeout), ``stderr`` (its last 1,000 characters), ``timed_out``, and ``sandbox``. With
    ``block: each``, these keys describe the first block that failed or, if none failed, the last block. ``blocks`` lists the
    ``exit_code`` and ``timed_out`` of each block.
    """
    if sandbox is None:
        return skip("no_sandbox")
    if len(output := turn.output or "") > OUTPUT_CHARS:
        return skip("too_long")
    if (chosen := _usable_sandbox(sandbox)) is None:
        return skip("no_sandbox")
    blocks: list[Block] = code_blocks(output)
    texts = [one.text for one, found in zip(blocks, languages(blocks), strict=True) if found == language]
    if not texts:
        return Result(False, explanation=f"there is no {language} code in the output")
    programs = {"all": ["\n".join(texts)], "first": texts[:1], "last": texts[-1:], "each": texts[:_MOST_PROGRAMS]}[block]
    checks = jsonio.text_of(reference(turn, tests, "tests"))
    end = secrets.randbelow(100) + 100 if checks else 0  # random, so that a program can't exit early with this status
    tail = f"\n\n{checks}\n\n{sandboxes.EXIT[chosen].format(end)}\n" if checks else ""
    outcomes = [sandboxes.run(chosen, program + tail, stdin, timeout_s) for program in programs]
    codes = [0 if outcome.exit_code == end else outcome.exit_code for outcome in outcomes]
    failed = next((place for place, outcome in enumerate(outcomes) if outcome.exit_code != end), None)
    place = len(outcomes) - 1 if failed is None else failed
    shown = outcomes[place]
    detail: dict[str, Any] = {"exit_code": codes[place], "stderr": shown.stderr, "timed_out": shown.timed_out, "sandbox": chosen}
    if block == "each":
        detail["blocks"] = [{"exit_code": code, "timed_out": one.timed_out} for code, one in zip(codes, outcomes, strict=True)]
    skipped_tests = failed is not None and codes[place] == 0
    return Result(failed is None, explanation="the program exited before its tests" if skipped_tests else None, detail=detail)


def _usable_sandbox(wanted: Literal["auto", "monty", "bubblewrap"]) -> sandboxes.Name | None:
    usable = sandboxes.usable()
    if wanted == "auto":
        return usable[0] if usable else None
    if wanted not in usable:
        sandboxes.require_package(wanted)
        raise MetricError("sandbox_unavailable", f"sandbox: {wanted} isn't usable on this machine; set auto or another sandbox")
    return wanted
