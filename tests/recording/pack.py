"""Pack sets of recordings for the tests: ``python tests/recording/pack.py FOLDER [SET ...]`` writes ``tests/data/recordings/SET.tar.xz``.

The same files give the same bytes. A set whose recordings do not hold every fact says so in its truth.json:
``"floor": 98.5, "why": "the last answer is in no span"``.
"""

from __future__ import annotations

import lzma
import sys
import tarfile
from pathlib import Path

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


def pack(folder: Path) -> Path:
    """Write a set's archive."""
    target = RECORDINGS / f"{folder.name}.tar.xz"
    target.parent.mkdir(exist_ok=True)
    with lzma.open(target, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(folder.glob("*.json*")):
            entry = archive.gettarinfo(path, f"{folder.name}/{path.name}")
            entry.mtime = entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    return target


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    for found in sorted(Path(folder).iterdir()):
        if (found / "truth.json").exists() and (not names or found.name in names):
            sys.stdout.write(f"{pack(found)}\n")
