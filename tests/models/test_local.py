"""Vectors made in this process, by a model that came with a package."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError, MissingExtra
from otel_agenteval.judging.models import LocalEmbedder, embedder_from, recording
from tests.support.rig import Rig

MODEL = "local/wordllama"


def similarity(one: str, other: str) -> float:
    first, second = LocalEmbedder(MODEL).embed([one, other])
    assert len(first) == len(second) == 256
    return sum(a * b for a, b in zip(first, second, strict=True))


def test_texts_about_the_same_are_near_each_other_and_others_are_not() -> None:
    near = similarity("The train to Paris leaves at nine.", "At nine o'clock the Paris train departs.")
    far = similarity("The train to Paris leaves at nine.", "Photosynthesis turns light into sugar.")
    assert near > 0.5
    assert far < 0.3


def test_equal_texts_are_equal_whatever_stands_beside_them_and_no_words_are_no_vector() -> None:
    embedder = LocalEmbedder(MODEL)
    assert embedder.embed(["one two", "a much longer text " * 200])[0] == embedder.embed(["one two"])[0]
    assert embedder.embed([""]) == [[0.0] * 256]
    assert embedder.embed([]) == []


def test_a_call_is_accounted_for_and_costs_nothing() -> None:
    embedder = LocalEmbedder(MODEL)
    with recording() as accounts:
        embedder.embed(["four pieces of words"])
    (account,) = accounts
    assert (account.model, account.provider, account.cost_usd, account.charge_usd) == (MODEL, "local", 0.0, 0.0)
    assert embedder.total().requests == 1


def test_it_is_configured_by_its_name_alone_and_scores_live_turns() -> None:
    assert isinstance(embedder_from(load_config({"embedder": {"model": MODEL}}, env={})), LocalEmbedder)
    config: dict[str, Any] = {
        "embedder": {"model": MODEL}, "metrics": [{"embed_coherence": {}, "sample": {"rate": 1}}], "inline": {"metrics": []},
        "judge": {"budget": {"usd_per_hour": 1}},
    }  # fmt: skip
    with Rig(config) as rig:
        rig.run(says="Lyon is a city in France.")
        assert rig.engine.drain(20.0, judges=True)
        (event,) = rig.log_events()
    attributes = dict(event.attributes)
    assert attributes["gen_ai.evaluation.name"] == "embed_coherence"
    assert 0 <= attributes["gen_ai.evaluation.score.value"] <= 1
    assert attributes["agenteval.judge.model"] == MODEL


def test_an_unknown_model_is_refused_with_its_path() -> None:
    with pytest.raises(ConfigError, match=r"embedder.model: must be local/wordllama, got 'local/bert'"):
        embedder_from(load_config({"embedder": {"model": "local/bert"}}, env={}))


def test_without_its_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.import_module

    def missing(name: str, package: str | None = None) -> Any:
        if name == "tokenizers":
            raise ImportError(name)
        return found(name, package)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"\[embed\]"):
        LocalEmbedder(MODEL)
