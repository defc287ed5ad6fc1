"""Score sentences to detect instructions to an agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from ...core import jsonio
from ..text_model import text_model
from ..texts import has_any
from .calls import calls
from .languages import ATTACK, REPORTED, REVEAL, Language, LanguagePatterns, compiled, people
from .normalise import SUSPICIOUS, disguises, folded, is_harmless, languages_of, payloads, squeezed, without_entities
from .readers import marked

FOUND = 2
_CLEAR = 4
"""Minimum score of an instruction in a text about attacks."""

# --- markers in the raw text --------------------------------------------------------------------------------------

_CHAT_TOKEN = re.compile(
    r"<\|(?:im_start|im_end|im_sep|system|user|assistant|endoftext|eot_id|begin_of_text|start_header_id|end_header_id)\|>|\[/?inst\]|<</?sys>>",
    re.IGNORECASE,
)
_ROLE_TAG = re.compile(
    r"<system(?:[_-](?:prompt|message|instructions?|reminder))?>\s*(?:[^<>\s{]+\s+){2}[^<>\s]|</(?:tool_result|tool_response|function_results?|search_results)>\s*\S"
    r"|^\#{2,4}\s{0,3}system(?:\ (?:prompt|message))?\s{0,3}:\s*\S",
    re.IGNORECASE | re.MULTILINE,
)
_FALSE_END = re.compile(
    r"\b(?:end|eof) of (?:the )?(?:tool|document|search|function|user|context|data|page|retrieved|file|untrusted|email)[ _]?(?:output|results?|data|content|input|call)?\b"
    r".{0,40}\s{0,5}(?:^|\n)\W{0,5}(?:system|user|assistant|developer|admin|human|new (?:task|instructions?|directive))\b",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(
    r"\{%|\{\{|chat[ _-]?template|chatml|\btokens?\b|tokeni[sz]er|chat format|prompt format|wrap the|special_tokens|bos_token|delimiter|separator",
    re.IGNORECASE,
)
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,7}\U000e007f")  # flags of England, Scotland, …: legitimate tags
_BIDI_OVERRIDE = re.compile("[\u202d\u202e]")

# --- quotations ----------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"```.{0,20000}?(?:```|\Z)|~~~.{0,20000}?(?:~~~|\Z)", re.DOTALL)
_BLOCKQUOTE = re.compile(r":\s{0,20}(?:</\w{1,20}>\s{0,20})?<blockquote(?:(?!<blockquote).){0,5000}?</blockquote>", re.DOTALL)
_CUSTOMER = re.compile(
    r"^\W{0,3}(?:\[?\d\d?:\d\d\]? )?(?:customer|user|visitor|client|kunde|kundin|cliente|caller|guest|klient\w?|klant|zákazník|müşteri|asiakas|ügyfél|kund|клиент|клієнт"
    r"|pelanggan|khách(?: hàng)?|客户|顾客|客|お客様|고객|العميل|לקוח|ग्राहक)\s?[:：]",
    re.MULTILINE | re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"((?:^|(?<=[.!?。！？] )|(?<=[.!?。！？؟]))(?:\W{0,3}|\s?\[?\d\d?:\d\d\]? ))"
    r"(?:agent|assist\w*(?: virtu\w+)?|asist\w*|bot|botti|chatbot|support|system|systeme|sistema|система|бот|ボット|机器人|봇|الروبوت|المساعد|בוט|बॉट)\s?[:：]",
    re.MULTILINE | re.IGNORECASE,
)
"""Labels before a colon that name the speaker in a conversation between people and agents."""
_CODE = re.compile(r"`[^`\n]{1,400}`")
_QUOTED = re.compile(
    r"“[^”\n]{3,600}[”“]|„[^“”\n]{3,600}[“”]|«[^»\n]{3,600}»|「[^」\n]{2,600}」|『[^』\n]{2,600}』|‘[^’\n]{12,400}’(?!\w)"
    r"|(?<![\w=])\"[^\"\n]{3,600}\"|(?<![\w=])'(?=\w)(?:[^'\n]|(?<=\w)'(?=\w)){8,400}'(?!\w)"
)
_CELL_END = re.compile(r"\s*(?:[\]},)|]|$)", re.MULTILINE)


_COMMON = ("instruct", "ignor", "prompt", "assist", "agent", "model", "tool", "user")


@cache
def _pieces_of(language: Language) -> tuple[Any, ...]:
    """Return substrings of which every instruction in the language contains at least one.

    For Latin script, they are bytes and are compared without spaces.
    """
    pieces = language.triggers.split("|")
    if language.triggers.isascii():
        more = (
            (*_COMMON, "theai", "claude", "copilot", "gpt", "summari", "conversation", "newtask", "ai")
            if language.name == "en"
            else _COMMON
        )
        return tuple(piece.encode() for piece in dict.fromkeys((*more, *pieces)))
    return tuple(pieces)


def _without_quotations(text: str, reported: bool) -> str:
    """Replace quotations and code with spaces.

    A quoted table cell or field isn't a quotation, unless the text is about attacks.
    """
    text = _FENCE.sub(" ", text)
    if "<blockquote" in text:
        text = _BLOCKQUOTE.sub(" … ", text)

    def blank(found: re.Match[str]) -> str:
        before = text[max(0, found.start() - 12) : found.start()].rsplit("\n", 1)[-1]
        if not reported and found.group()[0] in "\"'" and _is_cell(before) and _CELL_END.match(text, found.end()):
            return found.group()
        return " … "

    text = _QUOTED.sub(blank, text)
    return _CODE.sub(" … ", text) if reported else text.replace("`", " ")


def _is_cell(before: str) -> bool:
    bare = before.rstrip()
    return not bare or bare[-1] in "[,{(|=>" or (bare[-1] == ":" and not bare[:-1].endswith((" says", " said")))


# --- texts of a result ---------------------------------------------------------------------------------------------

_ROLES = ("system", "user", "assistant", "tool", "developer", "human", "ai")
_SHORT = 200
_FOR_MACHINES = re.compile(
    r"^(?:llm|ai|agent|assistant|bot)_?(?:hint|note|instruction|advice|message|directive|comment)s?$|(?:to|for)_(?:the_)?(?:llm|ai|agent|assistant|bot)$",
    re.IGNORECASE,
)
"""Names of fields that are written for machines."""


def texts_in(text: str) -> list[str]:
    """Return the texts in serialized JSON or JSON lines, or the text itself.

    Messages of an exported chat are left out.
    """
    start = text.lstrip()[:1]
    if start in ("{", "["):
        lines = [text]
        if start == "{" and "\n{" in text:
            lines = text.split("\n")
        leaves: list[str] = []
        for line in lines:
            try:
                _walk(jsonio.loads(line), leaves, 0)
            except (ValueError, RecursionError):
                leaves.append(line)
        return leaves
    return [text]


def _walk(value: Any, leaves: list[str], depth: int) -> None:
    if isinstance(value, str):
        leaves += texts_in(value) if depth < 3 and value[:1] in ("{", "[") else [value]
    elif isinstance(value, list):
        for item in value:
            _walk(item, leaves, depth + 1)
    elif isinstance(value, dict) and not (value.get("role") in _ROLES and "content" in value):
        reports = any(isinstance(item, str) and len(item) < _SHORT and ATTACK.search(item) for item in (*value, *value.values()))
        for key, item in value.items():
            if not isinstance(item, str):
                _walk(item, leaves, depth + 1)
            elif not reports or len(item) > _SHORT:
                _walk(f"LLM: {item}" if _FOR_MACHINES.search(key) is not None else item, leaves, depth + 1)


# --- hidden text ---------------------------------------------------------------------------------------------------

_UNSEEN = re.compile(
    r"<!--((?:(?!<!--).){10,2000}?)-->|<(\w{1,20})\b[^>]{0,200}(?:display:\s?none|visibility:\s?hidden|opacity:\s?0(?![.\d])|font-size:\s?0|color:\s?(?:transparent|white|#fff(?:fff)?\b))[^>]{0,200}>(.{10,2000}?)</\2>"
    r"|[(\[](?:white|hidden|invisible|tiny|weiße?|unsichtbar\w*|sehr klein|versteckt\w*|texte? (?:blanc|caché)|blanc|texto (?:blanco|oculto|branco)|testo (?:bianco|nascosto)|белый|скрыт\w+|白字|隐藏)[^)\]]{0,30}[)\]]:?\s?([^\n]{10,1000})",
    re.IGNORECASE | re.DOTALL,
)


def unseen_in(text: str) -> Iterator[str]:
    """Yield HTML comments, hidden elements, and text that is described as white or hidden."""
    if "<" not in text and "(" not in text and "[" not in text:
        return
    for found in _UNSEEN.finditer(text):
        yield found.group(1) or found.group(3) or found.group(4)


# --- sentences -----------------------------------------------------------------------------------------------------

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[\n\r。！？।؟<>]+|[.!?]?\"\s")
_WRAPPED = re.compile(r"(?<=[^\W\d_]|,)[ \t]*\n[ \t]*(?=[a-zà-ÿа-я])")
_ADDRESS = re.compile(r"https?://|www\.|[\w.+-]@[\w-]+\.|(?<![\w-])[\w-]+\.(?:com|net|org|example|io|ru|cn)\b")
_NOT_AN_ORDER = re.compile(
    r"(?:\b(?:to|not|never|that|which|who|can|could|would|may|might|cannot|they|we|i|it|he|she|users?|models?|people|attackers?|always|if you|system (?:must|should|will)|ai will|llms?|gpt|bot|assistants?"
    r"|(?:instruct|tell|ask|caus|forc)\w* (?:it|them|the \w+))|n't)\W{0,2}\Z"
)
_LONGEST = 700


class _Sentence(NamedTuple):
    """The score and the addressees of a sentence."""

    order: int
    addressed: bool
    wants: bool
    people: bool
    to_agent: bool
    """True if it mentions the agent's user, role, prompt or secrets."""


def _weigh(sentence: str, words: LanguagePatterns, language: Language, tools: Sequence[str]) -> _Sentence:
    role = _gives_role(sentence, words)
    probes = _probes(sentence)
    acts = words.act.search(sentence) is not None
    order = 2 * (_sets_aside(sentence, words, language) or _overrides(sentence, words)) + 2 * role + 2 * probes
    if acts and any(tool in sentence for tool in tools) and not _is_reported(sentence, words.act):
        order += 1
    addressed = words.agent.search(sentence) is not None
    sends = words.send.search(sentence) is not None and _ADDRESS.search(sentence) is not None
    return _Sentence(
        order,
        addressed=addressed,
        wants=order > 0 or acts or sends or words.hide.search(sentence) is not None,
        people=not (role or probes) and people().search(sentence) is not None,
        to_agent=addressed or role or probes,
    )


def _overrides(sentence: str, words: LanguagePatterns) -> bool:
    found = words.override.search(sentence)
    return found is not None and not sentence.startswith(" about ", found.end()) and not _reported_before(sentence, found.start())


def _gives_role(sentence: str, words: LanguagePatterns) -> bool:
    found = words.role.search(sentence)
    return found is not None and not _reported_before(sentence, found.start())


def _probes(sentence: str) -> bool:
    verb = REVEAL.search(sentence) if _PROBE.search(sentence) else None
    return verb is not None and not _reported_before(sentence, verb.start())


_PROBE = re.compile(
    r"system[- ]?prompt(?!s)|prompt (?:di|de|del|do) sistem|prompt(?:u|a)? system|prompt he thong|systemprompt|invite systeme|sistem (?:prompt|istem)|your prompt|tu prompt|(?:系统|システム|시스템 ?|системн\w{1,20} )(?:提示|プロンプト|프롬프트|промпт)"
)


def _sets_aside(sentence: str, words: LanguagePatterns, language: Language) -> bool:
    """Return True if a sentence demands to ignore previous rules or all rules, and not the writer's own earlier words."""
    verb = words.ignore.search(sentence)
    if (
        verb is None
        or _TO_SEVERAL.match(sentence, verb.start()) is not None
        or _OWN.search(_clause_at(sentence, verb)) is not None
    ):
        return False
    if language.name != "en":
        return words.rules.search(sentence) is not None and words.former.search(sentence) is not None
    return any(_has_rules(sentence, found, words) for found in words.ignore.finditer(sentence))


def _clause_at(sentence: str, verb: re.Match[str]) -> str:
    """Return the clause around the verb, up to the nearest commas."""
    before = re.split(r"[,،、:;]", sentence[max(0, verb.start() - 30) : verb.start()])[-1]
    return before + verb.group() + re.split(r"[,،、:;]", sentence[verb.end() : verb.end() + 30])[0]


_OWN = re.compile(
    r"\b(?:my|our|mein\w*|unser\w*|mes|mon|nos|mis?|nuestr\w+|mi[ei]|nostr\w+|minhas?|meus?|noss\w+|mijn|onze|moj\w+|moich|nasz\w*|мо[ейюяий]\w*|наш\w*|cua (?:toi|chung toi)|saya|kami|mina|vara|vores|i (?:told|asked|gave|sent)|je t'ai|te dije|ich dir|j'ai)\b|\wlarim(?:i|a)\b|طلبي|رسالتي|שלי|मेरे|हमारे|私の|我的|我们的|제가|내 "
)
"""Words for what the writer wrote or sent earlier."""


def _has_rules(sentence: str, verb: re.Match[str], words: LanguagePatterns) -> bool:
    after = sentence[verb.end() : verb.end() + 60]
    rules = words.rules.search(after)
    if rules is None or re.search(r"[,;:(]", after[: rules.start()]):
        return False
    between = after[: rules.end()]
    return len(between.split()) <= 8 and words.former.search(between) is not None and not _reported_before(sentence, verb.start())


_TO_SEVERAL = re.compile(
    r"ignorate|dimenticate|trascurate|zignorujcie|zapomnijcie|ignoriert|vergesst|ignorad|olvidad|ignorem|esquecam|تجاهلوا|انسوا"
)
"""Verb forms that address several people."""


def _is_reported(sentence: str, pattern: re.Pattern[str]) -> bool:
    found = pattern.search(sentence)
    return found is not None and _reported_before(sentence, found.start())


def _reported_before(sentence: str, start: int) -> bool:
    return _NOT_AN_ORDER.search(sentence[max(0, start - 40) : start]) is not None


def _sentences(text: str) -> list[str]:
    return [" ".join(piece[:_LONGEST].split()) for piece in _SENTENCE_END.split(text) if piece and len(piece) > 3]


def has_order(text: str, tools: Sequence[str] = (), *, hidden: bool = False) -> bool:
    """Return True if a folded text instructs an agent.

    In hidden text, every instruction counts that mentions an agent, a user or instructions.
    """
    sentences = _sentences(text)
    return any(_has_order_in(language, sentences, tools, hidden=hidden) for language in languages_of(text))


def _has_order_in(language: Language, sentences: Sequence[str], tools: Sequence[str], *, hidden: bool) -> bool:
    words, pieces = compiled(language), _pieces_of(language)

    @cache  # repeated sentences are scored once
    def weigh(sentence: str) -> _Sentence:
        return _weigh(sentence, words, language, tools)

    for place, sentence in enumerate(sentences):
        if not has_any(squeezed(sentence) if isinstance(pieces[0], bytes) else sentence, pieces):
            continue
        here = weigh(sentence)
        if here.order or here.addressed:
            before = weigh(sentences[place - 1]) if place else None
            after = weigh(sentences[place + 1]) if place + 1 < len(sentences) else None
            if _is_order(before, here, after, " ".join(sentences[max(0, place - 1) : place + 2]), hidden):
                return True
    return False


def _is_order(before: _Sentence | None, here: _Sentence, after: _Sentence | None, text: str, hidden: bool) -> bool:
    weight = here.order + (after.order if after is not None else 0)
    to_agent = here.to_agent or (after is not None and after.to_agent)
    if here.addressed and (here.wants or (after is not None and after.wants)):
        weight += 3 if here.wants else 2
    if hidden and (here.wants or here.order):
        weight += 2
    if weight < FOUND:
        return False
    if (here.people and not here.addressed) or (not to_agent and any(one.people for one in (before, after) if one is not None)):
        weight -= 3
    return not (weight < FOUND or (weight < _CLEAR + 2 and REPORTED.search(text)))


# --- all markers ---------------------------------------------------------------------------------------------------


def markers_in(text: str, tools: Sequence[str] = ()) -> Iterator[str]:
    """Yield the marker types in a text that isn't harmless, without duplicates.

    ``tools`` are the names of the agent's tools.
    """
    found: dict[str, None] = {}
    leaves = texts_in(text)
    for leaf in leaves:
        found.update(dict.fromkeys(_markers_of(leaf, tools)))
    if "encoded_text" not in found and any(has_order(folded(plain), tools, hidden=True) for plain in payloads(text)):
        found["encoded_text"] = None
    if not text.isascii() and SUSPICIOUS.search(_BIDI_OVERRIDE.sub("", _FLAG.sub("", text))):
        found["invisible_text"] = None
    if not text.isascii() and _BIDI_OVERRIDE.search(text):
        found["bidi_control"] = None
    yield from found


def readable(text: str) -> str:
    """Return a text without quotations and with its wrapped lines joined."""
    text = without_entities(text)
    return _bare(text, REPORTED.search(folded(text)) is not None)


def _bare(text: str, reported: bool) -> str:
    return _WRAPPED.sub(" ", _without_quotations(text, reported))


def _markers_of(text: str, tools: Sequence[str]) -> Iterator[str]:
    text = without_entities(text)
    plain = folded(text)
    reported = REPORTED.search(plain) is not None
    bare = _bare(text, reported)
    signs = "<" in bare or "[" in bare or "#" in bare
    forged = signs and not _TEMPLATE.search(text) and ((_CHAT_TOKEN.search(bare) and not reported) or _ROLE_TAG.search(bare))
    if forged or _FALSE_END.search(bare):
        yield "role_marker"
    if _CUSTOMER.search(bare) is not None:
        bare = _SPEAKER.sub(r"\1", bare)
    shown = folded(bare)
    if (
        has_order(shown, tools)
        or any(has_order(reading, tools) for reading in disguises(shown))
        or (not forged and _calls(bare) and not _reads_like_others(bare, shown))
        or (not is_harmless(bare) and _reads_like_orders(bare))
    ):
        yield "instruction_override"


_ALIKE = 1.25
"""Minimum model score (:mod:`..text_model`) of a passage whose words alone are no evidence."""
_UNLIKE = -1.0
"""If every passage has at most this model score, addressing an agent by name doesn't count."""
_PASSAGES = 40


def _reads_like_orders(text: str) -> bool:
    model = text_model("orders")
    likely = (passage for passage, alone in _passages(text) if alone or not is_harmless(passage))
    return any(model.score(passage) > _ALIKE for passage in islice(likely, _PASSAGES))


def _reads_like_others(text: str, shown: str) -> bool:
    """Return True if no passage reads like an instruction, neither raw nor without disguise.

    Returns False for long texts.
    """
    model = text_model("orders")
    for reading in (text, shown):
        passages = [passage for passage, _ in islice(_passages(reading), _PASSAGES + 1)]
        if len(passages) > _PASSAGES or any(model.score(passage) > _UNLIKE for passage in passages):
            return False
    return True


def _passages(text: str) -> Iterator[tuple[str, bool]]:
    """Yield pairs of adjacent sentences, and True if a pair is the whole text."""
    parts = [part for part in _PASSAGE_ENDS.split(text) if part.strip()]
    for at in range(max(1, len(parts) - 1)) if parts else ():
        yield " ".join(parts[at : at + 2]), len(parts) <= 2


_PASSAGE_ENDS = re.compile(r"(?<=[.!?。！？])\s+|\n+")


def _calls(text: str) -> bool:
    shown = folded(marked(text))
    if calls(_sentences(shown), shown):
        return True
    return any(calls(_sentences(unseen), unseen, hidden=True) for unseen in map(folded, unseen_in(marked(text))))
