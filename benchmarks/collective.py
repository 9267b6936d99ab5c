"""Two processes that add up their gradients, compared with two replicas of one process: the model of w02, the same batches.

    python benchmarks/collective.py [--rounds 5] [--seconds 2] [--batch 512]

Both start at the same time and alternate, so that the machine is the same for both; while one works the other one
waits for a line of its input. Prints samples per second of each round, the processor time of a step, all
processes together, and the ratio of the medians.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def work(args):
    import anabranch.fluid as fluid
    import data
    rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    workers = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    image, label = fluid.data("image", [None, 784]), fluid.data("label", [None, 1], "int64")
    hidden = fluid.layers.fc(fluid.layers.fc(image, 200, act="relu"), 200, act="relu")
    prediction = fluid.layers.fc(hidden, 10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    fluid.optimizer.Adam(1e-3).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    build = fluid.BuildStrategy()
    build.num_trainers, build.trainer_id = workers, rank
    places = fluid.cpu_places(1 if workers > 1 else 2)
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, build, places=places)
    rows = args.batch // workers
    feeds = [{"image": x[rank * rows:(rank + 1) * rows], "label": y[rank * rows:(rank + 1) * rows]}
             for x, y in data.batches(16, args.batch, lambda rng, n: data.classes(rng, n, (784,)))]
    for step in range(64):
        exe.run(program, feeds[step % 16], [loss.name])
    print("ready", flush=True)
    for line in sys.stdin:
        steps, begun, used = int(line), time.perf_counter(), time.process_time()
        for step in range(steps):
            exe.run(program, feeds[step % 16], [loss.name])
        print(time.perf_counter() - begun, time.process_time() - used, flush=True)


def start(workers, argv):
    sys.path.insert(0, os.path.join(HERE, "..", "python"))
    from anabranch._processes import free_ports
    endpoints = ["127.0.0.1:%d" % port for port in free_ports(workers)]
    path = os.pathsep.join([os.path.join(HERE, "..", "python"), os.environ.get("PYTHONPATH", "")])
    made = []
    for rank in range(workers):
        env = dict(os.environ, PYTHONPATH=path, PADDLE_TRAINERS_NUM=str(workers), PADDLE_TRAINER_ID=str(rank),
                   PADDLE_TRAINER_ENDPOINTS=",".join(endpoints))
        made.append(subprocess.Popen([sys.executable, __file__, "--work", *argv], env=env, text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    for process in made:
        assert process.stdout.readline() == "ready\n"
    return made


def seconds(processes, steps):
    """(seconds by the clock, processor seconds of all)"""
    for process in processes:
        process.stdin.write("%d\n" % steps)
        process.stdin.flush()
    told = [[float(word) for word in process.stdout.readline().split()] for process in processes]
    return max(clock for clock, _ in told), sum(used for _, used in told)


def main():
    made = argparse.ArgumentParser()
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--seconds", type=float, default=2.0)
    made.add_argument("--batch", type=int, default=512)
    made.add_argument("--work", action="store_true")
    args = made.parse_args()
    if args.work:
        return work(args)
    kinds = {"2 replicas": start(1, sys.argv[1:]), "2 processes": start(2, sys.argv[1:])}
    steps = {name: max(1, int(args.seconds / (seconds(made, 50)[0] / 50))) for name, made in kinds.items()}
    found, used = {name: [] for name in kinds}, {name: [] for name in kinds}
    for number in range(args.rounds):
        for name in sorted(kinds, reverse=number % 2 == 1):
            clock, processor = seconds(kinds[name], steps[name])
            found[name].append(steps[name] * args.batch / clock)
            used[name].append(1e6 * processor / steps[name])
    for processes in kinds.values():
        for process in processes:
            process.stdin.close()
            process.wait(30)
    for name, values in found.items():
        print("%-12s %s samples/s, %.0f us of processor time a step"
              % (name, " ".join("%.0f" % v for v in values), statistics.median(used[name])))
    medians = {name: statistics.median(values) for name, values in found.items()}
    print("ratio %.2f" % (medians["2 processes"] / medians["2 replicas"]))


if __name__ == "__main__":
    main()
