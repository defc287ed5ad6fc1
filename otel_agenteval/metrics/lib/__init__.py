"""Helpers that several metric families share.

The helpers parse JSON, code, SQL, and XML, and read a turn's agents, steps, tool calls, and media. Text detectors are in
:mod:`otel_agenteval.detectors`. Modules in this package may import ``core``, ``detectors``, ``media``, and the registry. Each optional package
is imported by a single module, on first use. No module here defines a metric, so start with the metric family that you need.
"""
