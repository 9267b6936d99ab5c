"""The names of Fluid's ``dataset.uci_housing`` that are here. Written by tools/generate_modules.py."""
from ..datasets.uci_housing import feature_names as feature_names
from ..datasets.uci_housing import test, train

__all__ = [
    "test", "train",
]
