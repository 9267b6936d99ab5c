"""Looks inside the demo's network: pictures of its program and of the graph of two replicas, the timeline of a step,
a table of operators, and what occupies memory.

    program.svg        forward, backward and optimizer part, operator by operator
    graph.svg          both replicas after all passes, with the sums of their gradients
    trace.svg          what each thread did in two steps
    profile.json       the same for Perfetto (https://ui.perfetto.dev) and chrome://tracing

Expected output: the tables of fluid.profiler and of fluid.memory_report, and the files written to --out.
"""
import argparse
import os

os.environ.setdefault("CPU_NUM", "2")

import demo_fashion_mnist as demo  # noqa: E402
from sample_data import batches, generated  # noqa: E402

import anabranch.fluid as fluid  # noqa: E402
from anabranch import profiling  # noqa: E402


def main(arguments):
    def file(name):
        return os.path.join(arguments.out, name)

    program = fluid.default_main_program()
    program.random_seed = fluid.default_startup_program().random_seed = 1
    loss = demo.loss_of(demo.network())
    fluid.optimizer.Adam(learning_rate=0.002).minimize(loss)
    program.draw(file("program.svg"), variables=False)

    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    parallel = fluid.CompiledProgram(program).with_data_parallel(loss_name=loss.name)
    feeds = [dict(image=image, label=label)
             for image, label in batches(*generated(arguments.steps * demo.BATCH, seed=1), size=demo.BATCH)]
    for feed in feeds[:5]:  # the first steps choose kernels and measure how many threads pay
        executor.run(parallel, feed=feed, fetch_list=[loss])
    with fluid.profiler.profiler("CPU", sorted_key="total", profile_path=file("profile")):
        for feed in feeds:
            executor.run(parallel, feed=feed, fetch_list=[loss])
    parallel.draw(file("graph.svg"), variables=False)
    profiling.take().draw(file("trace.svg"), runs=2)
    print(fluid.memory_report())
    print("written: " + ", ".join(map(file, ("program.svg", "graph.svg", "trace.svg", "profile", "profile.json"))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20, help="steps to measure (default: %(default)s)")
    parser.add_argument("--out", default="look_out", help="folder for the files (default: %(default)s)")
    main(parser.parse_args())
