"""Detect refusals, prompt injection, personal data, secrets, and links or numbers without a source.

A detector receives a text and its context, and returns findings with their positions. Metrics score the findings, and
:mod:`otel_agenteval.evaluation.redaction` replaces their texts.

Modules in this package may import :mod:`~otel_agenteval.core`, numpy and, only when needed, phonenumbers. Start reading at
:mod:`.refusal` for a detector with word lists, and at :mod:`.redaction.find` for the data that redaction replaces.
"""
