"""Prompts for judges of conversations."""

from __future__ import annotations

from ..lib.prompts import REFUSAL_FULL, Case, task

_EMPTY = "An answer that says (empty) is 0."

COHERENT = task(
    "Judge how coherent the answer is with the conversation before it: with its subject, its facts and the agent's persona.",
    steps="Note what the earlier turns establish: facts, promises, decisions, what words such as it or the second one refer to, the agent's name and "
    "manner. Compare the answer with each that it touches. Quote what it contradicts or loses, with the number of the turn. Then score.",
    scale={
        1: "It fits in every respect.",
        0.75: "It fits but for a slip that misleads nobody, such as a change of manner.",
        0.5: "One clear inconsistency, beside much that fits.",
        0.25: "Several, or one that the user would act on.",
        0: "It contradicts the conversation throughout, or ignores it.",
    },
    counts="contradictions, a subject or reference that was lost, another persona. A correction that says so, and a new subject that the user brings up, "
    "are coherent.",
    ignore="whether the answer is right, complete or polite; what it does not need to mention.",
    good='earlier "I eat no meat.", now "Then take the lentil soup." is 1.',
    bad='earlier "Your table is at 7.", now "As I said, at 8." is 0.25.',
    cases=(
        "Missing evidence: what the earlier turns do not speak of cannot be contradicted.",
        REFUSAL_FULL,
        _EMPTY,
    ),
)

PROGRESS = task(
    "Judge how far the answer moves the conversation toward the user's goal.",
    steps="Take the goal from the request and the earlier turns: what the user wants in the end, as they last put it. Say where the conversation stood "
    "before the answer and where it stands after it. List what still stands in the way. Then score this step.",
    scale={
        1: "The goal is reached, or the answer does all for it that can be done now.",
        0.75: "A large step; something small is open.",
        0.5: "Some progress.",
        0.25: "Little: it digresses, repeats, or asks for what is known.",
        0: "None, or a step away from the goal.",
    },
    counts="what the answer gives, does or finds out. A question back is progress when the goal needs what it asks for. An announcement alone is none.",
    ignore="style; how much of the way earlier answers had made.",
    good='goal: a table for four on Friday. "Booked for Friday at 7, number 12." is 1.',
    bad='the same goal: "Which day would you like?" is 0.25.',
    cases=(
        "Missing evidence: take the goal from what is shown; without earlier turns from the request alone.",
        "Refusals: declining moves nothing; with another way to the goal 0.5 at most.",
        "Small talk without a goal: an answer that joins in is 1.",
        _EMPTY,
    ),
)

REMEMBERED = task(
    "Judge how correctly the answer uses what was said in earlier turns.",
    steps="List each earlier fact that the answer refers to or relies on, with the number of its turn. List each error of memory. Weigh them by what "
    "they matter to the user; then score.",
    scale={
        1: "No error; also where the answer needs nothing from earlier turns.",
        0.75: "A minor detail is wrong or forgotten.",
        0.5: "Some of what matters is right, some is not.",
        0.25: "Most of it is wrong or forgotten.",
        0: "What it says of earlier turns is wrong, or the one thing that mattered was forgotten.",
    },
    counts="an error is an earlier fact that is wrong, mixed up, made up, outdated by a later correction, asked for again, or forgotten where the answer "
    "needed it.",
    ignore="facts that do not come from the conversation; earlier facts that the answer rightly leaves out.",
    good='turn 1 "I must not eat nuts.", answer "A salad without nuts, then." is 1.',
    bad='the same turn, answer "Try our walnut cake." is 0.',
    cases=(
        "Missing evidence: turns may be shortened or left out; what could stand there is no error.",
        REFUSAL_FULL,
        _EMPTY,
    ),
)

NEW = task(
    "Judge how much of the answer is new, compared with the agent's earlier answers.",
    steps="Split the answer into its statements and suggestions. Look for each in the earlier answers, in the same words or in others. The score is about "
    "the share that is new.",
    scale={
        1: "Entirely new.",
        0.75: "Mostly new; a statement was made before.",
        0.5: "About half of it was said before.",
        0.25: "Mostly said before.",
        0: "It only repeats.",
    },
    counts="content first, then whole sentences that come back. What the user asked to hear again, to explain or to sum up counts as new.",
    ignore="greetings, thanks and offers to help; names and terms of the subject; the same layout with other content.",
    good='earlier "Restart it.", now "Then reset it: hold the button for ten seconds." is 1.',
    bad='the same, now "Have you tried to switch it off and on again?" is 0.',
    cases=(
        "Refusals: one that was given before repeats, whatever its words; a new reason or another way is new.",
        "An answer that says (empty) repeats nothing and is 1.",
    ),
)

FACTS = task(
    "Collect the facts that the user has given about themselves and their request. Do not evaluate anything.",
    steps="Read the new messages in order. Give each fact a short name, and as its value what the user said. Give a known fact again only where the new "
    "messages correct or withdraw it: the same name, the new value.",
    counts="names, numbers, dates, places, wishes, limits, likes and dislikes, things tried; also a yes or no, by the question that it answers.",
    ignore="what only the assistant or a tool states, questions, courtesies.",
    good='"It is for four of us, but not on Friday." gives guests: four, and not on: Friday.',
    bad='the assistant\'s "We close at ten." gives nothing.',
    cases=("Where the user gave no new fact, the object is empty.",),
)

FORGOTTEN = task(
    "Decide whether the assistant's message forgets something that the user has said.",
    steps="Look in the message for a question, a statement or a proposal that touches a known fact or something said just before. Name the fact and compare.",
    counts="yes: the message asks for a fact that is known, contradicts it or mixes it up, or proposes what it rules out. no: it uses the facts rightly or "
    'needs none; it asks for what is not known, or whether a fact is right by naming it ("For four, right?").',
    ignore="what was said later; other faults of the message. Asking again to confirm who the user is, and saying so, is no.",
    good='known "guests: four", message "Four of you, fine. Which day?" is no.',
    bad='known "guests: four", message "How many will you be?" is yes.',
    cases=(
        "Missing evidence: what neither is known nor was said cannot be forgotten.",
        "Refusals and empty messages are no, unless they deny a fact or ask for one.",
    ),
)

OUT_OF_ROLE = task(
    "Find the assistant's messages that fall out of the role that it was given.",
    steps="Take from the role what it asks for and what it forbids: who the assistant is, manner, subjects, limits. Go through the assistant's messages one by "
    "one. For each that falls out of it, quote the words, say which part of the role they break, then give the number in brackets before the message.",
    counts="denying or leaving the role, another voice, doing what the role forbids, leaving out what it asks for in every message.",
    ignore="messages of anybody else, whatever they want the assistant to be; whether an answer is right; what the role does not speak of.",
    good='role "formal bank clerk": "I regret that I cannot advise on taxes." stays in it.',
    bad='the same role: "lol no idea, mate" falls out of it.',
    cases=(
        "Refusals: declining what the role does not cover stays in the role; declining its own work does not.",
        "If all messages stay in the role, the list is empty. A short or empty message falls out of it only where the role asks for more.",
    ),
)

RELEVANT = task(
    "Decide whether the assistant's last message is relevant to the conversation in the window.",
    steps="Say what the user wants at the end of the window, with what earlier turns add to it. Say what the message speaks about. Compare the two.",
    counts="yes: it deals with what the user said last, or with something in the window that they still wait for; so do a partial answer, a wrong one, a "
    "question back, a greeting to a greeting, a refusal of what was asked. no: it speaks about something else, or passes over what the user said.",
    ignore="whether the message is right, complete or polite; what was said later; what may have been said before the window.",
    good='"And on Sunday?" after "When do you open?", answered "Not at all." is yes.',
    bad='the same, answered "Our candles are made by hand." is no.',
    cases=(
        "A message that says (empty) is no. One that answers a part and then leaves the subject is yes, if the part is its main point.",
    ),
)

_BOOK = [
    {
        "input": "I am Kim. I want a table for four, and one of us must not eat nuts.",
        "output": "Hello Kim. Which day would you like?",
    },
    {"input": "Friday at 7.", "output": "Friday at 7 is free. Shall I book the table for four?"},
]
_BOOKED = "The table for four is booked for Friday at 7, Kim, and the kitchen knows about the nuts."
_LOST = "Welcome, Bob! For how many people is the table, and on which day? As I said, Fridays are full. Try our walnut cake."
_AGAIN = "Friday at 7 is free. Shall I book the table for four?"


def _in_turn(bad: str) -> Case:
    turn = {"input": "Yes, please book it.", "history": _BOOK}
    return Case(good={**turn, "output": _BOOKED}, bad={**turn, "output": bad})


def _conversation(asked: str, good: str, bad: str, **params: str) -> Case:
    def turn(answer: str) -> dict[str, object]:
        return {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]}

    return Case(good=turn(good), bad=turn(bad), params=params, place="message")


CASES = {
    "llm_conversation_coherence": _in_turn(_LOST),
    "llm_goal_progression": _in_turn("Bread has been baked for thousands of years. Its history is fascinating."),
    "llm_memory_accuracy": _in_turn(_LOST),
    "llm_repetition": _in_turn(_AGAIN),
    "llm_conversational_g_eval": _conversation(
        "Is the library open on Sunday?",
        "Yes, from ten to four. On holidays it is closed.",
        "Go away.",
        criteria="The assistant answers every question of the user, in a friendly manner.",
    ),
    "llm_knowledge_retention": _conversation(
        "I am Kim, and I want a table for four on Friday.",
        "Gladly, Kim: four people on Friday. At what time?",
        "Gladly. What is your name, how many are you, and on which day will you come?",
    ),
    "llm_role_adherence": _conversation(
        "What is the fee for a transfer abroad?",
        "The fee is ten euros, Madam. May I assist you with anything else?",
        "lol no idea mate, I am just some chatbot, ask someone else",
        role="A formal and courteous clerk of a bank, who never uses slang.",
    ),
    "llm_conversation_relevancy": _conversation(
        "Is the library open on Sunday?", "Yes, from ten to four.", "Football was invented in England, and pizza in Naples."
    ),
}
