"""Rows, totals and the critical path of a profile."""
from .. import _core
from .._terminal import counted
from ..drawing.timeline import draw_timeline
from .files import write_whole
from .tables import node_title, text_of

__all__ = ["Report", "Row", "take"]

#: Work of the engine outside of the nodes of a plan.
PHASES = ("feed", "infer_shape", "fetch")


class Row:
    """Measurements of all calls with one name. Times are in nanoseconds.

    Attributes:
        name (str): the row's title.
        place (str): the operators of the program that the node runs, if the row is a single node.
        calls (int), total_ns, min_ns, max_ns (int): of the calls, measured by the calling thread.
        helped_ns (int): time of other threads in the loops of these calls.
        flops (float): multiplications and additions of products, convolutions and recurrences.
        bytes (float): the arguments, each counted once.
        ceiling_ns (float): the time that one core would need at its maximum speed.
        first_end_ns (int): end of the first call.
        device_ns (int): the part of total_ns that is time of devices.
    """

    __slots__ = ("name", "place", "calls", "total_ns", "min_ns", "max_ns", "helped_ns", "flops", "bytes",
                 "ceiling_ns", "first_end_ns", "device_ns")

    def __init__(self, name, place=""):
        self.name, self.place = name, place
        self.calls = self.total_ns = self.min_ns = self.max_ns = self.helped_ns = self.first_end_ns = 0
        self.flops = self.bytes = self.ceiling_ns = 0.0
        self.device_ns = 0

    def add(self, measured, ceiling):
        """Adds a node's measurements; ``ceiling``: (operations, bytes) per second of one core, or None for a device."""
        if measured["calls"] == 0:
            return
        first = self.calls == 0
        self.min_ns = measured["min_ns"] if first else min(self.min_ns, measured["min_ns"])
        self.first_end_ns = measured["first_end_ns"] if first else min(self.first_end_ns, measured["first_end_ns"])
        self.max_ns = max(self.max_ns, measured["max_ns"])
        for key in ("calls", "total_ns", "helped_ns", "flops", "bytes"):
            setattr(self, key, getattr(self, key) + measured[key])
        if ceiling is None:
            self.device_ns += measured["total_ns"]
            return
        self.ceiling_ns += 1e9 * max(measured["flops"] / ceiling[0], measured["bytes"] / ceiling[1])

    @property
    def mean_ns(self):
        """float: mean time of a call."""
        return self.total_ns / self.calls if self.calls else 0.0

    @property
    def gflops(self):
        """float: GFLOP/s; 0 where no products are computed."""
        return self.flops / self.total_ns if self.total_ns else 0.0

    @property
    def gbytes(self):
        """float: GB/s of the arguments."""
        return self.bytes / self.total_ns if self.total_ns else 0.0

    @property
    def of_ceiling(self):
        """float: share of the peak of the cores that worked. Above 1 if a cache holds the data."""
        core_ns = self.total_ns + self.helped_ns
        return self.ceiling_ns / core_ns if core_ns else 0.0

    def __repr__(self):
        return "<Row %s: %s, %.3f ms>" % (self.name, counted(self.calls, "call"), self.total_ns / 1e6)


class Report:
    """The results of a profile, which :func:`take` returns.

    Attributes:
        runs (int): runs of programs.
        run_ns (int): time inside the engine.
        computing_ns (int): the part of ``run_ns`` in which at least one operator ran.
        on_devices_ns (int): time in which at least one operator ran on a device.
        ceiling (tuple): measured float32 operations and bytes per second of one core of this machine.
    """

    def __init__(self, profile):
        self.profile = profile
        self.plans = profile.plans()
        self.ceiling = _core.core_ceiling()
        self.runs = sum(plan["runs"] for plan in self.plans)
        self.run_ns = sum(plan["run_ns"] + plan["fetch"]["total_ns"] for plan in self.plans)
        self.computing_ns = sum(plan["computing_ns"] for plan in self.plans)
        self.on_devices_ns = sum(plan["on_devices_ns"] for plan in self.plans)

    def rows(self, by="type", state="CPU"):
        """The measurements by title.

        Args:
            by (str): "type" (default): one row per type of operator. "node": one row per operator of each program, with
                type and location as its title.
            state (str): "CPU" (default): time of threads, which for an operator on a device is the time of its launch.
                "GPU": time of devices. "All": time of devices for operators on devices, of threads for the others.

        Returns:
            dict: str -> Row, ordered by the end of the first call.
        """
        found = {}
        for plan in self.plans:
            for phase in PHASES if state != "GPU" else ():
                self._add(found, phase, "", plan[phase])
            for node in plan["nodes"]:
                title = node["type"] if by == "type" else node_title(node)
                if state != "CPU" and node["on_device"]["calls"]:
                    self._add(found, title, node["place"], node["on_device"], None)
                elif state != "GPU":
                    self._add(found, title, node["place"], node)
        rows = sorted((row for row in found.values() if row.calls), key=lambda row: row.first_end_ns)
        return {row.name: row for row in rows}

    def _add(self, found, name, place, measured, *ceiling):
        row = found.get(name)
        if row is None:
            row = found[name] = Row(name, place)
        row.add(measured, *(ceiling or (self.ceiling,)))

    def critical_path(self):
        """The longest chain of operators that depend on each other, in the plan that took the most time. More threads
        cannot shorten it.

        Returns:
            list: (node as a dict, mean nanoseconds of a call) in the order in which they run; empty without runs.
        """
        plan = self.main_plan()
        return [(plan["nodes"][i], ns) for i, ns in plan["critical_path"]] if plan else []

    def main_plan(self):
        """dict: the plan that took the most time; None without runs."""
        return max((p for p in self.plans if p["runs"]), key=lambda p: p["run_ns"], default=None)

    def threads(self):
        """The events of each thread: a dict thread -> list of (title, kind, begin_ns, end_ns), measured from the start
        of the profile. Kinds: 0 operator, 1 share of another thread's loop, 2 run, 3 feed, 4 infer_shape, 5 fetch,
        6 operator on a device, listed under a number below 0 for the device queue."""
        threads = {}
        zero = self.profile.begin_ns
        for plan, node, thread, kind, begin, end in self.profile.events():
            title = self.plans[plan]["nodes"][node]["type"] if node >= 0 else ("run",) + PHASES
            if node < 0:
                title = title[kind - 2]
            threads.setdefault(thread, []).append((title, kind, begin - zero, end - zero))
        return threads

    def text(self, sorted_key=None, detail="Default"):
        """The tables as ``fluid.profiler.stop_profiler`` prints them."""
        return text_of(self, sorted_key, detail)

    def draw(self, path, runs=2):
        """Draws the timeline of the threads in the last runs, as SVG.

        Args:
            path (str): file to write.
            runs (int): number of runs to show, at least 1. Default 2.
        """
        draw_timeline(self, path, runs)

    def page(self, path, title="profile", graph=None, memory=None, runs=2):
        """Writes a page for the browser with a sortable table, a timeline, the graph and the memory. It needs no
        network and no other file.

        Args:
            path (str): file to write.
            title (str): title of the page. Default "profile".
            graph (drawing.Graph, optional): graph to show.
            memory (MemoryReport, optional): result of ``fluid.memory_report()`` to show.
            runs (int): number of the last runs in the timeline, at least 1. Default 2.

        Raises:
            ValueError: ``runs`` is below 1.
            OSError: the file cannot be written.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> from anabranch import profiling
            >>> profiling.take().page("profile.html", memory=fluid.memory_report())
        """
        from .page import write_page
        write_page(self, path, title, graph, memory, runs)

    def save(self, path):
        """Writes ``path`` as Fluid does (a protobuf message) and ``path + ".json"`` for Perfetto and
        chrome://tracing.

        Returns:
            list: the paths written.
        """
        write_whole(path, self.profile.fluid_profile())
        write_whole(path + ".json", self.profile.chrome_trace().encode("utf-8"))
        return [path, path + ".json"]



def take():
    """Returns the measurements so far. A running profiler continues.

    Returns:
        Report: the measurements.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch import profiling
        >>> fluid.profiler.reset_profiler()
        >>> profiling.take().runs
        0
    """
    return Report(_core.profile())
