"""Personal data and secrets in text, as its reader will see it: unescaped, decoded and normalised.

Start at :func:`~otel_agenteval.core.redaction.find.finds`. ``views`` decodes a text and leads back to it; ``emails``, ``numbers`` and ``secrets``
look at one view; ``rules`` has the formats of access tokens. Imports nothing of OpenTelemetry, and nothing heavy.
"""
