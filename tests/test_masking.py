"""``check-config`` and errors never show secrets of a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.config.masking import masked
from otel_agenteval.core.errors import ConfigError

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sasl.password", "hunter22"), ("ssl.key.password", "hunter22"), ("sasl.jaas.config", 'x required username="a" password="hunter22";'),
        ("basic.auth.user.info", "ada:hunter22"), ("schema.registry.basic.auth.user.info", "ada:hunter22"), ("apiKey", "hunter22"), ("clientSecret", "hunter22"),
        ("password", 12345678), ("tokens", ["hunter22"]), ("api_keys", {"acme": "hunter22"}), ("headers", {"x-custom": "hunter22"}), ("extra_headers", {"x": "hunter22"}),
        ("webhook_url", "https://chat.test/hunter22"), ("webhook", {"url": "https://chat.test/hunter22"}), ("value", TOKEN), ("value", [f"use {TOKEN}"]), ("note", {TOKEN: "x"}), ("note", "Bearer hunter22hunter22hunter22"),
        ("url", "redis://:hunter22@h:6379"), ("url", "redis://u:p@hunter22@h:6379"), ("url", "redis://:hunter/22@h:6379"), ("url", "amqp://u:hunter%2F22@h/v"),
        ("url", "https://hunter22@h/x"), ("urls", ["http://a:hunter22@h", "http://b"]), ("url", "https://h/x?sig=hunter22&y=1"), ("url", "https://h/cb#access_token=hunter22"),
        ("url", "https://hooks.slack.com/services/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"), ("dsn", "hunter22"), ("value", "password=hunter22"),
        ("path", "/x/${env:A}-kept/s3cr3t-of-env"), ("brokers", "h:9092,sasl=s3cr3t-of-env"), ("url", "http://h/s3cr3t%2Fof%2Fenv"),
    ],
)  # fmt: skip
def test_a_secret_is_not_shown_wherever_it_stands(key: str, value: Any) -> None:
    env = {"KAFKA_PASSWORD": "s3cr3t-of-env", "OTHER_TOKEN": "s3cr3t/of/env", "HOME": "/home/ada", "LANG": "visible"}
    shown = str(masked({key: value}, env=env))
    assert "****" in shown
    for leak in ("hunter22", "hunter/22", "hunter%2F22", TOKEN, "s3cr3t", "12345678"):
        assert leak not in shown


@pytest.mark.parametrize(
    "value",
    [
        {"max_tokens": 512, "tokens_per_minute": 1000, "key_file": "/etc/tls/key.pem", "keyword": "visible", "token": 5, "token_type": "input", "ok": True},
        {"base_url": "http://127.0.0.1:11434/v1", "path": "/var/lib/agenteval/queue.db", "endpoint": "https://otlp.example:4317", "model": "anthropic/claude-sonnet-4"},
        {"accept_from": {"app.ground_truth": "ground_truth"}, "always_if": "error or score.code_tool_success < 1", "image": "nginx@sha256:0011223344556677"},
        {"brokers": "kafka-1:9092,kafka-2:9092", "sasl.mechanism": "PLAIN", "security.protocol": "SASL_SSL", "email": "ops@example.org"},
    ],
)  # fmt: skip
def test_what_is_no_secret_is_shown(value: dict[str, Any]) -> None:
    assert masked(value, env={}) == value


def test_check_config_shows_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("THEIR_TOKEN", "s3cr3t-of-env")
    file = tmp_path / "agenteval.yaml"
    file.write_text(
        "judge: {base_url: 'http://127.0.0.1:9/v1', model: m, api_key: hunter22,\n"
        "  servers: {other: {base_url: 'http://127.0.0.1:9/v1', api_key: '${env:THEIR_TOKEN}'}}}\n"
        "outlets: {jsonl: '${env:THEIR_TOKEN}.jsonl', otlp: {endpoint: 'http://127.0.0.1:4318', headers: {authorization: Bearer hunter22}}}\n"
        f"metrics: [{{code_contains: {{value: {TOKEN}}}}}, {{code_equals: {{value: 'see https://h/x?token=hunter22'}}}}]\n"
    )  # fmt: skip
    status = main(["check-config", str(file)])
    shown = "".join(capsys.readouterr())
    assert status == 0, shown
    for leak in ("hunter22", "s3cr3t", TOKEN):
        assert leak not in shown


IN_PLACE_OF_A_SECRET = [
    "outlets: {webhook: {url: hooks.slack.com/services/T000/B000/SECRET}}",
    "outlets: {webhook: {url: {a: SECRET}}}",
    "outlets: {webhook: 'x/SECRET'}",
    "outlets: {webhook: ['x/SECRET']}",
    "outlets: {otlp: {endpoint: 'http://h', headers: 'Authorization: Bearer SECRET'}}",
    "outlets: {otlp: {endpoint: 'http://h', headers: ['Authorization: Bearer SECRET']}}",
    "outlets: {otlp: {endpoint: 'http://h', headers: {a: {b: SECRET}}}}",
    "outlets: {otlp: {endpoint: 'http://h', headers: {'Bearer SECRET': x}}}",
    "judge: {headers: SECRET}",
    "judge: {servers: {a: {base_url: 'http://h', headers: SECRET}}}",
    "judge: {servers: {a: 'SECRET'}}",
    "judge: {servers: SECRET}",
    "judge: {api_key: {value: SECRET}}",
    "judge: {api_key: [SECRET]}",
    "judge: {api_key: {SECRET: }}",
    "judge: SECRET",
    "embedder: {api_key: [[SECRET]]}",
    "serve: {token: [[SECRET]]}",
    "serve: {token: {value: SECRET}}",
    "serve: {tenants: [SECRET]}",
    "serve: {tenants: SECRET}",
    "serve: {tenants: {shop: SECRET}}",
    "serve: {tenants: [{name: shop, token: {value: SECRET}}]}",
    "serve: {tenants: [{shop: SECRET}]}",
    "serve: {tenants: [{name: a, token: SECRET},{name: b, token: SECRET}]}",
    "serve: {page: {read_token: [SECRET]}}",
    "serve: {page: SECRET}",
    "judge: {base_url: 'user:SECRET@h/v1'}",
    "judge: {base_url: 'https//user:SECRET@h/v1'}",
    "judge: {base_url: 'https://h/v1?key=SECRET'}",
    "judge: {base_url: 'https://h/v1?x=SECRET'}",
    "judge: {base_url: ['https://h/v1?x=SECRET']}",
    "judge: {queue: {backend: redis, url: 'redis:/:SECRET@h'}}",
    "judge: {queue: {backend: redis, url: ':SECRET@h:6379'}}",
    "judge: {queue: {backend: redis, url: {a: 'SECRET'}}}",
    "judge: {queue: 'redis://:SECRET@h'}",
    "judge: {queue: ':SECRET@h'}",
    "outlets: {store: ['postgresql://u:SECRET@h/d']}",
    "outlets: {store: {path: {url: ':SECRET@h/d'}}}",
    "outlets: {store: {path: ['u:SECRET@h/d']}}",
    "outlets: {webhook: {url: 'http://h', signing_secret: [SECRET]}}",
    "outlets: {webhook: {url: 'http://h', routing_key: {a: SECRET}}}",
    "outlets: SECRET",
    "SECRET",
    "- token=SECRET",
    "judge: {api_key: *SECRET}",
    "judge: {api_key: !SECRET x}",
    "judge: {api_key: !!int SECRET}",
    "judge: {api_key: !!float SECRET}",
    "judge: {api_key: !!bool SECRET}",
    "judge: {api_key: !SECRET!x y}",
    "judge: {api_key: !!timestamp SECRET}",
    "judge: {api_key: '${env:a b}SECRET'}",
    "judge: {api_key: '${env:SECRET-!}'}",
    "media: {transcriber: {api_key: [SECRET]}}",
    "media: {transcriber: 'SECRET'}",
]  # fmt: skip


def test_errors_never_show_a_value_in_the_place_of_a_secret(tmp_path: Path) -> None:
    """Report: errors printed a webhook URL without scheme, headers as text, and an api_key as mapping."""
    file = tmp_path / "agenteval.yaml"
    for text in IN_PLACE_OF_A_SECRET:
        file.write_text(text.replace("SECRET", "plain-word"))
        with pytest.raises(ConfigError) as error:
            load_config(file, env={})
        assert "plain" not in str(error.value), text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: \0", r":2: not YAML: character U\+0000"), ("\0" * 50, r":1: not YAML: character U\+0000"), ("judge: {model: a\x01}", r"U\+0001"),
        ('outlets: {store: "a\\0b"}', r"outlets\.store\.path: must be a path, got"), ('serve: {token: "a\\nb"}', r"serve\.token: .* without control"),
        ('outlets: {"a\\0b": 1}', r"outlets\.'a\\x00b': unknown key"), ("judge: {model: !!bool plain}", "doesn't match its tag"), ("a: !!timestamp x", "doesn't match its tag"),
    ],
)  # fmt: skip
def test_a_control_character_is_one_line(text: str, told: str, tmp_path: Path) -> None:
    """Report: a control character or zero bytes in the configuration ended in a traceback."""
    file = tmp_path / "agenteval.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=told) as error:
        load_config(file, env={})
    assert str(error.value).isprintable()
