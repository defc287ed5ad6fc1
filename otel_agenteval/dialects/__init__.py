"""Parse spans into steps, with one module (dialect) per instrumentation. A step holds one span's GenAI data in a common format.

*The convention* means OpenTelemetry's GenAI semantic conventions. Modules in this package can import ``spans`` and ``core``, but
not OpenTelemetry. Start reading at :mod:`.reader`. :mod:`.voltagent` is a short example. :mod:`.step` defines roles and fields.
"""
