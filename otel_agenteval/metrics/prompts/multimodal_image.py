"""What the judges of answers with images are asked."""

from __future__ import annotations

from ..lib.prompts import BLUE, RED, Case, task

_NAMED = "Missing evidence: an image that you cannot see is judged by what its name and the texts say of it; say that you did not see it."

HELPS = task(
    "Judge how much the image helps a reader who asked the question to understand the answer.",
    steps="Say what the image shows. Find the part of the answer that it belongs to. Ask what a reader knows with the image that they would not know, or only with "
    "effort, without it. Then score.",
    scale={
        10: "It makes the answer much clearer, or shows what words cannot.",
        7.5: "It makes a part of the answer clearer.",
        5: "It fits the subject and only decorates.",
        2.5: "It hardly fits, or distracts.",
        0: "It misleads, or has nothing to do with question and answer.",
    },
    counts="this image alone, with the text around it: what it shows, whether it agrees with the text, whether what matters in it can be made out.",
    ignore="beauty; whether the answer itself is right or complete; other images.",
    good='"Where is the reset button?", a photo of the back with an arrow at the button: 10.',
    bad="the same question, a photo of the company building: 0 to 2.5.",
    cases=(
        "Missing evidence: where you cannot see the image, say so; it then helps nobody, and is 0.",
        "Refusals and empty answers: judge by the question what the image gives the reader.",
    ),
)

RELEVANT = task(
    "Decide for each statement and each image of the retrieved context whether it is relevant to the question.",
    steps="Take each text apart into its statements, in order, and then take each image as one. For each say what it is about, what it would add to an answer, and "
    "decide.",
    counts="yes: it holds an answer or a part of one, or something that one has to know for it; of an image, that it shows so. no: it is about something else, or "
    "shares words or things with the question and adds nothing.",
    ignore="whether it is true, well put or well made; whether another says the same.",
    good='"When does the shop open?", a photo of the sign with opening hours: yes.',
    bad='the same question, "The shop was founded in 1950." is no.',
    cases=(_NAMED, "An empty context has no statements."),
)

ATTRIBUTED = task(
    "Decide for each sentence and each image of the right answer whether it can be attributed to the retrieved context, its texts and its images.",
    steps="Take the right answer apart into its sentences and images, in order. For each look for the text or the image that says or shows it; quote it or give its "
    "number, and decide.",
    counts="yes: one text or image says it, or several together do, in any words, units or language. no: nothing says it, only a part of it is said, or the context "
    "says otherwise.",
    ignore="what you know yourself; what else the context says.",
    good='"It opens at 9.", and a photo of a sign with "9 to 5": yes.',
    bad='"It opens at 9 and has 12 rooms.", with the same photo alone: no.',
    cases=(_NAMED, "Sentences without a claim, such as greetings, are left out."),
)

_ASKED = "When does the shop in Main Street open on weekdays?"
_TRUTH = "The shop in Main Street opens at 9 on weekdays."
_HOURS = ["The shop in Main Street opens at 9 on weekdays."]
_OFF = ["Candles are made of wax.", "Football was invented in England."]
_PICTURE = [{"modality": "image", "uri": "main-street-shop-opening-hours-sign-9-to-5"}]
_OTHER = [{"modality": "image", "uri": "football-stadium-at-night"}]
_CONTEXT = Case(
    good={"input": _ASKED, "output": _TRUTH, "ground_truth": _TRUTH, "context": _HOURS, "attachments": _PICTURE},
    bad={"input": _ASKED, "output": _TRUTH, "ground_truth": _TRUTH, "context": _OFF, "attachments": _OTHER},
    place="context",
)
_COLOUR = {
    "input": "What does pure red look like, without any other colour in it?",
    "output": "Pure red looks like this picture.",
}

CASES = {
    "llm_image_helpfulness": Case(
        good={**_COLOUR, "attachments": [{"modality": "image", "uri": RED}]},
        bad={**_COLOUR, "attachments": [{"modality": "image", "uri": BLUE}]},
    ),
    "llm_multimodal_contextual_relevancy": _CONTEXT,
    "llm_multimodal_contextual_recall": _CONTEXT,
}
