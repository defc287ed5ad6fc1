"""Reports on attempts to break, open or fill a sidecar in production."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.files import fault_of_file, fault_of_folder
from otel_agenteval.core.score import MOST_EXPLAINED
from otel_agenteval.evaluation.redaction import KINDS, Redactor
from tests.support.service import Sidecar, turn_of

Capture = pytest.CaptureFixture[str]


def test_journal_folders_are_of_their_owner_alone(tmp_path: Path) -> None:
    """Report: folders of the journal could be listed by other users."""
    journal = tmp_path / "a" / "b" / "journal"
    with Sidecar({"serve": {"journal": str(journal)}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        folders = [path for path in (tmp_path / "a").rglob("*") if path.is_dir()]
        assert len(folders) >= 4
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in (tmp_path / "a", *folders)} == {0o700}


@pytest.mark.parametrize(
    "host",
    [
        "[::1].evil.example", "localhost:80@evil.example", "127.0.0.1:80@evil.example", "[::1]:80@evil.example", "localhost:x", "localhost:80:80",
        "evil.example@localhost", "[localhost]", "localhost/x", "[::1", "local host", "localhost:123456", "",
    ],
)  # fmt: skip
def test_a_host_that_only_begins_like_this_machine_is_refused(host: str) -> None:
    """Report: ``[::1].evil.example`` and ``localhost:80@evil.example`` passed as this machine."""
    with Sidecar() as sidecar:
        assert sidecar.get("/api/status", "web", {"Host": host})[0] == 403
        for own in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]", "[::1]:4318"):
            assert sidecar.get("/api/status", "web", {"Host": own})[0] == 200


@pytest.mark.parametrize(
    "command",
    ["eval loop", "eval loop/x", "eval x --out loop/o", "turns loop", "record -o loop/x -- true", "backfill loop --out o"],
)
def test_a_loop_of_links_is_one_line(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """Report: ``eval`` on a loop of symbolic links ended in a traceback."""
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    assert main(command.split()) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "loop" in line


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_unreadable_folder_is_named(tmp_path: Path) -> None:
    """Report: ``record -o`` into an unreadable folder ended in a traceback."""
    closed = tmp_path / "closed"
    (closed / "in").mkdir(parents=True)
    closed.chmod(0)
    os.seteuid(65534)
    try:
        found = fault_of_file(closed / "in" / "x"), fault_of_folder(closed / "in" / "x")
    finally:
        os.seteuid(0)
        closed.chmod(0o700)
    assert all(fault is not None and "closed" in fault for fault in found)


def test_a_file_of_unknown_keys_is_refused_soon(tmp_path: Path) -> None:
    """Report: 1.9 MB of unknown keys took 40 seconds."""
    file = tmp_path / "agenteval.yaml"
    for text in (
        "".join(f"unknown_{number}: 1\n" for number in range(100_000)),
        "".join(f"k{number}: 1\n" for number in range(5_000)),
    ):
        file.write_text(text)
        began = time.process_time()
        with pytest.raises(ConfigError) as error:
            load_config(file, env={})
        assert time.process_time() - began < 5
        assert len(str(error.value).splitlines()) <= 101
    assert str(error.value).endswith("and 4,900 more errors")


def test_a_huge_explanation_is_cut() -> None:
    """Report: an explanation of 50 MB starved all metrics."""

    @oa.metric()
    def code_talks(turn: oa.Turn) -> oa.Result:
        """Talks."""
        return oa.Result(1.0, explanation="ada@example.org é " * 3_000_000)

    score = oa.get_metric("code_talks").evaluate(oa.Turn.from_dict({"turn_id": "t"}))
    assert len(score.explanation or "") == MOST_EXPLAINED
    began = time.process_time()
    assert "ada@" not in str(Redactor(KINDS).score(score).explanation)
    assert time.process_time() - began < 2
