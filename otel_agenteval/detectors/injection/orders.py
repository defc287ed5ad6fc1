"""Find orders (instructions to an agent) in tool results and other untrusted texts."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from ...core import jsonio
from ...core.caches import remembered
from ..texts import has_any
from .calls import calls_machine
from .model import Rated, order_model
from .normalise import SUSPICIOUS, disguises, folded, is_mixed, may_hide, payloads
from .readers import ATTACK, ATTACKS, REPORTED, marked

_MIN_SCORE = 0.8
"""Minimum score of an order: the model's log-odds plus the evidence scores below."""
_MIN_SURE_SCORE = 2.0
"""Minimum score of an order that clearly isn't meant for people. No harmless whole turn in the labeled data scores this high."""
_ADDRESS_EVIDENCE = 2.0
"""Score added if the text addresses an AI and makes a demand."""
_HIDDEN_EVIDENCE = 1.0
"""Score added if people can't see the text."""
_REPORT_EVIDENCE = 2.0
"""Score subtracted if the text is about attacks."""
_OVERRIDE_EVIDENCE = 2.0
"""Score added if the passage cancels earlier instructions."""
_MIN_ADDRESSED_SCORE = -0.8
"""Addressing an AI is evidence only for passages with a model score above this value."""


class Marker(NamedTuple):
    """A sign of prompt injection in a text."""

    kind: str
    start: int
    end: int
    is_sure: bool
    """False if the passage can also be an instruction to people. Always False for ``invisible_text`` and ``bidi_control``."""


@remembered
def markers_in(text: str) -> tuple[Marker, ...]:
    """Return the signs of prompt injection in a text, at most one of each kind."""
    if _has_signs(text):
        return tuple(_orders_in(text, texts_in(text)) + _hidden_in(text))
    model, is_latin = order_model(), text.isascii()
    rated = model.rate(text)
    disguised = [(reading, model.rate(reading)) for reading in disguises(text.lower())]  # "1gn0re" also reads "ignore"
    if not rated.may_exceed(_MAX_QUIET_SCORE, is_latin) and not disguised:
        return ()

    def reads_like_orders() -> bool:
        return any(ratings.exceeds(_MAX_QUIET_SCORE, is_latin) for ratings in (rated, *(ratings for _, ratings in disguised)))

    if is_structured(text):  # rating all its texts would be slow
        return tuple(_orders_in(text, texts_in(text))) if reads_like_orders() else ()
    markers = _orders_in(text, [text], rated, disguised if is_latin else None)
    return tuple(markers) if markers and reads_like_orders() else ()


def _orders_in(
    result: str, texts: list[str], rated: Rated | None = None, disguised: list[tuple[str, Rated]] | None = None
) -> list[Marker]:
    """Return at most one forged role and one instruction. Callers can pass a single text's ratings (``rated``, ``disguised``)."""
    markers: dict[str, Marker] = {}
    for text in texts:
        if ("instruction_override" in markers or not _has_enough_words(text)) and not has_any(text, _ROLE_MARKS):
            continue
        result_text = _ResultText(text, rated, disguised)
        forged_role = result_text.role_marker(result)
        kind = "role_marker" if forged_role is not None else "instruction_override"
        if kind in markers:
            continue
        order = (forged_role, True) if forged_role is not None else result_text.order()
        if order is not None:
            passage, is_sure = order
            markers[kind] = Marker(kind, *_span_of(result, passage), is_sure)
    return list(markers.values())


def _hidden_in(text: str) -> list[Marker]:
    """Return the first encoded instruction, invisible text, and bidirectional control, if any."""
    markers = [
        Marker("encoded_text", start, end, True)
        for plain, start, end in payloads(text)
        if _likeliest_order(folded(plain), hidden=True) is not None
    ][:1]
    if may_hide(text):
        without_flags = _FLAG.sub(lambda flag: " " * len(flag.group()), text)
        for kind, match in (
            ("invisible_text", SUSPICIOUS.search(_BIDI_OVERRIDE.sub(" ", without_flags))),
            ("bidi_control", _BIDI_OVERRIDE.search(text)),
        ):
            if match is not None:
                markers.append(Marker(kind, *match.span(), False))
    return markers


def _span_of(text: str, passage: str) -> tuple[int, int]:
    for spelled in (passage, jsonio.text_of([passage])[2:-2]):
        start = text.find(spelled)
        if start >= 0:
            return start, start + len(spelled)
    return 0, len(text)


# --- orders in a text


def readable(text: str) -> str:
    """Return a text without quotations, and with wrapped lines joined."""
    return _ResultText(text).unquoted


class _ResultText:
    """A text in a tool result. ``unquoted`` has no quotations. For transcripts, ``spoken`` also has no ``Agent:`` labels."""

    def __init__(
        self, text: str, rated: Rated | None = None, disguised: Sequence[tuple[str, Rated | None]] | None = None
    ) -> None:
        self.text = html.unescape(text) if "&" in text else text
        unquoted = _without_quotations(self.text, lambda: self.is_reported)
        self.unquoted = _LINE_WRAP.sub(lambda wrap: " " * len(wrap.group()), unquoted) if "\n" in unquoted else unquoted
        self.spoken = self.unquoted
        if (":" in self.unquoted or "：" in self.unquoted) and _CUSTOMER_LABEL.search(self.unquoted) is not None:
            self.spoken = _AGENT_LABEL.sub(lambda label: label[1].ljust(len(label.group())), self.unquoted)
        self._rated = rated if unquoted is text and self.spoken is self.unquoted else None  # joined lines have the same rating
        self._disguised = disguised if self.spoken is text else None

    @cached_property
    def is_reported(self) -> bool:
        return REPORTED.search(self._folded) is not None

    @cached_property
    def _folded(self) -> str:
        return folded(self.text)

    def role_marker(self, result: str) -> str | None:
        """Return a forged role or a false end of the document, or None."""
        unquoted = self.unquoted
        if "\n" in unquoted and (false_end := _FALSE_END.search(unquoted)) is not None:
            return false_end.group()
        match = _ROLE_TAG.search(unquoted) if "<" in unquoted or "##" in unquoted else None
        if match is None and ("<" in unquoted or "[" in unquoted):
            match = _CHAT_TOKEN.search(unquoted)
            if match is not None and self.is_reported:
                return None
        return match.group() if match is not None and _TEMPLATE.search(result) is None else None

    def addresses_machine(self) -> bool:
        text = marked(self.spoken)
        return calls_machine(self._folded if text == self.text else folded(text)) or any(
            calls_machine(folded(unseen), hidden=True) for unseen in hidden_texts(text)
        )

    def order(self) -> tuple[str, bool] | None:
        """Return ``(instruction, is_sure)`` for the most likely instruction, or None. See :attr:`Marker.is_sure`."""
        spoken = self.spoken
        if (order := _likeliest_order(spoken, self, may_be_called=True, rated=self._rated)) is not None:
            start, end, is_sure = order
            return self.text[start:end], is_sure
        for unseen in hidden_texts(spoken):
            if _likeliest_order(unseen, self, hidden=True) is not None:
                return unseen, True
        if (disguised := self._disguised) is None:
            disguised = [(reading, None) for reading in disguises(self._folded if spoken == self.text else folded(spoken))]
        for reading, rated in disguised:
            if _likeliest_order(reading, self, rated=rated) is not None:
                return self.text, True
        return None


def _likeliest_order(
    text: str, source: _ResultText | None = None, *, may_be_called: bool = False, hidden: bool = False, rated: Rated | None = None
) -> tuple[int, int, bool] | None:
    """Return ``(start, end, is_sure)`` of the most likely instruction, or None. See :attr:`Marker.is_sure`."""
    passages = list(passages_in(text)) if _has_enough_words(text) else []
    if not passages:
        return None
    rated = rated or order_model().rate(text)
    override = _OVERRIDE.search(text) if "instructions" in text.lower() else None
    override_start = override.start() if override is not None else -1
    scored = [
        (score, passage, _HIDDEN_EVIDENCE * hidden + _OVERRIDE_EVIDENCE * (passage[0] <= override_start < passage[1]))
        for score, passage in zip(rated.scores(passages), passages, strict=True)
    ]
    ranked = sorted(scored, key=lambda candidate: candidate[0] + candidate[2], reverse=True)[:_MAX_TRIED]
    best_score, _, evidence = ranked[0]
    may_be_called = may_be_called and best_score > _MIN_ADDRESSED_SCORE
    if best_score + evidence + _ADDRESS_EVIDENCE * may_be_called < 0:
        return None
    is_called = may_be_called and source is not None and source.addresses_machine()  # faster than the ratings below
    tried = []
    for score, passage, evidence in ranked:
        all_evidence = evidence + _ADDRESS_EVIDENCE * (is_called and score > _MIN_ADDRESSED_SCORE)
        if score + all_evidence >= 0:
            tried.append((score, passage, all_evidence))
    distinct_scores = rated.distinct_scores([passage for _, passage, _ in tried]) if tried else []
    for (score, (start, end), evidence), distinct_score in zip(tried, distinct_scores, strict=True):
        if distinct_score + evidence <= _MIN_SCORE or not _FEW_WORDS.search(text, start, end):
            continue
        less_doubt = evidence - _REPORT_EVIDENCE * (source is not None and source.is_reported)
        if score + less_doubt >= 0 and distinct_score + less_doubt > _MIN_SCORE:
            return start, end, distinct_score + less_doubt > _MIN_SURE_SCORE
    return None


def _has_enough_words(text: str) -> bool:
    """Return False if a text is too short to be an instruction, as most table cells are."""
    return len(text) > _SHORT or _FEW_WORDS.search(text) is not None


_MAX_TRIED = 2
_FEW_WORDS = re.compile(r"(?:[^\W_]{1,60}[\W_]{1,60}){2}[^\W_]|[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]{7}")
"""Pattern for a text that can be an order: three words, or seven unspaced characters."""
_MAX_PASSAGE = 400


def passages_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield the range of each pair of adjacent sentences, and of texts in brackets. Long pairs result in overlapping ranges."""
    marks = _PASSAGE_ENDS.finditer(text) if has_any(text, _END_MARKS) else ()
    limits = [0, *[mark.end() for mark in marks], len(text)]
    sentences = [(start, end) for start, end in pairwise(limits) if text[start:end].strip()]
    for (start, _), (_, end) in zip(sentences, sentences[1:] or sentences, strict=False):
        last_start = max(start + 1, end - _MAX_PASSAGE // 2)
        yield from ((part, min(part + _MAX_PASSAGE, end)) for part in range(start, last_start, _MAX_PASSAGE // 2))
    if has_any(text, _BRACKETS):
        yield from (aside.span(1) for aside in _IN_BRACKETS.finditer(text))


_END_MARKS = (".", "!", "?", "\n", "。", "！", "？")
_PASSAGE_ENDS = re.compile(r"[.!?。！？\n](?:(?<=\n)\n*|\s+)")
_BRACKETS = ("[", "(", "{", "（", "【")
_IN_BRACKETS = re.compile(r"[\[({（【]([^\])}）】\n]{30,400})[\])}）】]")
_LINE_WRAP = re.compile(r"(?<=[^\W\d_]|,)[ \t]*\n[ \t]*(?=[a-zà-ÿа-я])")


# --- obeyed orders

_TARGET = re.compile(
    r"https?://[^\s\"'<>()\[\]{}]+|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"  # links, addresses
    r"|(?<![\w.])[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,3})?\b|(?<![\w.])\d(?:[ -]?\d){5,}\b"  # accounts, phones
)
_NAME = re.compile(r"(?<![\w./~-])(?:(?:~|\.{0,2})/[\w./-]{3,}|[\w.-]+/[\w./-]*\.\w{1,8}\b|[A-Za-z]\w*_\w+)")
_SEPARATORS = re.compile(r"[\s-]")


def is_obeyed(order: str, known: Iterable[str], calls: Iterable[str]) -> bool:
    """Return True if a call contains an order's link, file, or other target. Targets in ``known`` texts don't count."""
    known_text = "\n".join(map(_comparable, known))
    named = (target for pattern in (_TARGET, _NAME) for target in map(_comparable, pattern.findall(order)))
    own_targets = {target for target in named if target not in known_text}
    later_calls = "\n".join(map(_comparable, calls))
    return any(target in later_calls for target in own_targets)


def _comparable(text: str) -> str:
    return _SEPARATORS.sub("", text).casefold().rstrip(".,;:!?")


# --- fast pre-check ------------------------------------------------------------------------------------------------

_MAX_QUIET_SCORE = 0.0
"""If no window of a text has a higher score, the text has no order, unless :func:`_has_signs` returns True."""
_FORGED_STARTS = (
    b"<|", b"[inst", b"[/inst", b"<<sys", b"<</sys", b"<system", b"</tool_re", b"</function_re", b"</search_re", b"# system", b"#system",
)  # fmt: skip


def _has_signs(text: str) -> bool:
    """Return True if a text might have forged roles, canceled instructions, or hidden text."""
    if "\\" in text and ("\\u" in text or "\\x" in text):
        return True
    if ("&" in text and "&#" in text) or ("%" in text and "%20" in text) or ("<" in text and "<!--" in text):
        return True
    if "=" in text and "style=" in text and ("display:" in text or "opacity:" in text or "font-size:0" in text):
        return True
    if (may_hide(text) and SUSPICIOUS.search(text)) or is_mixed(text):
        return True
    lowered = text.encode("ascii", "replace").lower()
    if has_any(text, ("<", "[", "#")) and has_any(lowered, _FORGED_STARTS):
        return True
    if b"instructions" in lowered and _OVERRIDE.search(text):
        return True
    if "\n" in text and b"end of " in lowered and _FALSE_END.search(text):
        return True
    return next(payloads(text), None) is not None


# --- markers in the raw text --------------------------------------------------------------------------------------

_CHAT_TOKEN = re.compile(  # <|im_start|>, [INST]
    r"<\|(?:im_start|im_end|im_sep|system|user|assistant|endoftext|eot_id|begin_of_text|start_header_id|end_header_id)\|>|\[/?inst\]|<</?sys>>",
    re.IGNORECASE,
)
_ROLE_TAG = re.compile(  # <system>You are …, </tool_result> …, ### System: …
    r"<system(?:[_-](?:prompt|message|instructions?|reminder))?>\s*(?:[^<>\s{]+\s+){2}[^<>\s]|</(?:tool_result|tool_response|function_results?|search_results)>\s*\S"
    r"|^\#{2,4}\s{0,3}system(?:\ (?:prompt|message))?\s{0,3}:\s*\S",
    re.IGNORECASE | re.MULTILINE,
)
_ROLE_MARKS = ("\n", "<", "[", "##", "&")
"""Fast pre-check: every text with a role tag, a chat token, or a false end of the document contains one of these strings."""
_FALSE_END = re.compile(  # END OF DOCUMENT, then on a new line SYSTEM
    r"\b(?:end|eof) of (?:the )?(?:tool|document|search|function|user|context|data|page|retrieved|file|untrusted|email)[ _]?(?:output|results?|data|content|input|call)?\b"
    r".{0,40}\s{0,5}(?:^|\n)\W{0,5}(?:system|user|assistant|developer|admin|human|new (?:task|instructions?|directive))\b",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(  # words of pages about prompt formats
    r"\{%|\{\{|chat[ _-]?template|chatml|\btokens?\b|tokeni[sz]er|chat format|prompt format|wrap the|special_tokens|bos_token|delimiter|separator",
    re.IGNORECASE,
)
_OVERRIDE = re.compile(  # ignore all previous instructions
    r"\b(?:ignore|disregard|forget|override)\s{1,9}(?:all\s{1,9}|any\s{1,9}|of\s{1,9}|the\s{1,9}|your\s{1,9}|my\s{1,9}|these\s{1,9}){0,3}(?:previous|prior|earlier|preceding|above|system)\s{1,9}instructions\b(?!\s{1,9}(?:if|when|unless|in|for|on)\b)",  # not the condition of a manual
    re.IGNORECASE,
)
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,7}\U000e007f")  # flags of England, Scotland, …: legitimate tags
_BIDI_OVERRIDE = re.compile("[\u202d\u202e]")


# --- quotations ----------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"```.{0,20000}?(?:```|\Z)|~~~.{0,20000}?(?:~~~|\Z)", re.DOTALL)
_BLOCKQUOTE = re.compile(r":\s{0,20}(?:</\w{1,20}>\s{0,20})?<blockquote(?:(?!<blockquote).){0,5000}?</blockquote>", re.DOTALL)
_CUSTOMER_LABEL = re.compile(  # Customer: …
    r"^\W{0,3}(?:\[?\d\d?:\d\d\]? )?(?:customer|user|visitor|client|kunde|kundin|cliente|caller|guest|klient\w?|klant|zákazník|müşteri|asiakas|ügyfél|kund|клиент|клієнт"
    r"|pelanggan|khách(?: hàng)?|客户|顾客|客|お客様|고객|العميل|לקוח|ग्राहक)\s?[:：]",
    re.MULTILINE | re.IGNORECASE,
)
_AGENT_LABEL = re.compile(  # [10:32] Agent: …
    r"((?:^|(?<=[.!?。！？] )|(?<=[.!?。！？؟]))(?:\W{0,3}|\s?\[?\d\d?:\d\d\]? ))"
    r"(?:agent|assist\w*(?: virtu\w+)?|asist\w*|bot|botti|chatbot|support|system|systeme|sistema|система|бот|ボット|机器人|봇|الروبوت|المساعد|בוט|बॉट)\s?[:：]",
    re.MULTILINE | re.IGNORECASE,
)
"""Pattern for speaker labels of agents, such as ``Agent:``, in a chat transcript."""
_CODE = re.compile(r"`[^`\n]{1,400}`")
_QUOTED = re.compile(
    r"“[^”\n]{3,600}[”“]|„[^“”\n]{3,600}[“”]|«[^»\n]{3,600}»|「[^」\n]{2,600}」|『[^』\n]{2,600}』|‘[^’\n]{12,400}’(?!\w)"
    r"|(?<![\w=])\"[^\"\n]{3,600}\"|(?<![\w=])'(?=\w)(?:[^'\n]|(?<=\w)'(?=\w)){8,400}'(?!\w)"
)
_QUOTES = ("“", "„", "«", "「", "『", "‘", '"', "'")
_CELL_END = re.compile(r"\s*(?:[\]},)|]|$)", re.MULTILINE)


def _without_quotations(text: str, is_reported: Callable[[], bool]) -> str:
    """Blank quotations and code blocks. In texts about attacks, also blank inline code and quoted cells or fields."""
    if "`" in text or "~" in text:
        text = _FENCE.sub(_blanked, text)
    if "<" in text and "<blockquote" in text:
        text = _BLOCKQUOTE.sub(_blanked, text)

    def blank(quotation: re.Match[str]) -> str:
        before = text[max(0, quotation.start() - 12) : quotation.start()].rsplit("\n", 1)[-1].rstrip()
        follows_key = before[-1:] == ":" and not before[:-1].endswith((" says", " said"))
        starts_cell = not before or before[-1] in "[,{(|=>" or follows_key
        if quotation.group()[0] in "\"'" and starts_cell and _CELL_END.match(text, quotation.end()) and not is_reported():
            return quotation.group()
        return _blanked(quotation)

    if has_any(text, _QUOTES):
        text = _QUOTED.sub(blank, text)
    if "`" in text:
        text = _CODE.sub(_blanked, text) if is_reported() else text.replace("`", " ")
    return text


def _blanked(match: re.Match[str]) -> str:
    length = match.end() - match.start()
    return " … ".ljust(length)[:length]


# --- texts of a result ---------------------------------------------------------------------------------------------

_ROLES = ("system", "user", "assistant", "tool", "developer", "human", "ai")
_SHORT = 120
"""Maximum length of a label. Texts up to this length are rated only if they have enough words."""
_MAX_JSON_DEPTH = 3
"""JSON text in a string is parsed only if the number of objects and lists around the string is below this limit."""
_FOR_MACHINES = re.compile(  # names of fields: "llm_hint", "note_for_ai"
    r"^(?:llm|ai|agent|assistant|bot)_?(?:hint|note|instruction|advice|message|directive|comment)s?$|(?:to|for)_(?:the_)?(?:llm|ai|agent|assistant|bot)$",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def _is_for_machines(key: str) -> bool:
    return _FOR_MACHINES.search(key) is not None


def is_structured(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def texts_in(text: str) -> list[str]:
    """Return the strings in JSON or JSON lines, except chat messages and short texts about attacks. Return other text unchanged."""
    if not is_structured(text):
        return [text]
    are_lines = text.lstrip()[0] == "{" and "\n{" in text
    texts: list[str] = []
    may_report = has_any(text.lower(), ATTACKS)
    for document in text.split("\n") if are_lines else [text]:
        try:
            _collect_texts(jsonio.loads(document), texts, 0, may_report)
        except (ValueError, RecursionError):
            texts.append(document)
    return texts


def _collect_texts(value: Any, texts: list[str], depth: int, may_report: bool) -> None:
    if isinstance(value, str):
        if depth < _MAX_JSON_DEPTH and value[:1] in ("{", "["):
            texts.extend(texts_in(value))
        else:
            texts.append(value)
    elif isinstance(value, list):
        for item in value:
            _collect_texts(item, texts, depth + 1, may_report)
    elif isinstance(value, dict) and not (value.get("role") in _ROLES and "content" in value):
        is_report = may_report and _reports_attacks(value)
        for key, item in value.items():
            if isinstance(item, (dict, list)):
                _collect_texts(item, texts, depth + 1, may_report)
            elif isinstance(item, str) and (not is_report or len(item) > _SHORT):
                _collect_texts(f"LLM: {item}" if _is_for_machines(key) else item, texts, depth + 1, may_report)


def _reports_attacks(fields: dict[str, Any]) -> bool:
    """Return True if an object mentions attacks, as in the finding of a security scanner."""
    labels = "\n".join(item for item in (*fields, *fields.values()) if isinstance(item, str) and len(item) < _SHORT)
    return has_any(labels.lower(), ATTACKS) and ATTACK.search(labels) is not None


# --- hidden text ---------------------------------------------------------------------------------------------------

_HIDDEN_TEXT = re.compile(
    r"[<(\[](?:(?<=<)(?:!--((?:(?!<!--).){10,2000}?)-->|(\w{1,20})\b[^>]{0,200}(?:display:\s?none|visibility:\s?hidden|opacity:\s?0(?![.\d])|font-size:\s?0|color:\s?(?:transparent|white|#fff(?:fff)?\b))[^>]{0,200}>(.{10,2000}?)</\2>)"
    r"|(?<!<)(?:white|hidden|invisible|tiny|weiße?|unsichtbar\w*|sehr klein|versteckt\w*|texte? (?:blanc|caché)|blanc|texto (?:blanco|oculto|branco)|testo (?:bianco|nascosto)|белый|скрыт\w+|白字|隐藏)[^)\]]{0,30}[)\]]:?\s?([^\n]{10,1000}))",
    re.IGNORECASE | re.DOTALL,
)


def hidden_texts(text: str) -> Iterator[str]:
    if "<" not in text and "(" not in text and "[" not in text:
        return
    for match in _HIDDEN_TEXT.finditer(text):  # a comment, an element's text, or text after "(white):"
        yield match.group(1) or match.group(3) or match.group(4)
