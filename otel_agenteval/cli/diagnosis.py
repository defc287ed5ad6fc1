"""Checks for ``doctor`` and ``check-config``, which examine the configuration and installed packages to explain missing scores."""

from __future__ import annotations

import platform
import re
import socket
import sys
import urllib.parse
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..config.loader import load_config
from ..config.root import Config
from ..config.section import Option, Section, kind_of, options_of
from ..config.types import FILE
from ..core.extras import extra_installed, installed
from ..core.packages import Instrumentation, instrumentations
from ..core.packages import installed as installed_packages
from ..core.proxies import proxy_for
from ..core.version import __version__
from ..dialects.capture import Capture, of_package
from ..engine.selected import Selected
from ..judging.models import embedder_from, judge_from
from ..judging.models.probe import probe
from ..judging.session import advice_on
from ..metrics.bound_metric import asked_in
from ..outlets.store.postgres import is_address
from ..outlets.turn_text import number_of

GOOD, NOTE, BAD = "good", "note", "bad"


class DoctorFinding(NamedTuple):
    level: str
    text: str
    advice: str = ""


Findings = Iterator[DoctorFinding]
good, note, bad = (partial(DoctorFinding, level) for level in (GOOD, NOTE, BAD))


# --- configuration

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_IN_DOLLARS = ("usd_per_hour", "usd_per_day")


def option_findings(config: Config) -> Findings:
    """Yield problems of valid options: invalid references to environment variables, missing folders, and missing packages."""
    for path, text in _texts(config.to_dict(), ""):
        if (found := _VARIABLE.search(text)) is not None:
            yield bad(f"{path}: {found[0]} isn't a valid reference to a variable", f"write ${{env:{found[1]}}}")
    for path, value, option in _options(config, ""):
        kind = kind_of(option.metadata, option.annotation)
        if kind is FILE and isinstance(value, str) and not is_address(value) and not Path(value).absolute().parent.is_dir():
            yield bad(f"{path}: folder not found: {Path(value).absolute().parent}", "create it before you start")
    store = config.outlets.store
    if store is not None and is_address(store.path) and not installed("psycopg"):
        yield bad("outlets.store: PostgreSQL needs an extra", "pip install 'otel-agenteval[postgres]'")
    if config.judge.queue.backend == "redis" and not installed("redis"):
        yield bad("judge.queue.backend: Redis needs an extra", "pip install 'otel-agenteval[redis]'")


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{number}]")


def _options(section: Section, path: str) -> Iterator[tuple[str, Any, Option]]:
    for name, option in options_of(type(section)).items():
        value, place = getattr(section, name), f"{path}{name}"
        if isinstance(value, Section):
            yield from _options(value, f"{place}.")
        else:
            yield place, value, option


def configuration_findings(config: Config, metrics: Selected) -> Findings:
    whole = f", {number_of(len(metrics.of_conversations), 'metric')} on each conversation" if metrics.of_conversations else ""
    yield good(f"{len(metrics.computed)} computed and {number_of(len(metrics.judged), 'judged metric')} on each turn{whole}")
    every = [*metrics.of_turns, *metrics.of_conversations]
    for kind, section, made in (("llm", "judge", judge_from), ("embed", "embedder", embedder_from)):
        names = dict.fromkeys(metric.name for metric in asked_in(every) if metric.metric.kind == kind)
        model = made(config) if names else None
        if names and model is None:
            text = f"no {section} is configured, so these metrics are skipped: {', '.join(names)}"
            yield bad(text, f"set {section}.base_url and {section}.model")
        elif model is not None:
            if not model.priced and any(getattr(config.judge.budget, name) is not None for name in _IN_DOLLARS):
                text = f"{section}.model: the price of {model.model} is unknown, so a budget in USD blocks all calls"
                yield bad(text, advice_on("unpriced", section))
            model.close()
    for metric in (*metrics.of_turns, *metrics.of_conversations):
        if metric.missing is not None:
            what = f"{metric.name}: the required parameter {metric.missing!r} is missing, so each score is an error"
            yield bad(what, f"set metrics: [{{{metric.metric.name}: {{{metric.missing}: …}}}}]")
        extra = metric.metric.extra
        if extra is not None and not extra_installed(extra):
            yield bad(f"{metric.name}: its packages aren't installed", f"pip install 'otel-agenteval[{extra}]'")


def outlet_findings(config: Config) -> Findings:
    """Check that the servers of the OTLP and webhook outlets accept TCP connections, without sending data."""
    otlp, webhook = config.outlets.otlp, config.outlets.webhook
    urls = {"outlets.otlp.endpoint": otlp and otlp.endpoint, "outlets.webhook.url": webhook and webhook.url}
    for name, url in urls.items():
        if not url:
            continue
        server = urllib.parse.urlsplit(proxy_for(url) or url)
        host, port = server.hostname or "", server.port or (443 if server.scheme == "https" else 80)
        try:
            socket.create_connection((host, port), _CONNECT_SECONDS).close()
        except OSError as error:
            yield bad(
                f"{name}: can't connect to {host}:{port}: {error.strerror or error}", "start the server, or correct the address"
            )
        else:
            yield good(f"{name}: {host}:{port} accepts connections")


_CONNECT_SECONDS = 5.0
_PATIENCE = 30.0  # seconds for each judge call


def judge_findings(config: Config) -> Findings:
    """Check with two judge calls that the judge replies, and that it scores a good case better than a bad case."""
    judge = judge_from(load_config(config, overrides={"judge": {"deadline": f"{min(config.judge.deadline, _PATIENCE)}s"}}))
    if judge is None:
        return
    try:
        found = probe(judge, [])
    finally:
        judge.close()
    model = found.model or "judge"
    if found.fault is None:
        text = f"{model} replies, and scores a good case better than a bad one"
        yield good(f"{text}; to measure its quality, run `otel-agenteval judge bench`")
    else:
        yield bad(f"the judge {model} can't be used: {found.fault}", advice_on(found.fault))


# --- packages and environment variables

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
"""Suggested instrumentation package for each agent framework or model SDK that doesn't create all GenAI spans itself."""
_WRAPPERS = (
    "langchain-core", "llama-index-core", "openai-agents", "dspy", "smolagents", "agno", "autogen-agentchat", "pydantic-ai-slim", "google-adk",
    "strands-agents", "semantic-kernel", "agent-framework", "haystack-ai", "litellm",
)  # fmt: skip
"""Frameworks whose instrumentation also records calls to model SDKs. (The instrumentation for crewai, for example, doesn't.)"""
_SDKS = frozenset(("openai", "anthropic", "google-genai", "mistralai", "groq", "boto3", "ollama", "cohere"))
_GENAI_NAME = re.compile(r"^openinference-|genai")
_GENAI_LIBRARIES = frozenset((
    *LIBRARIES, "langchain", "langchain-community", "google-generativeai", "google-cloud-aiplatform", "botocore", "haystack-ai", "llama-index",
    "replicate", "together", "transformers", "ibm-watsonx-ai", "writer-sdk", "alephalpha", "aleph-alpha-client", "vertexai", "mcp", "crewai-tools",
))  # fmt: skip
"""Packages whose instrumentations trace models or agents. Other instrumentations trace web servers or databases."""
_OWN_TRACING = (
    "pydantic-ai-slim", "pydantic-ai", "google-adk", "strands-agents", "semantic-kernel", "agent-framework", "haystack-ai", "litellm", "langfuse",
    "logfire", "openlit", "mlflow",
)  # fmt: skip
_LIMITS = ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT")


def python_findings(env: Mapping[str, str]) -> Findings:
    packages = installed_packages()
    sdk = packages.get("opentelemetry-sdk", "none")
    yield good(f"Python {platform.python_version()}, otel-agenteval {__version__}, opentelemetry-sdk {sdk} ({sys.executable})")
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield bad("OTEL_SDK_DISABLED=true: the SDK creates no spans", "unset OTEL_SDK_DISABLED")
    sampler = env.get("OTEL_TRACES_SAMPLER", "")
    if "always_off" in sampler:
        yield bad(
            f"OTEL_TRACES_SAMPLER={sampler}: traces that start in this program aren't recorded",
            "unset OTEL_TRACES_SAMPLER, or wrap your sampler: oa.record_all(sampler)",
        )
    elif "ratio" in sampler:
        ratio = env.get("OTEL_TRACES_SAMPLER_ARG", "1.0")
        yield note(
            f"OTEL_TRACES_SAMPLER={sampler} ({ratio}): turns of unsampled traces are missing",
            "oa.record_all(sampler) records all traces, but exports only sampled traces",
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
    found = sorted(instrumentations())
    packages = installed_packages()
    captures = {one: capture for one in filter(_is_of_models, found) if (capture := of_package(one.name)) is not None}
    for one in filter(lambda one: one.is_broken, captures):
        have = ", ".join(f"{target} {packages.get(target, 'not installed')}" for target in one.targets)
        what = f"{one.name} {one.version} creates no spans: it requires {' or '.join(one.unmet)} ({have})"
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
                f"{names} both trace {target}: each call creates two spans",
                "scores count each call once; remove one instrumentation to reduce overhead",
            )
    yield from _own_tracing_findings(env)
    yield from _missing_instrumentations(packages, of_target, found)


def _is_of_models(one: Instrumentation) -> bool:
    return bool(_GENAI_NAME.search(one.name)) or not _GENAI_LIBRARIES.isdisjoint(one.targets)


def not_enabled(scopes: Collection[str]) -> str:
    """Return advice on enabling installed instrumentations that haven't created spans, or an empty string."""
    silent = [one for one in sorted(instrumentations()) if _is_of_models(one) and not one.is_broken and one.module not in scopes]
    calls = dict.fromkeys(f"{one.enabled_by}().instrument(), from {one.module}" for one in silent)
    return f"if your program doesn't enable its instrumentation, call {'; '.join(calls)}" if calls else ""


def _missing_instrumentations(
    packages: Mapping[str, str], of_target: Collection[str], found: Sequence[Instrumentation]
) -> Findings:
    wrappers = sorted(packages.keys() & _WRAPPERS, key=lambda one: (one not in of_target and one not in _OWN_TRACING, one))
    for name, instrumentation in LIBRARIES.items():
        if name in packages and name not in of_target and not _is_traced_otherwise(name, found):
            what = f"{name} {packages[name]} is installed without an instrumentation"
            is_covered = name in _SDKS and bool(wrappers)
            what += f"; the spans of {wrappers[0]} cover the calls that it makes" if is_covered else ""
            use = "only if your agent also calls it directly" if is_covered else "if your agent uses it"
            yield note(what, f"{use}: pip install {instrumentation}")


def _own_tracing_findings(env: Mapping[str, str]) -> Findings:
    packages = installed_packages()
    for name in _OWN_TRACING:
        version, capture = packages.get(name), of_package(name)
        is_repeated = name == "pydantic-ai-slim" and "pydantic-ai" in packages
        if version is not None and capture is not None and not is_repeated:
            yield _content(f"{name} {version}", capture, env)


def _is_traced_otherwise(name: str, found: Sequence[Instrumentation]) -> bool:
    """Return True if another package traces ``name``. For example, langchain-core's instrumentation traces langgraph."""
    with_it = {"langgraph": "langchain-core", "boto3": "botocore"}.get(name)
    if with_it is not None and (name == "boto3" or any(with_it in one.targets for one in found)):
        return True
    return name == "openai" and any(one in installed_packages() for one in _OWN_TRACING)


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
