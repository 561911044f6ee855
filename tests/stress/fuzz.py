"""Fuzz a reader with atheris (pip install 'fairsieve[fuzz]'), from a few valid inputs.

    python tests/stress/fuzz.py csv --seconds 600
    python tests/stress/fuzz.py records --seconds 600
    python tests/stress/fuzz.py records --seconds 600

All our modules but compiled ones are instrumented; libFuzzer prints executions (#), coverage (cov) and the corpus. An
exception that is not one of ours is a finding: its input is kept under ``--out``, once for each place that
raises it, and the fuzzing goes on. A hang of ten seconds or four gigabytes of memory end it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))
SOURCES = Path(__file__).parents[2] / "src"
COMPILED = [  # numba cannot compile what is instrumented
    ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for path in SOURCES.glob("fairsieve/**/*.py")
    if "@compiled" in path.read_text()
]
with atheris.instrument_imports(include=["fairsieve"], exclude=COMPILED):
    from tests.stress.fuzzing.targets import TARGETS


def name_place(error: BaseException) -> str:
    """Name where an exception comes from: its type and the last line of fairsieve in its traceback."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if "fairsieve" in frame.filename]
    last = lines[-1]
    return f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"


def store_findings(run: Callable[[bytes], None], out: Path) -> Callable[[bytes], None]:
    """Store the inputs that break ``run``, and go on."""
    seen: set[str] = set()

    def one(content: bytes) -> None:
        try:
            run(content)
        except Exception as error:
            place = name_place(error)
            if place not in seen:
                seen.add(place)
                (out / f"{place}.bin").write_bytes(content)
                print(f"FINDING {place}: {error!r}; {content[:200]!r}", flush=True)
                traceback.print_exc()

    return one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("reader", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--out", type=Path, default=Path("findings"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairsieve-fuzz-") as scratch:
        folder, corpus = Path(scratch) / "files", Path(scratch) / "corpus"
        for needed in (folder, corpus, arguments.out):
            needed.mkdir(parents=True, exist_ok=True)
        target = TARGETS[arguments.reader](folder)
        for number, seed in enumerate(target.seeds):
            (corpus / str(number)).write_bytes(seed)
        options = [f"-max_total_time={arguments.seconds}", "-timeout=10", "-rss_limit_mb=4096"]
        options += ["-max_len=16384", "-print_final_stats=1", f"-artifact_prefix={arguments.out}/"]
        atheris.Setup([sys.argv[0], *options, str(corpus)], store_findings(target.run, arguments.out))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
