"""Chromium with Playwright. The browser is Debian's, installed by ``scripts/get_servers.py``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.servers import program


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield the browser. Each test opens its own contexts."""
    from playwright.sync_api import sync_playwright

    path = program("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(path), args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
