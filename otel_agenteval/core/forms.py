"""Readers of values with a fixed form: parts of a turn, reference data as other tools spell it, and texts from a template.

A reader receives a value and its path, and returns the value in our form or raises a ConfigError that names the path.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import ConfigError, likeness, nearest
from .wellformed import bounded_name, is_count, plain, well_formed

Reader = Callable[[Any, str], Any]

_ALIKE, _SIMILAR = 0.6, 0.75
"""Likeness from which a key is suggested for an absent one, and that from which an unknown key is a misspelled one, if other unknown keys are allowed."""


def unknown(path: str, key: str, known: Iterable[str], allowed: Iterable[str] = ()) -> ConfigError:
    """Return the error about an unknown key. ``known`` also has other spellings of those that are ``allowed``."""
    close = " or ".join(map(repr, nearest(key, known, 2)))
    ours = ", ".join(allowed)
    return ConfigError(f"{path}.{key}: unknown key. Did you mean {close}?{f' (allowed: {ours})' if ours else ''}")


def wrong(path: str, value: Any, wanted: str) -> ConfigError:
    return ConfigError(f"{path}: must be {wanted}, got {str(value)[:80]!r}")


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
    """Leave a value to the metric, also if JSON has no such value."""
    return value


def list_of(read: Reader) -> Callable[[Any, str], list[Any]]:
    def read_list(value: Any, path: str) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise wrong(path, value, "a list")
        return [read(item, f"{path}[{i}]") for i, item in enumerate(value)]

    return read_list


def snake_case(key: str) -> str:
    """Return ``maxRank``, ``MaxRank`` or ``max-rank`` as ``max_rank``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").lower()


def keyed(keys: str = "", unread: str = "", needs: str = "", **readers: Reader) -> Callable[[Any, str], dict[str, Any]]:
    """Return a reader of objects with fixed keys. A key in camel case is read too, and null is an absent value.

    Args:
        keys: our keys, separated by spaces, each with the spellings of other tools in order of preference:
            ``from=sender,source to=target``. Without them, the keys are those of ``readers``.
        unread: keys that other tools write and no metric reads. With ``*``, these are all keys that don't resemble an absent one.
        needs: keys that must have a value.
        readers: readers of the values, by our key with an underscore if it is a Python keyword. Other values may be anything.
    """
    keys = keys or " ".join(name.rstrip("_") for name in readers)
    spelled = {key: [key, *filter(None, others.split(","))] for key, _, others in (word.partition("=") for word in keys.split())}
    return _Keyed(
        spelled,
        {other: (rank, key) for key, others in spelled.items() for rank, other in enumerate(others)},
        frozenset(unread.split()),
        needs.split(),
        {key: readers.get(key, readers.get(f"{key}_", anything)) for key in spelled},
    )


@dataclass(frozen=True, slots=True)
class _Keyed:
    spelled: Mapping[str, Sequence[str]]
    ours: Mapping[str, tuple[int, str]]
    """Preference of each spelling, and our key."""
    ignored: frozenset[str]
    required: Sequence[str]
    readers: Mapping[str, Reader]

    def __call__(self, value: Any, path: str) -> dict[str, Any]:
        readers = self.readers
        if a_mapping(value, path).keys() <= readers.keys() and all(value.get(key) is not None for key in self.required):
            return {key: readers[key](inner, f"{path}.{key}") for key, inner in value.items() if inner is not None}
        chosen: dict[str, tuple[int, str]] = {}
        """Our key → preference of the spelling in the value, and that spelling."""
        unknown_keys: list[tuple[str, str]] = []
        """In snake case, and as spelled."""
        for spelling, inner in value.items():
            word = spelling if spelling in self.ours else snake_case(str(spelling))
            if word not in self.ours:
                unknown_keys += [(word, spelling)] if word not in self.ignored else []
            elif inner is not None:
                rank, key = self.ours[word]
                chosen[key] = min(chosen.get(key, (rank, spelling)), (rank, spelling))
        for key in self.required:
            if key not in chosen:
                raise ConfigError(f"{path}.{key}: must be set, got {self._instead(key, value, unknown_keys)}")
        for word, spelling in unknown_keys:
            if "*" not in self.ignored or (
                (similar := misspelled(word, tuple(self.ours))) and self.ours[similar][1] not in chosen
            ):
                raise unknown(path, str(spelling), self.ours, self.spelled)
        return {key: readers[key](value[spelling], f"{path}.{spelling}") for key, (_, spelling) in chosen.items()}

    def _instead(self, key: str, value: Mapping[str, Any], unknown_keys: Iterable[tuple[str, str]]) -> str:
        """Return the keys in the value instead of a required one, and the one that may be meant."""
        likely = (
            (misspelled(word, tuple(self.ours)) or (likeness(word, key) > _ALIKE and key), word) for word, _ in unknown_keys
        )
        hint = next((f". Did you mean {meant!r} instead of {word!r}?" for meant, word in likely if meant), "")
        return (", ".join(map(repr, value)) or "an empty object") + hint


@functools.lru_cache(maxsize=1024)
def misspelled(word: str, known: tuple[str, ...]) -> str | None:
    """Return the known key that an unknown one seems to misspell, or None. Keys of up to three letters resemble too many words."""
    (close,) = nearest(word, known, 1)
    return close if min(len(word), len(close)) > 3 and likeness(word, close) >= _SIMILAR else None


PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
"""Matches a placeholder in a template."""


def places(template: str) -> list[str]:
    return PLACE.findall(template)


def filled_in(template: str, text: str) -> dict[str, str] | None:
    """Return the placeholders' values in a text from the template, or None if it doesn't match or a placeholder occurs twice.
    Each fixed part matches at its first position after the previous one, without backtracking, so in linear time.
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
