"""Memory limits of the process and of open turns."""

from __future__ import annotations

import sys

import pytest

from tests.support.process import run

LARGE = """
import resource, sys
from otel_agenteval.server.process import tune
if sys.argv[1] == "tuned":
    assert tune()

def requests(count):
    for _ in range(count):  # each is held twice, as a packed and an unpacked body are
        bodies = [bytearray(20 << 20) for _ in range(2)]
        for data in bodies:
            data[::4096] = b"x" * len(data[::4096])
        del bodies, data

requests(3)
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
requests(10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_memory_of_one_request_serves_the_next() -> None:
    plain, tuned = (int(run(LARGE, how).stdout) for how in ("plain", "tuned"))
    assert tuned < plain / 4, (plain, tuned)
