"""Loader for the configuration from a file, the environment, and code. Also writes the configuration as YAML with all defaults.

    load_config()                    # defaults, overridden by a file and then by the environment
    load_config("agenteval.yaml")    # this file instead of OTEL_AGENTEVAL_CONFIG_FILE
    load_config({"outlets": {"span_events": "notable"}})    # code overrides the file and the environment

The file is YAML 1.2, so ``off`` and ``10:30`` are text. Pass the file's path, or set ``OTEL_AGENTEVAL_CONFIG_FILE``. Environment
variables replace ``${env:NAME}`` and ``${env:NAME:-default}``.

An option's environment variable is ``OTEL_AGENTEVAL_`` plus the option's path in upper case, joined by ``__``. For example,
``OTEL_AGENTEVAL_TURN__IDLE_TIMEOUT=10s`` sets ``turn.idle_timeout``. Empty variables are ignored. Write lists and mappings as
YAML or JSON.

A :class:`ConfigError` can report several errors, one per line.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import ConfigError, Faults, meant, refusal
from .masking import masked
from .root import Config, mapping_of, value_text
from .section import Section, entry_of, kind_of, option_paths, options_of, section_of
from .types import KeyPath, duration_text, finite_number, location, truth_of

_log = logging.getLogger("otel_agenteval")

ENV_PREFIX = "OTEL_AGENTEVAL_"
RESERVED_ENV = (f"{ENV_PREFIX}ENABLED", f"{ENV_PREFIX}CONFIG_FILE")
"""Variables that don't set options: the switch that turns evaluation on or off, and the path of the configuration file."""
RECORD_ENV = f"{ENV_PREFIX}RECORD_FILE"
"""Variable with a file path. A program started by ``otel-agenteval record`` writes its spans and log records to this file."""
_NO_OPTIONS, _OF_TESTS = (*RESERVED_ENV, RECORD_ENV), f"{ENV_PREFIX}TEST_"


def load_config(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """Return the effective configuration. Code overrides the environment, which overrides the file, which overrides the defaults.

    Args:
        config: the path of a file (default: ``OTEL_AGENTEVAL_CONFIG_FILE``), a mapping that overrides the file and the environment,
            or a Config that replaces both.
        env: the environment (default: ``os.environ``).
        overrides: a mapping that takes precedence over all other sources.

    Raises:
        ConfigError: If a key or variable is unknown, a value is invalid, or the file can't be read.
    """
    env = os.environ if env is None else env
    switch = env.get(RESERVED_ENV[0], "").strip()
    if switch and truth_of(switch) is None:
        raise ConfigError(f"{RESERVED_ENV[0]}: must be true or false, got {switch!r}")
    if isinstance(config, Config) and not overrides:
        return config
    return Config.from_sources(*_merged_sources(config, env, overrides))


def load_valid_part(file: str | os.PathLike[str], faults: Faults) -> Config:
    """Return a configuration with only the valid options, and add the invalid options' errors to ``faults``. If the file can't be
    read or parsed, or if a variable is unknown, raise a ConfigError.
    """
    config, lines = Config.from_valid_part(*_merged_sources(file, os.environ, None))
    with faults:
        if lines:
            raise ConfigError("\n".join(lines))
    return config


def _merged_sources(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None,
    env: Mapping[str, str],
    overrides: Mapping[str, Any] | None,
) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    data: dict[str, Any] = {}
    sources: dict[KeyPath, str] = {}
    if isinstance(config, Config):
        data, sources = config.to_dict(), dict(config._sources)
    else:
        file = config if isinstance(config, (str, os.PathLike)) else env.get(RESERVED_ENV[1])
        if file:
            data, sources = _read_file(Path(file), env)
        elif config == "":
            raise ConfigError("config: must be the path of a YAML file, got ''")
        for path, value, variable in _from_env(env):
            for key in reversed(path):
                value = {key: value}  # noqa: PLW2901
            data = _merge(data, value, (), sources, variable)
        if isinstance(config, Mapping):
            data = _merge(data, config, (), sources, None)
        elif config is not None and not isinstance(config, (str, os.PathLike)):
            raise ConfigError(f"config: must be a Config, a mapping, or a path, got {type(config).__name__}")
        for found, number in _bare_durations(data, Config):
            _warn_of_milliseconds(location(found, sources), number)
    if overrides:
        data = _merge(data, overrides, (), sources, None)
    return data, sources


def _read_file(file: Path, env: Mapping[str, str]) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{file}: file not found") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: can't be read: {getattr(error, 'strerror', None) or error}") from None
    from . import yaml  # imported on first use, because many processes have no file

    data, lines = yaml.load(text, str(file), env)
    if data is None:
        return {}, {}
    if not isinstance(data, dict):
        raise ConfigError(refusal(f"{file}:1", value_text(data, secret=True), mapping_of(Config)))
    return data, lines


_WHOLE_IN_LAYER = {("outlets", "prometheus")}
"""Mappings in which only one key can be set. A source with higher precedence therefore replaces the entire mapping."""


def _merge(
    below: Any, above: Mapping[Any, Any], path: KeyPath, sources: dict[KeyPath, str], origin: str | None
) -> dict[Any, Any]:
    """Return ``below``, overridden by ``above``. Merge nested mappings, and replace other values. Update ``sources`` in place."""
    merged = dict(below) if isinstance(below, Mapping) else {}
    for key, value in above.items():
        here = (*path, key)
        inner = merged.get(key)
        if isinstance(value, Mapping) and here not in _WHOLE_IN_LAYER and (isinstance(inner, Mapping) or inner is None):
            merged[key] = _merge(inner, value, here, sources, origin)
            continue
        for known in [known for known in sources if known[: len(here)] == here]:
            del sources[known]
        sources[here] = origin or ""  # values from code have no file or variable
        merged[key] = value
    return merged


def _from_env(env: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """Yield (path, value, variable) for each option in ``env``, sections first. For unknown variables, raise ConfigError."""
    named = (name for name, text in env.items() if name.startswith(ENV_PREFIX) and text.strip())
    others = (*_NO_OPTIONS, *_of_services(env))
    options = (name for name in named if name not in others and not name.startswith(_OF_TESTS))
    given = sorted(options, key=lambda name: (name.count("__"), name))
    short = [f"OTEL_{name}" for name in env if re.match(r"AGENTEVAL_(?:\w+__|ENABLED$|CONFIG_FILE$)", name)]
    known = variables() if given or short else {}
    for name in filter({*known, *RESERVED_ENV}.__contains__, short):
        _log.warning("%s: has no effect; set %s instead", name.removeprefix("OTEL_"), name)
    faults = Faults()
    for name in given:
        with faults:
            if name not in known:
                nested = [one for one in known if one.endswith(f"__{name.removeprefix(ENV_PREFIX)}")]
                close = meant(name, nested or [*known, *RESERVED_ENV]).replace("'", "")
                raise ConfigError(f"{name}: unknown variable{close}")
    faults.check()
    for name in given:
        value: Any = env[name].strip()
        if value == "null":
            value = None
        elif value[0] in "[{":
            from . import yaml

            value = yaml.load(value, name, env, lines=False)[0]
        yield known[name], value, name


def _bare_durations(data: Any, section: type[Section], path: KeyPath = ()) -> Iterator[tuple[KeyPath, float]]:
    """Yield the path and value of each duration that has no unit and is probably too short."""
    for name, option in options_of(section).items() if isinstance(data, Mapping) else ():
        value, inner, entry = data.get(name), section_of(option.annotation), entry_of(option.annotation)
        if inner is not None:
            yield from _bare_durations(value, inner, (*path, name))
        elif entry is not None:
            for key, one in value.items() if isinstance(value, Mapping) else enumerate(value if isinstance(value, list) else ()):
                yield from _bare_durations(one, entry, (*path, name, key))
        elif (kind := kind_of(option.metadata, option.annotation)) is not None and "duration" in kind.described:
            usual, number = option.default if isinstance(option.default, float) else 1.0, finite_number(value)
            if number and usual >= 1 and number < max(1_000, usual * 100):  # below a second, or below a tenth of the default
                yield (*path, name), number


@functools.cache
def _warn_of_milliseconds(place: str, number: float) -> None:
    _log.warning("%s: %g means %s; for seconds, write %gs", place, number, duration_text(number / 1000), number)


def _of_services(env: Mapping[str, str]) -> Iterator[str]:
    """Yield variables that Kubernetes sets for services named ``otel-agenteval…``. These variables aren't options."""
    for host in [name for name in env if name.startswith(ENV_PREFIX) and name.endswith("_SERVICE_HOST")]:
        service = host.removesuffix("_SERVICE_HOST")
        if env.get(f"{service}_PORT", "").startswith(("tcp://", "udp://", "sctp://")):
            yield from (name for name in env if f"{name}_".startswith((f"{service}_SERVICE_", f"{service}_PORT_")))


def variables() -> dict[str, tuple[str, ...]]:
    return {variable_of(path): path for path in option_paths(Config)}


def variable_of(path: tuple[str, ...]) -> str:
    """Return the environment variable of an option, such as ``OTEL_AGENTEVAL_TURN__IDLE_TIMEOUT``."""
    return ENV_PREFIX + "__".join(path).upper()


def effective_yaml(config: Config) -> str:
    """Return the configuration as YAML with all defaults. Secrets are shown as ``****``."""
    from . import yaml

    return yaml.dump(masked(config.to_dict()))
