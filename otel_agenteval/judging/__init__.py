"""Judged metrics: sampling, job queues, judge calls within a budget, and judged scores.

The worker plans each turn after its inline scores (:mod:`.plan`). Each judge evaluation becomes a job with the turn in
``turn.v1`` form (:mod:`.job`). Judge threads claim jobs (:mod:`.dispatcher`), call the models (:mod:`.runner`,
:mod:`.session`), and pass each score to the worker, which emits it. Only then is the job acknowledged. A persistent queue
redelivers jobs whose process died before that.

Each metric of each turn has exactly one outcome, and all outcomes are counted (:mod:`.outcomes`).

May import :mod:`~otel_agenteval.outlets` and below. Third-party packages are httpcore, numpy and, on first use, those of the
configured queues and models. Start at :mod:`.plan`, then :mod:`.dispatcher`.
"""
