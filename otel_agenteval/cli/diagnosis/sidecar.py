"""Checks of a running sidecar, from its metrics page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import httpx
from prometheus_client.parser import text_string_to_metric_families

from ...core.errors import ConfigError, refusal
from ...core.outbound import answer_of, client_to
from . import Findings, bad, good, missing_finding, note

_REQUESTS, _RESULTS = "agenteval_serve_requests_total", "agenteval_results_total"
_TAKEN = ("ok", "partial")
_MOST_METRICS = 5
_TIMEOUT = 10.0
_LARGEST_PAGE = 64 * 2**20


class _Page:
    def __init__(self, text: str) -> None:
        self._samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self._samples.setdefault(sample.name, []).append((sample.labels, sample.value))

    def __contains__(self, name: str) -> bool:
        return name in self._samples

    def samples(self, name: str) -> Sequence[tuple[dict[str, str], float]]:
        return self._samples.get(name, ())

    def total(self, name: str, **labels: str) -> float:
        return sum(
            value for have, value in self._samples.get(name, ()) if all(have.get(key) == one for key, one in labels.items())
        )

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        found = {have[label]: self.total(name, **labels, **{label: have[label]}) for have, _ in self._samples.get(name, ())}
        return {value: total for value, total in found.items() if total}


def sidecar_findings(url: str, headers: Mapping[str, str]) -> Findings:
    """Check what a running sidecar received and evaluated, and that Prometheus scrapes it. ``headers`` are for a proxy."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(refusal("--url", repr(url), "must start with http:// or https://"))
    address = url.rstrip("/").removesuffix("/metrics")
    try:
        sent = {"User-Agent": "otel-agenteval-doctor", **headers}
        with client_to(address) as client:
            answer, page_of_metrics = answer_of(
                client, "GET", f"{address}/metrics", seconds=_TIMEOUT, most=_LARGEST_PAGE, headers=sent
            )
        answer.raise_for_status()
        page = _Page(page_of_metrics.decode("utf-8", "replace"))
    except (httpx.HTTPError, ValueError) as error:
        refused = isinstance(error, httpx.HTTPStatusError) and error.response.status_code in (401, 403)
        where = (
            "if a proxy requires credentials, pass --header 'Authorization: Bearer …'"
            if refused
            else "use the metrics address that `otel-agenteval serve` prints at its start"
        )
        yield bad(f"{address}/metrics can't be read: {error}", where)
        return
    if "agenteval_build_info" not in page:
        yield bad(f"{address}/metrics isn't a page of otel-agenteval", "use the address of the sidecar's /metrics")
        return
    yield from _received(page)
    yield from _evaluated(page)
    clients = [client for client in page.by("client", "agenteval_serve_scrapes_total") if client != "other"]
    target = f"static_configs: [{{targets: ['{address.partition('//')[2]}']}}]"
    if clients:
        yield good(f"scraped by {', '.join(sorted(clients))}")
    else:
        yield note("Prometheus hasn't scraped the sidecar yet", f"scrape_configs: [{{job_name: agenteval, {target}}}]")


def _received(page: _Page) -> Findings:
    requests = sum(page.total(_REQUESTS, signal="traces", outcome=outcome) for outcome in _TAKEN)
    turns = page.total("agenteval_turns_total")
    if not requests:
        yield bad("the sidecar received no spans", "send OTLP to it: docs/operate/collector.md")
    elif not turns:
        why = "check that agent or model spans are among them, and wait for turn.idle_timeout"
        yield bad(f"{requests:,.0f} requests with spans, but no turn", why)
    else:
        yield good(f"{requests:,.0f} requests with spans, {turns:,.0f} turns")
    for labels, traces in page.samples("agenteval_unread_traces_total"):
        yield missing_finding(labels["scope"], labels["missing"], traces)
    for outcome, count in page.by("outcome", _REQUESTS).items():
        if outcome not in _TAKEN:
            yield note(f"{count:,.0f} requests were refused: {outcome}", "docs/operate/sidecar.md")


def _evaluated(page: _Page) -> Findings:
    if page.total("agenteval_turns_total") and not page.total(_RESULTS):
        yield bad("no metric has a result", "run otel-agenteval check-config FILE to see the effective configuration")
    failed = page.by("metric", _RESULTS, outcome="error")
    for metric in sorted(failed, key=lambda name: -failed[name])[:_MOST_METRICS]:
        yield note(f"{metric} failed {failed[metric]:,.0f} times", f"otel-agenteval explain {metric}")
    gated = page.total("agenteval_judge_requests_total", outcome="gated")
    if gated:
        yield note(f"{gated:,.0f} judge calls waited for the budget", "raise judge.budget, or lower sample.rate")
