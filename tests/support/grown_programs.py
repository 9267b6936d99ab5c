"""Random programs that grow an operator at a time."""
import numpy as np

import anabranch.fluid as fluid

layers = fluid.layers


class Grower:
    """Puts random layers on random variables of one shape; some are used often, some never."""

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)
        self.width = int(self.rng.choice([3, 8, 33]))
        self.made = []

    def pick(self):
        # mostly the newest, so that chains come about
        back = min(len(self.made), 1 + self.rng.geometric(0.6))
        return self.made[-back]

    def bias(self):
        return layers.create_parameter([self.width], "float32")

    def unary(self):
        op = self.rng.choice(["relu", "sigmoid", "tanh", "square", "abs", "softmax", "leaky_relu", "assign"])
        return getattr(layers, op)(self.pick())

    def binary(self):
        op = self.rng.choice(["add", "sub", "mul", "max", "min"])
        return getattr(layers, "elementwise_" + op)(self.pick(), self.pick())

    def with_bias(self):
        op = layers.elementwise_add if self.rng.rand() < 0.6 else layers.elementwise_mul
        return op(self.pick(), self.bias(), axis=int(self.rng.choice([-1, 1])))

    def scale(self):
        scale, bias = self.rng.choice([1.0, 0.5, -1.5]), self.rng.choice([0.0, 0.25])
        return layers.scale(self.pick(), float(scale), float(bias), bias_after_scale=bool(self.rng.rand() < 0.5))

    def fc(self):
        act = self.rng.choice(["relu", "sigmoid", "tanh", "softmax", "none"])
        bias = None if self.rng.rand() < 0.8 else False
        return layers.fc(self.pick(), self.width, act=None if act == "none" else act, bias_attr=bias)

    def product(self):
        return layers.mul(self.pick(), layers.create_parameter([self.width, self.width], "float32"))

    def norm(self):
        return layers.batch_norm(self.pick(), act=self.rng.choice(["relu", None]))

    def constant(self):
        c = layers.fill_constant([self.width], "float32", float(self.rng.normal()))
        c = layers.scale(c, 0.5) if self.rng.rand() < 0.5 else c
        return layers.elementwise_add(self.pick(), c)

    def cast(self):
        return layers.cast(layers.cast(self.pick(), self.rng.choice(["float32", "float64"])), "float32")

    def __call__(self):
        self.made = [fluid.data("x", [None, self.width], "float32")]
        steps = [self.unary] * 4 + [self.fc] * 3 + [self.binary, self.with_bias, self.scale] * 2 + [
            self.product, self.norm, self.constant, self.cast]
        for _ in range(self.rng.randint(4, 16)):
            self.made.append(steps[self.rng.randint(len(steps))]())
        loss = layers.mean(layers.tanh(layers.elementwise_mul(self.made[-1], self.bias())))
        kinds = [fluid.optimizer.SGD, fluid.optimizer.Adam, lambda r: fluid.optimizer.Momentum(r, 0.9)]
        kinds[self.rng.randint(3)](0.01).minimize(loss)
        width = self.width
        return loss, lambda rng: {"x": rng.normal(0, 1, (5, width)).astype("float32")}
