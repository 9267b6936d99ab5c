"""A net that Datasets feed from text files ends with the parameters of Fluid 1.8.5."""
import json

import dataset_net
import numpy as np
import pytest

import anabranch.fluid as fluid

#: Histograms of `auc` after infer_from_dataset, which contain the samples of training only in Fluid's way.
STATES = {"auc state %d" % k for k in range(4)}


@pytest.mark.parametrize("exact", ["", "1.8.5"])
@pytest.mark.parametrize("kind", dataset_net.KINDS)
def test_training_from_files(kind, exact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open(dataset_net.RECORD) as f:
        expected = json.load(f)[kind]
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": exact})
    try:
        got = dataset_net.trained(fluid, kind)
    finally:
        fluid.set_flags(before)
    assert sorted(got) == sorted(expected) and STATES <= set(expected)
    for name, values in expected.items():
        if name in STATES and not exact:
            assert (0 < got[name].reshape(-1)).all() and (got[name].reshape(-1) < values).all()
            continue
        scale = np.sqrt(np.mean(np.square(values)))
        np.testing.assert_allclose(got[name].reshape(-1), values, rtol=1e-5, atol=1e-5 * scale + 1e-7, err_msg=name)
