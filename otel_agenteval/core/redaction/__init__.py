"""Personal data and secrets in text, as its reader will see it: unescaped, decoded and normalised.

Start at :func:`~otel_agenteval.core.redaction.find.finds`. ``views`` decodes a text and leads back to it; ``emails``, ``numbers`` and ``secrets``
look at one view. Secrets are known by their format (``rules``), by a name (``words``) beside a value (``values``) in one of many places
(``named``, ``tables``), or by their place in a command (``commands``). Imports nothing of OpenTelemetry, and nothing heavy.
"""
