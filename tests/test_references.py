"""Reference data of turns: sources, precedence, and errors of invalid sources."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from opentelemetry import baggage, context

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.evaluator import Evaluator, evaluate
from otel_agenteval.evaluation.limits import Shedding
from otel_agenteval.evaluation.references import ReferenceSources, applies
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.judging.models.panel import Choice
from tests.support.rig import Rig


def sources(**options):
    return ReferenceSources(load_config({"references": options}, env={}))


def turn(**known):
    return Turn.from_dict({"turn_id": "t-1", "input": "Capital of  France?", "output": "Paris", **known})


def attached(reference_sources, about, attributes=None):
    where = reference_sources.attach(about, attributes or {})
    return about.references, where


@pytest.mark.parametrize(
    ("when", "meant"),
    [
        ({"agent": "travel"}, True), ({"agent": ["x", "tra*"]}, True), ({"agent": "Travel"}, False), ({"service": "shop"}, True),
        ({"model": "gpt-*"}, True), ({"model": "claude*"}, False), ({"step": "tool"}, True), ({"step": ["tool", "retrieval"]}, False),
        ({"step": "llm"}, True), ({"step": "handoff"}, False), ({"step": "sub_agent"}, False), ({"conversation": "c*"}, True),
        ({"attribute": {"http.route": "/chat*"}}, True), ({"attribute": {"http.route": "/x"}}, False), ({"attribute": {"beta": "true"}}, True),
        ({"attribute": {"absent": "*"}}, False), ({"agent": "travel", "service": "other"}, False), ({}, True),
    ],
)  # fmt: skip
def test_a_selector_means_a_turn(when, meant):
    attributes = {"http.route": "/chat/1", "beta": True}
    about = turn(
        turn_id="a1-b2", agent="travel", service="shop", conversation_id="c1", llm_calls=[{"model": "gpt-4o"}],
        tool_calls=[{"name": "search"}], spans=[{"id": "b2", "name": "root", "attributes": attributes}],
    )  # fmt: skip
    config = load_config({"metrics": [{"code_latency": {}, "when": when}]}, env={})
    assert applies(config.metrics[0].when, about) is meant


@pytest.mark.parametrize(("pattern", "meant"), [("[EMAIL-9f3a]", True), ("[EMAIL-*]", True), ("[E]*", False)])
def test_a_selector_matches_pseudonyms_in_brackets(pattern, meant):
    config = load_config({"metrics": [{"code_latency": {}, "when": {"agent": pattern}}]}, env={})
    assert applies(config.metrics[0].when, turn(agent="[EMAIL-9f3a]")) is meant
    assert Choice(None, agents=[pattern]).fits("llm_tone", "[EMAIL-9f3a]") is meant


def test_references_can_be_given_for_an_agent():
    given = [{"when": {"agent": "travel"}, "expected_tools": ["book"]}, {"expected_tools": ["search"], "ground_truth": "Paris"}]
    found, where = attached(sources(given=given), turn(agent="travel"))
    assert found == {"expected_tools": ["book"], "ground_truth": "Paris"}
    assert set(where.values()) == {"config"}
    assert attached(sources(given=given), turn(agent="other"))[0]["expected_tools"] == ["search"]


def rows(folder, *cases):
    """Write a dataset with these cases, and return its path."""
    path = folder / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return str(path)


CASES = [
    {"case_id": "c1", "ground_truth": "Paris", "expected_tools": ["search"]},
    {"id": 2, "input": "Capital of France?", "ground_truth": "Paris", "references": {"relevant_ids": ["d1"]}},
]


@pytest.fixture(params=["jsonl", "csv", "parquet"])
def dataset(request, tmp_path):
    """Return the cases in each file format."""
    path = tmp_path / f"cases.{request.param}"
    if request.param == "jsonl":
        rows(tmp_path, *CASES)
    elif request.param == "csv":
        path.write_text(
            "case_id,input,ground_truth,expected_tools,references\n"
            'c1,,Paris,"[""search""]",\n'
            '2,Capital of France?,Paris,,"{""relevant_ids"": [""d1""]}"\n'
        )
    else:
        arrow = pytest.importorskip("pyarrow")
        columns = ("case_id", "input", "ground_truth", "expected_tools", "references")
        cases = (CASES[0], {**CASES[1], "case_id": "2"})
        table = arrow.Table.from_pylist([{key: case.get(key) for key in columns} for case in cases])
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return str(path)


def test_damaged_parquet_dataset_is_a_config_error(tmp_path):
    pytest.importorskip("pyarrow.parquet")
    (tmp_path / "cases.parquet").write_bytes(b"no Parquet file")
    with pytest.raises(oa.ConfigError, match=r"cases\.parquet: can't be read: "):
        sources(dataset=str(tmp_path / "cases.parquet"))


def test_a_data_set_is_asked_by_case_id_or_input(dataset):
    found, where = attached(sources(dataset=dataset), turn(references={"case_id": "c1"}))
    assert found == {"case_id": "c1", "ground_truth": "Paris", "expected_tools": ["search"]}
    assert where == {"case_id": "expect", "ground_truth": "dataset", "expected_tools": "dataset"}
    about = turn()
    found, _ = attached(sources(dataset=dataset), about)
    assert (found["ground_truth"], found["relevant_ids"], found["case_id"]) == ("Paris", ["d1"], "2")
    assert (about.ground_truth, about.relevant_ids) == ("Paris", ["d1"])
    assert attached(sources(dataset=dataset), turn(input="Another question"))[0] == {}


@pytest.mark.parametrize(
    ("place", "content"),
    [
        ("absent.jsonl", None),
        ("cases.jsonl:1", '{"ground_truth": "x"}'),
        ("cases.jsonl:2", '{"case_id": 1}\n{'),
        ("cases.jsonl", "[1]"),
        ("cases.csv", "a,b\n1,2\n"),
    ],
)
def test_a_bad_data_set_is_refused_with_its_line(tmp_path, place, content):
    path = tmp_path / place.partition(":")[0]
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=rf"references\.dataset: .*{re.escape(place)}: "):
        sources(dataset=str(path))


# --- the nearest wins, and the score says which it was


def test_the_nearest_source_wins_name_by_name(tmp_path):
    dataset = rows(tmp_path, {"input": "Capital of France?", "ground_truth": "d", "a": "d", "b": "d", "c": "d"})
    told = sources(accept_from=["said.a", "said.b"], given=[{"a": "g", "b": "g", "c": "g"}], dataset=dataset)
    found, where = attached(told, turn(references={"a": "e"}), {"said.a": "s", "said.b": "s"})
    assert found == {"a": "e", "b": "s", "c": "g", "ground_truth": "d"}
    assert where == {"a": "expect", "b": "span attribute said.b", "c": "config", "ground_truth": "dataset"}


def test_a_metric_is_evaluated_only_on_the_turns_that_it_is_for():
    config = load_config({"inline": {"metrics": []}, "metrics": [{"code_latency": {}, "when": {"agent": "travel"}}]}, env={})
    metrics = select_metrics(config)
    assert [score.metric for score in evaluate(turn(agent="travel", duration_s=1.0), metrics)] == ["code_latency"]
    assert evaluate(turn(agent="support", duration_s=1.0), metrics) == []


# --- live


def recall(rig):
    """Return the live score that compares retrieved with relevant ids."""
    return next(score for scored in rig.scored() for score in scored.scores if score.metric == "code_recall_at_k")


LIVE = {"inline": {"metrics": []}, "metrics": [{"code_recall_at_k": {"k": 1}}]}


def retrieve(rig, **more):
    found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": '[{"id": "d1"}]'}
    with rig.agent(**more):
        rig.tracer.start_span("retrieval", attributes=found).end()
        rig.chat("q", "a")


@pytest.mark.parametrize(
    ("accepted", "origin"),
    [
        (["eval.ids"], None),
        ({"eval.ids": "relevant_ids"}, "span attribute eval.ids"),
        ({"baggage:eval.ids": "relevant_ids"}, "baggage eval.ids"),
    ],
)
def test_attributes_and_baggage_are_references_where_they_are_let_in(accepted, origin):
    with Rig({**LIVE, "references": {"accept_from": accepted}}) as rig:
        token = context.attach(baggage.set_baggage("eval.ids", '["d1"]', baggage.set_baggage("relevant_ids", '["d1"]')))
        try:
            retrieve(rig, attributes={"eval.ids": ["d1"], "relevant_ids": ["d1"]})
        finally:
            context.detach(token)
        score = recall(rig)
    assert score.status == ("skipped" if origin is None else "ok")
    assert score.detail.get("reference_from") == (None if origin is None else {"relevant_ids": origin})


def test_a_case_that_was_propagated_finds_its_row_in_the_data_set(tmp_path):
    dataset = rows(tmp_path, {"case_id": "case-7", "relevant_ids": ["d1"]})
    references = {"accept_from": {"baggage:agenteval.case.id": "case_id"}, "dataset": dataset}
    with Rig({**LIVE, "references": references}) as rig:
        with oa.expect(case_id="case-7", propagate=True):
            retrieve(rig)
        assert recall(rig).detail["reference_from"] == {"relevant_ids": "dataset"}


@pytest.mark.parametrize(
    ("when", "path"),
    [({"agnt": "x"}, "when.agnt: .*'agent'"), ({"agent": 5}, "when.agent"), ("travel", "when"), ({"step": "tol"}, "when.step")],
)
def test_a_bad_selector_is_refused_with_its_path(when, path):
    with pytest.raises(ConfigError, match=rf"metrics\[0\]\.{path}"):
        load_config({"metrics": [{"code_latency": {}, "when": when}]}, env={})


def test_the_effective_configuration_shows_selectors_and_references():
    given = [{"when": {"agent": ["travel"]}, "expected_tools": ["book"]}]
    references = {"given": given, "accept_from": {"a.b": "b"}}
    written = {"references": references, "metrics": [{"code_latency": {}, "when": {"step": ["tool"]}}]}
    config = load_config(written, env={})
    assert load_config(config.to_dict(), env={}) == config


# --- facts beside the references


def test_facts_that_no_span_says_can_be_given():
    images = [{"modality": "image", "uri": "https://cdn.example.com/1.png"}]
    given = {
        "context": "Paris is the capital.", "workflow": {"graph": {"nodes": ["a"]}}, "agents": {"a": {"authority_level": 2}}, "metadata": {"cost": 1.5},
        "attachments": images,
    }  # fmt: skip
    about = turn()
    sources(given=[given]).attach(about, {})
    assert {name: getattr(about, name) for name in given} == {**given, "context": ["Paris is the capital."]}
    known = turn(context=["Seen."], metadata={"cost": 1})
    sources(given=[given]).attach(known, {})
    assert (known.context, known.metadata) == (["Seen."], {"cost": 1}), "what a turn knows of itself wins"


def test_a_fact_of_the_wrong_kind_is_none():
    about = turn()
    told = {"eval.context": "7", "eval.agents": "no object", "eval.logprobs": '["x"]'}
    sources(accept_from=[*told]).attach(about, told)
    assert (about.context, about.agents, about.logprobs) == (["7"], {}, None)


# --- retrieval by tool

FOUND = {
    "matches": [
        {"id": 7, "text": "Paris is the capital.", "score": 0.9},
        {"page_content": "It is old."},
        "A city.",
        {"x": 1},
        None,
    ]
}
TEXTS = ["Paris is the capital.", "It is old.", "A city.", '{"x":1}']


@pytest.mark.parametrize(
    ("result", "texts", "ids"),
    [
        pytest.param(FOUND, TEXTS, ["7"], id="an object with a list"),
        pytest.param(json.dumps(FOUND), TEXTS, ["7"], id="that as JSON text"),
        pytest.param("Paris is the capital.", ["Paris is the capital."], None, id="a text"),
        pytest.param({"content": "Alone.", "id": "d1"}, ["Alone."], ["d1"], id="one document"),
        pytest.param([], [], None, id="nothing was found"),
    ],
)
def test_results_of_tools_that_look_things_up_are_the_context(result, texts, ids):
    calls = [{"name": "kb_search", "arguments": {"q": "capital"}, "result": result}, {"name": "pay", "result": "done"}]
    about = turn(tool_calls=calls)
    where = sources(retrievers=["search", "kb_*"]).attach(about, {})
    assert (about.context, about.retrieved_ids) == (texts, ids)
    assert where == ({"context": "tool kb_search"} if texts else {})
    assert [retrieval.query for retrieval in about.retrievals] == (['{"q":"capital"}'] if texts else [])


@pytest.mark.parametrize(
    ("result", "relevant", "ids"),
    [
        pytest.param([{"id": "d9", "text": "a"}, {"doc_id": "d1", "score": 0.5}], ["d1"], ["d9", "d1"], id="documents"),
        pytest.param('{"matches": [{"id": 4, "score": 1}, {"id": 7, "score": 0}]}', ["7"], ["4", "7"], id="documents as JSON text"),
        pytest.param("1. KB-31: Refunds\n2. kb-7 (Delivery), see kb-31a", ["kb-7"], ["KB-31", "kb-7"], id="a text"),
        pytest.param([{"type": "text", "text": "docs/a1.md, docs/b22.md"}], ["a1.md"], ["a1.md"], id="parts of a text"),
        pytest.param(
            "id 0b6e1c9a-1111-4222-8333-444455556666.", ["ffffffff-aaaa-4bbb-8ccc-dddddddddddd"],
            ["0b6e1c9a-1111-4222-8333-444455556666"], id="a UUID",
        ),
        pytest.param("Refunds take 14 days.", ["refunds", "14"], None, id="ids that look like words and numbers"),
        pytest.param([{"id": "A-7", "status": "shipped"}], ["kb-7"], None, id="an object that isn't a document"),
    ],
)  # fmt: skip
def test_retrieved_ids_stand_in_the_results_of_tools(result, relevant, ids):
    calls = [{"name": "pay", "result": "kb-99", "error": True}, {"name": "search", "result": result}]
    about = turn(tool_calls=calls, relevant_ids=relevant)
    where = sources().attach(about, {})
    assert about.retrieved_ids == ids
    assert where == ({"retrieved_ids": "tool search"} if ids else {})
    known = turn(tool_calls=calls, relevant_ids=relevant, retrieved_ids=["x"])
    sources().attach(known, {})
    assert known.retrieved_ids == ["x"]


def test_named_retrievers_alone_give_ids_and_an_empty_list_is_a_fact() -> None:
    for result, ids in (("kb-2", ["kb-2"]), ([], [])):
        about = turn(
            tool_calls=[{"name": "orders", "result": "kb-1"}, {"name": "search", "result": result}], relevant_ids=["kb-2"]
        )
        sources(retrievers=["search"]).attach(about, {})
        assert about.retrieved_ids == ids


def test_recall_and_rank_are_those_of_ids_in_tool_results() -> None:
    references = {"given": [{"relevant_ids": ["kb-7", "kb-8"]}]}
    about = turn(tool_calls=[{"name": "search", "result": "kb-31, kb-7"}])
    scores = oa.score_turns(about, ["code_recall_at_k", "code_mrr"], config={"references": references})[0][1]
    assert [score.value for score in scores] == [0.5, 0.5]
    assert scores[0].detail["reference_from"] == {"relevant_ids": "config", "retrieved_ids": "tool search"}


def test_a_failed_look_up_found_nothing_and_a_retrieval_span_wins():
    for call, texts in (({"result": "boom", "error": True}, []), ({"result": "tool's"}, ["span's"])):
        about = turn(tool_calls=[{"name": "search", **call}], context=texts)
        assert sources(retrievers=["search"]).attach(about, {}) == {}
        assert about.context == texts


def test_a_metric_that_the_time_budget_cut_says_where_its_references_came_from() -> None:
    config = load_config({"references": {"given": [{"references": {"expected_tools": ["search"]}}]}})
    metrics = [oa.get_metric("code_empty_answer"), oa.get_metric("code_tool_call_order")]
    evaluator = Evaluator(metrics, (), ReferenceSources(config), -1.0, Shedding(lambda: 0.0))
    turn = oa.Turn.from_dict({"turn_id": "t-1", "output": "x", "tool_calls": [{"name": "search"}]})
    scored = ScoredTurn(turn, Root(1, 2), ())
    evaluator.evaluate(scored, {}, waited_for=True)
    assert [score.metric for score in scored.scores] == ["code_empty_answer"]
    evaluator.finish(scored)
    assert scored.scores[1].detail["reference_from"] == {"expected_tools": "config"}
    assert scored.scores[1].about == scored.scores[0].about


# --- documents in the prompt, ids, and white space

TEMPLATE = "Documents:\n{documents}\n\nQuestion: {question}"
PROMPT = "Documents:\nPlain text.\n[kb-2] Refunds take 5 days.\n\nQuestion: How long do refunds take?"


def turns_by_prompts(text, **more):
    return turn(input=text, messages=[{"role": "user", "content": text}, {"role": "assistant", "content": "5 days."}], **more)


@pytest.mark.parametrize(
    ("template", "prompt", "texts", "ids", "question"),
    [
        pytest.param(TEMPLATE, PROMPT, ["Plain text.", "Refunds take 5 days."], ["kb-2"], "How long do refunds take?", id="lines"),
        pytest.param(
            TEMPLATE, "Documents:\n- One,\nin two lines.\n\n2. Two.\n\nQuestion: Why?\n", ["One,\nin two lines.", "Two."], None, "Why?",
            id="paragraphs",
        ),
        pytest.param("{rules}\n<kb>{documents}</kb>", "Be short.\n<kb>[a]: One.\n[b]: Two.</kb>", ["One.", "Two."], ["a", "b"], None,
                     id="no place for the question"),
        pytest.param(TEMPLATE, "Documents: none", [], None, None, id="another prompt"),
    ],
)  # fmt: skip
def test_documents_in_the_prompt_are_the_context(template, prompt, texts, ids, question):
    about = turns_by_prompts(prompt)
    where = sources(prompts=[template]).attach(about, {})
    assert (about.context, about.retrieved_ids, about.input) == (texts, ids, question or prompt)
    assert where == ({"context": "prompt"} if texts else {})
    assert [retrieval.query for retrieval in about.retrievals] == ([question] if texts else [])


def test_the_question_of_a_prompt_finds_its_case(tmp_path):
    about = turns_by_prompts(PROMPT)
    dataset = rows(tmp_path, {"input": "How long do refunds take?", "ground_truth": "5 days."})
    sources(prompts=TEMPLATE, dataset=dataset).attach(about, {})
    assert about.ground_truth == "5 days."


def test_the_first_template_that_fits_is_taken_unless_a_span_retrieved():
    about = turns_by_prompts(PROMPT)
    sources(prompts=["About {documents}.", TEMPLATE, "{documents}?"]).attach(about, {})
    assert about.context == ["Plain text.", "Refunds take 5 days."]
    known = turns_by_prompts(PROMPT, context=["span's"])
    assert sources(prompts=TEMPLATE).attach(known, {}) == {}
    assert (known.context, known.input) == (["span's"], PROMPT)


@pytest.mark.parametrize(
    ("mapping", "found", "ids"),
    [
        ({"s3://kb/*.md": "*"}, ["s3://kb/a.md", "s3://kb/b.txt"], ["a", "s3://kb/b.txt"]),
        ({"n1": "kb-1", "n*": "kb-*"}, ["n1", "n2", "n"], ["kb-1", "kb-2", "kb-"]),
        ({"kb-1#*": "kb-1"}, ["kb-1#a", "kb-2", "kb-1#b"], ["kb-1", "kb-2"]),
        ({"aba*ba": "*"}, ["aba"], ["aba"]),
    ],
    ids=["around the id", "the first that fits", "pieces of one document", "too short for both sides"],
)
def test_ids_of_documents_are_spelled_as_references_spell_them(mapping, found, ids):
    about = turn(retrieved_ids=found)
    sources(document_ids=mapping).attach(about, {})
    assert about.retrieved_ids == ids


def test_white_space_at_the_end_counts_for_nothing_where_it_should():
    for trim, truth, left in ((True, ["Paris ", 5], ("Paris", ["Paris", 5])), (False, "Paris \n", ("Paris\n\n", "Paris \n"))):
        about = turn(output="Paris\n\n", ground_truth=truth)
        sources(trim=trim).attach(about, {})
        assert (about.output, about.ground_truth) == left


# --- parts of facts


def test_a_dotted_name_gives_one_part_of_a_fact():
    about = turn(metadata={"plan": "gold"}, workflow={"steps": [{"executor": "a"}]})
    told = {"app.consent": '{"location": false}', "app.plan": "free", "app.graph": '{"nodes": ["a"]}', "app.epsilon": 0.5}
    parts = ("metadata.consent", "metadata.plan", "workflow.graph", "privacy.epsilon")
    sources(accept_from=dict(zip(told, parts, strict=True))).attach(about, told)
    assert about.metadata == {"plan": "gold", "consent": {"location": False}}, "what the turn holds wins"
    assert about.workflow == {"steps": [{"executor": "a"}], "graph": {"nodes": ["a"]}}
    assert about.privacy == {"epsilon": 0.5}
    nothing = turn()
    sources().attach(nothing, told)
    assert (nothing.metadata, nothing.privacy) == ({}, None)


def test_a_column_of_a_data_set_can_be_a_part(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text('input,metadata.consent,context.x,nothing.y\nCapital of France?,"{""location"": true}",a,b\n')
    about = turn()
    sources(dataset=str(path)).attach(about, {})
    assert (about.metadata, about.context) == ({"consent": {"location": True}}, [])


def test_a_score_says_where_a_part_came_from():
    given = sources(accept_from={"app.consent": "metadata.consent"})
    about = turn(spans=[{"id": "t", "attributes": {"app.consent": '{"paris": false}'}}], turn_id="t-t")
    (score,) = evaluate(about, [oa.get_metric("code_consent_compliance")], given)
    assert (score.passed, score.detail["reference_from"]) == (False, {"metadata.consent": "span attribute app.consent"})


JSON_ANSWER = '{"output": "Paris", "context": ["In France."], "n": {"items": [1, "last"]}}'


def response(**paths):
    return {"references": {"response": paths}}


@pytest.mark.parametrize(
    ("config", "answer", "output", "context"),
    [
        (response(output=["none", "n.items[-1]"], context="context"), JSON_ANSWER, "last", ["In France."]),
        (response(output="n"), JSON_ANSWER, '{"items":[1,"last"]}', []),
        (response(output="n.items[-3]"), JSON_ANSWER, JSON_ANSWER, []),
        ({"preset": "trusys"}, JSON_ANSWER, "Paris", ["In France."]),
        ({"preset": "trusys"}, "Paris", "Paris", []),
        ({"preset": "trusys"}, '["output"]', '["output"]', []),
        ({"preset": "trusys", **response()}, JSON_ANSWER, JSON_ANSWER, []),
        ({}, JSON_ANSWER, JSON_ANSWER, []),
    ],
)
def test_answer_in_json_is_unwrapped(config: Any, answer: str, output: str, context: list[str]) -> None:
    turn = oa.Turn(turn_id="t", output=answer)
    oa.score_turns(turn, ["code_word_count"], config=config)
    assert (turn.output, turn.context or []) == (output, context)
