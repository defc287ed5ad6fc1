"""Configuration: one declaration per option gives its type, default, range, documentation and environment variable.

    load_config()                                     defaults < file < environment < code
    load_config("agenteval.yaml")
    load_config({"outlets": {"span_events": "notable"}})

The file is YAML (numbers and booleans as in YAML 1.2: ``off`` and ``10:30`` are text) named by ``OTEL_AGENTEVAL_CONFIG_FILE``
or by the caller; ``${env:NAME}`` and ``${env:NAME:-default}`` stand for environment variables. An option's environment
variable is ``OTEL_AGENTEVAL_`` and its path joined by ``__``: ``OTEL_AGENTEVAL_TURN__IDLE_TIMEOUT=10s``; an empty one counts
as unset, lists and mappings are written as YAML or JSON.

Everything wrong becomes one :class:`ConfigError` with one line per fault: where it stands, the value, and what is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ..core.errors import ConfigError, nearest
from ..core.faults import Faults
from .keypath import KeyPath
from .messages import mapping_of, shown
from .root import Config
from .section import Section, option_paths

ENV_PREFIX = "OTEL_AGENTEVAL_"


RESERVED_ENV = (f"{ENV_PREFIX}ENABLED", f"{ENV_PREFIX}CONFIG_FILE")
"""Variables that are no options: the switch, and the file's name."""
RECORD_ENV = f"{ENV_PREFIX}RECORD_FILE"
"""Where ``otel-agenteval record`` has its program's processes write."""


def load_config(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """The effective configuration: defaults < file < environment < code.

    Args:
        config: a file's path (default: ``OTEL_AGENTEVAL_CONFIG_FILE``), a mapping of the file's form, which wins over
            file and environment, or a Config, which is complete: neither is then read.
        env: the environment; default ``os.environ``.
        overrides: a mapping of the file's form that wins over everything.

    Raises:
        ConfigError: unknown keys or variables, values that are not allowed, a file that cannot be read.
    """
    if isinstance(config, Config) and not overrides:
        return config
    return Config.from_sources(*_gathered(config, os.environ if env is None else env, overrides))


def load_what_is_right(file: str | os.PathLike[str], faults: Faults) -> Config:
    """As :func:`load_config`, with all that is wrong in ``faults``; the configuration is that of the other options.

    Raises:
        ConfigError: the file cannot be read at all, or a variable is unknown.
    """
    config, lines = Config.as_far_as_right(*_gathered(file, os.environ, None))
    with faults:
        if lines:
            raise ConfigError("\n".join(lines))
    return config


def _gathered(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None,
    env: Mapping[str, str],
    overrides: Mapping[str, Any] | None,
) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """What all layers say, and the place of each value."""
    data: dict[str, Any] = {}
    sources: dict[KeyPath, str] = {}
    if isinstance(config, Config):
        data, sources = config.to_dict(), dict(config._sources)
    else:
        file = config if isinstance(config, (str, os.PathLike)) else env.get(RESERVED_ENV[1])
        if file:
            data, sources = _read_file(Path(file), env)
        elif config == "":
            raise ConfigError("config: '' is not allowed; it must be the path of a YAML file")
        for path, value, variable in _from_env(env):
            data = _merge(data, _nested(path, value), (), sources, variable)
        if isinstance(config, Mapping):
            data = _merge(data, config, (), sources, None)
        elif config is not None and not isinstance(config, (str, os.PathLike)):
            raise ConfigError(f"config: {type(config).__name__} is not allowed; it must be a Config, a mapping or a path")
    if overrides:
        data = _merge(data, overrides, (), sources, None)
    return data, sources


def _read_file(file: Path, env: Mapping[str, str]) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    from . import yaml  # imported on first use: many processes have no file

    data, lines = yaml.load(text, str(file), env)
    if data is None:
        return {}, {}
    if not isinstance(data, dict):
        raise ConfigError(f"{file}:1: {shown(data)} is not allowed; {mapping_of(Config)}")
    return data, lines


_WHOLE_IN_LAYER = {("outlets", "prometheus")}
"""Mappings that a later layer replaces: their keys exclude each other."""


def _merge(
    below: Any, above: Mapping[Any, Any], path: KeyPath, sources: dict[KeyPath, str], origin: str | None
) -> dict[Any, Any]:
    """``above`` over ``below``, mapping by mapping; lists are replaced. Keeps ``sources`` in step."""
    merged = dict(below) if isinstance(below, Mapping) else {}
    for key, value in above.items():
        here = (*path, key)
        inner = merged.get(key)
        if isinstance(value, Mapping) and here not in _WHOLE_IN_LAYER and (isinstance(inner, Mapping) or inner is None):
            merged[key] = _merge(inner, value, here, sources, origin)
            continue
        for known in [known for known in sources if known[: len(here)] == here]:
            del sources[known]
        sources[here] = origin or ""  # code has no place to name
        merged[key] = value
    return merged


def _nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return cast("dict[str, Any]", value)


def _from_env(env: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """(path, value, variable) of each option in the environment, outer ones before those inside them."""
    given = sorted(
        (name for name, text in env.items() if name.startswith(ENV_PREFIX) and text.strip() and not _is_reserved(name)),
        key=lambda n: (n.count("__"), n),
    )
    known = variables() if given else {}
    faults = Faults()
    for name in given:
        with faults:
            if name not in known:
                close = " or ".join(nearest(name, [*known, *RESERVED_ENV], 1))
                raise ConfigError(f"{name}: unknown variable; did you mean {close}?")
    faults.check()
    for name in given:
        yield known[name], _from_text(env[name].strip(), name, env), name


def _is_reserved(name: str) -> bool:
    return name in (*RESERVED_ENV, RECORD_ENV) or name.startswith(f"{ENV_PREFIX}TEST_")  # what this package's own tests are told


def _from_text(text: str, variable: str, env: Mapping[str, str]) -> Any:
    if text == "null":
        return None
    if text[0] not in "[{":
        return text
    from . import yaml

    return yaml.load(text, variable, env, lines=False)[0]


def variables(section: type[Section] = Config) -> dict[str, tuple[str, ...]]:
    """The environment variable of every option and section, and its path."""
    return {variable_of(path): path for path in option_paths(section)}


def variable_of(path: tuple[str, ...]) -> str:
    """``OTEL_AGENTEVAL_TURN__IDLE_TIMEOUT``."""
    return ENV_PREFIX + "__".join(path).upper()
