"""W19 in PyTorch: connectionist temporal classification over padded sequences, forward and backward. Sequences per second."""
import itertools

import numpy as np

import common
from w19_ctc import BATCH, MOST_LABELS, ROWS, labels

CONFIGS = ("eager omp2", "eager")


def prepare(torch, case, config):
    functional = torch.nn.functional
    logits = torch.nn.Parameter(torch.from_numpy(common.weight(0, (ROWS, BATCH * case["classes"])).reshape(
        ROWS, BATCH, case["classes"])))
    optimizer = torch.optim.SGD([logits], 0.1)
    lengths = torch.full((BATCH,), ROWS, dtype=torch.int64)

    def feed(seed):
        own = labels(case["classes"], seed)
        padded = np.zeros((BATCH, MOST_LABELS), "int64")
        for row, one in zip(padded, own):
            row[:len(one)] = one
        return torch.from_numpy(padded), torch.tensor([len(one) for one in own])

    feeds = itertools.cycle([feed(seed) for seed in range(8)])

    def step():
        label, label_lengths = next(feeds)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.ctc_loss(functional.log_softmax(logits, 2), label, lengths, label_lengths, reduction="none").mean()
        loss.backward()
        optimizer.step()
        return loss.item()
    return step, BATCH


if __name__ == "__main__":
    common.torch_main("W19", "sequences/s", [dict(form="dense", classes=classes) for classes in (30, 100)], prepare,
                      configs=CONFIGS)
