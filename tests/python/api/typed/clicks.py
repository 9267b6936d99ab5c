"""A user's program: lookups, a loader, a metric, a scope."""
from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy

import anabranch.fluid as fluid

Sample = tuple[list[int], float]


def reader() -> Callable[[], Iterator[list[numpy.ndarray]]]:
    def batches() -> Iterator[list[numpy.ndarray]]:
        for _ in range(4):
            yield [numpy.ones((8, 3), "int64"), numpy.ones((8, 1), "float32")]
    return batches


def ctr_model(words: fluid.Variable) -> fluid.Variable:
    rows = fluid.embedding(words, size=[100, 8], is_sparse=True, param_attr=fluid.ParamAttr(name="table"))
    pooled = fluid.layers.reduce_sum(rows, dim=1)
    hidden = fluid.layers.leaky_relu(fluid.layers.fc(pooled, 16), alpha=0.1)
    return fluid.layers.fc(fluid.layers.concat([hidden, pooled], axis=1), 1)


def main() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        words = fluid.data("words", [None, 3], "int64")
        label = fluid.data("label", [None, 1])
        logit = ctr_model(words)
        loss = fluid.layers.reduce_mean(fluid.layers.sigmoid_cross_entropy_with_logits(logit, label))
        fluid.optimizer.SGD(0.1).minimize(loss)
        loader = fluid.io.DataLoader.from_generator(feed_list=[words, label], capacity=4)
        loader.set_batch_generator(reader(), places=fluid.cpu_places(1))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        metric = fluid.metrics.Auc(name="auc")
        for feed in loader():
            exe.run(feed=feed, fetch_list=[loss])
        with fluid.scope_guard(fluid.Scope()):
            assert fluid.global_scope().find_var("table") is None
        print(metric, [p.name for p in fluid.default_main_program().all_parameters()])
        for param in fluid.default_main_program().list_vars():
            print(param.name, param.shape, param.dtype)


if __name__ == "__main__":
    main()
