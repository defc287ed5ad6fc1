"""Build the documentation as a site with search, versions, and a metric catalog with filters.

    python scripts/docs_site.py                writes build/site/VERSION, and fails on broken links and anchors
    python scripts/docs_site.py --out FOLDER   writes FOLDER/VERSION, and keeps the other versions in FOLDER

``mkdocs.yaml`` defines the theme and the order of the pages. The site loads nothing from other servers.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)] if str(ROOT) not in sys.path else []

import otel_agenteval  # noqa: E402 - found only now
from otel_agenteval.metrics.registry import GROUPS, Metric, catalog, groups_of  # noqa: E402 - the same

SITE = ROOT / "build" / "site"
OTHER_PAGES = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/fault-matrix.md": "fault-matrix.md",
    "examples/README.md": "examples.md",
    "tests/reports/README.md": "public-reports.md",
}
"""Pages outside docs/."""
MOVED = {
    "architecture.html": "concepts/architecture.html",
    "capture.html": "guides/capture-content.html",
    "ci.html": "guides/gate-ci.html",
    "collector.html": "operate/collector.html",
    "command-line.html": "reference/cli.html",
    "compatibility.html": "reference/compatibility.html",
    "configuration.html": "reference/configuration.html",
    "custom-metrics.html": "guides/write-a-metric.html",
    "dashboards.html": "operate/dashboards-and-alerts.html",
    "decisions/": "internals/decisions/",
    "deployment.html": "operate/deploy.html",
    "experiments.html": "guides/run-experiments.html",
    "feedback.html": "guides/user-feedback.html",
    "first-five-minutes.html": "get-started/quickstart.html",
    "installation.html": "get-started/installation.html",
    "judging.html": "concepts/judges.html",
    "media.html": "guides/evaluate-media.html",
    "metrics/": "reference/metrics/",
    "notebooks.html": "guides/notebooks.html",
    "operations.html": "operate/runbook.html",
    "outlets.html": "guides/choose-outputs.html",
    "page.html": "guides/web-ui.html",
    "performance.html": "operate/performance.html",
    "prompts/": "reference/prompts/",
    "questions.html": "troubleshooting/faq.html",
    "quickstart/": "get-started/integrations/",
    "recordings.html": "guides/score-recorded-traces.html",
    "references.html": "concepts/reference-data.html",
    "scaling.html": "operate/scale.html",
    "sidecar.html": "operate/sidecar.html",
    "statistics.html": "concepts/fleet-estimates.html",
    "store.html": "operate/score-store.html",
    "turns.html": "concepts/turns.html",
    "unseen.html": "internals/inferred-dialects.html",
}
"""Old addresses of moved pages and folders, with their new addresses."""
SEARCH = (
    (
        ("internals/decisions/", "reference/prompts/", "benchmarks.md", "changelog.md", "contributing.md", "overview.md"),
        "exclude: true",
    ),
    (("reference/metrics/", "get-started/integrations/", "internals/", "concepts/architecture.md"), "boost: 0.2"),
    (("guides/", "concepts/", "troubleshooting/"), "boost: 4"),
)
"""Weights of folders in the search. Task pages come first, and generated reference pages last."""
FILES = "files"
"""Folder of the site for repository files that pages link to."""
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCES = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LATEST = "latest"


# --- the pages -----------------------------------------------------------------------------------------------------


def stage(folder: Path) -> None:
    """Write all pages into a folder, with links adapted to the site.

    Raises:
        ValueError: If a link's target isn't in the repository.
    """
    shutil.copytree(ROOT / "docs", folder)
    for source in (*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in OTHER_PAGES)):
        name = source.relative_to(ROOT).as_posix()
        page = folder / place_of(name)
        rank = next((f"---\nsearch: {{{rank}}}\n---\n\n" for places, rank in SEARCH if place_of(name).startswith(places)), "")
        page.write_text(rank + linked(source.read_text(encoding="utf-8"), name, folder), encoding="utf-8")
    (folder / "reference" / "metrics" / "catalogue.md").write_text(catalogue(), encoding="utf-8")


def place_of(name: str) -> str:
    """Return the path of a repository page in the site."""
    return OTHER_PAGES.get(name) or name.removeprefix("docs/")


def linked(text: str, name: str, folder: Path) -> str:
    """Return a page with its links adapted to the site. Copy linked files to the folder."""

    def moved(found: re.Match[str]) -> str:
        target, mark, anchor = found[2].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        wanted = PurePosixPath(os.path.normpath(PurePosixPath(name).parent / target)).as_posix()
        source = ROOT / wanted
        if source.is_dir() and (source / "README.md").exists():
            wanted, source = f"{wanted}/README.md", source / "README.md"
        if source.is_dir():  # link to the folder's first file
            source = next(path for path in sorted(source.iterdir()) if path.is_file())
            wanted = source.relative_to(ROOT).as_posix()
        if not source.exists():
            raise ValueError(f"{name}: {found[2]}: not found")
        if wanted.endswith(".md") and (wanted in OTHER_PAGES or wanted.startswith("docs/")):
            there = place_of(wanted)
        elif wanted.startswith("docs/"):
            there = wanted.removeprefix("docs/")
        else:
            there = f"{FILES}/{wanted}"
            (folder / there).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / there)
        return f"{found[1]}{os.path.relpath(there, PurePosixPath(place_of(name)).parent)}{mark}{anchor}{found[3]}"

    return _outside_of_fences(text, lambda part: _LINK.sub(moved, part))


def _outside_of_fences(text: str, change: Callable[[str], str]) -> str:
    parts = _FENCES.split(text)
    return "".join(part if place % 2 else change(part) for place, part in enumerate(parts))


# --- the metric catalogue ------------------------------------------------------------------------------------------


def catalogue() -> str:
    """Return a page with a table of all metrics, with filters."""
    metrics = list(catalog())
    rows = "\n".join(map(_row, metrics))
    filters = "\n".join(
        f'<select name="{name}" aria-label="{label}"><option value="">{label}</option>'
        + "".join(f"<option>{html.escape(value)}</option>" for value in values)
        + "</select>"
        for name, label, values in (
            ("kind", "any kind", ("code", "embed", "llm")),
            ("family", "any family", sorted({metric.family for metric in metrics})),
            ("group", "any group", [group for group in GROUPS if group != "all"]),
            ("need", "any need", sorted({need for metric in metrics for need in metric.needs})),
        )
    )
    return f"""---
hide: [toc]
---

# Catalogue

All {len(metrics)} metrics. `code_` metrics compute, `embed_` metrics compare embeddings, `llm_` metrics ask a judge on a sample of the turns. A metric applies where what it needs is known.

<form id="metrics-filters" hidden>
<input type="search" name="text" placeholder="words" aria-label="words" autocomplete="off">
{filters}
<output id="metrics-shown"></output>
</form>

<table id="metrics-table">
<thead><tr><th>Metric</th><th>What it says</th><th>Kind</th><th>Family</th><th>Needs</th><th>Groups</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
"""


def _row(metric: Metric) -> str:
    groups = [group for group in groups_of(metric) if group != "all"]
    kind = metric.name.partition("_")[0]
    cells = (
        f'<a href="{metric.family}.html#{metric.name}"><code>{metric.name}</code></a>', html.escape(metric.summary), kind, metric.family,
        ", ".join(metric.needs), ", ".join(groups),
    )  # fmt: skip
    data = (
        f'data-kind="{kind}" data-family="{metric.family}" data-group="{" ".join(groups)}" data-need="{" ".join(metric.needs)}"'
    )
    return f"<tr {data}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


# --- the site ------------------------------------------------------------------------------------------------------


def build(out: Path = SITE, version: str = otel_agenteval.__version__) -> Path:
    """Build one version of the site next to the other versions, and update the list of versions.

    Raises:
        ValueError: If a link or an anchor is broken, or a page isn't in the menu.
    """
    place = out / version
    shutil.rmtree(place, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(ROOT / "mkdocs.yaml"),
        "--site-dir",
        str(place),
    ]
    with tempfile.TemporaryDirectory(prefix="docs-") as folder:
        pages = Path(folder) / "pages"
        stage(pages)
        variables = {**os.environ, "DOCS_STAGE": str(pages), "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=variables)
    if done.returncode:  # the warnings contain the errors. With --quiet, mkdocs would not count them
        raise ValueError(
            "\n".join(line for line in done.stderr.splitlines() if line.startswith(("WARNING", "ERROR", "Aborted")))
            or done.stderr
        )
    redirect(place)
    write_versions(out)
    return place


def redirect(place: Path) -> None:
    """Write a redirect to the old address of each moved page."""
    for page in sorted(place.rglob("*.html")):
        new = page.relative_to(place).as_posix()
        for old, there in MOVED.items():
            if new == there or (there.endswith("/") and new.startswith(there)):
                source = place / (old + new.removeprefix(there))
                source.parent.mkdir(parents=True, exist_ok=True)
                source.write_text(_leading_to(os.path.relpath(page, source.parent)), encoding="utf-8")


def write_versions(out: Path) -> None:
    """Write the list of versions, newest first, and a redirect from the top folder to the newest version."""
    versions = sorted((path.name for path in out.iterdir() if (path / "index.html").exists()), key=_by_number, reverse=True)
    listed = [{"version": name, "title": name, "aliases": [_LATEST] if name == versions[0] else []} for name in versions]
    (out / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (out / "index.html").write_text(_leading_to(f"{versions[0]}/index.html"), encoding="utf-8")


def _leading_to(address: str) -> str:
    there = html.escape(address)
    return (
        f'<!doctype html><meta charset="utf-8"><title>otel-agenteval</title><meta http-equiv="refresh" content="0; url={there}">'
        f'<a href="{there}">{there}</a>\n'
    )


def _by_number(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=SITE, help="folder of all versions (default: build/site)")
    args = parser.parse_args(arguments)
    try:
        place = build(args.out)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{place / 'index.html'}: {sum(1 for _ in place.rglob('*.html'))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
