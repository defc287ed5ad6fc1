"""Readers: functions that validate and convert values, such as turn fields and reference data.

A reader receives a value and the value's path. It returns the converted value, or raises a ConfigError that contains the path.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import ConfigError, likeness, nearest
from .wellformed import bounded_name, is_count, plain, well_formed

Reader = Callable[[Any, str], Any]

_ALIKE = 0.6
"""If an unknown key and a missing required key are more similar than this, the error suggests the required key."""
_SIMILAR = 0.75
"""Minimum similarity at which an unknown key counts as a misspelled known key, even with ``ignore_others``."""


def unknown(path: str, key: str, known: Iterable[str], allowed: Iterable[str] = ()) -> ConfigError:
    close = " or ".join(map(repr, nearest(key, known, 2)))
    listed = ", ".join(allowed)
    return ConfigError(f"{path}.{key}: unknown key. Did you mean {close}?{f' (allowed: {listed})' if listed else ''}")


def wrong(path: str, value: Any, wanted: str) -> ConfigError:
    return ConfigError(f"{path}: must be {wanted}, got {repr(value)[:80]}")


def a_text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise wrong(path, value, "text")
    return well_formed(value)


def a_number(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise wrong(path, value, "a finite number")
    return value


def a_count(value: Any, path: str) -> int:
    found = a_number(value, path)
    if found != int(found) or not is_count(int(found)):
        raise wrong(path, value, "a whole number from 0 to 2⁶³ - 1")
    return int(found)


def a_name(value: Any, path: str) -> str:
    return bounded_name(a_text(value, path))


def a_flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise wrong(path, value, "true or false")
    return value


def an_object(value: Any, path: str) -> dict[str, Any]:
    return dict(plain(a_mapping(value, path)))


def a_mapping(value: Any, path: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise wrong(path, value, "an object")
    return value


def anything(value: Any, path: str) -> Any:
    return plain(value)


def as_given(value: Any, path: str) -> Any:
    return value


def list_of(read: Reader) -> Callable[[Any, str], list[Any]]:
    def read_list(value: Any, path: str) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise wrong(path, value, "a list")
        return [read(item, f"{path}[{i}]") for i, item in enumerate(value)]

    return read_list


@functools.lru_cache(maxsize=1024)
def snake_case(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").lower()


def keyed(
    readers: Mapping[str, Reader],
    other_names: Mapping[str, Sequence[str]] | None = None,
    *,
    required: Collection[str] = (),
    ignored: Collection[str] = (),
    ignore_others: bool = False,
) -> Callable[[Any, str], dict[str, Any]]:
    """Return a reader for objects with known keys. Keys can be in camel case, and null counts as absent. Example::

        read = keyed({"from": a_text, "max_rank": a_count}, {"from": ("sender", "source")})
        read({"source": "b", "maxRank": 3, "sender": "a"}, "x")  # {"from": "a", "max_rank": 3}
        read({"form": "a"}, "x")  # ConfigError: x.form: unknown key. Did you mean 'from' or 'source'? (allowed: from, max_rank)

    Args:
        readers: maps each key to the reader of its value.
        other_names: maps a key to other tools' names for this key, in order of preference.
        required: keys that must have a value.
        ignored: keys that other tools write, but that metrics don't use.
        ignore_others: True to ignore unknown keys, except keys that seem to misspell an absent key.
    """
    names = {key: (key, *(other_names or {}).get(key, ())) for key in readers}
    return _ObjectReader(
        readers,
        {name: key for key, of_key in names.items() for name in of_key},
        {name: rank for of_key in names.values() for rank, name in enumerate(of_key)},
        required,
        frozenset(ignored),
        ignore_others,
    )


@dataclass(frozen=True, slots=True)
class _ObjectReader:
    readers: Mapping[str, Reader]
    key_of: Mapping[str, str]
    rank_of: Mapping[str, int]
    """Mapping from each accepted name to its rank among all names for the same key. The preferred name has rank 0."""
    required: Collection[str]
    ignored: Collection[str]
    ignore_others: bool

    def __call__(self, value: Any, path: str) -> dict[str, Any]:
        if a_mapping(value, path).keys() <= self.readers.keys() and all(value.get(key) is not None for key in self.required):
            # fast path for the usual case, without other names or faults
            return {key: self.readers[key](inner, f"{path}.{key}") for key, inner in value.items() if inner is not None}
        spellings, unknown_words = self._choose_spellings(value)
        for key in self.required:
            if key not in spellings:
                given = ", ".join(repr(name) for name, inner in value.items() if inner is not None)
                has = f"has only {given}" if given else "has no values"
                raise ConfigError(f"{path}: requires the key {key!r}, but {has}{self._hint(key, unknown_words)}")
        for word, spelling in unknown_words.items():
            if not self.ignore_others or self._misspells_absent_key(word, spellings):
                raise unknown(path, str(spelling), self.key_of, self.readers)
        return {key: self.readers[key](value[spelling], f"{path}.{spelling}") for key, spelling in spellings.items()}

    def _choose_spellings(self, value: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the preferred spelling of each known key, and the unknown keys. For the reader in :func:`keyed`:
        ``{"source": "b", "maxRank": 3, "sender": "a", "Color": 1}`` → ``{"from": "sender", "max_rank": "maxRank"}, {"color": "Color"}``
        """
        preferred: dict[str, tuple[int, Any]] = {}
        unknown_words: dict[str, Any] = {}
        for spelling, inner in value.items():
            word = spelling if spelling in self.key_of else snake_case(str(spelling))
            if word not in self.key_of:
                if word not in self.ignored:
                    unknown_words.setdefault(word, spelling)
            elif inner is not None:
                key, candidate = self.key_of[word], (self.rank_of[word], spelling)
                preferred[key] = min(preferred.get(key, candidate), candidate)
        return {key: spelling for key, (_, spelling) in preferred.items()}, unknown_words

    def _hint(self, absent: str, unknown_words: Iterable[str]) -> str:
        for word in unknown_words:
            meant = misspelled(word, tuple(self.key_of)) or (absent if likeness(word, absent) > _ALIKE else None)
            if meant is not None:
                return f". Did you mean {meant!r} instead of {word!r}?"
        return ""

    def _misspells_absent_key(self, word: str, spellings: Mapping[str, Any]) -> bool:
        similar = misspelled(word, tuple(self.key_of))
        return similar is not None and self.key_of[similar] not in spellings


@functools.lru_cache(maxsize=1024)
def misspelled(word: str, known: tuple[str, ...]) -> str | None:
    """Return the key in ``known`` that ``word`` seems to misspell, or None. Words of up to three letters never match."""
    (close,) = nearest(word, known, 1)
    return close if min(len(word), len(close)) > 3 and likeness(word, close) >= _SIMILAR else None


PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")


def places(template: str) -> list[str]:
    return PLACE.findall(template)


def filled_in(template: str, text: str) -> dict[str, str] | None:
    """Return a mapping from each placeholder in ``template`` to its value in ``text``, or None if ``text`` doesn't match.

    For example, ``filled_in("Q: {question}!", "Q: Why?!")`` returns ``{"question": "Why?"}``. A placeholder may occur only once.
    Text between placeholders matches where it first occurs, so the search takes linear time.
    """
    names, fixed = places(template), PLACE.split(template)[::2]
    if len(set(names)) < len(names) or not text.startswith(fixed[0]):
        return None
    if not names:
        return {} if text == template else None
    at, found = len(fixed[0]), []
    for piece in fixed[1:-1]:
        end = text.find(piece, at) if piece else at
        if end < 0:
            return None
        found.append(text[at:end])
        at = end + len(piece)
    if not text.endswith(fixed[-1]) or len(text) - len(fixed[-1]) < at:
        return None
    return dict(zip(names, [*found, text[at : len(text) - len(fixed[-1])]], strict=True))
