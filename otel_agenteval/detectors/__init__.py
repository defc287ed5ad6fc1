"""Detect refusals, prompt injection, personal data, secrets, links and ungrounded numbers in texts.

A detector gets a text and its context, and returns findings with their positions. Metrics score the findings, and
:mod:`otel_agenteval.evaluation.redaction` replaces their texts.

May import :mod:`~otel_agenteval.core`, numpy, and phonenumbers on first use. Start at :mod:`.refusal` for a detector with word
lists, and at :mod:`.redaction.find` for the data that redaction replaces.
"""
