"""``anabranch serve``: answers equal the predictor's, requests are joined, what is wrong is refused and named."""
import concurrent.futures
import http.client
import io
import json
import os
import shlex
import signal
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import pytest
from repository import ROOT
from serve_process import Server

import anabranch
import anabranch.fluid as fluid

pytest.importorskip("aiohttp")

from anabranch.serving import command, tensors  # noqa: E402
from anabranch.serving.batching import Batcher, Full  # noqa: E402
from anabranch.serving.model import Model  # noqa: E402


def saved(folder, kind="rows"):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        if kind == "sequences":
            x = fluid.data("x", [None, 1], "int64", lod_level=1)
            out = [fluid.layers.sequence_pool(fluid.embedding(x, [50, 3]), "sum"), fluid.embedding(x, [50, 2])]
        else:
            x = fluid.data("x", [None, 4])
            hidden = fluid.layers.fc(x, 8, act="tanh")
            out = [fluid.layers.fc(hidden, 3, act="softmax")]
            if kind == "mixed":      # each row depends on all others
                out = [fluid.layers.softmax(hidden, axis=0)]
            if kind == "mean":
                out.append(fluid.layers.mean(hidden))
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(folder), ["x"], out, exe, main)
    return str(folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = saved(tmp_path_factory.mktemp("served"))
    with Server(folder, "--max-mb", "0.1", "--workers", "2", "--wait-ms", "5") as made:
        made.folder = folder
        yield made


def rows(count, seed=0):
    return np.random.RandomState(seed).normal(size=(count, 4)).astype("float32")


def test_json_answers_are_those_of_the_predictor(server):
    predictor, x = anabranch.Predictor(server.folder), rows(5)
    found = server.predict(x)
    assert list(found) == predictor.output_names
    np.testing.assert_allclose(found[predictor.output_names[0]], predictor.run([x])[0], rtol=1e-6)


def test_npz_keeps_every_bit(server):
    file, x = io.BytesIO(), rows(3, 1)
    np.savez(file, x=x)
    status, headers, body = server.ask(body=file.getvalue(), kind="application/x-npz", accept="application/x-npz")
    assert (status, headers["Content-Type"]) == (200, "application/x-npz")
    predictor = anabranch.Predictor(server.folder)
    with np.load(io.BytesIO(body)) as answer:
        assert answer[predictor.output_names[0]].tobytes() == predictor.run([x])[0].tobytes()


def test_json_holds_null_for_what_it_has_no_number_for():
    values = np.array([[0.5, np.nan], [-np.inf, 2.0]], "float32")
    body = tensors.write([("y", values), ("n", np.array([3]))], tensors.JSON)
    assert json.loads(body, parse_constant=pytest.fail) == {"outputs": {"y": [[0.5, None], [None, 2.0]], "n": [3]}}


def test_requests_that_come_together_are_joined(server):
    before = server.metric("runs_total"), server.metric("rows_total")
    predictor = anabranch.Predictor(server.folder)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        given = [rows(1 + k % 3, k) for k in range(64)]
        for x, found in zip(given, pool.map(server.predict, given)):
            np.testing.assert_allclose(found[predictor.output_names[0]], predictor.run([x])[0], rtol=1e-5)
    assert server.metric("rows_total") - before[1] == sum(len(x) for x in given)
    assert server.metric("runs_total") - before[0] < len(given)


def test_it_says_what_it_takes_and_that_it_is_ready(server):
    described = json.loads(server.ask("/")[2])
    assert described["inputs"] == [{"name": "x", "shape": [-1, 4], "dtype": "float32", "lod_level": 0}]
    assert described["batching"] == "on"
    assert json.loads(server.ask("/health")[2]) == {"status": "ready"}
    assert server.metric('requests_total{code="200"}') > 0


@pytest.mark.parametrize("body,error", [
    (b"{", "must be JSON"), (b"[]", "must be JSON"), (b'{"inputs": 3}', "inputs must be an object"),
    (b'{"inputs": {"y": [[1]]}}', "inputs must be x, got y"), (b'{"inputs": {"x": [[1, 2]]}}', "shape must be"),
    (b'{"inputs": {"x": [[1, 2, 3, 4], [1]]}}', "the same shape"), (b'{"inputs": {"x": "a"}}', "float32, got text"),
    (b'{"inputs": {"x": [1, 2, 3, 4]}}', "shape must be"),
    (b'{"inputs": {"x": {"data": [[1, 2, 3, 4]]}}}', "must have data"),
    (b'{"inputs": {"x": ' + b"[" * 3000 + b"]" * 3000 + b"}}", "")])
def test_bad_bodies_are_refused_and_named(server, body, error):
    status, _, answer = server.ask(body=body)
    assert status == 400 and error in json.loads(answer)["error"]
    assert server.predict(rows(1))


@pytest.mark.parametrize("body,kind,status", [
    (b"x" * 200_000, "application/json", 413), (b"PK\3\4junk", "application/x-npz", 400)])
def test_other_bodies_are_refused(server, body, kind, status):
    found, _, answer = server.ask(body=body, kind=kind)
    assert found == status and json.loads(answer)["error"]


@pytest.mark.parametrize("kind", [None, "", "text/html", "text/plain", "application/octet-stream",
                                  "application/x-www-form-urlencoded", "multipart/form-data"])
def test_only_requests_that_name_their_type_are_read(server, kind):
    """A page in a browser may send these types to another server without asking it; it must ask for JSON."""
    host = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc, timeout=30)
    body = json.dumps({"inputs": {"x": rows(1).tolist()}})
    for named, status in ((kind, 415), ("application/json; charset=utf-8", 200)):
        host.putrequest("POST", "/predict")
        if named is not None:
            host.putheader("Content-Type", named)
        host.putheader("Content-Length", str(len(body)))
        host.endheaders(body.encode())
        answer = host.getresponse()
        assert answer.status == status, answer.read()
        assert answer.read()


def test_the_call_that_the_page_shows_is_read(server):
    with open(os.path.join(ROOT, "docs", "do", "serve.md")) as page:
        text = page.read().replace("\\\n", " ")
    call = shlex.split(next(line for line in text.splitlines() if line.strip().startswith("curl")))
    headers = dict(call[k + 1].split(": ") for k, word in enumerate(call) if word == "-H")
    kind = headers.get("Content-Type", "application/x-www-form-urlencoded")  # what curl sends by itself
    status, _, answer = server.ask(body=call[call.index("-d") + 1].encode(), kind=kind)
    assert status == 400 and "shape must be [-1, 4], got [1, 3]" in json.loads(answer)["error"]


def test_other_addresses(server):
    assert server.ask("/nothing")[0] == 404 and server.ask("/predict")[0] == 405


def test_an_object_in_npz_is_not_unpickled(server):
    file = io.BytesIO()
    np.savez(file, x=np.array([print], dtype=object))
    assert server.ask(body=file.getvalue(), kind="application/x-npz")[0] == 400


def test_arrays_that_are_small_only_when_packed_are_refused(server):
    file = io.BytesIO()
    np.savez_compressed(file, x=np.zeros((100_000, 4), "float32"))
    assert len(file.getvalue()) < 20_000
    status, _, answer = server.ask(body=file.getvalue(), kind="application/x-npz")
    assert status == 400 and "must take at most" in json.loads(answer)["error"]


def test_sequences_are_answered_one_at_a_time(tmp_path):
    folder = saved(tmp_path, "sequences")
    with Server(folder) as server:
        ids = [[3], [4], [7]]
        body = {"inputs": {"x": {"data": ids, "recursive_sequence_lengths": [[1, 2]]}}}
        status, _, answer = server.ask(body=json.dumps(body).encode())
        assert status == 200, answer
        pooled, looked = json.loads(answer)["outputs"].values()
        predictor = anabranch.Predictor(folder)
        expected = predictor.run([fluid.create_lod_tensor(np.array(ids, "int64"), [[1, 2]], fluid.CPUPlace())])
        np.testing.assert_allclose(pooled, np.asarray(expected[0]), rtol=1e-6)
        assert looked["recursive_sequence_lengths"] == [[1, 2]]
        assert "x has sequences" in json.loads(server.ask("/")[2])["batching"]


@pytest.mark.parametrize("kind,why", [("mixed", "depend on the other rows"), ("mean", "not that of the batch")])
def test_rows_that_are_not_independent_are_not_joined(tmp_path, kind, why):
    assert why in Model(saved(tmp_path, kind)).why_alone


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_answers_what_waits_and_ends_well(tmp_path, number):
    with Server(saved(tmp_path), "--wait-ms", "700") as server:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(server.predict, rows(1, k)) for k in range(4)]
            time.sleep(0.3)                      # they wait for others to join them
            server.child.send_signal(number)
            assert all(answer.result() for answer in answers)
        assert server.child.wait(20) == 0


class Slow:
    """A predictor that waits until it is told."""

    version = 0

    def __init__(self):
        self.go, self.runs = threading.Event(), []

    def run(self, inputs):
        self.go.wait(10)
        self.runs.append(len(inputs[0]))
        if np.isnan(inputs[0]).any():
            raise ValueError("not a number")
        return [inputs[0] * 2]


def test_a_full_queue_says_so_and_late_requests_are_not_run():
    slow = Slow()
    batcher = Batcher([slow], max_rows=1, wait_s=0, queue=2)
    first = batcher.submit([np.ones((1, 1))], 10)
    while batcher.waiting():
        time.sleep(0.001)
    late, good = batcher.submit([np.ones((1, 1))], 0.0), batcher.submit([np.ones((1, 1))], 10)
    with pytest.raises(Full):
        batcher.submit([np.ones((1, 1))], 10)
    slow.go.set()
    assert first.result(5)[0] == 2 and good.result(5)[0] == 2
    with pytest.raises(TimeoutError):
        late.result(5)
    assert len(slow.runs) == 2
    batcher.close()
    with pytest.raises(Full):
        batcher.submit([np.ones((1, 1))], 10)


def test_workers_whose_requests_are_over_time_are_told():
    slow = Slow()
    batcher = Batcher([slow, slow], max_rows=1, wait_s=0, queue=9)
    first = batcher.submit([np.ones((1, 1))], 0.05)
    time.sleep(0.1)
    assert not batcher.overdue()
    second = batcher.submit([np.ones((1, 1))], 0.05)
    time.sleep(0.1)
    assert batcher.overdue()
    slow.go.set()
    assert first.result(5)[0] == 2 and second.result(5)[0] == 2
    batcher.close()
    assert not batcher.overdue()


def test_one_bad_request_does_not_spoil_those_joined_with_it():
    slow = Slow()
    batcher = Batcher([slow], max_rows=8, wait_s=0.5)
    slow.go.set()
    asked = [batcher.submit([np.full((2, 1), value)], 10) for value in (1.0, np.nan, 3.0)]
    assert asked[0].result(5)[0].tolist() == [[2.0], [2.0]] and asked[2].result(5)[0].tolist() == [[6.0], [6.0]]
    with pytest.raises(ValueError, match="not a number"):
        asked[1].result(5)
    assert slow.runs[0] == 6
    batcher.close()


def test_bad_arguments(tmp_path, capsys):
    with pytest.raises(SystemExit):
        command.main([str(tmp_path), "--workers", "0"])
    assert "--workers must be at least 1, got 0" in capsys.readouterr().err
    assert command.main([str(tmp_path / "none")]) == 1
    assert "none" in capsys.readouterr().err


@pytest.mark.slow(12)
def test_two_hundred_connections(tmp_path):
    """200 connections for ANABRANCH_LOAD_S seconds: no error, and memory that does not grow."""
    import asyncio

    import aiohttp

    def resident(pid):
        with open("/proc/%d/statm" % pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    async def client(session, url, until, seconds, codes):
        body = json.dumps({"inputs": {"x": rows(1).tolist()}})
        while time.monotonic() < until:
            begun = time.monotonic()
            async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
                await answer.read()
                codes.append(answer.status)
            seconds.append(time.monotonic() - begun)

    async def load(url, for_s):
        seconds, codes = [], []
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as session:
            until = time.monotonic() + for_s
            await asyncio.gather(*(client(session, url, until, seconds, codes) for _ in range(200)))
        return seconds, codes

    with Server(saved(tmp_path), "--wait-ms", "1") as server:
        asyncio.run(load(server.url + "/predict", 3))
        before = resident(server.child.pid)
        seconds, codes = asyncio.run(load(server.url + "/predict", float(os.environ.get("ANABRANCH_LOAD_S", "8"))))
        after = resident(server.child.pid)
    print("%d requests, p50 %.1f ms, p99 %.1f ms, resident %.0f -> %.0f MB" % (
        len(codes), 1e3 * np.percentile(seconds, 50), 1e3 * np.percentile(seconds, 99), before, after))
    assert set(codes) == {200} and after < before + 7
