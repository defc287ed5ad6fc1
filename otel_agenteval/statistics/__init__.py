"""Numbers about many scores: estimates of what was not judged, intervals, tests. No I/O, and nothing of agents.

May import :mod:`~otel_agenteval.core`; of third parties, numpy.
Start at :mod:`.estimates`.
"""
