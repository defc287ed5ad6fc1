"""Take the pictures of the page for the documentation, in Chromium.

    python scripts/page_pictures.py            # rewrites docs/images/page-*.png

The list and the turn are of recorded agents, scored as ``otel-agenteval ui`` scores them; the fleet and the comparison are of made-up turns of three days. Needs the extra ``dev``.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from otel_agenteval.cli import ui  # noqa: E402 - of this checkout
from otel_agenteval.config.loader import load_config  # noqa: E402
from otel_agenteval.page.api import Options  # noqa: E402
from tests.support.browser import chromium  # noqa: E402
from tests.support.page import ServedPage  # noqa: E402
from tests.support.stored_turns import filled, some_turns  # noqa: E402

IMAGES = ROOT / "docs" / "images"
RECORDING = ROOT / "tests" / "data" / "recordings" / "ag2-agent.tar.xz"
SIZE = {"width": 1280, "height": 800}


def recorded(folder: Path) -> Path:
    """A store of recorded turns."""
    with tarfile.open(RECORDING) as packed:
        packed.extractall(folder / "traces", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # noqa: S202 - ours
    return ui.stored([folder / "traces"], folder / "recorded.db", load_config(None), None)


def take(folder: Path) -> dict[str, Callable[[Any], None]]:
    """Name of each picture, and what makes it."""
    made_up = filled(folder / "scores.db", some_turns(3_000, content=True))
    found: dict[str, Callable[[Any], None]] = {}

    def picture(name: str, store: Path, path: Callable[[ServedPage], str], part: str | None = None, **options: Any) -> None:
        def make(browser: Any) -> None:
            with ServedPage(
                store, Options(content=True, trace_url="https://traces.example/{trace_id}", labels=str(folder / "labels.jsonl"))
            ) as page:
                context = browser.new_context(base_url=page.url, viewport=SIZE, **options)
                tab = context.new_page()
                tab.goto(path(page))
                tab.wait_for_load_state("networkidle")
                tab.wait_for_selector("main h1")
                if part is None:
                    tab.screenshot(path=IMAGES / f"page-{name}.png")
                else:
                    tab.locator(part).screenshot(path=IMAGES / f"page-{name}.png")
                context.close()

        found[name] = make

    traces = recorded(folder)
    picture("fleet", made_up, lambda _: "/")
    picture("turns", traces, lambda _: "/turns")
    picture(
        "turn",
        traces,
        lambda page: (
            f"/turn/{next(turn['turn_id'] for turn in page.all_turns() if turn['answered'] and any(score['metric'] == 'code_tool_success' and score['passed'] is False for score in turn['scores']))}"
        ),
    )
    picture(
        "steps",
        traces,
        lambda page: f"/turn/{max(page.all_turns(), key=lambda turn: len(turn['tools'] or ()))['turn_id']}",
        "section[aria-labelledby=steps]",
    )
    picture("compare", made_up, lambda _: "/compare?by=version&before=1.4&after=1.5", color_scheme="dark")
    return found


def main() -> int:
    """Take all of them."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name, make in take(Path(folder)).items():
            make(browser)
            print(IMAGES / f"page-{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
