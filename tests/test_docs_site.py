"""The documentation builds as a site: every link and anchor leads somewhere, it can be searched, it has versions, and it loads nothing from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from otel_agenteval.metrics.registry import catalog
from scripts import docs_site
from tests.support.browser import chromium
from tests.support.servers import program

pytest.importorskip("mkdocs", reason="make docs or make tools installs it")
ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "mkdocs.yaml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site with two versions, the newer one whole."""
    if not CONFIG.exists():
        pytest.skip("mkdocs.yaml is not part of the source distribution")
    out = tmp_path_factory.mktemp("site")
    (out / "0.0.9").mkdir()
    (out / "0.0.9" / "index.html").write_text("an older one", encoding="utf-8")
    docs_site.build(out, "0.1.0")
    return out


class Loads(HTMLParser):
    """Addresses that a page loads something from."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        address = known.get("src") if tag in ("script", "img", "iframe") else known.get("href") if tag == "link" else None
        if address and known.get("rel") != "canonical":
            self.found.add(address)


def test_every_page_of_the_repository_is_there(site: Path) -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")} | docs_site.OTHER_PAGES.keys()
    names = {docs_site.place_of(page).replace("README.md", "index.md").replace(".md", ".html") for page in pages}
    assert names <= {path.relative_to(site / "0.1.0").as_posix() for path in (site / "0.1.0").rglob("*.html")}


def test_old_addresses_lead_to_the_new_pages(site: Path) -> None:
    for old in docs_site.MOVED:
        if old.endswith(".html"):
            text = (site / "0.1.0" / old).read_text(encoding="utf-8")
            target = re.search(r'url=([^"]+)"', text)
            assert target is not None
            assert ((site / "0.1.0" / old).parent / target[1]).exists(), old


def test_a_search_finds_a_page_by_its_words(site: Path) -> None:
    index = json.loads((site / "0.1.0" / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"] for entry in index["docs"] if "metrics_app" in entry["text"] + entry["title"]}
    assert any(place.startswith("guides/prometheus.html#use-your") for place in places)


def test_versions_are_listed_newest_first_and_the_top_leads_to_the_newest(site: Path) -> None:
    listed = json.loads((site / "versions.json").read_text(encoding="utf-8"))
    assert [(one["version"], one["aliases"]) for one in listed] == [("0.1.0", ["latest"]), ("0.0.9", [])]
    assert "url=0.1.0/index.html" in (site / "index.html").read_text(encoding="utf-8")


def test_nothing_is_loaded_from_other_servers(site: Path) -> None:
    for path in (site / "0.1.0").rglob("*.html"):
        page = Loads()
        page.feed(path.read_text(encoding="utf-8"))
        assert not {address for address in page.found if re.match(r"https?:|//", address)}, path


def test_the_catalogue_has_every_metric_with_what_it_is_filtered_by(site: Path) -> None:
    text = (site / "0.1.0" / "reference" / "metrics" / "catalogue.html").read_text(encoding="utf-8")
    rows = {name: data for data, name in re.findall(r'<tr (data-kind=[^>]*)><td><a href="[^#"]*#(\w+)"', text)}
    assert rows.keys() == {metric.name for metric in catalog()}
    assert 'data-kind="code"' in rows["code_refusal"]
    assert "default" in rows["code_refusal"]
    assert "assets/catalogue.js" in text


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


def test_a_browser_filters_the_catalogue_and_offers_the_versions(site: Path, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/0.1.0/reference/metrics/catalogue.html?kind=embed&text=loop"
        browser = [program("chromium"), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        done = subprocess.run(
            [*browser, "--virtual-time-budget=8000", "--dump-dom", address],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        server.shutdown()
    rows = re.findall(r"<tr (data-kind=[^>]*)><td><a[^>]*><code>(\w+)", done.stdout)
    shown = {name for data, name in rows if "hidden" not in data}
    assert "embed_loop_detection" in shown
    assert all(name.startswith("embed_") for name in shown)
    assert f"{len(shown)} of {len(list(catalog()))}" in done.stdout
    assert "0.0.9" in done.stdout, "the older version is offered"


QUESTIONS = {
    "turn a metric off": "concepts/metrics",
    "change a threshold": "concepts/metrics",
    "why was a metric skipped": "troubleshooting/no-scores",
    "no scores": "troubleshooting/no-scores",
    "get the turn id": "troubleshooting/no-scores",
    "evaluate a dataset": "guides/run-experiments",
    "local model": "guides/set-up-a-judge",
    "daily budget": "guides/set-up-a-judge",
    "load my own metrics": "guides/write-a-metric",
    "custom metric": "guides/write-a-metric",
    "retriever spans": "concepts/reference-data",
    "several workers": "guides/prometheus",
    "slack": "guides/webhook",
    "console": "guides/choose-outputs",
    "fastapi metrics": "guides/prometheus",
    "sampling": "guides/set-up-a-judge",
    "capture content": "guides/capture-content",
    "gate": "guides/gate-ci",
    "thumbs up": "guides/user-feedback",
    "user feedback": "guides/user-feedback",
    "ground truth": "concepts/reference-data",
    "grafana": "operate/dashboards-and-alerts",
    "collector": "operate/collector",
    "journal": "operate/sidecar",
    "helm": "operate/deploy",
    "kafka": "operate/scale",
    "late spans": "troubleshooting/late-or-split-turns",
    "install": "get-started/installation",
    "supported frameworks": "get-started/integrations",
    "regression": "guides/detect-regressions",
    "calibrate": "guides/calibrate-a-judge",
    "postgres": "operate/score-store",
}
"""What people search for, and the page with the answer."""


@pytest.mark.slow
def test_everyday_searches_find_their_page_among_the_first_three(site: Path) -> None:
    found = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server, chromium() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        for question in QUESTIONS:
            page.goto(f"http://127.0.0.1:{server.server_port}/0.1.0/index.html?q={quote(question)}")
            page.wait_for_selector(".md-search-result__item, .md-search-result__meta:has-text('No')", state="attached")
            links = page.eval_on_selector_all(".md-search-result__item > a", "all => all.map(one => one.getAttribute('href'))")
            pages = [re.sub(r"^.*/0\.1\.0/|[?#].*$", "", link) for link in links]
            found[question] = list(dict.fromkeys(pages))[:3]
        server.shutdown()
    missed = {
        question: found[question] for question, wanted in QUESTIONS.items() if not any(wanted in one for one in found[question])
    }
    assert len(missed) <= 3, "\n".join(f"{question}: {pages}" for question, pages in missed.items())


def test_the_menu_has_a_place_for_every_page(site: Path) -> None:
    menu = CONFIG.read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    left_out = [
        page
        for page in pages
        if page not in menu and not page.startswith(("reference/metrics/", "reference/prompts/", "internals/decisions/"))
    ]
    assert not left_out


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("[a](turns.md#no-such-part)", "no-such-part"),
        ("[a](no-such-page.md)", "leads to nothing"),
    ],
)
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


def test_files_that_pages_link_to_come_along(site: Path) -> None:
    assert (site / "0.1.0" / docs_site.FILES / "collector_config" / "sidecar.yaml").exists()
