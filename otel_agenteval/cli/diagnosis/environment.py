"""Checks of the installed packages and of environment variables."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping, Sequence

from ...core.packages import Instrumentation, installed, instrumentations
from ...core.version import __version__
from ...dialects.capture import Capture, of_package
from . import DoctorFinding, Findings, bad, good, note

LIBRARIES = {
    "openai": "openinference-instrumentation-openai", "anthropic": "openinference-instrumentation-anthropic",
    "langchain-core": "openinference-instrumentation-langchain", "langgraph": "openinference-instrumentation-langchain",
    "llama-index-core": "openinference-instrumentation-llama-index", "crewai": "openinference-instrumentation-crewai",
    "openai-agents": "openinference-instrumentation-openai-agents", "dspy": "openinference-instrumentation-dspy",
    "google-genai": "openinference-instrumentation-google-genai", "mistralai": "openinference-instrumentation-mistralai",
    "smolagents": "openinference-instrumentation-smolagents", "agno": "openinference-instrumentation-agno",
    "groq": "openinference-instrumentation-groq", "autogen-agentchat": "openinference-instrumentation-autogen-agentchat",
    "boto3": "openinference-instrumentation-bedrock", "ollama": "opentelemetry-instrumentation-ollama", "cohere": "opentelemetry-instrumentation-cohere",
}  # fmt: skip
"""Agent frameworks and model SDKs without tracing of their own, each with its instrumentation."""
_LIMITS = ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT")


def python_findings(env: Mapping[str, str]) -> Findings:
    """Check the interpreter, the SDK, and variables that switch tracing off."""
    packages = installed()
    sdk = packages.get("opentelemetry-sdk", "none")
    yield good(f"Python {platform.python_version()}, otel-agenteval {__version__}, opentelemetry-sdk {sdk} ({sys.executable})")
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield bad("OTEL_SDK_DISABLED=true: the SDK makes no spans", "unset OTEL_SDK_DISABLED")
    sampler = env.get("OTEL_TRACES_SAMPLER", "")
    if "always_off" in sampler:
        yield bad(
            f"OTEL_TRACES_SAMPLER={sampler}: no span is recorded",
            "unset OTEL_TRACES_SAMPLER, or wrap your sampler: oa.record_all(sampler)",
        )
    elif "ratio" in sampler:
        ratio = env.get("OTEL_TRACES_SAMPLER_ARG", "1.0")
        yield note(
            f"OTEL_TRACES_SAMPLER={sampler} ({ratio}): turns of unsampled traces are missing",
            "oa.record_all(sampler) records all traces and exports the sampled ones",
        )
    for name in _LIMITS:
        if env.get(name, "").strip():
            yield note(f"{name}={env[name]}: longer messages are truncated", f"unset {name}")
    wanted = env.get("OTEL_AGENTEVAL_ENABLED", "")
    if wanted and "opentelemetry-distro" not in packages and "opentelemetry-instrumentation" not in packages:
        yield bad(
            f"OTEL_AGENTEVAL_ENABLED={wanted} has no effect: opentelemetry-instrument isn't installed",
            "pip install opentelemetry-distro",
        )


def instrumentation_findings(env: Mapping[str, str]) -> Findings:
    """Check that each instrumentation works and captures content."""
    found = sorted(instrumentations())
    packages = installed()
    of_models = [one for one in found if _GENAI_NAME.search(one.name) or not _GENAI_LIBRARIES.isdisjoint(one.targets)]
    captures = {one: capture for one in of_models if (capture := of_package(one.name)) is not None}
    for one in filter(lambda one: one.is_broken, captures):
        have = ", ".join(f"{target} {packages.get(target, 'not installed')}" for target in one.targets)
        what = f"{one.name} {one.version} makes no spans: it requires {' or '.join(one.unmet)} ({have})"
        yield bad(what, "install compatible versions")
    usable = [one for one in captures if not one.unmet or len(one.unmet) < len(one.targets)]
    of_target: dict[str, list[Instrumentation]] = {}
    for one in usable:
        for target in packages.keys() & set(one.targets):
            of_target.setdefault(target, []).append(one)
        yield _content(f"{one.name} {one.version}", captures[one], env)
    for target, several in of_target.items():
        if len(several) > 1:
            names = " and ".join(one.name for one in several)
            yield note(
                f"{names} both trace {target}: each call makes two spans",
                "scores count each call once; remove one instrumentation to reduce overhead",
            )
    yield from _own_tracing_findings(env)
    for name, instrumentation in LIBRARIES.items():
        if name in packages and name not in of_target and not _is_traced_otherwise(name, found):
            what = f"{name} {packages[name]} is installed without an instrumentation"
            yield note(what, f"if your agent uses it: pip install {instrumentation}")


_GENAI_NAME = re.compile(r"^openinference-|genai")
_GENAI_LIBRARIES = frozenset((
    *LIBRARIES, "langchain", "langchain-community", "google-generativeai", "google-cloud-aiplatform", "botocore", "haystack-ai", "llama-index",
    "replicate", "together", "transformers", "ibm-watsonx-ai", "writer-sdk", "alephalpha", "aleph-alpha-client", "vertexai", "mcp", "crewai-tools",
))  # fmt: skip
"""Libraries whose instrumentations trace models or agents, not a web server or a database."""


def _own_tracing_findings(env: Mapping[str, str]) -> Findings:
    packages = installed()
    for name in _OWN_TRACING:
        version, capture = packages.get(name), of_package(name)
        is_repeated = name == "pydantic-ai-slim" and "pydantic-ai" in packages
        if version is not None and capture is not None and not is_repeated:
            yield _content(f"{name} {version}", capture, env)


def _is_traced_otherwise(name: str, found: Sequence[Instrumentation]) -> bool:
    """Return True if another package traces the library, as langchain-core's instrumentation traces langgraph."""
    with_it = {"langgraph": "langchain-core", "boto3": "botocore"}.get(name)
    if with_it is not None and (name == "boto3" or any(with_it in one.targets for one in found)):
        return True
    return name == "openai" and any(one in installed() for one in _OWN_TRACING)


_OWN_TRACING = (
    "pydantic-ai-slim", "pydantic-ai", "google-adk", "strands-agents", "semantic-kernel", "agent-framework", "haystack-ai", "litellm", "langfuse",
    "logfire", "openlit", "mlflow",
)  # fmt: skip
"""Frameworks and SDKs that make spans without an instrumentation."""


def _content(what: str, capture: Capture, env: Mapping[str, str]) -> DoctorFinding:
    on = capture.is_on(env)
    if on is None:
        return note(f"{what}: your program decides whether content is captured", capture.advice)
    if on:
        return good(f"{what} captures content")
    off = [f"{name}={env[name]}" for name in capture.off if env.get(name)]
    wanted = [f"{name}={value}" for name, value in capture.variables.items()]
    advice = f"unset {', '.join(off)}" if off else f"set {', '.join(wanted)}"
    return bad(f"{what} doesn't capture content, so most metrics are skipped", advice)
