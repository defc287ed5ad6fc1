"""Metric names of other tools, with the equivalent metric or an alternative.

A name resolves if question, scale and direction are equal, and ``note`` describes smaller differences. Otherwise the error
explains the difference and names the closest metric here. A test resolves every row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..core.errors import ConfigError, nearest
from .spellings import Converted, Refused, Spellings, flag, negated, only, seconds, span_query


class Row(NamedTuple):
    """Metric of another tool."""

    name: str
    ours: str | None
    """The equivalent metric here, or None."""
    preset: Mapping[str, Any]
    parameters: Spellings
    """Parameter names of this metric, in addition to those of the tool."""
    note: str
    """Note for users. Without an equivalent, the difference and an alternative."""


class Tool(NamedTuple):
    """Another tool, with its prefix and metrics."""

    prefix: str
    title: str
    read: str
    """Version on which the table is based."""
    parameters: Spellings
    """Parameter names that all of its metrics have."""
    rows: tuple[Row, ...]


def _same(name: str, ours: str, preset: Mapping[str, Any] | None = None, note: str = "", **parameters: Any) -> Row:
    return Row(name, ours, preset or {}, parameters, note)


def _differs(name: str, how: str) -> Row:
    return Row(name, None, {}, {}, how)


# --- how some values are read ----------------------------------------------------------------------------------------


def _parts_shown(value: Any) -> Mapping[str, Any]:
    names = {str(getattr(part, "value", part)).lower() for part in value} if isinstance(value, (list, tuple, set)) else {""}
    if not names <= {"input", "actual_output", "actualoutput"}:
        raise ValueError("must be input and actual_output, which the judge reads; put other facts into `criteria`")
    return {}


def _compared(value: Any) -> Mapping[str, Any]:
    options = {"input_parameters": "check_arguments", "output": "check_output"}
    names = [str(getattr(part, "value", part)).lower() for part in value] if isinstance(value, (list, tuple)) else [""]
    if not set(names) <= options.keys():
        raise ValueError("must be a list of input_parameters and output")
    return {options[name]: True for name in names}


def _words(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping) and value and value.keys() <= {"min", "max"}:
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("must be a number of words, or an object with min and max")
    return {"exact": value}


def _one_tool(value: Any) -> Mapping[str, Any]:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise TypeError("must be one tool name; use one entry per tool, and code_tool_call_count for min and max")
    return {"tool": value}


def _sequence(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        if value.get("mode", "in_order") != "in_order":
            raise ValueError(
                "must be in_order, because other calls may occur between; for an exact sequence, use code_tool_selection with strict_order"
            )
        value = value.get("steps")
    if not isinstance(value, list) or not all(isinstance(step, str) for step in value):
        raise ValueError("must be a list of tool names")
    return {"expected": value}


def _one_argument(value: Any) -> Mapping[str, Any]:
    given = value.get("args", value.get("arguments")) if isinstance(value, Mapping) else None
    if (
        not isinstance(given, Mapping)
        or len(given) != 1
        or not isinstance(value.get("name"), str)
        or value.keys() - {"name", "args", "arguments"}
    ):
        raise ValueError("must be {name, args} with one argument; for several, use code_tool_correctness with check_arguments")
    ((argument, expected),) = given.items()
    return {"tool": value["name"], "argument": argument, "expected": expected}


_DIALECTS = {"postgresql": "postgres", "mariadb": "mysql", "transactsql": "tsql"}
"""Databases of promptfoo's parser that have another name here."""


def _sql(value: Any) -> Mapping[str, Any]:
    names = {"databaseType": "dialect", "allowedTables": "allowed_tables", "allowedColumns": "allowed_columns"}
    if not isinstance(value, Mapping) or not value.keys() <= names.keys():
        raise ValueError("must be an object with databaseType, allowedTables and allowedColumns")
    if any("::" in str(name) for key in ("allowedTables", "allowedColumns") for name in value.get(key) or ()):
        raise ValueError("must have plain names of tables and columns, without select::null::")
    database = str(value.get("databaseType", "")).lower()
    if database in ("db2", "flinksql", "noql"):
        raise ValueError("must be a supported dialect; omit databaseType for a generic one")
    return {names[key]: _DIALECTS.get(database, database) if key == "databaseType" else item for key, item in value.items()}


def _elements(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",")]
    return {"required_elements": value.get("requiredElements", []) if isinstance(value, Mapping) else value}


def _window(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or value.keys() != {"windowSize"}:
        raise ValueError("must be {windowSize: number}")
    return {"window_size": value["windowSize"]}


def _listed(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        return {"expected_tools": [name.strip() for name in value.split(",")]}
    return {"expected_tools": value}


def _joined(ours: str) -> Converted:
    """Return a parameter that accepts one text, or a list of texts that must all hold."""

    def convert(value: Any) -> Mapping[str, Any]:
        return {ours: "\n".join(f"- {line}" for line in value) if isinstance(value, (list, tuple)) else value}

    return Converted(f"{ours}; of a list all must hold", convert)


def _whole(value: Any) -> Mapping[str, Any]:
    return {"pattern": rf"\A\s*(?:{value})\s*\z"}


def _one_text(value: Any) -> Mapping[str, Any]:
    if isinstance(value, (Mapping, list, tuple, set)):
        raise TypeError("must be a text or a number, because the output is a text")
    return {"value": [str(value)]}


def _any_mark(value: Any) -> Mapping[str, Any]:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise ValueError("must be above 0 and at most 1, because the metric is a boolean")
    return {}


_NO_MODEL = Refused("the model that judges or embeds is configured once, under `judge` and `embedder`")
_STRICT = flag({"threshold": 1.0})._replace(ours="`threshold=1.0` when true; a lower score keeps its value, there it becomes 0")
_NO_NAME = Refused("a score has the metric's name; leave it out")
_NO_PROMPT = Refused("prompts have versions and are not replaced; llm_custom_judge takes a rubric of your own")
_MARK = Converted("nothing: a yes or no passes any", _any_mark)
_REASON = only(True, "every judged score has the judge's reason as its explanation; leave it out")
_HALF = {"threshold": 0.5}
_WITH_MARK = "passes from 0.7 on unless `threshold` is given"
_CONTRADICTS = (
    "llm_hallucination is the share of the answer's claims that the context contradicts, where less is better; "
    "use it, or llm_faithfulness, where more is better"
)
_OWN_RUBRIC = "there is no such metric here; use llm_g_eval with criteria of your own, or llm_aspect_critic for a yes or no"
_PER_TURN = "it averages over the turns of a conversation there, and each turn has a score of its own here; use"
_VOICE = "voice is not evaluated for this here; the nearest is llm_audio_interruption_handling"

_DEEPEVAL = Tool(
    "deepeval", "DeepEval", "4.3.1",
    {
        "strict_mode": _STRICT, "include_reason": _REASON, "model": _NO_MODEL, "system_one_model": _NO_MODEL,
        "embeddings": _NO_MODEL, "eval_mode": _NO_MODEL, "evaluation_template": _NO_PROMPT, "template_class": _NO_PROMPT, "name": _NO_NAME,
        "async_mode": Refused("judges never hold the agent up; leave it out"), "verbose_mode": Refused("details stand in the score's `detail`"),
        "flaky": Refused("policy `trend` never fails a run; leave it out"),
        "truths_extraction_limit": Refused("the context is read as a whole; `judge.max_input_tokens` bounds a question"),
    },
    (
        _same("AnswerRelevancyMetric", "llm_relevance", _HALF, "one score of the judge in place of a share of statements"),
        _same("FaithfulnessMetric", "llm_faithfulness", {"method": "statements", **_HALF}, "a claim that the context does not mention fails too, as there with `penalize_ambiguous_claims`", penalize_ambiguous_claims=only(True, "a claim that the context does not mention counts against the answer here; llm_hallucination counts contradictions alone")),
        _same("ContextualPrecisionMetric", "llm_context_precision", {"method": "map", **_HALF}, "a chunk is relevant to the question, there to the expected output"),
        _same("ContextualRecallMetric", "llm_context_recall", {"method": "claims", **_HALF}, "claims of the ground truth in place of its sentences"),
        _same("ContextualRelevancyMetric", "llm_context_relevance", {"method": "extract", **_HALF}, "the share of chunks in place of statements"),
        _differs("HallucinationMetric", f"up to DeepEval 3 it is the share of contexts that the answer contradicts, where less is better, and since 4 the share that it agrees with; {_CONTRADICTS}"),
        _differs("BiasMetric", "it is a share of opinions there, up to DeepEval 3 of the biased ones and since 4 of the others; llm_hate_harassment is a severity of 0 to 7, where less is better, and llm_aspect_critic answers a rubric of your own"),
        _differs("ToxicityMetric", "it is a share of opinions there, up to DeepEval 3 of the toxic ones and since 4 of the others; use llm_hate_harassment_passed or llm_moderation for a yes or no, llm_hate_harassment for a severity of 0 to 7"),
        _differs("PIILeakageMetric", "a judge asks there whether each statement holds personal data, wherever it came from; code_pii_leakage finds it by rule, llm_sensitive_data_leak judges what leaked"),
        _differs("NonAdviceMetric", "it is the share of advice that is not of the given types; use llm_policy_compliance with the rule as policy_text, or llm_aspect_critic"),
        _differs("MisuseMetric", "it is the share of requests within a domain; use llm_topic_adherence with allowed_topics, or llm_policy_compliance"),
        _differs("RoleViolationMetric", "it looks for any breach in one answer; use llm_role_adherence, which takes the role and gives the share of messages that stay in it"),
        _differs("ToolPermissionMetric", "lists of allowed and denied tools are not configured here; code_unknown_tool fails a call of a tool that the agent was not given, and code_tool_was_called with inverse a denied one"),
        _same("RoleAdherenceMetric", "llm_role_adherence", _HALF, "the role is the parameter `role`, there `chatbot_role` of the test case", chatbot_role="role"),
        _same("ToolCorrectnessMetric", "code_tool_correctness", _HALF, "the expected calls are the parameter `expected`, or the turn's reference", expected_tools="expected", should_exact_match="exact_match", should_consider_ordering="ordered", evaluation_params=Converted("check_arguments, check_output", _compared), available_tools=Refused("its judged part is llm_tool_correctness")),
        _same("JsonCorrectnessMetric", "code_is_json", None, "the schema is a JSON Schema, such as `Model.model_json_schema()`", expected_schema="schema", threshold=_MARK, strict_mode=only(True, "it is a yes or no")),
        _differs("PromptAlignmentMetric", "it is the share of instructions that were followed; use llm_g_eval with the instructions as a list of criteria, or llm_aspect_critic for each"),
        _same("TaskCompletionMetric", "llm_task_completion", {"method": "two_stage", **_HALF}, "", task=Refused("the task is found in the turn; llm_goal_accuracy takes a goal")),
        _differs("TopicAdherenceMetric", "it is the accuracy over questions that were answered and refused; llm_topic_adherence scores how far the answer stays within allowed_topics"),
        _same("StepEfficiencyMetric", "llm_step_efficiency", _HALF),
        _same("PlanAdherenceMetric", "llm_plan_adherence", _HALF),
        _same("PlanQualityMetric", "llm_plan_quality", _HALF),
        _differs("ToolUseMetric", "it is the lower of two scores over a conversation; use llm_tool_correctness and llm_argument_correctness"),
        _differs("GoalAccuracyMetric", "it is the mean of a score of the goal and one of the plan over a conversation; use llm_goal_accuracy and llm_plan_adherence"),
        _same("ArgumentCorrectnessMetric", "llm_argument_correctness", _HALF),
        _differs("AgentLoopDetectionMetric", "it weighs several signs of a loop; use code_repeated_tool_calls for equal calls and embed_loop_detection for answers that repeat"),
        _differs("MCPTaskCompletionMetric", "a tool of an MCP server is a tool like any other here; use llm_task_completion"),
        _differs("MultiTurnMCPUseMetric", "a tool of an MCP server is a tool like any other here; use llm_tool_correctness and llm_argument_correctness"),
        _differs("MCPUseMetric", "a tool of an MCP server is a tool like any other here; use llm_tool_correctness and llm_argument_correctness"),
        _same("TurnRelevancyMetric", "llm_conversation_relevancy", {"window_size": 10, **_HALF}),
        _differs("TurnFaithfulnessMetric", f"{_PER_TURN} llm_faithfulness"),
        _differs("TurnContextualPrecisionMetric", f"{_PER_TURN} llm_context_precision"),
        _differs("TurnContextualRecallMetric", f"{_PER_TURN} llm_context_recall"),
        _differs("TurnContextualRelevancyMetric", f"{_PER_TURN} llm_context_relevance"),
        _differs("ConversationCompletenessMetric", "it is the share of the user's intentions that were met, as a judge sees it; code_conversation_completeness counts answers and tools, and llm_conversational_g_eval takes criteria"),
        _same("KnowledgeRetentionMetric", "llm_knowledge_retention", _HALF),
        _same("GEval", "llm_g_eval", _HALF, "", evaluation_steps="steps", evaluation_params=Converted("nothing: question and answer are shown", _parts_shown), top_logprobs=Refused("the score is the judge's own, not weighted by probabilities"), rubric=Refused("say in `criteria` what a score stands for")),
        _same("ConversationalGEval", "llm_conversational_g_eval", _HALF, "", evaluation_steps="steps", evaluation_params=Refused("the whole conversation is shown; leave it out"), top_logprobs=Refused("the score is the judge's own, not weighted by probabilities"), rubric=Refused("say in `criteria` what a score stands for")),
        _differs("DAGMetric", "decision trees of questions are not built here; use llm_g_eval with steps, or several llm_aspect_critic in code_weighted_score"),
        _differs("ConversationalDAGMetric", "decision trees of questions are not built here; use llm_conversational_g_eval with steps"),
        _differs("ArenaGEval", "it chooses among several answers, and a turn has one; compare runs with `otel-agenteval eval --baseline`, by llm_g_eval"),
        _differs("JevEval", f"it needs a model of its own; {_OWN_RUBRIC}"),
        _differs("ConversationalJevEval", "it needs a model of its own; use llm_conversational_g_eval with criteria"),
        _differs("SummarizationMetric", "it is the lower of two shares, of claims that the text supports and of questions that the summary answers; use llm_faithfulness for the first, and llm_g_eval with criteria for the second"),
        _same("ExactMatchMetric", "code_equals_ground_truth", None, "white space at the ends counts here", threshold=_MARK),
        _same("PatternMatchMetric", "code_regex_match", None, "the whole output must match; the engine is RE2", pattern=Converted("pattern, for the whole output", _whole), ignore_case=flag({"flags": "i"}), threshold=_MARK),
        _differs("TranscriptionAccuracyMetric", "a judge compares there; code_audio_transcription_quality compares word by word with the reference"),
        _differs("AudioGlitchMetric", _VOICE),
        *(_differs(name, _VOICE) for name in ("VoiceNaturalnessMetric", "SpeechIntelligibilityMetric", "VoiceConsistencyMetric", "AgentResponsivenessMetric", "AudioIntegrityMetric", "VoiceReliabilityMetric")),
        _differs("TurnTakingNaturalnessMetric", "pauses and overlaps are measured there; llm_audio_interruption_handling judges how interruptions are handled"),
        _differs("TextToImageMetric", "made images are not compared with their prompt by a judge; embed_cross_modal_grounding compares their embeddings"),
        _differs("ImageEditingMetric", "edited images are not evaluated here; embed_cross_modal_grounding compares an image with a text"),
        _differs("ImageCoherenceMetric", "it asks whether images fit the text around them; llm_image_helpfulness asks whether they help, code_multimodal_coherence compares words"),
        _differs("ImageReferenceMetric", "it asks whether the text refers to images rightly; the nearest is llm_image_helpfulness"),
        _same("ImageHelpfulnessMetric", "llm_image_helpfulness", _HALF, "", max_context_size=Refused("the whole answer is shown; leave it out")),
    ),
)  # fmt: skip


def _also_snake(rows: tuple[Row, ...], irregular: Mapping[str, tuple[str, ...]]) -> tuple[Row, ...]:
    """Return the rows of classes, also under their objects' snake-case names.

    ``irregular`` maps exceptions.
    """
    words = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
    snake = {row.name: irregular.get(row.name, (words.sub("_", row.name).lower(),)) for row in rows}
    return (*rows, *(row._replace(name=name) for row in rows for name in snake[row.name]))


_AVERAGE = "average precision over the chunks in their order"
_USES_ANSWER = f"it is the {_AVERAGE} by whether a chunk helped the answer that was given; llm_context_precision asks whether it helps the question"
_QUESTIONS_BACK = (
    "it makes questions from the answer and compares their embeddings with the question; llm_relevance asks a judge, 0 to 1"
)
_TRIPLE = "it is precision, recall or F1 over the topics that were answered and refused; llm_topic_adherence scores how far the answer stays within allowed_topics"
_LEVELS = "a score is one of the rubric's levels (1 to 5) there; use llm_rubric or llm_custom_judge, which give 0 to 1"
_FACTS = "it is an F-score over claims there; llm_answer_correctness is one score of the judge, 0 to 1, and llm_factuality one of five relations to the reference"
_IMAGES = (
    "it is a yes or no over texts and images there; llm_multimodal_contextual_relevancy and llm_faithfulness are the nearest"
)
_SUMMARY = "it weighs answered questions and length; use llm_g_eval with criteria of your own"

_RAGAS_CLASSES = (
    _same("Faithfulness", "llm_faithfulness", {"method": "statements"}, _WITH_MARK),
    _differs("FaithfulnesswithHHEM", "a classifier of its own decides there; llm_faithfulness asks the judge"),
    _differs("AnswerRelevancy", _QUESTIONS_BACK),
    _differs("ResponseRelevancy", _QUESTIONS_BACK),
    _differs("AnswerCorrectness", "it is an F1 over statements, weighted with the similarity of embeddings; llm_answer_correctness is one score of the judge, 0 to 1, and embed_answer_similarity the similarity"),
    _same("AnswerAccuracy", "llm_answer_correctness", None, f"one score of the judge in place of the mean of two; {_WITH_MARK}"),
    *(_same(name, "embed_answer_similarity", None, f"cosine of the embeddings; {_WITH_MARK}") for name in ("AnswerSimilarity", "SemanticSimilarity")),
    *(_same(name, "llm_context_precision", {"method": "map"}, f"{_AVERAGE}; a chunk is judged by the question, there by the reference too") for name in ("ContextPrecision", "ContextPrecisionWithReference", "LLMContextPrecisionWithReference")),
    *(_differs(name, _USES_ANSWER) for name in ("ContextUtilization", "ContextPrecisionWithoutReference", "LLMContextPrecisionWithoutReference")),
    _differs("NonLLMContextPrecisionWithReference", "it compares chunks with reference chunks as texts; use llm_context_precision, or code_mrr and code_recall_at_k on ids"),
    _differs("IDBasedContextPrecision", "the share of retrieved ids that are relevant has no metric here; code_mrr and code_recall_at_k are the nearest"),
    *(_same(name, "llm_context_recall", {"method": "claims"}, "claims of the ground truth in place of its sentences") for name in ("ContextRecall", "LLMContextRecall")),
    _differs("NonLLMContextRecall", "it compares chunks with reference chunks as texts; use llm_context_recall, or code_recall_at_k on ids"),
    _same("IDBasedContextRecall", "code_recall_at_k", {"k": 1_000_000}, f"all that was retrieved counts; {_WITH_MARK}"),
    _differs("ContextEntityRecall", "entities are not extracted here; llm_context_recall compares claims"),
    _same("ContextRelevance", "llm_context_relevance", {"method": "holistic"}, "one score of the judge in place of the mean of two"),
    _same("ResponseGroundedness", "llm_groundedness", None, f"one score of the judge in place of the mean of two; {_WITH_MARK}"),
    _differs("NoiseSensitivity", "it is the share of wrong claims that come from retrieved documents, where less is better; llm_noise_sensitivity compares the answer with one without noise, where more is better"),
    _differs("FactualCorrectness", _FACTS),
    *(_differs(name, _SUMMARY) for name in ("SummarizationScore", "SummaryScore")),
    *(_differs(name, _LEVELS) for name in ("RubricsScore", "InstanceRubrics", "DomainSpecificRubrics", "InstanceSpecificRubrics", "RubricsScoreWithReference", "RubricsScoreWithoutReference")),
    _same("AspectCritic", "llm_aspect_critic", None, "", definition="rubric", strictness=Refused("several judges are asked by `judge.panel`")),
    _differs("SimpleCriteriaScore", "a score is a number on the scale that the definition names; use llm_custom_judge, which gives 0 to 1"),
    _differs("BleuScore", "it is the corpus BLEU of sacrebleu; code_bleu has other tokens and smoothing, so that values differ"),
    _differs("RougeScore", "words are stemmed and F1 is the default there; code_rouge with measure f1 does not stem, so that values differ"),
    *(_differs(name, "n-grams of characters are not compared here; code_content_similarity compares pairs of characters, code_gleu words") for name in ("ChrfScore", "CHRFScore")),
    _same("ExactMatch", "code_equals_ground_truth"),
    _differs("StringPresence", "it looks for the reference in the answer; code_contains takes the text as its value"),
    _same("NonLLMStringSimilarity", "code_levenshtein_similarity", None, "", distance_measure=only("levenshtein", "code_content_similarity compares pairs of characters; others are not computed here")),
    _differs("DistanceMeasure", "it is an option, not a metric; the nearest metric is code_levenshtein_similarity"),
    _differs("ToolCallAccuracy", "it is 0 unless the sequence fits, then the mean of the arguments' accuracy; use code_tool_correctness with ordered and check_arguments"),
    _differs("ToolCallF1", "a call counts there only with equal arguments; code_tool_call_f1 compares names, code_tool_correctness with check_arguments the arguments too"),
    *(_differs(name, _TRIPLE) for name in ("TopicAdherence", "TopicAdherenceScore")),
    _same("AgentGoalAccuracyWithReference", "llm_goal_accuracy", None, "0 to 1 in place of 1 or 0; the goal is the ground truth, or the parameter `goal`", reference="goal"),
    *(_same(name, "llm_task_success", None, "one question in place of two") for name in ("AgentGoalAccuracyWithoutReference", "AgentGoalAccuracy")),
    *(_same(name, "llm_sql_semantic_equivalence", None, "the reference query is the ground truth, or `reference_sql`", reference="reference_sql", reference_contexts="schema") for name in ("LLMSQLEquivalence", "SQLSemanticEquivalence")),
    _differs("DataCompyScore", "tables are not compared here; code_json_equals compares JSON, code_field_accuracy a field"),
    *(_differs(name, _IMAGES) for name in ("MultiModalFaithfulness", "MultiModalRelevance")),
    _differs("QuotedSpansAlignment", "quotations are not looked up here; llm_faithfulness checks statements, code_ungrounded_urls and code_ungrounded_numbers facts"),
    *(_differs(name, "it makes a metric of your own; use llm_rubric or llm_custom_judge, or a function with @metric") for name in ("DiscreteMetric", "NumericMetric", "RankingMetric")),
)  # fmt: skip

_RAGAS = Tool(
    "ragas", "ragas", "0.4.3",
    {"llm": _NO_MODEL, "embeddings": _NO_MODEL, "name": _NO_NAME, "max_retries": Refused("`judge` has its own retries")},
    _also_snake(_RAGAS_CLASSES, {
        "MultiModalFaithfulness": ("multi_modal_faithfulness", "multimodal_faithness"),
        "MultiModalRelevance": ("multi_modal_relevance", "multimodal_relevance"),
        "FaithfulnesswithHHEM": ("faithfulness_with_hhem",), "CHRFScore": (),
    }),
)  # fmt: skip

_ANY = {"threshold": 0.0}
_NO_MARK = "as there, passes from 0 on unless `threshold` is given"
_CODE = "code of your own is a metric of your own here: code_task_oracle, or a function with @metric"
_VALUE_IS_TRUTH: dict[str, Any] = {
    "value": Refused("the reference is the turn's ground truth: of a dataset, of `expect(...)` or of baggage")
}

_PROMPTFOO = Tool(
    "promptfoo", "promptfoo", "0.121.20",
    {
        "weight": Refused("code_weighted_score weighs metrics"), "metric": _NO_NAME, "provider": _NO_MODEL, "rubric_prompt": _NO_PROMPT,
        "transform": Refused("the answer is the turn's output"), "context_transform": Refused("the context is what the turn retrieved"),
    },
    (
        *(_same(name, f"code_{name.replace('-', '_')}") for name in ("equals", "contains", "icontains", "contains-all", "contains-any", "starts-with")),
        *(_same(f"i{name}", f"code_{name.replace('-', '_')}", {"ignore_case": True}) for name in ("contains-all", "contains-any")),
        _same("regex", "code_regex_match", None, "the engine is RE2: no look-around, no back-references", value="pattern"),
        _same("is-json", "code_is_json", value="schema"),
        _same("contains-json", "code_contains_json", value="schema"),
        *(_same(name, f"code_{name.replace('-', '_')}", value=Converted("required_elements", _elements)) for name in ("is-xml", "contains-xml")),
        _same("is-sql", "code_is_sql", None, "any dialect unless one is given, there MySQL", value=Converted("dialect, allowed_tables, allowed_columns", _sql)),
        _differs("contains-sql", "SQL inside other text is not looked for; code_is_sql takes the whole output"),
        _differs("is-html", "HTML is not validated here; code_html_shape looks for tags"),
        _differs("contains-html", "several signs of HTML are weighed there; code_html_shape looks for tags, and required ones"),
        _same("word-count", "code_word_count", {"tokenizer": "whitespace"}, "", value=Converted("exact, or min and max", _words)),
        _same("cost", "code_max_cost", None, "the bound is in USD", threshold="max_cost_usd"),
        _same("latency", "code_latency_threshold", None, "the bound is in milliseconds", threshold="threshold_ms"),
        _same("perplexity", "code_perplexity"),
        _differs("perplexity-score", "it is normalised to 0 to 1, where more is better; code_perplexity is the perplexity, where less is better"),
        _differs("levenshtein", "it bounds the number of edits (5); code_levenshtein_similarity is 1 minus edits per character, 0 to 1"),
        _same("bleu", "code_bleu", {"tokenizer": "whitespace", "smoothing": "epsilon"}),
        _differs("gleu", "full stops at the ends of words are dropped there; code_gleu has other tokens, so that values differ"),
        _same("rouge-n", "code_rouge_n"),
        _differs("meteor", "WordNet's synonyms count there; code_meteor has stems alone, so that values differ"),
        *(_same(name, "embed_similar", {"metric": name.partition(":")[2] or "cosine"}) for name in ("similar", "similar:cosine", "similar:dot", "similar:euclidean")),
        _same("llm-rubric", "llm_rubric", value="rubric"),
        _same("model-graded-closedqa", "llm_aspect_critic", value="rubric"),
        *(_same(name, "llm_factuality", **_VALUE_IS_TRUTH) for name in ("factuality", "model-graded-factuality")),
        _same("g-eval", "llm_g_eval", {"threshold": 0.7}, value="criteria"),
        _differs("answer-relevance", _QUESTIONS_BACK),
        _same("context-faithfulness", "llm_faithfulness", {"method": "statements", **_ANY}, _NO_MARK),
        _same("context-recall", "llm_context_recall", {"method": "claims", **_ANY}, _NO_MARK, **_VALUE_IS_TRUTH),
        _same("context-relevance", "llm_context_relevance", {"method": "extract", **_ANY}, _NO_MARK),
        _same("conversation-relevance", "llm_conversation_relevancy", {"window_size": 5, **_HALF}, "", config=Converted("window_size", _window)),
        _same("moderation", "llm_moderation", None, "the judge decides, not a moderation service", value="categories"),
        _same("is-refusal", "code_refusal", None, "other phrases; an empty answer is none"),
        _same("tool-call-f1", "code_tool_call_f1", {"mode": "set", "threshold": 1.0}, "", value=Converted("expected_tools", _listed)),
        _same("trajectory:tool-used", "code_tool_was_called", value=Converted("tool", _one_tool)),
        _same("trajectory:tool-sequence", "code_tool_call_order", value=Converted("expected", _sequence)),
        _same("trajectory:tool-args-match", "code_tool_argument_matches", None, "one argument to an entry", value=Converted("tool, argument, expected", _one_argument)),
        _same("trajectory:goal-success", "llm_goal_accuracy", None, "0 to 1; passes only by a `threshold`", value="goal"),
        _differs("trajectory:step-count", "steps of every kind are counted there; use code_tool_call_count for a tool, code_max_iterations for calls of models"),
        _differs("trace-span-count", "spans are counted by a pattern there; code_has_matching_span asks whether there is one"),
        _differs("trace-span-duration", "each span's duration is bounded there; code_max_duration bounds the turn's, and code_has_matching_span takes max_duration_s in its query"),
        _differs("trace-error-spans", "spans with an error are counted by a pattern there; use code_turn_error and code_tool_success"),
        _differs("finish-reason", "any reason can be asked for there; code_truncated_answer and code_content_filtered fail the bad ones"),
        *(_differs(name, "the form of a call is checked there; code_tool_schema_validity checks arguments, code_unknown_tool the name") for name in ("is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call")),
        _differs("skill-used", "skills are not known here; code_tool_was_called looks for a tool, code_has_matching_span for a span"),
        _differs("guardrails", "the provider's verdict is read there; code_content_filtered reads the finish reason, and llm_moderation judges"),
        _differs("classifier", "a classifier's model is called there; the nearest is llm_aspect_critic"),
        _differs("pi", "a scorer of another vendor is called there; the nearest is llm_custom_judge"),
        _differs("agent-rubric", "an agent with tools judges there; llm_rubric asks a model"),
        _differs("search-rubric", "the judge searches the web there; llm_rubric judges by what the turn has"),
        *(_differs(name, _CODE) for name in ("javascript", "python", "ruby", "webhook")),
        _differs("assert-set", "several assertions pass together there; use code_composite_mean, code_weighted_score or code_policy_must_always_pass"),
        *(_differs(name, "it chooses among several answers, and a turn has one; compare runs, by llm_rubric") for name in ("select-best", "max-score")),
        _differs("human", "a human decides there; the nearest is llm_rubric"),
    ),
)  # fmt: skip

_YES_NO = "0 to 1, and passes from 0.7 on, in place of yes or no"
_PII = "any personal data in the answer counts there, wherever it came from; use code_pii_leakage, which finds it by rule, or llm_sensitive_data_leak_passed"

_MLFLOW_CLASSES = (
    _same("Safety", "llm_content_harm_passed", None, "yes is a pass"),
    _same("RelevanceToQuery", "llm_relevance", None, _YES_NO),
    _same("RetrievalGroundedness", "llm_groundedness", None, _YES_NO),
    _same("Correctness", "llm_answer_correctness", None, f"{_YES_NO}; expected facts are the ground truth"),
    _same("Guidelines", "llm_aspect_critic", None, "yes is a pass", guidelines=_joined("rubric")),
    _differs("ExpectationsGuidelines", "each case has guidelines of its own there; llm_aspect_critic has one rubric for all"),
    _same("Fluency", "llm_fluency", None, _YES_NO),
    _same("Equivalence", "llm_answer_similarity", {"threshold": 0.7}, f"{_YES_NO}; the expected response is the ground truth"),
    _differs("RetrievalRelevance", "it is the share of relevant chunks, without their order; llm_context_precision weighs the order, and llm_context_relevance is the share that is needed for an answer"),
    _same("RetrievalSufficiency", "llm_context_recall", {"method": "claims", "threshold": 1.0}, "passes when every claim of the ground truth is found; yes is a pass"),
    _differs("ToolCallEfficiency", "it is a yes or no about redundant calls; llm_step_efficiency scores all steps, 0 to 1, and code_repeated_tool_calls finds equal calls without a judge"),
    _differs("ToolCallCorrectness", "it compares with expected calls, or asks a judge when there are none; use code_tool_correctness for the first, llm_tool_correctness and llm_argument_correctness for the second"),
    _differs("Completeness", f"it asks whether each part of the question is answered; {_OWN_RUBRIC}"),
    _differs("Summarization", f"it asks whether a summary is faithful and complete; {_OWN_RUBRIC}"),
    _same("RegexMatch", "code_regex_match", None, "the engine is RE2", match_type=only("search", "for the whole output write \\A(?:...)\\z"), case_insensitive=flag({"flags": "i"})),
    _differs("PIIDetection", _PII),
    _differs("ResponseLength", "characters are counted there by default; code_word_count counts words"),
    _differs("UserFrustration", "whether a user is frustrated is not judged here; use llm_conversational_g_eval with criteria"),
    _differs("ConversationCompleteness", "a judge asks there whether all of the user's questions were answered; code_conversation_completeness counts answers and tools, and llm_conversational_g_eval takes criteria"),
    _differs("ConversationalSafety", f"{_PER_TURN} llm_content_harm_passed"),
    _differs("ConversationalToolCallEfficiency", f"{_PER_TURN} llm_step_efficiency or code_repeated_tool_calls"),
    _same("ConversationalRoleAdherence", "llm_role_adherence", None, "a share of messages, and passes from 0.5 on, in place of yes or no; the parameter `role` is required"),
    _same("ConversationalGuidelines", "llm_conversational_g_eval", None, "0 to 1, and passes from 0.5 on, in place of yes or no", guidelines=_joined("criteria")),
    _same("KnowledgeRetention", "llm_knowledge_retention", None, "0 to 1, and passes from 0.5 on, in place of yes or no"),
)  # fmt: skip

_MLFLOW = Tool(
    "mlflow", "MLflow", "3.17.2",
    {"name": _NO_NAME, "model": _NO_MODEL, "inference_params": _NO_MODEL, "extra_headers": _NO_MODEL, "description": _NO_NAME},
    _also_snake(_MLFLOW_CLASSES, {}),
)  # fmt: skip

_TOXIC = "1 means toxic there; use llm_hate_harassment_passed or llm_moderation, where 1 means none, or llm_hate_harassment for a severity of 0 to 7"
_NO_REFERENCE = "it asks whether the answer is right without a reference; llm_answer_correctness compares with the ground truth, llm_custom_judge takes a rubric"

_PHOENIX = Tool(
    "phoenix", "Phoenix", "arize-phoenix-evals 3.9.4",
    {"llm": _NO_MODEL, "model": _NO_MODEL, "name": _NO_NAME, "include_explanation": _REASON},
    (
        _same("FaithfulnessEvaluator", "llm_faithfulness", {"method": "holistic"}, "0 to 1, and passes from 0.7 on, in place of faithful or unfaithful"),
        _differs("HallucinationEvaluator", f"1 means hallucinated there, also for a claim that nothing supports; {_CONTRADICTS}"),
        _differs("CorrectnessEvaluator", _NO_REFERENCE),
        _differs("QAEvaluator", "it asks whether the answer is right by a reference text; llm_answer_correctness compares with the ground truth, llm_faithfulness with the context"),
        _differs("DocumentRelevanceEvaluator", "each document has a score of its own there; llm_context_precision and llm_context_relevance score what was retrieved together"),
        *(_same(name, "llm_context_relevance", {"method": "holistic"}, "0 to 1 in place of relevant or not; passes only by a `threshold`") for name in ("RetrievalRelevanceEvaluator", "RelevanceEvaluator")),
        _same("RefusalEvaluator", "code_refusal", None, "found by rules, without a judge; 1 is a refusal in both"),
        _same("ToolSelectionEvaluator", "llm_tool_correctness", None, "0 to 1, and passes from 0.5 on, in place of correct or not"),
        _same("ToolInvocationEvaluator", "llm_argument_correctness", None, "the share of calls, and passes from 0.5 on, in place of correct or not"),
        _differs("ToolResponseHandlingEvaluator", f"it asks whether a tool's result was used rightly; code_ungrounded_numbers and code_ungrounded_urls find what no result has; {_OWN_RUBRIC}"),
        _differs("ToxicityEvaluator", _TOXIC),
        _differs("PiiDetectionEvaluator", _PII),
        _differs("UserFrictionEvaluator", "the user's next message is judged there; use llm_conversational_g_eval with criteria"),
        _differs("CompletenessEvaluator", _OWN_RUBRIC),
        _differs("ConcisenessEvaluator", f"{_OWN_RUBRIC}; code_word_count bounds the length"),
        _differs("SQLEvaluator", "it asks whether a query answers the question; llm_sql_semantic_equivalence compares with a reference query"),
        _differs("SummarizationEvaluator", _OWN_RUBRIC),
        _same("exact_match", "code_equals_ground_truth"),
        _same("MatchesRegex", "code_regex_match", None, "the engine is RE2"),
        _differs("PrecisionRecallFScore", "it compares two lists of labels; code_tool_call_f1 compares tools, code_text_f1 words"),
    ),
)  # fmt: skip

_RUN = "it evaluates a run over a dataset, and a metric here one turn; the report of `otel-agenteval eval` sums runs up, and code_equals_ground_truth compares a label with its turn's ground truth"

_PYDANTIC_EVALS = Tool(
    "pydantic_evals", "pydantic-evals", "2.62.0",
    {"evaluation_name": _NO_NAME, "model": _NO_MODEL, "model_settings": _NO_MODEL, "include_failed": Refused("a call with an error counts as a call")},
    (
        _same("Equals", "code_equals"),
        _same("EqualsExpected", "code_equals_ground_truth"),
        _same("Contains", "code_contains_all", None, "", value=Converted("value, as one text", _one_text), case_sensitive=negated("ignore_case"), as_strings=only(True, "the output is a text here; leave it out")),
        _differs("IsInstance", "an output in a trace is a text; code_is_json and code_schema_conformance check its form by a JSON Schema"),
        _same("MaxDuration", "code_max_duration", seconds=seconds("max_seconds")),
        _same("LLMJudge", "llm_aspect_critic", None, "the question is shown where it is known", include_input=only(True, "the question is shown where it is known; leave it out"), include_expected_output=only(False, "put it into the rubric; llm_answer_correctness compares with the ground truth"), score=only(False, "llm_rubric gives a score and a verdict"), assertion=Refused("it is a verdict with its reason; llm_rubric gives a score too")),
        _differs("GEval", "its score is a whole number of score_range (1 to 5); llm_g_eval takes criteria and steps, and gives 0 to 1"),
        _same("HasMatchingSpan", "code_has_matching_span", query=span_query("query")),
        _same("ToolCorrectness", "code_tool_call_f1", {"mode": "multiset", "threshold": 1.0}, "passes as there; the value is an F1", allow_extra=only(False, "use code_tool_correctness, where other calls cost nothing")),
        _differs("TrajectoryMatch", "it is an F1 of the longest common sequence by default; code_tool_call_f1 is the F1 in any order, and code_tool_call_order asks whether the expected calls came in their order"),
        _differs("ArgumentCorrectness", "it looks at one call and several arguments; code_tool_argument_matches asks for one argument of any call, code_tool_correctness with check_arguments for all"),
        _differs("MaxToolCalls", "it bounds all calls together; code_tool_efficiency takes max_calls as part of a score, and code_tool_call_count bounds one tool"),
        _same("MaxModelRequests", "code_max_iterations", max_requests="max_iterations"),
        *(_differs(name, _RUN) for name in ("ConfusionMatrixEvaluator", "PrecisionRecallEvaluator", "ROCAUCEvaluator", "KolmogorovSmirnovEvaluator")),
    ),
)  # fmt: skip

_MATCH = "messages and calls are compared by trajectory_match_mode; code_tool_call_order is the nearest for a superset in order, code_tool_call_f1 for unordered, code_tool_selection with strict_order for strict"
_TRAJECTORY = (
    "a judge sees the whole trajectory there; llm_step_efficiency, llm_tool_correctness and llm_plan_adherence each ask a part"
)

_OPENEVALS = Tool(
    "openevals", "OpenEvals", "0.2.2", {"model": _NO_MODEL, "judge": _NO_MODEL, "feedback_key": _NO_NAME},
    (
        _same("exact_match", "code_equals_ground_truth"),
        _same("levenshtein_distance", "code_levenshtein_similarity", None, "a similarity in both, 1 for equal texts"),
        _same("create_embedding_similarity_evaluator", "embed_answer_similarity", None, _WITH_MARK, algorithm=only("cosine", "embed_similar has other measures")),
        _differs("create_llm_as_judge", "the prompt is your own there; llm_rubric, llm_aspect_critic and llm_custom_judge take a rubric"),
        _differs("create_json_match_evaluator", "keys are compared and averaged there, some by a judge; use code_json_equals, code_field_accuracy or llm_semantic_field_equality"),
        _differs("create_trajectory_match_evaluator", _MATCH),
        _differs("create_trajectory_llm_as_judge", _TRAJECTORY),
        _same("RAG_GROUNDEDNESS_PROMPT", "llm_groundedness", None, _WITH_MARK),
        _same("RAG_RETRIEVAL_RELEVANCE_PROMPT", "llm_context_relevance", {"method": "holistic"}),
        _differs("RAG_HELPFULNESS_PROMPT", f"it asks whether the answer helps; llm_relevance asks whether it addresses the question, {_OWN_RUBRIC}"),
        _differs("CORRECTNESS_PROMPT", _NO_REFERENCE),
        _differs("CONCISENESS_PROMPT", _OWN_RUBRIC),
        _differs("HALLUCINATION_PROMPT", f"its direction depends on the prompt's rubric; {_CONTRADICTS}"),
        _differs("TOXICITY_PROMPT", _TOXIC),
        _differs("PII_LEAKAGE_PROMPT", _PII),
        _differs("PROMPT_INJECTION_PROMPT", "it is a yes or no about the input; llm_prompt_injection is a severity of 0 to 7, where less is better, and code_injection_markers reads what came from outside"),
    ),
)  # fmt: skip

_AGENTEVALS = Tool(
    "agentevals", "agentevals", "0.0.9", {"model": _NO_MODEL, "judge": _NO_MODEL, "feedback_key": _NO_NAME},
    (
        _differs("create_trajectory_match_evaluator", _MATCH),
        _differs("create_trajectory_llm_as_judge", _TRAJECTORY),
        _differs("create_graph_trajectory_llm_as_judge", "a judge sees the graph's steps there; code_workflow_execution_order compares them with an expected order"),
        _differs("graph_trajectory_strict_match", "the graph's steps are compared there; use code_workflow_execution_order with strict"),
    ),
)  # fmt: skip

_LANGFUSE = Tool(
    "langfuse", "Langfuse (managed evaluators)", "langfuse/langfuse, worker/src/constants/managed-evaluators.json", {},
    (
        _differs("Hallucination", f"1 means made up there, by common knowledge; {_CONTRADICTS}"),
        _same("Relevance", "llm_relevance", None, _WITH_MARK),
        _same("Correctness", "llm_answer_correctness", None, _WITH_MARK),
        _same("Contextrelevance", "llm_context_relevance", {"method": "holistic"}),
        _differs("Contextcorrectness", "it asks whether the context is right by the ground truth; llm_context_recall asks how much of the ground truth it has"),
        _differs("Toxicity", _TOXIC),
        _differs("Helpfulness", f"it asks whether the answer helps and is friendly; {_OWN_RUBRIC}"),
        _differs("Conciseness", _OWN_RUBRIC),
    ),
)  # fmt: skip

TOOLS = (_DEEPEVAL, _RAGAS, _PROMPTFOO, _MLFLOW, _PHOENIX, _PYDANTIC_EVALS, _OPENEVALS, _AGENTEVALS, _LANGFUSE)
_TOOL_OF = {tool.prefix: tool for tool in TOOLS}
_ROWS = {(tool.prefix, row.name): row for tool in TOOLS for row in tool.rows}


class Found(NamedTuple):
    """Name of another tool that resolves to a metric here."""

    ours: str
    preset: Mapping[str, Any]
    parameters: Spellings
    note: str


def names() -> Iterator[str]:
    """Return every name with its tool's prefix."""
    return (f"{tool.prefix}:{row.name}" for tool in TOOLS for row in tool.rows)


def names_of(metric: str) -> list[str]:
    """Return the names of other tools that resolve to a metric."""
    return [f"{tool.prefix}:{row.name}" for tool in TOOLS for row in tool.rows if row.ours == metric]


def row_of(prefix: str, name: str) -> Row | None:
    """Return a metric of a tool."""
    return _ROWS.get((prefix, name))


def find(name: str) -> Found | None:
    """Resolve a name with its tool's prefix, or without it if the name is unambiguous.

    None if no tool has it.

    Raises:
        ConfigError: A name with another meaning (the error explains the alternative), or with several meanings.
    """
    prefix, colon, rest = name.partition(":")
    tool = _TOOL_OF.get(prefix.replace("-", "_")) if colon else None
    if tool is not None:
        row = _ROWS.get((tool.prefix, rest))
        if row is None:
            raise ConfigError(f"{name}: unknown metric of {tool.title}; did you mean {', '.join(nearest(name, names()))}?")
        return _found(tool, row)
    having = [(tool, row) for (prefix, has), row in _ROWS.items() if has == name for tool in (_TOOL_OF[prefix],)]
    if not having:
        return None
    if len({(row.ours, repr(row.preset)) if row.ours else row.note for _, row in having}) > 1:
        candidates = ", ".join(f"{tool.prefix}:{row.name}" for tool, row in having)
        raise ConfigError(f"{name}: ambiguous name; use one of {candidates}")
    return _found(*having[0])


def _found(tool: Tool, row: Row) -> Found:
    if row.ours is None:
        raise ConfigError(f"{tool.prefix}:{row.name}: {row.note}")
    return Found(row.ours, row.preset, {**tool.parameters, **row.parameters}, row.note)
