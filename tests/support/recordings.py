"""Access to single recordings in the packed archives."""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "data" / "corpus.tar.xz"
CORPUS_B = CORPUS.with_name("corpus_b.tar.xz")


@cache
def recording(name: str) -> bytes:
    """Return the content of a recording, such as ``pydantic_ai-native_v6/s2.jsonl``."""
    with tarfile.open(CORPUS) as corpus:
        member = corpus.extractfile(name)
        assert member is not None, name
        return member.read()


def unpack(name: str, folder: Path) -> Path:
    """Write a recording to ``folder``."""
    path = folder / name.replace("/", "-")
    path.write_bytes(recording(name))
    return path


def unpack_all(archive: Path, folder: Path) -> None:
    """Unpack all recordings of an archive, with their truth files."""
    with tarfile.open(archive) as packed:
        # newer Python versions require a filter, older ones don't support it
        packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


@cache
def files_in(archive: str) -> dict[str, str]:
    """Return the text of every file in an archive of ``tests/data``, by path in the archive."""
    with tarfile.open(CORPUS.parent / archive) as packed:
        return {member.name: packed.extractfile(member).read().decode() for member in packed.getmembers() if member.isfile()}  # type: ignore[union-attr]
