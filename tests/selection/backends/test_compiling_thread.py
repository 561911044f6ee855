"""Compiling on a thread of its own, beside a program that goes on."""

import threading
import warnings

import pytest
from numba.core.errors import NumbaWarning, WarningsFixer

from fairsieve.errors import FairsieveWarning
from fairsieve.selection.backends import auto, compiled


@pytest.fixture
def recording(monkeypatch):
    """Run the compiling thread up to where numba records warnings, as it does for every line that it types."""
    reached, go_on = threading.Event(), threading.Event()

    def step():
        with WarningsFixer(NumbaWarning).catch_warnings():
            reached.set()
            go_on.wait(10)

    monkeypatch.setattr(compiled, "warm_up_steps", lambda backend, dtype: [step])
    monkeypatch.setattr(auto, "_ready", threading.Event())
    thread = threading.Thread(target=auto._compile)

    def start():
        thread.start()
        assert reached.wait(10)

    def end():
        go_on.set()
        thread.join(10)

    yield start, end
    end()


def test_warnings_are_shown_at_once_while_kernels_are_compiled(recording):
    start, _ = recording
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        start()
        warnings.warn("now", FairsieveWarning, stacklevel=1)
        assert [str(one.message) for one in seen] == ["now"]


def test_recording_warnings_across_the_end_of_compiling_leaves_them_as_they_were(recording):
    start, end = recording
    start()
    before = warnings.filters, warnings.showwarning, warnings._showwarnmsg_impl
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        end()  # of what the thread began before us
        warnings.warn("later", FairsieveWarning, stacklevel=1)
    assert [str(one.message) for one in seen] == ["later"]
    assert (warnings.filters, warnings.showwarning, warnings._showwarnmsg_impl) == before


def test_numba_records_again_when_the_thread_is_done(recording):
    start, end = recording
    start()
    end()
    with WarningsFixer(NumbaWarning).catch_warnings():
        assert warnings._showwarnmsg_impl.__name__ == "append"
