"""Parsers for spans, with one module per instrumentation. Each module turns span records into steps.

*The convention* is OpenTelemetry's GenAI conventions. This package may import ``spans`` and ``core``, but not OpenTelemetry.
Read :mod:`.reader` first. :mod:`.voltagent` is a short example. :mod:`.step` has the roles and fields.
"""
