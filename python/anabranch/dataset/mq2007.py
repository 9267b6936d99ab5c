"""The names of Fluid's ``dataset.mq2007``, whose ``__all__`` lists none of them."""
from ..datasets.mq2007 import MD5 as MD5
from ..datasets.mq2007 import URL as URL
from ..datasets.mq2007 import (
    Query,
    QueryList,
    gen_list,
    gen_pair,
    gen_plain_txt,
    gen_point,
    load_from_text,
    query_filter,
    test,
    train,
)

__all__ = ["Query", "QueryList", "gen_list", "gen_pair", "gen_plain_txt", "gen_point", "load_from_text",
           "query_filter", "test", "train"]
