"""Public reports on detectors and image metrics, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa


def scored(metric: str, output: str, **facts: Any) -> oa.Score:
    """Return the score of one turn."""
    turn = oa.Turn.from_dict({"turn_id": "t", "output": output, **facts})
    ((_, (score,)),) = oa.score_turns([turn], [metric])
    return score


# --- hosts and file names


def grounded(output: str) -> bool | None:
    return scored("code_ungrounded_urls", output, input="How?", tool_calls=[{"name": "build", "result": "ok"}]).passed


FILES = [
    "Run train.pl first.", "Saved best.pt, then yolo-seg.pt.", "It fails at run-tests.pl line 4.", "Führe train.pl für alle aus.",
    "Ejecute best.pt después.", "🎉 Open report.pl 🎉", "Use numpy.ma, np.int, tf.nn and logger.info.", "libfoo-bar.so, my-crate.rs",
    "See src/train.py/… and docs/setup-guide.md/intro.", "setup.sh/ and setup-env.sh/ are folders.", "README.md/CHANGELOG.md",
    "my-data.zip/train.csv", "data.zip/train", "utils.py/load_data", "Edit my-rules.mk/my-other.mk.", "(what is order.id?)",
]  # fmt: skip
HOSTS = [
    "Go to www.cheap-flights.mk.", "Go to WWW.cheap-flights.md", "Go to www.cheap-flights.py, please.", "cheap-flights.sh/deal",
    "Log in at secure-bank.zip/login.", "**secure-bank.md/login?x=1**", "pay-now.mov/x", "Visit acme-deals.pl now.", "kupujemy.pl/oferta",
    "Buy it at kupujemy.pl.", "Kupisz to na kupujemy.pl, jeśli chcesz.", "Reserve em barcos.pt, não espere.", "sklep.kupujemy.pl",
    "marjane.ma", "acme.info", "acme-deals.com", "https://train.py",
]  # fmt: skip


@pytest.mark.parametrize("text", FILES)
def test_file_or_module_is_no_host(text: str) -> None:
    """bleach 35, zulip 18897, linkifyjs 526, smaug 25: names of files and modules that end like a domain became links."""
    assert grounded(text) is True


@pytest.mark.parametrize("text", HOSTS)
def test_host_can_end_like_a_file(text: str) -> None:
    """linkify-plus-plus 76, marky-markdown 146: with a path or ``www.``, or in the country's language, the ending is a domain."""
    assert grounded(text) is False
