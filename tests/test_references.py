"""What turns are compared with: by whom it was said, who wins, and how bad sources are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry import baggage, context

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.evaluator import Evaluator, evaluate
from otel_agenteval.evaluation.load_shedding import Shedding
from otel_agenteval.evaluation.references import ReferenceSources, applies
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.evaluation.selection import select_metrics
from tests.support.rig import Rig


def sources(**options):
    return ReferenceSources(load_config({"references": options}, env={}))


def turn(**known):
    return Turn.from_dict({"turn_id": "t-1", "input": "Capital of  France?", "output": "Paris", **known})


def attached(reference_sources, about, attributes=None):
    where = reference_sources.attach(about, attributes or {})
    return about.references, where


# --- the sources, one by one


def test_without_sources_a_turn_has_none():
    assert attached(sources(), turn()) == ({}, {})


def test_an_attribute_says_a_reference_only_where_the_configuration_lets_it_in():
    told = {"eval.ground_truth": "Lyon", "eval.expected_tools": '["search"]'}
    assert attached(sources(), turn(), told) == ({}, {})
    assert attached(sources(accept_from=["eval.ground_truth"]), turn(), told)[0] == {"ground_truth": "Lyon"}
    found, where = attached(sources(accept_from={"eval.expected_tools": "expected_tools"}), turn(), told)
    assert found == {"expected_tools": ["search"]}
    assert where == {"expected_tools": "span attribute eval.expected_tools"}


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


def test_references_can_be_given_for_an_agent():
    given = [{"when": {"agent": "travel"}, "expected_tools": ["book"]}, {"expected_tools": ["search"], "ground_truth": "Paris"}]
    found, where = attached(sources(given=given), turn(agent="travel"))
    assert found == {"expected_tools": ["book"], "ground_truth": "Paris"}
    assert set(where.values()) == {"config"}
    assert attached(sources(given=given), turn(agent="other"))[0]["expected_tools"] == ["search"]


CASES = [
    {"case_id": "c1", "ground_truth": "Paris", "expected_tools": ["search"]},
    {"id": 2, "input": "Capital of France?", "ground_truth": "Paris", "references": {"relevant_ids": ["d1"]}},
]


@pytest.fixture(params=["jsonl", "csv", "parquet"])
def dataset(request, tmp_path):
    """The cases in each kind of file."""
    path = tmp_path / f"cases.{request.param}"
    if request.param == "jsonl":
        path.write_text("\n".join(json.dumps(case) for case in CASES) + "\n\n")
    elif request.param == "csv":
        path.write_text(
            "case_id,input,ground_truth,expected_tools,references\n"
            'c1,,Paris,"[""search""]",\n'
            '2,Capital of France?,Paris,,"{""relevant_ids"": [""d1""]}"\n'
        )
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        arrow = pytest.importorskip("pyarrow")
        columns = ("case_id", "input", "ground_truth", "expected_tools", "references")
        rows = [
            {"expected_tools": None, "references": None, "input": None, **CASES[0]},
            {**CASES[1], "case_id": "2", "expected_tools": None},
        ]
        parquet.write_table(arrow.Table.from_pylist([{key: row[key] for key in columns} for row in rows]), path)
    return str(path)


def test_a_data_set_is_asked_by_case_id(dataset):
    found, where = attached(sources(dataset=dataset), turn(references={"case_id": "c1"}))
    assert found == {"case_id": "c1", "ground_truth": "Paris", "expected_tools": ["search"]}
    assert where == {"case_id": "expect", "ground_truth": "dataset", "expected_tools": "dataset"}


def test_a_data_set_is_asked_by_input(dataset):
    about = turn()
    found, _ = attached(sources(dataset=dataset), about)
    assert (found["ground_truth"], found["relevant_ids"], found["case_id"]) == ("Paris", ["d1"], "2")
    assert (about.ground_truth, about.relevant_ids) == ("Paris", ["d1"])
    assert attached(sources(dataset=dataset), turn(input="Another question"))[0] == {}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.jsonl", None, "file not found"),
        ("cases.jsonl", '{"ground_truth": "x"}', r"cases\.jsonl:1: a case must have a case_id, an input"),
        ("cases.jsonl", '{"case_id": 1}\n{', r"cases\.jsonl:2: "),
        ("cases.jsonl", "[1]", r"cases\.jsonl: must be .*array"),
        ("cases.csv", "a,b\n1,2\n", r"cases\.csv:2: a case must have"),
    ],
)
def test_a_bad_data_set_is_refused_with_its_line(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=rf"references\.dataset: .*{message}"):
        sources(dataset=str(path))


# --- the nearest wins, and the score says which it was


def test_the_nearest_source_wins_name_by_name(tmp_path):
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps({"input": "Capital of France?", "ground_truth": "d", "a": "d", "b": "d", "c": "d"}))
    told = sources(accept_from=["said.a", "said.b"], given=[{"a": "g", "b": "g", "c": "g"}], dataset=str(cases))
    found, where = attached(told, turn(references={"a": "e"}), {"said.a": "s", "said.b": "s"})
    assert found == {"a": "e", "b": "s", "c": "g", "ground_truth": "d"}
    assert where == {"a": "expect", "b": "span attribute said.b", "c": "config", "ground_truth": "dataset"}


def test_a_score_says_where_its_reference_came_from():
    metrics = [oa.get_metric("code_recall_at_k", k=1), oa.get_metric("code_word_count", min=1)]
    about = turn(retrieved_ids=["d1"], references={"relevant_ids": ["d1"]}, relevant_ids=["d1"])
    recall, words = evaluate(about, metrics, sources())
    assert (recall.value, recall.detail["reference_from"]) == (1.0, {"relevant_ids": "expect"})
    assert "reference_from" not in words.detail


def test_a_metric_is_evaluated_only_on_the_turns_that_it_is_for():
    config = load_config({"inline": {"metrics": []}, "metrics": [{"code_latency": {}, "when": {"agent": "travel"}}]}, env={})
    metrics = select_metrics(config)
    assert [score.metric for score in evaluate(turn(agent="travel", duration_s=1.0), metrics)] == ["code_latency"]
    assert evaluate(turn(agent="support", duration_s=1.0), metrics) == []


# --- live


def recall(rig):
    """The live score that compares retrieved with relevant ids."""
    return next(score for scored in rig.scored() for score in scored.scores if score.metric == "code_recall_at_k")


LIVE = {"inline": {"metrics": []}, "metrics": [{"code_recall_at_k": {"k": 1}}]}


def retrieve(rig, **more):
    found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": '[{"id": "d1"}]'}
    with rig.agent(**more):
        rig.tracer.start_span("retrieval", attributes=found).end()
        rig.chat("q", "a")


def test_a_root_s_attribute_is_a_reference_where_it_is_let_in():
    with Rig({**LIVE, "references": {"accept_from": ["eval.relevant_ids"]}}) as rig:
        retrieve(rig, attributes={"eval.relevant_ids": ["d1"]})
        assert recall(rig).value == 1.0
        assert recall(rig).detail["reference_from"] == {"relevant_ids": "span attribute eval.relevant_ids"}


def test_baggage_is_a_reference_where_it_is_let_in():
    with Rig({**LIVE, "references": {"accept_from": {"baggage:eval.ids": "relevant_ids"}}}) as rig:
        token = context.attach(baggage.set_baggage("eval.ids", '["d1"]'))
        try:
            retrieve(rig)
        finally:
            context.detach(token)
        assert recall(rig).detail["reference_from"] == {"relevant_ids": "baggage eval.ids"}


def test_baggage_that_is_not_let_in_decides_nothing():
    with Rig(LIVE) as rig:
        token = context.attach(baggage.set_baggage("relevant_ids", '["d1"]'))
        try:
            retrieve(rig)
        finally:
            context.detach(token)
        assert recall(rig).status == "skipped"


def test_a_case_that_was_propagated_finds_its_row_in_the_data_set(tmp_path):
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps({"case_id": "case-7", "relevant_ids": ["d1"]}))
    references = {"accept_from": {"baggage:agenteval.case.id": "case_id"}, "dataset": str(cases)}
    with Rig({**LIVE, "references": references}) as rig:
        with oa.expect(case_id="case-7", propagate=True):
            retrieve(rig)
        assert recall(rig).detail["reference_from"] == {"relevant_ids": "dataset"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"code_latency": {}, "when": {"agnt": "x"}}, r"metrics\[0\]\.when\.agnt: unknown key. Did you mean 'agent'"),
        ({"code_latency": {}, "when": {"agent": 5}}, r"metrics\[0\]\.when\.agent: must be a text or a list"),
        ({"code_latency": {}, "when": "travel"}, r"metrics\[0\]\.when: must be a mapping of agent"),
        ({"code_latency": {}, "when": {"step": "tol"}}, r"metrics\[0\]\.when\.step"),
    ],
)
def test_a_bad_selector_is_refused_with_its_path(entry, message):
    with pytest.raises(ConfigError, match=message):
        load_config({"metrics": [entry]}, env={})


def test_the_effective_configuration_shows_selectors_and_references():
    given = [{"when": {"agent": ["travel"]}, "expected_tools": ["book"]}]
    written = {
        "references": {"given": given, "accept_from": {"a.b": "b"}},
        "metrics": [{"code_latency": {}, "when": {"step": ["tool"]}}],
    }
    config = load_config(written, env={})
    assert load_config(config.to_dict(), env={}) == config


# --- facts beside the references


def test_facts_that_no_span_says_can_be_given():
    graph = {"nodes": ["a", "b"], "edges": [["a", "b"]], "entry": "a", "exits": ["b"]}
    given = [
        {
            "context": "Paris is the capital.",
            "workflow": {"graph": graph},
            "agents": {"a": {"authority_level": 2}},
            "metadata": {"cost": 1.5},
        }
    ]
    about = turn()
    sources(given=given).attach(about, {})
    assert (about.context, about.workflow, about.agents) == (
        ["Paris is the capital."],
        {"graph": graph},
        {"a": {"authority_level": 2}},
    )
    assert about.metadata == {"cost": 1.5}
    assert oa.get_metric("code_cost").evaluate(about).value == 1.5


def test_what_a_turn_knows_of_itself_wins_over_what_is_given():
    about = turn(context=["Seen."], metadata={"cost": 1})
    sources(given=[{"context": ["Given."], "metadata": {"cost": 2}}]).attach(about, {})
    assert (about.context, about.metadata) == (["Seen."], {"cost": 1})


def test_a_fact_of_the_wrong_kind_is_none():
    about = turn()
    told = {"eval.context": "7", "eval.agents": "no object"}
    sources(accept_from=["eval.context", "eval.agents"]).attach(about, told)
    assert (about.context, about.agents) == (["7"], {})
    sources(given=[{"logprobs": ["x"]}]).attach(about, {})
    assert about.logprobs is None


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


@pytest.mark.parametrize(
    ("result", "texts", "ids"),
    [
        pytest.param(FOUND, ["Paris is the capital.", "It is old.", "A city.", '{"x":1}'], ["7"], id="an object with a list"),
        pytest.param(
            json.dumps(FOUND), ["Paris is the capital.", "It is old.", "A city.", '{"x":1}'], ["7"], id="that as JSON text"
        ),
        pytest.param(["One.", "Two."], ["One.", "Two."], None, id="a list"),
        pytest.param("Paris is the capital.", ["Paris is the capital."], None, id="a text"),
        pytest.param({"content": "Alone.", "id": "d1"}, ["Alone."], ["d1"], id="one document"),
        pytest.param([], [], None, id="nothing was found"),
        pytest.param("", [], None, id="nothing was said"),
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
        pytest.param("See kb-31.", ["kb-7"], ["kb-31"], id="only others"),
        pytest.param(
            "id 0b6e1c9a-1111-4222-8333-444455556666.", ["ffffffff-aaaa-4bbb-8ccc-dddddddddddd"],
            ["0b6e1c9a-1111-4222-8333-444455556666"], id="a UUID",
        ),
        pytest.param("Refunds take 14 days.", ["kb-7"], None, id="a text without ids"),
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
    calls = [{"name": "orders", "result": "kb-1"}, {"name": "search", "result": "kb-2"}]
    about = turn(tool_calls=calls, relevant_ids=["kb-2"])
    assert sources(retrievers=["search"]).attach(about, {})["retrieved_ids"] == "tool search"
    assert about.retrieved_ids == ["kb-2"]
    nothing = turn(tool_calls=[{"name": "search", "result": []}], relevant_ids=["kb-2"])
    sources(retrievers=["search"]).attach(nothing, {})
    assert nothing.retrieved_ids == []


def test_recall_and_rank_are_those_of_ids_in_tool_results() -> None:
    references = {"given": [{"relevant_ids": ["kb-7", "kb-8"]}]}
    about = turn(tool_calls=[{"name": "search", "result": "kb-31, kb-7"}])
    scores = oa.score_turns(about, ["code_recall_at_k", "code_mrr"], config={"references": references})[0][1]
    assert [score.value for score in scores] == [0.5, 0.5]
    assert scores[0].detail["reference_from"] == {"relevant_ids": "config", "retrieved_ids": "tool search"}


def test_a_failed_look_up_found_nothing_and_a_retrieval_span_wins():
    failed = turn(tool_calls=[{"name": "search", "result": "boom", "error": True}])
    known = turn(tool_calls=[{"name": "search", "result": "tool's"}], context=["span's"])
    for about in (failed, known):
        assert sources(retrievers=["search"]).attach(about, {}) == {}
    assert (failed.context, known.context) == ([], ["span's"])


def test_a_live_turn_s_tool_results_reach_metrics_of_retrieval():
    references = {"retrievers": ["search"], "given": [{"relevant_ids": ["d1"]}]}
    with Rig({**LIVE, "references": references}) as rig:
        with rig.tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"}):
            said = {"gen_ai.tool.name": "search", "gen_ai.tool.call.result": '[{"id": "d1", "text": "Paris"}]'}
            rig.tracer.start_span("execute_tool search", attributes={"gen_ai.operation.name": "execute_tool", **said}).end()
        assert recall(rig).value == 1.0


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


def prompted(text, **more):
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
        pytest.param(TEMPLATE, "Documents:\n\n\nQuestion: Why?", [], None, None, id="no documents"),
    ],
)  # fmt: skip
def test_documents_in_the_prompt_are_the_context(template, prompt, texts, ids, question):
    about = prompted(prompt)
    where = sources(prompts=[template]).attach(about, {})
    assert (about.context, about.retrieved_ids, about.input) == (texts, ids, question or prompt)
    assert where == ({"context": "prompt"} if texts else {})
    assert [retrieval.query for retrieval in about.retrievals] == ([question] if texts else [])


def test_the_question_of_a_prompt_finds_its_case(tmp_path):
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"input": "How long do refunds take?", "ground_truth": "5 days."}\n')
    about = prompted(PROMPT)
    sources(prompts=TEMPLATE, dataset=str(cases)).attach(about, {})
    assert about.ground_truth == "5 days."


def test_what_a_retrieval_span_found_is_not_looked_for_in_the_prompt():
    about = prompted(PROMPT, context=["span's"])
    assert sources(prompts=TEMPLATE).attach(about, {}) == {}
    assert (about.context, about.input) == (["span's"], PROMPT)


def test_the_first_template_that_fits_is_taken():
    about = prompted(PROMPT)
    sources(prompts=["About {documents}.", TEMPLATE, "{documents}?"]).attach(about, {})
    assert about.context == ["Plain text.", "Refunds take 5 days."]


@pytest.mark.parametrize(
    ("mapping", "found", "ids"),
    [
        pytest.param({"s3://kb/*.md": "*"}, ["s3://kb/a.md", "s3://kb/b.txt"], ["a", "s3://kb/b.txt"], id="around the id"),
        pytest.param({"*#1": "kb-*"}, ["a#1", "#1"], ["kb-a", "kb-"], id="at its end"),
        pytest.param({"n1": "kb-1", "n*": "x"}, ["n1", "n2"], ["kb-1", "x"], id="the first that fits"),
        pytest.param({"kb-1#*": "kb-1"}, ["kb-1#a", "kb-2", "kb-1#b"], ["kb-1", "kb-2"], id="pieces of one document"),
        pytest.param({"aba*ba": "*"}, ["aba"], ["aba"], id="too short for both sides"),
        pytest.param({}, ["a"], ["a"], id="no mapping"),
    ],
)
def test_ids_of_documents_are_spelled_as_references_spell_them(mapping, found, ids):
    about = turn(retrieved_ids=found)
    sources(document_ids=mapping).attach(about, {})
    assert about.retrieved_ids == ids


@pytest.mark.parametrize(
    ("trim", "truth", "output"), [(True, "Paris", "Paris"), (False, "Paris \n", "Paris\n\n")], ids=["trimmed", "as it is"]
)
def test_white_space_at_the_end_counts_for_nothing_where_it_should(trim, truth, output):
    about = turn(output="Paris\n\n", ground_truth="Paris \n")
    sources(trim=trim).attach(about, {})
    assert (about.ground_truth, about.output) == (truth, output)


def test_all_of_several_ground_truths_are_trimmed_and_nothing_else_is():
    about = turn(output=None, ground_truth=["Paris ", 5])
    sources(trim=True).attach(about, {})
    assert (about.ground_truth, about.output) == (["Paris", 5], None)


# --- parts of facts


def test_a_dotted_name_gives_one_part_of_a_fact():
    about = turn(metadata={"plan": "gold"}, workflow={"steps": [{"executor": "a"}]})
    told = {"app.consent": '{"location": false}', "app.plan": "free", "app.graph": '{"nodes": ["a"]}', "app.epsilon": 0.5}
    names = {
        "app.consent": "metadata.consent",
        "app.plan": "metadata.plan",
        "app.graph": "workflow.graph",
        "app.epsilon": "privacy.epsilon",
    }
    sources(accept_from=names).attach(about, told)
    assert about.metadata == {"plan": "gold", "consent": {"location": False}}, "what the turn holds wins"
    assert about.workflow == {"steps": [{"executor": "a"}], "graph": {"nodes": ["a"]}}
    assert about.privacy == {"epsilon": 0.5}
    nothing = turn()
    sources().attach(nothing, told)
    assert (nothing.metadata, nothing.privacy) == ({}, None)


def test_a_column_of_a_data_set_can_be_a_part(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text(
        'input,metadata.consent,context.x,nothing.y\nCapital of France?,"{""location"": true}",a,b\n', encoding="utf-8"
    )
    about = turn()
    sources(dataset=str(path)).attach(about, {})
    assert (about.metadata, about.context) == ({"consent": {"location": True}}, [])


def test_a_score_says_where_a_part_came_from():
    given = sources(accept_from={"app.consent": "metadata.consent"})
    about = turn(spans=[{"id": "t", "attributes": {"app.consent": '{"paris": false}'}}], turn_id="t-t")
    (score,) = evaluate(about, [oa.get_metric("code_consent_compliance")], given)
    assert (score.passed, score.detail["reference_from"]) == (False, {"metadata.consent": "span attribute app.consent"})


def test_images_that_messages_do_not_hold_can_be_given():
    about = turn()
    sources(given=[{"attachments": [{"modality": "image", "uri": "https://cdn.example.com/1.png"}]}]).attach(about, {})
    assert about.attachments[0]["modality"] == "image"


JSON_ANSWER = '{"output": "Paris", "context": ["Paris is the capital."], "n": {"items": [1, "last"]}}'


@pytest.mark.parametrize(
    ("config", "answer", "output", "context"),
    [
        ({"references": {"response": {"output": "output"}}}, JSON_ANSWER, "Paris", []),
        (
            {"references": {"response": {"output": ["none", "n.items[-1]"], "context": "context"}}},
            JSON_ANSWER,
            "last",
            ["Paris is the capital."],
        ),
        ({"references": {"response": {"output": "n"}}}, JSON_ANSWER, '{"items":[1,"last"]}', []),
        ({"references": {"response": {"output": "n.items[-3]"}}}, JSON_ANSWER, JSON_ANSWER, []),
        ({"preset": "trusys"}, JSON_ANSWER, "Paris", ["Paris is the capital."]),
        ({"preset": "trusys"}, "Paris", "Paris", []),
        ({"preset": "trusys"}, '["output"]', '["output"]', []),
        ({"preset": "trusys", "references": {"response": {}}}, JSON_ANSWER, JSON_ANSWER, []),
        ({}, JSON_ANSWER, JSON_ANSWER, []),
    ],
)
def test_answer_in_json_is_unwrapped(config: Any, answer: str, output: str, context: list[str]) -> None:
    turn = oa.Turn(turn_id="t", output=answer)
    oa.score_turns(turn, ["code_word_count"], config=config)
    assert (turn.output, turn.context or []) == (output, context)
