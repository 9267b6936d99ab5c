"""BuildStrategy and ExecutionStrategy: how a program becomes a graph, and how that graph is run."""
import enum

from .. import _core
from .errors import EnforceNotMet, InvalidArgument, InvalidType, InvalidValue


class _Field:
    """An attribute with a type, a default and a meaning; refuses everything once its owner is in use."""

    def __init__(self, default, kind, doc, least=None, optional=False):
        self.default, self.kind, self.least, self.optional = default, kind, least, optional
        self.__doc__ = doc

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        return obj._values.get(self.name, self.default)

    def __set__(self, obj, value):
        if obj._finalized:
            raise EnforceNotMet("%s is finalized: %s cannot be changed after the first run"
                                % (type(obj).__name__, self.name))
        obj._values[self.name] = self._checked(type(obj).__name__, value)

    def _checked(self, owner, value):
        wanted = "None or " * self.optional + self.kind.__name__
        if value is None and self.optional:
            return None
        if self.kind is bool and type(value) is int and value in (0, 1):
            value = bool(value)
        if self.kind is list and isinstance(value, tuple):
            value = list(value)
        if not isinstance(value, self.kind) or (self.kind is int and isinstance(value, (bool, enum.Enum))):
            raise InvalidType("%s.%s is a %s, got %r" % (owner, self.name, wanted, value))
        if self.kind in (list, set) and not all(isinstance(v, str) for v in value):
            raise InvalidType("%s.%s holds texts, got %r" % (owner, self.name, value))
        if self.least is not None and value < self.least:
            raise InvalidValue("%s.%s is at least %d, got %d" % (owner, self.name, self.least, value))
        return value


class _Strategy:
    """Attributes are the class's fields and nothing else."""

    _values = None       # of the fields that were set
    _finalized = False
    _passes = None       # a PassBuilder, once one was asked for

    def __init__(self):
        self._values = {}

    def __setattr__(self, name, value):
        if not hasattr(type(self), name):
            raise AttributeError("%s has no attribute %r" % (type(self).__name__, name))
        object.__setattr__(self, name, value)

    @classmethod
    def _fields(cls):
        return [f for f in vars(cls).values() if isinstance(f, _Field)]

    def _finalize(self):
        self._finalized = True

    def __repr__(self):
        changed = ", ".join("%s=%r" % item for item in sorted(self._values.items()))
        return "%s(%s)" % (type(self).__name__, changed)


class ReduceStrategy(enum.IntEnum):
    """Where gradients are summed and parameters updated."""

    AllReduce = 0
    Reduce = 1

    def __str__(self):
        return "ReduceStrategy." + self.name


class GradientScaleStrategy(enum.IntEnum):
    """What the gradient of the loss starts from on each replica."""

    CoeffNumDevice = 0
    One = 1
    Customized = 2

    def __str__(self):
        return "GradientScaleStrategy." + self.name


class BuildStrategy(_Strategy):
    """How a program is turned into a graph of operations over the replicas. Set it before the first run.

    Raises:
        TypeError: a value of another type. ValueError: a number out of range. AttributeError: no such attribute.
        EnforceNotMet: assigned after the first run.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> strategy = fluid.BuildStrategy()
        >>> strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
        >>> strategy.enable_inplace
        True
    """

    ReduceStrategy = ReduceStrategy
    GradientScaleStrategy = GradientScaleStrategy

    reduce_strategy = _Field(ReduceStrategy.AllReduce, ReduceStrategy,
        "ReduceStrategy: AllReduce (default): every replica gets every summed gradient and updates its own parameters. "
        "Reduce: each gradient is summed on one replica, which updates the parameter that all share. Both give the same bits.")
    gradient_scale_strategy = _Field(GradientScaleStrategy.CoeffNumDevice, GradientScaleStrategy,
        "GradientScaleStrategy: CoeffNumDevice (default): the update equals that of the whole batch on one replica. "
        "One: the replicas' gradients are summed as they are. Customized: feed ``<loss>@GRAD``, one value a replica.")
    debug_graphviz_path = _Field("", str, "str: when not empty, the graph after each pass is written as <path>_<nn>_<pass>.dot.")
    enable_sequential_execution = _Field(False, bool, "bool: operations keep the order of the program. Default False.")
    enable_backward_optimizer_op_deps = _Field(True, bool,
        "bool: updates wait for the whole backward part. Default True.")
    remove_unnecessary_lock = _Field(True, bool, "bool: nothing to do: operations take no locks. Default True.")
    cache_runtime_context = _Field(False, bool, "bool: nothing to do: plans always keep theirs. Default False.")
    fuse_elewise_add_act_ops = _Field(False, bool,
        "bool: joins an addition with the activation behind it, where the engine has such a kernel. Default False.")
    fuse_bn_act_ops = _Field(False, bool,
        "bool: joins batch norm with the activation behind it; done for GPUs only. Default False.")
    fuse_relu_depthwise_conv = _Field(False, bool,
        "bool: joins relu with a depthwise convolution; done for GPUs only. Default False.")
    fuse_all_optimizer_ops = _Field(False, bool, "bool: joins the updates of alike parameters. Default False.")
    fuse_all_reduce_ops = _Field(None, bool,
        "bool or None: sums gradients in groups. None (default): the engine decides.", optional=True)
    fuse_broadcast_ops = _Field(None, bool,
        "bool or None: nothing to do on CPU: parameters are shared in Reduce mode. Default None.", optional=True)
    enable_auto_fusion = _Field(False, bool, "bool: kernels generated at run time, for GPUs only. Default False.")
    sync_batch_norm = _Field(False, bool,
        "bool: statistics over all replicas, for GPUs only, as in the original. Default False.")
    memory_optimize = _Field(None, bool,
        "bool or None: memory is reused whatever the value; None (default) and True are the same, False switches it off "
        "where the engine can.", optional=True)
    enable_inplace = _Field(True, bool, "bool: an output may take the memory of an input that nobody reads later. Default True.")
    is_distribution = _Field(False, bool, "bool: set by itself for programs that send and receive. Default False.")
    async_mode = _Field(False, bool, "bool: replicas that run independently; refused at compile time in this build. Default False.")
    num_trainers = _Field(1, int, "int: number of processes that train together; more than 1 is refused at compile time in "
        "this build. Default 1.", least=1)
    trainer_id = _Field(0, int, "int: number of this process, below num_trainers. Default 0.", least=0)
    trainers_endpoints = _Field([], list, "list of str: host:port of every process. Default [].")
    nccl_comm_num = _Field(1, int, "int: GPU communicators used in turn; nothing to do on CPU. Default 1.", least=1)
    use_hierarchical_allreduce = _Field(False, bool, "bool: two-level sums between GPUs; nothing to do on CPU. Default False.")
    hierarchical_allreduce_inter_nranks = _Field(0, int, "int: GPUs of one machine; nothing to do on CPU. Default 0.", least=0)
    mkldnn_enabled_op_types = _Field(set(), set,
        "set of str: nothing to do: the kernel library serves every operation it can. Default empty.")

    def __init__(self):
        super().__init__()
        # The containers are the object's own: adding to one is a change of this strategy alone.
        self._values.update(trainers_endpoints=[], mkldnn_enabled_op_types=set())

    def _finalize_strategy_and_create_passes(self):
        """PassBuilder: the passes that will run; removing one switches it off. The strategy is finalized."""
        self._finalized = True
        if self._passes is None:
            self._passes = PassBuilder()
        return self._passes

    def _to_core(self):
        """The C++ strategy."""
        if self.trainer_id >= self.num_trainers:
            raise InvalidArgument("BuildStrategy.trainer_id is %d, it must be below num_trainers (%d)"
                                  % (self.trainer_id, self.num_trainers))
        core = _core.BuildStrategy()
        for field in self._fields():
            value = getattr(self, field.name)
            if field.name == "reduce_strategy":
                value = (_core.ReduceMode.AllReduce, _core.ReduceMode.Reduce)[value]
            elif field.name == "gradient_scale_strategy":
                kinds = _core.GradientScale
                value = (kinds.CoeffNumDevice, kinds.One, kinds.Customized)[value]
            setattr(core, field.name, value)
        if self._passes is not None:
            core.disabled_passes = {name for name, _, _ in _core.pass_list()} - {p.type() for p in self._passes.all_passes()}
        return core


class GraphPass:
    """A pass by its name."""

    def __init__(self, name):
        self._name = name

    def type(self):
        """str: the name."""
        return self._name

    def __repr__(self):
        return "GraphPass(%r)" % self._name


class PassBuilder:
    """The list of passes of one BuildStrategy. Their order is the engine's: it cannot be changed, only cut.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> builder = fluid.BuildStrategy()._finalize_strategy_and_create_passes()
        >>> first = builder.all_passes()[0].type()
        >>> builder.remove_pass(0)
        >>> first in [p.type() for p in builder.all_passes()]
        False
    """

    def __init__(self):
        self._passes = [GraphPass(name) for name, _, _ in _core.pass_list()]

    def all_passes(self):
        """list of GraphPass: what will run, in order."""
        return list(self._passes)

    def remove_pass(self, index):
        """Switches the pass at this position off; IndexError when there is none."""
        del self._passes[index]

    def append_pass(self, name):
        """Switches a pass on again; it runs at its own place in the order.

        Raises:
            ValueError: no such pass, or it is in the list.
        """
        known = [n for n, _, _ in _core.pass_list()]
        if name not in known:
            raise InvalidValue("there is no pass %r; there are %s" % (name, ", ".join(known)))
        if name in [p.type() for p in self._passes]:
            raise InvalidValue("pass %s is in the list already" % name)
        self._passes.append(GraphPass(name))
        self._passes.sort(key=lambda p: known.index(p.type()))
        return self._passes[[p.type() for p in self._passes].index(name)]

    def insert_pass(self, index, name):
        """As :meth:`append_pass`; the position is the engine's."""
        return self.append_pass(name)


class ExecutionStrategy(_Strategy):
    """How the graph of a compiled program is run.

    Raises:
        TypeError: a value of another type or a negative number of threads. AttributeError: no such attribute.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> strategy = fluid.ExecutionStrategy()
        >>> strategy.num_threads = 4
        >>> strategy.num_iteration_per_drop_scope
        100
    """

    num_threads = _Field(0, int, "int: worker threads, as many as said even above the number of cores. 0 (default): one a core "
        "that the process may use. Results do not depend on it.")
    num_iteration_per_drop_scope = _Field(100, int, "int: runs after which temporaries that stand idle are released. "
        "Default 100.", least=1)
    num_iteration_per_run = _Field(1, int, "int: how often one run repeats the program. Default 1.", least=1)
    allow_op_delay = _Field(False, bool, "bool: nothing to do, as in the original: transfers never wait for it. Default False.")
    use_experimental_executor = _Field(True, bool, "bool: nothing to do: there is one executor. Default True.")
    use_thread_barrier = _Field(False, bool, "bool: concerns half-asynchronous parameter servers only. Default False.")
    use_cuda = _Field(False, bool, "bool: set from the place of the executor; True is refused at compile time in this build. "
        "Default False.")
    _dry_run = _Field(False, bool, "bool: everything but the kernels runs. Default False.")

    def __setattr__(self, name, value):
        if name == "num_threads" and isinstance(value, int) and value < 0:
            raise InvalidType("ExecutionStrategy.num_threads is a number >= 0, got %d" % value)
        super().__setattr__(name, value)

    def _to_core(self):
        """The C++ strategy."""
        if self.use_cuda:
            raise InvalidArgument("ExecutionStrategy.use_cuda: this build has no CUDA")
        core = _core.ExecutionStrategy()
        for field in self._fields():
            if field.name != "use_cuda":
                setattr(core, field.name.lstrip("_"), getattr(self, field.name))
        return core
