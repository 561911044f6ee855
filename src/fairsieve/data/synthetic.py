"""The paper's synthetic data, drawn anew or read from the authors' arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from scipy.stats import multivariate_normal

from fairsieve.data.sources import AnyPath
from fairsieve.data.splits import Splits
from fairsieve.errors import InvalidInputError, MissingDataError
from fairsieve.samples import Samples
from fairsieve.selection.cells import Integers, Values
from fairsieve.validation import check_at_least, check_choice

# Means and covariances of (x₁, x₂) given y = 1 and y = 0 (Sec. 5).
POSITIVE = (np.array([1.0, 1.0]), np.array([[5.0, 1.0], [1.0, 5.0]]))
NEGATIVE = (np.array([-1.0, -1.0]), np.array([[10.0, 1.0], [1.0, 3.0]]))
ANGLE = np.pi / 5
ODDS = 7.0
NAMES = ("x1", "x2", "z")


def make_synthetic(n: int, *, seed: int, rotation: Literal["arrays", "printed"] = "arrays") -> Samples:
    """Draw the synthetic data of the paper, as its fifth section describes them.

    y is a fair coin, (x₁, x₂) given y a Gaussian, and z depends on the rotated point. The features
    are x₁, x₂ and z.

    Parameters
    ----------
    n : int
    seed : int
    rotation : {"arrays", "printed"}, default="arrays"
        The arrays that the authors published follow a rotation by −π/5; the text prints +π/5.

    Examples
    --------
    >>> samples = make_synthetic(2000, seed=0)
    >>> samples.features.shape, samples.classes, samples.group_values
    ((2000, 3), [0, 1], [0, 1])
    """
    check_at_least("n", n, 1)
    check_choice("rotation", rotation, ("arrays", "printed"))
    rng = np.random.default_rng(check_at_least("seed", seed, 0))
    labels = rng.integers(0, 2, n)
    positive = rng.multivariate_normal(*POSITIVE, size=n)
    negative = rng.multivariate_normal(*NEGATIVE, size=n)
    points = np.where(labels[:, None] == 1, positive, negative)
    angle = -ANGLE if rotation == "arrays" else ANGLE
    cos, sin = np.cos(angle), np.sin(angle)
    turned = points @ np.array([[cos, sin], [-sin, cos]])  # (x₁cos − x₂sin, x₁sin + x₂cos)
    likely, unlikely = (multivariate_normal(*each).pdf(turned) for each in (POSITIVE, NEGATIVE))
    groups = (rng.random(n) < ODDS * likely / (ODDS * likely + unlikely)).astype(np.int64)
    features = np.column_stack([points, groups]).astype(np.float32)
    return Samples(features, labels, groups, NAMES, classes=[0, 1], group_values=[0, 1])


def synthetic_splits(seed: int, *, rotation: Literal["arrays", "printed"] = "arrays") -> Splits:
    """Draw samples and cut them as in the paper: 2,000 to train, 1,000 to test, 200 to validate.

    Examples
    --------
    >>> parts = synthetic_splits(seed=0)
    >>> len(parts.train), len(parts.test), len(parts.validation)
    (2000, 1000, 200)
    """
    drawn = make_synthetic(3200, seed=seed, rotation=rotation)
    parts = np.split(np.arange(3200), [2000, 3000])
    return Splits(*(drawn.take(rows) for rows in parts))


def load_authors_arrays(folder: AnyPath) -> tuple[Splits, dict[str, Integers]]:
    """Read the arrays of the authors' synthetic experiment from a folder.

    The folder holds ``xz_{train,test,val}.npy`` (n × 3: x₁, x₂, z), ``y_*.npy`` (±1), ``z_*.npy``
    (0/1), and the flipped training labels ``y_noise_general.npy`` and ``y_noise_grouptarget.npy``.

    Returns
    -------
    splits : Splits
        Labels as 0 and 1.
    noisy : dict
        ``"general"`` and ``"group-targeted"``: the training labels with flips, as 0 and 1.

    Examples
    --------
    >>> load_authors_arrays("nowhere")
    Traceback (most recent call last):
        ...
    fairsieve.errors.MissingDataError: xz_train.npy is not in nowhere: ...
    """
    parts = []
    for part in ("train", "test", "val"):
        features = _read_array(folder, f"xz_{part}.npy").astype(np.float32)
        labels, groups = (_read_codes(folder, f"{name}_{part}.npy", len(features)) for name in "yz")
        parts.append(Samples(features, labels, groups, NAMES, classes=[0, 1], group_values=[0, 1]))
    files = {"general": "y_noise_general.npy", "group-targeted": "y_noise_grouptarget.npy"}
    return Splits(*parts), {name: _read_codes(folder, file, len(parts[0])) for name, file in files.items()}


def _read_array(folder: AnyPath, name: str) -> Values:
    """Read one .npy file, and never unpickle it."""
    path = Path(folder) / name
    if not path.is_file():
        raise MissingDataError(
            f"{name} is not in {folder}: point to the folder of the authors' arrays (xz_*, y_*, z_* and y_noise_*.npy)"
        )
    try:
        array: Values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InvalidInputError(f"{path} must be a NumPy .npy file of numbers; {error}") from error
    return array


def _read_codes(folder: AnyPath, name: str, samples: int) -> Integers:
    """Read labels of ±1, or groups of 0 and 1, as 0 and 1."""
    codes = _read_array(folder, name).reshape(-1)
    if len(codes) != samples or not np.isin(codes, (-1, 0, 1)).all():
        raise InvalidInputError(
            f"{name} must hold {samples} numbers, each −1, 0 or 1; got {len(codes)}, such as "
            f"{np.unique(codes)[:5].tolist()}"
        )
    return (codes > 0).astype(np.int64)
