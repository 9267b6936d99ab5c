"""The HTTP side: aiohttp serves, prometheus_client counts."""
from __future__ import annotations

import asyncio
import importlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from ..fluid.errors import NotOffered
from . import tensors
from .batching import Batcher, Full
from .model import Model


def _is_installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


_PACKAGES = {"aiohttp": "aiohttp", "prometheus_client": "prometheus-client"}
_missing = [name for module, name in _PACKAGES.items() if not _is_installed(module)]
if _missing:
    raise NotOffered("anabranch serve needs %s: pip install 'anabranch[serve]'" % " and ".join(_missing))

import prometheus_client  # noqa: E402
from aiohttp import web  # noqa: E402
from prometheus_client.metrics_core import GaugeMetricFamily  # noqa: E402

_BUCKETS = (.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10)


class _Canary:
    """The figures of a version that answers a share of the requests, and of the model's version since then."""

    def __init__(self, follower):
        self._follower = follower

    def collect(self) -> Iterator[Any]:
        """The metrics, if there is such a version."""
        candidate = self._follower.candidate
        if candidate is None:
            return
        family, state = GaugeMetricFamily, candidate.state()
        version = family("anabranch_canary_version", "Versions that answer requests", labels=["of"])
        answers = family("anabranch_canary_answers", "Answers since there are two versions", labels=["of"])
        mean = family("anabranch_canary_mean", "Mean of an output in these answers", labels=["of", "output"])
        for of, one in (("canary", state), ("main", state["main"])):
            version.add_metric([of], one["version"])
            answers.add_metric([of], one["answers"])
            for output, value in one["mean"].items():
                mean.add_metric([of, output], float("nan") if value is None else value)
        yield from (version, answers, mean)


class _Counts:
    """The counters of /metrics."""

    def __init__(self, waiting, follower):
        self.registry = prometheus_client.CollectorRegistry()
        kept = {"registry": self.registry, "namespace": "anabranch"}
        self.requests = prometheus_client.Counter("requests", "Requests answered", ["code"], **kept)
        self.rows = prometheus_client.Counter("rows", "Rows that the model was run on", **kept)
        self.runs = prometheus_client.Counter("runs", "Runs of the model", **kept)
        self.run_seconds = prometheus_client.Histogram("run_seconds", "Of a run of the model", buckets=_BUCKETS, **kept)
        self.seconds = prometheus_client.Histogram("request_seconds", "Of a request", buckets=_BUCKETS, **kept)
        gauge = prometheus_client.Gauge("waiting", "Requests in the queue", **kept)
        gauge.set_function(waiting)
        if follower is not None:
            self._follow(follower, kept)

    def _follow(self, follower, kept):
        nan = float("nan")
        for name, text, value in (
                ("version", "Version of the model", lambda: follower.version),
                ("version_age_seconds", "Time since the version was trained",
                 lambda: nan if (age := follower.state()["age_s"]) is None else age),
                ("version_lag", "Versions in the folder that are newer", lambda: follower.state()["lag"]),
                ("version_apply_seconds", "Time that it took to apply the version", lambda: follower.apply_s),
                ("version_failures", "Attempts to apply a version that failed", lambda: follower.failures),
                ("version_problem", "1: a version cannot be applied", lambda: follower.state()["problem"] is not None)):
            prometheus_client.Gauge(name, text, **kept).set_function(value)
        self.registry.register(_Canary(follower))

    def ran(self, requests: int, rows: int, seconds: float) -> None:
        """Counts a run."""
        self.runs.inc()
        self.rows.inc(rows)
        self.run_seconds.observe(seconds)


class Service:
    """Serves a model at five endpoints: GET / (its inputs), /health, /metrics and /version; POST /predict.

    Args:
        model (Model): the model to serve.
        workers (int): number of threads that run the model.
        max_rows (int), wait_s (float), queue (int): as for :class:`~anabranch.serving.batching.Batcher`.
        max_bytes (int): largest size of a body.
        timeout_s (float): seconds after which a request that waits is answered with status 504.
    """

    def __init__(self, model: Model, workers: int, max_rows: int, wait_s: float, queue: int, max_bytes: int,
                 timeout_s: float) -> None:
        self.model, self._timeout_s, self._max_bytes = model, timeout_s, max_bytes
        predictors = [model.predictor] + [model.predictor.clone() for _ in range(workers - 1)]
        self._batcher: Any = None
        self._follower = model.predictor.follower
        self._counts = _Counts(lambda: self._batcher.waiting() if self._batcher else 0, self._follower)
        self._batcher = Batcher(predictors, 1 if model.why_alone else max_rows, wait_s, queue, self._counts.ran,
                                model.predictor._candidate)
        self._stopping = False

    def app(self) -> web.Application:
        """web.Application: to be run by aiohttp."""
        made = web.Application(client_max_size=self._max_bytes, middlewares=[self._counted])
        made.add_routes([web.get("/", self._describe), web.get("/health", self._health),
                         web.get("/metrics", self._metrics), web.get("/version", self._version),
                         web.post("/predict", self._predict)])
        return made

    def stop(self) -> None:
        """Rejects new requests, and answers those that wait."""
        self._stopping = True
        self._batcher.close()
        self.model.predictor.close()

    @web.middleware
    async def _counted(self, request: web.Request,
                       handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
        begun = time.monotonic()
        try:
            response = await handler(request)
        except web.HTTPException as e:
            response = _failed(e.status, e.reason)
        self._counts.requests.labels(str(response.status)).inc()
        if request.path == "/predict":
            self._counts.seconds.observe(time.monotonic() - begun)
        return response

    async def _describe(self, request: web.Request) -> web.Response:
        return web.json_response(self.model.described())

    async def _health(self, request: web.Request) -> web.Response:
        if self._stopping:
            return _failed(503, "stopping")
        if self._batcher.overdue():
            return _failed(503, "all workers run requests that have taken longer than %g s" % self._timeout_s)
        if self._follower is None:
            return web.json_response({"status": "ready"})
        return web.json_response({"status": "ready", "version": self._follower.version,
                                  "problem": self._follower.state()["problem"]})

    async def _version(self, request: web.Request) -> web.Response:
        if self._follower is None:
            return _failed(404, "the model does not follow a folder (--follow)")
        return web.json_response(self._follower.state())

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=prometheus_client.generate_latest(self._counts.registry),
                            headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST})

    async def _predict(self, request: web.Request) -> web.Response:
        kind = request.content_type if "Content-Type" in request.headers else "none"
        if kind not in (tensors.JSON, tensors.NPZ):  # a web page can send other types here without asking
            return _failed(415, "Content-Type must be %s or %s, got %s" % (tensors.JSON, tensors.NPZ, kind))
        answer_kind = tensors.NPZ if tensors.NPZ in request.headers.get("Accept", "") else tensors.JSON
        body = await request.read()
        try:
            inputs = tensors.read(body, kind, self.model.inputs, self._max_bytes, self.model.rows)
            key = request.headers.get("X-Anabranch-Key", "").encode() or body
            future = self._batcher.submit(inputs, self._timeout_s, key)
            outputs = await asyncio.wait_for(asyncio.wrap_future(future), self._timeout_s)
        except Full:
            return _failed(503, "too many requests wait", {"Retry-After": "1"})
        except (asyncio.TimeoutError, TimeoutError):
            return _failed(504, "no answer within %g s" % self._timeout_s)
        except Exception as e:
            return _failed(400, str(e))
        version = None if self._follower is None else outputs.version
        answer = tensors.write(list(zip(self.model.predictor.output_names, outputs)), answer_kind, version,
                               self.model.predictor.chosen_classes(outputs))
        headers = {} if version is None else {"X-Anabranch-Version": str(version)}
        return web.Response(body=answer, content_type=answer_kind, headers=headers)


def _failed(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=json.dumps({"error": text}), content_type=tensors.JSON, headers=headers)
