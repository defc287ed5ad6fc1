"""Section ``judge``: the models behind ``llm_`` metrics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .budget import BudgetOptions
from .job_queue import JobQueueOptions
from .otlp import Headers
from .section import NO_ENTRIES, Section
from .selector import Patterns
from .service import ServiceOptions
from .types import Before, Count, Duration, FilePath, Kind, Secret, Share, Size, Text, Url


def _panelists(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and len(value) != 1 and all(isinstance(item, str) and item.strip() for item in value):
        return tuple(item.strip() for item in value)
    raise ValueError("must be a list of two or more models, or an empty list")


class CacheOptions(Section):
    """Cached replies: the same judge call of the same metric version is sent to the same model only once."""

    path: FilePath | None = None
    """SQLite file of the replies, in an existing folder. Processes of one machine can share it. Null switches the cache off."""
    ttl: Duration = 7 * 86400.0
    """Seconds for which a reply is kept."""
    max_bytes: Size = 256 * 2**20
    """Maximum bytes of all replies. Beyond it, the oldest are deleted."""
    audit: Share = 0.01
    """Share of judged turns whose judge calls are sent in spite of a cached reply. The new replies replace the cached ones."""


class ServerOptions(Section):
    """An additional server of judges. Its models are named ``NAME/MODEL``, with the server's name in ``judge.servers``."""

    base_url: Url
    """Address of the server, including the version."""
    api_key: Secret | None = None
    """API key of the server, as ``${env:NAME}``."""
    headers: Headers = NO_ENTRIES
    """Additional headers of each request to this server."""
    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """API of the server. Null derives it from the server's name (``anthropic``), with ``openai`` as default."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """Endpoint, as in ``judge.endpoint``."""
    requests_per_minute: Count | None = None
    """Maximum requests per minute. Null means no limit."""
    tokens_per_minute: Count | None = None
    """Maximum input and output tokens per minute. Null means no limit."""


class JudgeChoice(Section):
    """A different model for some metrics or agents: ``{metric: llm_faithfulness, model: anthropic/claude-x}``."""

    metric: Patterns = ()
    """Names of metrics, with ``*`` for any characters (default: all)."""
    agent: Patterns = ()
    """Names of agents, with ``*`` for any characters (default: all)."""
    model: Text
    """Name of the model at the judge's server, or ``SERVER/MODEL`` for one of ``judge.servers``."""


class SecondOptions(Section):
    """A second judge for scores near their threshold. If the two judges disagree, the second judge's score counts."""

    model: Text | None = None
    """Name of the model, as in ``judge.choose``. Null means no second judge."""
    margin: Share = 0.1
    """Distance from the threshold within which a score needs the second judge, 0 to 1."""
    tolerance: Share = 0.2
    """Largest difference between two agreeing scores that both pass or both fail, 0 to 1."""


class PanelOptions(Section):
    """Several judges that all judge each turn, instead of one."""

    models: Annotated[tuple[str, ...], Before(_panelists), Kind("list of two models or more")] = ()
    """Names of the models, as in ``judge.choose``. Use an odd number. Empty means no panel."""
    combine: Literal["median", "majority"] = "median"
    """Score of the panel: the median, or the median of the judges that agree with the majority on pass or fail."""


class JudgeOptions(ServiceOptions):
    """The model behind ``llm_`` metrics. Without one, they are skipped."""

    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """API of the server. Null derives it from the model's prefix (``anthropic/…``), with ``openai`` as default."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """``moderations`` sends ``llm_moderation`` to ``/moderations``, which only OpenAI and compatible servers have."""
    max_input_tokens: Count = 100_000
    """Approximate maximum tokens of a judge call. Beyond it, the longest texts lose their middle, and the score's detail has ``input_truncated``. Safety metrics read everything, in parts."""
    incomplete: Literal["skip", "judge"] = "skip"
    """Skip or judge incomplete turns (``complete: false``). An incomplete turn costs as much, and its score can mislead."""
    attempts: Count = 5
    """Maximum attempts to evaluate a metric on a turn while the judge or embedder fails. After that, the score is an error."""
    seed: Text | None = None
    """Seed of the sampling by trace id. Processes with the same seed choose the same turns."""
    budget: BudgetOptions = BudgetOptions()
    """Limits on the spending of judges and embedders."""
    queue: JobQueueOptions = JobQueueOptions()
    """The queue of judge jobs."""
    servers: Annotated[
        dict[str, ServerOptions],
        Kind("servers by their names, see [Use two judges](../guides/set-up-a-judge.md#use-two-judges-or-a-panel)"),
    ] = NO_ENTRIES
    """Additional servers by name: ``{anthropic: {base_url: https://api.anthropic.com/v1, api_key: "${env:ANTHROPIC_API_KEY}"}}``."""
    choose: Annotated[
        tuple[JudgeChoice, ...],
        Kind("list of choices, see [Use two judges](../guides/set-up-a-judge.md#use-two-judges-or-a-panel)"),
    ] = ()
    """Different models for some metrics or agents. The first match applies."""
    second: SecondOptions = SecondOptions()
    """A second judge for scores near their threshold."""
    panel: PanelOptions = PanelOptions()
    """Several judges instead of one."""
    cache: CacheOptions = CacheOptions()
    """Cached replies."""
