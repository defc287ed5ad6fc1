from __future__ import annotations

import datetime
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import JudgeError
from otel_agenteval.judging.models.providers import bedrock
from otel_agenteval.judging.models.providers.bedrock import Signer, region_in
from tests.models.wire import Server

pytest.importorskip("botocore")
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@pytest.fixture
def credentials() -> Any:
    from botocore.credentials import Credentials

    return Credentials(KEY, SECRET)


def test_a_signature_is_that_of_the_published_vectors(credentials: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signature of the published vector post-x-www-form-urlencoded, at its time."""
    moment = datetime.datetime(2015, 8, 30, 12, 36, tzinfo=datetime.timezone.utc)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: moment)
    monkeypatch.setattr(bedrock, "_SERVICE", "service")
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    found = Signer("us-east-1", credentials)("https://example.amazonaws.com/", b"Param1=value1", headers)
    assert found["Authorization"] == (
        f"AWS4-HMAC-SHA256 Credential={KEY}/20150830/us-east-1/service/aws4_request, SignedHeaders=content-type;host;x-amz-date, "
        "Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
    )
    assert found["X-Amz-Date"] == "20150830T123600Z"


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "us-east-1"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("https://vpce-1-a.bedrock-runtime.eu-west-1.vpce.amazonaws.com", "eu-west-1"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com.evil.example", None),
        ("http://127.0.0.1:8080", None),
    ],
)
def test_only_amazon_s_servers_get_signatures(url: str, region: str | None) -> None:
    assert region_in(url) == region


def signing(monkeypatch: pytest.MonkeyPatch, server: Server, **credentials: str) -> oa.Judge:
    for name, value in credentials.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("otel_agenteval.judging.models.judge.region_in", lambda _: "us-east-1")
    return oa.Judge(server.url, "anthropic.claude-x:0", provider="bedrock")


def test_without_a_key_a_request_to_bedrock_is_signed_with_the_credentials_of_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = signing(monkeypatch, server, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_SESSION_TOKEN="t-1")
    server.reply({"score": 1}, provider="bedrock")
    assert judge.ask("x", "Judge it.", {"answer": "a"}, '{"score": <0 to 1>}') == {"score": 1}
    (request,) = server.requests
    assert request.path == "/v1/model/anthropic.claude-x%3A0/converse"
    assert request.headers["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={KEY}/")
    assert "/us-east-1/bedrock/aws4_request" in request.headers["authorization"]
    assert request.headers["x-amz-security-token"] == "t-1"
    assert SECRET not in str(request.headers)
    judge.close()


def test_a_key_is_used_if_there_is_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agenteval.judging.models.judge.region_in", lambda _: "us-east-1")
    judge = oa.Judge(server.url, "m-1", "k-1", provider="bedrock")
    server.reply({"score": 1}, provider="bedrock")
    judge.ask("x", "Judge it.", {"answer": "a"}, '{"score": <0 to 1>}')
    assert server.requests[0].headers["authorization"] == "Bearer k-1"
    judge.close()


def test_without_key_and_credentials_the_error_says_so(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    nothing = str(tmp_path / "none")
    judge = signing(
        monkeypatch, server, AWS_EC2_METADATA_DISABLED="true", AWS_SHARED_CREDENTIALS_FILE=nothing, AWS_CONFIG_FILE=nothing
    )
    with pytest.raises(JudgeError, match="api_key") as caught:
        judge.ask("x", "Judge it.", {"answer": "a"}, '{"score": <0 to 1>}')
    assert caught.value.error_type == "no_credentials"
    assert server.requests == []
    judge.close()
