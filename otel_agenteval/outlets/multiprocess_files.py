"""Writer for the files of ``prometheus_client``'s multi-process mode.

Its ``MultiProcessCollector`` reads them. The format supports no exemplars. Estimates aren't written, because those of several
processes can't be added.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.utils import floatToGoString

from ..core.lineage import Process
from ..core.semconv import ESTIMATES, prometheus_name
from ..core.telemetry import Family, Labels

OURS = "agenteval"
"""Part of the names of otel-agenteval's files."""


def write_multiprocess_files(folder: Path, process: Process, families: Sequence[Family]) -> None:
    """Write a process's metrics, and remove the gauges of ended ones. Can raise OSError."""
    by_file: dict[str, list[Family]] = {}
    for family in families:
        if family.instrument.name not in ESTIMATES:
            instrument = family.instrument
            name = instrument.kind if instrument.kind != "gauge" else f"gauge_live{instrument.over}"
            by_file.setdefault(name, []).append(family)
    for kind, some in by_file.items():
        path = folder / f"{kind}_{OURS}-{process.name}.db"
        beside = path.with_suffix(f".{os.getpid()}.new")
        with suppress(FileNotFoundError):
            beside.unlink()
        values = MmapedDict(str(beside))  # type: ignore[no-untyped-call]
        for family in some:
            for key, value in _samples(family):
                values.write_value(key, value, 0.0)  # type: ignore[no-untyped-call]
        values.close()  # type: ignore[no-untyped-call]
        beside.replace(path)
    for path in folder.glob(f"gauge_*_{OURS}-*.db"):
        writer = Process.named(path.stem.rpartition(f"{OURS}-")[2])
        is_over = (
            path.name.partition(f"_{OURS}")[0] not in by_file if writer == process else writer is not None and not writer.is_alive
        )
        if is_over:
            path.unlink(missing_ok=True)


def is_ours(path: Path) -> bool:
    return f"_{OURS}-" in path.name


def _samples(family: Family) -> Iterator[tuple[str, float]]:
    instrument = family.instrument
    whole = prometheus_name(instrument)
    name = whole.removesuffix("_total")

    def key(sample: str, labels: Labels, *more: tuple[str, str]) -> str:
        named = (*zip(instrument.attributes, labels, strict=True), *more)
        return mmap_key(name, sample, [one for one, _ in named], [value for _, value in named], instrument.description)

    for labels, value in family.values.items():
        yield key(whole, labels), value
    for labels, found in family.distributions.items():
        yield key(f"{name}_sum", labels), found.sum
        for bound, count in zip((*instrument.buckets, float("inf")), found.counts, strict=True):
            yield key(f"{name}_bucket", labels, ("le", str(floatToGoString(bound)))), count  # type: ignore[no-untyped-call]
