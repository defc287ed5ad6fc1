"""Values stored by the identity of their objects."""

from __future__ import annotations

from otel_agenteval.core.caches import ByIdentity


class _Equal:
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Equal)


def test_equal_objects_without_a_hash_have_values_of_their_own() -> None:
    kept: ByIdentity[str] = ByIdentity()
    one, other = _Equal(), _Equal()
    kept.put(one, "one")
    assert (kept.get(one), kept.get(other)) == ("one", None)


def test_a_value_goes_with_its_object() -> None:
    kept: ByIdentity[str] = ByIdentity()
    one = _Equal()
    kept.put(one, "first")
    kept.put(one, "second")
    assert kept.get(one) == "second"
    del one
    assert len(kept) == 0


def test_what_cannot_be_referred_to_weakly_is_forgotten() -> None:
    kept: ByIdentity[str] = ByIdentity()
    kept.put(1, "one")
    assert kept.get(1) is None
