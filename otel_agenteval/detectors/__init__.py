"""Detect refusals, prompt injection, personal data, secrets, links and ungrounded numbers in texts.

A detector gets a text and its context, and returns findings with their positions. Metrics score them, and
:mod:`otel_agenteval.evaluation.redaction` replaces them.

May import :mod:`~otel_agenteval.core`, numpy, and phonenumbers on first use. Start at :mod:`.refusal` for a detector with word
lists, and at :mod:`.redaction.find` for what redaction replaces.
"""
