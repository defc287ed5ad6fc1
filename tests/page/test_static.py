"""What browsers get: complete, pinned, with licences, and from nowhere else."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import vendor_page
from tests.support.process import ROOT

STATIC = ROOT / "otel_agenteval" / "page" / "static"


def test_libraries_are_those_that_were_fetched() -> None:
    assert subprocess.run([sys.executable, ROOT / "scripts" / "vendor_page.py", "--check"], check=False).returncode == 0


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


def test_each_library_comes_with_its_licence() -> None:
    packages = json.loads((STATIC / "vendor" / "vendor.json").read_text(encoding="utf-8"))["packages"]
    assert all((STATIC / "vendor" / f"{name}.LICENSE").stat().st_size > 500 for name in packages)


def test_modules_import_only_what_is_there() -> None:
    for file in STATIC.rglob("*.js"):
        for name in re.findall(r'(?:^|[;}\s])import[^;]*?from\s*"([^"]+)"', file.read_text(encoding="utf-8")):
            assert name.startswith("./"), f"{file.name}: {name}"
            assert (file.parent / name).is_file(), f"{file.name}: {name}"


def test_nothing_leads_elsewhere() -> None:
    for file in STATIC.iterdir():
        if file.is_file():
            addresses = set(re.findall(r"https?://[\w.]+", file.read_text(encoding="utf-8"))) - {"http://www.w3.org"}
            assert addresses == set(), file.name


def test_pictures_in_the_docs_have_twice_the_resolution() -> None:
    files = sorted((ROOT / "docs" / "images").glob("*.png"))
    assert len(files) >= 10
    for file in files:
        data = file.read_bytes()
        assert data.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", data[16:24])
        assert width > 2_200, file
        assert height > 600, file
        assert len(data) > 20_000, file
