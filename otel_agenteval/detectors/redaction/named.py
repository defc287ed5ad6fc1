"""Find secrets by a nearby name: in assignments, arguments, markup, tables, on the next line, or in a sentence.

:mod:`.words` finds names of secrets, such as ``password``. Each *frame* then searches for the name's value in one notation, for
example after ``=``. A value after a strong name such as ``password`` requires less evidence than a value after a weak name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..texts import Span, lazy
from .tables import cells_in
from .words import (
    CODE,
    KEY,
    PASSWORD,
    PATH,
    PLAIN,
    Name,
    is_chosen,
    is_mixed,
    is_nothing,
    is_random,
    may_name,
    names_in,
    strength_of,
)

Frame: TypeAlias = "Callable[[str, Name], Iterator[NamedValue]]"


class NamedValue(NamedTuple):
    start: int
    end: int
    is_sure: bool = False
    """True if the text in this position is certainly a value. After a password's name, an everyday word can then be a secret."""


def named_secrets(text: str, lowered: str) -> Iterator[Span]:
    names = list(names_in(text, lowered))
    last_end = 0
    for name in names:
        if name.start < last_end or (name.strength < PASSWORD and _COUNT.match(text, name.end) is not None):
            continue  # inside a value, or a count such as {"total_tokens": 12}
        for frame in _frames_of(text, name):
            values = frame(text, name)
            secrets = [value for value in values if _is_secret(name.strength, text[value.start : value.end], value.is_sure)]
            if secrets:
                spans = [(value.start, _whole_end(text, value)) for value in secrets]
                last_end = max(end for _, end in spans)
                yield from spans
                break
    yield from (
        (cell.start, cell.end)
        for cell in cells_in(text, [name.start for name in names])
        if _is_cell_secret(strength_of(cell.head), text[cell.start : cell.end], cell.sure)
    )


def _is_cell_secret(strength: int, value: str, is_sure: bool) -> bool:
    is_number = value.isdigit() and len(value) < 6
    return _CELL_VALUE.fullmatch(value) is not None and not is_number and _is_secret(strength, value, is_sure)


def is_named_secret(strength: int, value: str) -> bool:
    return _is_secret(strength, value, is_sure=True) and not (value.isdigit() and strength < PASSWORD)


def _is_secret(strength: int, value: str, is_sure: bool) -> bool:
    if not strength or len(value) < 3 or is_nothing(value) or _is_code(value):
        return False
    if strength == PASSWORD:
        if is_chosen(value) or (value.isdigit() and 6 <= len(value) <= 12):
            return True
        if not is_sure or " " not in value:
            return is_sure
        return not (value.count(" ") > 6 or _SENTENCE_MARK.search(value) or may_name(value.lower()))
    if " " in value or PATH.fullmatch(value) is not None:
        return False
    if strength == KEY:
        return is_mixed(value, least=6) and (is_sure or (is_chosen(value, least=8) and any(sign.isdigit() for sign in value)))
    return is_sure and is_random(value)


def _is_code(value: str) -> bool:
    if CODE.fullmatch(value) is not None and not any(sign.isdigit() for sign in value.rpartition(".")[2]):
        return True
    return _IDENTIFIER.fullmatch(value) is not None and strength_of(value) > 0


_COUNT = lazy(r"\\{0,7}[\"']\s{0,4}:\s{0,4}(?:[0-9]{1,12}|null)\s{0,40}[,}\]]")  # {"total_tokens": 12}
_CELL_VALUE = lazy(r"[^\s(){}\"]+")
_SENTENCE_MARK = lazy(r"[(){}:;,]|\.\s|\Z(?<=\.)")
_IDENTIFIER = lazy(r"[&*]?\$?(?:[A-Za-z0-9]*[._-])+[A-Za-z0-9]+|[a-z]+(?:[A-Z][a-z]+)+")  # config.db_password, dbPassword

# --- notations of values

_MAX_VALUE, _MAX_KEYS, _MAX_NAME = 500, 20, 200
_UNQUOTED_CHARACTER = r"[^\s\"'`,;&<>(){}\[\]\\|]"
_UNQUOTED_VALUE = lazy(
    rf"{_UNQUOTED_CHARACTER}{{1,{_MAX_VALUE}}}(?:[,;&](?![\w.-]{{1,30}}\s?[=:]|[\s\"'`<>(){{}}\[\]\\|]|\Z){_UNQUOTED_CHARACTER}{{0,500}}){{0,20}}"
)
_REMAINDER = lazy(rf"{_UNQUOTED_CHARACTER}{{0,8000}}")
_QUOTE = lazy(r"[bfrnuN@]{0,2}(\\{0,3}[\"'`])")  # ", b', \"
_MAX_QUOTATION = 2_000
_END_OF_VALUE = lazy(r"[ \t]*(?:\Z|[\r\n&;,#\"'`)])")
_NEXT_KEY = lazy(r"[a-z][a-z_.-]*[=:]|[A-Z_]+[=:]")  # user=, USER:
_BEFORE_QUOTE = lazy(
    r"(?:(?:[\w.$]{1,60}(?:[\[(][^\[\]()\n]{0,60}[\])])?\s{0,4}(?:\|\||\?\?|\?:|\bor\b)|[\w.$]{1,60}\sif\s[\w.$]{1,60}\selse)\s{0,4}){1,3}(?=[\"'`])"
    r"|(?:new\s)?(?:[\w.]{0,40}\.)?(?:\w{0,20}Secret\w{0,20}|String|Buffer\.from|b64decode|atob)(?:\.\w{1,20})?\(\s{0,8}(?=[bru]?[\"'`])"
)
"""Pattern for code before a quoted value, such as ``os.getenv("KEY") or`` or ``Buffer.from(``."""
_BRACED = lazy(r"=\s?\{([^{}\n]{3,128}(?:\}\}[^{}\n]{0,64}){0,4})\}(?=(;)?)")  # Pwd={…};


def _quotation_at(text: str, at: int) -> Span | None:
    """Return the range of the quoted text at ``at``, or None. Text after an unclosed double quote ends at the end of the line."""
    if (opening := _QUOTE.match(text, at)) is None:
        return None
    start, mark, is_escaped = opening.end(), opening.group(1)[-1], len(opening.group(1)) > 1  # \"value\"
    line_end = text.find("\n", start, start + _MAX_QUOTATION)
    limit = line_end if line_end >= 0 else min(len(text), start + _MAX_QUOTATION)
    end = text.find(mark, start, limit)
    while end > start and text[end - 1] == "\\" and not is_escaped:  # a mark inside the value
        end = text.find(mark, end + 1, limit)
    if end < 0:
        end = limit if mark == '"' and (line_end >= 0 or limit == len(text)) else start
    if end <= start:
        return None
    return start, len(text[:end].rstrip("\\")) if is_escaped else end


def _whole_end(text: str, value: NamedValue) -> int:
    """Return the complete value's end. Patterns match only ``_MAX_VALUE`` characters of a value, to keep the search time linear."""
    remainder = _REMAINDER.match(text, value.end) if value.end - value.start >= _MAX_VALUE else None
    return remainder.end() if remainder is not None else value.end


def _value_at(text: str, at: int) -> NamedValue | None:
    """Return the value at ``at``, or None. A value is quoted text, or a word that isn't part of a sentence or code."""
    quoted = _quotation_at(text, at)
    if quoted is None and (code := _BEFORE_QUOTE.match(text, at)) is not None:
        quoted = _quotation_at(text, code.end())
    if quoted is not None:
        return NamedValue(*quoted, is_sure=True)
    bare = _UNQUOTED_VALUE.match(text, at)
    if bare is None or text[bare.end() : bare.end() + 1] in ("(", "[", "{"):
        return None
    before = text[at - 1]
    word = bare.group().rstrip(".?") if at and before == " " else bare.group()
    if before in "\n \t" and _NEXT_KEY.match(word) is not None and "\n" in text[max(0, at - 6) : at]:
        return None
    is_sure = True
    if PLAIN.fullmatch(word) is not None:
        is_alone = _END_OF_VALUE.match(text, bare.end()) is not None and (before not in " \t\n" or word.islower())
        is_sure = len(word) >= 6 and (before == "=" or is_alone)
    return NamedValue(at, at + len(word), is_sure)


# --- frames

_CLOSE = r"(?:['’]s)?[\"'`*_\])}]{0,4}\\{0,3}[\"']?(?:[ \t]?\([^()\n]{1,30}\)|\[[^\[\]\n]{0,30}\])?"
_ASSIGNS = lazy(rf"{_CLOSE}\s{{0,4}}(?:=>|:=|->|<-|\u2192|==?|:|\uff1a)[*_]{{0,2}}\s{{0,4}}")
_TYPED = lazy(r"[ \t]{0,2}:?[ \t]{0,2}&?[A-Za-z][\w<>\[\]?]{0,15}[ \t]{0,2}=[ \t]{0,2}(?=[\"'A-Z])")  # password: str = "…"


def _assigned(text: str, name: Name) -> Iterator[NamedValue]:
    """Yield the value in ``password = …``, ``"password": …``, or ``Password=…``."""
    sign = _TYPED.match(text, name.end) or _ASSIGNS.match(text, name.end)
    value = _value_at(text, sign.end()) if sign is not None else None
    braced = _BRACED.match(text, name.end)
    if value is not None:
        yield value
    elif braced is not None and (braced.group(2) or text[name.start - 1 : name.start] == ";"):  # of ODBC
        yield NamedValue(*braced.span(1))


_COMMA = lazy(r"[\])]?[\"'](?:\s{0,4},\s{0,4}|\)\.[a-z_]{1,20}\(\s?)(?=[\"'])|\(\s?(?=[\"'])", re.IGNORECASE)
_QUOTE_AND_BRACKET = lazy(r"[\"']\s{0,4}[)\]]")


def _argument(text: str, name: Name) -> Iterator[NamedValue]:
    """Yield the value in ``["--password", "…"]``, ``set_password("…")``, or similar code."""
    comma = _COMMA.match(text, name.end)
    quoted = _quotation_at(text, comma.end()) if comma is not None else None
    if comma is None or quoted is None or (comma.group()[0] == "(" and _QUOTE_AND_BRACKET.match(text, quoted[1]) is None):
        return
    is_name_only = text[name.start - 2 : name.start - 1] in ("(", "[") or text[name.start : name.end].isupper()
    is_pair = name.strength == PASSWORD and is_name_only and _QUOTE_AND_BRACKET.match(text, quoted[1]) is not None
    yield NamedValue(*quoted, is_sure=is_pair or text[name.start] == "-")


_SPACE = lazy(r"(?:['’]s)?[ \t]{1,4}(?:[0-9] )?(?=\S)")
_COMMAND_BEFORE = lazy(  # "ENV ", "machine example.com login ada "
    r"(?:\b(?:ENV|ARG|SetEnv|setx|fastcgi_param|config set)|(?:machine\s{1,4}\S{1,100}|default)\s{1,40}login\s{1,4}\S{1,100})\s{1,40}\Z",
    re.IGNORECASE,
)
_SQL_BEFORE = lazy(r"(?:user|role|login|encrypted|with|alter|create|set)\b[^;\n]{0,80}\Z", re.IGNORECASE)  # CREATE USER ada
_DIRECTIVES = ("requirepass", "masterauth")


def _spaced(text: str, name: Name) -> Iterator[NamedValue]:
    """Yield the value in ``--password …``, ``ENV DB_PASSWORD …``, or similar commands."""
    if (space := _SPACE.match(text, name.end)) is None:
        return
    word, before = text[name.start : name.end].lower(), text[max(0, name.start - 120) : name.start]
    is_sure = word.startswith("-") or word in _DIRECTIVES or _COMMAND_BEFORE.search(before) is not None
    if (quoted := _quotation_at(text, space.end())) is not None:
        yield NamedValue(*quoted, is_sure=is_sure or _SQL_BEFORE.search(before) is not None)
        return
    bare = _UNQUOTED_VALUE.match(text, space.end())
    if bare is not None and bare.group()[0] not in "-*" and text[bare.end() : bare.end() + 1] not in ("(", "[", "{"):
        yield NamedValue(bare.start(), bare.start() + len(bare.group().rstrip(".?")), is_sure)


_WORD = lazy(r"[ \t\u3000:*`\"'“”«»„「『（(_]{0,6}([^\s\"'`«»“”„‘’「」『』<>,;()\[\]{}|（），。、؛،]{6,64})")
_COPULA = lazy(
    r"(?:['’]s|,?\s(?:c['’]est|is|are|was|to|now|remains|ist|lautet|heißt|heisst|war|wird|es|est|sera|será|sarà|être|é|è|e'|a|à|em|en|auf|naar|brzmi|je|zní|är|er|on|este|és|adalah|ialah|là|yw"
    r"|będzie|είναι|это|на|є|هي|هو|היא|הוא)(?=[\s:*`\"'“«„])|\s[—–-]\s|(?<![0-9])[:：=→]|\sfrom(?=\s))",
    re.IGNORECASE,
)
_SENTENCE_ENDS = lazy(r"[.!?;]\s|[\n\"{}\[\]|<>`]")
_MAX_DISTANCE = 60
_AFTER_NAME = lazy(r"[\"'”»`*)\]]{0,3}(?P<gap>['’]s\s|[ \t,]|:[ \t])")
_SIGNS_OF_IS = (":", "\uff1a", "=", "\u2192")


def _in_sentence(text: str, name: Name) -> Iterator[NamedValue]:
    """Yield the value in ``the password for the router is …``, in languages with spaces."""
    if (after_name := _AFTER_NAME.match(text, name.end)) is None:
        return
    sentence_end = _SENTENCE_ENDS.search(text, after_name.end(), name.end + _MAX_DISTANCE)
    limit = sentence_end.start() + 1 if sentence_end is not None else min(len(text), name.end + _MAX_DISTANCE)
    for copula in _COPULA.finditer(text, after_name.start("gap"), limit):
        is_far = copula.group() in _SIGNS_OF_IS and copula.start() - name.end > 24
        word = _WORD.match(text, copula.end()) if not is_far else None
        if word is not None:
            yield _trimmed(text, *word.span(1))


def _trimmed(text: str, start: int, end: int) -> NamedValue:
    while start < end and text[start] in "*_`":
        start += 1
    foreign = start  # scripts other than Latin, Greek and Cyrillic
    while foreign < end and text[foreign] < "\u0530":
        foreign += 1
    return NamedValue(start, start + len(text[start:foreign].rstrip("*_`.:?…")))


_GAP_WITHOUT_SPACES = lazy(r"[^\x21-\x7e\n。！？；]{0,14}[\s:：=\"“「『（(`*]{0,4}(?=[!-~]{6})")


def _unspaced(text: str, name: Name) -> Iterator[NamedValue]:
    """Yield the first Latin word after a name in a script without spaces, as in ``密码是…``."""
    is_unspaced = max(text[name.end - 1 : name.end + 1]) > "\u0530"
    gap = _GAP_WITHOUT_SPACES.match(text, name.end) if is_unspaced else None
    word = _WORD.match(text, gap.end()) if gap is not None else None
    if word is not None:
        yield _trimmed(text, *word.span(1))


_LINE_BREAK = lazy(  # " is:\n…\n"
    r"(?:[ \t](?:is|ist|lautet|es|est|è|é))?[^\w\n(=]{0,6}(?:\([^()\n]{1,30}\)[^\w\n=]{0,4})?\r?\n(?:[ \t>*`=-]{0,40}\r?\n){0,2}[ \t>*`\"'-]{0,10}(\S{6,64}?)[*_`\"']{0,3}[ \t]*(?=\r?\n|\Z)"
)
_LABEL_BEFORE = lazy(r"(?:\A|\n)[^\n]{0,60}\Z")


def _on_next_line(text: str, name: Name) -> Iterator[NamedValue]:
    line = _LINE_BREAK.match(text, name.end)
    if line is None or (name.strength < PASSWORD and ":" not in text[name.end : line.start(1)]):
        return
    if _NEXT_KEY.match(line.group(1)) is None and _LABEL_BEFORE.search(text, max(0, name.start - 61), name.start) is not None:
        yield NamedValue(*line.span(1))


_IN_TAG = lazy(r"<[^<>]{0,200}\Z")
_TAGS = r"(?:</?([A-Za-z][\w:.-]{0,30})(?:\s[^<>]{0,80})?>\s{0,8})"
_AFTER_TAG = lazy(rf"[^<>]{{0,200}}>\s{{0,8}}{_TAGS}{{0,5}}([^<>\n]{{3,200}}?)\s{{0,8}}<")
_BEFORE_TAG = lazy(
    rf"(?:[ \t](?:is|ist|lautet|es|est|è|é))?[^\w<>]{{0,4}}\s{{0,8}}{_TAGS}{{1,5}}[:\s]{{0,4}}([^<>\n]{{3,200}}?)\s{{0,8}}<"
)
_VALUE_TAG = lazy(r"(?:value|string|val|v|data|\w*password)", re.IGNORECASE)
_ATTRIBUTE = lazy(  # " type="text" value="…"
    r"[\"'](?:\s{1,4}[\w:-]{1,30}\s?=\s?(?:\"[^\"<>]{0,80}\"|'[^'<>]{0,80}')){0,4}\s{1,4}(?:value|content)\s?=\s?(?=[\"'])",
    re.IGNORECASE,
)
_ATTRIBUTE_BEFORE = lazy(r"value\s?=\s?[\"']([^\"'<>]{2,200})[\"'][^<>]{0,80}?\s(?:name|key|id)\s?=\s?[\"']\Z", re.IGNORECASE)


def _in_markup(text: str, name: Name) -> Iterator[NamedValue]:
    """Yield the value in ``<password>…</password>``, an ``<input>``, or a table cell."""
    attribute = _ATTRIBUTE.match(text, name.end)
    quoted = _quotation_at(text, attribute.end()) if attribute is not None else None
    if quoted is not None:
        yield NamedValue(*quoted, is_sure=True)
    is_quoted = text[name.start - 1 : name.start] in ('"', "'")
    attribute = _ATTRIBUTE_BEFORE.search(text, max(0, name.start - 320), name.start) if is_quoted else None
    if attribute is not None:
        yield NamedValue(*attribute.span(1), is_sure=True)
    is_in_tag = _IN_TAG.search(text, max(0, name.start - 201), name.start) is not None
    pattern = _AFTER_TAG if is_in_tag else _BEFORE_TAG
    element = pattern.match(text, name.end) if "<" in text[name.end : name.end + 400] else None
    if element is not None:
        yield NamedValue(*element.span(2), is_sure=is_in_tag or _VALUE_TAG.fullmatch(element.group(1) or "") is not None)


_ROW_BEFORE = lazy(r"(?:\A|\n)[ \t]{0,8}\|[^\n]{0,200}\Z")  # "\n| "
_CELL = lazy(r"[*_`:： ]{0,6}\|[ \t]{0,20}[`*_]{0,3}([^\s|]{6,64}?)[`*_]{0,3}[ \t]{0,20}\|")


def _in_next_cell(text: str, name: Name) -> Iterator[NamedValue]:
    """Yield the value in ``| Password | … |``."""
    cell = _CELL.match(text, name.end)
    if cell is not None and _ROW_BEFORE.search(text, max(0, name.start - 200), name.start) is not None:
        yield NamedValue(*cell.span(1))


_NAME_KEY = r"(?:name|key|k|field|label|id|variable|var|title|property|attribute|header|question|type|selector|element|locator|placeholder)"
_VALUE_KEY, _TEXT_KEY = r"(?:\w{0,20}values?|val|v|default)", r"(?:text|content|data|answer)"
_NAME_KEY_BEFORE = lazy(  # "name": "DB_, --name=
    rf"(?:{_NAME_KEY}[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?|\b(?:variable|secret|parameter)\s{{1,4}}\"|--name[ =][\"']?)(?:[^\"'\n:,]{{1,40}})?\Z",
    re.IGNORECASE,
)
_BETWEEN = r"(?:[^\"'\n:,]{0,20}[\"'])?(?:[\s,;{]{1,40}[\"']?[\w-]{1,30}[\"']?\s{0,4}[:=]\s{0,4}(?:[\"'][^\"'\n]{0,80}[\"']|[\w.-]{1,40})){0,3}?"
_SIBLING = lazy(  # ", "value": …
    rf"{_BETWEEN}[\s,;{{]{{1,40}}[\"']?(?:(?:{_VALUE_KEY}|({_TEXT_KEY}))[\"']?\s{{0,4}}[:=]|--value[ =])\s{{0,4}}\[?\s{{0,4}}(?=\S)",
    re.IGNORECASE,
)
_SIBLING_BEFORE = lazy(
    rf"{_VALUE_KEY}[\"']?\s{{0,4}}[:=]\s{{0,4}}(?:\"([^\"\n]{{2,500}})\"|'([^'\n]{{2,500}})'|([^\s\"',;]{{2,500}}))[\s,;]{{1,40}}[\"']?\w{{0,20}}{_NAME_KEY}[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?\Z",
    re.IGNORECASE,
)


def _sibling(text: str, name: Name) -> Iterator[NamedValue]:
    """Yield the value in JSON or YAML such as ``{"name": "DB_PASSWORD", "value": "…"}``."""
    if _NAME_KEY_BEFORE.search(text, max(0, name.start - 90), name.start) is None:
        return
    if (after := _SIBLING.match(text, name.end)) is not None:
        bare = _UNQUOTED_VALUE.match(text, after.end())
        span = _quotation_at(text, after.end()) or (bare.span() if bare is not None else None)
    else:
        before = _SIBLING_BEFORE.search(text, max(0, name.start - 600), name.start)
        span = before.span(before.lastindex or 3) if before is not None else None
    if span is not None:
        yield NamedValue(*span, is_sure=after is None or after.group(1) is None)


_IS_NAME_KEY, _IS_VALUE_KEY = lazy(rf"\w{{0,20}}{_NAME_KEY}", re.IGNORECASE), lazy(_VALUE_KEY, re.IGNORECASE)


def named_beside(entry: Mapping[Any, Any]) -> tuple[str, Collection[Any]] | None:
    """Return an entry's name and the keys of its values: ``("KEY", ["value"])`` for ``{"name": "KEY", "value": "…"}``. Or None."""
    value_keys = [key for key in entry if isinstance(key, str) and _IS_VALUE_KEY.fullmatch(key) is not None]
    if not value_keys or len(entry) > _MAX_KEYS:
        return None
    names = (entry[key] for key in entry if isinstance(key, str) and _IS_NAME_KEY.fullmatch(key) is not None)
    first_name = next((name for name in names if isinstance(name, str) and 0 < len(name) <= _MAX_NAME), None)
    return (first_name, value_keys) if first_name is not None else None


_AS_THE = lazy(  # " as the ", " is my "
    r"[\"'`»”]?\s(?:as|for|como|comme|come|als|jako|som|(?:is|es|est|è|é|ist)(?=\s(?:the|la|el|le|il|o|a|das|my|mi|mon)\s))\s(?:(?:the|a|my|your|his|her|its|their|new|la|el|le|il|o|das|mein|mi|tu|mon|ma|admin|root)\s){0,2}\Z",
    re.IGNORECASE,
)
_WORD_LIMITS = " \t\r\n\"'`«»“”„,;()"


def _named_after_value(text: str, name: Name) -> Iterator[NamedValue]:
    """Yield the value in ``use … as the password``."""
    as_the = _AS_THE.search(text, max(0, name.start - 40), name.start) if text[name.start - 1 : name.start] == " " else None
    if as_the is not None:
        start = as_the.start()
        while start > max(0, as_the.start() - 64) and text[start - 1] not in _WORD_LIMITS:
            start -= 1
        yield NamedValue(start, as_the.start())


def _frames_of(text: str, name: Name) -> Sequence[Frame]:
    """Return the frames to try for a name, or only :func:`_sibling` for cookie and authorization headers (see :mod:`.secrets`)."""
    if text[name.start : name.end].lower().endswith(("cookie", "authorization")):
        return (_sibling,)
    is_in_path = text[name.start - 1 : name.start] == "/"  # or a flag: "/password=…"
    return _FRAMES[:2] if is_in_path else _FRAMES


_FRAMES: tuple[Frame, ...] = (
    _assigned, _sibling, _argument, _spaced, _in_markup, _in_next_cell, _unspaced, _in_sentence, _on_next_line, _named_after_value,
)  # fmt: skip
