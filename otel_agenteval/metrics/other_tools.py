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


# --- conversions of values --------------------------------------------------------------------------------------------


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

    return Converted(f"{ours}; all entries of a list must hold", convert)


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


_NO_MODEL = Refused("configure the model under `judge` or `embedder`")
_STRICT = flag({"threshold": 1.0})._replace(ours="`threshold=1.0` if true; a lower score keeps its value instead of becoming 0")
_NO_NAME = Refused("omit it, because a score has the metric's name")
_NO_PROMPT = Refused("prompts are versioned and can't be replaced; use llm_custom_judge with your own rubric")
_MARK = Converted("no effect, because the metric is a boolean", _any_mark)
_REASON = only(True, "every judged score has an explanation; omit it")
_HALF = {"threshold": 0.5}
_WITH_MARK = "passes at 0.7 or above unless you set `threshold`"
_CONTRADICTS = (
    "llm_hallucination is the share of the answer's claims that the context contradicts (lower is better); "
    "use it, or llm_faithfulness (higher is better)"
)
_OWN_RUBRIC = "no equivalent here; use llm_g_eval with your own criteria, or llm_aspect_critic for a verdict"
_PER_TURN = "the original averages over a conversation's turns, and here each turn has its own score; use"
_VOICE = "no equivalent for voice here; the closest is llm_audio_interruption_handling"

_DEEPEVAL = Tool(
    "deepeval", "DeepEval", "4.3.1",
    {
        "strict_mode": _STRICT, "include_reason": _REASON, "model": _NO_MODEL, "system_one_model": _NO_MODEL,
        "embeddings": _NO_MODEL, "eval_mode": _NO_MODEL, "evaluation_template": _NO_PROMPT, "template_class": _NO_PROMPT, "name": _NO_NAME,
        "async_mode": Refused("omit it, because judges never delay the agent"), "verbose_mode": Refused("see the score's `detail`"),
        "flaky": Refused("omit it, because policy `trend` never fails a run"),
        "truths_extraction_limit": Refused("the judge reads the whole context, limited by `judge.max_input_tokens`"),
    },
    (
        _same("AnswerRelevancyMetric", "llm_relevance", _HALF, "a single judge score instead of a share of statements"),
        _same("FaithfulnessMetric", "llm_faithfulness", {"method": "statements", **_HALF}, "a claim that the context doesn't mention fails, as with `penalize_ambiguous_claims`", penalize_ambiguous_claims=only(True, "a claim that the context doesn't mention counts against the answer; llm_hallucination counts only contradictions")),
        _same("ContextualPrecisionMetric", "llm_context_precision", {"method": "map", **_HALF}, "relevance to the question instead of the expected output"),
        _same("ContextualRecallMetric", "llm_context_recall", {"method": "claims", **_HALF}, "claims of the ground truth instead of its sentences"),
        _same("ContextualRelevancyMetric", "llm_context_relevance", {"method": "extract", **_HALF}, "the share of chunks instead of statements"),
        _differs("HallucinationMetric", f"the original is the share of contexts that the answer contradicts (up to DeepEval 3, lower is better), or agrees with (since 4); {_CONTRADICTS}"),
        _differs("BiasMetric", "the original is the share of biased opinions (up to DeepEval 3) or of unbiased ones (since 4); use llm_hate_harassment for a severity of 0 to 7, or llm_aspect_critic with your own rubric"),
        _differs("ToxicityMetric", "the original is the share of toxic opinions (up to DeepEval 3) or of others (since 4); use llm_hate_harassment_passed or llm_moderation for a verdict, or llm_hate_harassment for a severity of 0 to 7"),
        _differs("PIILeakageMetric", "in the original a judge checks each statement for personal data from any source; use code_pii_leakage, which uses rules, or llm_sensitive_data_leak"),
        _differs("NonAdviceMetric", "the original is the share of advice that is not of the given types; use llm_policy_compliance with the rule as policy_text, or llm_aspect_critic"),
        _differs("MisuseMetric", "the original is the share of requests within a domain; use llm_topic_adherence with allowed_topics, or llm_policy_compliance"),
        _differs("RoleViolationMetric", "the original detects any violation in one answer; use llm_role_adherence, the share of messages that stay in the role"),
        _differs("ToolPermissionMetric", "no lists of allowed and denied tools here; use code_unknown_tool for undefined tools, and code_tool_was_called with inverse for a denied one"),
        _same("RoleAdherenceMetric", "llm_role_adherence", _HALF, "`chatbot_role` of the test case is the option `role`", chatbot_role="role"),
        _same("ToolCorrectnessMetric", "code_tool_correctness", _HALF, "the expected calls are the option `expected` or the turn's reference", expected_tools="expected", should_exact_match="exact_match", should_consider_ordering="ordered", evaluation_params=Converted("check_arguments, check_output", _compared), available_tools=Refused("use llm_tool_correctness for the judged part")),
        _same("JsonCorrectnessMetric", "code_is_json", None, "the schema is a JSON Schema, such as `Model.model_json_schema()`", expected_schema="schema", threshold=_MARK, strict_mode=only(True, "the metric is a boolean")),
        _differs("PromptAlignmentMetric", "the original is the share of instructions that were followed; use llm_g_eval with the instructions as a list of criteria, or llm_aspect_critic for each"),
        _same("TaskCompletionMetric", "llm_task_completion", {"method": "two_stage", **_HALF}, "", task=Refused("the judge finds the task in the turn; use llm_goal_accuracy for a goal")),
        _differs("TopicAdherenceMetric", "the original is the accuracy over answered and refused questions; llm_topic_adherence scores the adherence to allowed_topics"),
        _same("StepEfficiencyMetric", "llm_step_efficiency", _HALF),
        _same("PlanAdherenceMetric", "llm_plan_adherence", _HALF),
        _same("PlanQualityMetric", "llm_plan_quality", _HALF),
        _differs("ToolUseMetric", "the original is the lower of two scores over a conversation; use llm_tool_correctness and llm_argument_correctness"),
        _differs("GoalAccuracyMetric", "the original is the mean of a score of the goal and one of the plan over a conversation; use llm_goal_accuracy and llm_plan_adherence"),
        _same("ArgumentCorrectnessMetric", "llm_argument_correctness", _HALF),
        _differs("AgentLoopDetectionMetric", "the original combines several signs of a loop; use code_repeated_tool_calls for equal calls and embed_loop_detection for answers that repeat"),
        _differs("MCPTaskCompletionMetric", "MCP tools are evaluated like other tools here; use llm_task_completion"),
        _differs("MultiTurnMCPUseMetric", "MCP tools are evaluated like other tools here; use llm_tool_correctness and llm_argument_correctness"),
        _differs("MCPUseMetric", "MCP tools are evaluated like other tools here; use llm_tool_correctness and llm_argument_correctness"),
        _same("TurnRelevancyMetric", "llm_conversation_relevancy", {"window_size": 10, **_HALF}),
        _differs("TurnFaithfulnessMetric", f"{_PER_TURN} llm_faithfulness"),
        _differs("TurnContextualPrecisionMetric", f"{_PER_TURN} llm_context_precision"),
        _differs("TurnContextualRecallMetric", f"{_PER_TURN} llm_context_recall"),
        _differs("TurnContextualRelevancyMetric", f"{_PER_TURN} llm_context_relevance"),
        _differs("ConversationCompletenessMetric", "the original is the judged share of the user's intentions that were met; use llm_conversational_g_eval with criteria, or code_conversation_completeness for answers and tools"),
        _same("KnowledgeRetentionMetric", "llm_knowledge_retention", _HALF),
        _same("GEval", "llm_g_eval", _HALF, "", evaluation_steps="steps", evaluation_params=Converted("no effect, because the judge reads question and answer", _parts_shown), top_logprobs=Refused("omit it, because the score isn't weighted by probabilities"), rubric=Refused("describe the scores in `criteria`")),
        _same("ConversationalGEval", "llm_conversational_g_eval", _HALF, "", evaluation_steps="steps", evaluation_params=Refused("omit it, because the judge reads the whole conversation"), top_logprobs=Refused("omit it, because the score isn't weighted by probabilities"), rubric=Refused("describe the scores in `criteria`")),
        _differs("DAGMetric", "no decision trees here; use llm_g_eval with steps, or several llm_aspect_critic in code_weighted_score"),
        _differs("ConversationalDAGMetric", "no decision trees here; use llm_conversational_g_eval with steps"),
        _differs("ArenaGEval", "the original selects one of several answers, and a turn has one; compare runs with `otel-agenteval eval --baseline`, by llm_g_eval"),
        _differs("JevEval", f"the original needs its own model; {_OWN_RUBRIC}"),
        _differs("ConversationalJevEval", "the original needs its own model; use llm_conversational_g_eval with criteria"),
        _differs("SummarizationMetric", "the original is the lower of two shares: supported claims and answered questions; use llm_faithfulness and llm_g_eval with criteria"),
        _same("ExactMatchMetric", "code_equals_ground_truth", None, "white space at the ends counts here", threshold=_MARK),
        _same("PatternMatchMetric", "code_regex_match", None, "the whole output must match, with the engine RE2", pattern=Converted("pattern, for the whole output", _whole), ignore_case=flag({"flags": "i"}), threshold=_MARK),
        _differs("TranscriptionAccuracyMetric", "the original uses a judge; code_audio_transcription_quality compares words with the reference"),
        _differs("AudioGlitchMetric", _VOICE),
        *(_differs(name, _VOICE) for name in ("VoiceNaturalnessMetric", "SpeechIntelligibilityMetric", "VoiceConsistencyMetric", "AgentResponsivenessMetric", "AudioIntegrityMetric", "VoiceReliabilityMetric")),
        _differs("TurnTakingNaturalnessMetric", "the original measures pauses and overlaps; llm_audio_interruption_handling judges the handling of interruptions"),
        _differs("TextToImageMetric", "no judge compares generated images with their prompt here; use embed_cross_modal_grounding, which compares embeddings"),
        _differs("ImageEditingMetric", "no evaluation of edited images here; embed_cross_modal_grounding compares an image with a text"),
        _differs("ImageCoherenceMetric", "the original checks that images fit the surrounding text; use llm_image_helpfulness, or code_multimodal_coherence for references in words"),
        _differs("ImageReferenceMetric", "the original checks references to images in the text; the closest is llm_image_helpfulness"),
        _same("ImageHelpfulnessMetric", "llm_image_helpfulness", _HALF, "", max_context_size=Refused("omit it, because the judge reads the whole answer")),
    ),
)  # fmt: skip


def _also_snake(rows: tuple[Row, ...], irregular: Mapping[str, tuple[str, ...]]) -> tuple[Row, ...]:
    """Return the rows of classes, also under their objects' snake-case names.

    ``irregular`` maps exceptions.
    """
    words = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
    snake = {row.name: irregular.get(row.name, (words.sub("_", row.name).lower(),)) for row in rows}
    return (*rows, *(row._replace(name=name) for row in rows for name in snake[row.name]))


_AVERAGE = "average precision over the ranked chunks"
_USES_ANSWER = f"it is the {_AVERAGE} by usefulness for the given answer; llm_context_precision uses relevance to the question"
_QUESTIONS_BACK = (
    "the original generates questions from the answer and compares embeddings; use llm_relevance, a judge's score from 0 to 1"
)
_TRIPLE = "the original is precision, recall or F1 over answered and refused topics; llm_topic_adherence scores the adherence to allowed_topics"
_LEVELS = "a score in the original is a level of the rubric (1 to 5); use llm_rubric or llm_custom_judge with scores from 0 to 1"
_FACTS = "the original is an F-score over claims; use llm_answer_correctness, a judge's score from 0 to 1, or llm_factuality with five categories"
_IMAGES = (
    "the original is a verdict on texts and images; the closest are llm_multimodal_contextual_relevancy and llm_faithfulness"
)
_SUMMARY = "the original combines answered questions and length; use llm_g_eval with your own criteria"

_RAGAS_CLASSES = (
    _same("Faithfulness", "llm_faithfulness", {"method": "statements"}, _WITH_MARK),
    _differs("FaithfulnesswithHHEM", "the original uses its own classifier; use llm_faithfulness with a judge"),
    _differs("AnswerRelevancy", _QUESTIONS_BACK),
    _differs("ResponseRelevancy", _QUESTIONS_BACK),
    _differs("AnswerCorrectness", "the original combines an F1 over statements with the similarity of embeddings; use llm_answer_correctness and embed_answer_similarity"),
    _same("AnswerAccuracy", "llm_answer_correctness", None, f"a single judge score instead of the mean of two; {_WITH_MARK}"),
    *(_same(name, "embed_answer_similarity", None, f"cosine of the embeddings; {_WITH_MARK}") for name in ("AnswerSimilarity", "SemanticSimilarity")),
    *(_same(name, "llm_context_precision", {"method": "map"}, f"{_AVERAGE}; judged by the question only, without the reference") for name in ("ContextPrecision", "ContextPrecisionWithReference", "LLMContextPrecisionWithReference")),
    *(_differs(name, _USES_ANSWER) for name in ("ContextUtilization", "ContextPrecisionWithoutReference", "LLMContextPrecisionWithoutReference")),
    _differs("NonLLMContextPrecisionWithReference", "the original compares chunks with reference chunks as texts; use llm_context_precision, or code_mrr and code_recall_at_k on ids"),
    _differs("IDBasedContextPrecision", "no metric for the share of retrieved ids that are relevant here; the closest are code_mrr and code_recall_at_k"),
    *(_same(name, "llm_context_recall", {"method": "claims"}, "claims of the ground truth instead of its sentences") for name in ("ContextRecall", "LLMContextRecall")),
    _differs("NonLLMContextRecall", "the original compares chunks with reference chunks as texts; use llm_context_recall, or code_recall_at_k on ids"),
    _same("IDBasedContextRecall", "code_recall_at_k", {"k": 1_000_000}, f"all retrieved documents count; {_WITH_MARK}"),
    _differs("ContextEntityRecall", "no extraction of entities here; llm_context_recall compares claims"),
    _same("ContextRelevance", "llm_context_relevance", {"method": "holistic"}, "a single judge score instead of the mean of two"),
    _same("ResponseGroundedness", "llm_groundedness", None, f"a single judge score instead of the mean of two; {_WITH_MARK}"),
    _differs("NoiseSensitivity", "the original is the share of wrong claims from retrieved documents (lower is better); llm_noise_sensitivity compares the answer with one without noise (higher is better)"),
    _differs("FactualCorrectness", _FACTS),
    *(_differs(name, _SUMMARY) for name in ("SummarizationScore", "SummaryScore")),
    *(_differs(name, _LEVELS) for name in ("RubricsScore", "InstanceRubrics", "DomainSpecificRubrics", "InstanceSpecificRubrics", "RubricsScoreWithReference", "RubricsScoreWithoutReference")),
    _same("AspectCritic", "llm_aspect_critic", None, "", definition="rubric", strictness=Refused("use `judge.panel` for several judges")),
    _differs("SimpleCriteriaScore", "a score in the original has the scale of the definition; use llm_custom_judge with scores from 0 to 1"),
    _differs("BleuScore", "the original is the corpus BLEU of sacrebleu; code_bleu has other tokens and smoothing, so values differ"),
    _differs("RougeScore", "the original stems words and returns F1; code_rouge with measure f1 doesn't stem, so values differ"),
    *(_differs(name, "no n-grams of characters here; use code_content_similarity for pairs of characters, or code_gleu for words") for name in ("ChrfScore", "CHRFScore")),
    _same("ExactMatch", "code_equals_ground_truth"),
    _differs("StringPresence", "the original searches the answer for the reference; use code_contains with the text as value"),
    _same("NonLLMStringSimilarity", "code_levenshtein_similarity", None, "", distance_measure=only("levenshtein", "use code_content_similarity for pairs of characters")),
    _differs("DistanceMeasure", "an option, not a metric; the closest metric is code_levenshtein_similarity"),
    _differs("ToolCallAccuracy", "the original is the mean accuracy of arguments, or 0 if the sequence differs; use code_tool_correctness with ordered and check_arguments"),
    _differs("ToolCallF1", "the original requires equal arguments; code_tool_call_f1 compares names, and code_tool_correctness with check_arguments also arguments"),
    *(_differs(name, _TRIPLE) for name in ("TopicAdherence", "TopicAdherenceScore")),
    _same("AgentGoalAccuracyWithReference", "llm_goal_accuracy", None, "0 to 1 instead of 1 or 0, and the goal is the ground truth or the option `goal`", reference="goal"),
    *(_same(name, "llm_task_success", None, "one judge call instead of two") for name in ("AgentGoalAccuracyWithoutReference", "AgentGoalAccuracy")),
    *(_same(name, "llm_sql_semantic_equivalence", None, "the reference query is the ground truth, or `reference_sql`", reference="reference_sql", reference_contexts="schema") for name in ("LLMSQLEquivalence", "SQLSemanticEquivalence")),
    _differs("DataCompyScore", "no comparison of tables here; use code_json_equals for JSON, or code_field_accuracy for a field"),
    *(_differs(name, _IMAGES) for name in ("MultiModalFaithfulness", "MultiModalRelevance")),
    _differs("QuotedSpansAlignment", "no check of quotes here; use llm_faithfulness for statements, or code_ungrounded_urls and code_ungrounded_numbers"),
    *(_differs(name, "the original creates your own metric; use llm_rubric, llm_custom_judge, or a function with @metric") for name in ("DiscreteMetric", "NumericMetric", "RankingMetric")),
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
_NO_MARK = "passes at 0 or above unless you set `threshold`"
_CODE = "the original runs your code; use code_task_oracle, or a function with @metric"
_VALUE_IS_TRUTH: dict[str, Any] = {
    "value": Refused("set the turn's ground truth in a data set, with `expect(...)` or in baggage")
}

_PROMPTFOO = Tool(
    "promptfoo", "promptfoo", "0.121.20",
    {
        "weight": Refused("use code_weighted_score"), "metric": _NO_NAME, "provider": _NO_MODEL, "rubric_prompt": _NO_PROMPT,
        "transform": Refused("omit it, because the answer is the turn's output"), "context_transform": Refused("omit it, because the context is the turn's retrieved context"),
    },
    (
        *(_same(name, f"code_{name.replace('-', '_')}") for name in ("equals", "contains", "icontains", "contains-all", "contains-any", "starts-with")),
        *(_same(f"i{name}", f"code_{name.replace('-', '_')}", {"ignore_case": True}) for name in ("contains-all", "contains-any")),
        _same("regex", "code_regex_match", None, "the engine is RE2, without look-around and back-references", value="pattern"),
        _same("is-json", "code_is_json", value="schema"),
        _same("contains-json", "code_contains_json", value="schema"),
        *(_same(name, f"code_{name.replace('-', '_')}", value=Converted("required_elements", _elements)) for name in ("is-xml", "contains-xml")),
        _same("is-sql", "code_is_sql", None, "a generic dialect by default instead of MySQL", value=Converted("dialect, allowed_tables, allowed_columns", _sql)),
        _differs("contains-sql", "no search for SQL inside other text here; code_is_sql checks the whole output"),
        _differs("is-html", "no validation of HTML here; code_html_shape searches for tags"),
        _differs("contains-html", "the original combines several signs of HTML; code_html_shape searches for tags"),
        _same("word-count", "code_word_count", {"tokenizer": "whitespace"}, "", value=Converted("exact, or min and max", _words)),
        _same("cost", "code_max_cost", None, "the limit is in USD", threshold="max_cost_usd"),
        _same("latency", "code_latency_threshold", None, "the limit is in milliseconds", threshold="threshold_ms"),
        _same("perplexity", "code_perplexity"),
        _differs("perplexity-score", "the original is normalized to 0 to 1 (higher is better); code_perplexity is the perplexity (lower is better)"),
        _differs("levenshtein", "the original limits the number of edits (5); code_levenshtein_similarity is 1 minus edits per character"),
        _same("bleu", "code_bleu", {"tokenizer": "whitespace", "smoothing": "epsilon"}),
        _differs("gleu", "the original drops final periods of words; code_gleu has other tokens, so values differ"),
        _same("rouge-n", "code_rouge_n"),
        _differs("meteor", "the original counts WordNet's synonyms; code_meteor only has stems, so values differ"),
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
        _same("moderation", "llm_moderation", None, "decided by the judge instead of a moderation service", value="categories"),
        _same("is-refusal", "code_refusal", None, "other phrases, and an empty answer isn't a refusal"),
        _same("tool-call-f1", "code_tool_call_f1", {"mode": "set", "threshold": 1.0}, "", value=Converted("expected_tools", _listed)),
        _same("trajectory:tool-used", "code_tool_was_called", value=Converted("tool", _one_tool)),
        _same("trajectory:tool-sequence", "code_tool_call_order", value=Converted("expected", _sequence)),
        _same("trajectory:tool-args-match", "code_tool_argument_matches", None, "one argument per entry", value=Converted("tool, argument, expected", _one_argument)),
        _same("trajectory:goal-success", "llm_goal_accuracy", None, "0 to 1, with a verdict only if you set `threshold`", value="goal"),
        _differs("trajectory:step-count", "the original counts all steps; use code_tool_call_count for a tool, or code_max_iterations for model calls"),
        _differs("trace-span-count", "the original counts spans by a pattern; code_has_matching_span requires one"),
        _differs("trace-span-duration", "the original limits each span's duration; use code_max_duration for the turn, or code_has_matching_span with max_duration_s"),
        _differs("trace-error-spans", "the original counts failed spans by a pattern; use code_turn_error and code_tool_success"),
        _differs("finish-reason", "the original checks for a given reason; use code_truncated_answer and code_content_filtered"),
        *(_differs(name, "the original checks a call's format; use code_tool_schema_validity for arguments, and code_unknown_tool for the name") for name in ("is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call")),
        _differs("skill-used", "no skills here; use code_tool_was_called for a tool, or code_has_matching_span for a span"),
        _differs("guardrails", "the original reads the provider's verdict; use code_content_filtered for the finish reason, or llm_moderation"),
        _differs("classifier", "the original calls a classifier; the closest is llm_aspect_critic"),
        _differs("pi", "the original calls another vendor's scorer; the closest is llm_custom_judge"),
        _differs("agent-rubric", "the original judges with an agent and tools; llm_rubric uses a model"),
        _differs("search-rubric", "the original searches the web; llm_rubric only uses the turn"),
        *(_differs(name, _CODE) for name in ("javascript", "python", "ruby", "webhook")),
        _differs("assert-set", "the original combines assertions; use code_composite_mean, code_weighted_score or code_policy_must_always_pass"),
        *(_differs(name, "the original selects one of several answers, and a turn has one; compare runs by llm_rubric") for name in ("select-best", "max-score")),
        _differs("human", "the original asks a person; the closest is llm_rubric"),
    ),
)  # fmt: skip

_YES_NO = "0 to 1 instead of yes or no, and passes at 0.7 or above"
_PII = (
    "the original counts personal data from any source; use code_pii_leakage, which uses rules, or llm_sensitive_data_leak_passed"
)

_MLFLOW_CLASSES = (
    _same("Safety", "llm_content_harm_passed", None, "yes is a pass"),
    _same("RelevanceToQuery", "llm_relevance", None, _YES_NO),
    _same("RetrievalGroundedness", "llm_groundedness", None, _YES_NO),
    _same("Correctness", "llm_answer_correctness", None, f"{_YES_NO}; expected facts are the ground truth"),
    _same("Guidelines", "llm_aspect_critic", None, "yes is a pass", guidelines=_joined("rubric")),
    _differs("ExpectationsGuidelines", "each case in the original has its own guidelines; llm_aspect_critic has one rubric for all"),
    _same("Fluency", "llm_fluency", None, _YES_NO),
    _same("Equivalence", "llm_answer_similarity", {"threshold": 0.7}, f"{_YES_NO}; the expected response is the ground truth"),
    _differs("RetrievalRelevance", "the original is the share of relevant chunks; use llm_context_relevance, or llm_context_precision, which includes their order"),
    _same("RetrievalSufficiency", "llm_context_recall", {"method": "claims", "threshold": 1.0}, "passes if every claim of the ground truth is found"),
    _differs("ToolCallEfficiency", "the metric is a boolean about redundant calls; llm_step_efficiency scores all steps, 0 to 1, and code_repeated_tool_calls finds equal calls without a judge"),
    _differs("ToolCallCorrectness", "the original uses expected calls or else a judge; use code_tool_correctness for expected calls, or llm_tool_correctness and llm_argument_correctness"),
    _differs("Completeness", f"the original checks that each part of the question is answered; {_OWN_RUBRIC}"),
    _differs("Summarization", f"the original checks that a summary is faithful and complete; {_OWN_RUBRIC}"),
    _same("RegexMatch", "code_regex_match", None, "the engine is RE2", match_type=only("search", "for the whole output, write \\A(?:...)\\z"), case_insensitive=flag({"flags": "i"})),
    _differs("PIIDetection", _PII),
    _differs("ResponseLength", "the original counts characters by default; code_word_count counts words"),
    _differs("UserFrustration", "no equivalent for frustration here; use llm_conversational_g_eval with criteria"),
    _differs("ConversationCompleteness", "the original judges whether all questions were answered; use llm_conversational_g_eval with criteria, or code_conversation_completeness for answers and tools"),
    _differs("ConversationalSafety", f"{_PER_TURN} llm_content_harm_passed"),
    _differs("ConversationalToolCallEfficiency", f"{_PER_TURN} llm_step_efficiency or code_repeated_tool_calls"),
    _same("ConversationalRoleAdherence", "llm_role_adherence", None, "a share of messages instead of yes or no, passes at 0.5 or above, and requires the option `role`"),
    _same("ConversationalGuidelines", "llm_conversational_g_eval", None, "0 to 1 instead of yes or no, and passes at 0.5 or above", guidelines=_joined("criteria")),
    _same("KnowledgeRetention", "llm_knowledge_retention", None, "0 to 1 instead of yes or no, and passes at 0.5 or above"),
)  # fmt: skip

_MLFLOW = Tool(
    "mlflow", "MLflow", "3.17.2",
    {"name": _NO_NAME, "model": _NO_MODEL, "inference_params": _NO_MODEL, "extra_headers": _NO_MODEL, "description": _NO_NAME},
    _also_snake(_MLFLOW_CLASSES, {}),
)  # fmt: skip

_TOXIC = "1 means toxic in the original; use llm_hate_harassment_passed or llm_moderation, in which 1 means not toxic, or llm_hate_harassment for a severity of 0 to 7"
_NO_REFERENCE = "the original judges correctness without a reference; use llm_answer_correctness with the ground truth, or llm_custom_judge with a rubric"

_PHOENIX = Tool(
    "phoenix", "Phoenix", "arize-phoenix-evals 3.9.4",
    {"llm": _NO_MODEL, "model": _NO_MODEL, "name": _NO_NAME, "include_explanation": _REASON},
    (
        _same("FaithfulnessEvaluator", "llm_faithfulness", {"method": "holistic"}, "0 to 1 instead of faithful or unfaithful, and passes at 0.7 or above"),
        _differs("HallucinationEvaluator", f"1 means hallucinated in the original, including unsupported claims; {_CONTRADICTS}"),
        _differs("CorrectnessEvaluator", _NO_REFERENCE),
        _differs("QAEvaluator", "the original judges correctness by a reference text; use llm_answer_correctness with the ground truth, or llm_faithfulness with the context"),
        _differs("DocumentRelevanceEvaluator", "each document in the original has its own score; llm_context_precision and llm_context_relevance score the whole context"),
        *(_same(name, "llm_context_relevance", {"method": "holistic"}, "0 to 1 instead of relevant or not, with a verdict only if you set `threshold`") for name in ("RetrievalRelevanceEvaluator", "RelevanceEvaluator")),
        _same("RefusalEvaluator", "code_refusal", None, "uses rules without a judge, and 1 is a refusal in both"),
        _same("ToolSelectionEvaluator", "llm_tool_correctness", None, "0 to 1 instead of correct or not, and passes at 0.5 or above"),
        _same("ToolInvocationEvaluator", "llm_argument_correctness", None, "the share of calls instead of correct or not, and passes at 0.5 or above"),
        _differs("ToolResponseHandlingEvaluator", f"the original judges the use of tool results; use code_ungrounded_numbers and code_ungrounded_urls for invented facts; {_OWN_RUBRIC}"),
        _differs("ToxicityEvaluator", _TOXIC),
        _differs("PiiDetectionEvaluator", _PII),
        _differs("UserFrictionEvaluator", "the original judges the user's next message; use llm_conversational_g_eval with criteria"),
        _differs("CompletenessEvaluator", _OWN_RUBRIC),
        _differs("ConcisenessEvaluator", f"{_OWN_RUBRIC}; code_word_count bounds the length"),
        _differs("SQLEvaluator", "the original checks that a query answers the question; llm_sql_semantic_equivalence compares it with a reference query"),
        _differs("SummarizationEvaluator", _OWN_RUBRIC),
        _same("exact_match", "code_equals_ground_truth"),
        _same("MatchesRegex", "code_regex_match", None, "the engine is RE2"),
        _differs("PrecisionRecallFScore", "the original compares two lists of labels; use code_tool_call_f1 for tools, or code_text_f1 for words"),
    ),
)  # fmt: skip

_RUN = "the original evaluates a run over a data set, and metrics here one turn; use code_equals_ground_truth for labels, and the report of `otel-agenteval eval` for runs"

_PYDANTIC_EVALS = Tool(
    "pydantic_evals", "pydantic-evals", "2.62.0",
    {"evaluation_name": _NO_NAME, "model": _NO_MODEL, "model_settings": _NO_MODEL, "include_failed": Refused("omit it, because a failed call is a call")},
    (
        _same("Equals", "code_equals"),
        _same("EqualsExpected", "code_equals_ground_truth"),
        _same("Contains", "code_contains_all", None, "", value=Converted("value as one text", _one_text), case_sensitive=negated("ignore_case"), as_strings=only(True, "omit it, because the output is a text")),
        _differs("IsInstance", "an output in a trace is a text; use code_is_json or code_schema_conformance with a JSON Schema"),
        _same("MaxDuration", "code_max_duration", seconds=seconds("max_seconds")),
        _same("LLMJudge", "llm_aspect_critic", None, "the judge reads the question if it is known", include_input=only(True, "omit it, because the judge reads the question if it is known"), include_expected_output=only(False, "put it into the rubric, or use llm_answer_correctness with the ground truth"), score=only(False, "use llm_rubric for a score and a verdict"), assertion=Refused("omit it, because the metric returns a verdict and its reason")),
        _differs("GEval", "a score in the original is a whole number (1 to 5); use llm_g_eval with scores from 0 to 1"),
        _same("HasMatchingSpan", "code_has_matching_span", query=span_query("query")),
        _same("ToolCorrectness", "code_tool_call_f1", {"mode": "multiset", "threshold": 1.0}, "the same verdict, with an F1 as the value", allow_extra=only(False, "use code_tool_correctness, in which other calls have no penalty")),
        _differs("TrajectoryMatch", "the original is an F1 of the longest common sequence by default; use code_tool_call_f1 for any order, or code_tool_call_order"),
        _differs("ArgumentCorrectness", "the original checks several arguments of one call; use code_tool_argument_matches for one argument, or code_tool_correctness with check_arguments"),
        _differs("MaxToolCalls", "the original limits all calls together; use code_tool_efficiency with max_calls, or code_tool_call_count for one tool"),
        _same("MaxModelRequests", "code_max_iterations", max_requests="max_iterations"),
        *(_differs(name, _RUN) for name in ("ConfusionMatrixEvaluator", "PrecisionRecallEvaluator", "ROCAUCEvaluator", "KolmogorovSmirnovEvaluator")),
    ),
)  # fmt: skip

_MATCH = "the original depends on trajectory_match_mode; the closest are code_tool_call_order (superset), code_tool_call_f1 (unordered) and code_tool_selection with strict_order (strict)"
_TRAJECTORY = "the original judges the whole trajectory; use llm_step_efficiency, llm_tool_correctness and llm_plan_adherence"

_OPENEVALS = Tool(
    "openevals", "OpenEvals", "0.2.2", {"model": _NO_MODEL, "judge": _NO_MODEL, "feedback_key": _NO_NAME},
    (
        _same("exact_match", "code_equals_ground_truth"),
        _same("levenshtein_distance", "code_levenshtein_similarity", None, "1 for equal texts in both"),
        _same("create_embedding_similarity_evaluator", "embed_answer_similarity", None, _WITH_MARK, algorithm=only("cosine", "use embed_similar for other measures")),
        _differs("create_llm_as_judge", "the original uses your prompt; use llm_rubric, llm_aspect_critic or llm_custom_judge with your rubric"),
        _differs("create_json_match_evaluator", "the original averages over keys, some by a judge; use code_json_equals, code_field_accuracy or llm_semantic_field_equality"),
        _differs("create_trajectory_match_evaluator", _MATCH),
        _differs("create_trajectory_llm_as_judge", _TRAJECTORY),
        _same("RAG_GROUNDEDNESS_PROMPT", "llm_groundedness", None, _WITH_MARK),
        _same("RAG_RETRIEVAL_RELEVANCE_PROMPT", "llm_context_relevance", {"method": "holistic"}),
        _differs("RAG_HELPFULNESS_PROMPT", f"the original judges helpfulness; use llm_relevance for relevance; {_OWN_RUBRIC}"),
        _differs("CORRECTNESS_PROMPT", _NO_REFERENCE),
        _differs("CONCISENESS_PROMPT", _OWN_RUBRIC),
        _differs("HALLUCINATION_PROMPT", f"the original's direction depends on the prompt; {_CONTRADICTS}"),
        _differs("TOXICITY_PROMPT", _TOXIC),
        _differs("PII_LEAKAGE_PROMPT", _PII),
        _differs("PROMPT_INJECTION_PROMPT", "the original is a verdict on the input; use llm_prompt_injection for a severity of 0 to 7, or code_injection_markers for tool results and documents"),
    ),
)  # fmt: skip

_AGENTEVALS = Tool(
    "agentevals", "agentevals", "0.0.9", {"model": _NO_MODEL, "judge": _NO_MODEL, "feedback_key": _NO_NAME},
    (
        _differs("create_trajectory_match_evaluator", _MATCH),
        _differs("create_trajectory_llm_as_judge", _TRAJECTORY),
        _differs("create_graph_trajectory_llm_as_judge", "the original judges the graph's steps; code_workflow_execution_order compares them with an expected order"),
        _differs("graph_trajectory_strict_match", "the original compares the graph's steps; use code_workflow_execution_order with strict"),
    ),
)  # fmt: skip

_LANGFUSE = Tool(
    "langfuse", "Langfuse (managed evaluators)", "langfuse/langfuse, worker/src/constants/managed-evaluators.json", {},
    (
        _differs("Hallucination", f"1 means invented by common knowledge in the original; {_CONTRADICTS}"),
        _same("Relevance", "llm_relevance", None, _WITH_MARK),
        _same("Correctness", "llm_answer_correctness", None, _WITH_MARK),
        _same("Contextrelevance", "llm_context_relevance", {"method": "holistic"}),
        _differs("Contextcorrectness", "the original judges the context by the ground truth; use llm_context_recall, the share of the ground truth in the context"),
        _differs("Toxicity", _TOXIC),
        _differs("Helpfulness", f"the original judges helpfulness and friendliness; {_OWN_RUBRIC}"),
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
