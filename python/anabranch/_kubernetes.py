"""A JobSet for Kubernetes: servers and workers with the environment by which role makers know them."""
from __future__ import annotations

import json
from collections.abc import Sequence

_PORT = 6174

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
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: {kind}
              image: {image}
              command: {command}
              env:
              - name: INDEX
                valueFrom:
                  fieldRef:
                    fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']
{env}"""


def _hosts(name: str, kind: str, count: int) -> list[str]:
    return ["%s-%s-0-%d.%s:%d" % (name, kind, i, name, _PORT) for i in range(count)]


def _variables(values: dict[str, str]) -> str:
    return "".join("              - name: %s\n                value: %s\n" % (k, json.dumps(v))
                   for k, v in values.items())


def manifest(name: str, image: str, servers: int, workers: int, command: Sequence[str],
             resume: str | None = None) -> str:
    """str: the JobSet as YAML, for ``kubectl apply -f -``.

    Args:
        name (str): of the JobSet; part of the hosts' names.
        image (str): container image with the script.
        servers (int): how many.
        workers (int): how many.
        command (list of str): the script with its arguments.
        resume (str, optional): folder that servers start from.

    Examples:
        >>> text = manifest("ctr", "ctr:1", 2, 4, ["train.py"])
        >>> "ctr-server-0-1.ctr:6174" in text, text.count("parallelism: 4")
        (True, 1)
    """
    shared = {"PADDLE_TRAINERS_NUM": str(workers), "PADDLE_PORT": str(_PORT),
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
        if kind == "worker":
            values["PADDLE_TRAINER_ID"] = "$(INDEX)"
        text += _JOB.format(kind=kind, count=count, image=json.dumps(image), env=_variables(values),
                            command=json.dumps(["python", "-u", *command]))
    return text
