"""Check that a text is SQL, by its shape or with a parser, in limited time."""

from __future__ import annotations

import functools
import logging
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...core.errors import MetricError
from ...core.extras import require
from .values import word_list

# --- without a parser -------------------------------------------------------------------------------------------------

_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
_LITERAL_OR_COMMENT = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[A-Za-z_]\w*\]|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_VERB = re.compile(r"(?:select|insert|update|delete|with|create|alter|drop|merge)\b", re.IGNORECASE)
_AS = re.compile(r"\bas\b", re.IGNORECASE)
_PARENTHESIS = re.compile(r"[()]")


def shape_of(text: str) -> dict[str, bool]:
    """Check a text for four signs of SQL, ignoring leading and trailing whitespace."""
    text = text.strip()
    code = _LITERAL.sub(" ", text)
    verb = _VERB.match(text)
    return {
        "starts_with_verb": verb is not None and (verb[0].lower() != "with" or _AS.search(code, verb.end()) is not None),
        "balanced_parentheses": _depth(code) is not None,
        "even_single_quotes": text.count("'") % 2 == 0,
        "even_double_quotes": text.count('"') % 2 == 0,
    }


def _depth(code: str) -> int | None:
    depth = deepest = 0
    for found in _PARENTHESIS.finditer(code):
        depth += 1 if found[0] == "(" else -1
        if depth < 0:
            return None
        deepest = max(deepest, depth)
    return None if depth else deepest


_UNFINISHED = re.compile(
    r"(?:\b(?:and|as|between|by|from|having|in|into|is|join|like|limit|not|on|or|select|set|table|union|where|with)"
    r"|(?<!default )\bvalues|[,=<>+*/.|-])\Z",
    re.IGNORECASE,
)
_ENDS_WITH_STAR = re.compile(r"(?:\bselect|,|\.)\s*\*\Z", re.IGNORECASE)
_WORD = re.compile(r"\w+|[^\w\s]")


def resembles_sql(text: str, dialect: str) -> bool:
    """Return True if a text looks like complete, correct SQL. Doesn't use a parser."""
    code = _without_literals(text)
    end = code.rstrip("; \t\r\n")
    is_unfinished = _UNFINISHED.search(end) is not None and _ENDS_WITH_STAR.search(end) is None
    if is_unfinished or not all(shape_of(text).values()):
        return False
    return not _has_fault(_WORD.findall(code.upper()), dialect.strip().lower())


def _without_literals(text: str) -> str:
    return _LITERAL_OR_COMMENT.sub(lambda found: " " if found[0][0] in "-/" else " 0 ", text)


_PAIR = re.compile(r"\bselect\s+([A-Za-z_]\w*|\*)\s+([A-Za-z_]\w*)\s+from\b", re.IGNORECASE)
_NOT_NAMES = frozenset(
    ("all", "distinct", "distinctrow", "false", "high_priority", "not", "null", "straight_join", "true", "unique")
)
_POSTFIX = frozenset(("isnull", "notnull"))


def lacks_comma(text: str) -> bool:
    """Return True for text such as ``SELECT a b FROM t``, which probably lacks a comma."""
    return any(
        first.lower() not in _NOT_NAMES and not first.lower().startswith("sql_") and second.lower() not in _POSTFIX
        for first, second in _PAIR.findall(_without_literals(text))
    )


_SECTION = re.compile(r" (?:SELECT|UNION|EXCEPT|INTERSECT|MINUS|UPDATE|CONFLICT|;|\|>) ")
_CLAUSE = re.compile(r" (WHERE|GROUP BY|HAVING|ORDER BY|LIMIT(?= (?:[\d:?@$]|ALL)))(?= )")
_ORDER = ("WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT")
_FAULT = re.compile(
    r" (?:DISTINCT|BY|SET|,|;) , |(?<!GRANT)(?<!REVOKE)(?<!,) SELECT , | IN NIL |(?<! NIL) VALUES NIL "
    r"| (?:IN|AS|GROUP BY|(?:0|NIL) OVER|JOIN [^;]{1,200} ON) (?:;|WHERE|GROUP BY|HAVING|ORDER BY) | (?:0|NIL) OVER FROM | VIEW \S+ SELECT "
)
_LAST_COMMA = re.compile(r" , (?:;|FROM|WHERE|GROUP BY|HAVING|ORDER BY) ")
_WITHOUT_BY = re.compile(r"(?<! AS)(?<! \.)(?<! TO)(?<! WITHIN)(?<! EXCLUDE) (?:ORDER|GROUP) (?!BY |SIBLINGS )")
_ALLOWS_LAST_COMMA = frozenset(("bigquery", "clickhouse", "duckdb", "snowflake"))


def _has_fault(words: Iterable[str], dialect: str) -> bool:
    """Return True if the words contain a syntax error that SQL parsers accept.

    Examples are ``SELECT , a``, ``GROUP BY`` without columns, and ``LIMIT 5`` before ``WHERE``. ``words`` are in upper case, with 0
    in place of literals and quoted names.
    """
    text = _flat(words)
    if dialect == "sqlite":  # allows IN ()
        text = text.replace(" IN NIL ", " IN 0 ")
    if _FAULT.search(text) or (dialect not in _ALLOWS_LAST_COMMA and _LAST_COMMA.search(text)):
        return True
    if " SELECT " in text and dialect != "clickhouse" and _WITHOUT_BY.search(text):
        return True
    for section in _SECTION.split(text):
        clauses = [_ORDER.index(clause) for clause in _CLAUSE.findall(section.partition(" FROM ")[2])]
        if clauses != sorted(clauses):
            return True
    return False


def _flat(words: Iterable[str]) -> str:
    """Move the content of parentheses to the front: ``F ( A )`` becomes ``A ; F 0``, and ``F ( )`` becomes ``F NIL``."""
    done: list[str] = []
    open_parts: list[list[str]] = [[]]
    for word in words:
        if word == ")" and len(open_parts) > 1:
            part = open_parts.pop()
            done += *part, ";"
            open_parts[-1].append("0" if part else "NIL")
        elif word == "(":
            open_parts.append([])
        else:
            open_parts[-1].append(word)
    return " ".join(["", ";", *done, *(word for part in open_parts for word in part), ";", ""])


# --- with a parser ----------------------------------------------------------------------------------------------------

_MAX_LENGTH = 10_000
"""Maximum characters of a text that is parsed. The parser is thorough but slow."""

_MAX_DEPTH = 20
_MIN_STEPS = 20_000
_STEPS_PER_TOKEN = 20
_CHAINED = re.compile(r"[)\]]\s*(?:[.:?]|->|#>)")
_MAX_COPIED = 50_000
"""Maximum product of the number of tokens and the number of chained calls. The parser copies the chain at each call."""
_DIALECTS = {
    "mariadb": "mysql", "mssql": "tsql", "postgresql": "postgres", "sqlserver": "tsql", "transactsql": "tsql",
}  # fmt: skip

_NEEDS = {"Select": ("expressions",), "Update": ("expressions",), "Insert": ("expression", "default"), "Copy": ("files",)}
"""Parts of each kind of statement. A complete statement has at least one of these parts."""
_FROM_IS_OPTIONAL = frozenset(("bigquery", "fabric", "oracle", "tsql"))
_FROM_CAN_LEAD = frozenset(("bigquery", "clickhouse", "databricks", "duckdb", "hive", "spark"))
_NO_LEADING_VERB = re.compile(r"(?:\A|;)[\s(]*(from|table)\b", re.IGNORECASE)


class TooComplex(Exception):
    """Raised for a text that the parser can't read within the limits on time and depth."""


@dataclass(slots=True)
class ParsedSql:
    trees: list[Any]
    tables: list[str]
    """Table names as written, without duplicates. CTE names are excluded, because the text itself defines them."""


def parse(text: str, dialect: str) -> ParsedSql | None:
    """Parse the statements of a text, or return None if it isn't SQL.

    Raises:
        MetricError: If the dialect is unknown.
        MissingExtra: If the package ``sqlglot`` isn't installed.
        TooComplex: If the text or the parser exceeds its limits.
    """
    name = dialect.strip().lower()
    name = _DIALECTS.get(name, name)
    parser = _parser(name)
    code = _without_literals(text)
    if len(text) > _MAX_LENGTH or (_depth(code) or 0) > _MAX_DEPTH:
        raise TooComplex
    chained = len(_CHAINED.findall(code))
    trees = _syntax_trees(parser, text, chained, name)
    if trees is None and not name and "`" in text:
        trees = _syntax_trees(_parser("mysql"), text, chained, "mysql")
    if not trees or not all(_is_statement(tree, name) for tree in trees):
        return None
    lead = _NO_LEADING_VERB.search(code)
    if lead is not None and (not name or (lead[1].lower() == "from" and name not in _FROM_CAN_LEAD)):
        return None

    from sqlglot import exp

    tables = (table for tree in trees for table in tree.find_all(exp.Table, bfs=False) if table.name and _cte(table) is None)
    return ParsedSql(trees, list(dict.fromkeys(".".join(part.name for part in table.parts) for table in tables)))


class _Silence(logging.Filter, threading.local):
    """Log filter, enabled per thread, that hides parser messages, because they quote the text."""

    on = False

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.on


_silence = _Silence()


@functools.lru_cache(maxsize=64)
def _parser(name: str) -> tuple[Any, Any]:
    """Return the sqlglot dialect named ``name``, and a subclass of its parser with a step limit."""
    require("sqlglot", feature="parsing SQL", extra="structured")
    from sqlglot import Dialect

    try:
        dialect = Dialect.get_or_raise(name)
    except ValueError:
        problem = f"dialect: unknown SQL dialect, got {name[:50]!r}; use a dialect of sqlglot, such as 'postgres'"
        raise MetricError("invalid_dialect", problem) from None

    logging.getLogger("sqlglot").addFilter(_silence)
    base: Any = dialect.parser_class

    class Bounded(base):  # type: ignore[misc]
        """Parser with a step limit, because each chained join can double the parsing time."""

        steps_left = 0

        def _advance(self, *times: int) -> None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise TooComplex
            super()._advance(*times)

    return dialect, Bounded


def _syntax_trees(dialect_and_parser: tuple[Any, Any], text: str, chained: int, name: str) -> list[Any] | None:
    dialect, parser_class = dialect_and_parser
    _silence.on = True
    try:
        tokens = dialect.tokenize(text)
        if chained * len(tokens) > _MAX_COPIED:
            raise TooComplex
        parser = parser_class(dialect=dialect)
        parser.steps_left = _MIN_STEPS + _STEPS_PER_TOKEN * len(tokens)
        words = ("0" if token.token_type.name.endswith(("STRING", "IDENTIFIER")) else token.text.upper() for token in tokens)
        if _has_fault(words, name):
            return None
        trees = parser.parse(tokens, text)  # a comment after a statement becomes a Semicolon
        return [tree for tree in trees if tree is not None and type(tree).__name__ != "Semicolon"]
    except (TooComplex, RecursionError):
        raise TooComplex from None
    except Exception:  # ParseError, TokenError, and others on odd input (IndexError)
        return None
    finally:
        _silence.on = False


def _is_statement(tree: Any, dialect: str) -> bool:
    """Return True for a complete statement. This check is necessary, because the parser accepts even words and prose."""
    kind = type(tree).__name__
    if kind == "Create" and tree.args.get("kind") in ("TABLE", "VIEW"):
        return any(tree.args.get(part) for part in ("expression", "properties", "clone")) or bool(tree.this.expressions)
    if kind == "Update" and any(type(change).__name__ == "Column" for change in tree.expressions):
        return False
    if kind in _NEEDS:
        return any(tree.args.get(part) for part in _NEEDS[kind])
    if kind == "Delete":
        return bool(tree.args.get("this")) or dialect in _FROM_IS_OPTIONAL
    if kind == "Use":
        return not getattr(tree.this, "alias", "")
    return kind in word_list("sql_statements")


# --- tables and columns -----------------------------------------------------------------------------------------------
# sqlglot's own scopes can't be used, because they don't ignore the case of names.


def refused_tables(parsed: ParsedSql, allowed: Iterable[str]) -> list[str]:
    """Return the tables for which ``allowed`` contains neither the full nor the unqualified name, ignoring case."""
    known = {name.lower() for name in allowed}
    return [name for name in parsed.tables if name.lower() not in known and name.rpartition(".")[2].lower() not in known]


def refused_columns(parsed: ParsedSql, allowed: Iterable[str]) -> list[str]:
    """Return the names of table columns that aren't in ``allowed``, in lower case, without duplicates.

    ``*`` counts as a column name, and ``allowed`` can contain it. Names that the statement itself defines are ignored: aliases in
    ORDER BY, GROUP BY, and HAVING, and result columns of a CTE or subquery. The table columns behind these names are checked.
    """
    known = {name.lower() for name in allowed}
    refused: dict[str, None] = {}
    for tree in parsed.trees:
        for node in tree.walk():
            name = _column_name(node)
            if name and name not in known and name not in refused and not _is_defined_here(node, name):
                refused[name] = None
    return list(refused)


def _column_name(node: Any) -> str:
    from sqlglot import exp

    if isinstance(node, exp.Column):
        return "*" if isinstance(node.this, exp.Star) else str(node.name).lower()
    if isinstance(node, exp.Star):
        return "*" if isinstance(node.parent, exp.Select) else ""
    in_list = isinstance(node, exp.Identifier) and isinstance(node.parent, (exp.Schema, exp.Join))  # INSERT INTO t (a), USING (a)
    return str(node.name).lower() if isinstance(node, exp.ColumnDef) or in_list else ""


def _is_defined_here(node: Any, name: str) -> bool:
    """Return True if the statement itself defines the column, as an alias or result column."""
    from sqlglot import exp

    if not isinstance(node, (exp.Column, exp.Star)):
        return False
    qualifier = node.text("table").lower()
    select = node.find_ancestor(exp.Select)
    clause = node.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Select)
    aliases = select.expressions if select is not None and clause is not None and clause.parent is select else ()
    if not qualifier and any(isinstance(column, exp.Alias) and column.alias.lower() == name for column in aliases):
        return True
    while select is not None:  # from the innermost query outwards
        sources = dict(_sources(select))
        if qualifier in sources:
            return sources[qualifier] is not None
        if not qualifier:
            if None in sources.values():
                return False  # a table that may have the column
            if name == "*" or any({name, "*"} & (columns or set()) for columns in sources.values()):
                return bool(sources)
        select = select.find_ancestor(exp.Select)
    return False


def _sources(select: Any) -> Iterator[tuple[str, set[str] | None]]:
    from sqlglot import exp

    for clause in (select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or ())):
        source = clause.this if clause is not None else None
        if source is None:
            continue
        query = source if isinstance(source, exp.Subquery) else _cte(source) if isinstance(source, exp.Table) else None
        columns = None
        if query is not None:
            named = query.args["alias"].columns if query.args.get("alias") is not None else []
            columns = {name.lower() for name in [column.name for column in named] or getattr(query.this, "named_selects", [])}
        yield source.alias_or_name.lower(), columns


def _cte(table: Any) -> Any:
    from sqlglot import exp

    if table.args.get("db") is not None:
        return None
    node, inside = table, None
    while node is not None:
        if isinstance(clause := node.args.get("with_") or node.args.get("with"), exp.With):
            ctes = clause.expressions
            own = next((index for index, cte in enumerate(ctes) if cte is inside), len(ctes))
            for cte in ctes[: own + bool(clause.args.get("recursive"))]:  # a CTE sees earlier CTEs and, if recursive, itself
                if cte.alias.lower() == table.name.lower():
                    return cte
        if isinstance(node, exp.CTE):
            inside = node
        node = node.parent
    return None
