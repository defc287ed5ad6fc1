"""Loads ``scripts/fault_shim.c`` into a process, and switches its faults."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

from typing_extensions import Self

from tests.support.process import ROOT

HUNG = "on-a-hung-disk"
"""Files with this text in their names are affected by :meth:`Shim.silence` and :meth:`Shim.slow`."""
_SYNCS, _FILES, _SLOW_FILES = 1, 2, 3


class CannotBeHad(Exception):
    """Raised if this machine lacks a requirement of a row."""


class Shim:
    """The library, built in a folder.

    Attributes:
        env: environment variables for the process.

    Raises:
        CannotBeHad: If there is no C compiler.
    """

    def __init__(self, folder: Path) -> None:
        library = folder / "fault_shim.so"
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise CannotBeHad("no C compiler found")
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
        """Let every write and sync of these files hang."""
        self.set(hang=_FILES)

    mute = silence

    def slow(self, seconds: float) -> None:
        """Delay every write and sync of these files. ``seconds`` is ignored, and exists only for the common signature."""
        del seconds
        self.set(hang=_SLOW_FILES)

    def heal(self) -> None:
        """End all faults."""
        self.set()

    def close(self) -> None:
        """End all faults, and remove the switch."""
        self.set()
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
