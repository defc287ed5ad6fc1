"""Draw the panels of the Grafana dashboards from a real run, for the documentation.

    python scripts/panel_pictures.py            # rewrites docs/images/dashboard-*.png (some minutes)

A fleet of scripted agents runs for some minutes, and a real Prometheus server scrapes it. The script runs the queries of each panel
as Grafana would, and draws the results with matplotlib. The pictures therefore show the right data, but look different from
Grafana. Needs Prometheus (``make servers``) and the packages of ``make tools``.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.page_pictures import DIGESTS, digest_of  # noqa: E402 - of this checkout
from tests.support.fleet import Fleet  # noqa: E402
from tests.support.prometheus import Prometheus  # noqa: E402

DASHBOARDS = ROOT / "deploy" / "grafana" / "dashboards"
IMAGES = ROOT / "docs" / "images"
CHOICES = {
    "fleet": {"$agent": ".*"},
    "agent": {"$agent": "trip-planner"},
    "metric": {"$agent": ".*", "$metric": "llm_relevance"},
    "self": {},
}
"""Values of the variables of each dashboard."""

NOTE = "rendered by matplotlib from a real run, not a Grafana screenshot"
_COLOURS = ("#3b6fb6", "#c46a28", "#3f8f5f", "#a63d57", "#7b5ea7", "#8a7a2e", "#4aa3b5", "#777777", "#b04a9a", "#5c5c2c")
_ROW_INCHES, _WIDTH_INCHES = 0.27, 14.0
_DRAWN = 8
"""Maximum number of series in a panel."""
Points = dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Draw the panels of the dashboards from a real run.")
    parser.add_argument("--seconds", type=float, default=240, help="duration of the run (default: 240)")
    parser.add_argument("--into", type=Path, default=IMAGES, help="folder of the pictures")
    options = parser.parse_args(arguments)
    options.into.mkdir(parents=True, exist_ok=True)
    digests = json.loads(DIGESTS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, Fleet(seed=7) as fleet:
        fleet.play(1)
        with Prometheus(Path(folder), fleet.targets, every=1000) as prometheus:
            began = time.monotonic()
            while (passed := time.monotonic() - began) < options.seconds:
                share = passed / options.seconds
                fleet.failing = 0.35 if 0.45 < share < 0.65 else 0.03  # more failures, to make the charts interesting
                fleet.judge.outage = 0.7 < share < 0.8
                fleet.play(2)
                time.sleep(0.5)
            end = time.time()
            for name, choice in CHOICES.items():
                file = options.into / f"dashboard-{name}.png"
                draw(name, choice, prometheus, end - options.seconds + 20, end, file)
                print(f"{file.name}: {file.stat().st_size / 1024:.0f} KiB")
                digests[f"dashboard-{name}"] = digest_of((DASHBOARDS / f"{name}.json").read_text(encoding="utf-8"))
    DIGESTS.write_text(json.dumps(dict(sorted(digests.items())), indent=1) + "\n", encoding="utf-8")


def draw(name: str, choice: dict[str, str], prometheus: Prometheus, start: float, end: float, file: Path) -> None:
    """Draw one dashboard in the layout of Grafana."""
    dashboard = json.loads((DASHBOARDS / f"{name}.json").read_text(encoding="utf-8"))
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
    figure = plt.figure(figsize=(_WIDTH_INCHES, (rows + 3) * _ROW_INCHES), dpi=160)  # two pixels per CSS pixel
    chosen = ", ".join(value for value in choice.values() if value != ".*")
    title = f"{dashboard['title']}{': ' + chosen if chosen else ''}"
    figure.text(0.012, 1 - 0.9 / (rows + 3), title, fontsize=14, weight="bold", va="center")
    figure.text(0.988, 1 - 0.9 / (rows + 3), NOTE, fontsize=9, color="#a63d57", va="center", ha="right")
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        top = 1 - (at["y"] + 2) / (rows + 3)
        if panel["type"] == "row":
            figure.text(0.012, top - 0.7 / (rows + 3), panel["title"], fontsize=11, weight="bold", color="#444444", va="center")
            continue
        box = (at["x"] / 24, top - at["h"] / (rows + 3), at["w"] / 24, at["h"] / (rows + 3))
        _panel(figure, panel, box, Asked(prometheus, start, end, choice), rows + 3)
    drawn = io.BytesIO()
    figure.savefig(drawn, facecolor="white")
    Image.open(drawn).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(file, optimize=True)
    plt.close(figure)


class Asked:
    """Prometheus client that fills in the time range and the variables of a dashboard."""

    def __init__(self, prometheus: Prometheus, start: float, end: float, choice: dict[str, str]) -> None:
        self._prometheus = prometheus
        self.start, self.end = start, end
        self._values = {"$__rate_interval": "20s", "$__range": f"{end - start:.0f}s", "$service": ".*", "$agent": ".*", **choice}

    def _filled(self, expr: str) -> str:
        for variable, value in self._values.items():
            expr = expr.replace(variable, value)
        return expr

    def over_time(self, expr: str, step: float) -> Points:
        return self._prometheus.over_time(self._filled(expr), self.end - self.start, step, end=self.end)

    def at_the_end(self, expr: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the last value of each series."""
        return {labels: points[-1][1] for labels, points in self.over_time(expr, 1).items()}

    def exemplars(self, expr: str) -> list[tuple[float, float]]:
        """Return the time and value of each exemplar."""
        found = ((one["timestamp"], float(one["value"])) for one in self._prometheus.exemplars(self._filled(expr)))
        return [(at, value) for at, value in found if self.start < at < self.end]


def _panel(figure: Figure, panel: dict[str, Any], box: tuple[float, float, float, float], asked: Asked, rows: int) -> None:
    x, y, width, height = box
    kind, unit = panel["type"], panel["fieldConfig"]["defaults"].get("unit", "short")
    figure.text(x + 0.012, y + height - 0.75 / rows, panel["title"], fontsize=9, weight="bold", va="center")
    wide = 0.135 if kind == "bargauge" else 0.042
    legend = 1.9 / rows if kind == "timeseries" else 0.9 / rows
    axes = figure.add_axes((x + wide, y + legend, width - wide - 0.014, height - legend - 1.35 / rows))
    targets = [(target["expr"], target["legendFormat"]) for target in panel["targets"]]
    first = targets[0][0]
    if kind == "stat":
        _stat(axes, asked.at_the_end(first), unit, panel)
    elif kind == "bargauge":
        _bars(axes, asked.at_the_end(first), targets[0][1], unit)
    elif kind == "heatmap":
        _heatmap(axes, asked.over_time(first, 6), asked.exemplars(first))
    else:
        series = [
            (_legend(labels, text), points) for expr, text in targets for labels, points in asked.over_time(expr, 2).items()
        ]
        _lines(axes, series, unit, panel)


def _legend(labels: tuple[tuple[str, str], ...], pattern: str) -> str:
    for name, value in labels:
        pattern = pattern.replace(f"{{{{{name}}}}}", value)
    return pattern.split("{{")[0].strip() or "all"


def _stat(axes: Axes, found: dict[Any, float], unit: str, panel: dict[str, Any]) -> None:
    axes.axis("off")
    value = next(iter(found.values()), math.nan)
    colour = "#222222"
    for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]:
        if step["value"] is None or value >= step["value"]:
            colour = {"red": "#c0392b", "green": "#2e8b57"}.get(step["color"], "#222222")
    axes.text(0.35, 0.45, _number(value, unit), fontsize=20, weight="bold", color=colour, ha="center", va="center")


def _bars(axes: Axes, found: dict[Any, float], legend: str, unit: str) -> None:
    named = [(_legend(labels, legend), value) for labels, value in found.items()]
    values = sorted(sorted(named, key=lambda pair: -abs(pair[1]))[:12], key=lambda pair: pair[1])
    if legend == "{{metric}}" and unit == "percentunit":
        axes.set_xlim(0, (max(value for _, value in values) or 1) * 1.15)
    bars = axes.barh([name for name, _ in values], [value for _, value in values], color=_COLOURS[0], height=0.7)
    axes.bar_label(bars, labels=[_number(value, unit) for _, value in values], fontsize=6.5, padding=2)
    axes.tick_params(labelsize=6.5)
    axes.set_xticks([])
    _frame(axes)


def _lines(axes: Axes, series: list[tuple[str, list[tuple[float, float]]]], unit: str, panel: dict[str, Any]) -> None:
    drawn = sorted(series, key=lambda one: one[0])[:_DRAWN]
    if panel["fieldConfig"]["defaults"].get("custom", {}).get("stacking", {}).get("mode") == "normal":
        times = sorted({at for _, points in drawn for at, _ in points})
        rows = [[dict(points).get(at, 0.0) for at in times] for _, points in drawn]
        if rows:
            axes.stackplot([at / 86400 for at in times], rows, colors=_COLOURS, alpha=0.75)
    else:
        for number, (_, points) in enumerate(drawn):
            axes.plot(
                [at / 86400 for at, _ in points], [value for _, value in points], color=_COLOURS[number % 10], linewidth=1.1
            )
    most = panel["fieldConfig"]["defaults"].get("max")
    axes.set_ylim(0, most * 1.03 if most is not None and unit != "short" else None)
    handles = [plt.Line2D([], [], color=_COLOURS[number % 10], linewidth=3) for number in range(len(drawn))]
    more = [f"… {len(series) - _DRAWN} more"] if len(series) > _DRAWN else []
    names = [name if len(name) < 34 else name[:33] + "…" for name, _ in drawn] + more
    handles += [plt.Line2D([], [], color="white")] * len(more)
    if names:
        axes.legend(
            handles, names, loc="upper left", bbox_to_anchor=(-0.08, -0.13), ncols=3 if max(map(len, names)) < 24 else 2,
            fontsize=6, frameon=False, handlelength=0.9, columnspacing=0.9, borderaxespad=0, labelspacing=0.2,
        )  # fmt: skip
    axes.yaxis.set_major_formatter(lambda value, _: _number(value, unit))
    _time_axis(axes)


def _heatmap(axes: Axes, series: Points, exemplars: list[tuple[float, float]]) -> None:
    """Draw a heatmap of buckets over time. Each point is an exemplar, at its time and value."""
    by_bound = {dict(labels)["le"]: dict(points) for labels, points in series.items()}
    bounds = sorted({dict(labels)["le"] for labels in series}, key=float)
    times = sorted({at for points in by_bound.values() for at in points})
    grid, below = [], [0.0] * len(times)
    for bound in bounds:
        present = [by_bound[bound].get(at, 0.0) for at in times]
        grid.append([max(0.0, one - other) for one, other in zip(present, below, strict=True)])
        below = present
    filled = [number for number, row in enumerate(grid) if any(row)] or [0]
    low, high = filled[0], filled[-1] + 1
    axes.pcolormesh([at / 86400 for at in times], range(high - low), grid[low:high], cmap="Blues", shading="nearest")
    axes.set_yticks(range(high - low), [f"≤ {bound}" for bound in bounds[low:high]], fontsize=6.5)
    axes.set_ylim(-0.5, high - low - 0.5)
    places = [next(number for number, bound in enumerate(bounds) if value <= float(bound)) - low for _, value in exemplars]
    axes.scatter(
        [at / 86400 for at, _ in exemplars],
        places,
        marker="D",
        s=11,
        color="#e0752d",
        edgecolors="white",
        linewidths=0.4,
        zorder=3,
    )
    _time_axis(axes)


def _time_axis(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(mdates.DateFormatter("%H:%M:%S"))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=6.5)
    axes.grid(visible=True, color="#eeeeee", linewidth=0.7)
    axes.set_axisbelow(True)
    _frame(axes)


def _frame(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#bbbbbb")


def _number(value: float, unit: str) -> str:
    if math.isnan(value):
        return "no data"
    if unit == "percentunit":
        return f"{value:.1%}" if 0 < value < 0.1 or 0.9 < value < 1 else f"{value:.0%}"
    if unit == "currencyUSD":
        return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"
    if unit == "s":
        return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.3g} ms"
    return (f"{value:,.0f}" if value >= 1000 else f"{value:.3g}") + ("/s" if unit == "cps" else "")


if __name__ == "__main__":
    main(sys.argv[1:])
