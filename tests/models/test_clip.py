"""Embeddings of images and texts by a tiny CLIP model (generated ONNX files), and by servers with different image APIs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError, JudgeError, MetricError
from otel_agenteval.judging.models import LocalEmbedder, embedder_from, recording
from otel_agenteval.judging.models.embedder import ClipEmbedder
from otel_agenteval.media.access import ImageReference
from otel_agenteval.metrics.embed.embeddings import cosine
from tests.models.wire import Request, Response, Server
from tests.support.media import image, uri
from tests.support.rig import Rig

COLOURS = {"red": (220, 20, 20), "green": (20, 220, 20), "blue": (20, 20, 220)}
MEAN, STD = [0.48, 0.46, 0.41], [0.27, 0.26, 0.28]


def picture(colour: str, width: int = 40, height: int = 24) -> ImageReference:
    return ImageReference(uri(image(np.full((height, width, 3), COLOURS[colour], np.uint8)), "image/png"))


def write_model(folder: Path, *, one_file: bool = False, below: str = "", crop: bool = True) -> Path:
    """Write a model that knows three colors. A text's vector is the mean of its words, an image's vector its mean color."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[PAD]", "[UNK]", *COLOURS, "a", "picture"]
    table = np.zeros((len(words), 3), np.float32)
    for place, colour in enumerate(COLOURS.values()):
        table[2 + place] = (np.array(colour) / 255 - MEAN) / STD
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "length"])
    pixels = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["batch", 3, "height", "width"])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("text_embeds", "image_embeds")]
    text_nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]), helper.make_node("Cast", ["attention_mask"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["floats", "last"], ["weights"]), helper.make_node("Mul", ["rows", "weights"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "second"], ["text_embeds"], keepdims=0),
    ]  # fmt: skip
    image_nodes = [
        helper.make_node("GlobalAveragePool", ["pixel_values"], ["pooled"]), helper.make_node("Flatten", ["pooled"], ["image_embeds"]),
    ]  # fmt: skip
    given = {"table": table, "last": np.array([2]), "second": np.array([1])}
    constants = [numpy_helper.from_array(value, name) for name, value in given.items()]

    def save(name: str, nodes: Any, inputs: Any, given: Any, held: Any) -> None:
        model = helper.make_model(
            helper.make_graph(nodes, "clip", inputs, given, held), opset_imports=[helper.make_opsetid("", 17)], ir_version=9
        )
        onnx.checker.check_model(model)
        target = folder / below / name
        target.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, target)

    if one_file:
        save("model.onnx", [*text_nodes, *image_nodes], [ids, mask, pixels], outputs, constants)
    else:
        save("text_model.onnx", text_nodes, [ids, mask], outputs[:1], constants)
        save("vision_model.onnx", image_nodes, [pixels], outputs[1:], [])
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    size = {"shortest_edge": 16} if crop else {"height": 16, "width": 12}
    how = {
        "do_center_crop": crop, "crop_size": {"height": 16, "width": 16}, "size": size, "image_mean": MEAN, "image_std": STD, "resample": 3,
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(how), encoding="utf-8")
    return folder


@pytest.fixture(params=["two files", "one file", "in a folder onnx", "without cropping"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> ClipEmbedder:
    options: dict[str, dict[str, Any]] = {
        "two files": {}, "one file": {"one_file": True}, "in a folder onnx": {"below": "onnx"}, "without cropping": {"crop": False},
    }  # fmt: skip
    return ClipEmbedder(str(write_model(tmp_path, **options[request.param])))


def test_images_are_near_the_texts_that_say_what_they_show(model: ClipEmbedder) -> None:
    vectors = model.embed([*COLOURS, *map(picture, COLOURS)])
    texts, images = vectors[:3], vectors[3:]
    near = [[cosine(text, seen) for seen in images] for text in texts]
    assert [row.index(max(row)) for row in near] == [0, 1, 2]
    assert all(near[place][place] > 0.99 for place in range(3))
    assert all(abs(sum(x * x for x in vector) - 1) < 1e-5 for vector in vectors)


def test_an_image_is_seen_as_the_model_was_trained_to(tmp_path: Path) -> None:
    """Images are cropped to the center, so that the sides don't matter."""
    clip = ClipEmbedder(str(write_model(tmp_path)))
    wide = np.full((20, 100, 3), COLOURS["red"], np.uint8)
    wide[:, 30:70] = COLOURS["blue"]
    (seen, blue) = clip.embed([ImageReference(uri(image(wide), "image/png")), picture("blue", 20, 20)])
    assert cosine(seen, blue) > 0.99


def test_metrics_take_it(tmp_path: Path) -> None:
    write_model(tmp_path)
    config = load_config({"embedder": {"model": "local/clip", "path": str(tmp_path)}}, env={})
    clip = embedder_from(config)
    assert isinstance(clip, ClipEmbedder)
    grounding = oa.get_metric("embed_cross_modal_grounding", threshold=0.5)

    def score(answer: str, shown: str) -> oa.Score:
        turn = oa.Turn.from_dict({"output": answer, "attachments": [{"modality": "image", "uri": str(picture(shown))}]})
        return grounding.evaluate(turn, embedder=clip)

    assert score("a red picture", "red").passed
    assert score("a red picture", "blue").passed is False


def test_what_it_cannot_see(tmp_path: Path) -> None:
    clip = ClipEmbedder(str(write_model(tmp_path)))
    for reference, error in (
        ("img-7", JudgeError),
        ("https://h.example/a.png", MetricError),
        ("data:image/png;base64,AAAA", MetricError),
    ):
        with pytest.raises(error):
            clip.embed([ImageReference(reference)])


def test_folders_that_hold_no_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"neither text_model\.onnx nor model\.onnx"):
        ClipEmbedder(str(tmp_path))
    write_model(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"tokenizer\.json not found"):
        ClipEmbedder(str(tmp_path))


@pytest.mark.parametrize(
    "given",
    [
        {"model": "local/clip"}, {"model": "local/wordllama", "path": "x"}, {"model": "m", "base_url": "http://h/v1", "path": "x"},
        {"model": "local/clip", "path": "/nowhere"},
    ],
)  # fmt: skip
def test_half_a_configuration_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"embedder\.path"):
        embedder_from(load_config({"embedder": given}, env={}))


# --- servers


@pytest.mark.parametrize("images", ["text", "object", "messages"])
def test_servers_are_sent_images_in_their_own_way(images: Any, server: Server) -> None:
    def answer(request: Request) -> Response:
        count = len(request.body.get("input", [None]))
        return Response({"data": [{"index": n, "embedding": [float(len(server.requests)), float(n)]} for n in range(count)]})

    server.answering = answer
    red, blue = picture("red"), picture("blue")
    embedder = oa.Embedder(server.url, "m", images=images)
    assert len(embedder.embed(["words", red, "more", blue])) == 4
    assert embedder.embed(["alone"])
    embedder.close()
    *bodies, last = (request.body for request in server.requests)
    assert last["input"] == ["alone"]
    sent = [body["input"] if "input" in body else body["messages"][0]["content"][0]["image_url"]["url"] for body in bodies]
    raw = {one: str(one).partition(",")[2] for one in (red, blue)}
    assert (
        sent
        == {
            "text": [["words", str(red), "more", str(blue)]],
            "object": [[{"text": "words"}, {"image": raw[red]}, {"text": "more"}, {"image": raw[blue]}]],
            "messages": [["words"], str(red), ["more"], str(blue)],
        }[images]
    )


def test_other_ways_are_refused() -> None:
    with pytest.raises(ConfigError, match="images"):
        oa.Embedder(base_url="http://h/v1", model="m", images="bytes")  # type: ignore[arg-type]


# --- texts, by a model that came with a package


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
        assert rig.engine.drain(60, judges=True)
        (event,) = rig.log_events()
    attributes = dict(event.attributes)
    assert attributes["gen_ai.evaluation.name"] == "embed_coherence"
    assert 0 <= attributes["gen_ai.evaluation.score.value"] <= 1
    assert attributes["agenteval.judge.model"] == MODEL


def test_an_unknown_model_is_refused_with_its_path() -> None:
    with pytest.raises(ConfigError, match=r"embedder\.model"):
        embedder_from(load_config({"embedder": {"model": "local/bert"}}, env={}))
