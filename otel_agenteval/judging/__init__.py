"""Judged metrics on live turns: sampled, queued, asked within the budget, and sent out like any other score.

The worker offers each turn with its inline scores (:mod:`.offers`). What is to be judged becomes a job that holds the turn in form
``turn.v1`` (:mod:`.jobs`). Threads of our own claim jobs, ask, and hand each score back to the worker, which renders it
(:mod:`.service`). A job is settled once its score was rendered, so that what is lost in between comes back from a queue that survives.

Every metric of every turn ends in one way that is counted, whatever fails (:mod:`.fates`).
"""

from .configured import judging_from
from .service import Judging

__all__ = ["Judging", "judging_from"]
