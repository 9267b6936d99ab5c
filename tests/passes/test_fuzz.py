"""Random graphs: with passes on every variable has the value that it has with all of them off."""
import numpy as np
import pytest
from grown_programs import Grower
from trained_nets import PASSES, Trained

SEEDS = range(120)


def check(expected, got, what):
    assert len(expected) == len(got)
    for i, (a, b) in enumerate(zip(expected, got)):
        np.testing.assert_array_equal(a, b, err_msg="%s, value %d" % (what, i))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs(seed):
    trained = Trained(Grower(seed), seed + 1)
    made = [n for op in trained.main.global_block().ops for n in op.output_arg_names]
    names = sorted({n for n in made if n not in trained.persistable})
    expected, _ = trained.run([], fetch=names)
    got, _ = trained.run(PASSES, fetch=names)
    check(expected, got, "all fetched")
    rng = np.random.RandomState(seed)
    for share in (0.0, 0.1, 0.4):
        some = [n for n in names if rng.rand() < share] or [trained.loss.name]
        at = [names.index(n) for n in some]
        got, _ = trained.run(PASSES, fetch=some, threads=int(rng.choice([1, 2, 3])))
        picked = [expected[step * len(names) + i] for step in range(2) for i in at] + expected[2 * len(names):]
        check(picked, got, "fetched %s" % some)
