"""Extract the user's question from prompt templates."""

from __future__ import annotations

import re

from ...core.turn import Message
from ...dialects.content import is_tagged
from ...dialects.dspy import answer_of, user_words
from ...dialects.generic.values import transcript


def last_user_text(messages: list[Message]) -> str | None:
    context = None
    for message in reversed(messages):
        if message.role == "user" and message.content and not message.tool_results:
            if not is_tagged(message.content):
                return message.content
            context = context or message.content  # tagged text may follow the user's own words
        elif context is not None:
            break
    return context


# --- the question in a prompt template (reading rule *template around the question*)
#
# A prompt for retrieval-augmented generation is one user message with instructions, documents and the question. The
# question is extracted if it has a label and the prompt mentions documents, or if documents follow it. If the prompt is a
# conversation as text, its last user message is extracted. DSPy and CrewAI have their own rules. Other prompts aren't changed.

_LONGEST_TEMPLATE = 200_000
_USERS = ("user", "human")
# "Question: ", "**User's query:** " or "# Input: "
_QUESTION_LABEL = re.compile(
    r"^[ \t]*(?:\*\*|#+ *)?(?:user'?s? ?)?(?:question|query|request|input|message|user)(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_QUESTION_ELEMENT = re.compile(
    r"<(question|query|user_question|user_query|user_input|user_message)>((?:(?!<\1>).)*?)</\1>", re.IGNORECASE | re.DOTALL
)
# after a question: "Helpful answer:", "## Context:", "---" or "</prompt>"
_NEXT_LABEL = re.compile(
    r"^[ \t]*(?:(?:\*\*|#+ *)?(?:(?:helpful |final |your |assistant )?answer|response|output|assistant|ai|context|documents?|sources?|passages?|"
    r"thought|instructions?|history)(?:\*\*)?[ \t]*:|---+[ \t]*$|</?\w+>)",
    re.IGNORECASE | re.MULTILINE,
)
_MATERIAL = re.compile(
    r"\b(?:contexts?|documents?|passages?|sources?|excerpts?|snippets?|background|knowledge base|search results|retrieved|reference text)\b",
    re.IGNORECASE,
)
# "\n\nAnswer using the following documents:\n", which begins the material after a question without a label
_MATERIAL_INTRODUCTION = re.compile(
    r"\n[ \t]{0,4}\n[^\n]{0,80}\bfollowing (?:information|contexts?|documents?|passages?|sources?|excerpts?)\b[^\n]{0,40}:[ \t]*\n",
    re.IGNORECASE,
)
_CREWAI_START = "\nCurrent Task: "
_AFTER_CREWAI_TASK = re.compile(
    r"\n\n?(?:This is the expect(?:ed)? criteri(?:a|on) for|This is the context you're working with:|Begin! This is|Provide your complete)"
)
_DSPY_HEADING = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?", re.MULTILINE)
_AFTER_DSPY_FIELDS = re.compile(r"\n\s{0,20}Respond with (?:the corresponding output fields|a JSON object)\b")


def question_in(prompt: str) -> str:
    """Return the user's question in a filled-in prompt template. If the question can't be recognized, return the whole prompt."""
    if "\n" not in prompt or len(prompt) > _LONGEST_TEMPLATE:
        return prompt
    if prompt.startswith("[[ ## "):  # DSPy: "[[ ## question ## ]]\nWhat is …?"
        message = user_words(_fields(_AFTER_DSPY_FIELDS.split(prompt, maxsplit=1)[0]))
        content = message.get("content") if isinstance(message, dict) else None
        return content if isinstance(content, str) else prompt
    if prompt.startswith(_CREWAI_START):  # CrewAI: "\nCurrent Task: What is …?\n\nThis is the expected criteria for …"
        return _AFTER_CREWAI_TASK.split(prompt[len(_CREWAI_START) :], maxsplit=1)[0].strip() or prompt
    # A conversation as text: "User: Hi\nAssistant: Hello\nUser: What is …?"
    messages = [message for message in transcript(prompt) or () if message["content"]]
    if len(messages) > 1 and messages[-1]["role"] in _USERS and any(message["role"] not in _USERS for message in messages):
        return str(messages[-1]["content"])
    elements = _QUESTION_ELEMENT.findall(prompt)  # "<context>…</context>\n<question>What is …?</question>"
    if len(elements) == 1:
        question = elements[0][1].strip()
        return question if question and _MATERIAL.search(_QUESTION_ELEMENT.sub("", prompt)) else prompt
    labels = list(_QUESTION_LABEL.finditer(prompt))
    if not labels:  # "What is …?\n\nAnswer using the following documents:\n…"
        return _MATERIAL_INTRODUCTION.split(prompt, maxsplit=1)[0].strip() or prompt
    before, after = prompt[: labels[-1].start()], prompt[labels[-1].end() :]  # "Context: …\nQuestion: What is …?\nAnswer:"
    next_label = _NEXT_LABEL.search(after)
    end = next_label.start() if next_label is not None else len(after)
    question = after[:end].strip()
    return question if question and _MATERIAL.search(before + after[end:]) else prompt


def answer_in(text: str) -> str:
    """Return the answer in DSPy output fields. If the text has another format, return the text unchanged."""
    if not text.startswith("[[ ## ") or len(text) > _LONGEST_TEMPLATE:
        return text
    fields = _fields(text)
    fields.pop("completed", None)
    return answer_of(fields) if fields else text


def _fields(text: str) -> dict[str, str]:
    """Parse DSPy fields: ``[[ ## question ## ]] Why?`` → ``{"question": "Why?"}``."""
    _, *names_and_values = _DSPY_HEADING.split(text)
    return {name: value.strip() for name, value in zip(names_and_values[::2], names_and_values[1::2], strict=True)}
