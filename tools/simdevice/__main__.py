"""Runs programs on simulated devices (plugins/simdevice), for many orders of their queues.

    python tools/simdevice                     one seed, which the date says, on 1 and 2 devices: minutes
    python tools/simdevice --all               ten seeds, each on 1, 2, 4 and 8 devices
    python tools/simdevice --seed 7 --devices 2 4 --what values wrong
    python tools/simdevice --faults            plants defects of the engine; each has to be found

A seed chooses the order of the queues, too: of ten three let one queue starve, or take the last item first. For two of
ten a row of a kernel has one lane, for the others as on a GPU, in an order of the seed. The results of programs
must have the same bits for all seeds with the same number of lanes. Ends with 1 when anything fails; logs lie in
build/simdevice.
"""
import argparse
import datetime
import os
import sys

import faults
import jobs
import table


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev simdevice", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="seeds 0 to 9 on 1, 2, 4 and 8 devices, and all op cases")
    parser.add_argument("--seed", type=int, nargs="+", help="these seeds")
    parser.add_argument("--devices", type=int, nargs="+", help="numbers of devices, 1 to 8 each")
    parser.add_argument("--what", nargs="+", choices=jobs.WHAT, help="only these")
    parser.add_argument("--faults", action="store_true", help="plant defects, see tools/mutants/device.py")
    parser.add_argument("--only", nargs="+", help="with --faults: only defects of these names")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    if args.faults:
        return faults.main(args.only, args.jobs)
    seeds = args.seed or (list(range(10)) if args.all else [datetime.date.today().toordinal() % 1000])
    devices = args.devices or ([1, 2, 4, 8] if args.all else [1, 2])
    what = args.what or (list(jobs.WHAT) if args.all else [w for w in jobs.WHAT if w not in jobs.LONG])
    print("seeds %s, %s devices" % (" ".join(map(str, seeds)), " ".join(map(str, devices))), flush=True)
    results = jobs.run(jobs.plan(devices, seeds, what), args.jobs)
    print(table.of(results))
    return int(any(r.failed for r in results))


if __name__ == "__main__":
    sys.exit(main())
