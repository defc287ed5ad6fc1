"""Vectors of images and texts: a tiny CLIP of ONNX files, made here, and servers that take images in their own ways."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError, JudgeError, MetricError
from otel_agenteval.judging.models import embedder_from, recording
from otel_agenteval.judging.models.clip_embedder import ClipEmbedder
from otel_agenteval.media.types import ImageReference
from otel_agenteval.metrics.lib.vectors import cosine
from tests.support.media import image, uri, video

COLOURS = {"red": (220, 20, 20), "green": (20, 220, 20), "blue": (20, 20, 220)}
MEAN, STD = [0.48, 0.46, 0.41], [0.27, 0.26, 0.28]


def picture(colour: str, width: int = 40, height: int = 24) -> ImageReference:
    return ImageReference(uri(image(np.full((height, width, 3), COLOURS[colour], np.uint8)), "image/png"))


def write_model(folder: Path, *, one_file: bool = False, below: str = "", edge: Any = None, crop: bool = True) -> Path:
    """A model that knows three colours: a text's vector is the mean of its words', an image's is its mean colour."""
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
        helper.make_node("GlobalAveragePool", ["pixel_values"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["image_embeds"]),
    ]
    constants = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([2]), "last"),
        numpy_helper.from_array(np.array([1]), "second"),
    ]

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
    size = edge or ({"shortest_edge": 16} if crop else {"height": 16, "width": 12})
    how = {
        "do_center_crop": crop,
        "crop_size": {"height": 16, "width": 16},
        "size": size,
        "image_mean": MEAN,
        "image_std": STD,
        "resample": 3,
    }
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
    """Cropped in the middle: what stands at the sides is not seen."""
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
    frames = [np.full((48, 64, 3), COLOURS[colour], np.uint8) for colour in ("red", "blue") for _ in range(20)]
    clip_turn = oa.Turn.from_dict(
        {"output": "a red picture", "attachments": [{"modality": "video", "data": base64.b64encode(video(frames)).decode()}]}
    )
    found = oa.get_metric("embed_video_response_relevance", num_frames=4).evaluate(clip_turn, embedder=clip)
    assert found.detail["max"] > 0.97
    assert found.detail["min"] < 0.3
    assert found.value == pytest.approx(0.6 * found.detail["avg"] + 0.4 * found.detail["max"])


def test_a_call_costs_nothing_and_counts_no_image_as_text(tmp_path: Path) -> None:
    clip = ClipEmbedder(str(write_model(tmp_path)))
    with recording() as accounts:
        clip.embed(["red", picture("red", 400, 400)])
    (account,) = accounts
    assert (account.model, account.provider, account.cost_usd) == ("local/clip", "local", 0.0)
    assert account.input_tokens is not None
    assert account.input_tokens < 2_000


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
    ("given", "message"),
    [
        ({"model": "local/clip"}, "path: required"),
        ({"model": "local/wordllama", "path": "x"}, "requires model local/clip"),
        ({"model": "m", "base_url": "http://h/v1", "path": "x"}, "requires model local/clip"),
        ({"model": "local/clip", "path": "/nowhere"}, "embedder.path: neither .* '/nowhere'"),
    ],
)
def test_half_a_configuration_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        embedder_from(load_config({"embedder": given}, env={}))


# --- servers


@pytest.mark.parametrize("images", ["text", "object", "messages"])
def test_servers_are_sent_images_in_their_own_way(images: Any) -> None:
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            bodies.append(body)
            items = body.get("input", [None])
            out = json.dumps(
                {"data": [{"index": n, "embedding": [float(len(bodies)), float(n)]} for n in range(len(items))]}
            ).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    embedder = oa.Embedder(base_url=f"http://127.0.0.1:{server.server_port}/v1", model="m", images=images)
    try:
        red, blue = picture("red"), picture("blue")
        vectors = embedder.embed(["words", red, "more", blue])
        assert len(vectors) == 4
        assert embedder.embed(["alone"])
    finally:
        embedder.close()
        server.shutdown()
        server.server_close()
    raw = {name: str(one).partition(",")[2] for name, one in (("red", red), ("blue", blue))}
    assert bodies.pop()["input"] == ["alone"]
    if images == "text":
        assert [body["input"] for body in bodies] == [["words", str(red), "more", str(blue)]]
    elif images == "object":
        assert [body["input"] for body in bodies] == [
            [{"text": "words"}, {"image": raw["red"]}, {"text": "more"}, {"image": raw["blue"]}]
        ]
    else:
        sent = [body["input"] if "input" in body else body["messages"][0]["content"][0]["image_url"]["url"] for body in bodies]
        assert sent == [["words"], str(red), ["more"], str(blue)]


def test_other_ways_are_refused() -> None:
    with pytest.raises(ConfigError, match="got 'bytes'"):
        oa.Embedder(base_url="http://h/v1", model="m", images="bytes")  # type: ignore[arg-type]
