"""``make unseen`` stays above its bounds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from otel_agenteval.dialects import reader
from tests.support.recordings import unpack_all

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def unseen():
    spec = importlib.util.spec_from_file_location("unseen", ROOT / "scripts" / "unseen.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path = sys.path.copy()
    spec.loader.exec_module(module)
    sys.path[:] = path  # the script adds folders whose modules have the names of packages
    return module


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folders = [tmp_path_factory.mktemp("unseen") / name for name in ("corpus", "corpus_b")]
    for folder in folders:
        folder.mkdir()
        unpack_all(ROOT / "tests" / "data" / f"{folder.name}.tar.xz", folder)
    return folders


def test_without_any_dialect_most_is_right(unseen, corpora):
    for folder in corpora:
        assert unseen.without_any(folder).share >= unseen.ALL_LEFT_OUT[folder.name]
    assert reader.DIALECTS == unseen.ALL  # and afterwards all are spoken again


@pytest.mark.slow
def test_what_one_dialect_reads_is_read_without_it(unseen, corpora):
    rows = list(unseen.left_out(corpora))
    assert min(row.share for row in rows) >= unseen.EACH
    assert unseen.total(rows).share >= unseen.ONE_LEFT_OUT
