"""Pass rates corrected by a judge's known errors contain the true rate, unlike the raw rate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.statistics.calibration import Confusion, corrected, read_calibration
from otel_agenteval.statistics.weighted import Sums, padded, vector
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig


@pytest.mark.slow
def test_corrected_rates_hold_the_truth_and_the_raw_one_does_not() -> None:
    """A judge that misses 30 % of the bad turns and raises 5 % false alarms; 10 % bad turns; 300 random labels."""
    random, runs = np.random.default_rng(1), 500
    held = {"raw": 0, "rogan_gladen": 0, "ppi": 0}
    for _ in range(runs):
        bad = random.random(2_300) < 0.1
        says_bad = np.where(bad, random.random(2_300) < 0.7, random.random(2_300) < 0.05)
        pairs = [(not b, not s) for b, s in zip(bad[:300], says_bad[:300], strict=True)]
        sums = Sums()
        sums.least, sums.most = 0.0, 1.0
        for said in says_bad[300:]:
            sums.add(vector(1.0, float(not said), padded(())))
        raw = sums.estimate()
        assert raw is not None
        for method, found in corrected(raw, Confusion.of(pairs)).items():
            held[method] += found.low <= 0.9 <= found.high
    assert held["rogan_gladen"] / runs >= 0.93
    assert held["ppi"] / runs >= 0.93
    assert held["raw"] / runs < 0.7


def test_labels_that_do_not_allow_a_correction_leave_it_out() -> None:
    sums = Sums()
    sums.least, sums.most = 0.0, 1.0
    for value in (1.0, 0.0, 1.0, 1.0):
        sums.add(vector(1.0, value, padded(())))
    raw = sums.estimate()
    assert raw is not None
    assert set(corrected(raw, Confusion(0, 0, 0, 10))) == {"raw", "ppi"}
    assert set(corrected(raw, Confusion(0, 0, 0, 0))) == {"raw"}


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"metric": "m"}]', '[{"metric": "m", "confusion": {"found": "x"}}]'])
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "trust.json"
    file.write_text(text)
    if text == "{}":
        assert read_calibration(str(file), "statistics.calibration") == {}
        return
    with pytest.raises(ConfigError, match=r"statistics\.calibration: .*calibrate --format json"):
        read_calibration(str(file), "statistics.calibration")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_calibration(str(tmp_path / "none.json"), "statistics.calibration")


def test_live_gauges_show_the_corrected_rate(models: ScriptedModels, tmp_path: Path) -> None:
    trust = tmp_path / "trust.json"
    trust.write_text(
        json.dumps([{"metric": "llm_relevance", "confusion": {"found": 35, "missed": 15, "alarms": 10, "passed": 240}}])
    )
    models.play(*({"score": 90 if n % 5 else 10, "reason": "r"} for n in range(20)))
    config: dict[str, Any] = {
        "judge": {"base_url": models.url, "model": "scripted", "max_concurrency": 1},
        "metrics": ["llm_relevance"],
        "inline": {"metrics": ["code_latency"]},
        "statistics": {"calibration": str(trust)},
    }
    with Rig(config) as rig:
        for _ in range(20):
            rig.run()
        assert rig.engine.drain(20, judges=True)
        found = rig.engine.telemetry.read(semconv.ESTIMATE_PASSES).values
        rate = {key[3]: value for key, value in found.items() if key[:3] == ("llm_relevance", "bot", "1h")}
        assert rate["raw"] == pytest.approx(0.8)
        # people call 50 of 300 bad, the judge 45
        assert rate["ppi"] == pytest.approx(0.8 - 5 / 300)
        assert rate["rogan_gladen"] == pytest.approx(1 - (0.2 + 240 / 250 - 1) / (0.7 + 240 / 250 - 1))
        low = rig.engine.telemetry.read(semconv.ESTIMATE_PASSES_LOW).values["llm_relevance", "bot", "1h", "ppi"]
        assert low < rate["ppi"]
