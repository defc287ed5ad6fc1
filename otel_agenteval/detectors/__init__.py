"""Detect refusals, prompt injection, personal data, secrets, and links or numbers without a source.

A detector gets a text and its context, and returns findings with their positions. Metrics score the findings, and
:mod:`otel_agenteval.evaluation.redaction` replaces their texts.

This package may import :mod:`~otel_agenteval.core`, numpy and, on first use, phonenumbers. Start at :mod:`.refusal` for a
detector with word lists, and at :mod:`.redaction.find` for the data that redaction replaces.
"""
