"""A JobSet for Kubernetes. It sets the environment variables from which role makers of servers and workers read their
roles."""
from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from .fluid.errors import InvalidValue

_PORT = 6174
_NAME = re.compile("[a-z]([-a-z0-9]{0,38}[a-z0-9])?")     # the hosts' names are longer, and 63 is their limit
_STATE = "/anabranch-state"

_HEAD = """apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
spec:
  network:
    enableDNSHostnames: true
    subdomain: {name}
  successPolicy:
    operator: All
    targetReplicatedJobs: [worker]
  failurePolicy:
    maxRestarts: 3
  replicatedJobs:
"""

_JOB = """  - name: {kind}
    template:
      spec:
        completionMode: Indexed
        parallelism: {count}
        completions: {count}
        backoffLimit: {restarts}
        template:
          spec:
            restartPolicy: {policy}
{volumes}            containers:
            - name: {kind}
              image: {image}
              command: {command}
{mounts}              env:
              - name: INDEX
                valueFrom:
                  fieldRef:
                    fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']
{env}"""


# A restarted container finds its files there; a pod on another machine does not.
_VOLUMES = """            volumes:
            - name: state
              emptyDir: {}
"""
_MOUNTS = """              volumeMounts:
              - name: state
                mountPath: %s
""" % _STATE


def _hosts(name: str, kind: str, count: int) -> list[str]:
    return ["%s-%s-0-%d.%s:%d" % (name, kind, i, name, _PORT) for i in range(count)]


def _variables(values: dict[str, str]) -> str:
    return "".join("              - name: %s\n                value: %s\n" % (k, json.dumps(v))
                   for k, v in values.items())


def manifest(name: str, image: str, servers: int, workers: int, command: Sequence[str],
             resume: str | None = None, restarts: int = 0, flags: Mapping[str, str] | None = None) -> str:
    """str: the JobSet as YAML, for ``kubectl apply -f -``.

    Args:
        name (str): name of the JobSet, which is part of the hosts' names.
        image (str): container image with the script.
        servers (int): number of servers.
        workers (int): number of workers.
        command (list of str): command of each process: Python, the script and its arguments.
        resume (str, optional): folder that servers start from.
        restarts (int): number of restarts of containers that fail. If it is above 0, servers keep their state. Default
            0.
        flags (dict, optional): environment of all processes, in addition to their roles.

    Raises:
        ValueError: ``name`` is not a valid host name.

    Examples:
        >>> text = manifest("ctr", "ctr:1", 2, 4, ["python", "train.py"])
        >>> "ctr-server-0-1.ctr:6174" in text, text.count("parallelism: 4")
        (True, 1)
    """
    if not _NAME.fullmatch(name):
        raise InvalidValue("--name must be a host name of at most 40 lowercase letters, digits and dashes, got %r"
                           % name)
    shared = {**(flags or {}), "PADDLE_TRAINERS_NUM": str(workers), "PADDLE_PORT": str(_PORT),
              "PADDLE_TRAINER_ENDPOINTS": ",".join(_hosts(name, "worker", workers))}
    if servers:
        shared["PADDLE_PSERVERS_IP_PORT_LIST"] = ",".join(_hosts(name, "server", servers))
    if resume:
        shared["ANABRANCH_RESUME_DIR"] = resume
    text = _HEAD.format(name=name)
    for kind, count, role in (("server", servers, "PSERVER"), ("worker", workers, "TRAINER")):
        if not count:
            continue
        me = "%s-%s-0-$(INDEX).%s" % (name, kind, name)
        values = dict(shared, TRAINING_ROLE=role, POD_IP=me, PADDLE_CURRENT_ENDPOINT="%s:%d" % (me, _PORT))
        keeps = kind == "server" and restarts > 0
        if kind == "worker":
            values["PADDLE_TRAINER_ID"] = "$(INDEX)"
        elif keeps:
            values["FLAGS_ps_state_dir"] = _STATE
        text += _JOB.format(kind=kind, count=count, image=json.dumps(image), env=_variables(values),
                            command=json.dumps(list(command)), restarts=restarts * count,
                            policy="OnFailure" if restarts else "Never", volumes=_VOLUMES if keeps else "",
                            mounts=_MOUNTS if keeps else "")
    return text
