"""Find access tokens by their published formats, at almost no cost for texts without any.

A secret is a long word. A text needs a word of 20 characters or ``://…@``, or the scan ends. Then the scan tries each format that
has a literal part in the text. Scores describe a secret by type, position, length and its first four characters, which are the
public prefix of nearly all formats. They never contain the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

SCAN_LIMIT = 100_000
"""Characters of a text that are scanned."""


class Format(NamedTuple):
    """One kind of secret.

    A format that contains another one comes before it, because overlapping matches are reported once.
    """

    type: str
    literals: tuple[str, ...]
    """The pattern matches only texts with at least one of these."""
    pattern: re.Pattern[str]


def _format(type_: str, literals: str, pattern: str) -> Format:
    """Return a format whose pattern matches whole words only."""
    whole = rf"(?<![A-Za-z0-9_])(?:{pattern})(?![A-Za-z0-9_])"
    return Format(type_, tuple(literals.split()), re.compile(whole, re.ASCII))


FORMATS: tuple[Format, ...] = (
    _format("aws_access_key_id", "AKIA ASIA ABIA", r"(?:AKIA|ASIA|ABIA)[A-Z2-7]{16}"),
    _format(
        "aws_secret_access_key",
        "ecret_access_key SECRET_ACCESS_KEY ecretAccessKey",
        r"(?i:(?:aws_)?secret_?access_?key)[\"']?\s{0,3}[:=]\s{0,3}[\"']?[A-Za-z0-9/+]{40}",
    ),
    _format("github_token", "ghp_ gho_ ghs_ ghu_ ghr_", r"gh[posur]_[A-Za-z0-9]{36,255}"),
    _format("github_fine_grained_token", "github_pat_", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    _format("gitlab_token", "glpat- gldt- glrt- glptt- glcbt-", r"gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{20,300}"),
    _format("slack_token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{20,250}"),
    _format("slack_app_token", "xapp-", r"xapp-[0-9]-[A-Z0-9]{8,16}-[0-9]{8,16}-[a-z0-9]{32,80}"),
    _format("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/services/T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{20,30}"),
    _format("stripe_key", "k_live_", r"[rs]k_live_[A-Za-z0-9]{16,250}"),
    _format("stripe_webhook_secret", "whsec_", r"whsec_[A-Za-z0-9+/]{32,64}={0,2}"),
    _format(
        "openai_key",
        "sk-",
        r"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,250}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{32,64})",
    ),
    _format("anthropic_key", "sk-ant-", r"sk-ant-[a-z0-9]{2,12}-[A-Za-z0-9_-]{20,200}"),
    _format("openrouter_key", "sk-or-", r"sk-or-v1-[0-9a-f]{64}"),
    _format("google_api_key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _format("google_oauth_secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    _format("google_access_token", "ya29.", r"ya29\.[A-Za-z0-9_-]{30,2000}"),
    Format(
        "gcp_service_account_key",
        ("private_key",),
        re.compile(r"private_key\\?\"\s{0,9}:\s{0,9}\\?\"-----BEGIN PRIVATE KEY-----(?:\s|\\{1,2}[nr]){0,8}[A-Za-z0-9+/]{16}"),
    ),
    Format(
        "private_key",
        ("PRIVATE KEY",),
        re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} )?PRIVATE KEY(?: BLOCK)?-----(?:\s|\\{1,2}[nr]){0,8}[A-Za-z0-9+/]{16}"),
    ),
    _format("age_secret_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _format("npm_token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _format("pypi_token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,500}"),
    _format("rubygems_key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _format("docker_token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{27}"),
    _format("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _format("mailgun_key", "key-", r"key-[0-9a-f]{32}"),
    _format("twilio_key", "SK", r"SK[0-9a-f]{32}"),
    _format("telegram_bot_token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    _format("huggingface_token", "hf_", r"hf_[A-Za-z0-9]{34,40}"),
    _format("groq_key", "gsk_", r"gsk_[A-Za-z0-9]{52}"),
    _format("replicate_token", "r8_", r"r8_[A-Za-z0-9]{37}"),
    _format("digitalocean_token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _format("databricks_token", "dapi", r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    _format("azure_storage_key", "AccountKey=", r"AccountKey=[A-Za-z0-9+/]{86}=="),
    _format("shopify_token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _format("square_token", "sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,43}"),
    _format("linear_key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
    _format("notion_token", "ntn_ secret_", r"ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43}"),
    _format("postman_key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _format("vault_token", "hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{24,300}"),
    _format("grafana_token", "glsa_", r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    _format("new_relic_key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _format("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{20,1000}"),
    Format(
        "url_password",
        ("://",),
        re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,19}://[^\s:/@\"'<>]{0,64}:[^\s/@\"'<>]{3,128}@[A-Za-z0-9\[]"),
    ),
)

_PLACEHOLDERS = ("example", "placeholder", "redacted", "xxxx", "your", "****", "....", "1234567890123456")
_SAMPLE_CLAIMS = ("IjEyMzQ1Njc4OTAi", "kpvaG4gRG9l", "Sm9obiBEb2", "pvaG4gRG9lI")
"""``"1234567890"`` and ``John Doe`` in base64, from the sample on jwt.io."""
_SAMPLE_PASSWORDS = frozenset(
    {
        "pass",
        "root",
        "admin",
        "postgres",
        "guest",
        "test",
        "mysecretpassword",
        "password",
        "passwd",
        "pwd",
        "pw",
        "secret",
        "token",
        "xxx",
        "changeme",
        "***",
    }
)


def secret_spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the format, start and end of each secret.

    Placeholders and documentation samples are left out.
    """
    text = text[:SCAN_LIMIT]
    taken: list[tuple[int, int]] = []
    for form in FORMATS:
        if any(literal in text for literal in form.literals):
            for found in form.pattern.finditer(text):
                start, end = found.span()
                if is_sample(form.type, found.group()) or any(a < end and start < b for a, b in taken):
                    continue
                taken.append((start, end))
                yield form.type, start, end


def is_sample(type_: str, secret: str) -> bool:
    """Return True if a match is a placeholder or a documentation sample."""
    if type_.endswith(("private_key", "account_key")):
        return False
    if type_ == "url_password":
        user, _, secret = secret.rpartition("@")[0].split("://", 1)[1].partition(":")
        if secret == user:
            return True
        if secret[0] in "{[<$%" or secret.casefold() in _SAMPLE_PASSWORDS:
            return True
    if type_ == "jwt" and any(claim in secret for claim in _SAMPLE_CLAIMS):
        return True
    plain = secret.casefold()
    tail = secret[-16:]
    return any(word in plain for word in _PLACEHOLDERS) or len(set(tail)) < min(6, len(tail) // 2)
