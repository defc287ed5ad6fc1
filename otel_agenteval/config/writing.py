"""A configuration as YAML that can be read again, apart from its secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .masking import masked

if TYPE_CHECKING:
    from .root import Config


def effective_yaml(config: Config) -> str:
    """The configuration as YAML with all defaults; secrets are shown as ``****``, wherever they stand."""
    from . import yaml  # imported on first use: few processes show a configuration

    return yaml.dump(masked(config.to_dict()))
