import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_train  # noqa: F401

ABOUT = "Wasserstein critic of convolutions with a gradient penalty: the gradient of a norm of a gradient, its maker in a second program"
MODES = ["train"]
SIZE, NOISE = 8, 6


def critic(fluid, image):
    L, w = fluid.layers, Weights(fluid)
    x = image
    for i, filters in enumerate((8, 12)):
        x = L.conv2d(x, filters, 3, stride=2, padding=1, param_attr=w(0.3, name="d_w%d" % i), bias_attr="d_b%d" % i)
        x = L.leaky_relu(x, alpha=0.2)
    return L.fc(L.reshape(x, [-1, 12 * 2 * 2]), 1, param_attr=w(0.3, name="d_w2"), bias_attr=False)


def maker(fluid, noise):
    L, w = fluid.layers, Weights(fluid)
    x = L.reshape(L.fc(noise, 8 * 4 * 4, act="relu", param_attr=w(0.5, name="g_w0"), bias_attr="g_b0"), [-1, 8, 4, 4])
    x = L.conv2d_transpose(x, 1, filter_size=4, stride=2, padding=1, param_attr=w(0.3, name="g_w1"), bias_attr="g_b1")
    return L.tanh(x)


def minimize(fluid, loss, prefix):
    names = sorted(p.name for p in loss.block.program.all_parameters() if p.name.startswith(prefix))
    return fluid.optimizer.Adam(0.002, beta1=0.5).minimize(loss, parameter_list=names)[1]


def build(fluid):
    L, other = fluid.layers, fluid.Program()
    real = fluid.data("real", [None, 1, SIZE, SIZE], "float32")
    noise = fluid.data("noise", [None, NOISE], "float32")
    mix = fluid.data("mix", [None, 1, 1, 1], "float32")
    made = maker(fluid, noise)
    made.stop_gradient = True
    between = L.elementwise_add(real, L.elementwise_mul(made - real, L.expand(mix, [1, 1, SIZE, SIZE])))
    between.stop_gradient = False
    slope, = fluid.gradients([critic(fluid, between)], [between])
    length = L.sqrt(L.reduce_sum(L.square(slope), dim=[1, 2, 3]) + 1e-6)
    penalty = L.mean(L.square(length - 1.0))
    distance = L.mean(critic(fluid, real)) - L.mean(critic(fluid, made))
    loss = 10.0 * penalty - distance
    pairs = minimize(fluid, loss, "d_")
    with fluid.program_guard(other):
        noise = fluid.data("noise", [None, NOISE], "float32")
        blame = L.scale(L.mean(critic(fluid, maker(fluid, noise))), -1.0)
        then = {"name": "maker", "feed": ["noise"], "fetch": [blame], "pairs": minimize(fluid, blame, "g_")}
    return {"feed": ["real", "noise", "mix"], "fetch": [loss, penalty, distance], "loss": loss, "pairs": pairs,
            "moved": "real", "programs": {"maker": other}, "then": [then]}


def batches():
    rng = numpy.random.RandomState(20)
    grid = numpy.arange(SIZE)
    for _ in range(STEPS):
        phase = rng.uniform(0, 6.3, (2, 16, 1, 1, 1))
        real = 0.8 * numpy.sin(grid[:, None] + phase[0]) * numpy.cos(grid + phase[1])
        yield {"real": real.astype("float32"), "noise": rng.normal(0, 1, (16, NOISE)).astype("float32"),
               "mix": rng.uniform(0, 1, (16, 1, 1, 1)).astype("float32")}
