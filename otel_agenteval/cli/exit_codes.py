"""Exit statuses that several commands share."""

NOTHING_READ, GATE_FAILED, BAD_USE = 2, 1, 2
