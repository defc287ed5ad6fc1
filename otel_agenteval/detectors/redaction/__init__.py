"""Detect personal data and secrets in text, even if they are escaped, encoded, or written with look-alike characters.

Start with :func:`~otel_agenteval.detectors.redaction.find.find_in`. ``views`` decodes a text in layers and maps positions back to
the original. ``emails``, ``numbers``, and ``secrets`` search one view. Secrets are recognized by their format (:mod:`..tokens`),
by a nearby name (``words``, ``named``, ``tables``), or by their position in a command (``commands``). These modules import
neither OpenTelemetry nor large packages.
"""
