"""Names of Fluid's ``dataset.conll05`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.conll05 import DATA_MD5 as DATA_MD5
    from ..datasets.conll05 import DATA_URL as DATA_URL
    from ..datasets.conll05 import EMB_MD5 as EMB_MD5
    from ..datasets.conll05 import EMB_URL as EMB_URL
    from ..datasets.conll05 import TRGDICT_MD5 as TRGDICT_MD5
    from ..datasets.conll05 import TRGDICT_URL as TRGDICT_URL
    from ..datasets.conll05 import VERBDICT_MD5 as VERBDICT_MD5
    from ..datasets.conll05 import VERBDICT_URL as VERBDICT_URL
    from ..datasets.conll05 import WORDDICT_MD5 as WORDDICT_MD5
    from ..datasets.conll05 import WORDDICT_URL as WORDDICT_URL
    from ..datasets.conll05 import corpus_reader as corpus_reader
    from ..datasets.conll05 import get_dict as get_dict
    from ..datasets.conll05 import get_embedding
    from ..datasets.conll05 import load_dict as load_dict
    from ..datasets.conll05 import load_label_dict as load_label_dict
    from ..datasets.conll05 import reader_creator as reader_creator
    from ..datasets.conll05 import test as test

__all__ = [
    "get_embedding",
]

_on_demand.give(__name__, {
    "..datasets.conll05":
        "DATA_MD5 DATA_URL EMB_MD5 EMB_URL TRGDICT_MD5 TRGDICT_URL VERBDICT_MD5 VERBDICT_URL WORDDICT_MD5 "
        "WORDDICT_URL corpus_reader get_dict get_embedding load_dict load_label_dict reader_creator test",
})
