"""Signing of requests to Amazon Bedrock with botocore, extra ``[bedrock]``.

Requests have Signature Version 4. botocore finds credentials in the environment, a profile, or the role of a container or
machine, and renews expired ones.
"""

from __future__ import annotations

import re
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import JudgeError
from ...core.extras import require

Sign = Callable[[str, bytes, Mapping[str, str]], Mapping[str, str]]
_SERVICE = "bedrock"
_HOST = re.compile(r"(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$")


def region_in(base_url: str) -> str | None:
    """Return the region in a Bedrock URL, or None for other servers, whose requests aren't signed."""
    found = _HOST.search(urllib.parse.urlsplit(base_url).hostname or "")
    return None if found is None else found[1]


class Signer:
    """Signer of requests to one region, with the credentials that botocore finds. Thread-safe."""

    def __init__(self, region: str, credentials: Any = None) -> None:
        self._auth = require("botocore.auth", feature="Bedrock without an API key", extra="bedrock")
        self._requests = require("botocore.awsrequest", feature="Bedrock without an API key", extra="bedrock")
        self._region = region
        self._credentials = credentials
        self._lock = threading.Lock()

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> Mapping[str, str]:
        request = self._requests.AWSRequest("POST", url, data=body, headers=dict(headers))
        fault: str | None = None
        try:
            self._auth.SigV4Auth(self._found(), _SERVICE, self._region).add_auth(request)
        except JudgeError:
            raise
        except Exception as error:  # renewal calls a server, and the error text can contain the request
            fault = type(error).__name__
        if fault is not None:
            raise JudgeError(f"AWS credentials: can't sign the request: {fault}", "no_credentials")
        return dict(request.headers.items())

    def _found(self) -> Any:
        with self._lock:
            if self._credentials is None:
                session = require("botocore.session", feature="Bedrock without an API key", extra="bedrock")
                self._credentials = session.Session().get_credentials()
            if self._credentials is None:
                raise JudgeError("api_key: required without AWS credentials (environment, profile or role)", "no_credentials")
            return self._credentials
