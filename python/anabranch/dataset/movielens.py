"""Names of Fluid's ``dataset.movielens`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.movielens import MD5 as MD5
    from ..datasets.movielens import URL as URL
    from ..datasets.movielens import MovieInfo as MovieInfo
    from ..datasets.movielens import UserInfo as UserInfo
    from ..datasets.movielens import (
        age_table,
        get_movie_title_dict,
        max_job_id,
        max_movie_id,
        max_user_id,
        movie_categories,
        movie_info,
        test,
        train,
        user_info,
    )

__all__ = [
    "age_table", "get_movie_title_dict", "max_job_id", "max_movie_id", "max_user_id", "movie_categories",
    "movie_info", "test", "train", "user_info",
]

_on_demand.give(__name__, {
    "..datasets.movielens":
        "MD5 MovieInfo URL UserInfo age_table get_movie_title_dict max_job_id max_movie_id max_user_id "
        "movie_categories movie_info test train user_info",
})
