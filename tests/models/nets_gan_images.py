"""Translation of images by adversarial training: Pix2Pix and CycleGAN."""
from harness import drawn, net
from nets_gan import Layers, parameters

SIZE, BATCH = 32, 2


def pairs(name, *images):
    def feed(step):
        rng = drawn(name, step)
        return {k: rng.uniform(-1, 1, (BATCH, 3, SIZE, SIZE)).astype("float32") for k in images}
    return feed


def picture(fluid, name):
    return fluid.data(name=name, shape=[None, 3, SIZE, SIZE], dtype="float32")


class Pix2Pix(object):
    def __init__(self, fluid):
        self.fluid, self.lib = fluid, Layers(fluid)

    def generator(self, x, depth=3, width=4, name="generator"):
        """Each level: down, the level below, up, joined with its input; the innermost has no norm on its way down."""
        layers, lib = self.fluid.layers, self.lib
        down, filters = [], width
        for i in range(depth):
            norm = "batch_norm" if 0 < i < depth - 1 else None
            x = lib.conv(x if i == 0 else layers.leaky_relu(x, 0.2), filters, name="%s_down%d" % (name, i), norm=norm)
            down.append(x)
            filters = min(filters * 2, width * 4)
        for i in reversed(range(depth)):
            outer = i == 0
            filters = 3 if outer else down[i - 1].shape[1]
            x = lib.deconv(layers.relu(x), filters, name="%s_up%d" % (name, i), act="tanh" if outer else None,
                           norm=None if outer else "batch_norm")
            if not outer:
                x = layers.dropout(x, dropout_prob=0.0) if i == depth - 1 else x
                x = layers.concat([down[i - 1], x], 1)
        return x

    def discriminator(self, a, b, name="discriminator"):
        layers, lib = self.fluid.layers, self.lib
        x = layers.concat([a, b], 1)
        x = lib.conv(x, 4, name=name + "_1", act="leaky_relu")
        x = lib.conv(x, 8, name=name + "_2", norm="batch_norm", act="leaky_relu")
        x = layers.pad2d(x, [1, 1, 1, 1], mode="edge")
        return lib.conv(x, 1, stride=1, padding=0, name=name + "_3")


def against(fluid, pred, real):
    """Cross entropy of a map of logits with ones or zeros of its shape, which is known in the run only."""
    layers = fluid.layers
    shape = layers.shape(pred)
    target = layers.fill_constant(shape=shape, value=1.0 if real else 0.0, dtype="float32")
    return layers.mean(layers.sigmoid_cross_entropy_with_logits(pred, target))


@net("pix2pix")
def pix2pix(fluid):
    layers, model = fluid.layers, Pix2Pix(fluid)
    gen_program, dis_program = fluid.default_main_program(), fluid.Program()
    rate = layers.piecewise_decay(boundaries=[1, 2], values=[2e-3, 1e-3, 0.0])
    input_a, input_b = picture(fluid, "input_A"), picture(fluid, "input_B")
    fake_b = model.generator(input_a)
    infer_program = gen_program.clone(for_test=True)
    g_gan = against(fluid, model.discriminator(input_a, fake_b), True)
    g_l1 = layers.reduce_mean(layers.abs(layers.elementwise_sub(x=input_b, y=fake_b))) * 100.0
    g_loss = layers.elementwise_add(x=g_l1, y=g_gan)
    fluid.optimizer.Adam(learning_rate=rate, beta1=0.5, beta2=0.999, epsilon=1e-3, name="net_G").minimize(
        g_loss, parameter_list=parameters(gen_program, "generator"))
    with fluid.program_guard(dis_program):
        a, b, fake = (picture(fluid, n) for n in ("input_A", "input_B", "input_fake"))
        d_loss = 0.5 * (against(fluid, model.discriminator(a, b), True) +
                        against(fluid, model.discriminator(a, fake), False))
        fluid.optimizer.Adam(learning_rate=layers.polynomial_decay(2e-3, 3, 0.0), beta1=0.5, epsilon=1e-3,
                             name="net_D").minimize(d_loss, parameter_list=parameters(dis_program, "discriminator"))
    return {"feed": pairs("pix2pix", "input_A", "input_B", "input_fake"), "runs": [
        dict(program=gen_program, fetch=[g_loss, g_gan, g_l1, fake_b], feed=["input_A", "input_B"]),
        dict(program=dis_program, fetch=[d_loss])], "test": infer_program, "test_fetch": [fake_b]}


class CycleGAN(object):
    def __init__(self, fluid):
        self.fluid, self.lib = fluid, Layers(fluid)

    def conv(self, x, filters, size, stride, name, reflect=0, act="relu"):
        if reflect:
            x = self.fluid.layers.pad2d(x, [reflect] * 4, mode="reflect")
        return self.lib.conv(x, filters, size, stride, 0 if reflect else size // 2, name, "instance_norm", act)

    def generator(self, x, name):
        layers = self.fluid.layers
        x = self.conv(x, 4, 7, 1, name + "_c0", reflect=3)
        x = self.conv(x, 8, 3, 2, name + "_c1")
        for i in range(2):
            y = self.conv(x, 8, 3, 1, "%s_r%d_1" % (name, i), reflect=1)
            y = self.conv(y, 8, 3, 1, "%s_r%d_2" % (name, i), reflect=1, act=None)
            x = layers.elementwise_add(y, x)
        x = self.lib.deconv(x, 4, 3, 2, 1, 1, name + "_d1", "instance_norm", "relu")
        x = layers.pad2d(x, [3, 3, 3, 3], mode="reflect")
        return self.lib.conv(x, 3, 7, 1, 0, name + "_out", act="tanh")

    def discriminator(self, x, name):
        x = self.lib.conv(x, 4, 4, 2, 1, name + "_c0", act="leaky_relu")
        x = self.lib.conv(x, 8, 4, 2, 1, name + "_c1", norm="instance_norm", act="leaky_relu")
        return self.lib.conv(x, 1, 4, 1, 1, name + "_c2")


@net("cycle_gan")
def cycle_gan(fluid):
    """Least squares; one program for both generators, one for each discriminator, fed by a pool of old images."""
    layers, model = fluid.layers, CycleGAN(fluid)
    programs = [fluid.default_main_program(), fluid.Program(), fluid.Program()]

    def near(pred, value):
        return layers.reduce_mean(layers.square(pred - value))

    def cycle(x, y):
        return layers.reduce_mean(layers.abs(layers.elementwise_sub(x=x, y=y)))

    a, b = picture(fluid, "input_A"), picture(fluid, "input_B")
    fake_b, fake_a = model.generator(a, "g_A"), model.generator(b, "g_B")
    cyc_a, cyc_b = model.generator(fake_b, "g_B"), model.generator(fake_a, "g_A")
    test = programs[0].clone(for_test=True)
    cycle_loss = (cycle(a, cyc_a) + cycle(b, cyc_b)) * 10.0
    identity = (cycle(model.generator(b, "g_A"), b) + cycle(model.generator(a, "g_B"), a)) * 5.0
    gan = near(model.discriminator(fake_b, "d_A"), 1.0) + near(model.discriminator(fake_a, "d_B"), 1.0)
    g_loss = layers.sum([cycle_loss, identity, gan])

    def optimize(loss, prefixes):
        program = loss.block.program
        rate = layers.piecewise_decay(boundaries=[2], values=[2e-3, 1e-3])
        names = [n for p in prefixes for n in parameters(program, p)]
        fluid.optimizer.Adam(learning_rate=rate, beta1=0.5, epsilon=1e-3).minimize(loss, parameter_list=names)

    optimize(g_loss, ["g_A", "g_B"])
    losses = []
    for program, name, real, pool in ((programs[1], "d_A", "input_B", "pool_B"),
                                      (programs[2], "d_B", "input_A", "pool_A")):
        with fluid.program_guard(program):
            of_real = model.discriminator(picture(fluid, real), name)
            of_fake = model.discriminator(picture(fluid, pool), name)
            losses.append((near(of_real, 1.0) + layers.reduce_mean(layers.square(of_fake))) / 2.0)
            optimize(losses[-1], [name])
    return {"feed": pairs("cycle_gan", "input_A", "input_B", "pool_A", "pool_B"), "runs": [
        dict(program=programs[0], fetch=[g_loss, gan, cycle_loss, fake_a, fake_b], feed=["input_A", "input_B"]),
        dict(program=programs[1], fetch=[losses[0]], feed=["input_B", "pool_B"]),
        dict(program=programs[2], fetch=[losses[1]], feed=["input_A", "pool_A"])],
        "test": test, "test_fetch": [fake_a, fake_b, cyc_a], "test_feed": ["input_A", "input_B"]}
