"""Extract the user's question from a prompt template.

This implements the rule *template around the question*. A prompt for retrieval-augmented generation is one user
message with instructions, documents and the question. The question is extracted if the prompt labels it (``Question:
…``, ``<question>…</question>``) and also labels or names the material around it, or if the material follows a line
such as ``Answer using the following information:``. If a prompt is a whole conversation as text, the last user message
is extracted. Other prompts aren't changed.
"""

from __future__ import annotations

import re

from ...dialects.dspy import answer_of, user_words
from ...dialects.generic.values import transcript

_LONGEST = 200_000
_USERS = ("user", "human")
_QUESTION = re.compile(
    r"^[ \t]*(?:\*\*|#+ *)?(?:user'?s? ?)?(?:question|query|request|input|message|user)(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_TAGGED = re.compile(
    r"<(question|query|user_question|user_query|user_input|user_message)>((?:(?!<\1>).)*?)</\1>", re.IGNORECASE | re.DOTALL
)
_NEXT_LABEL = re.compile(
    r"^[ \t]*(?:(?:\*\*|#+ *)?(?:(?:helpful |final |your |assistant )?answer|response|output|assistant|ai|context|documents?|sources?|passages?|"
    r"thought|instructions?|history)(?:\*\*)?[ \t]*:|---+[ \t]*$|</?\w+>)",
    re.IGNORECASE | re.MULTILINE,
)
_MATERIAL = re.compile(
    r"\b(?:contexts?|documents?|passages?|sources?|excerpts?|snippets?|background|knowledge base|search results|retrieved|reference text)\b",
    re.IGNORECASE,
)
_APPENDED = re.compile(
    r"\n[ \t]{0,4}\n[^\n]{0,80}\bfollowing (?:information|contexts?|documents?|passages?|sources?|excerpts?)\b[^\n]{0,40}:[ \t]*\n",
    re.IGNORECASE,
)
"""Beginning of material after a question without a label."""
_TASK = "\nCurrent Task: "
"""Beginning of CrewAI's prompts."""
_AFTER_TASK = re.compile(
    r"\n\n?(?:This is the expect(?:ed)? criteri(?:a|on) for|This is the context you're working with:|Begin! This is|Provide your complete)"
)


_SECTION = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?", re.MULTILINE)
"""Headings between the fields of a prompt or an answer in DSPy's adapters."""
_AFTER_FIELDS = re.compile(r"\n\s{0,20}Respond with (?:the corresponding output fields|a JSON object)\b")


def question_in(prompt: str) -> str:
    """Return the question in a prompt, or the whole prompt if it contains no template."""
    if "\n" not in prompt or len(prompt) > _LONGEST:
        return prompt
    if prompt.startswith("[[ ## "):  # DSPy: "[[ ## question ## ]]\nWhat is …?"
        message = user_words(_fields(_AFTER_FIELDS.split(prompt, maxsplit=1)[0]))
        content = message.get("content") if isinstance(message, dict) else None
        return content if isinstance(content, str) else prompt
    if prompt.startswith(_TASK):  # CrewAI: "\nCurrent Task: What is …?\n\nThis is the expected criteria for …"
        return _AFTER_TASK.split(prompt[len(_TASK) :], maxsplit=1)[0].strip() or prompt
    # A conversation as text: "User: Hi\nAssistant: Hello\nUser: What is …?"
    said = [message for message in transcript(prompt) or () if message["content"]]
    if len(said) > 1 and said[-1]["role"] in _USERS and any(message["role"] not in _USERS for message in said):
        return str(said[-1]["content"])
    tagged = _TAGGED.findall(prompt)  # "<context>…</context>\n<question>What is …?</question>"
    if len(tagged) == 1:
        outside = _TAGGED.sub("", prompt)
        question = tagged[0][1].strip()
        return question if question and _MATERIAL.search(outside) else prompt
    labels = list(_QUESTION.finditer(prompt))
    if not labels:  # "What is …?\n\nAnswer using the following documents:\n…"
        return _APPENDED.split(prompt, maxsplit=1)[0].strip() or prompt
    label = labels[-1]  # "Context: …\nQuestion: What is …?\nAnswer:"
    remainder = prompt[label.end() :]
    end = _NEXT_LABEL.search(remainder)
    question = (remainder[: end.start()] if end is not None else remainder).strip()
    around = prompt[: label.start()] + (remainder[end.start() :] if end is not None else "")
    return question if question and _MATERIAL.search(around) else prompt


def answer_in(text: str) -> str:
    """Return the answer in the output fields of DSPy's adapters, or the whole text."""
    if not text.startswith("[[ ## ") or len(text) > _LONGEST:
        return text
    fields = _fields(text)
    fields.pop("completed", None)
    return answer_of(fields) if fields else text


def _fields(text: str) -> dict[str, str]:
    """Return the text after each ``[[ ## name ## ]]``, by name."""
    parts = _SECTION.split(text)
    return {name: value.strip() for name, value in zip(parts[1::2], parts[2::2], strict=True)}
