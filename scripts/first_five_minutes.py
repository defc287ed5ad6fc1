"""Follow docs/get-started/quickstart.md with an empty home directory and empty caches, and measure each step.

    python scripts/first_five_minutes.py            prints the times; exit status 1 if the steps take more than five minutes
    python scripts/first_five_minutes.py --write    also writes the times and outputs to the page

Needs network access. The model is a script (``tests/support/fake_llm.py``), so its response time isn't included.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)] if str(ROOT) not in sys.path else []

from scripts import quickstarts  # noqa: E402 - found only now
from scripts.test_wheel import built  # noqa: E402 - the same

PAGE = ROOT / "docs" / "get-started" / "quickstart.md"
LIMIT, COMMANDS = 300, 3
"""Maximum seconds and commands until the first score."""
BAR = "\\|"  # an escaped pipe in a table cell
_TIMES = re.compile(r"(?<=<!-- times -->\n).*?(?=<!-- end of times -->)", re.DOTALL)


def go_through(folder: Path, wheel: Path) -> tuple[list[tuple[str, float]], quickstarts.Page, list[str]]:
    """Run the commands of the page. Return the seconds of each step, the page, and the outputs.

    Raises:
        RuntimeError: If a step fails.
    """
    page = quickstarts.page_of(PAGE)
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    started = time.monotonic()
    quickstarts.make_environment(page, wheel, home, more={"HOME": str(home), "PIP_NO_CACHE_DIR": "1"})
    times = [(page.installs[0], time.monotonic() - started)]
    printed = quickstarts.run(page, home / "venv" / "bin", work, timed=times)
    return times, page, printed


def table(times: Sequence[tuple[str, float]]) -> str:
    rows = [
        f"| `{command.splitlines()[0].strip().replace('|', BAR)}`{' …' if len(command.splitlines()) > 1 else ''} | {seconds:.0f} s |"
        for command, seconds in times
    ]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return "\n".join(
        [
            "",
            "| Command | Time |",
            "|---|---|",
            *rows,
            f"| **together**, with Python {python} on two cores | **{sum(seconds for _, seconds in times):.0f} s** |",
            "",
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write times and outputs to the page")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as folder:
        try:
            _, wheel = built(Path(folder) / "wheel")
            times, page, printed = go_through(Path(folder), wheel)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 1
    print(table(times))
    wrong = "" if args.write else quickstarts.difference(page, printed)
    if args.write:
        PAGE.write_text(_TIMES.sub(lambda _: table(times), quickstarts.written(page, printed)), encoding="utf-8")
    print(wrong, end="")
    return int(bool(wrong) or sum(seconds for _, seconds in times) > LIMIT or len(times) > COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
