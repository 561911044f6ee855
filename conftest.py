"""Set-up of the whole suite."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from pathlib import Path

# Compiled kernels are cached on disk, and that cache does not notice a change in a kernel that
# another file's kernel calls. A cache of its own for each state of the sources does.
SOURCES = sorted(Path(__file__).parent.glob("src/fairsieve/**/*.py"))
STATE = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent / ".cache" / "numba" / STATE))
collect_ignore = ["tests/stress/fuzz.py", "tests/stress/mutation.py"]  # programs that are started by hand
if not importlib.util.find_spec("triton"):
    collect_ignore.append("src/fairsieve/selection/backends/triton_kernels.py")
os.environ.setdefault("MPLCONFIGDIR", tempfile.mkdtemp(prefix="fairsieve-mpl-"))

from hypothesis import HealthCheck, Phase, settings  # noqa: E402

settings.register_profile(
    "default", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "nightly", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile(  # tests/stress/mutation.py: quick, and the same every time
    "mutation",
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
