"""Prompts for judges of agents."""

from __future__ import annotations

from ..lib.prompts import MISSING, PARTIAL, REFUSAL_FAILS, Case, task

OUTCOME = task(
    "Say what the user wanted from the agent, and what came of it. Do not evaluate anything yet.",
    steps="For the task, take the request with every part, condition and limit that the user set. For the outcome, go through the steps and "
    "the answer and report what was done, what was answered, what failed and what was left undone.",
    counts="only what the material shows. A claim of the agent that a step succeeded is reported as a claim, unless a result shows it.",
    ignore="praise and blame: words such as successfully, unfortunately or helpful have no place in a report.",
    good='"It called refund for order A-17, which ended with a timeout; the answer says that the money was sent back."',
    bad='"It successfully refunded the order."',
)

ACCOMPLISHED = task(
    "Judge how far the outcome accomplishes the task.",
    steps="Split the task into its parts and conditions. For each, find in outcome and answer whether it was met. Weigh the parts by what "
    "they matter to the user.",
    scale={
        1: "Done in full: every part and every condition.",
        0.75: "Done, but minor aspects are missing (0.75 to 0.99).",
        0.5: "Done in part: a main part is missing or wrong (0.5 to 0.74).",
        0.25: "Significant gaps: only a small part is of use (0.25 to 0.49).",
        0: "Not addressed, refused, or wrong throughout (0 to 0.24).",
    },
    ignore="style, politeness and length; effort without a result.",
    cases=(
        MISSING,
        REFUSAL_FAILS,
        "A question back is not addressed, unless the task cannot be done without what it asks for: then 0.5.",
    ),
)

COMPLETED = task(
    "Judge how far the agent completed what the user asked for, by the criteria.",
    steps="Check each criterion by itself: first what the material shows for and against it, then whether it is met. Then give one score for "
    "the whole that follows from these.",
    scale={
        100: "Completed: every criterion is met in every respect.",
        75: "Completed but for minor aspects.",
        50: "Completed in part: a main part is missing or wrong.",
        25: "Little of it is of use.",
        0: "Nothing of it was done.",
    },
    ignore="style and politeness, unless a criterion asks for them; effort without a result.",
    cases=(MISSING, PARTIAL, REFUSAL_FAILS),
)

SUCCEEDED = task(
    "Decide whether the agent fully completed the user's task.",
    steps="List the parts and conditions of the request. Look for a part that steps and answer do not show as done; one is enough for false.",
    counts="true: every part is done, and nothing in the material speaks against it. false: a part is missing, wrong or only announced; an "
    "action failed and was not made good; the answer claims what its steps contradict.",
    ignore="style, length, and whether there was a better way.",
    good="asked to cancel an order and confirm by mail, both calls ended ok and the answer says so: true.",
    bad='the order was cancelled and "you will receive a confirmation", but no mail was sent: false.',
    cases=(
        MISSING,
        "Refusals and questions back are false. An answer from knowledge alone can be true where no action was asked for.",
    ),
)

GOAL = task(
    "Judge how accurately the answer achieves the goal.",
    steps="Take from the goal what has to be true of the answer. Compare the answer with it point by point.",
    scale={
        1: "Achieves the goal exactly and in full.",
        0.75: "Achieves it, with a small omission or inaccuracy.",
        0.5: "Achieves it in part.",
        0.25: "Touches the goal, but most of it is missing or wrong.",
        0: "Does not achieve it, or contradicts it.",
    },
    ignore="other wording than the goal's, additions that do not contradict it, style.",
    good='goal "30 days", answer "You have a month, 30 days exactly, to send it back." is 1.',
    bad='goal "30 days", answer "You can send it back." is 0.25.',
    cases=(REFUSAL_FAILS, "An answer that says (empty) is 0."),
)

TOPICS = task(
    "Judge how far the answer stays within the allowed topics.",
    steps="Go through the answer statement by statement: is each about one of the allowed topics, or needed to speak about it? The score is "
    "about the share that is.",
    scale={
        1: "All of it is within the allowed topics.",
        0.75: "A remark aside is outside of them.",
        0.5: "About half of it is outside of them.",
        0.25: "Most of it is outside of them.",
        0: "None of it is within them.",
    },
    counts="what the answer speaks about, whatever the user asked. Greetings, thanks, questions back and offers to help belong to every topic.",
    ignore="whether it is right, helpful or complete; that a topic is named or asked about by the user.",
    good='allowed "banking", asked for a recipe: "I can only help with your account." is 1.',
    bad='allowed "banking", asked for a recipe: the recipe is 0.',
    cases=("Refusals: declining to speak about another topic is staying within the topics. An answer that says (empty) is 1.",),
)

TOOLS_SEEN = task(
    "List what the user wanted, the tools that the agent called with their parameters, and the tools that it could have called. Do not "
    "evaluate anything yet.",
    steps="Take the calls from the steps, in their order, each with its parameters as they stand there. Take the available tools from their "
    "list, or from what the material says of them.",
    cases=(
        "Missing evidence: a list of which the material shows nothing stays empty. Do not add tools that an agent might have.",
    ),
)

TOOLS_CHOSEN = task(
    "Judge the choice of tools for what the user wanted.",
    steps="Work out from the descriptions and parameters which of the available tools the request needs. Compare with the calls: was a needed "
    "tool not called, one called that was not needed, one called where another fits better, or one called again without a reason?",
    scale={
        1: "The right tools, none too many and none too few.",
        0.75: "The right tools, and one needless call.",
        0.5: "Right in part: a needed tool is missing or replaced by a worse one.",
        0.25: "Mostly wrong: one useful call among wrong or missing ones.",
        0: "Wrong throughout, or none was called where one was needed.",
    },
    counts="which tools were called and how often. A request that needs no tool, and got no call, is 1. A second call after an error is no "
    "fault, nor is one with other parameters that the request needs.",
    ignore="the values of parameters, the results, and the order where none depends on another.",
    good='"Where is order A-17?", get_order called once: 1.',
    bad='"Where is order A-17?", answered without a call though get_order is available: 0.',
    cases=("Missing evidence: where no available tools are known, judge by the calls alone and do not assume better ones.",),
)

CALLS_SEEN = task(
    "Say what the user wanted, and list the tool calls in the order of the material, each with its parameters and with the agent's reason for "
    "it. Do not evaluate anything yet.",
    steps="Take from the request the values that a call could need: names, dates, places, amounts, limits, and what is left open.",
    cases=("Missing evidence: the reason for a call is empty where the material shows none; do not make one up.",),
)

ARGUMENTS_RIGHT = task(
    "Decide for each tool call, in order, whether its arguments are right for what the user wanted and what was known then.",
    steps="Find where each value comes from: the request, an earlier result, the tool's default. Check it against the tool's parameters: required "
    "ones, types, allowed values, units.",
    counts="yes: every value is right and nothing required is missing. no: one is wrong, missing, made up, of the wrong type or unit, not "
    "allowed, or leaves out a limit that the user set.",
    ignore="whether the call was needed, its result, errors.",
    good='"flights under $500": search(to="JFK", max_price=500) is yes.',
    bad="max_price=1000, or a date that nobody named: no.",
    cases=(
        "Missing evidence: without a definition judge by the tool's name; unknown arguments are no.",
        "A value from before this turn, such as an account's id, is made up only if it contradicts the material.",
    ),
)

ARGUMENTS_WHY = task(
    "Sum up in one or two sentences why the arguments of an agent's tool calls got this score, from the objections to single calls. Without "
    "objections, say that all arguments were right. Judge nothing anew and add no objection."
)

TASK = task(
    "Say in one or two sentences what the user wanted from the agent, with the conditions and limits that the user set.",
    ignore="how the agent went about it, and what came of it. The answer only helps to understand the request.",
)

PLAN = task(
    "List the steps of the plan that the agent made for the task, in their order. Do not evaluate anything.",
    steps="Look in the reasoning and in what was said before and between the calls for what the agent intended to do. A plan may be spelled out "
    "as a list, or implied by a sentence such as: I check the order first and refund it then.",
    counts="a step that was intended before it was done, in the words of the material. A plan that was changed on the way counts as it was last "
    "stated before the steps that it is about.",
    ignore="what the agent only did without having planned it, the request itself, and what a good plan would have had.",
    cases=("Missing evidence: without a plan in the material the list is empty. Do not make one up from the steps.",),
)

EFFICIENT = task(
    "Judge how efficiently the agent went about the task: the way, not the answer.",
    steps="Go through the steps in their order and ask of each whether the task would have been done as well without it. Then the reasoning: is "
    "it longer than the task needs?",
    scale={
        1: "No step could be left out.",
        0.75: "One small detour.",
        0.5: "About half of the effort was needed.",
        0.25: "Most of it was not needed.",
        0: "Nearly all was wasted, or it ran in circles.",
    },
    counts="calls that repeat what was known, steps that the task did not need, work on a guess that nobody asked for, reasoning in circles.",
    ignore="whether the answer is right; calls that differ in what they ask; one try again after an error; checks before something that cannot "
    "be undone.",
    good="two orders asked for, get_order called for each: 1.",
    bad="get_order called three times with the same arguments and result: 0.25.",
    cases=("Missing evidence: where no steps are known, judge what is; a direct answer without detours is 1.",),
)

CONFIDENT = task(
    "Judge how confident the agent was, and rightly so.",
    steps="Look at the steps: are they decisive, fit for the request, and in agreement with one another? Then at the answer: is it stated plainly, "
    "and does it agree with what the steps found?",
    scale={
        1: "Decisive, fitting and consistent throughout.",
        0.75: "Mostly; a small hesitation.",
        0.5: "Mixed.",
        0.25: "Hesitant, or contradictory.",
        0: "Lost: guesses, or no way to an answer.",
    },
    counts="signs of low confidence: hedging without a cause, retries, reversals, guesses, needless questions, an answer that its steps do not carry.",
    ignore="courtesy, a limit that is named because it is real, and one try again after an error. Firm words without support are no confidence.",
    good='one search, and "Your package arrives on Friday." as the result says: 1.',
    bad='three searches that differ at random, and "It might be Friday, or not.": 0.25.',
    cases=("Refusals: a clear one for a good reason can be 1. Missing evidence: without steps judge the answer alone.",),
)

ADHERED = task(
    "Judge how strictly the execution followed the plan.",
    steps="Match each step of the plan with the steps that carry it out: done, done in another way, failed, or not done. Then look at order, and at "
    "steps that no part of the plan calls for.",
    scale={
        1: "Exactly: every step, in the plan's order, and nothing besides.",
        0.75: "Every step; one out of order, or a small addition.",
        0.5: "About half of it: steps were skipped, or as much was added.",
        0.25: "Little of it.",
        0: "Not at all: what was done has nothing to do with the plan.",
    },
    counts="what was done, not what the answer says was done. A step that was tried and failed is followed; one that became impossible or needless "
    "by a result, and was left out for that, is followed too.",
    ignore="whether the plan was good, and whether the answer is right. One try again after an error is no addition.",
    good='plan "look up the order, then refund it": get_order, refund: 1.',
    bad="the same plan, refund alone: 0.5.",
    cases=(
        "Missing evidence: a step of the plan that no step shows was not done. What was only to be said is shown by the answer.",
    ),
)

PLANNED_WELL = task(
    "Judge the quality of the plan for the task, not its execution.",
    steps="Check the plan by five questions: does it cover the whole task with its conditions, does each step follow from those before it, is there "
    "no clearly better way, is it detailed enough to act on, does it serve this task and no other?",
    scale={
        1: "Good in every respect.",
        0.75: "Good, with one small weakness.",
        0.5: "Usable, with clear weaknesses: a condition is forgotten, or a detour.",
        0.25: "Hardly usable: main parts are missing or in the wrong order.",
        0: "Useless for the task.",
    },
    counts="what could be known when the plan was made.",
    ignore="whether the plan was followed, what came of it, its wording and length. A short plan for a simple task can be 1.",
    good='task "refund A-17 if it was not delivered", plan "look up A-17; if not delivered, refund it; tell the user": 1.',
    bad='the same task, plan "refund A-17": 0.25.',
    cases=("Missing evidence: judge the plan as it is listed; do not fill it up with steps that were only done.",),
)

# --- cases for ``judge probe``

_REQUEST = "Refund order A-204, which was never delivered, and mail me the refund number."
_LOOKED = {"name": "get_order", "arguments": {"order": "A-204"}, "result": {"status": "lost", "paid": 40}}
_REFUND = {"name": "refund", "arguments": {"order": "A-204", "amount": 40}, "result": {"refund": "RF-204"}}
_MAILED = {"name": "send_mail", "arguments": {"text": "Your refund number is RF-204."}, "result": "sent"}
_PLANNED = "I look up the order first, then I refund it, then I mail the number."
_DONE = {
    "input": _REQUEST,
    "reasoning": _PLANNED,
    "tool_calls": [_LOOKED, _REFUND, _MAILED],
    "output": "Order A-204 was lost on its way. I refunded 40 EUR; the refund number is RF-204, and it is in your mail.",
}
_WRONG = {"name": "play_music", "arguments": {"order": "A-999", "amount": 4_000}, "result": "playing"}
_NOT_DONE = {
    "input": _REQUEST,
    "reasoning": "Perhaps music? Or not. I mail somebody first, then I see. Maybe.",
    "tool_calls": [_WRONG, _WRONG, _WRONG],
    "output": "I am not sure. Here is some music by the sea.",
}
_ABOUT_THE_COURSE = Case(_DONE, _NOT_DONE)
CASES = {
    **dict.fromkeys(
        (
            "llm_task_completion", "llm_task_success", "llm_goal_accuracy", "llm_step_efficiency", "llm_confidence", "llm_plan_adherence",
            "llm_plan_quality",
        ),
        _ABOUT_THE_COURSE,
    ),
    "llm_tool_correctness": Case(_DONE, _NOT_DONE, place="reasoning"),
    "llm_argument_correctness": Case(_DONE, _NOT_DONE, place="tool_result"),
    "llm_topic_adherence": Case(_DONE, _NOT_DONE, {"allowed_topics": ["orders", "refunds"]}),
}  # fmt: skip
