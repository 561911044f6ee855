"""Set-up of the whole suite."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent

# Compiled kernels are cached on disk, and that cache does not notice a change in a kernel that
# another file's kernel calls. A cache of its own for each state of the files with kernels, and of those that they
# call, does; a change of any other file compiles nothing anew.
FOLDERS = ("src/fairsieve/selection", "src/fairsieve/training", "reproduction/fairsieve_reproduction/methods")
SOURCES = sorted(path for folder in FOLDERS for path in ROOT.glob(f"{folder}/*.py"))
STATE = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "numba" / STATE))
os.environ.setdefault("NUMBA_OPT", "1")  # compiling takes longer here than what is compiled
# Programs that the tests start would compile the library anew, each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A shell lets what it starts in the background ignore SIGINT, and programs that the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, str(ROOT))
from tests.support.imports import files_that_cannot_be_imported  # noqa: E402

from fairsieve.errors import MissingExtraError  # noqa: E402

collect_ignore = files_that_cannot_be_imported(ROOT)  # an environment without torch has fewer tests
os.environ.setdefault("MPLCONFIGDIR", tempfile.mkdtemp(prefix="fairsieve-mpl-"))

from hypothesis import HealthCheck, Phase, settings  # noqa: E402

# The same examples in every run; make nightly looks for others.
settings.register_profile(
    "default",
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile(  # mutmut (setup.cfg): quick, and the same every time
    "mutation",
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Skip a test that needs an extra, in the environment that has none of them."""
    try:
        return (yield)
    except MissingExtraError as error:
        if importlib.util.find_spec("torch") is not None:  # everything should be there
            raise
        pytest.skip(str(error))
