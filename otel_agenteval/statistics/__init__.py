"""Statistics on scores: estimates for turns that weren't judged, intervals, tests and change detection.

May import :mod:`~otel_agenteval.core` and numpy. The code doesn't depend on agents or traces. Start at :mod:`.estimates`.
"""
