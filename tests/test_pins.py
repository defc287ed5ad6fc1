"""The locked versions: whole and right for every supported Python, with hashes for the image, and a check that finds what can't be installed."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from requirements import pin

ROOT = Path(__file__).parent.parent
tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of pyproject.toml")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked(name: str, python: str) -> dict[str, str]:
    """Return the version of each distribution that a lock has for one Python."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for line in re.findall(r"^[^\s#].*?(?= \\$|$)", text, re.MULTILINE):
        requirement = Requirement(line)
        if applies(requirement, python):
            assert requirement.name not in found, f"{name}: two lines for {requirement.name} on Python {python}"
            (specifier,) = requirement.specifier
            found[requirement.name] = specifier.version
    return found


def applies(requirement: Requirement, python: str) -> bool:
    environment = {"python_version": python.rpartition(".")[0] or python, "python_full_version": python}
    return requirement.marker is None or requirement.marker.evaluate(environment)


def declared(extras: tuple[str, ...]) -> list[Requirement]:
    project = PYPROJECT["project"]
    texts = [*project["dependencies"], *(text for extra in extras for text in project["optional-dependencies"][extra])]
    return [one for one in map(Requirement, texts) if one.name != project["name"]]


@pytest.mark.parametrize("python", pin.PYTHONS)
@pytest.mark.parametrize("name", ["dev.txt", "docs.txt"])
def test_each_declared_package_is_locked_for(name: str, python: str) -> None:
    everything = declared(tuple(PYPROJECT["project"]["optional-dependencies"]))
    wanted = everything if name == "dev.txt" else [Requirement(text) for text in PYPROJECT["dependency-groups"]["docs"]]
    versions = locked(name, python)
    for one in wanted:
        if applies(one, python):
            version = versions[canonicalize_name(one.name)]
            assert one.specifier.contains(version, prereleases=True), f"{one} is locked to {version}"


def test_locks_cover_every_declared_python() -> None:
    classifiers = re.findall(r"Python :: (3\.\d+)$", "\n".join(PYPROJECT["project"]["classifiers"]), re.MULTILINE)
    assert [python.rpartition(".")[0] for python in pin.PYTHONS] == classifiers


def test_locks_for_the_image_agree_and_have_hashes() -> None:
    tested, image, build = (locked(name, "3.12.0") for name in ("dev.txt", "image.txt", "build.txt"))
    assert image.items() <= tested.items()
    assert {canonicalize_name(one.name) for one in declared(pin.IMAGE_EXTRAS)} <= image.keys()
    assert "serve" in pin.IMAGE_EXTRAS
    assert PYPROJECT["dependency-groups"]["build"] == PYPROJECT["build-system"]["requires"]
    assert {canonicalize_name(Requirement(text).name) for text in PYPROJECT["build-system"]["requires"]} <= build.keys()
    for name, pins in (("image.txt", image), ("build.txt", build)):
        text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
        assert len(re.findall(r"^\S+==\S+ \\(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+$", text, re.MULTILINE)) == len(pins)


def test_locks_name_no_index() -> None:
    assert [file.name for file in (ROOT / "requirements").rglob("*.txt") if "://" in file.read_text(encoding="utf-8")] == []


def wheel(folder: Path, name: str, version: str, python: str) -> None:
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: {python}\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}-{version}.dist-info/METADATA", about)
        file.writestr(f"{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{name}-{version}.dist-info/RECORD", "")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose one requirement left Python 3.11.2 behind with its newest version, and an index of files."""
    pytest.importorskip("uv", reason="make pin or make test installs it")
    index = tmp_path / "index"
    index.mkdir()
    wheel(index, "moves_on", "12.0", ">=3.10")
    wheel(index, "moves_on", "13.1", ">=3.11.5")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(index))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(pin, "LOCKS", {"dev.txt": pin.Lock(("pyproject.toml",))})
    (tmp_path / "requirements").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "it"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["moves-on"]\n', encoding="utf-8"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("lock", "says"),
    [
        pytest.param("moves-on==13.1\n", "moves-on==13.1", id="a version that is too new"),
        pytest.param('moves-on==13.1 ; python_full_version >= "3.11.5"\n', "moves-on==12.0 isn't locked", id="no version"),
    ],
)
def test_check_names_each_python_that_a_lock_fails_on(lock: str, says: str, project: Path) -> None:
    (project / "requirements" / "dev.txt").write_text(lock, encoding="utf-8")
    found = list(pin.faults(project))
    assert [re.findall(r"Python (3\.\d+\.\d+) on x86", fault) for fault in found[::2]] == [["3.10.0"], ["3.11.2"]]
    assert [fault for fault in found if says not in fault] == []


def test_written_lock_passes_the_check_on_every_python(project: Path) -> None:
    pin.write("dev.txt", root=project)
    assert locked_lines(project) == [
        "moves-on==12.0 ; python_full_version < '3.11.5'",
        "moves-on==13.1 ; python_full_version >= '3.11.5'",
    ]
    assert list(pin.faults(project)) == []


def test_lock_keeps_its_versions_unless_upgraded(project: Path) -> None:
    (project / "requirements" / "dev.txt").write_text("moves-on==12.0\n", encoding="utf-8")
    pin.write("dev.txt", root=project)
    assert locked_lines(project) == ["moves-on==12.0"]
    pin.write("dev.txt", ["--upgrade"], project)
    assert len(locked_lines(project)) == 2


def locked_lines(project: Path) -> list[str]:
    text = (project / "requirements" / "dev.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]
