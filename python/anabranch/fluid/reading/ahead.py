"""Batches that are brought to their devices while training goes on."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ... import _core
from ..framework.places import devices_of
from .batch_queue import BatchQueue


def ahead_on_devices(queue: BatchQueue, places: Sequence[Any]) -> BatchQueue:
    """A queue with the batches of another, brought to their devices by a thread of its own: one a device in turn.

    Args:
        queue (BatchQueue): of lists of LoDTensors; closed with the new one.
        places (list of CPUPlace|list of CUDAPlace): of one kind. For those of the CPU the queue itself is returned.

    Returns:
        BatchQueue: it keeps one batch a place ready, beside the one that is on its way.

    Raises:
        ValueError: there is no such device.
    """
    devices = devices_of(places)
    if not devices:
        return queue
    uploads = [_core.Uploads(device, "batches made ahead, of " + queue.name) for device in devices]

    def batches():
        for upload in itertools.cycle(uploads):
            batch = queue.get(reports=False)
            if batch is BatchQueue.END:
                return
            yield upload.bring(batch)

    return BatchQueue(batches, len(devices), queue.name, behind=queue)
