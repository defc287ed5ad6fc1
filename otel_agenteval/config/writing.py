"""A configuration as it may be shown: in the form in which it is read, without its secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .masking import masked

if TYPE_CHECKING:
    from .root import Config


def effective_yaml(config: Config) -> str:
    """The configuration as YAML with all defaults; secrets are shown as ``****``, wherever they stand."""
    from . import yaml  # only who has a file or asks for one pays for it

    return yaml.dump(masked(config.to_dict()))
