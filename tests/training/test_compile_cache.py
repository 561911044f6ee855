"""A cache of compiled code that cannot be written does not end a call."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))  # files of 100 bytes, no more
from fairsieve.training.fastmath import sigmoid
print(sigmoid(0.0))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
@pytest.mark.parametrize("folder", ["new", "a file"])
def test_a_full_disk_does_not_stop_compiled_code(tmp_path, folder):
    (tmp_path / "a file").write_text("not a folder")
    told = subprocess.run(
        [sys.executable, "-c", FULL],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / folder)},
    )
    assert (told.returncode, told.stdout) == (0, "0.5\n"), told.stderr[-2000:]
