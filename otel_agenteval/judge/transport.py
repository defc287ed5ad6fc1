"""One way to the network for everything that asks a model: JSON over HTTP, with a timeout and retries."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, JudgeError

if TYPE_CHECKING:
    import httpx

_RETRIED = frozenset((408, 409, 429, 500, 502, 503, 504))
_ATTEMPTS = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0


class Transport:
    """Posts JSON and gives back the JSON object that came.

    Args:
        base_url: what paths are appended to.
        api_key: sent as bearer token.
        timeout: seconds that one attempt may take.
        sleep: for tests.
    """

    def __init__(
        self, base_url: str, api_key: str | None = None, timeout: float = 30.0, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"base_url: {base_url!r} is not allowed; a URL that starts with http:// or https:// is")
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._timeout = timeout
        self._sleep = sleep
        self._client: httpx.Client | None = None

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request.

        Raises:
            JudgeError: nobody answered in time, or the answer is a refusal or no JSON object. Its message holds no content.
        """
        for attempt in range(_ATTEMPTS):
            pause = random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt))  # noqa: S311 - jitter, no secret
            last = attempt == _ATTEMPTS - 1
            try:
                answer = self._send(path, body)
            except JudgeError:
                if last:
                    raise
                self._sleep(pause)
                continue
            if answer.status_code in _RETRIED and not last:
                self._sleep(_retry_after(answer.headers.get("retry-after"), pause))
                continue
            return _object_in(answer)
        raise AssertionError("unreachable")

    def _send(self, path: str, body: Mapping[str, Any]) -> httpx.Response:
        import httpx

        if self._client is None:
            self._client = httpx.Client(timeout=self._timeout, headers=self._headers, follow_redirects=False)
        try:
            return self._client.post(f"{self._base_url}{path}", json=dict(body))
        except httpx.TimeoutException:
            raise JudgeError(f"no answer within {self._timeout:g} s", "timeout") from None
        except httpx.HTTPError as error:
            raise JudgeError(f"could not be reached: {type(error).__name__}", "unreachable") from None

    def close(self) -> None:
        """Release connections."""
        if self._client is not None:
            self._client.close()
            self._client = None


def _retry_after(header: str | None, pause: float) -> float:
    try:
        asked = float(header) if header else 0.0
    except ValueError:
        asked = 0.0
    return min(max(asked, pause), 60.0)


def _object_in(answer: httpx.Response) -> dict[str, Any]:
    if answer.status_code >= 400:
        raise JudgeError(f"refused with status {answer.status_code}", f"http_{answer.status_code}")
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise JudgeError("the answer is no JSON object", "invalid_answer")
    return found
