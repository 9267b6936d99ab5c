import numpy as np
import paddle.fluid as fluid

x = fluid.layers.data('x', [16])
noise = fluid.layers.gaussian_random_batch_size_like(x, [-1, 4], std=0.3)
code = fluid.layers.fc(x, 24, act='relu', param_attr=fluid.initializer.MSRA())
mean, spread = fluid.layers.fc(code, 4), fluid.layers.fc(code, 4)
z = mean + fluid.layers.exp(spread * 0.5) * noise
back = fluid.layers.fc(fluid.layers.fc(z, 24, act='relu', param_attr=fluid.initializer.Normal(0, 0.2)), 16)
error = fluid.layers.reduce_sum(fluid.layers.square_error_cost(back, x), dim=1)
kl = -0.5 * fluid.layers.reduce_sum(1 + spread - fluid.layers.square(mean) - fluid.layers.exp(spread), dim=1)
loss = fluid.layers.mean(error + 0.1 * kl)
fluid.optimizer.RMSProp(0.005).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
mix = np.random.RandomState(0).randn(3, 16)
losses = []
for step in range(150):
    rows = np.random.randn(32, 3).dot(mix).astype('float32')
    losses.append(exe.run(feed={'x': rows}, fetch_list=[loss])[0].item())
print("final loss %.5f" % np.mean(losses[-20:]))
