"""What all tests of the package need from the process they run in."""
import signal

# A shell that starts a job in the background has it ignore Ctrl-C, and its children too: tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
