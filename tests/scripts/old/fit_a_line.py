from __future__ import print_function

import argparse
import math
import sys

import numpy
import paddle
import paddle.fluid as fluid


def parse_args():
    parser = argparse.ArgumentParser("fit_a_line")
    parser.add_argument("--use_gpu", type=bool, default=False)
    parser.add_argument("--num_epochs", type=int, default=4)
    return parser.parse_args()


def train_test(executor, program, reader, feeder, fetch_list):
    accumulated = 1 * [0]
    count = 0
    for data_test in reader():
        outs = executor.run(program=program, feed=feeder.feed(data_test), fetch_list=fetch_list)
        accumulated = [x_c[0] + x_c[1][0] for x_c in zip(accumulated, outs)]
        count += 1
    return [x_d / count for x_d in accumulated]


def main():
    batch_size = 5
    train_reader = paddle.batch(paddle.dataset.uci_housing.train(), batch_size=batch_size)
    test_reader = paddle.batch(paddle.dataset.uci_housing.test(), batch_size=batch_size)

    x = fluid.data(name='x', shape=[None, 13], dtype='float32')
    y = fluid.data(name='y', shape=[None, 1], dtype='float32')
    main_program = fluid.default_main_program()
    startup_program = fluid.default_startup_program()

    y_predict = fluid.layers.fc(input=x, size=1, act=None)
    cost = fluid.layers.square_error_cost(input=y_predict, label=y)
    avg_loss = fluid.layers.mean(cost)
    test_program = main_program.clone(for_test=True)
    fluid.optimizer.SGD(learning_rate=0.001).minimize(avg_loss)

    place = fluid.CUDAPlace(0) if args.use_gpu else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_program)
    feeder = fluid.DataFeeder(place=place, feed_list=[x, y])
    step = 0
    for pass_id in range(args.num_epochs):
        for data_train in train_reader():
            avg_loss_value, = exe.run(main_program, feed=feeder.feed(data_train), fetch_list=[avg_loss])
            if step % 2 == 0:
                print("%s, Step %d, Cost %f" % ("Train cost", step, avg_loss_value[0]))
            step += 1
        test_metics = train_test(exe, test_program, test_reader, feeder, [avg_loss.name])
        print("Test cost, Pass %d, Cost %f" % (pass_id, test_metics[0]))
        if math.isnan(float(avg_loss_value[0])):
            sys.exit("got NaN loss, training failed.")

    params_dirname = "fit_a_line.inference.model"
    fluid.io.save_inference_model(params_dirname, ['x'], [y_predict], exe)

    inference_scope = fluid.core.Scope()
    with fluid.scope_guard(inference_scope):
        [program, feed_names, fetch_targets] = fluid.io.load_inference_model(params_dirname, exe)
        infer_data = next(paddle.batch(paddle.dataset.uci_housing.test(), batch_size=10)())
        infer_feat = numpy.array([data[0] for data in infer_data]).astype("float32")
        assert feed_names[0] == 'x'
        results = exe.run(program, feed={feed_names[0]: infer_feat}, fetch_list=fetch_targets)
        print("infer results: (House Price)")
        for idx, val in enumerate(results[0]):
            print("%d: %.4f" % (idx, val[0]))


if __name__ == '__main__':
    args = parse_args()
    main()
