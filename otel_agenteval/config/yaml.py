"""Safe reader and writer for YAML 1.2, with ``${env:NAME}`` variables and the line of each value.

PyYAML follows YAML 1.1, which reads ``off`` as false, ``10:30`` as 630, and ``2026-11-21`` as a date. Here, only ``true`` and
``false`` are booleans, and digits with a leading zero, such as a ZIP code, are text. Duplicate keys are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from ..core.errors import ConfigError
from ..core.wellformed import well_formed
from .types import KeyPath, dotted

_CORE_TYPES = (
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", [*"-+0123456789"]),
    ("float", r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
    ("merge", r"<<", ["<"]),
)
_VARIABLE = re.compile(r"\$\$(?=\{)|\$\{env:(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?")
_QUOTED = re.compile(r"""(['"])[^\s<](?:(?!\1)\S)+\1""")
"""Pattern for alias and tag names in PyYAML's messages. They are masked, because an unquoted secret can begin with ``*`` or ``!``."""
_MAX_CHARACTERS = 500_000
_MAX_VALUES = 200_000
"""Maximum number of values. Without this limit, a few lines with nested aliases could expand to billions of values."""


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - declared as in the base class, but empty


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated values in full, because full values are easier to read than aliases."""
        return True


for _name, _pattern, _first in _CORE_TYPES:
    _resolver = (f"tag:yaml.org,2002:{_name}", re.compile(rf"(?:{_pattern})\Z"), _first)
    _Loader.add_implicit_resolver(*_resolver)
    _Dumper.add_implicit_resolver(*_resolver)  # quotes texts that YAML 1.2 would convert, in addition to those of YAML 1.1
# other YAML parsers read digits with a leading zero as numbers: quote such text, and read `!!int` as decimal
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?\Z"), [*"-+0123456789"]
)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))  # type: ignore[arg-type]
_Dumper.add_multi_representer(object, lambda dumper, value: dumper.represent_str(str(value)))


def load(text: str, origin: str, env: Mapping[str, str] | None, *, lines: bool = True) -> tuple[Any, dict[KeyPath, str]]:
    """Return a YAML document's data and each value's location (``origin:line``, or ``origin`` if ``lines`` is False).

    The variable's value replaces ``${env:NAME}`` and ``${env:NAME:-default}``. An empty variable counts as unset. ``$${`` means
    ``${``. An unquoted variable can be a number, a boolean, or null. If ``env`` is None, variables aren't replaced.

    Raises:
        ConfigError: If the text isn't YAML or is too large, a key occurs twice, or a variable can't be replaced.
    """
    if len(text) > _MAX_CHARACTERS:
        raise ConfigError(f"{origin}: must have at most {_MAX_CHARACTERS:,} characters, got {len(text):,}")
    loader: Any = None
    try:
        loader = _Loader(text)
        reader = _Reader(loader, origin, env, lines)
        if (node := loader.get_single_node()) is None:
            return None, {}
        reader.walk(node, ())
        return loader.construct_document(node), reader.places
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, _QUOTED.sub("'****'", str(error.problem or error.context))
        if "'\\t'" in str(error.problem) and mark is not None and mark.buffer is not None:
            is_indentation = not mark.buffer[: mark.pointer].rpartition("\n")[2].strip()
            raise ConfigError(f"{reader.place(mark)}: tab found. {'Indent with' if is_indentation else 'Use'} spaces") from None
        raise ConfigError(f"{reader.place(mark)}: not YAML: {problem}") from None
    except yaml.reader.ReaderError as error:
        place = f"{origin}:{text.count(chr(10), 0, error.position) + 1}" if lines else origin
        raise ConfigError(f"{place}: not YAML: character U+{error.character:04X} isn't allowed") from None
    except (ValueError, LookupError, AttributeError):  # PyYAML's constructors of tags
        raise ConfigError(f"{origin}: not YAML: a value doesn't match its tag") from None
    except RecursionError:
        raise ConfigError(f"{origin}: values are nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()


def compose(text: str) -> yaml.Node | None:
    """Parse a valid document into YAML nodes, which store their positions in the text."""
    loader: Any = _Loader(text)
    try:
        node: yaml.Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


def dump(value: Any) -> str:
    """Return YAML text with the same meaning in YAML 1.1 and 1.2. Objects of unknown types become text."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def expanded(text: str, where: str, env: Mapping[str, str]) -> str:
    """Replace ``${env:NAME}`` variables in a text, as in :func:`load`. Error messages start with ``where``."""

    def value_of(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        if found[1] is None:
            raise ConfigError(f"{where}: variables must be written ${{env:NAME}} or ${{env:NAME:-default}}")
        value = env.get(found[1]) or found[2]
        if value is None:
            raise ConfigError(
                f"{where}: environment variable {found[1]} isn't set. Set it, or write ${{env:{found[1]}:-default}}"
            )
        return value

    return _VARIABLE.sub(value_of, text)


class _Reader:
    """Reader that checks parsed nodes and replaces variables before PyYAML converts the nodes to Python values."""

    def __init__(self, loader: Any, origin: str, env: Mapping[str, str] | None, lines: bool) -> None:
        self._loader = loader
        self._origin = origin
        self._env = env
        self._lines = lines
        self._weights: dict[int, int] = {}
        """Mapping from a node's ``id`` to the number of values in the node, including expanded aliases."""
        self._weight = 0
        self._around: set[int] = set()
        self.places: dict[KeyPath, str] = {}

    def place(self, mark: Any) -> str:
        return f"{self._origin}:{mark.line + 1}" if self._lines and mark is not None else self._origin

    def walk(self, node: yaml.Node, path: KeyPath) -> None:
        self.places.setdefault(path, self.place(node.start_mark))
        if id(node) in self._around:
            raise ConfigError(f"{self.place(node.start_mark)}: {dotted(path)}: an alias refers to an enclosing value")
        known = self._weights.get(id(node))
        if known is not None:  # an alias, whose variables are already replaced
            self._count(known, node)
            return
        before = self._weight
        self._count(1, node)
        self._around.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            node.value = well_formed(node.value)
            if self._env is not None and "$" in node.value:
                node.value = well_formed(expanded(node.value, f"{self.places[path]}: {dotted(path)}", self._env))
                if node.style is None:
                    node.tag = self._loader.resolve(yaml.ScalarNode, node.value, (True, False))
        elif isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                self.walk(item, (*path, i))
        elif isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, item in node.value:
                name = str(key.value)
                here = (*path, name)
                if name in keys:
                    raise ConfigError(f"{self.place(key.start_mark)}: {dotted(here)}: duplicate key")
                keys.add(name)
                self.places[here] = self.place(key.start_mark)
                self.walk(item, here)
        self._around.discard(id(node))
        self._weights[id(node)] = self._weight - before

    def _count(self, values: int, node: yaml.Node) -> None:
        self._weight += values
        if self._weight > _MAX_VALUES:
            raise ConfigError(
                f"{self.place(node.start_mark)}: must have at most {_MAX_VALUES:,} values, including expanded aliases"
            )
