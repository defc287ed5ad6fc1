"""Detect personal data and secrets in text, even if they're escaped, encoded, or disguised.

Start with :func:`~otel_agenteval.detectors.redaction.find.find_in`. ``views`` decodes a text in layers (views) and maps positions
back to the original text. ``emails``, ``numbers``, and ``secrets`` search one view at a time. Secrets are recognized by their
format (:mod:`..tokens`), by a nearby name (``words``, ``named``, ``tables``), or by their position, as in commands (``commands``).
These modules import neither OpenTelemetry nor, before the first use, large packages.
"""
