"""Outlet that posts notices to Slack, Teams, PagerDuty, or another URL."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..config.outlets import WebhookOptions
from ..core import jsonio
from ..core.errors import ConfigError
from ..core.pacing import backoff, retry_after
from ..core.telemetry import Telemetry
from ..core.threads import started
from ..evaluation.scored_turn import Root, ScoredTurn
from ..metrics.registry import resolve
from .base import Outlet, RecordAccount, Setup
from .log_events import uninstrumented
from .notices import Context, Notice, Watch, bodies, notice_of

if TYPE_CHECKING:
    from ..statistics.changes import Change

_log = logging.getLogger("otel_agenteval")

_GATHERING = 1.0
"""Seconds that the first notice waits for further notices, because notices often have the same cause."""
_MOST_WAITING = 1_000
"""Maximum number of waiting notices. Notices about the same subject are merged."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0
_RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504))
_ABOUT_THE_BODY = frozenset((400, 413, 422))
_JOIN = 1.0
_READ = 65_536
"""Maximum bytes to read from a response. A connection can be reused only after the response was read."""


class _Refused(Exception):
    def __init__(self, reason: str, pause: float, *, for_good: bool, about_the_body: bool = False) -> None:
        super().__init__(reason)
        self.pause = pause
        self.for_good = for_good
        self.about_the_body = about_the_body
        """True if the message's content might be the cause. In this case, the receiver might accept other messages."""


class WebhookOutlet(Outlet):
    """Outlet that posts messages about failed gates and other configured events.

    A separate thread or a flush sends the messages. If the receiver is temporarily unavailable, the outlet retries with exponential
    backoff. If the receiver requests a longer wait, the outlet waits longer. Meanwhile, the outlet merges notices with the same
    key, which limits memory use. After ``retry_for``, the outlet drops waiting notices.
    """

    name = "webhook"
    records: RecordAccount

    def __init__(
        self,
        options: WebhookOptions,
        sender: Callable[[], str],
        telemetry: Telemetry | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._sender = sender
        self._monotonic = monotonic
        self.records = RecordAccount(self.name, telemetry)
        self._may_start = True
        self._reset()

    def _reset(self) -> None:
        options = self._options
        self._watch = Watch(options.about, options.floors, options.window, options.least)
        self._waiting: dict[tuple[str, ...], Notice] = {}
        self._together = self._most_together = 1 if options.format == "pagerduty" else _MOST_WAITING
        """Current and initial maximum number of notices per message.

        After a failure that a single notice could have caused, the current maximum is halved.
        """
        self._since: float | None = None
        """Monotonic time when the oldest notice started to wait. Compared with ``retry_for``."""
        self._due: float | None = None
        self._next = 0.0
        """Earliest monotonic time of the next message: ``every`` seconds after the latest message."""
        self._failures = 0
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._client: Any = None
        self._warned_of: set[str] = set()

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        now = self._monotonic()
        found, fault = self.render(batch, lambda scored: self._watch.notices(scored, now))
        self._gather([notice for notices in found for notice in notices], now)
        if fault is not None:
            raise fault

    def announce(self, change: Change, root: Root) -> None:
        if "changes" in self._options.about:
            self._gather([notice_of(change, root)], self._monotonic())

    def _gather(self, found: Sequence[Notice], now: float) -> None:
        if not found:
            return
        self.records.add(len(found))
        with self._lock:
            for notice in found:
                known = self._waiting.get(notice.key)
                if known is None and len(self._waiting) >= _MOST_WAITING:
                    self.records.finish("queue_full", 1)
                else:
                    self._waiting[notice.key] = notice if known is None else known.merged(notice)
            if self._due is None and self._waiting:
                self._since, self._due = now, max(now + min(_GATHERING, self._options.every), self._next)
        self._wake.set()
        if self._thread is None and self._may_start and not self._closed:
            self._thread = started(self._run, "otel-agenteval-webhook")
            self._may_start = self._thread is not None  # without a thread, a flush does the work

    def flush(self, timeout: float) -> bool:
        if not self._waiting:
            return True
        if self._failures and self._may_start:
            return False  # the receiver is failing, so the caller doesn't wait
        return self._send(max(0.05, timeout))

    def begin_exit(self) -> None:
        self._may_start = False

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN)
        with self._lock:
            lost = sum(notice.records for notice in self._waiting.values())
            self._waiting = {}
        self.lose_rest(lost, "notice")
        if self._client is not None:
            self._client.close()

    def _run(self) -> None:
        while not self._closed:
            due = self._due
            wait = None if due is None else due - self._monotonic()
            if wait is None or wait > 0:
                self._wake.wait(wait)
                self._wake.clear()
            else:  # waits if another thread is sending
                try:
                    self._send(self._options.timeout)
                except Exception as error:  # an internal error must not end the thread
                    self._warn_once(type(error).__name__)
                    self._pause(_LONGEST_PAUSE)

    def _send(self, timeout: float) -> bool:
        """Send all waiting notices, on one thread at a time. Return True if all notices were sent and no notice is waiting."""
        if not self._sending.acquire(timeout=timeout):
            return False
        try:
            with uninstrumented():
                return self._send_alone(timeout)
        finally:
            self._sending.release()

    def _send_alone(self, timeout: float) -> bool:
        with self._lock:
            left, self._waiting = [*self._waiting.values()], {}
            if not left:
                self._due = None
                return True
        fault: Exception | None = None
        all_sent = True
        while left:
            part = left[: self._together]
            try:
                self._send_part(part, timeout)
                outcome, self._trouble = "sent", ""
            except _Refused as refused:
                if refused.about_the_body and self._split(part):
                    continue
                self._trouble = str(refused)
                self._warn_once(self._trouble)
                final = self._outcome_of(refused)
                if final is None:
                    self._wait_again(refused, left)
                    return False
                outcome = final
                part = part if refused.about_the_body else left
            except Exception as error:
                if self._split(part):
                    continue
                outcome, fault = "fault", error
            self.records.finish(outcome, sum(notice.records for notice in part))
            all_sent = all_sent and outcome == "sent"
            self._together = min(self._most_together, self._together * 2)
            del left[: len(part)]
        now = self._monotonic()
        with self._lock:
            self._failures = 0
            self._next = now + self._options.every
            self._since, self._due = (now, self._next) if self._waiting else (None, None)
        if fault is not None:  # the caller counts it
            raise fault
        return all_sent and not self._waiting

    def _send_part(self, part: Sequence[Notice], timeout: float) -> None:
        moment = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        for body in bodies(part, Context(self._options, self._sender(), moment, self._since)):
            self._post(jsonio.dumps(body).encode(), timeout)

    def _split(self, part: Sequence[Notice]) -> bool:
        """After a refusal that a single notice could have caused, halve the number of notices per message. If the refused message
        contained only one notice, return False.
        """
        self._together = max(1, len(part) // 2)
        return len(part) > 1

    def _outcome_of(self, refused: _Refused) -> str | None:
        if refused.for_good:
            return "rejected"
        has_expired = self._since is not None and self._monotonic() - self._since > self._options.retry_for
        return "expired" if has_expired else None

    def _wait_again(self, refused: _Refused, notices: Sequence[Notice]) -> None:
        with self._lock:
            later, self._waiting = self._waiting, {notice.key: notice for notice in notices}
            for key, notice in later.items():
                self._waiting[key] = self._waiting[key].merged(notice) if key in self._waiting else notice
            self._since = self._monotonic() if self._since is None else self._since
        self._failures += 1
        self._pause(max(refused.pause, backoff(self._failures, _FIRST_PAUSE, _LONGEST_PAUSE)))

    def _pause(self, seconds: float) -> None:
        with self._lock:
            self._due = self._monotonic() + max(seconds, self._options.every)

    def _warn_once(self, reason: str) -> None:
        if reason not in self._warned_of:
            self._warned_of.add(reason)
            what = "the receiver refused a message" if reason.startswith("HTTP ") else "a message was not sent"
            _log.warning("outlet webhook: %s: %s (further failures are only counted)", what, reason)

    def _post(self, body: bytes, timeout: float) -> None:
        import httpx  # imported at the first message

        from ..core.outbound import answer_of, cause_of, client_to

        if self._client is None:
            self._client = client_to(self._options.url)
        seconds = str(int(time.time()))
        headers = {"Content-Type": "application/json", "User-Agent": "otel-agenteval", **self._options.headers}
        if secret := self._options.signing_secret:
            digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
            headers["X-Agenteval-Signature"] = f"t={seconds},v1={digest}"
        try:
            answer, _ = answer_of(
                self._client, "POST", self._options.url, seconds=min(timeout, self._options.timeout), most=_READ, content=body,
                headers=headers,
            )  # fmt: skip
        except httpx.HTTPError as error:
            is_unreachable = isinstance(error, httpx.ConnectError)
            why = f"can't reach the address ({cause_of(error)})" if is_unreachable else type(error).__name__
            raise _Refused(why, 0.0, for_good=False) from None
        if answer.is_success:
            return
        status = answer.status_code
        pause = retry_after(answer.headers.get("retry-after"))
        raise _Refused(f"HTTP {status}", pause, for_good=status not in _RETRIED, about_the_body=status in _ABOUT_THE_BODY)


def outlet_from(wanted: WebhookOptions, setup: Setup) -> Outlet:
    for name in wanted.floors:
        try:
            resolve(name)
        except ConfigError as error:
            raise ConfigError(f"{setup.config.where(('outlets', 'webhook', 'floors', name))}: {error}") from None
    return WebhookOutlet(wanted, setup.instance_id, setup.telemetry)
