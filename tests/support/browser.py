"""Chromium, driven by Playwright: Debian's, as ``scripts/get_servers.py`` gets it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.servers import program


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser; each test opens contexts of its own."""
    from playwright.sync_api import sync_playwright

    path = program("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(path), args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
