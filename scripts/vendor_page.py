#!/usr/bin/env python3
"""Update the libraries of the web UI in ``otel_agenteval/page/static/vendor``: download from npm, check the hash, and write.

    python scripts/vendor_page.py            downloads the libraries
    python scripts/vendor_page.py --check    checks the files against vendor.json and known vulnerabilities, without network access

Imports of packages are replaced by imports of files, so that browsers need no import map.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

VENDOR = Path(__file__).resolve().parent.parent / "otel_agenteval" / "page" / "static" / "vendor"
NPM = shutil.which("npm") or "npm"
PACKAGES = {"preact": "10.29.8", "htm": "3.1.1"}
LEAST = {"preact": "10.27.3"}
"""Lowest versions without known vulnerabilities. CVE-2026-22028: preact renders untrusted JSON as elements."""
FILES = {
    "preact.js": ("preact", "dist/preact.module.js"),
    "hooks.js": ("preact", "hooks/dist/hooks.module.js"),
    "htm.js": ("htm", "dist/htm.module.js"),
    "preact.LICENSE": ("preact", "LICENSE"),
    "htm.LICENSE": ("htm", "LICENSE"),
}
_MAP = b"//# sourceMappingURL="


def fetch(name: str, version: str) -> dict[str, bytes]:
    """Return the files of a package by path."""
    said = subprocess.run([NPM, "view", f"{name}@{version}", "dist", "--json"], capture_output=True, check=True, text=True).stdout
    wanted = json.loads(said)["integrity"]
    packed = subprocess.run(
        [NPM, "pack", f"{name}@{version}", "--json", "--pack-destination", "."],
        capture_output=True,
        check=True,
        text=True,
        cwd=VENDOR,
    ).stdout
    archive = VENDOR / json.loads(packed)[0]["filename"]
    try:
        data = archive.read_bytes()
    finally:
        archive.unlink()
    kind, _, digest = wanted.partition("-")
    if base64.b64encode(hashlib.new(kind, data).digest()).decode() != digest:
        raise SystemExit(f"{name} {version}: the archive's hash doesn't match the registry's")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {one.name.removeprefix("package/"): tar.extractfile(one).read() for one in tar if one.isfile()}  # type: ignore[union-attr]


def renew() -> None:
    """Download the libraries, and write the files and their hashes."""
    VENDOR.mkdir(parents=True, exist_ok=True)
    packages = {name: fetch(name, version) for name, version in PACKAGES.items()}
    for name, (package, path) in FILES.items():
        data = packages[package][path].replace(b'from"preact"', b'from"./preact.js"').partition(_MAP)[0]
        (VENDOR / name).write_bytes(data)
    (VENDOR / "vendor.json").write_text(
        json.dumps({"packages": PACKAGES, "sha256": _hashes()}, indent=2) + "\n", encoding="utf-8"
    )


def _hashes() -> dict[str, str]:
    return {name: hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() for name in FILES}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        known = json.loads((VENDOR / "vendor.json").read_text(encoding="utf-8"))
        if known != {"packages": PACKAGES, "sha256": _hashes()}:
            print("otel_agenteval/page/static/vendor differs from vendor.json", file=sys.stderr)
            return 1
        for name, least in LEAST.items():
            if _numbers(known["packages"][name]) < _numbers(least):
                print(f"{name}: has a known vulnerability, got {known['packages'][name]}; use {least} or later", file=sys.stderr)
                return 1
        return 0
    renew()
    return 0


if __name__ == "__main__":
    sys.exit(main())
