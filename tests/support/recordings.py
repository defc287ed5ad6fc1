"""Single recordings out of the packed corpus."""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "data" / "corpus.tar.xz"
CORPUS_B = CORPUS.with_name("corpus_b.tar.xz")


@cache
def recording(name: str) -> bytes:
    """The bytes of a recording, such as ``pydantic_ai-native_v6/s2.jsonl``."""
    with tarfile.open(CORPUS) as corpus:
        member = corpus.extractfile(name)
        assert member is not None, name
        return member.read()


def unpack(name: str, folder: Path) -> Path:
    """The recording as a file in ``folder``."""
    path = folder / name.replace("/", "-")
    path.write_bytes(recording(name))
    return path


def unpack_all(archive: Path, folder: Path) -> None:
    """Every recording of an archive, with the truth beside it."""
    with tarfile.open(archive) as packed:
        # newer versions of Python ask for a filter, older ones know none
        packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


@cache
def files_in(archive: str) -> dict[str, str]:
    """The text of every file in an archive of ``tests/data``, by its path inside."""
    with tarfile.open(CORPUS.parent / archive) as packed:
        return {member.name: packed.extractfile(member).read().decode() for member in packed.getmembers() if member.isfile()}  # type: ignore[union-attr]
