"""A release: the same bytes from the same sources, and all of them in it."""

import os
import shutil
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.programs import run_python

ROOT = Path(__file__).parents[1]
HATCH = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
NAMES = [*HATCH["sdist"]["include"], "pyproject.toml", ".gitignore"]
BUILT_AT = "1700000000"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Two builds, in other folders, of files with other times and rights."""
    pytest.importorskip("hatchling")
    found, sources = [], tmp_path_factory.mktemp("sources")
    (sources / "snapshot").mkdir()
    for name in NAMES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, sources / "snapshot" / name)
    for number in range(2):
        folder = sources / f"of-build-{number}"
        shutil.copytree(sources / "snapshot", folder)
        for path in folder.rglob("*"):
            os.utime(path, (1_600_000_000 + 10_000_000 * number,) * 2)
            if path.is_file():
                path.chmod(0o600 if number else 0o644)
        (folder / "src" / "fairsieve" / "__pycache__").mkdir(exist_ok=True)
        (folder / "src" / "fairsieve" / "__pycache__" / f"left.{number}.nbc").write_bytes(b"compiled")
        run_python("-m", "hatchling", "build", "-d", "dist", cwd=folder, env={"SOURCE_DATE_EPOCH": BUILT_AT})
        found.append(sorted((folder / "dist").iterdir()))
    return found


def test_two_builds_are_the_same_bytes(built):
    first, second = ({path.name: path.read_bytes() for path in one} for one in built)
    assert first == second
    assert {Path(name).suffix for name in first} == {".gz", ".whl"}


def test_all_sources_are_in_it_and_nothing_else(built):
    sources = {  # in the wheel, and where they stand in the archive
        path.relative_to(folder).as_posix(): path.relative_to(ROOT).as_posix()
        for folder in (ROOT / "src", ROOT / "reproduction")
        for path in folder.glob("fairsieve*/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wheel, archive = built[0]
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == set(sources)
    with tarfile.open(archive) as names:
        inside = {name.partition("/")[2] for name in names.getnames()}
    assert inside >= set(sources.values()) | {"Makefile", "conftest.py", "constraints.txt", "LICENSE"}
    assert inside >= {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
