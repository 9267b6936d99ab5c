"""A process that follows checkpoints: python shared_rows.py MODEL RUN SHARE ROWS; an empty SHARE: it has its own rows.

For each line of stdin it looks at the folder 40 times if the line is "poll", reads all rows, and prints its version,
the sum of the answers, and the bytes, resident and proportional, that it has taken since it had no rows. Pages that N
processes share count 1/N in the second number.
"""
import sys

import numpy as np

import anabranch


def memory():
    with open("/proc/self/smaps_rollup") as file:
        found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in file if line.endswith("kB\n")}
    return found["Rss"], found["Pss"]


def main():
    model, run, share, rows = *sys.argv[1:4], int(sys.argv[4])
    parts = [np.arange(at, min(at + 10000, rows)).reshape(-1, 1) for at in range(0, rows, 10000)]
    anabranch.Predictor(model).run([parts[0]])
    bare = memory()
    made = anabranch.Predictor(model, follow=run, poll_s=1000.0, share=share or None)
    for line in sys.stdin:
        for _ in range(40 if line == "poll\n" else 0):     # a poll renews one part of the table
            made.follower.poll()
        total = sum(float(made.run([ids])[0].sum(dtype="float64")) for ids in parts)
        print(made.version, total, *(now - then for now, then in zip(memory(), bare)), flush=True)


if __name__ == "__main__":
    main()
