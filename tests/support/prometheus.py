"""A real Prometheus."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.servers import Process, answers, free_port, program


class Prometheus(Process):
    """Prometheus on a free port. It scrapes and evaluates rules several times per second.

    Args:
        folder: folder for its data and log.
        targets: addresses (``host:port``) of ``/metrics`` pages, by job.
        rules: files with rules.
        every: milliseconds between scrapes, and between evaluations of the rules.
    """

    def __init__(
        self,
        folder: Path,
        targets: Mapping[str, str] | None = None,
        rules: Sequence[Path] = (),
        every: int = 250,
    ) -> None:
        port = free_port()
        self.address, self.url = f"127.0.0.1:{port}", f"http://127.0.0.1:{port}"
        folder.mkdir(parents=True, exist_ok=True)
        config = {
            "global": dict.fromkeys(("scrape_interval", "scrape_timeout", "evaluation_interval"), f"{every}ms"),
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in (targets or {}).items()
            ],
            "rule_files": [str(path) for path in rules],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
        command = [
            program("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--web.enable-remote-write-receiver",
            "--enable-feature=exemplar-storage",
        ]
        super().__init__(command, log=folder / "prometheus.log", ready=answers(f"{self.url}/-/ready"), cwd=folder)

    def query(self, expression: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the current value of each series. Labels are sorted pairs."""
        return {
            tuple(sorted(series["metric"].items())): float(series["value"][1])
            for series in self._get("query", query=expression)["result"]
        }

    def value(self, expression: str) -> float | None:
        """Return the value of the only series, or None without a series."""
        found = list(self.query(expression).values())
        assert len(found) <= 1, found
        return found[0] if found else None

    def over_time(
        self, expression: str, seconds: float, step: float = 1, end: float | None = None
    ) -> dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]:
        """Return the points (time, value) of each series in the seconds before ``end`` (default: now), without NaN."""
        now = time.time() if end is None else end
        found = self._get("query_range", query=expression, start=str(now - seconds), end=str(now), step=str(step))["result"]
        series = {
            tuple(sorted(one["metric"].items())): [(at, float(text)) for at, text in one["values"] if text != "NaN"]
            for one in found
        }
        return {labels: points for labels, points in series.items() if points}

    def label_values(self, label: str, selector: str) -> set[str]:
        """Return the values of a label in the series of a selector."""
        return set(self._get(f"label/{label}/values", **{"match[]": selector}))

    def rules(self) -> list[dict[str, Any]]:
        """Return alerting and recording rules with name, health and, for alerts, state."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def exemplars(self, expression: str) -> list[dict[str, Any]]:
        """Return all exemplars of an expression, with labels, value and timestamp."""
        ends = {"start": "2020-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}
        return [each for series in self._get("query_exemplars", query=expression, **ends) for each in series["exemplars"]]

    def _get(self, path: str, **parameters: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
            return json.load(answer)["data"]
