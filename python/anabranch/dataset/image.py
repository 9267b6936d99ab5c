"""Names of Fluid's ``dataset.image`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.image import (
        batch_images_from_tar,
        center_crop,
        left_right_flip,
        load_and_transform,
        load_image,
        load_image_bytes,
        random_crop,
        resize_short,
        simple_transform,
        to_chw,
    )

__all__ = [
    "batch_images_from_tar", "center_crop", "left_right_flip", "load_and_transform", "load_image", "load_image_bytes",
    "random_crop", "resize_short", "simple_transform", "to_chw",
]

_on_demand.give(__name__, {
    "..datasets.image":
        "batch_images_from_tar center_crop left_right_flip load_and_transform load_image load_image_bytes "
        "random_crop resize_short simple_transform to_chw",
})
