"""Statistics on scores: estimates for turns that weren't judged, intervals, tests and change detection.

May import :mod:`~otel_agenteval.core`. Allowed third-party package: numpy. This package is independent of agents.
Start at :mod:`.estimates`.
"""
