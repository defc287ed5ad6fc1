"""Settings that make instrumentations capture content, such as prompts and answers.

Most metrics need content, but many instrumentations don't capture it by default. :data:`CAPTURES` is the source of runtime hints,
``otel-agenteval doctor``, and ``docs/guides/capture-content.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .reader import CALLER, TURN, is_genai_scope

_TRUE = frozenset(("true", "1", "yes", "on"))


@dataclass(frozen=True, slots=True)
class Capture:
    """Settings that make one or more related instrumentations capture content."""

    name: str
    scopes: str
    """Regular expression that matches the start of the instrumentation's scope names."""
    packages: str
    """Regular expression for the names of the instrumentation's Python packages. Empty for other programming languages."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to set, with their values. Empty if none are needed, or if only code can turn capture on."""
    old: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to set instead if the application uses the older GenAI convention."""
    code: str = ""
    """Additional advice, for example about a setting in code."""
    by_default: bool = False
    off: Mapping[str, str] = field(default_factory=dict)

    @property
    def advice(self) -> str:
        settings = [f"{name}={value}" for name, value in self.variables.items()]
        settings += [f"{name}={value} turns it off" for name, value in self.off.items()] if self.by_default else []
        return ", ".join([*settings, *([self.code] if self.code else [])])

    def is_on(self, env: Mapping[str, str]) -> bool | None:
        """Return True if ``env`` or a default captures content, False if it's (partly) off, or None if only code can turn it on."""
        if any(env.get(name, "").strip().lower() == value.lower() for name, value in self.off.items()):
            return False
        if self.by_default:
            return True
        if not self.variables:
            return None
        variables = self.old if self.old and not _agrees(env.get(_OPT_IN, ""), _LATEST) else self.variables
        return all(_agrees(env.get(name, ""), value) for name, value in variables.items())


def _agrees(found: str, wanted: str) -> bool:
    value = found.strip().lower()
    if wanted == "true":
        return value in _TRUE
    if wanted.startswith("SPAN_"):
        return value.startswith("span_")
    return wanted.lower() in [part.strip() for part in value.split(",")]


_GENAI = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
_LATEST = "gen_ai_latest_experimental"

CAPTURES: Sequence[Capture] = (
    Capture(
        "OpenInference (Phoenix, Arize)", r"openinference\.", r"openinference-instrumentation(-.+)?", by_default=True,
        off={"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"},
    ),
    Capture(
        "OpenTelemetry (`opentelemetry-instrumentation-genai-…`, and `…-google-genai` 1.x)", r"opentelemetry\.(instrumentation\.(google_)?genai|util\.genai)",
        r"opentelemetry-(instrumentation-(genai-.+|google-genai)|util-genai)", {_GENAI: "SPAN_AND_EVENT"},
    ),
    Capture(
        "OpenTelemetry, older packages (`opentelemetry-instrumentation-openai-v2`, `…-vertexai` 2.x, and `…-google-genai` 0.x)",
        r"opentelemetry\.instrumentation\.(openai_v2|vertexai|openai_agents_v2)", r"opentelemetry-instrumentation-(openai-v2|vertexai|openai-agents-v2)",
        {_GENAI: "SPAN_AND_EVENT", _OPT_IN: _LATEST}, old={_GENAI: "true"},
        code=f"if `{_OPT_IN}` isn't set, set `{_GENAI}` to `true`, which writes content to log records",
    ),
    Capture("OpenTelemetry (`opentelemetry-instrumentation-botocore`)", r"opentelemetry\.instrumentation\.botocore", r"opentelemetry-instrumentation-botocore", {_GENAI: "true"}, code="content is in log records"),
    Capture(
        "OpenLLMetry (Traceloop)", r"opentelemetry\.instrumentation\.|traceloop", r"opentelemetry-instrumentation-.+|traceloop-sdk", by_default=True,
        off={"TRACELOOP_TRACE_CONTENT": "false"},
    ),
    Capture(
        "pydantic-ai", r"pydantic-ai", r"pydantic-ai(-slim)?", by_default=True,
        code="`InstrumentationSettings(include_content=False)` turns it off",
    ),
    Capture("Logfire", r"logfire", r"logfire", by_default=True, code="Logfire's scrubbing replaces values that resemble secrets"),
    Capture("Langfuse", r"langfuse", r"langfuse", by_default=True, off={"LANGFUSE_TRACING_ENABLED": "false"}, code="`LANGFUSE_TRACING_ENABLED=false` turns off all spans"),
    Capture(
        "LangSmith", r"langsmith", r"langsmith", {"LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_TRACING": "true"},
        off={"LANGSMITH_HIDE_INPUTS": "true", "LANGSMITH_HIDE_OUTPUTS": "true"},
        code="before shutdown, call `wait_for_all_tracers()`, because LangSmith exports spans late",
    ),
    Capture(
        "Google ADK", r"gcp\.vertex\.agent", r"google-adk", {_GENAI: "SPAN_AND_EVENT"},
        code="ADK before 2.13 captures content by default, and only these versions read `ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS`", off={"ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "false"},
    ),
    Capture("Strands Agents", r"strands", r"strands-agents", by_default=True, code=f"`{_OPT_IN}={_LATEST}` writes the newer attributes"),
    Capture(
        "Semantic Kernel", r"semantic_kernel|Microsoft\.SemanticKernel", r"semantic-kernel",
        {"SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE": "true"},
    ),
    Capture(
        "Microsoft Agent Framework", r"agent_framework|Experimental\.Microsoft\.Agents", r"agent-framework(-.+)?",
        {"ENABLE_INSTRUMENTATION": "true", "ENABLE_SENSITIVE_DATA": "true"},
    ),
    Capture("Azure AI Projects 2.x", r"azure\.ai\.projects", r"azure-ai-projects", {"AZURE_EXPERIMENTAL_ENABLE_GENAI_TRACING": "true", _GENAI: "true"}),
    Capture("Azure AI (inference, agents)", r"azure\.(ai|core)\b", r"azure-ai-(inference|agents)", {"AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED": "true"}),
    Capture("Haystack", r"haystack", r"haystack-ai", {"HAYSTACK_CONTENT_TRACING_ENABLED": "true"}),
    Capture("OpenLIT", r"openlit", r"openlit", by_default=True, code="`openlit.init(capture_message_content=False)` turns it off"),
    Capture("MLflow", r"mlflow", r"mlflow(-skinny|-tracing)?", by_default=True),
    Capture("LiteLLM", r"litellm", r"litellm", by_default=True, code="`litellm.turn_off_message_logging = True` turns it off"),
    Capture(
        "Vercel AI SDK", r"(gen_)?ai$", "", code="`registerTelemetry(new OpenTelemetry())` from `@ai-sdk/otel` (versions 4 to 6: `experimental_telemetry: { isEnabled: true }`). Don't set `recordInputs` or `recordOutputs` to `false`",
    ),
    Capture(
        "Spring AI", r"org\.springframework\.(boot|ai)|io\.micrometer", "",
        code="use an `ObservationFilter` (docs/get-started/integrations/spring-ai.md), or set `spring.ai.chat.observations.log-prompt: true` and `spring.ai.chat.observations.log-completion: true`, and export log records. For tool calls, also set `spring.ai.tools.observations.include-content: true`",
    ),
    Capture("Claude Code", r"com\.anthropic\.claude_code", "", {"OTEL_LOG_USER_PROMPTS": "1", "OTEL_LOG_TOOL_DETAILS": "1"}),
)  # fmt: skip
"""Settings by instrumentation. The first matching entry applies, so OpenLLMetry's general pattern follows specific patterns."""


def of_scope(scope: str) -> Capture | None:
    return next((one for one in CAPTURES if re.match(one.scopes, scope)), None)


def of_package(name: str) -> Capture | None:
    plain = re.sub(r"[-_.]+", "-", name).lower()
    return next((one for one in CAPTURES if one.packages and re.fullmatch(one.packages, plain)), None)


def advice_without_turn(scopes: Sequence[str]) -> str:
    """Return a hint for an application that records neither agent spans nor model calls."""
    known = ", ".join(sorted(filter(is_genai_scope, scopes)))
    if known:
        return f"trace model calls too, because the spans of {known} contain no model calls"
    return "install and enable an instrumentation for your framework: docs/get-started/integrations"


def advice_on(missing: str, scopes: Sequence[str]) -> str:
    """Return advice on how to record the missing data: turns, callers of tools, or content."""
    if missing == CALLER:
        return "pass the caller's OpenTelemetry context to the thread or stream that runs tools"
    if missing == TURN:
        return "trace model calls too, or add attributes to your own spans: docs/get-started/integrations/own-spans.md"
    known = {one.name: one.advice for one in map(of_scope, scopes) if one is not None and one.advice}
    if not known:
        return "to capture content, see docs/guides/capture-content.md"
    return f"to capture content, check the settings of {'; '.join(f'{name}: {advice}' for name, advice in known.items())}"
