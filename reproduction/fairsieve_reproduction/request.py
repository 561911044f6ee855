"""What ``fairsieve reproduce`` is asked for: which experiments, under which rules, and where their records are."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing import active_children
from pathlib import Path
from typing import Literal

import pandas as pd
from joblib import cpu_count
from joblib.externals.loky import get_reusable_executor

from fairsieve.benchmark.workers import read_results
from fairsieve.errors import InvalidInputError
from fairsieve.files import write_output
from fairsieve_reproduction.experiments import (
    Experiment,
    Item,
    Protocols,
    Results,
    Scope,
    collect_experiments,
    find_items,
)
from fairsieve_reproduction.methods.registry import find_methods
from fairsieve_reproduction.page import write_reproduction
from fairsieve_reproduction.runner import Step, check_data_sets, reproduce


@dataclass(frozen=True, eq=False)
class Request:
    """A reproduction.

    Attributes
    ----------
    items : list of Item
        Tables and figures.
    scopes : dict
        The experiments behind them, by how much is asked for and on which data.
    records : Path
        The file of the records.
    out : Path
        The folder of the page, tables and figures.
    """

    items: list[Item]
    scopes: dict[Scope, list[Experiment]]
    records: Path
    out: Path

    @classmethod
    def read(
        cls,
        what: str,
        *,
        seeds: Sequence[str] = (),
        attacked: Sequence[str] = (),
        selection: Literal["text", "authors"] = "text",
        arrays: str | None = None,
        judge_only: bool = False,
        quick: bool = False,
        out: Path | None = None,
    ) -> Request:
        """Read the options of the command; report what is missing before any work is done."""
        counts, groups = _parse_seeds(seeds), dict(map(_parse_group, attacked))
        every = counts.pop("", None)
        scope = Scope(every, quick, method_seeds=counts, attacked=groups, as_authors=selection == "authors")
        items = find_items(what)
        experiments = collect_experiments(items)
        scopes = {scope: experiments}
        if arrays is not None or judge_only:
            synthetic = [each for each in experiments if each.data == "synthetic"]
            scopes[replace(scope, arrays=arrays or "recorded")] = synthetic
        published = _find_published_records() if judge_only and out is None else None
        out = Path("reproduced") if out is None else out
        request = cls(items, scopes, published or out / "records.jsonl", out)
        if not judge_only:
            for scope, wanted in scopes.items():
                check_data_sets(wanted, scope)
        elif not request.records.is_file():
            raise InvalidInputError(
                f"--judge-only needs records; {request.records} is not there: name their folder by --out"
            )
        return request

    @cached_property
    def results(self) -> dict[Scope, Results]:
        """What is recorded, and added by :meth:`run`."""
        return {scope: Results(read_results(self.records), scope) for scope in self.scopes}

    def run(self, jobs: int) -> Iterator[Step]:
        """Make the runs that are not recorded, and tell after each how far it is."""
        asked = [(wanted, self.results[scope]) for scope, wanted in self.scopes.items()]
        yield from reproduce(asked, self.records, jobs=jobs)

    def count(self) -> int:
        """Count the records behind the tables and figures."""
        return sum(len(self.results[scope].collect(wanted)) for scope, wanted in self.scopes.items())

    def write(self, sitting: str = "") -> tuple[Path, str]:
        """Write the page, tables and figures; return the page, and how many claims hold."""
        return write_reproduction(Protocols(*self.results.values()), self.items, self.out, sitting)


@dataclass
class Sitting:
    """What making records takes, from the moment that it is made.

    A reproduction that was stopped and continued takes several sittings. Each is a line of ``sittings.jsonl`` beside
    the records, so that the last one can tell what all of them took.

    Attributes
    ----------
    request : Request
        What is made.
    jobs : int
        Runs at a time.
    made, left : int
        Records so far, and those that are still to be made, as far as is known.
    """

    request: Request
    jobs: int
    made: int = 0
    left: int = 0
    clock: float = field(default_factory=time.perf_counter)
    processor: float = field(default_factory=lambda: sum(os.times()[:4]))
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def run(self) -> Iterator[Step]:
        """Make the runs that are not recorded, and tell after each how far it is."""
        for step in self.request.run(self.jobs):
            self.made, self.left = step.done, step.total - step.done
            yield step

    def end(self) -> str:
        """End the workers, whose time counts only then; say what making records took, and beside what."""
        # As it is: a pool whose workers were killed would wait for ever while it is resized.
        get_reusable_executor(reuse=True).shutdown(kill_workers=True)
        for worker in active_children():  # one that was killed counts once it has been waited for
            worker.join(10)
        now, path, cores = Sitting(self.request, self.jobs), self.request.out / "sittings.jsonl", cpu_count()
        took = {
            "made": self.made,
            "clock_minutes": round((now.clock - self.clock) / 60, 3),
            "processor_minutes": round((now.processor - self.processor) / 60, 3),
        }
        line = took | {"jobs": self.jobs, "cores": cores, "load": [round(self.load, 1), round(now.load, 1)]}
        before = path.read_text("utf-8").splitlines() if path.exists() else []
        lines = [*before, json.dumps(line)]
        write_output(path, ("\n".join(lines) + "\n").encode())
        every, records = pd.DataFrame(map(json.loads, lines)), self.request.count() + self.left
        text = (
            f"This sitting made {_in_words(took, records)}, {self.jobs} at a time on {cores} cores with a load average "
            f"of {self.load:.1f} when it began and {now.load:.1f} when it ended"
        )
        if len(every) > 1:
            text += f". All {len(every)} sittings here made {_in_words(every[list(took)].sum(), records)}"
        return text


def _in_words(took: Mapping[str, float] | pd.Series, records: int) -> str:
    return (
        f"{took['made']:,.0f} of {records:,} records in {took['clock_minutes']:.1f} minutes on the clock and "
        f"{took['processor_minutes']:.1f} minutes of processor time"
    )


def _find_published_records() -> Path | None:
    """Find the records that are published with the source, from there or from where the command is called."""
    folders = (Path(), Path(__file__).parents[2])
    paths = (folder / "docs" / "reproduction" / "records.jsonl" for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def _parse_seeds(texts: Sequence[str]) -> dict[str, int]:
    """Read ``--seeds``: METHOD=N for one method, or a number for all, under no name."""
    counts = {}
    for text in texts:
        name, _, count = text.rpartition("=")
        if not count.isdecimal() or int(count) < 1:
            raise InvalidInputError(f"--seeds must be a number of at least 1, or METHOD=N; got {text!r}")
        counts[find_methods(name)[0].name if name else ""] = int(count)
    return counts


def _parse_group(text: str) -> tuple[str, str]:
    """Read ``--attacked``: the group to attack of a data set."""
    data, _, group = text.partition("=")
    if data not in ("synthetic", "compas") or not group:  # of Adult, both groups are shown
        raise InvalidInputError(
            f"--attacked must be synthetic=GROUP or compas=GROUP, such as compas=Male; got {text!r}"
        )
    return data, group
