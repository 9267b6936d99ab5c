"""The settings that all tests of the package need from their process."""
import signal

# A shell that starts a job in the background has it ignore Ctrl-C, and its children too: tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from threaded_runs import threads_without_asking  # noqa: E402, F401  plans run on the threads that a test names
