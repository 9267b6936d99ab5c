"""The command ``anabranch serve``."""
from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: of ``anabranch serve``."""
    made = argparse.ArgumentParser(
        prog="anabranch serve", formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Answers POST /predict with what a saved model makes of JSON or .npz. GET / says what it takes; "
                    "/health and /metrics are for those who watch. It knows no users and no encryption.")
    made.add_argument("folder", help="of fluid.io.save_inference_model")
    made.add_argument("--host", default="127.0.0.1", help="address to listen at; 0.0.0.0: for other machines, too")
    made.add_argument("--port", type=int, default=8080, help="0: a free one is chosen")
    made.add_argument("--workers", type=int, default=1, help="threads that run the model at a time")
    made.add_argument("--threads", type=int, default=1, help="of the operators of one run; 0: all cores")
    made.add_argument("--batch", type=int, default=64, help="rows that one run answers; 1: each request alone")
    made.add_argument("--wait-ms", type=float, default=1.0, help="for how long a request waits for others to join it")
    made.add_argument("--queue", type=int, default=1000, help="requests that may wait; others are answered 503")
    made.add_argument("--max-mb", type=float, default=16.0, help="a larger body is answered 413")
    made.add_argument("--timeout", type=float, default=30.0, help="seconds after which a request is answered 504")
    made.add_argument("--model-filename", help="the program in the folder")
    made.add_argument("--params-filename", help="the one file of all parameters")
    return made


def _check(made, args):
    for name, least in (("workers", 1), ("threads", 0), ("batch", 1), ("wait_ms", 0), ("queue", 1), ("port", 0)):
        if getattr(args, name) < least:
            made.error("--%s must be at least %d, got %g" % (name.replace("_", "-"), least, getattr(args, name)))
    if args.max_mb <= 0 or args.timeout <= 0:
        made.error("--max-mb and --timeout must be above 0")


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
    await site.stop()                                     # nobody new; those that are connected are answered
    await asyncio.get_running_loop().run_in_executor(None, service.stop)
    await runner.cleanup()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch serve``.

    Args:
        argv (list of str, optional): arguments; those of the process by default.

    Returns:
        int: 0 after SIGTERM or Ctrl-C, when all requests are answered; 1 when the model or the address cannot be had.
    """
    made = parser()
    args = made.parse_args(argv)
    _check(made, args)
    try:
        from .model import Model
        from .server import Service
        model = Model(args.folder, model_filename=args.model_filename, params_filename=args.params_filename,
                      num_threads=args.threads)
        service = Service(model, args.workers, args.batch, args.wait_ms / 1000, args.queue, int(args.max_mb * 2**20),
                          args.timeout)
        if model.why_alone:
            sys.stderr.write("anabranch serve: each request is answered alone: %s\n" % model.why_alone)
        asyncio.run(_serve(service, args))
    except Exception as e:
        sys.stderr.write("anabranch serve: %s\n" % e)
        return 1
    return 0
