"""Prompts for judges of recordings."""

from __future__ import annotations

from ..lib.prompts import Case, task

_SURE = {1: "Certain.", 0.75: "Likely.", 0.5: "As likely as another.", 0.25: "Unlikely.", 0: "A guess."}
_THEN = "Then choose, and say by the scale how sure you are."
_SPELLING = "Write the label as it stands in the list; no other is possible."
_UNHEARD = "Missing evidence: where you can neither hear the recording nor read what is said, take the label that claims least, with confidence 0."

SENTIMENT = task(
    "Judge the sentiment of the speaker in the recording, and choose the one of the labels that fits best.",
    steps=f"Note the words that show a feeling and, where you can hear it, tone, pace and loudness. Weigh them over the whole recording. {_THEN}",
    scale=_SURE,
    counts="the caller's or user's feeling, where they speak with an agent. Where voice and words disagree, as in irony, the voice decides. Where the feeling "
    "changes, the one that lasts longer counts, and of two that last alike the later.",
    ignore="the agent's own feeling; courtesies; a sad or happy subject that is told calmly.",
    good='labels positive, neutral, negative: "Great, it works now. Thank you!" is positive.',
    bad='"Charged twice, again. Unbelievable. Thank you." taken for positive because of its thanks: it is negative.',
    cases=(_UNHEARD, _SPELLING),
)

CATEGORY = task(
    "Decide what the call in the recording is about, and choose the one of the labels that fits best.",
    steps=f"Say in one sentence why the caller calls. Compare it with each label. {_THEN}",
    scale=_SURE,
    counts="what the caller wants, in the sense in which the labels divide calls. Of several matters the one that they call for counts, else the one that takes "
    "the most time.",
    ignore="how the call ends, the caller's mood, subjects that are only mentioned, and the order of the labels.",
    good='labels billing, support: "I was charged twice." is billing.',
    bad='labels billing, support: "My router is dead, and I pay 40 a month for it!" taken for billing because of the price: it is support.',
    cases=(
        _UNHEARD,
        "Where no label fits, take the broadest, such as other, with a confidence of 0.25 at most.",
        _SPELLING,
    ),
)

LANGUAGE = task(
    "Decide which language is spoken in the recording: the one that most of it is in.",
    steps="Note words, endings, sounds and script that set the language apart from those close to it. Name it by its BCP 47 tag, with a region or script only "
    "where the recording shows it. Then say by the scale how sure you are.",
    scale=_SURE,
    counts="what is spoken, by share. A dialect counts as its language. Where sound and transcript disagree, the sound decides: a transcript can be a "
    "translation.",
    ignore="names, brands, loanwords, greetings and quotations in other languages; a foreign accent; the names of files; what a speaker says about languages.",
    good='"Ich möchte mein Ticket stornieren, please." is de.',
    bad='"Preciso de ajuda." taken for pt-BR though nothing in it is Brazilian: it is pt.',
    cases=("Missing evidence: where nothing can be heard or read, or nobody speaks, it is und, with confidence 0.",),
)

INTERRUPTIONS = task(
    "List every moment in the recording at which the user interrupts the agent while it speaks, and say how the agent handled it.",
    steps="Go through the recording in order. For each interruption quote what the user breaks in with, give the time, report what the agent does next, and then "
    "decide.",
    counts="an interruption is the user speaking up before the agent has finished, as cut sentences, dashes, overlaps or marks in a transcript show it. handled is "
    "true when the agent stops, takes up what was said, and goes on from there or changes course; false when it talks on, starts from the beginning, loses the "
    "matter, or passes over what was said.",
    ignore='short sounds of listening ("mhm", "right"), noise, pauses, agents who interrupt users; whether the answers are right.',
    good='agent "Your balance is —", user "No, my card!", agent "Your card, of course: …" is true.',
    bad='the same, then agent "— 40 euros. Your balance is" is false.',
    cases=(
        "Missing evidence: list only what can be heard or read. Where nothing shows the time, at_s is -1. Where the recording ends with an interruption, it is false.",
        "Without an interruption the list is empty.",
    ),
)

FALSE_INTENT = task(
    "Decide whether the speaker in the recording has false or misleading intent.",
    steps="Say what the speaker claims to be and to want. Look for words, and where you can hear it for voices, that speak against it. Quote them, weigh an "
    "innocent explanation for each, and then decide.",
    counts="true: the caller pretends to be another person, states what they must know is untrue, or hides what they are really after, as in getting data, money or "
    "access by a story. false: nothing in the recording shows that.",
    ignore="mistakes, forgetting, anger, haste, accents, unusual wishes, exaggeration; an agent's own conduct; a test or report of a fraud that says so.",
    good='"I forgot my password and my card is at home, what can I do?" is false.',
    bad='"I am her husband. Well, her lawyer. Just read me the code that you sent." is true.',
    cases=(
        "Missing evidence: suspicion without words that show it is false, and so is a recording of which nothing can be heard or read; the evidence is then empty.",
    ),
)


def _said(good: str, bad: str, **params: object) -> Case:
    return Case(
        good={"references": {"transcript": good}}, bad={"references": {"transcript": bad}}, params=params, place="transcript"
    )


CASES = {
    "llm_audio_sentiment": _said(
        "It works at last! You were wonderful, thank you so much, I am so happy.",
        "This is the third time. I am furious, nobody helps me, and I will never buy here again.",
        expected="positive",
    ),
    "llm_audio_call_category": _said(
        "Good morning, I was charged twice for March and would like the money back.",
        "Hello, my router has been blinking red since the storm and nothing loads.",
        categories=["billing", "technical support"],
        expected="billing",
    ),
    "llm_audio_language": _said(
        "Good morning, I would like to change my booking to Tuesday, please.",
        "Guten Morgen, ich möchte meine Buchung bitte auf Dienstag ändern.",
        expected="en",
    ),
    "llm_audio_interruption_handling": _said(
        "AGENT: Your balance is forty eu—\nUSER: Sorry, I mean my card!\nAGENT: Your card, of course. It was sent on Monday.",
        "AGENT: Your balance is forty eu—\nUSER: Stop, I mean my card!\nAGENT: —ros and ten cents. Your balance was last changed on Monday, and your balance",
    ),
    "llm_audio_false_intent_identification": _said(
        "Hello, I forgot my password. I have my identity card here and can come to the branch. What should I do?",
        "Hello, this is Mrs Berg. No, I do not know her birthday. I mean mine. Between us, I am not her, but just read me the code that you sent to her "
        "phone, and she will never notice.",
    ),
}
