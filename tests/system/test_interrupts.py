"""Tests of a delayed Ctrl-C."""

import signal
import threading

import pytest

from t2t_repro.system.interrupts import delay_interrupts


@pytest.fixture(autouse=True)
def handler():
    """Restores Python's handler; a shell that runs the tests may ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_the_next_call():
    calls = []
    with (
        pytest.raises(KeyboardInterrupt),
        delay_interrupts(lambda *values: calls.append(values)) as call,
    ):
        call(1, 2)
        signal.raise_signal(signal.SIGINT)
        calls.append("after the signal")
        call(3, 4)
        calls.append("not reached")
    assert calls == [(1, 2), "after the signal", (3, 4)]


def test_ctrl_c_waits_for_the_end_of_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt), delay_interrupts(None) as call:
        call()
        signal.raise_signal(signal.SIGINT)
        done.append("after the signal")
    assert done == ["after the signal"]


def test_a_second_ctrl_c_does_not_wait():
    done = []
    with pytest.raises(KeyboardInterrupt), delay_interrupts(None):
        signal.raise_signal(signal.SIGINT)
        done.append("after the first signal")
        signal.raise_signal(signal.SIGINT)
        done.append("not reached")
    assert done == ["after the first signal"]


def test_an_error_is_not_replaced():
    with pytest.raises(ValueError, match="mine"), delay_interrupts(None):
        signal.raise_signal(signal.SIGINT)
        raise ValueError("mine")


def test_other_handlers_and_threads_are_not_changed():
    def in_thread():
        with delay_interrupts(None) as call:
            seen.append(signal.getsignal(signal.SIGINT))
            call()

    seen = []
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]

    def mine(number, frame):
        seen.append(number)

    signal.signal(signal.SIGINT, mine)
    with delay_interrupts(None) as call:
        signal.raise_signal(signal.SIGINT)
        call()
    assert seen[1:] == [signal.SIGINT]
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is mine
