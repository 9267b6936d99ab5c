"""A net that Datasets feed from text files ends with the parameters of Fluid 1.8.5."""
import json

import dataset_net
import numpy as np
import pytest

import anabranch.fluid as fluid


@pytest.mark.parametrize("kind", dataset_net.KINDS)
def test_training_from_files(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open(dataset_net.RECORD) as f:
        expected = json.load(f)[kind]
    got = dataset_net.trained(fluid, kind)
    assert sorted(got) == sorted(expected)
    for name, values in expected.items():
        scale = np.sqrt(np.mean(np.square(values)))
        np.testing.assert_allclose(got[name].reshape(-1), values, rtol=1e-5, atol=1e-5 * scale + 1e-7, err_msg=name)
