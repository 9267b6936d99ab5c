"""The command ``anabranch serve``."""
from __future__ import annotations

import argparse
import asyncio
import re
import signal
import sys
from collections.abc import Sequence

from ..fluid.errors import InvalidValue
from ..following.canary import Rule
from ..looking.command_line import Parser, complain


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch serve``."""
    made = Parser(
        prog="anabranch serve",
        description="Serves a saved model over HTTP. POST /predict takes and returns JSON or .npz; GET / describes the "
                    "inputs; /health, /metrics and /version are for monitoring. There is no authentication and no "
                    "encryption.")
    made.add_argument("folder", help="Folder written by fluid.io.save_inference_model.")
    made.add_argument("--host", default="127.0.0.1",
                      help="Address to listen on; 0.0.0.0 accepts other machines (default: %(default)s).")
    made.add_argument("--port", type=int, default=8080,
                      help="Port to listen on; 0 chooses a free one (default: %(default)s).")
    made.add_argument("--workers", type=int, default=1,
                      help="Number of threads that run the model (default: %(default)s).")
    made.add_argument("--threads", type=int, default=1,
                      help="Number of threads of one run; 0 uses all cores (default: %(default)s).")
    made.add_argument("--batch", type=int, default=64,
                      help="Largest number of rows of a run; 1 runs each request alone (default: %(default)s).")
    made.add_argument("--wait-ms", type=float, default=1.0,
                      help="Time in ms that a request waits for others to join it (default: %(default)s).")
    made.add_argument("--queue", type=int, default=1000,
                      help="Number of requests that may wait; more get status 503 (default: %(default)s).")
    made.add_argument("--max-mb", type=float, default=16.0,
                      help="Largest body in MB; a larger one gets status 413 (default: %(default)s).")
    made.add_argument("--timeout", type=float, default=30.0,
                      help="Seconds after which a request gets status 504 (default: %(default)s).")
    made.add_argument("--model-filename", help="File of the program in the folder (default: __model__).")
    made.add_argument("--params-filename", help="File of all parameters in the folder, if there is one.")
    made.add_argument("--follow", metavar="CHECKPOINTS",
                      help="Folder with the checkpoints of a training run. The server loads the latest one, and each "
                           "new one without a restart.")
    made.add_argument("--poll", type=float, default=0.1,
                      help="Seconds between two checks of the folder of --follow (default: %(default)s).")
    made.add_argument("--share", metavar="FOLDER",
                      help="With --follow: folder, on a local disk or in /dev/shm, through which all servers on this "
                           "machine share one copy of the rows of growable tables in memory.")
    made.add_argument("--warm-up", metavar="FILE",
                      help="With --follow: file with the body of a request. Each version answers it before it is used; "
                           "one that fails, or answers NaN or infinity, is not used.")
    made.add_argument("--canary", type=float, metavar="SHARE",
                      help="With --follow: share of the requests, between 0 and 1, that a new version answers before "
                           "it answers all. If an answer fails, or has NaN or infinity, the version is not used any "
                           "more.")
    until = made.add_mutually_exclusive_group()
    until.add_argument("--canary-seconds", type=float, metavar="SECONDS",
                       help="With --canary: time after which the version answers all requests (default: 60).")
    until.add_argument("--canary-answers", type=int, metavar="COUNT",
                       help="With --canary: number of its answers after which the version answers all requests.")
    return made


def _check(made, args):
    for name, least in (("workers", 1), ("threads", 0), ("batch", 1), ("wait_ms", 0), ("queue", 1), ("port", 0)):
        if getattr(args, name) < least:
            made.error("--%s must be at least %d, got %g" % (name.replace("_", "-"), least, getattr(args, name)))
    if args.warm_up is not None and args.follow is None:
        made.error("--warm-up needs --follow")
    if args.share is not None and args.follow is None:
        made.error("--share needs --follow")
    try:
        args.rule = Rule.of(args.follow, args.canary, args.canary_seconds, args.canary_answers)
    except InvalidValue as e:
        made.error(re.sub(r"\b(canary_seconds|canary_answers|canary|follow)\b",
                          lambda name: "--" + name.group().replace("_", "-"), str(e)))
    if args.max_mb <= 0 or args.timeout <= 0 or args.poll <= 0:
        made.error("--max-mb, --timeout and --poll must be above 0")


async def _serve(service, args):
    from aiohttp import web
    runner = web.AppRunner(service.app(), access_log=None, handle_signals=False)
    await runner.setup()
    site = web.TCPSite(runner, args.host, args.port)
    await site.start()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    host, port = runner.addresses[0][:2]
    sys.stdout.write("serving %s at http://%s:%d\n" % (args.folder, host, port))
    sys.stdout.flush()
    await ended.wait()
    await site.stop()                                     # no new connections; open requests are answered
    await asyncio.get_running_loop().run_in_executor(None, service.stop)
    await runner.cleanup()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch serve``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0 after SIGTERM or Ctrl-C, when all requests are answered; 1 when the model cannot be loaded or the address
            is in use.
    """
    made = parser()
    args = made.parse_args(argv)
    _check(made, args)
    try:
        from .model import Model
        from .server import Service
        model = Model(args.folder, model_filename=args.model_filename, params_filename=args.params_filename,
                      num_threads=args.threads, follow=args.follow, poll_s=args.poll,
                      warm_up=args.warm_up, canary=args.rule, share=args.share, max_bytes=int(args.max_mb * 2**20))
        service = Service(model, args.workers, args.batch, args.wait_ms / 1000, args.queue, int(args.max_mb * 2**20),
                          args.timeout)
        if model.why_alone:
            sys.stderr.write("anabranch serve: each request is answered alone: %s\n" % model.why_alone)
        asyncio.run(_serve(service, args))
    except Exception as e:
        return complain("serve", e)
    return 0
