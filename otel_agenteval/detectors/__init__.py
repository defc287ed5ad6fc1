"""Detect refusals, prompt injection, prompt leaks, personal data, secrets, and unsupported claims.

Unsupported claims are links and numbers without a source. A detector receives a text and its context, and returns findings, usually
with their positions in the text. Metrics compute scores from the findings, and :mod:`otel_agenteval.evaluation.redaction` replaces
personal data and secrets.

Modules in this package can import :mod:`~otel_agenteval.core`, numpy, and, on first use, phonenumbers. For a detector with word
lists, start reading at :mod:`.refusal`. For redaction, start at :mod:`.redaction.find`.
"""
