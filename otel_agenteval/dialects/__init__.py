"""Parsers of span records, one module per instrumentation. Each module turns records into steps.

*The convention* is OpenTelemetry's GenAI semantic conventions. May import ``spans`` and ``core``, but not OpenTelemetry.
Start at :mod:`.reader`, which calls the modules in order. :mod:`.voltagent` is a short example. :mod:`.step` has the roles and fields.
"""
