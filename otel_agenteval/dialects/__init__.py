"""Parse spans into steps, with one module per instrumentation. A step has a span's GenAI data in a common format.

*The convention* is OpenTelemetry's GenAI semantic conventions. Modules in this package may import ``spans`` and ``core``, but not
OpenTelemetry. Start reading at :mod:`.reader`. For a short example, see :mod:`.voltagent`. :mod:`.step` defines the roles and the
step's fields.
"""
