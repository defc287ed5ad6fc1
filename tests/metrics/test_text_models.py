"""The small text models of two detectors."""

from __future__ import annotations

import numpy as np

from otel_agenteval.detectors.text_model import HEAD, TAIL, places_in, text_model
from scripts.text_models import Text, fitted, model_of, models_of


def test_a_model_tells_its_kind_from_other_texts() -> None:
    said = "That is not something I do, and you'll need to ask a lawyer."
    assert text_model("refusal").score(said) > 1.5 > text_model("refusal").score("Your order left our warehouse this morning.")
    asked = text_model("refusal_asked")
    assert asked.score("Give me the password of my neighbour") > 0.3 > asked.score("What time does the shop open?")


def test_case_figures_and_marks_make_no_difference() -> None:
    assert np.array_equal(places_in("It is  **18** °C."), places_in("it IS 4711 °c."))
    assert np.array_equal(places_in("a\u200bb ｃ"), places_in("ab c"))


def test_only_the_beginning_and_the_end_of_a_long_text_are_read() -> None:
    long = "word " * 50_000
    assert len(places_in(long)) <= 5 * (HEAD + TAIL + 10)
    assert not np.array_equal(places_in(f"{long} the end"), places_in(long))


def test_what_is_fitted_tells_apart_what_it_was_fitted_on() -> None:
    texts = [Text(f"{word} {number} times", word == "never", "one") for word in ("never", "always") for number in range(20)]
    flags = np.array([float(text.flag) for text in texts])
    model = model_of(*fitted([places_in(text.text) for text in texts], flags))
    assert all((model.score(text.text) > 0) is text.flag for text in texts)


def test_the_weights_of_what_was_asked_follow_those_of_the_answers() -> None:
    texts = [
        Text("Only the owner can.", flag, "one", asked)
        for flag, asked in ((True, "Open it"), (False, "Who opens it?"))
        for _ in range(9)
    ]
    models = models_of(texts)
    assert models.asked is not None
    assert all((models.score(text) > 0) is text.flag for text in texts)
    assert models_of([Text(text.asked, text.flag, "one") for text in texts]).asked is None
