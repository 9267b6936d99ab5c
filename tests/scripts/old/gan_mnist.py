from __future__ import division, print_function

import functools

import numpy as np
import paddle
import paddle.fluid as fluid

NOISE_SIZE, NUM_PASS, BATCH = 10, 2, 8


def loss(x, label):
    return fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(x=x, label=label))


def bn(x, name=None, act=None):
    return fluid.layers.batch_norm(x, param_attr=name + '1', bias_attr=name + '2', moving_mean_name=name + '3',
                                   moving_variance_name=name + '4', name=name, act=act)


def D(images, name="D"):
    def fc(x, n, act=None, tag="", bias=True):
        return fluid.layers.fc(x, size=n, act=act, param_attr=name + tag + "_w", bias_attr=bias and name + tag + "_b")
    hidden = fluid.layers.leaky_relu(fc(images, 24, tag="1"), alpha=0.2)
    hidden = fluid.layers.leaky_relu(bn(fc(hidden, 16, tag="2", bias=False), name=name + "bn"), alpha=0.2)
    return fc(hidden, 1, tag="3")


def G(noise, name="G"):
    hidden = fluid.layers.fc(noise, size=16, param_attr=name + "1_w", bias_attr=False)
    hidden = bn(hidden, name=name + "bn", act="relu")
    return fluid.layers.fc(hidden, size=784, act="tanh", param_attr=name + "2_w", bias_attr=name + "2_b")


def get_params(program, prefix):
    all_params = program.global_block().all_parameters()
    return [t.name for t in all_params if t.name.startswith(prefix)]


d_program, dg_program = fluid.Program(), fluid.Program()
startup = fluid.Program()
with fluid.program_guard(d_program, startup):
    img = fluid.layers.data(name='img', shape=[784], dtype='float32')
    label = fluid.layers.data(name='label', shape=[1], dtype='float32')
    d_loss = loss(x=D(img), label=label)
    fluid.optimizer.Momentum(learning_rate=1e-2, momentum=0.5).minimize(
        loss=d_loss, parameter_list=get_params(d_program, "D"))
with fluid.program_guard(dg_program, startup):
    noise = fluid.layers.data(name='noise', shape=[NOISE_SIZE], dtype='float32')
    g_img = G(noise)
    g_program = dg_program.clone()
    g_program_test = dg_program.clone(for_test=True)
    dg_logit = D(g_img)
    dg_loss = loss(x=dg_logit, label=fluid.layers.fill_constant_batch_size_like(
        input=noise, dtype='float32', shape=[-1, 1], value=1.0))
    optimizer = fluid.optimizer.Momentum(learning_rate=1e-2, momentum=0.5)
    optimizer.minimize(loss=dg_loss, parameter_list=get_params(g_program, "G"))

exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
rng = np.random.RandomState(5)
const_n = rng.uniform(-1, 1, (2, NOISE_SIZE)).astype("float32")
reader = paddle.batch(paddle.reader.firstn(paddle.dataset.mnist.train(), 40), batch_size=BATCH)
run = functools.partial(exe.run)
for pass_id in range(NUM_PASS):
    for batch_id, data in enumerate(reader()):
        noise_data = rng.uniform(-1, 1, (len(data), NOISE_SIZE)).astype("float32")
        real_image = np.array([x[0] for x in data]).reshape(-1, 784).astype('float32')
        real_labels = np.ones(shape=[len(data), 1], dtype='float32')
        fake_labels = np.zeros(shape=[len(data), 1], dtype='float32')
        generated = run(g_program, feed={'noise': noise_data}, fetch_list=[g_img])[0]
        total_images = np.concatenate([real_image, generated])
        d_loss_1 = run(d_program, feed={'img': generated, 'label': fake_labels}, fetch_list=[d_loss])[0][0]
        d_loss_2 = run(d_program, feed={'img': real_image, 'label': real_labels}, fetch_list=[d_loss])[0][0]
        for _ in range(2):
            noise_data = rng.uniform(-1, 1, (len(data), NOISE_SIZE)).astype("float32")
            dg_loss_np = run(dg_program, feed={'noise': noise_data}, fetch_list=[dg_loss])[0][0]
        print("Epoch ID={} Batch ID={} D-Loss={:.5f}+{:.5f} DG-Loss={:.5f}\n gen={:.4f}".format(
            pass_id, batch_id, d_loss_1, d_loss_2, dg_loss_np, total_images.mean()))
samples = run(g_program_test, feed={'noise': const_n}, fetch_list=[g_img])[0]
print(samples.shape, "%.4f %.4f" % (samples.min(), samples.max()))
