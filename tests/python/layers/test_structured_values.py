"""Trees of classes, noise, windows, slices, arrays and levels of sequences compute what Paddle 1.8.5 computes."""
import decoder_values
import pytest
import structured_values

import anabranch.fluid as fluid

RECORD = decoder_values.recorded(structured_values.RECORD)


def test_all_cases_are_recorded():
    assert set(RECORD) == set(structured_values.VALUES)


@pytest.mark.parametrize("name", sorted(structured_values.VALUES))
def test_values(name):
    assert decoder_values.differences(fluid, structured_values.VALUES[name], RECORD[name]) == []
