"""Training of nets.NETS on one place or on several, step by step; all that comes out, for comparisons bit by bit."""
import hashlib
from typing import List, Optional, Sequence

import numpy as np
from nets import NETS

import anabranch.fluid as fluid

MODES = ("AllReduce", "Reduce")


class Trained:
    """A net in its own scope. `mode`: of replicas on all of `places`; without it the net runs on the first."""

    def __init__(self, name: str, places: Sequence, mode: Optional[str] = None, fetch_gradients: bool = False,
                 sync_norms: bool = False) -> None:
        self.net, self.places, self.scope = NETS[name], places, fluid.Scope()
        self.main, startup = fluid.Program(), fluid.Program()
        self.main.random_seed = startup.random_seed = 5
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            self.loss = self.net.build()
            self.net.optimizer().minimize(self.loss)
        self.parameters = sorted(p.name for p in self.main.all_parameters())
        self.fetches = [self.loss.name]
        if fetch_gradients:
            block = self.main.global_block()
            dense = [p + "@GRAD" for p in self.parameters
                     if block.has_var(p + "@GRAD")
                     and block.var(p + "@GRAD").type == fluid.core.VarDesc.VarType.LOD_TENSOR]
            self.fetches += dense[:2]
        self.exe = fluid.Executor(places[0])
        self.target = self.main
        with fluid.scope_guard(self.scope):
            self.exe.run(startup)
        if mode:
            build = fluid.BuildStrategy()
            build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, mode)
            build.sync_batch_norm = sync_norms
            self.target = fluid.CompiledProgram(self.main).with_data_parallel(self.loss.name, build, places=places)

    def run(self, feed, fetches: Optional[List[str]] = None) -> List[np.ndarray]:
        with fluid.scope_guard(self.scope):
            return self.exe.run(self.target, feed=feed, fetch_list=self.fetches if fetches is None else fetches)

    def steps(self, rows: Sequence[int], seed: int = 0) -> List[np.ndarray]:
        """Fetched values of a step for each number of rows."""
        out: List[np.ndarray] = []
        for step, count in enumerate(rows):
            out += self.run(self.batch(count, seed + step))
        return out

    def batch(self, rows: int, seed: int):
        return self.net.batch(np.random.RandomState(seed), rows)

    def kept(self) -> List[np.ndarray]:
        """All persistable variables of the scope, by name."""
        names = sorted(v.name for v in self.main.list_vars() if v.persistable and self.scope.find_var(v.name))
        return [np.array(self.scope.find_var(name).get_tensor()) for name in names]

    def engine(self):
        """The engine of the main program; there is one after its first run."""
        if self.target is not self.main:
            return self.target._engine
        return [kept.bound.engine for kept in self.exe._bound.values() if kept.program is self.main][-1]


def compare(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str) -> None:
    """Within the rounding of some steps of training, in which a step counts for much more."""
    assert len(got) == len(expected), "%s: %d values, %d are expected" % (what, len(got), len(expected))
    for i, (g, w) in enumerate(zip(got, expected)):
        np.testing.assert_allclose(g, w, rtol=1e-3, atol=2e-4, err_msg="%s, value %d" % (what, i))


def same_bits(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str) -> None:
    assert len(got) == len(expected), "%s: %d values, %d are expected" % (what, len(got), len(expected))
    for i, (g, w) in enumerate(zip(got, expected)):
        alike = g.dtype == w.dtype and g.shape == w.shape and g.tobytes() == w.tobytes()
        assert alike, "%s, value %d: other bits" % (what, i)


def digest(values: Sequence[np.ndarray]) -> str:
    total = hashlib.sha1()
    for value in values:
        array = np.ascontiguousarray(value)
        total.update(("%s%s" % (array.dtype, array.shape)).encode())
        total.update(array.tobytes())
    return total.hexdigest()[:16]
