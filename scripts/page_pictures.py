"""Take screenshots of the web UI and the HTML report in Chromium, for the documentation.

    python scripts/page_pictures.py            # rewrites docs/images/page-*.png, and digests of their text
    python scripts/page_pictures.py --check    # compares digests only; exit status 1 if a picture is out of date

The turn list, the steps and the report show recorded agents. The turn shows the agent of ``otel-agenteval demo``. The fleet and the
comparison show generated turns of three days. Incidents come from ``tests/support/incidents.py``.
Pictures have two pixels per CSS pixel, the light theme, and 256 colors. Needs the extra ``dev``.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from otel_agenteval import instrument  # noqa: E402 - of this checkout
from otel_agenteval.cli import demo, ui  # noqa: E402
from otel_agenteval.cli.main import main as command  # noqa: E402
from otel_agenteval.config.loader import load_config  # noqa: E402
from otel_agenteval.core import jsonio  # noqa: E402
from otel_agenteval.evaluation.first_fault import Fault  # noqa: E402
from otel_agenteval.page.api import Options  # noqa: E402
from tests.support.browser import chromium  # noqa: E402
from tests.support.incidents import INCIDENTS, SINCE, play  # noqa: E402
from tests.support.page import ServedPage  # noqa: E402
from tests.support.stored_turns import filled, some_turns  # noqa: E402

IMAGES = ROOT / "docs" / "images"
RECORDING = ROOT / "tests" / "data" / "recordings" / "ag2-agent.tar.xz"
DIGESTS = IMAGES / "digests.json"
START = 1_795_340_270 * 10**9
"""Start of the demo's first turn, in nanoseconds since the Unix epoch."""


def digest_of(text: str) -> str:
    """Return a digest of a text without the line about missing summaries, which depends on the machine's speed."""
    text = "\n".join(line for line in text.splitlines() if line.strip() and "aren't summarized yet" not in line)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _take(
    browser: Any, name: str, address: str, part: str | None = None, height: int = 800, *, digests: dict[str, str], check: bool
) -> None:
    """Write a screenshot of an address, or of one element, and record a digest of its text."""
    context = browser.new_context(viewport={"width": 1280, "height": height}, device_scale_factor=2, color_scheme="light")
    tab = context.new_page()
    tab.goto(address)
    tab.wait_for_load_state("networkidle")
    tab.wait_for_selector("h1")
    tab.wait_for_function("() => !document.body.textContent.includes('Loading …') && !document.querySelector('.busy')")
    tab.wait_for_load_state("networkidle")  # the first responses can cause more requests
    digests[f"page-{name}"] = digest_of(tab.locator(part or "body").inner_text())
    if check:
        context.close()
        return
    picture = Image.open(io.BytesIO((tab.locator(part) if part else tab).screenshot()))
    file = IMAGES / f"page-{name}.png"
    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    print(f"{file.name}: {file.stat().st_size / 1024:.0f} KiB")
    context.close()


def turn_of_demo(store: Path) -> str:
    """Fill a store with the demo's turns, and return the id of the turn with a made-up answer."""
    config = load_config({"outlets": {"store": {"path": str(store), "content": True}}})
    provider = demo.new_provider()
    handle = instrument(tracer_provider=provider, config=config)
    played = {scene.title: scored.turn.turn_id for scene, scored in demo.play(provider, handle, start_ns=START)}
    handle.shutdown()
    return played["the answer is made up"]


FAULTS = (
    Fault("refusal", "output"),
    Fault("tool_error", "tool_calls[0]", step="book", error="timeout"),
    Fault("loop", "tool_calls[1]", step="search"),
)


def generated_turns() -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield turns of three days, some failed. One failure mode appears only in the last release, one only before it."""
    for number, (turn, scores) in enumerate(some_turns(3_000, content=True)):
        if not scores[0]["passed"]:
            fault = FAULTS[number % 2 + (turn["service_version"] == "1.5")]
            turn.update(fault=jsonio.dumps(fault._asdict()), mode=fault.mode, failed=1.0)
        yield turn, scores


def main(check: bool = False) -> int:
    """Take all pictures, or only check them."""
    digests: dict[str, str] = {}
    known = json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.exists() else {}
    take = functools.partial(_take, digests=digests, check=check)
    with tempfile.TemporaryDirectory() as temporary, chromium() as browser:
        folder = Path(temporary)
        with tarfile.open(RECORDING) as packed:
            packed.extractall(folder / "traces", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # noqa: S202 - ours
        options = Options(content=True, trace_url="https://traces.example/{trace_id}", labels=str(folder / "labels.jsonl"))
        with ServedPage(ui.stored([folder / "traces"], folder / "recorded.db", load_config(None), None), options) as page:
            turns = list(page.all_turns())
            take(browser, "turns", f"{page.url}/turns")
            most = max(turns, key=lambda turn: len(turn["tools"] or ()))
            take(browser, "steps", f"{page.url}/turn/{most['turn_id']}", "section[aria-labelledby=steps]")
        turn_id = turn_of_demo(folder / "demo.db")
        with ServedPage(folder / "demo.db", options) as page:
            take(browser, "turn", f"{page.url}/turn/{turn_id}", height=1_020)
        with ServedPage(filled(folder / "scores.db", generated_turns()), options) as page:
            take(browser, "fleet", f"{page.url}/")
            take(browser, "modes", f"{page.url}/failure-modes")
            take(browser, "compare", f"{page.url}/compare?by=version&before=1.4&after=1.5")
        for incident in INCIDENTS:
            play(incident, folder / f"{incident.name}.db")
            with ServedPage(folder / f"{incident.name}.db", options) as page:
                seen = f"metric={incident.metric}&since={SINCE}"
                take(browser, f"incident-{incident.name}", f"{page.url}/differences?{seen}", height=420)
        report = folder / "report.html"
        command(["eval", *map(str, sorted((folder / "traces").rglob("*.jsonl"))), "--format", "html", "--out", str(report)])
        take(browser, "report", report.as_uri())
    if check:
        stale = [name for name, digest in digests.items() if known.get(name) != digest]
        print("\n".join(f"{name}.png is out of date. Run make pictures" for name in stale) or "all pictures are up to date")
        return bool(stale)
    DIGESTS.write_text(json.dumps(dict(sorted({**known, **digests}.items())), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
