"""The suite with exactly the lower bounds of pyproject.toml, in an environment of its own.

    python .ci/lowest.py [arguments of pytest]

uv (pip install uv) finds the lowest versions that the bounds of fairsieve and its extras allow; a bound that the
other packages do not let it reach is untrue and an error. What comes along with those, and the tools of the tests,
are of ordinary versions. Warnings are no errors here: old packages give them for what newer ones below them ask.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.support.dependencies import EXTRAS, PROJECT, requirements  # noqa: E402

BUILD = ROOT / "build"
PLACE, LOWEST, TOOLS = BUILD / "lowest", BUILD / "lowest.txt", BUILD / "tools.txt"
BESIDE = {"polars"}  # what people bring is old where everything is
NOT_NEEDED = {"import-linter", "mypy", "ruff"}  # they look at sources


def lower_bounds(beside: list[str]) -> dict[str, Version]:
    """The lower bound of every package that fairsieve or an extra asks for, and of those beside them."""
    asked = [Requirement(text) for several in (*requirements().values(), beside) for text in several]
    return {canonicalize_name(one.name): Version(next(iter(one.specifier)).version) for one in asked}


def pins(path: Path) -> dict[str, str]:
    """The versions in a file of pins."""
    lines = (line.split("==") for line in path.read_text().splitlines() if "==" in line)
    return {canonicalize_name(name.strip()): version.strip() for name, version in lines}


def untrue(bounds: dict[str, Version], found: dict[str, str]) -> list[str]:
    """Bounds that were not reached."""
    return [
        f"{name}>={bound} (it is {found[name]})"
        for name, bound in bounds.items()
        if Version(found[name]) != bound
    ]


def uv(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", *words], check=True, cwd=ROOT)


def main() -> None:
    BUILD.mkdir(exist_ok=True)
    dev = {
        canonicalize_name(Requirement(text).name): text for text in PROJECT["optional-dependencies"]["dev"]
    }
    beside = [dev[name] for name in sorted(BESIDE)]
    (BUILD / "beside.in").write_text("\n".join(beside))
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    asked = ("pyproject.toml", "build/beside.in", *extras)
    uv("pip", "compile", "--quiet", "--resolution", "lowest-direct", "--output-file", str(LOWEST), *asked)
    bounds, found = lower_bounds(beside), pins(LOWEST)
    if wrong := untrue(bounds, found):
        sys.exit(f"bounds that other packages do not let anyone reach; raise them: {', '.join(wrong)}")
    others = {name: version for name, version in pins(ROOT / "constraints.txt").items() if name not in found}
    TOOLS.write_text("".join(f"{name}=={version}\n" for name, version in others.items()))
    python = str(PLACE / "bin" / "python")
    uv("venv", "--quiet", "--seed", "--allow-existing", str(PLACE))
    install = ("pip", "install", "--quiet", "--python", python)
    uv(*install, "--no-deps", "--requirement", str(LOWEST))
    uv(*install, "--constraint", str(TOOLS), *sorted(dev.keys() - bounds.keys() - NOT_NEEDED))
    uv(*install, "--no-deps", "--editable", ".")
    suite = [python, "-m", "pytest", "-o", "filterwarnings=default", "--disable-warnings", *sys.argv[1:]]
    sys.exit(subprocess.run(suite, check=False, cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
