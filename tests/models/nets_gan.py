"""Adversarial training in several programs that share parameters: DCGAN and a conditional WGAN."""
from harness import drawn, net

SIZE, NOISE, CLASSES = 16, 8, 4


class Layers(object):
    """Layers with names that programs share, as GAN code wraps them."""

    def __init__(self, fluid):
        self.fluid = fluid

    def bn(self, x, name, act="relu"):
        ParamAttr = self.fluid.ParamAttr
        return self.fluid.layers.batch_norm(
            x, param_attr=ParamAttr(name=name + "1", initializer=self.fluid.initializer.NormalInitializer(1.0, 0.02)),
            bias_attr=ParamAttr(name=name + "2", initializer=self.fluid.initializer.Constant(0.0)),
            moving_mean_name=name + "3", moving_variance_name=name + "4", name=name, act=act)

    def norm(self, x, name, kind):
        if kind == "instance_norm":
            return self.fluid.layers.instance_norm(
                x, epsilon=1e-5, param_attr=self.fluid.ParamAttr(name=name + "_scale", trainable=True),
                bias_attr=self.fluid.ParamAttr(name=name + "_offset"))
        return self.bn(x, name, act=None) if kind == "batch_norm" else x

    def normal(self, name, std=0.1):
        return self.fluid.ParamAttr(name=name, initializer=self.fluid.initializer.NormalInitializer(0.0, std))

    def conv(self, x, filters, size=4, stride=2, padding=1, name="conv2d", norm=None, act=None, leak=0.2):
        bias_attr = False if norm == "batch_norm" else self.fluid.ParamAttr(name + "_b")
        x = self.fluid.layers.conv2d(x, filters, size, stride=stride, padding=padding,
                                     param_attr=self.normal(name + "_w"), bias_attr=bias_attr)
        return self.activated(self.norm(x, name + "_norm", norm), act, leak)

    def deconv(self, x, filters, size=4, stride=2, padding=1, outpadding=0, name="deconv2d", norm=None, act=None):
        layers = self.fluid.layers
        x = layers.conv2d_transpose(x, filters, filter_size=size, stride=stride, padding=padding,
                                    param_attr=self.normal(name + "_w"), bias_attr=self.fluid.ParamAttr(name + "_b"))
        if outpadding:
            x = layers.pad2d(x, paddings=[0, outpadding, 0, outpadding], mode="constant", pad_value=0.0)
        return self.activated(self.norm(x, name + "_norm", norm), act)

    def activated(self, x, act, leak=0.2):
        layers = self.fluid.layers
        if act == "leaky_relu":
            return layers.leaky_relu(x, alpha=leak)
        return getattr(layers, act)(x) if act else x

    def fc(self, x, size, name, act=None):
        return self.fluid.layers.fc(x, size=size, act=act, param_attr=self.normal(name + "_w"),
                                    bias_attr=self.fluid.ParamAttr(name=name + "_b"))


def parameters(program, prefix):
    return [p.name for p in program.global_block().all_parameters() if p.name.startswith(prefix)]


def noise(name, step, batch, **more):
    rng = drawn(name, step)
    feed = {"noise": rng.uniform(-1, 1, (batch, NOISE)).astype("float32")}
    return rng, dict(feed, **{k: rng.normal(0, 1, (batch,) + s).astype("float32") for k, s in more.items()})


@net("dcgan")
def dcgan(fluid):
    """The generator trains twice in a step, through a copy of the discriminator's layers."""
    layers, lib, batch = fluid.layers, Layers(fluid), 4

    def D(x):
        x = layers.reshape(x=x, shape=[-1, 1, SIZE, SIZE])
        x = lib.conv(x, 4, name="d_conv1", act="leaky_relu")
        x = lib.conv(x, 8, name="d_conv2", norm="batch_norm", act="leaky_relu")
        return lib.fc(layers.flatten(x), 1, "d_fc", act="sigmoid")

    def G(x):
        x = lib.bn(lib.fc(x, 32, "g_fc1"), "g_bn1")
        x = lib.bn(lib.fc(x, 8 * 4 * 4, "g_fc2"), "g_bn2")
        x = layers.reshape(x, [-1, 8, 4, 4])
        x = lib.deconv(x, 4, name="g_deconv1", act="relu")
        x = lib.deconv(x, 1, name="g_deconv2", act="tanh")
        return layers.reshape(x, shape=[-1, SIZE * SIZE])

    def loss(x, label):
        return layers.mean(layers.sigmoid_cross_entropy_with_logits(x=x, label=label))

    d_program, dg_program = fluid.Program(), fluid.Program()
    with fluid.program_guard(d_program):
        img = layers.data(name="img", shape=[SIZE * SIZE], dtype="float32")
        label = layers.data(name="label", shape=[1], dtype="float32")
        d_loss = loss(D(img), label)
    with fluid.program_guard(dg_program):
        z = layers.data(name="noise", shape=[NOISE], dtype="float32")
        g_img = G(x=z)
        g_program = dg_program.clone()
        g_program_test = dg_program.clone(for_test=True)
        dg_loss = loss(D(g_img), layers.fill_constant_batch_size_like(
            input=z, dtype="float32", shape=[-1, 1], value=1.0))
    opt = fluid.optimizer.Adam(learning_rate=2e-3, beta1=0.5)
    opt.minimize(loss=d_loss)
    with fluid.program_guard(dg_program):
        fluid.optimizer.Adam(learning_rate=2e-3, beta1=0.5).minimize(
            loss=dg_loss, parameter_list=parameters(g_program, "g_"))

    def feed(step):
        rng, result = noise("dcgan", step, batch, img=(SIZE * SIZE,))
        return dict(result, label=rng.randint(0, 2, (batch, 1)).astype("float32"))

    def other_noise(step):
        return noise("dcgan2", step, batch)[1]
    z_only = ["noise"]
    return {"feed": feed, "runs": [
        dict(program=g_program, fetch=[g_img.name], feed=z_only),
        dict(program=d_program, fetch=[d_loss], feed=["img", "label"]),
        dict(program=dg_program, fetch=[dg_loss], feed=z_only),
        dict(program=dg_program, fetch=[dg_loss], feed=other_noise),
    ], "test": g_program_test, "test_fetch": [g_img.name], "test_feed": z_only}


@net("conditional_wgan", exact=True)  # the gradient of spectral_norm: docs/differences.md
def conditional_wgan(fluid):
    """Classes condition both networks; after each step another program clips the critic's weights in place."""
    layers, lib, batch = fluid.layers, Layers(fluid), 4

    def critic(image, label):
        planes = layers.one_hot(label, depth=CLASSES)
        planes = layers.expand(layers.unsqueeze(planes, axes=[2, 3]), [1, 1, SIZE, SIZE])
        x = layers.concat([image, planes], axis=1)
        x = lib.conv(x, 6, name="d_1", act="leaky_relu")
        x = lib.conv(x, 12, name="d_2", act="leaky_relu")
        weight = layers.create_parameter([12 * 4 * 4, 1], "float32", name="d_3_w", attr=lib.normal("d_3_w"))
        weight = layers.spectral_norm(weight, dim=1, power_iters=2)
        return layers.mul(layers.reshape(x, [0, 12 * 4 * 4]), weight)

    def generator(z, label):
        x = layers.concat([z, layers.embedding(label, [CLASSES, 4], param_attr=lib.normal("g_classes"))], axis=1)
        x = layers.reshape(lib.fc(x, 12 * 4 * 4, "g_1", act="relu"), [-1, 12, 4, 4])
        x = lib.deconv(x, 6, name="g_2", norm="batch_norm", act="relu")
        return lib.deconv(x, 1, name="g_3", act="tanh")

    def inputs():
        return fluid.data("noise", [batch, NOISE], "float32"), fluid.data("label", [batch, 1], "int64")

    c_program, g_program, clip_program = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(c_program), fluid.unique_name.guard():
        z, label = inputs()
        real = fluid.data("real", [batch, 1, SIZE, SIZE], "float32")
        fake = generator(z, label)
        fake.stop_gradient = True
        distance = layers.reduce_mean(critic(fake, label)) - layers.reduce_mean(critic(real, label))
        names = parameters(c_program, "d_")
        fluid.optimizer.RMSProp(1e-3, epsilon=1e-2).minimize(distance, parameter_list=names)
    with fluid.program_guard(clip_program):
        for name in names:
            p = c_program.global_block().var(name)
            here = clip_program.global_block().create_var(name=name, shape=p.shape, dtype=p.dtype, persistable=True)
            layers.assign(layers.clip(here, -0.1, 0.1), output=here)
        largest = layers.reduce_max(layers.abs(here))
    with fluid.program_guard(g_program), fluid.unique_name.guard():
        z, label = inputs()
        made = generator(z, label)
        test = g_program.clone(for_test=True)
        g_loss = layers.scale(layers.reduce_mean(critic(made, label)), scale=-1.0)
        fluid.optimizer.RMSProp(1e-3, epsilon=1e-2).minimize(g_loss, parameter_list=parameters(g_program, "g_"))

    def feed(step):
        rng, result = noise("wgan", step, batch, real=(1, SIZE, SIZE))
        return dict(result, label=rng.randint(0, CLASSES, (batch, 1)).astype("int64"))
    return {"feed": feed, "runs": [dict(program=c_program, fetch=[distance]),
                                   dict(program=clip_program, fetch=[largest], feed=[]),
                                   dict(program=g_program, fetch=[g_loss], feed=["noise", "label"])],
            "test": test, "test_fetch": [made.name], "test_feed": ["noise", "label"]}
