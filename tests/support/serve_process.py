"""A process of ``anabranch serve``."""
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np


class Server:
    """A process that serves; ended at the end."""

    def __init__(self, folder, *options):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
        self.child = subprocess.Popen([sys.executable, "-W", "ignore", "-m", "anabranch", "serve", folder, "--port",
                                       "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env=environment)
        line = self.child.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + self.child.communicate(timeout=20)[1]
        self.url = found.group()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.child.kill()
        self.child.communicate()

    def ask(self, path="/predict", body=None, kind="application/json", accept="application/json", key=None):
        """(status, headers, bytes)."""
        request = urllib.request.Request(self.url + path, data=body, headers={"Accept": accept})
        if key is not None:
            request.add_header("X-Anabranch-Key", key)
        if body is not None:
            request.add_header("Content-Type", kind)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read()

    def predict(self, x):
        status, _, body = self.ask(body=json.dumps({"inputs": {"x": x.tolist()}}).encode())
        assert status == 200, body
        return {name: np.array(value, "float32") for name, value in json.loads(body)["outputs"].items()}

    def metric(self, name):
        text = self.ask("/metrics")[2].decode()
        return float(re.search(r"^anabranch_%s ([0-9.e+-]+)$" % re.escape(name), text, re.M).group(1))
