"""Process flags: ``FLAGS_*``, read from the environment at import, changed by ``set_flags``."""
import os

from ..errors import InvalidType, InvalidValue

# Flag -> default. Those that tune a device or an allocator that this engine does not have keep their value and change
# nothing; they are listed so that scripts which set them run.
_DEFAULTS = {
    "FLAGS_allocator_strategy": "auto_growth",
    "FLAGS_benchmark": False,
    "FLAGS_check_nan_inf": False,
    "FLAGS_communicator_fake_rpc": False,
    "FLAGS_communicator_independent_recv_thread": True,
    "FLAGS_communicator_is_sgd_optimizer": True,
    "FLAGS_communicator_max_merge_var_num": 20,
    "FLAGS_communicator_merge_sparse_grad": True,
    "FLAGS_communicator_min_send_grad_num_before_recv": 20,
    "FLAGS_communicator_send_queue_size": 20,
    "FLAGS_communicator_send_wait_times": 5,
    "FLAGS_communicator_thread_pool_size": 5,
    "FLAGS_cpu_deterministic": True,
    "FLAGS_dist_threadpool_size": 0,
    "FLAGS_eager_delete_scope": True,
    "FLAGS_eager_delete_tensor_gb": 0.0,
    "FLAGS_enable_parallel_graph": False,
    "FLAGS_enable_rpc_profiler": False,
    "FLAGS_fast_eager_deletion_mode": True,
    "FLAGS_fluid_exact": "",
    "FLAGS_fraction_of_cpu_memory_to_use": 1.0,
    "FLAGS_fraction_of_gpu_memory_to_use": 0.92,
    "FLAGS_fuse_parameter_groups_size": 3,
    "FLAGS_fuse_parameter_memory_size": -1.0,
    "FLAGS_initial_cpu_memory_in_mb": 500,
    "FLAGS_inner_op_parallelism": 0,
    "FLAGS_max_body_size": 2147483647,
    "FLAGS_memory_fraction_of_eager_deletion": 1.0,
    "FLAGS_paddle_num_threads": 1,
    "FLAGS_pe_profile_fname": "",
    "FLAGS_print_sub_graph_dir": "",
    "FLAGS_reader_queue_speed_test_mode": False,
    "FLAGS_rpc_deadline": 180000,
    "FLAGS_rpc_disable_reuse_port": False,
    "FLAGS_rpc_get_thread_num": 12,
    "FLAGS_rpc_prefetch_thread_num": 12,
    "FLAGS_rpc_retry_times": 3,
    "FLAGS_rpc_send_thread_num": 12,
    "FLAGS_rpc_server_profile_path": "./profile_ps",
    "FLAGS_selected_gpus": "",
    "FLAGS_sync_nccl_allreduce": True,
    "FLAGS_use_mkldnn": False,
    "FLAGS_use_ngraph": False,
    "FLAGS_use_pinned_memory": True,
    "FLAGS_worker_update_interval_secs": 900,
}
_TRUE = ("1", "true", "t", "yes", "y", "on")
_FALSE = ("0", "false", "f", "no", "n", "off", "")


def _parse(name, text):
    default = _DEFAULTS[name]
    try:
        if isinstance(default, bool):
            if text.lower() not in _TRUE + _FALSE:
                raise ValueError
            return text.lower() in _TRUE
        return type(default)(text)
    except ValueError:
        raise InvalidValue("the environment variable %s is a %s, got %r"
                           % (name, type(default).__name__, text)) from None


_values = {name: _parse(name, os.environ[name]) if name in os.environ else default
           for name, default in _DEFAULTS.items()}


def _known(name):
    if not isinstance(name, str):
        raise InvalidType("the name of a flag is a str, got %s" % type(name).__name__)
    if name not in _values:
        raise InvalidValue("there is no flag %r" % name)
    return name


def get_flags(flags):
    """Values of flags.

    Args:
        flags (str|list|tuple): one name or several, with the prefix ``FLAGS_``.

    Returns:
        dict: name -> value.

    Raises:
        ValueError: an unknown flag. TypeError: names that are no texts.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.get_flags("FLAGS_check_nan_inf")
        {'FLAGS_check_nan_inf': False}
    """
    if isinstance(flags, str):
        flags = [flags]
    if not isinstance(flags, (list, tuple)):
        raise InvalidType("get_flags: flags is a str, list or tuple, got %s" % type(flags).__name__)
    return {name: _values[_known(name)] for name in flags}


def set_flags(flags):
    """Changes flags of the process.

    Args:
        flags (dict): name -> value; an int is taken for a float flag, 0 and 1 for a bool one.

    Raises:
        ValueError: an unknown flag. TypeError: no dict, or a value of another type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.set_flags({"FLAGS_eager_delete_tensor_gb": 1.0})
        >>> fluid.set_flags({"FLAGS_eager_delete_tensor_gb": 0.0})
    """
    if not isinstance(flags, dict):
        raise InvalidType("set_flags: flags is a dict, got %s" % type(flags).__name__)
    checked = {}
    for name, value in flags.items():
        wanted = type(_DEFAULTS[_known(name)])
        allowed = {float: (int, float), bool: (bool, int), int: (int,), str: (str,)}[wanted]
        if not isinstance(value, allowed) or (wanted in (int, float) and isinstance(value, bool)):
            raise InvalidType("%s is a %s, got %r" % (name, wanted.__name__, value))
        checked[name] = wanted(value)
    _values.update(checked)
    for name, value in checked.items():
        # The engine reads its flags from the environment.
        os.environ[name] = str(int(value)) if isinstance(value, bool) else str(value)
