"""Names of Fluid's ``dataset.uci_housing`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.uci_housing import FLUID_MD5_MODEL as FLUID_MD5_MODEL
    from ..datasets.uci_housing import FLUID_URL_MODEL as FLUID_URL_MODEL
    from ..datasets.uci_housing import MD5 as MD5
    from ..datasets.uci_housing import UCI_TEST_DATA as UCI_TEST_DATA
    from ..datasets.uci_housing import UCI_TRAIN_DATA as UCI_TRAIN_DATA
    from ..datasets.uci_housing import URL as URL
    from ..datasets.uci_housing import feature_names as feature_names
    from ..datasets.uci_housing import load_data as load_data
    from ..datasets.uci_housing import test, train

__all__ = [
    "test", "train",
]

_on_demand.give(__name__, {
    "..datasets.uci_housing":
        "FLUID_MD5_MODEL FLUID_URL_MODEL MD5 UCI_TEST_DATA UCI_TRAIN_DATA URL feature_names load_data test train",
})
