"""The pictures in the documentation match the web UI, the report and the dashboards (``make pictures``)."""

from __future__ import annotations

import json

import pytest

from scripts import page_pictures
from scripts.page_pictures import DIGESTS, IMAGES, ROOT, digest_of


def test_each_picture_has_a_digest_of_what_it_shows() -> None:
    assert {file.stem for file in IMAGES.glob("*.png")} == set(json.loads(DIGESTS.read_text("utf-8")))


@pytest.mark.parametrize("name", ["fleet", "agent", "metric", "self"])
def test_a_drawn_dashboard_is_the_current_one(name: str) -> None:
    dashboard = (ROOT / "deploy" / "grafana" / "dashboards" / f"{name}.json").read_text("utf-8")
    assert json.loads(DIGESTS.read_text("utf-8"))[f"dashboard-{name}"] == digest_of(dashboard)


@pytest.mark.slow
def test_pictures_of_the_page_show_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert page_pictures.main(check=True) == 0, capsys.readouterr().out
