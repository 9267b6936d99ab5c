"""Prefetch of batches to devices during training."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ... import _core
from ..framework.places import devices_of
from .batch_queue import BatchQueue


def ahead_on_devices(queue: BatchQueue, places: Sequence[Any]) -> BatchQueue:
    """A queue whose thread copies the batches of another queue to the devices in turn.

    Args:
        queue (BatchQueue): queue of lists of LoDTensors; it is closed with the new one.
        places (list of CPUPlace|list of CUDAPlace): places of one kind. For CPUPlaces, the queue itself is returned.

    Returns:
        BatchQueue: it keeps one batch per place ready, in addition to the one being copied.

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

    return BatchQueue(batches, len(devices), queue.name, source=queue)
