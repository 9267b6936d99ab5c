"""Helpers of the transpilers that Fluid programs import."""
from .checkport import wait_server_ready as wait_server_ready
from .program_utils import block_to_code as block_to_code
from .program_utils import delete_ops as delete_ops
from .program_utils import find_op_by_input_arg as find_op_by_input_arg
from .program_utils import find_op_by_output_arg as find_op_by_output_arg
from .program_utils import get_indent_space as get_indent_space
from .program_utils import op_to_code as op_to_code
from .program_utils import program_to_code as program_to_code
from .program_utils import variable_to_code as variable_to_code
from .ufind import UnionFind as UnionFind
