"""Build the documentation as a site: its pages, the README and what else is linked, with search, versions and a metric catalogue that can be filtered.

    python scripts/docs_site.py                build/site/VERSION, strictly: a link or an anchor that leads nowhere fails
    python scripts/docs_site.py --out FOLDER   into another folder, beside the versions that are there

``mkdocs.yaml`` has the theme and the order of the pages. Nothing is loaded from other servers.
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
    "examples/README.md": "examples.md",
}
"""Pages that do not lie in docs."""
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
"""Addresses of pages and folders that moved, which lead to the new ones."""
SEARCH = (
    (
        ("internals/decisions/", "reference/prompts/", "benchmarks.md", "changelog.md", "contributing.md", "overview.md"),
        "exclude: true",
    ),
    (("reference/metrics/", "get-started/integrations/", "internals/", "concepts/architecture.md"), "boost: 0.2"),
    (("guides/", "concepts/", "troubleshooting/"), "boost: 4"),
)
"""How the search ranks pages, by where they are: first what people ask for, last what holds every word."""
FILES = "files"
"""Where the site has files of the repository that pages link to."""
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCES = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LATEST = "latest"


# --- the pages -----------------------------------------------------------------------------------------------------


def stage(folder: Path) -> None:
    """Gather the pages in a folder, with links that lead to where they are there.

    Raises:
        ValueError: a link leads to nothing in the repository.
    """
    shutil.copytree(ROOT / "docs", folder)
    for source in (*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in OTHER_PAGES)):
        name = source.relative_to(ROOT).as_posix()
        page = folder / place_of(name)
        rank = next((f"---\nsearch: {{{rank}}}\n---\n\n" for places, rank in SEARCH if place_of(name).startswith(places)), "")
        page.write_text(rank + linked(source.read_text(encoding="utf-8"), name, folder), encoding="utf-8")
    (folder / "reference" / "metrics" / "catalogue.md").write_text(catalogue(), encoding="utf-8")


def place_of(name: str) -> str:
    """Where the site has a page of the repository."""
    return OTHER_PAGES.get(name) or name.removeprefix("docs/")


def linked(text: str, name: str, folder: Path) -> str:
    """The text of a page with links for the site; files that it links to are copied there."""

    def moved(found: re.Match[str]) -> str:
        target, mark, anchor = found[2].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        wanted = PurePosixPath(os.path.normpath(PurePosixPath(name).parent / target)).as_posix()
        source = ROOT / wanted
        if source.is_dir() and (source / "README.md").exists():
            wanted, source = f"{wanted}/README.md", source / "README.md"
        if source.is_dir():  # its first file stands for it
            source = next(path for path in sorted(source.iterdir()) if path.is_file())
            wanted = source.relative_to(ROOT).as_posix()
        if not source.exists():
            raise ValueError(f"{name}: {found[2]} leads to nothing")
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
    """All metrics as one table, with filters."""
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
    """Build one version of the site beside the others, and list them.

    Raises:
        ValueError: a link or an anchor leads nowhere, or no menu has a page.
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
    if done.returncode:  # its warnings are what is wrong; told to be quiet, it would not count them
        raise ValueError(
            "\n".join(line for line in done.stderr.splitlines() if line.startswith(("WARNING", "ERROR", "Aborted")))
            or done.stderr
        )
    redirect(place)
    write_versions(out)
    return place


def redirect(place: Path) -> None:
    """Write a page at the old address of each page that moved."""
    for page in sorted(place.rglob("*.html")):
        new = page.relative_to(place).as_posix()
        for old, there in MOVED.items():
            if new == there or (there.endswith("/") and new.startswith(there)):
                source = place / (old + new.removeprefix(there))
                source.parent.mkdir(parents=True, exist_ok=True)
                source.write_text(_leading_to(os.path.relpath(page, source.parent)), encoding="utf-8")


def write_versions(out: Path) -> None:
    """The list that the pages offer, newest first, and the way from the top to the newest."""
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
    """Build it; 1 where a page is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=SITE, help="the folder of all versions (default: build/site)")
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
