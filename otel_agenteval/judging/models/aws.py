"""Requests to Amazon's servers, signed (Signature Version 4) by botocore, extra ``[bedrock]``.

Credentials come from where every program of Amazon's finds them: environment, profile, the role of a container or machine; botocore
renews those that end.
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
"""From URL, body and headers of a POST to the headers that sign it."""
_SERVICE = "bedrock"
_HOST = re.compile(r"(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$")


def region_in(base_url: str) -> str | None:
    """The region that an address of Bedrock names; None for any other server, whose requests are not signed."""
    found = _HOST.search(urllib.parse.urlsplit(base_url).hostname or "")
    return None if found is None else found[1]


class Signer:
    """Signs requests to one region. Thread-safe.

    Args:
        region: as in ``us-east-1``.
        credentials: of botocore; default: those that it finds.

    Raises:
        MissingExtra: botocore is not installed.
    """

    def __init__(self, region: str, credentials: Any = None) -> None:
        self._auth = require("botocore.auth", feature="Bedrock without an API key", extra="bedrock")
        self._requests = require("botocore.awsrequest", feature="Bedrock without an API key", extra="bedrock")
        self._region = region
        self._credentials = credentials
        self._lock = threading.Lock()

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The headers, with those that sign them.

        Raises:
            JudgeError: there are no credentials, or they cannot be renewed.
        """
        request = self._requests.AWSRequest("POST", url, data=body, headers=dict(headers))
        fault: str | None = None
        try:
            self._auth.SigV4Auth(self._found(), _SERVICE, self._region).add_auth(request)
        except JudgeError:
            raise
        except Exception as error:  # the renewal asks a server; what it raises can quote what it sent
            fault = type(error).__name__
        if fault is not None:
            raise JudgeError(f"AWS credentials cannot be used: {fault}", "no_credentials")
        return dict(request.headers.items())

    def _found(self) -> Any:
        with self._lock:
            if self._credentials is None:
                session = require("botocore.session", feature="Bedrock without an API key", extra="bedrock")
                self._credentials = session.Session().get_credentials()
            if self._credentials is None:
                raise JudgeError(
                    "there is neither an api_key nor AWS credentials (environment, profile or role)", "no_credentials"
                )
            return self._credentials
