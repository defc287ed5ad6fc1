"""Parse spans into steps, with one module per instrumentation. A step has a span's GenAI data in a common format.

*The convention* is OpenTelemetry's GenAI semantic conventions. This package may import ``spans`` and ``core``, but not
OpenTelemetry. Start at :mod:`.reader`. :mod:`.voltagent` is a short example. :mod:`.step` defines the roles and the step's
fields.
"""
