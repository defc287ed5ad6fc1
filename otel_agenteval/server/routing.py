"""Assignment of traces to processes, with the Collector's rule for routing traces.

The Collector's ``load_balancing`` exporter uses consistent hashing. Each endpoint gets several points on a circle of
:data:`POSITIONS` positions. A trace ID is hashed to a position, and the trace goes to the next point's endpoint. The journal is
divided by the same rule, so that one process gets all spans of an open trace.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Sequence

from ..core.tenancy import trace_id_of

POSITIONS = 131_071
_POINTS = 200
_PROBES = 10
"""Number of consecutive positions to try for each point of an endpoint. If all positions are occupied, the point is omitted."""
_ALL = (1 << POSITIONS) - 1


class Share:
    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.is_everything = bits == _ALL
        self.bytes = bits.to_bytes((POSITIONS + 7) // 8, "little")

    def __contains__(self, key: int) -> bool:
        position = zlib.crc32(trace_id_of(key).to_bytes(16, "big")) % POSITIONS
        return bool(self.bytes[position >> 3] >> (position & 7) & 1)


EVERYTHING = Share(_ALL)


def shares_of(endpoints: Sequence[str]) -> list[Share]:
    """Return each endpoint's share of the traces, in the order of ``endpoints``, which must be distinct. The shares don't overlap."""
    hashes = [
        (zlib.crc32(endpoint.encode() + point.to_bytes(4, "little")), endpoint)
        for endpoint in endpoints
        for point in range(_POINTS)
    ]
    points: dict[int, str] = {}
    for value, endpoint in sorted(hashes, key=lambda each: (each[0] % POSITIONS, *each)):
        free = (position for position in range(value, value + _PROBES) if position % POSITIONS not in points)
        points.update({position % POSITIONS: endpoint for position in [*free][:1]})
    places = sorted(points)
    bits = {endpoint: bytearray((POSITIONS + 7) // 8) for endpoint in endpoints}
    for position in range(POSITIONS):
        next_place = places[bisect_left(places, position) % len(places)]
        bits[points[next_place]][position >> 3] |= 1 << (position & 7)
    return [Share(int.from_bytes(bits[endpoint], "little")) for endpoint in endpoints]
