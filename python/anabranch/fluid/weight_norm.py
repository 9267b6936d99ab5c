"""Parameters that are split into a direction and a magnitude: w = g * v / ||v|| (Salimans and Kingma, "Weight
Normalization", NIPS 2016)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import arguments, unique_name
from .param_attr import WeightNormParamAttr

if TYPE_CHECKING:
    from .hints import DType, Shape


def _norm(block, v, dim, shape_of_g):
    """Returns a Variable with the 2-norm of ``v`` over all axes except ``dim``, or over all axes if ``dim`` is None."""
    def temporary():
        return block.create_var(name=unique_name.generate_with_ignorable_key("weight_norm_norm"), dtype=v.dtype,
                                persistable=False)
    square, total, root, out = temporary(), temporary(), temporary(), temporary()
    block.append_op(type="square", inputs={"X": v}, outputs={"Out": square})
    axes = [i for i in range(len(v.shape)) if i != dim]
    block.append_op(type="reduce_sum", inputs={"X": square}, outputs={"Out": total},
                    attrs={"dim": axes, "keep_dim": False, "reduce_all": dim is None})
    block.append_op(type="sqrt", inputs={"X": total}, outputs={"Out": root})
    block.append_op(type="reshape2", inputs={"X": root}, outputs={"Out": out, "XShape": temporary()},
                    attrs={"shape": shape_of_g})
    return out


def create_weight_norm_parameter(helper: Any, attr: Any, shape: Shape, dtype: DType) -> Any:
    """Creates the parameters v and g of a layer, and returns the Variable w that is computed from them.

    The initial value of g is the norm of v, so the initial value of w is that of the initializer.
    """
    g_shape = [extent if axis == attr.dim else 1 for axis, extent in enumerate(shape)]
    main, startup = helper.main_program.global_block(), helper.startup_program.global_block()
    kwargs = attr._to_kwargs(with_initializer=True)
    initializer = kwargs.pop("initializer")
    kwargs.pop("name")
    v_name, g_name = attr.name + "_v", attr.name + "_g"
    startup.create_parameter(name=v_name, shape=shape, dtype=dtype, initializer=initializer, **kwargs)
    startup.create_parameter(name=g_name, shape=g_shape, dtype=dtype, **kwargs)
    norm = _norm(startup, startup.var(v_name), attr.dim, g_shape)
    startup.append_op(type="assign", inputs={"X": norm}, outputs={"Out": startup.var(g_name)})
    g = main.create_parameter(name=g_name, shape=g_shape, dtype=dtype, **kwargs)  # the order of Fluid's parameters
    v = main.create_parameter(name=v_name, shape=shape, dtype=dtype, **kwargs)

    block = helper.main_program.current_block()
    ratio = helper.create_variable_for_type_inference(dtype)
    w = helper.create_variable_for_type_inference(dtype)
    block.append_op(type="elementwise_div", inputs={"X": g, "Y": _norm(block, v, attr.dim, g_shape)},
                    outputs={"Out": ratio}, attrs={"axis": -1})
    # The shorter operand of a product is laid over the axes from `axis` on.
    flat, xshape = (helper.create_variable_for_type_inference(dtype) for _ in range(2))
    block.append_op(type="reshape2", inputs={"X": ratio}, outputs={"Out": flat, "XShape": xshape},
                    attrs={"shape": [1 if attr.dim is None else shape[attr.dim]]})
    block.append_op(type="elementwise_mul", inputs={"X": v, "Y": flat}, outputs={"Out": w},
                    attrs={"axis": -1 if attr.dim is None else attr.dim})
    WeightNormParamAttr.params_with_weight_norm.append(w)
    return w


arguments.explain(globals())
