"""Files for browsers: complete, pinned, licensed, and from no other host."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from scripts import vendor_page
from tests.support.process import ROOT

STATIC = ROOT / "otel_agenteval" / "page" / "static"


def checked(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["vendor_page.py", "--check"])
    return vendor_page.main()


def test_a_library_that_was_changed_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (*vendor_page.FILES, "vendor.json"):
        (tmp_path / name).write_bytes((vendor_page.VENDOR / name).read_bytes())
    monkeypatch.setattr(vendor_page, "VENDOR", tmp_path)
    assert checked(monkeypatch) == 0
    (tmp_path / "htm.js").write_bytes(b"changed")
    assert checked(monkeypatch) == 1
    assert "differs from vendor.json" in capsys.readouterr().err


def test_a_vulnerable_library_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(vendor_page.LEAST, "preact", "10.100.0")
    assert checked(monkeypatch) == 1
    assert "preact: has a known vulnerability" in capsys.readouterr().err
    monkeypatch.setitem(vendor_page.LEAST, "preact", "10.9.0")
    assert checked(monkeypatch) == 0
    assert vendor_page.PACKAGES.keys() >= vendor_page.LEAST.keys()


def test_nothing_leads_elsewhere() -> None:
    for file in STATIC.iterdir():
        if file.is_file():
            addresses = set(re.findall(r"https?://[\w.]+", file.read_text(encoding="utf-8"))) - {"http://www.w3.org"}
            assert addresses == set(), file.name
