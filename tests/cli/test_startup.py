"""The command line answers at once, without importing anything heavy."""

import json
import subprocess
import sys

import pytest

HEAVY = {"numpy", "scipy", "sklearn", "numba", "torch", "pandas", "joblib", "matplotlib", "plotly", "skops"}

LOOK = """
import json, sys
sys.argv = ["fairsieve", *json.loads(sys.argv[1])]
from fairsieve.__main__ import main
try:
    main()
finally:
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], [], ["train", "-h"], ["compare", "--help"], ["data", "--help"]]
)
def test_help_and_version_import_nothing_heavy(arguments):
    done = subprocess.run(
        [sys.executable, "-c", LOOK, json.dumps(arguments)], capture_output=True, text=True, check=True
    )
    assert "fairsieve 0." in done.stdout or "Usage: fairsieve" in done.stdout
    assert HEAVY & set(json.loads(done.stderr.splitlines()[-1])) == set()
