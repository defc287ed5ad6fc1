"""Section ``judge``: the models that ``llm_`` metrics ask."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .budget import BudgetOptions
from .job_queue import JobQueueOptions
from .section import Section
from .selector import Patterns
from .service import ServiceOptions
from .types import Count, Duration, FilePath, Kind, Share, Size, Text, Url


def _panelists(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and len(value) != 1 and all(isinstance(item, str) and item.strip() for item in value):
        return tuple(item.strip() for item in value)
    raise ValueError("it must be a list of two models or more, or an empty one")


class CacheOptions(Section):
    """Verdicts that are known already: the same question to the same model, by the same version of a metric, is asked once."""

    path: FilePath | None = None
    """SQLite file of the replies; its folder must exist. Processes of one machine may share it. Null keeps none."""
    ttl: Duration = 7 * 86400.0
    """Seconds that a reply is kept."""
    max_bytes: Size = 256 * 2**20
    """Bytes of all replies; past it the oldest go."""
    audit: Share = 0.01
    """Share of judged turns whose questions are asked although they are known: what is said then takes the place of what was kept."""


class ServerOptions(Section):
    """A further server of judges. A model ``NAME/MODEL`` is asked there, where ``NAME`` is the server's in ``judge.servers``."""

    base_url: Url
    """Address of the server, up to and including the version."""
    api_key: Text | None = None
    """Key of the server, as ``${env:NAME}``."""
    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """Wire format; null is that of the server's name (``anthropic``), and ``openai`` for any other name."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """As ``judge.endpoint``."""
    requests_per_minute: Count | None = None
    """Rate of requests; null is without limit."""
    tokens_per_minute: Count | None = None
    """Rate of input and output tokens; null is without limit."""


class JudgeChoice(Section):
    """Another model for some metrics, or for the turns of some agents: ``{metric: llm_faithfulness, model: anthropic/claude-x}``."""

    metric: Patterns = ()
    """Names of metrics, with ``*`` for any characters; all, if left out."""
    agent: Patterns = ()
    """Names of agents that answered; all, if left out."""
    model: Text
    """The model's name at the judge's server, or ``SERVER/MODEL`` for one of ``judge.servers``."""


class SecondOptions(Section):
    """A second judge, asked where the first one's score is near its threshold. Where the two disagree, the second one's stands."""

    model: Text | None = None
    """Its name, as in ``judge.choose``; null is none."""
    margin: Share = 0.1
    """How near to its threshold a score is in doubt, 0 to 1."""
    tolerance: Share = 0.2
    """How far two scores that both pass, or both fail, may be apart and still agree, 0 to 1."""


class PanelOptions(Section):
    """Several judges, all of them asked, in place of one."""

    models: Annotated[tuple[str, ...], BeforeValidator(_panelists), Kind("list of two models or more")] = ()
    """Their names, as in ``judge.choose``; three or more, odd numbers are best. Empty: there is none."""
    combine: Literal["median", "majority"] = "median"
    """Whose score stands: the median judge's, or the median one's among the majority that passes or fails the turn."""


class JudgeOptions(ServiceOptions):
    """The model that ``llm_`` metrics ask; without one they are skipped."""

    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """Wire format; null goes by the model's beginning (``anthropic/…``), and is ``openai`` without one."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """``moderations`` puts what ``llm_moderation`` asks to ``/moderations`` instead, with this model; only OpenAI and servers like it have that."""
    max_input_tokens: Count = 100_000
    """About how many tokens a question may have; past it the longest texts of a turn are cut in the middle, and the score says so; safety reads all, in pieces."""
    incomplete: Literal["skip", "judge"] = "skip"
    """Whether turns are judged that were closed before everything below their root had ended (``complete: false``): half a turn costs as much, and misleads."""
    attempts: Count = 5
    """How often a metric is tried on a turn while judge or embedder fail; after that it is an error."""
    seed: Text | None = None
    """What the choice of sampled turns depends on beside their trace ids; processes with the same one choose the same turns."""
    budget: BudgetOptions = BudgetOptions()
    """What judges and embedders may take."""
    queue: JobQueueOptions = JobQueueOptions()
    """Where judged metrics wait."""
    servers: Annotated[
        dict[str, ServerOptions], Kind("servers by their names, see [judging](judging.md#more-than-one-model)")
    ] = Field(default_factory=dict)
    """Further servers by name: ``{anthropic: {base_url: https://api.anthropic.com/v1, api_key: "${env:ANTHROPIC_API_KEY}"}}``."""
    choose: Annotated[tuple[JudgeChoice, ...], Kind("list of choices, see [judging](judging.md#more-than-one-model)")] = ()
    """Other models for some metrics or agents; the first that fits wins."""
    second: SecondOptions = SecondOptions()
    """A second judge, asked where the first is in doubt."""
    panel: PanelOptions = PanelOptions()
    """Several judges in place of one."""
    cache: CacheOptions = CacheOptions()
    """Verdicts that are known already."""
    encryption_key: Text | None = None
    """Fernet key, as ``${env:NAME}``, that encrypts what queue and cache keep in files; several, separated by commas: the first encrypts, all decrypt. Needs the extra ``[encryption]``."""
