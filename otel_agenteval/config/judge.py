"""Section ``judge``: the models that ``llm_`` metrics ask."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .budget import BudgetOptions
from .job_queue import JobQueueOptions
from .section import NO_ENTRIES, Section
from .selector import Patterns
from .service import ServiceOptions
from .types import Before, Count, Duration, FilePath, Kind, Share, Size, Text, Url


def _panelists(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and len(value) != 1 and all(isinstance(item, str) and item.strip() for item in value):
        return tuple(item.strip() for item in value)
    raise ValueError("it must be a list of two models or more, or an empty one")


class CacheOptions(Section):
    """Cached verdicts: the same question by the same version of a metric is sent to the same model only once."""

    path: FilePath | None = None
    """SQLite file of the replies; its folder must exist. Processes of one machine may share it. Null switches the cache off."""
    ttl: Duration = 7 * 86400.0
    """Seconds that a reply is kept."""
    max_bytes: Size = 256 * 2**20
    """Maximum bytes of all replies; beyond that the oldest are deleted."""
    audit: Share = 0.01
    """Share of judged turns whose questions are sent although the replies are cached; the new replies replace the cached ones."""


class ServerOptions(Section):
    """Another server of judges. It serves the models ``NAME/MODEL``, where ``NAME`` is the server's name in ``judge.servers``."""

    base_url: Url
    """Address of the server, up to and including the version."""
    api_key: Text | None = None
    """Key of the server, as ``${env:NAME}``."""
    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """Wire format; null means the format that the server is named after (``anthropic``), or else ``openai``."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """As ``judge.endpoint``."""
    requests_per_minute: Count | None = None
    """Maximum requests per minute; null means no limit."""
    tokens_per_minute: Count | None = None
    """Maximum input and output tokens per minute; null means no limit."""


class JudgeChoice(Section):
    """Another model for some metrics, or for the turns of some agents: ``{metric: llm_faithfulness, model: anthropic/claude-x}``."""

    metric: Patterns = ()
    """Names of metrics, with ``*`` for any characters; all by default."""
    agent: Patterns = ()
    """Names of agents that answered; all by default."""
    model: Text
    """The model's name at the judge's server, or ``SERVER/MODEL`` for one of ``judge.servers``."""


class SecondOptions(Section):
    """A second judge, used where the first one's score is near its threshold. Where the two disagree, the second one's score counts."""

    model: Text | None = None
    """Its name, as in ``judge.choose``; null means none."""
    margin: Share = 0.1
    """How close to its threshold a score is in doubt, 0 to 1."""
    tolerance: Share = 0.2
    """How far two scores that both pass, or both fail, may be apart and still agree, 0 to 1."""


class PanelOptions(Section):
    """Several judges that all judge each turn, in place of one."""

    models: Annotated[tuple[str, ...], Before(_panelists), Kind("list of two models or more")] = ()
    """Their names, as in ``judge.choose``; three or another odd number is best. Empty means that there is no panel."""
    combine: Literal["median", "majority"] = "median"
    """Which score counts: the median, or the median among the majority that passes or fails the turn."""


class JudgeOptions(ServiceOptions):
    """The model that ``llm_`` metrics ask; without one they are skipped."""

    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """Wire format; null takes it from the model's prefix (``anthropic/…``), or else ``openai``."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """``moderations`` sends the questions of ``llm_moderation`` to ``/moderations`` with this model; only OpenAI and compatible servers have it."""
    max_input_tokens: Count = 100_000
    """About how many tokens a question may have. Beyond that the longest texts of a turn are cut in the middle, and the score says so; safety metrics read everything, in parts."""
    incomplete: Literal["skip", "judge"] = "skip"
    """Whether turns are judged that closed before everything below their root had ended (``complete: false``): half a turn costs as much, and misleads."""
    attempts: Count = 5
    """How often a metric is tried on a turn while the judge or embedder fails; after that its score is an error."""
    seed: Text | None = None
    """Seed of the sampling by trace id; processes with the same seed choose the same turns."""
    budget: BudgetOptions = BudgetOptions()
    """What judges and embedders may spend."""
    queue: JobQueueOptions = JobQueueOptions()
    """Where judged metrics wait."""
    servers: Annotated[
        dict[str, ServerOptions],
        Kind("servers by their names, see [Use two judges](../guides/set-up-a-judge.md#use-two-judges-or-a-panel)"),
    ] = NO_ENTRIES
    """More servers by name: ``{anthropic: {base_url: https://api.anthropic.com/v1, api_key: "${env:ANTHROPIC_API_KEY}"}}``."""
    choose: Annotated[
        tuple[JudgeChoice, ...],
        Kind("list of choices, see [Use two judges](../guides/set-up-a-judge.md#use-two-judges-or-a-panel)"),
    ] = ()
    """Other models for some metrics or agents; the first that matches applies."""
    second: SecondOptions = SecondOptions()
    """A second judge, used where the first is in doubt."""
    panel: PanelOptions = PanelOptions()
    """Several judges in place of one."""
    cache: CacheOptions = CacheOptions()
    """Cached verdicts."""
    encryption_key: Text | None = None
    """Fernet key, as ``${env:NAME}``, that encrypts what queue and cache keep in files. Of several keys, separated by commas, the first encrypts and all decrypt. Needs the extra ``[encryption]``."""
