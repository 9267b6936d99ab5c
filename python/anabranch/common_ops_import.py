"""Names that modules of operators import. The names of ``paddle.common_ops_import``."""
import warnings as warnings
from functools import reduce as reduce

import numpy as numpy

from . import fluid as fluid
from .fluid import core as core
from .fluid.core import VarDesc as VarDesc
from .fluid.data_feeder import check_dtype as check_dtype
from .fluid.data_feeder import check_type as check_type
from .fluid.data_feeder import check_variable_and_dtype as check_variable_and_dtype
from .fluid.data_feeder import convert_dtype as convert_dtype
from .fluid.framework import OpProtoHolder as OpProtoHolder
from .fluid.framework import Variable as Variable
from .fluid.framework import convert_np_dtype_to_dtype_ as convert_np_dtype_to_dtype_
from .fluid.framework import default_main_program as default_main_program
from .fluid.framework import device_guard as device_guard
from .fluid.framework import dygraph_only as dygraph_only
from .fluid.framework import in_dygraph_mode as in_dygraph_mode
from .fluid.initializer import Constant as Constant
from .fluid.layer_helper import LayerHelper as LayerHelper
from .fluid.layers import fill_constant as fill_constant
from .fluid.layers import scale as scale
from .fluid.layers import utils as utils
from .fluid.layers.layer_function_generator import templatedoc as templatedoc
from .fluid.param_attr import ParamAttr as ParamAttr
