"""Provide helpers that several metric families share.

The helpers parse JSON, code, SQL and XML, look up prices, and build the graph of a turn's agents. Detectors of text are in
:mod:`otel_agenteval.detectors`. May import :mod:`~otel_agenteval.core`. Each optional package is imported in one module, on first
use. No module here defines a metric, so start with the metric family that you need.
"""
