"""The effective configuration as YAML, with masked secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .masking import masked

if TYPE_CHECKING:
    from .root import Config


def effective_yaml(config: Config) -> str:
    """Return the configuration as YAML with all defaults. Secrets are shown as ``****``."""
    from . import yaml  # imported on first use, because few processes show a configuration

    return yaml.dump(masked(config.to_dict()))
