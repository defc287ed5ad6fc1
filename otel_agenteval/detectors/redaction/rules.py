"""Formats of access tokens.

Sources are the issuers' documentation and the public rules of scanners such as gitleaks, detect-secrets and trufflehog. The
patterns are written for this project. A token is a distinctive prefix and a body with a known length and character set.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .patterns import lazy

ALNUM, WORD, URL, HEX, BASE64 = "A-Za-z0-9", r"A-Za-z0-9_", r"A-Za-z0-9_\-", "a-f0-9", r"A-Za-z0-9+/=_\-"


class Prefixed(NamedTuple):
    """One kind of token."""

    prefix: str
    """A regular expression."""
    body: str
    """Allowed characters of the body, as a character class."""
    least: int
    most: int
    glued: bool = True
    """True if a token may directly follow a letter or digit."""
    cut: bool = True
    """True if the beginning of a token at the end of a text counts too."""


TOKENS: tuple[Prefixed, ...] = (
    # code hosts and registries
    Prefixed("gh[posur]_", ALNUM, 36, 255),
    Prefixed("github_pat_", WORD, 36, 255),
    Prefixed("gl(?:pat|dt|rt|rtr|ptt|cbt|soat|ft|imt|agent|oas|ffct)-", URL + ".", 20, 300),
    Prefixed("GR1348941", URL, 20, 50),
    Prefixed("ATBB", ALNUM, 24, 60, glued=False, cut=False),
    Prefixed("ATATT3", BASE64, 60, 300, glued=False),
    Prefixed("npm_", ALNUM, 36, 36, glued=False, cut=False),
    Prefixed("pypi-AgE", URL, 16, 500),
    Prefixed("rubygems_", HEX, 48, 48),
    Prefixed("dckr_(?:pat|oat)_", URL, 20, 60),
    Prefixed("oy2", "a-z0-9", 43, 43, glued=False, cut=False),
    Prefixed("CLOJARS_", "a-z0-9", 60, 60),
    # clouds
    Prefixed("(?:AKIA|ASIA|ABIA|ACCA)", "A-Z0-9", 16, 16, cut=False),
    Prefixed("AIza", URL, 35, 35),
    Prefixed("GOCSPX-", URL, 20, 40),
    Prefixed(r"ya29\.", URL + ".", 20, 2000),
    Prefixed("1//0", URL, 30, 200, glued=False, cut=False),
    Prefixed("do[opr]_v1_", HEX, 64, 64),
    Prefixed("dapi", HEX, 32, 36, glued=False, cut=False),
    Prefixed("hv[sbr]\\.", URL, 20, 300, glued=False),
    Prefixed("LTAI", ALNUM, 16, 26, glued=False, cut=False),
    Prefixed("AKID", ALNUM, 32, 32, glued=False, cut=False),
    Prefixed("pscale_(?:tkn|pw|oauth)_", URL, 20, 70),
    Prefixed("sbp_", HEX, 40, 40),
    Prefixed("dp\\.(?:pt|st|ct|sa)\\.", URL + ".", 30, 80, glued=False),
    Prefixed("tskey-", URL, 16, 100),
    Prefixed("fo1_", URL, 40, 50, glued=False, cut=False),
    Prefixed("fm[12]_", BASE64, 40, 2000, glued=False),
    Prefixed("nfp_", ALNUM, 36, 60, glued=False),
    Prefixed("rnd_", ALNUM, 28, 40, glued=False),
    # models and their tools
    Prefixed("sk-(?:proj|svcacct|admin|ant|or|lf|live|None)-", URL, 20, 400, cut=True),
    Prefixed("sk-", ALNUM, 20, 64, glued=False, cut=False),
    Prefixed("hf_", ALNUM, 30, 40, glued=False),
    Prefixed("api_org_", ALNUM, 34, 34),
    Prefixed("gsk_", ALNUM, 40, 60, glued=False),
    Prefixed("r8_", ALNUM, 37, 40, glued=False),
    Prefixed("xai-", ALNUM, 60, 100, glued=False),
    Prefixed("pplx-", ALNUM, 40, 60, glued=False),
    Prefixed("nvapi-", URL, 50, 80),
    Prefixed("lsv2_(?:pt|sk)_", WORD, 30, 60),
    Prefixed("ph[cx]_", ALNUM, 32, 60, glued=False),
    Prefixed("tvly-", URL, 20, 60, glued=False),
    Prefixed("jina_", URL, 40, 80, glued=False),
    Prefixed("e2b_", HEX, 40, 40, glued=False),
    Prefixed("fw_", ALNUM, 22, 26, glued=False, cut=False),
    Prefixed("csk-", ALNUM, 40, 60, glued=False),
    Prefixed("pcsk_", WORD, 40, 90),
    # payment, messages, everything else
    Prefixed("[rs]k_(?:live|test|prod)_", ALNUM, 10, 250),
    Prefixed("sk_", HEX, 48, 48, glued=False, cut=False),
    Prefixed("whsec_", BASE64, 24, 80),
    Prefixed("xox[abeoprs]-", ALNUM + r"\-", 10, 260),
    Prefixed("xoxe\\.xox[bp]-", ALNUM + r"\-", 10, 300),
    Prefixed("xapp-[0-9]-", ALNUM + r"\-", 20, 160),
    Prefixed("SG\\.", URL + ".", 32, 90, glued=False),
    Prefixed("xkeysib-", HEX + r"A-Za-z\-", 40, 100),
    Prefixed("key-", HEX, 32, 32, glued=False, cut=False),
    Prefixed("SK", HEX, 32, 32, glued=False, cut=False),
    Prefixed("shp(?:at|ca|pa|ss)_", "A-Fa-f0-9", 32, 32),
    Prefixed("sq0(?:atp|csp|idp)-", URL, 22, 43),
    Prefixed("EAAA[A-Za-z0-9]", URL, 55, 70, glued=False, cut=False),
    Prefixed("EAA[A-Z]", ALNUM, 80, 300, glued=False, cut=False),
    Prefixed("EZ[AT]K", ALNUM, 54, 54, glued=False, cut=False),
    Prefixed("lin_(?:api|oauth)_", ALNUM, 32, 70),
    Prefixed("ntn_", ALNUM, 40, 50, glued=False),
    Prefixed("secret_", ALNUM, 43, 43, glued=False, cut=False),
    Prefixed("PMAK-", HEX + r"\-", 40, 70),
    Prefixed("glsa_", WORD, 32, 60),
    Prefixed("glc_ey", BASE64, 30, 400),
    Prefixed("NRAK-", "A-Z0-9", 27, 27),
    Prefixed("NRII-", URL, 32, 32),
    Prefixed("sntry[su]_", BASE64, 40, 300),
    Prefixed("figd_", URL, 38, 60),
    Prefixed("CFPAT-", URL, 40, 50),
    Prefixed("pat[A-Za-z0-9]{14}\\.", HEX, 64, 64, glued=False, cut=False),
    Prefixed("dop_", ALNUM, 40, 80),
    Prefixed("shippo_(?:live|test)_", HEX, 40, 40),
    Prefixed("AGE-SECRET-KEY-1", "0-9A-Z", 50, 60),
    Prefixed("ops_eyJ", BASE64, 60, 3000),
    Prefixed("AAAAAAAAAAAAAAAAAAAA", URL + "%", 40, 120, glued=False, cut=False),
)

SHAPED: tuple[tuple[str, re.Pattern[str]], ...] = (
    (":AA", lazy(r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])")),  # Telegram
    (".", lazy(r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}")),  # Discord
    ("hooks.slack.com", lazy(r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,120}")),
    ("/api/webhooks/", lazy(r"(?<=/api/webhooks/)[0-9]{17,20}/[A-Za-z0-9_-]{40,90}")),
    ("webhook.office.com", lazy(r"(?<=webhook\.office\.com/)webhookb2/[A-Za-z0-9@/_-]{40,250}")),
    (".atlasv1.", lazy(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,80}")),
    ("-us", lazy(r"(?<![A-Za-z0-9])[a-f0-9]{32}-us[0-9]{1,2}(?![0-9])")),  # Mailchimp
    ("Q~", lazy(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}")),  # Entra ID
)
"""Tokens recognized by their overall pattern, with a text that each contains."""
