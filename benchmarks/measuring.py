"""The measured loop of a benchmark script: losses of the first steps, then the rate of steady ones."""
import ctypes
import os
import struct
import time

import numpy as np

TRACED = 50           # steps whose losses are kept; more where the batches repeat later than that


def peak_rss_mb():
    """Peak resident memory of this process (VmHWM)."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024.0


class Instructions:
    """Counts the machine instructions of this process and of the threads that it starts later.

    `value()` is None on machines whose kernel or hypervisor does not offer the counter. Make it before the engine.
    """

    HARDWARE, INSTRUCTIONS = 0, 1

    def __init__(self, kind=HARDWARE, event=INSTRUCTIONS):
        # perf_event_attr: type, size, config, sample_period, sample_type, read_format, flags (inherit, exclude_kernel)
        attributes = struct.pack("IIQQQQQ", kind, 64, event, 0, 0, 0, 0b100010).ljust(64, b"\0")
        call = ctypes.CDLL(None, use_errno=True).syscall
        self.file = call(298, attributes, 0, -1, -1, 0) if os.uname().machine == "x86_64" else -1

    def value(self):
        return struct.unpack("Q", os.read(self.file, 8))[0] if self.file >= 0 else None


class Steady:
    """Calls of `step`: first those whose losses are kept, then steady ones, measured as often as one likes.

    The clock is read about every 20 ms only, so that a step of a microsecond is not measured with its clock.
    """

    def __init__(self, step, units, counter=None):
        self.step, self.units, self.counter, self.chunk, self.short = step, units, counter, 1, True
        self.cycle = getattr(step, "cycle", None)         # steps after which the batches repeat
        self.losses = []

    def trace(self, seconds):
        """Losses of the first steps: of fewer than TRACED where these take longer than `seconds`.

        The first two steps, which may compile, do not count as time.
        """
        begin, steps = None, max(TRACED, (self.cycle or 0) + 1)
        while len(self.losses) < steps and (begin is None or time.monotonic() - begin < seconds):
            self.losses.append(finite_loss(self.step()))
            if self.losses[0] is None:              # this script does not give any
                break
            if len(self.losses) == 2:
                begin = time.monotonic()

    def warm_up(self, seconds):
        calls, begin = 0, time.monotonic()
        while calls < 1 or time.monotonic() - begin < seconds:
            self.step()
            calls += 1
        self.chunk = max(1, int(0.02 * calls / (time.monotonic() - begin)))
        self.short = (time.monotonic() - begin) / calls < 0.05

    def measure(self, seconds):
        """Rate, CPU seconds and instructions per unit; `last_loss` is that of the last step."""
        calls, elapsed, last = 0, 0.0, None
        counted = self.counter and self.counter.value()
        cpu, begin = time.process_time(), time.monotonic()
        while calls == 0 or elapsed < seconds:
            for _ in range(self.chunk):
                last = self.step()
            calls += self.chunk
            elapsed = time.monotonic() - begin
        work = calls * self.units
        result = dict(value=work / elapsed, cpu_s_per_unit=(time.process_time() - cpu) / work, last_loss=finite_loss(last))
        if counted is not None:
            result["instructions_per_unit"] = (self.counter.value() - counted) / work
        return result

    def again(self):
        """Steps that are not measured, where they are short: they refill the caches after another engine has run."""
        for _ in range(self.chunk if self.short else 0):
            self.step()


def measure(step, units, seconds, warmup):
    """Measures `seconds` of steady state once."""
    steady = Steady(step, units)
    steady.trace(0.0)
    steady.warm_up(warmup)
    return dict(steady.measure(seconds), first_loss=steady.losses[0])


def finite_loss(loss):
    """The loss of a call as a number, which shows that the work was real. None where a call does not return one."""
    if loss is None:
        return None
    loss = float(np.mean(loss))
    if not np.isfinite(loss):
        raise ArithmeticError("the loss is {}".format(loss))
    return loss
