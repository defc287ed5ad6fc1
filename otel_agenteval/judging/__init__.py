"""Evaluation of judged metrics: sampled turns, job queues, judge calls, and their budget.

The worker plans each turn after it has scored the inline metrics (:mod:`.plan`). Each judge evaluation becomes a job, which
contains the turn in ``turn.v1`` form (:mod:`.job`). Judge threads claim jobs (:mod:`.dispatcher`), call the models
(:mod:`.runner`, :mod:`.session`), and pass each score to the worker. The worker emits the score, then acknowledges the job.
If a process dies before that, a persistent queue redelivers the job.

This folder may import :mod:`~otel_agenteval.outlets` and lower layers. Third-party packages are httpcore and numpy. Packages for
the configured queues and models are imported on first use. Start at :mod:`.plan`, then :mod:`.dispatcher`.
"""
