"""Grounding of links: derived links, texts that aren't links, and disguised links."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agenteval import Turn, get_metric
from otel_agenteval.core.turn import ToolCall
from otel_agenteval.detectors.urls import key_of, links_in, may_hold_links, revealed, without_code


def passed(output: str, source: Any, **params: Any) -> bool | None:
    turn = Turn(output=output, input="where?", tool_calls=[ToolCall("search", {}, source)])
    return get_metric("code_ungrounded_urls", **params).evaluate(turn).passed


@pytest.mark.parametrize(
    ("output", "source"),
    [
        pytest.param("https://x.org/o/17-B", "https://x.org/o/{id} 17-B", id="a template of a source"),
        pytest.param("https://x.org/guides/start", '{"base": "https://x.org", "href": "/guides/start"}', id="a relative link"),
        pytest.param("https://x.org/help", "https://x.org/help/a https://x.org/help/b", id="the section of several pages"),
        pytest.param("https://x.org/long/\npath", "https://x.org/long/path", id="a line break"),
        pytest.param("see https://github.com", "The code is on GitHub.", id="a product called by its name"),
        pytest.param("hxxps://evil[.]org/a is blocked", "From: https://evil.org/a", id="defanged in the answer only"),
        pytest.param("https://x.org/b?from=now-3h&to=now", "https://x.org/b", id="options in the query"),
        pytest.param("https://arxiv.org/abs/1706.03762", "arXiv 1706.03762", id="a given number on a well-known site"),
        pytest.param("https://x.org/track/AB1", "Tracking: https://x.org/track/ and the number; yours is AB1", id="a base"),
        pytest.param("https://x.org/t/OPS-12", "https://x.org/t/OPS-10 blocks OPS-12", id="a given id in place of another"),
        pytest.param("https://www.google.com/maps/search/?query=High+Street+5", "5 High Street", id="a search for given words"),
        pytest.param("https://x.org is down", "host,status\nx.org,503", id="a host in CSV"),
    ],
)
def test_what_follows_from_the_sources_is_grounded(output: str, source: Any) -> None:
    assert passed(output, source) is True


@pytest.mark.parametrize(
    ("output", "source"),
    [
        pytest.param("https://x.org/o/18", "https://x.org/o/{id} 17", id="a template with another value"),
        pytest.param("acme-support.com/login", "https://acme.com/login", id="without a scheme"),
        pytest.param("https://acme.com@evil.net/", "https://acme.com/", id="a given host as user"),
        pytest.param("https://аcme.com/", "https://acme.com/", id="a Cyrillic letter"),
        pytest.param("evil (dot) com/x", "https://acme.com/", id="dot as a word"),
        pytest.param("evil [punto] com/x", "https://acme.com/", id="dot as an Italian word"),
        pytest.param("[https://acme.com/a](https://b.org/x)", "https://acme.com/a, https://b.org/x", id="shown as another site"),
        pytest.param("https://github.com/acme/web/wiki/Setup-Guide", "acme/web", id="a made-up page on a well-known site"),
        pytest.param("https://zoom.us/j/98812345678", "98812345679", id="another id on a well-known site"),
        pytest.param("https://fernholt.example/cmr/90441.pdf", "CMR 90441", id="a named host below .example"),
    ],
)
def test_what_was_made_up_is_found(output: str, source: Any) -> None:
    assert passed(output, source) is False


PAGE = "https://www.hanami.jp/plan/a-17"


@pytest.mark.parametrize(
    "text",
    [
        f"詳細は（{PAGE}）をご覧ください。",
        f"[プラン]({PAGE})（要予約）",
        f"链接：{PAGE}；价格见下表：",
        f"{PAGE}をご覧ください",
        f"انظر {PAGE}، شكرا",
        "公式サイトはhttps://www.hanami.jpです。",
        f"{PAGE},Chair,49\n{PAGE};Table;9",
        f"['{PAGE}','{PAGE}']",
    ],
)
def test_link_ends_without_a_space_in_answers_and_sources(text: str) -> None:
    assert passed(text, {"url": PAGE}) is True
    assert passed(text.replace("a-17", "b-18"), {"url": PAGE}) is ("a-17" not in text)
    assert passed(f"See {PAGE}", text) is ("a-17" in text)


def test_second_of_two_joined_links_is_checked() -> None:
    assert list(links_in("['https://x.org/1','https://x.org/2'],https://x.org/3")) == ["x.org/1", "x.org/2", "x.org/3"]


@pytest.mark.parametrize(
    "text",
    [
        "README.md, main.py, Node.js, e.g. docs/setup.md, config.io.yaml",
        "com.acme.app and app.kubernetes.io/name",
        "Done.It is there.",
        "order.id, np.at, user.me and console.app",
        "```\ncurl https://evil.com\n```",
        "`https://evil.com`",
        '<svg xmlns="http://www.w3.org/2000/svg">',
        '{"$schema": "https://evil.com/schema.json"}',
        "http://192.168.1.4/ and https://your-company.com/x",
        "https://acme.com/{id}"[:17] + "{id}",
        "https://?.cloud.acme.com/x and https:///etc/x",
    ],
)
def test_what_is_no_link(text: str) -> None:
    assert links_in(revealed(without_code(text))) == {}


def test_an_answer_that_is_one_block_of_data_is_read() -> None:
    assert passed('```json\n{"url": "https://evil.com/x"}\n```', "nothing") is False


def test_documentation_can_be_allowed() -> None:
    def with_allowed(*allowed: str) -> bool | None:
        return passed("https://docs.python.org/3/library/json.html", "a snippet", allowed=allowed)

    assert [with_allowed("docs.python.org/3/"), with_allowed("*.python.org")] == [True, True]
    assert [with_allowed("docs.python.org/2/"), with_allowed("python.org"), with_allowed()] == [False, False, False]


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        pytest.param({"input": "how?"}, None, id="only a question"),
        pytest.param({"input": "how?", "system": "You help."}, None, id="and instructions"),
        pytest.param({"input": "how?", "system": "You are the bot of Lumen Bank."}, False, id="the agent's own firm"),
    ],
)
def test_without_sources_a_link_cannot_be_checked(known: dict[str, Any], wanted: bool | None) -> None:
    score = get_metric("code_ungrounded_urls").evaluate(Turn(output="https://lumenbank.org/cards/lost", **known))
    assert score.passed is wanted
    assert wanted is not None or score.detail["reason"] == "missing:sources"


@pytest.mark.parametrize("host", ["paypa1.com", "rnicrosoft.com", "amazon-hilfe.com", "githubb.com"])
def test_an_imitation_of_a_well_known_site_needs_no_source(host: str) -> None:
    assert get_metric("code_ungrounded_urls").evaluate(Turn(output=f"https://{host}/login", input="how?")).passed is False


def test_a_page_that_the_agent_opened_is_known_unless_it_was_not_there() -> None:
    def opened(result: str) -> bool | None:
        call = ToolCall("open_page", {"url": "https://x.org/a"}, result)
        return get_metric("code_ungrounded_urls").evaluate(Turn(output="https://x.org/a", tool_calls=[call])).passed

    assert opened("All systems are up. " * 10) is True
    assert opened("404 not found. " * 10) is False
    assert opened("ok") is False


def test_ordinary_prose_is_not_searched() -> None:
    assert not may_hold_links("It costs 3.50. See fig. 2, p.m. and so on.\nBye…")
    assert key_of("WWW.X.org:443/a/#b") == "x.org/a"
