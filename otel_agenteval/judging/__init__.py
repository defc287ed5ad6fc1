"""Judged metrics on live turns: sampled, queued, asked within the budget, and sent out like any other score.

The worker plans each turn with its inline scores (:mod:`.planner`). What is to be judged becomes a job that holds the turn in form
``turn.v1`` (:mod:`.job`). Threads of our own claim jobs (:mod:`.dispatcher`), ask the models (:mod:`.runner`, :mod:`.session`), and give
each score to the worker, which sends it out. A job is acknowledged only then, so what is lost in between comes back from a queue that
outlives the process.

May import :mod:`~otel_agenteval.outlets` and below; of third parties, httpx, numpy and, on first use, what its queues and models need.
Start at :mod:`.planner`, then :mod:`.dispatcher`.

Every metric of every turn ends in one way that is counted, whatever fails (:mod:`.outcomes`).
"""
