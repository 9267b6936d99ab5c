from __future__ import division, print_function

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.core as core
import paddle.fluid.framework as framework
import paddle.fluid.layers as layers
from paddle.fluid import unique_name

x = fluid.data('x', [None, 4], 'float32')
y = fluid.data('y', [None, 4], 'float32')
n = fluid.data('n', [None, 1], 'int64')
results = [
    ("arithmetic", (x + y) * 2.0 - 1.0 / (y + 1.5)),
    ("reversed", 3.0 - x),
    ("power", (x + 1) ** 2),
    ("negative", -x),
    ("floor", n // 2),
    ("remainder", n % 3),
    ("compare", layers.cast(x > y, 'float32') + layers.cast(x <= 0.5, 'float32')),
    ("equal", layers.cast(n == 2, 'int32')),
    ("slice", x[0:2, 1:3]),
    ("row", x[1]),
    ("negative index", x[-1, :]),
    ("astype", x.astype('int64')),
    ("matmul", layers.matmul(x, y, transpose_y=True)),
    ("transpose", layers.transpose(x, [1, 0])),
    ("reshape", layers.reshape(x, [-1, 2, 2])),
    ("reshape by 0", layers.reshape(layers.unsqueeze(x, [1]), [0, -1, 2])),
    ("stack", layers.stack([x, y], axis=1)),
    ("expand", layers.expand(layers.slice(x, [0], [0], [1]), [2, 1])),
    ("gather", layers.gather(x, layers.fill_constant([2], 'int32', 1))),
    ("topk", layers.topk(x, k=2)[0]),
    ("argmax", layers.argmax(x, axis=1)),
    ("reduce", layers.reduce_max(x, dim=1, keep_dim=True) - layers.reduce_min(x, dim=1, keep_dim=True)),
    ("where", layers.where(x > 0.5)),
    ("one_hot", layers.one_hot(n, 4)),
    ("sums", layers.sums([x, y, x])),
    ("clip", layers.clip(x * 3, 0.2, 1.0)),
    ("pad", layers.pad(x, [0, 0, 1, 1], pad_value=0.5)),
    ("split", layers.split(x, [1, -1], dim=1)[1]),
    ("cumsum", layers.cumsum(x, axis=1, exclusive=True)),
    ("range", layers.range(0, 6, 2, 'int32')),
    ("linspace", layers.linspace(0.0, 1.0, 5, 'float32')),
    ("shape", layers.shape(x)),
    ("l2", layers.l2_normalize(x, axis=1)),
    ("scatter", layers.scatter(layers.assign(np.zeros((3, 4), 'float32')), layers.assign(np.array([2, 0, 1], 'int32')),
                               layers.assign(np.arange(12, dtype='float32').reshape(3, 4)))),
]
exe = fluid.Executor(core.CPUPlace())
rng = np.random.RandomState(1)
feed = {'x': rng.rand(3, 4).astype('float32'), 'y': rng.rand(3, 4).astype('float32'), 'n': np.array([[1], [2], [3]])}
for (name, _), value in zip(results, exe.run(feed=feed, fetch_list=[v for _, v in results])):
    print(name, value.dtype, value.shape, np.round(np.asarray(value, 'float64'), 5).ravel()[:6].tolist())

print(x.name, x.shape, x.dtype, x.dtype == core.VarDesc.VarType.FP32, x.lod_level, x.persistable, x.stop_gradient)
print(x.type == core.VarDesc.VarType.LOD_TENSOR, results[0][1].op.type, framework.convert_np_dtype_to_dtype_('int64'))
print(isinstance(x, framework.Variable), unique_name.generate("mine"), unique_name.generate("mine"))
block = fluid.default_main_program().current_block()
made = block.create_var(name="made", shape=[2], dtype="float32", persistable=True)
print(made.name in block.vars, block.has_var("nothing"), block.idx, len(block.ops) > 30, made.persistable)
op = block.ops[0]
print(op.type, op.input_names, op.output_names, op.input("X"), op.output_arg_names, op.has_attr("axis"), op.attr("axis"))
print(fluid.default_main_program().num_blocks, fluid.default_main_program().random_seed)
for wrong in (lambda: layers.fc(3, 1), lambda: layers.concat([x], axis="a"), lambda: exe.run(feed=[1], fetch_list=[x])):
    try:
        wrong()
        print("accepted")
    except Exception as e:
        print(type(e).__name__)
