"""Measure how many faults are found that were put into recordings, and update the figures in the guide.

Run ``python scripts/first_faults.py`` (two minutes). A slow test fails if the guide has other figures.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1]
sys.path.insert(0, str(FOLDER))

import otel_agenteval as oa  # noqa: E402
from tests.support.found_faults import Found, clean, found_in_spans, found_in_turns, unpacked, unpacked_corpora  # noqa: E402

GUIDE = FOLDER / "docs" / "guides" / "find-the-first-fault.md"
_TABLE = re.compile(r"(?<=<!-- faults -->\n\n).*?(?=\n\n<!-- /faults -->)", re.DOTALL)
_ROW = re.compile(r"^(\| (`.*?) \| .* \| )[^|]+ \|$", re.MULTILINE)
MOST = 40


def with_figures(text: str, *found: Found) -> str:
    """Return the guide with these figures in its table of fault kinds."""

    def row(match: re.Match[str]) -> str:
        return f"{match[1]}{_share(found, re.findall('`(.*?)`', match[2]))} |"

    kinds = {kind for one in found for kind in one.of}
    table, _, _ = _TABLE.findall(text)[0].rpartition("\n\n")
    right, of = (sum(one[place][kind] for one in found for kind in kinds) for place in (0, 1))
    total = f"{right} of {of} faults ({right / of:.0%}) were found with the correct kind and step.".replace("%", " %")
    return _TABLE.sub(lambda _: f"{_ROW.sub(row, table)}\n\n{total}", text)


def _share(found: tuple[Found, ...], kinds: list[str]) -> str:
    right, of = (sum(one[place][kind] for one in found for kind in kinds) for place in (0, 1))
    return f"{right} of {of}" if of else "–"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = unpacked(folder)
        turns = found_in_turns([turn for turn, _ in clean(oa.load_turns(paths))], MOST)
        spans = found_in_spans([*paths, *unpacked_corpora(folder)], MOST, folder)
    for label, found in (("turns", turns), ("spans", spans)):
        for kind in found.of:
            print(f"{label} {kind:20} {found.found[kind]:4} of {found.of[kind]}")
    GUIDE.write_text(with_figures(GUIDE.read_text(encoding="utf-8"), turns, spans), encoding="utf-8")


if __name__ == "__main__":
    main()
