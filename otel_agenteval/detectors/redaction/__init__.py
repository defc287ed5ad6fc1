"""Detection of personal data and secrets in text, even if they are escaped, encoded or written with look-alike characters.

Start with :func:`~otel_agenteval.detectors.redaction.find.find_in`. ``views`` decodes a text in layers and maps positions back to the
original. ``emails``, ``numbers`` and ``secrets`` search one view. Secrets are recognized in three ways: by their format
(:mod:`..tokens`), by a name next to a value (``words``) in a known notation (``named``, ``tables``), or by their position
in a command (``commands``). These modules import nothing from OpenTelemetry and no large packages.
"""
