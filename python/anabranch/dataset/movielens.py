"""Names of Fluid's ``dataset.movielens`` that are available here. Written by tools/generate_modules.py."""
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
