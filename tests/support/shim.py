"""``scripts/fault_shim.c`` in a process, and the switch for what it does."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

from typing_extensions import Self

from tests.support.process import ROOT

HUNG = "on-a-hung-disk"
"""Part of the name of files that :meth:`Shim.silence` and :meth:`Shim.slow` are about."""
_SYNCS, _FILES, _SLOW_FILES = 1, 2, 3


class CannotBeHad(Exception):
    """This machine lacks what a row needs."""


class Shim:
    """The library, built in a folder.

    Attributes:
        env: variables of the process.

    Raises:
        CannotBeHad: there is no C compiler.
    """

    def __init__(self, folder: Path) -> None:
        library = folder / "fault_shim.so"
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise CannotBeHad("no C compiler")
        source = ROOT / "scripts" / "fault_shim.c"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
        switch = folder / "faults"
        switch.write_bytes(bytes(16))
        with switch.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 16)
        self.env = {"LD_PRELOAD": str(library), "FAULT_SHIM": str(switch), "FAULT_SHIM_FILES": HUNG}

    def set(self, *, offset: int = 0, hang: int = 0) -> None:
        """Move the clock by ``offset`` seconds, and let every sync hang."""
        self._map[:] = struct.pack("qq", offset, hang)

    def silence(self) -> None:
        """Let every write and sync of the files hang."""
        self.set(hang=_FILES)

    mute = silence

    def slow(self, seconds: float) -> None:
        """Delay every write and sync of the files; ``seconds`` is for the same signature as elsewhere."""
        del seconds
        self.set(hang=_SLOW_FILES)

    def heal(self) -> None:
        """Let everything go on."""
        self.set()

    def close(self) -> None:
        """Let everything go on, and forget the switch."""
        self.set()
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
