from __future__ import print_function

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.layer_helper import LayerHelper


def tanh(x):
    return np.tanh(np.array(x))


def tanh_grad(y, dy):
    return np.array(dy) * (1 - np.square(np.array(y)))


def swish_layer(x, name=None):
    """a layer of one's own, with LayerHelper"""
    helper = LayerHelper("swish_layer", **locals())
    beta = helper.create_parameter(attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(1.5)), shape=[1],
                                   dtype=x.dtype)
    scaled = helper.create_variable_for_type_inference(dtype=x.dtype)
    helper.append_op(type="elementwise_mul", inputs={"X": [x], "Y": [beta]}, outputs={"Out": [scaled]},
                     attrs={"axis": -1})
    gate = helper.create_variable_for_type_inference(dtype=x.dtype)
    helper.append_op(type="sigmoid", inputs={"X": [scaled]}, outputs={"Out": [gate]})
    out = helper.create_variable_for_type_inference(dtype=x.dtype)
    helper.append_op(type="elementwise_mul", inputs={"X": [x], "Y": [gate]}, outputs={"Out": [out]})
    return out


def create_tmp_var(name, dtype, shape):
    return fluid.default_main_program().current_block().create_var(name=name, dtype=dtype, shape=shape)


def simple_net(img, label):
    hidden = img
    for idx in range(3):
        hidden = fluid.layers.fc(hidden, size=12, bias_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.1)))
        new_hidden = create_tmp_var(name='hidden_{}'.format(idx), dtype=hidden.dtype, shape=hidden.shape)
        hidden = fluid.layers.py_func(func=tanh, x=hidden, out=new_hidden, backward_func=tanh_grad,
                                      skip_vars_in_backward_input=hidden)
    hidden = swish_layer(hidden)
    prediction = fluid.layers.fc(hidden, size=4, act='softmax')
    loss = fluid.layers.cross_entropy(input=prediction, label=label)
    return fluid.layers.mean(loss), hidden


seen = []
img = fluid.layers.data(name='image', shape=[6], dtype='float32')
label = fluid.layers.data(name='label', shape=[1], dtype='int64')
loss, hidden = simple_net(img, label)
fluid.layers.py_func(func=lambda x: seen.append(float(np.array(x).sum())), x=hidden, out=None)
printed = fluid.layers.Print(loss, message="The loss:", summarize=3, print_phase='forward')
optimizer = fluid.optimizer.Adam(learning_rate=0.02)
params_grads = optimizer.backward(loss)
norms = [fluid.layers.reduce_sum(fluid.layers.square(g)) for _, g in params_grads]
optimizer.apply_gradients(params_grads)
print([(p.name, g.name) for p, g in params_grads][:3])

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(7)
for step in range(6):
    x = rng.randn(8, 6).astype('float32')
    y = (np.abs(x.sum(1, keepdims=True)) % 4).astype('int64')
    values = exe.run(feed={'image': x, 'label': y}, fetch_list=[loss] + norms)
    print("step %d loss %.5f norms %s" % (step, values[0], " ".join("%.5f" % v for v in values[1:4])))
print(len(seen), "%.4f" % seen[-1])
