"""Measure the cost of each media metric, for the table in benchmarks/README.md (``gen_docs.py --measure media``)."""

from __future__ import annotations

import base64
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PAGE, PART = ROOT / "benchmarks" / "README.md", "costs"
TIMES = 5
CASES: Mapping[str, tuple[str, ...]] = {
    "photograph, 4000 x 3000, JPEG": (
        "code_image_sharpness", "code_image_exposure", "code_image_blank", "code_image_duplicate", "code_image_text_overlap", "llm_image_helpfulness",
    ),
    "video, 1280 x 720, 10 s, H.264": ("llm_video_visual_quality", "embed_video_response_relevance"),
    "call, 2 channels, 16 kHz, 60 s, WAV": (
        "code_audio_silence", "code_audio_clipping", "code_audio_talk_over", "llm_audio_interruption_handling",
    ),
}  # fmt: skip
"""Metrics to measure, by medium."""


def write_media(folder: Path) -> None:
    """Write the media. A file's name begins with the index of its case."""
    import numpy as np

    from tests.support import media

    for seed in (1, 2):
        large = np.kron(media.scenery(1000, 750, seed=seed), np.ones((4, 4, 1), np.uint8))
        (folder / f"0-{seed}").write_bytes(media.image(large, "JPEG", quality=85))
    scene = media.scenery(1280, 720)
    (folder / "1-1").write_bytes(media.video(np.roll(scene, 3 * n, axis=1) for n in range(250)))
    (folder / "2-1").write_bytes(media.sound(np.stack([media.tone(60), media.tone(60, hertz=300)])))


def attachments(folder: Path, case: str) -> list[dict[str, Any]]:
    place = list(CASES).index(case)
    files = sorted(folder.glob(f"{place}-*"))
    return [
        {"modality": ("image", "video", "audio")[place], "data": base64.b64encode(file.read_bytes()).decode()} for file in files
    ]


class Instant:
    """Judge and embedder that answer immediately."""

    def ask(self, *question: Any, **more: Any) -> dict[str, Any]:
        """Return a reply that is valid for all of these metrics."""
        dimensions = dict.fromkeys(("resolution", "clarity", "colour_accuracy", "artifact_freedom"), 5)
        return {"score": 5, "reasoning": "", "reason": "", "scores": dimensions, "interruptions": []}

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0]] * len(texts)


def measure(name: str, case: str, folder: Path) -> tuple[float, float, float]:
    """Return the milliseconds of a score (best of several), the MB added to this process, and the peak MB of the decoder process."""
    import otel_agenteval as oa

    given = attachments(folder, case)
    turn = oa.Turn.from_dict({"input": "?", "output": "A landscape.", "attachments": given if "duplicate" in name else given[:1]})
    bound, model = oa.get_metric(name), Instant()
    small = oa.Turn.from_dict({"input": "?", "output": "A landscape."})
    bound.evaluate(small, judge=model, embedder=model)
    before = peak()
    best = float("inf")
    for _ in range(TIMES):
        start = time.perf_counter()
        score = bound.evaluate(turn, judge=model, embedder=model)
        best = min(best, time.perf_counter() - start)
        assert score.status == "ok" or score.detail["reason"] == "no_writing", score
    return 1000 * best, peak() - before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def peak() -> float:
    """Return this process's peak resident memory in MB. ``getrusage`` would start with the parent's peak."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def table() -> Iterator[str]:
    """Yield the lines of the table. Each metric is measured in a separate process."""
    yield "| Medium | Metric | ms | MB in this process | MB in the decoder |"
    yield "|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        write_media(Path(folder))
        for case, name in ((case, name) for case, names in CASES.items() for name in names):
            command = [sys.executable, __file__, name, case, folder]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            ms, here, beside = map(float, done.stdout.split())
            yield f"| {case} | `{name}` | {ms:.0f} | {here:.0f} | {f'{beside:.0f}' if beside else '–'} |"


if __name__ == "__main__":  # one measurement, for table()
    print(*measure(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
