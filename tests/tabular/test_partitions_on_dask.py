"""A table in parts on a cluster of two processes: the same model, whatever happens to a worker."""

import os
import signal

import pytest
from tests.tabular.test_partitions import ROLES, coefficients, people, write_parts

from fairsieve import tabular
from fairsieve.errors import FairsieveError
from fairsieve.tabular.partitions import partitions
from fairsieve.training.parts import PartRows

pytest.importorskip("pyarrow")
pytest.importorskip("distributed")
import dask.dataframe as dd
from dask.utils import key_split
from distributed import Client, LocalCluster

CLUSTER = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
SETTINGS = {**ROLES, "clean_ratio": 0.9, "max_iter": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_parts(people(), tmp_path_factory.mktemp("data") / "parts", 3)


@pytest.fixture(scope="module")
def local(folder):
    return tabular.train(folder, memory="3MB", **SETTINGS)


@pytest.fixture(scope="module")
def cluster():
    """Two processes for both tests: the second one stops them."""
    with LocalCluster(**CLUSTER) as found:
        yield found


def address(cluster):
    return cluster.scheduler_address.replace("tcp://", "dask://")


@pytest.mark.skipif(os.name != "posix", reason="kills are signals")
def test_a_worker_that_is_killed_costs_its_parts_and_nothing_else(cluster, folder, local, monkeypatch):
    ask, names = PartRows.ask, set()
    with Client(cluster, set_as_default=False) as client:

        def kill_once(self, *arguments, **options):
            if not names:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            found = ask(self, *arguments, **options)
            keys = client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.tasks])
            names.update(map(key_split, keys))
            return found

        monkeypatch.setattr(PartRows, "ask", kill_once)
        remote = tabular.train(folder, backend=address(cluster), **SETTINGS)
    for which in ("plain", "fair"):
        expected, found = (coefficients(getattr(run.run.trained, which)) for run in (local, remote))
        assert found == pytest.approx(expected, abs=1e-6)
    assert remote.decision.outcome == local.decision.outcome
    # Sums arrive in another order, so rows that are as likely as each other may change places.
    suspects = [run.suspects.sort_values(["file", "row_in_file"]) for run in (local, remote)]
    assert suspects[0]["row_in_file"].tolist() == suspects[1]["row_in_file"].tolist()
    assert suspects[0]["loss"].to_numpy() == pytest.approx(suspects[1]["loss"].to_numpy(), abs=1e-5)
    assert "encoding" in names  # what the dashboard shows


def test_a_scheduler_that_goes_away_is_an_error_and_nothing_stays(cluster, folder, monkeypatch, tmp_path):
    ask, asked = PartRows.ask, []
    monkeypatch.setattr(partitions, "CONNECT", 5)  # seconds, for the test

    def close_once(self, *arguments, **options):
        asked.append(arguments)
        if len(asked) == 3:
            cluster.close()
        return ask(self, *arguments, **options)

    monkeypatch.setattr(PartRows, "ask", close_once)
    with pytest.raises(FairsieveError, match="scheduler no longer answers"):
        tabular.train(folder, backend=address(cluster), **SETTINGS).save(tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_dask_data_frame_is_worked_on_where_dask_works(local, folder):
    frame = dd.read_parquet(folder)
    found = tabular.train(frame, **SETTINGS)
    expected = coefficients(local.run.trained.fair)
    assert coefficients(found.run.trained.fair) == pytest.approx(expected, abs=1e-6)
