import numpy as np
import paddle.fluid as fluid

img = fluid.layers.data('img', [1, 12, 12])
label = fluid.layers.data('label', [1], dtype='int64')
conv = fluid.nets.simple_img_conv_pool(img, 6, 3, 2, 2, act='relu')
hidden = fluid.layers.dropout(fluid.layers.fc(conv, 32, act='relu'), 0.4)
prob = fluid.layers.fc(hidden, 4, act='softmax')
loss = fluid.layers.mean(fluid.layers.cross_entropy(prob, label))
test = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.Adam(0.005).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())


def batch(n):
    labels = np.random.randint(0, 4, (n, 1))
    pixels = np.random.rand(n, 1, 12, 12)
    for picture, mark in zip(pixels, labels):
        picture[0, 3 * mark[0]:3 * mark[0] + 3] += 0.5
    return {'img': pixels.astype('float32'), 'label': labels.astype('int64')}


for step in range(60):
    exe.run(feed=batch(16), fetch_list=[loss])
print("final loss %.5f" % exe.run(test, feed=batch(256), fetch_list=[loss])[0])
