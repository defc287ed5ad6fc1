"""Statistics on scores: estimates for turns that weren't judged, intervals, tests, and change detection.

Modules in this package may import only :mod:`~otel_agenteval.core`, numpy, and the standard library. These modules don't depend on
agents or traces. Start reading at :mod:`.estimates`.
"""
