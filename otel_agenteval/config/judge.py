"""Sections ``judge`` and ``embedder``: models for ``llm_`` and ``embed_`` metrics, with their servers, budgets, and job queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from .metrics import Patterns
from .section import NO_ENTRIES, Section
from .types import (
    Before,
    Count,
    Duration,
    FilePath,
    Headers,
    Kind,
    Secret,
    Share,
    Size,
    Switch,
    Text,
    Url,
    finite_number,
    matching,
    texts,
    valid,
)

_dollars = valid("must be an amount of US dollars of at least 0, or null. Example: 2.5", finite_number)
Dollars = Annotated[float, Before(_dollars), Kind("US dollars")]


class SpendingOptions(Section):
    """Hourly and daily spending limits. Null means no limit."""

    usd_per_hour: Dollars | None = None
    """Maximum US dollars spent in any 60 minutes, per process if the queue is in memory. Models without a known price aren't called."""
    usd_per_day: Dollars | None = None
    """Maximum US dollars spent in any 24 hours, with the rules of ``usd_per_hour``."""
    calls_per_hour: Count | None = None
    """Maximum judge and embedder calls in any 60 minutes, per process if the queue is in memory."""
    calls_per_day: Count | None = None
    """Maximum judge and embedder calls in any 24 hours, per process if the queue is in memory."""


class BudgetOptions(SpendingOptions):
    """Spending limits for all judges and embedders together. At a limit, judge calls wait or, in commands, can fail. The queue's file or server stores the amounts spent."""

    soft: Share = 0.8
    """Share of a limit above which the judge is called only for gates, for turns that ``always_if`` selects, and to finish
    evaluations that have started."""
    metrics: Annotated[
        dict[str, SpendingOptions],
        Kind("mapping of metrics to limits, see [Set a daily budget](../guides/set-up-a-judge.md#set-a-daily-budget)"),
    ] = NO_ENTRIES
    """Additional limits for single metrics, for example ``{llm_faithfulness: {usd_per_day: 1}}``."""


def _prices(value: Any) -> Any:
    """Parse a mapping from model to prices: ``{qwen3: {input: 0.2, output: 0.6}}``."""
    if isinstance(value, Mapping) and all(
        isinstance(name, str)
        and isinstance(price, Mapping)
        and {"input", "output"} <= price.keys() <= {"input", "output", "cached_input"}
        and all(finite_number(amount) is not None for amount in price.values())
        for name, price in value.items()
    ):
        return {name: {key: float(amount) for key, amount in price.items()} for name, price in value.items()}
    raise ValueError(
        "must be a mapping of models to prices in USD per million tokens. Example: {qwen3: {input: 0.2, output: 0.6}}"
    )


class ServiceOptions(Section):
    """Model server. Used only if both ``base_url`` and ``model`` are set."""

    base_url: Url | None = None
    """Address of the model server, with the API version: ``http://127.0.0.1:11434/v1``. Null means no server."""
    model: Text | None = None
    """Name of the model on the server."""
    api_key: Secret | None = None
    """API key of the server. Write it as ``${env:NAME}``."""
    headers: Headers = NO_ENTRIES
    """Additional headers for each request, for example for a gateway: ``{x-team: search}``."""
    timeout: Duration = 30.0
    """Maximum seconds for one attempt at a call."""
    deadline: Duration = 120.0
    """Maximum seconds for one call, including retries and waiting."""
    max_concurrency: Count = 8
    """Maximum number of concurrent calls, per process or ``worker`` command."""
    requests_per_minute: Count | None = None
    """Maximum requests per minute, per process or ``worker`` command. Null means no limit."""
    tokens_per_minute: Count | None = None
    """Maximum input and output tokens per minute, per process or ``worker`` command. Null means no limit."""
    prices: Annotated[dict[str, dict[str, float]], Before(_prices), Kind("mapping of prices")] = NO_ENTRIES
    """Prices in USD per million tokens, instead of the provider's list prices: ``{qwen3: {input: 0.2, output: 0.6, cached_input: 0.1}}``. ``cached_input`` is optional."""


_PANEL = "must be a list of two or more models, or an empty list"
_models = texts(_PANEL, str.strip, alone=False, make=str.strip)
_panel = valid(_PANEL, lambda value: models if len(models := _models(value)) != 1 else None)


class CacheOptions(Section):
    """Cache of replies. A judge call that was already sent to the same model, for the same metric version, isn't repeated."""

    path: FilePath | None = None
    """SQLite file for replies, in an existing folder. Processes on one machine can share this file. Null turns the cache off."""
    ttl: Duration = 7 * 86400.0
    """Seconds to keep a reply."""
    max_bytes: Size = 256 * 2**20
    """Maximum bytes of all replies. Above the limit, the oldest replies are deleted."""
    audit: Share = 0.01
    """Share of judge jobs that bypass the cache. The new replies replace the cached replies."""


class ServerOptions(Section):
    """An additional server for judges. Its models are named ``NAME/MODEL``. ``NAME`` is the server's key in ``judge.servers``."""

    base_url: Url
    """Address of the server, with the API version."""
    api_key: Secret | None = None
    """API key of the server. Write it as ``${env:NAME}``."""
    headers: Headers = NO_ENTRIES
    """Additional headers for each request to this server."""
    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """API of the server. If null, a server with an API's name (``anthropic``) uses this API, and other servers use ``openai``."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """Endpoint to call, with the same values as ``judge.endpoint``."""
    requests_per_minute: Count | None = None
    """Maximum requests per minute, per process or ``worker`` command. Null means no limit."""
    tokens_per_minute: Count | None = None
    """Maximum input and output tokens per minute, per process or ``worker`` command. Null means no limit."""


class JudgeChoice(Section):
    """Choice of a different model for some metrics or agents: ``{metric: llm_faithfulness, model: anthropic/claude-x}``."""

    metric: Patterns = ()
    """Names of metrics, with ``*`` for any characters (default: all)."""
    agent: Patterns = ()
    """Names of agents, with ``*`` for any characters (default: all)."""
    model: Text
    """Name of the model on the judge's server, or ``SERVER/MODEL`` for a model on one of ``judge.servers``."""


class SecondOptions(Section):
    """A second judge that checks scores near their threshold. If the two judges disagree, the second judge's score counts."""

    model: Text | None = None
    """Name of the second judge's model, as in ``judge.choose``. Null means no second judge."""
    margin: Share = 0.1
    """Maximum distance between a score and its threshold for which the second judge is called. For scales other than 0 to 1, the
    value is a share of the threshold."""
    tolerance: Share = 0.2
    """Maximum difference between the judges' scores. Above it, the judges disagree even if their verdicts are the same. For scales
    other than 0 to 1, the value is a share of the threshold."""


class PanelOptions(Section):
    """Panel of judges instead of one judge. All judges in the panel evaluate each turn."""

    models: Annotated[tuple[str, ...], Before(_panel), Kind("list of at least two models")] = ()
    """Names of the judges' models, as in ``judge.choose``. Use an odd number. Empty means no panel."""
    combine: Literal["median", "majority"] = "median"
    """Score of the panel: the median of all scores, or the median of only those scores that have the majority's verdict."""


_queue_url = matching(
    "must be the URL of a Redis or Valkey server. Examples: redis://host:6379/0, rediss://host:6379/0, redis+cluster://host:6379",
    r"(?:(?:redis|valkey)s?(?:\+(?:sentinel|cluster))?|unix)://.+",
)


class JobQueueOptions(Section):
    """The queue of judge jobs. Each job scores one judged metric on one turn."""

    backend: Literal["memory", "sqlite", "redis"] = "memory"
    """Storage of waiting jobs: ``memory`` (waiting jobs are dropped and counted when this process ends), ``sqlite`` (a file), or
    ``redis`` (a server that any number of processes can share). The file or server contains the turns' redacted content. A
    sidecar's default is ``sqlite``."""
    path: FilePath | None = None
    """File for the backend ``sqlite``, in an existing folder. Processes on one machine can share this file."""
    url: Annotated[str, Before(_queue_url), Kind("URL", secret=True)] | None = None
    """Server for the backend ``redis``: ``redis://``, ``rediss://`` (TLS), ``unix://``, ``redis+sentinel://…/master``, or
    ``redis+cluster://``. ``valkey`` also works in place of ``redis``."""
    name: Text = "agenteval"
    """Prefix of all keys in ``redis``, which start with ``{NAME:SHARD}:``. Processes with the same prefix share their jobs."""
    shards: Count = 1
    """Number of shards in ``redis``, spread over the nodes of a cluster. All processes must use the same number."""
    work: Switch = True
    """Run judge jobs in this process. With ``false``, only other processes (``otel-agenteval worker --judge``) run judge jobs."""
    max_bytes: Size = 64 * 2**20
    """Maximum bytes of waiting jobs. Above the limit, jobs are dropped and counted. Jobs of gates, and of turns that ``always_if`` selects, are dropped last."""
    lease: Duration = 600.0
    """Seconds after which another process takes over a dead process's jobs. Running jobs extend their lease."""
    max_age: Duration = 86_400.0
    """Seconds after which a waiting job is dropped and counted."""

    def _check(self) -> None:
        if self.backend == "sqlite" and self.path is None:
            raise ValueError("path is missing. Write {backend: sqlite, path: FILE}")
        if (self.backend == "sqlite") != (self.path is not None) or (self.backend == "redis") != (self.url is not None):
            raise ValueError("must be {backend: memory}, {backend: sqlite, path: FILE}, or {backend: redis, url: redis://…}")
        if not self.work and self.backend == "memory":
            raise ValueError("work: false requires backend: sqlite or redis, which other processes can share")


class JudgeOptions(ServiceOptions):
    """The judge model, which scores ``llm_`` metrics. Without a model, these metrics are skipped."""

    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """API of the server. If null, a prefix of ``model`` (``anthropic/…``) selects the API. The default is ``openai``."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """``moderations`` sends ``llm_moderation`` calls to ``/moderations``, an endpoint of OpenAI and compatible servers."""
    max_input_tokens: Count = 100_000
    """Approximate maximum number of tokens in a judge call. In longer calls, the middle of the longest texts is removed, and the score's
    ``detail`` contains ``input_truncated``. Safety metrics read the whole text in several calls."""
    incomplete: Literal["skip", "judge"] = "skip"
    """Skip or judge incomplete live turns (``complete: false``). Scores of incomplete turns can be misleading."""
    attempts: Count = 5
    """Maximum number of attempts to evaluate a metric on a live turn if the judge or embedder fails. After that, the score is
    an error. Waits for rate limits or for a server that is down don't count."""
    seed: Text | None = None
    """Seed for sampling by trace ID. Processes with the same seed, or without a seed, choose the same turns."""
    budget: BudgetOptions = BudgetOptions()
    """Spending limits for judges and embedders."""
    queue: JobQueueOptions = JobQueueOptions()
    """The queue of judge jobs."""
    servers: Annotated[
        dict[str, ServerOptions],
        Kind("mapping of names to servers, see [Use two judges](../guides/set-up-a-judge.md#use-two-judges-or-a-panel)"),
    ] = NO_ENTRIES
    """Additional servers by name: ``{anthropic: {base_url: https://api.anthropic.com/v1, api_key: "${env:ANTHROPIC_API_KEY}"}}``."""
    choose: Annotated[
        tuple[JudgeChoice, ...],
        Kind("list of choices, see [Use two judges](../guides/set-up-a-judge.md#use-two-judges-or-a-panel)"),
    ] = ()
    """Different models for some metrics or agents. The first matching entry applies."""
    second: SecondOptions = SecondOptions()
    """A second judge for scores near their threshold."""
    panel: PanelOptions = PanelOptions()
    """Several judges instead of one judge."""
    cache: CacheOptions = CacheOptions()
    """Cache of replies."""


class EmbedderOptions(ServiceOptions):
    """Embedding model for ``embed_`` metrics, on an OpenAI-compatible server or in this process. Without a model, these metrics are skipped."""

    model: Text | None = None
    """Name of the model on the server. If ``base_url`` is unset, a model in this process: ``local/wordllama`` (extra ``[embed]``) or ``local/clip`` (extra ``[clip]``)."""
    path: FilePath | None = None
    """Folder with the ONNX files of a CLIP or SigLIP model, for the model ``local/clip``. See
    [media](../guides/evaluate-media.md#use-a-local-clip-model)."""
    images: Literal["text", "object", "messages"] = "text"
    """Format of images in requests: ``text`` (``data:`` URIs), ``object`` (``{"image": ...}``, for example for Jina), or ``messages`` (one image per request, for example for vLLM)."""
