"""SQL: whether a text has its shape, and what a parser reads in it, in bounded time."""

from __future__ import annotations

import functools
import logging
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import MetricError
from ...core.extras import require

_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
_LITERAL_OR_COMMENT = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_VERB = re.compile(r"(?:select|insert|update|delete|with|create|alter|drop|merge)\b", re.IGNORECASE)
_AS = re.compile(r"\bas\b", re.IGNORECASE)
_PARENTHESIS = re.compile(r"[()]")


@dataclass(frozen=True, slots=True)
class Shape:
    """The four things that a text needs to look like SQL."""

    starts_with_verb: bool
    balanced_parentheses: bool
    even_single_quotes: bool
    even_double_quotes: bool

    @classmethod
    def of(cls, text: str) -> Shape:
        """The shape of a text; white space around it is ignored."""
        text = text.strip()
        bare = _LITERAL.sub(" ", text)
        verb = _VERB.match(text)
        return cls(
            starts_with_verb=verb is not None and (verb[0].lower() != "with" or _AS.search(bare, verb.end()) is not None),
            balanced_parentheses=_depth(bare) is not None,
            even_single_quotes=text.count("'") % 2 == 0,
            even_double_quotes=text.count('"') % 2 == 0,
        )

    @property
    def fits(self) -> bool:
        """Whether all four hold."""
        return self.starts_with_verb and self.balanced_parentheses and self.even_single_quotes and self.even_double_quotes


def _depth(bare: str) -> int | None:
    """How deep the parentheses go; None if they do not fit together."""
    depth = deepest = 0
    for found in _PARENTHESIS.finditer(bare):
        depth += 1 if found[0] == "(" else -1
        if depth < 0:
            return None
        deepest = max(deepest, depth)
    return None if depth else deepest


_PAIR = re.compile(r"\bselect\s+([A-Za-z_]\w*)\s+([A-Za-z_]\w*)\s+from\b", re.IGNORECASE)
_NOT_NAMES = frozenset(
    ("all", "distinct", "distinctrow", "false", "high_priority", "not", "null", "straight_join", "true", "unique")
)
_POSTFIX = frozenset(("isnull", "notnull"))
_UNFINISHED = re.compile(
    r"(?:\b(?:and|as|between|by|from|having|in|into|is|join|like|limit|not|on|or|select|set|table|union|where|with)"
    r"|(?<!default )\bvalues|[,=<>+*/.|-])\Z",
    re.IGNORECASE,
)
_ENDS_WITH_STAR = re.compile(r"(?:\bselect|,|\.)\s*\*\Z", re.IGNORECASE)


def bare(text: str) -> str:
    """The text without literals and comments."""
    return _LITERAL_OR_COMMENT.sub(" ", text)


def lacks_comma(bare_text: str) -> bool:
    """Whether somewhere just two names stand between SELECT and FROM: an alias, or more likely a forgotten comma."""
    return any(
        first.lower() not in _NOT_NAMES and not first.lower().startswith("sql_") and second.lower() not in _POSTFIX
        for first, second in _PAIR.findall(bare_text)
    )


def is_unfinished(bare_text: str) -> bool:
    """Whether the text breaks off after a word or sign that something must follow."""
    text = bare_text.rstrip("; \t\r\n")
    return _UNFINISHED.search(text) is not None and _ENDS_WITH_STAR.search(text) is None


PARSED_LIMIT = 10_000
"""Characters of a text that the parser reads: it is thorough, and slow."""

_DEEPEST = 20
_STEPS_AT_LEAST = 20_000
_STEPS_PER_TOKEN = 20
_CHAINED = re.compile(r"[)\]]\s*(?:[.:?]|->|#>)")
_MOST_COPIED = 50_000
"""Tokens times calls chained to others: the parser copies what it has of a chain at each of its calls."""
_DIALECTS = {
    "mariadb": "mysql", "mssql": "tsql", "postgresql": "postgres", "sqlserver": "tsql", "transactsql": "tsql",
}  # fmt: skip
"""Names of databases that the parser knows by another name."""

_STATEMENTS = frozenset((
    "Alter", "Comment", "Commit", "Copy", "Create", "Delete", "Describe", "Drop", "Except", "Grant", "Insert", "Intersect", "Merge",
    "Pragma", "Revoke", "Rollback", "Select", "Set", "Show", "Subquery", "Transaction", "TruncateTable", "Union", "Update", "Use",
    "Values",
))  # fmt: skip
_FROM_IS_OPTIONAL = frozenset(("bigquery", "fabric", "oracle", "tsql"))
_NO_LEADING_VERB = re.compile(r"(?:\A|;)[\s(]*(?:from|table)\b", re.IGNORECASE)


class TooComplex(Exception):
    """The parser would need more time or depth than a metric may take."""


@dataclass(slots=True)
class Reading:
    """What the parser read."""

    trees: list[Any]
    tables: list[str] = field(default_factory=list)
    """Names of the tables, as written, each once; what the text itself defines (CTEs) is none."""


def read(text: str, bare_text: str, dialect: str) -> Reading | None:
    """The statements of a text; None when it is not SQL.

    Raises:
        MetricError: there is no such dialect.
        MissingExtra: the package ``sqlglot`` is not installed.
        TooComplex: the parser cannot read it within bounds.
    """
    name = dialect.strip().lower()
    name = _DIALECTS.get(name, name)
    parser = _parser(name)
    depth = _depth(bare_text)
    if len(text) > PARSED_LIMIT or (depth or 0) > _DEEPEST:
        raise TooComplex
    chained = len(_CHAINED.findall(bare_text))
    trees = _parsed(parser, text, chained)
    if trees is None and not name and "`" in text:
        trees = _parsed(_parser("mysql"), text, chained)
    if not trees or not all(_is_statement(tree, name) for tree in trees):
        return None
    if not name and _NO_LEADING_VERB.search(bare_text):  # a query that begins with its FROM: prose, in most dialects
        return None
    return Reading(trees, list(dict.fromkeys(_table_names(trees))))


class _Silence(logging.Filter):
    """Keeps what the parser says about our texts (it quotes them) out of the application's log."""

    def __init__(self) -> None:
        super().__init__()
        self.here = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(self.here, "on", False)


_silence = _Silence()


@functools.lru_cache(maxsize=64)
def _parser(name: str) -> tuple[Any, Any]:
    """A dialect, and its parser with a limit on its steps."""
    require("sqlglot", feature="parsing SQL", extra="structured")
    from sqlglot import Dialect

    try:
        dialect = Dialect.get_or_raise(name)
    except ValueError:
        raise MetricError("invalid_dialect", f"there is no SQL dialect {name[:50]!r}") from None

    logging.getLogger("sqlglot").addFilter(_silence)
    base: Any = dialect.parser_class

    class Bounded(base):  # type: ignore[misc]
        """Gives up where trying all ways to read a text would take forever: a chain of joins can double the time each."""

        steps_left = 0

        def _advance(self, *times: int) -> None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise TooComplex
            super()._advance(*times)

    return dialect, Bounded


def _parsed(dialect_and_parser: tuple[Any, Any], text: str, chained: int) -> list[Any] | None:
    dialect, parser_class = dialect_and_parser
    _silence.here.on = True
    try:
        tokens = dialect.tokenize(text)
        if chained * len(tokens) > _MOST_COPIED:
            raise TooComplex
        parser = parser_class(dialect=dialect)
        parser.steps_left = _STEPS_AT_LEAST + _STEPS_PER_TOKEN * len(tokens)
        return [tree for tree in parser.parse(tokens, text) if tree is not None]
    except (TooComplex, RecursionError):
        raise TooComplex from None
    except Exception:  # ParseError, TokenError, and what slips through on odd input (IndexError)
        return None
    finally:
        _silence.here.on = False


def _is_statement(tree: Any, dialect: str) -> bool:
    """Whether what the parser made of a text is a statement: it takes a lone word for a column, "update it" for an UPDATE."""
    kind, args = type(tree).__name__, tree.args
    if kind in ("Select", "Update"):
        return bool(args.get("expressions"))
    if kind == "Insert":
        return bool(args.get("expression") or args.get("default"))
    if kind == "Delete":
        return bool(args.get("this")) or dialect in _FROM_IS_OPTIONAL
    if kind == "Copy":
        return bool(args.get("files"))
    if kind == "Use":
        return not getattr(tree.this, "alias", "")
    return kind in _STATEMENTS


def _table_names(trees: list[Any]) -> Iterator[str]:
    from sqlglot import exp

    for tree in trees:
        for table in tree.find_all(exp.Table, bfs=False):
            if table.name and _definition(table) is None:
                yield ".".join(part.name for part in table.parts)


def _definition(table: Any) -> Any:
    """The CTE that a table's name stands for, or None if it is a real table."""
    from sqlglot import exp

    if table.args.get("db") is not None:
        return None
    wanted, node, came_from = table.name.lower(), table, None
    while node is not None:
        defining = node.args.get("with_") or node.args.get("with")
        if isinstance(defining, exp.With):
            for cte in defining.expressions:
                if cte is came_from and not defining.args.get("recursive"):
                    break  # a CTE sees those before it, and itself only when it is recursive
                if cte.alias.lower() == wanted:
                    return cte
                if cte is came_from:
                    break
        if isinstance(node, exp.CTE):
            came_from = node
        node = node.parent
    return None


def is_allowed_table(name: str, allowed: frozenset[str]) -> bool:
    """Whether a table is in a list (in lower case), by its full name or by its last part."""
    return name.lower() in allowed or name.rpartition(".")[2].lower() in allowed


def refused_columns(reading: Reading, allowed: frozenset[str]) -> list[str]:
    """The columns of real tables that are not in a list (in lower case), each once, with ``*`` for all of a table.

    Names that the text itself gives are no columns of tables: those that are read from a CTE or a subquery (whose own columns
    are), and aliases in ORDER BY, GROUP BY and HAVING.
    """
    refused: dict[str, None] = {}
    for tree in reading.trees:
        for node in tree.walk():
            name = _column_name(node)
            if name and name not in allowed and name not in refused and not _is_own_name(node, name):
                refused[name] = None
    return list(refused)


def _column_name(node: Any) -> str:
    """The column that a node of the tree names, in lower case, or nothing."""
    from sqlglot import exp

    if isinstance(node, exp.Column):
        return "*" if isinstance(node.this, exp.Star) else str(node.name).lower()
    if isinstance(node, exp.Star):
        return "*" if isinstance(node.parent, exp.Select) else ""
    in_list = isinstance(node, exp.Identifier) and isinstance(node.parent, (exp.Schema, exp.Join))  # INSERT INTO t (a), USING (a)
    return str(node.name).lower() if isinstance(node, exp.ColumnDef) or in_list else ""


def _is_own_name(node: Any, name: str) -> bool:
    """Whether a name is given by the statement itself, and not a column of a real table."""
    from sqlglot import exp

    if not isinstance(node, (exp.Column, exp.Star)):
        return False
    qualifier = node.text("table").lower()
    select = node.find_ancestor(exp.Select)
    if not qualifier and _is_alias(node, name, select):
        return True
    while select is not None:
        sources = _sources(select)
        if qualifier in sources:
            return sources[qualifier] is not None
        if not qualifier:
            if any(made is None for made in sources.values()):
                return False
            if name == "*" or any(made is not None and {name, "*"} & made for made in sources.values()):
                return bool(sources)
        select = select.find_ancestor(exp.Select)
    return False


def _is_alias(node: Any, name: str, select: Any) -> bool:
    from sqlglot import exp

    clause = node.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Select)
    if select is None or clause is None or clause.parent is not select:
        return False
    return any(isinstance(made, exp.Alias) and made.alias.lower() == name for made in select.expressions)


def _sources(select: Any) -> dict[str, set[str] | None]:
    """What a SELECT reads from, by the name that it has there: the columns of what the text itself defines, None of a table."""
    from sqlglot import exp

    found: dict[str, set[str] | None] = {}
    for clause in (select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or ())):
        source = clause.this if clause is not None else None
        if source is None:
            continue
        definition = (
            source if isinstance(source, exp.Subquery) else _definition(source) if isinstance(source, exp.Table) else None
        )
        found[source.alias_or_name.lower()] = _columns_made(definition) if definition is not None else None
    return found


def _columns_made(definition: Any) -> set[str]:
    names = definition.args["alias"].columns if definition.args.get("alias") is not None else []
    made = [column.name for column in names] or getattr(definition.this, "named_selects", [])
    return {name.lower() for name in made}
