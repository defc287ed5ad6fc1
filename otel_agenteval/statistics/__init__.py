"""Statistics on scores: estimates for turns that weren't judged, intervals, tests and change detection.

This package may import only :mod:`~otel_agenteval.core` and numpy, and doesn't depend on agents or traces. Start at
:mod:`.estimates`.
"""
