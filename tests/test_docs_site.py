"""The documentation site: links and anchors resolve, versions are listed, and no page loads anything from other hosts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from scripts import docs_site

pytest.importorskip("mkdocs", reason="make docs or make tools installs it")
pytestmark = pytest.mark.slow  # building the site takes 10 s; `make docs` builds it too
ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "mkdocs.yaml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a site with two versions. The newer version is complete."""
    if not CONFIG.exists():
        pytest.skip("mkdocs.yaml is not part of the source distribution")
    out = tmp_path_factory.mktemp("site")
    (out / "0.0.9").mkdir()
    (out / "0.0.9" / "index.html").write_text("an older one", encoding="utf-8")
    docs_site.build(out, "0.1.0")
    return out


def test_site_has_every_page_old_address_and_version(site: Path) -> None:
    newest = site / "0.1.0"
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")} | docs_site.OTHER_PAGES.keys()
    names = {docs_site.place_of(page).replace("README.md", "index.md").replace(".md", ".html") for page in pages}
    assert names <= {path.relative_to(newest).as_posix() for path in newest.rglob("*.html")}
    for old in (old for old in docs_site.MOVED if old.endswith(".html")):
        target = re.search(r'url=([^"]+)"', (newest / old).read_text(encoding="utf-8"))
        assert target is not None
        assert ((newest / old).parent / target[1]).exists(), old
    listed = json.loads((site / "versions.json").read_text(encoding="utf-8"))
    assert [(one["version"], one["aliases"]) for one in listed] == [("0.1.0", ["latest"]), ("0.0.9", [])]
    assert "url=0.1.0/index.html" in (site / "index.html").read_text(encoding="utf-8")


def test_nothing_is_loaded_from_other_servers(site: Path) -> None:
    loads = re.compile(r"""<(script|img|iframe)[^>]*? src=.?(https?:|//)|<link(?![^>]*canonical)[^>]*? href=.?(https?:|//)""")
    found = {path: loads.findall(path.read_text(encoding="utf-8")) for path in (site / "0.1.0").rglob("*.html")}
    assert not [path for path, addresses in found.items() if addresses]


@pytest.mark.parametrize(("written", "wrong"), [("[a](turns.md#no-such)", "no-such"), ("[a](no-page.md)", "not found")])
def test_a_link_that_leads_nowhere_stops_it(written: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "README.md").write_text(f"# Top\n\n{written}\n", encoding="utf-8")
    (root / "docs" / "turns.md").write_text("# Turns\n", encoding="utf-8")
    (root / "docs" / "reference" / "metrics").mkdir(parents=True)
    (root / "mkdocs.yaml").write_text(
        "site_name: x\ndocs_dir: !ENV DOCS_STAGE\ntheme: {name: material, font: false}\nvalidation: {links: {anchors: warn}}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(docs_site, "ROOT", root)
    monkeypatch.setattr(docs_site, "OTHER_PAGES", {})
    monkeypatch.setattr(docs_site, "catalogue", lambda: "# Catalogue\n")
    with pytest.raises(ValueError, match=wrong):
        docs_site.build(tmp_path / "out", "1.0")
