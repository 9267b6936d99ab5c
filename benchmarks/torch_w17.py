"""W17 in PyTorch: decoder with attention. `train`: steps of the cell written out; `beam`: a loop around topk, 4 ways.
Target tokens per second, and words of the best ways.
"""
import itertools

import numpy as np

import common
import data
import torch_parts
from w17_attention import BATCH, BEAM, END, SOURCE, SOURCES, STEPS, VOCABULARY

CONFIGS = ("eager omp2", "eager", "compile omp2")


def parameters(torch, hidden):
    """In the order of the Fluid script, as are the numbers of their matrices."""
    own = torch_parts.Parameters(torch)
    own.matrix("keys", SOURCES, SOURCE * hidden)
    own.matrix("words", VOCABULARY, hidden)
    for gate in ("gate", "candidate"):
        own.matrix(gate, 3 * hidden, hidden)
        own.zeros(gate + "_bias", hidden)
    own.matrix("out", hidden, VOCABULARY)
    own.zeros("out_bias", VOCABULARY)
    return own


def cell_of(torch, own):
    def cell(word, state, keys):
        weights = torch.bmm(state[:, None], keys.transpose(1, 2)).softmax(dim=2)
        inputs = torch.cat([word, state, torch.bmm(weights, keys)[:, 0]], dim=1)
        gate = torch.addmm(own["gate_bias"], inputs, own["gate"]).sigmoid()
        return torch.lerp(state, torch.addmm(own["candidate_bias"], inputs, own["candidate"]).tanh(), gate)
    return cell


def look_up(torch, table, ids):
    return torch.nn.functional.embedding(ids, table)


def train(torch, own, cell, hidden):
    optimizer = torch.optim.Adam(own.values(), 0.001, fused=True)
    rng = np.random.RandomState(3)
    tokens = data.batches(8, BATCH, lambda rng, n: data.language(rng, (n, STEPS + 1), VOCABULARY))
    feeds = itertools.cycle([[torch.from_numpy(x) for x in (t[:, :-1].copy(), t[:, 1:].reshape(-1).copy(),
                                                            rng.randint(0, SOURCES, BATCH))] for t in tokens])

    def step():
        words, targets, source = next(feeds)
        optimizer.zero_grad(set_to_none=True)
        keys = look_up(torch, own["keys"], source).view(-1, SOURCE, hidden)
        state, states = keys.mean(dim=1), []
        for word in look_up(torch, own["words"], words).unbind(dim=1):
            state = cell(word, state, keys)
            states.append(state)
        rows = torch.stack(states, dim=1).view(-1, hidden)
        loss = torch.nn.functional.cross_entropy(torch.addmm(own["out_bias"], rows, own["out"]), targets)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def chosen(torch, words, scores, best, which):
    """The BEAM best of all ways on from `words` [BATCH, ways]: their words, scores and the ways they come from.

    A way that has ended goes on as itself alone.
    """
    ended, ways = (words == END)[:, :, None], words.shape[1]
    total = torch.where(ended, float("-inf"), scores[:, :, None] + best.log().view(BATCH, ways, BEAM))
    total[:, :, 0] = torch.where(ended[:, :, 0], scores, total[:, :, 0])
    which = torch.where(ended, END, which.view(BATCH, ways, BEAM)).view(BATCH, -1)
    scores, place = total.view(BATCH, -1).topk(BEAM, dim=1)
    return which.gather(1, place), scores, place // BEAM


def sentences(words, parents):
    """Of each way that is left: its words to the first END."""
    way = np.tile(np.arange(BEAM), (BATCH, 1))
    found = []
    for step, parent in zip(reversed(words), reversed(parents)):
        found.append(np.take_along_axis(step, way, 1))
        way = np.take_along_axis(parent, way, 1)
    path = np.stack([np.zeros_like(way)] + found[::-1], axis=2)
    return path[(path == END).cumsum(axis=2) - (path == END) == 0]


def beam(torch, own, cell, hidden):
    keys_of_all = look_up(torch, own["keys"], torch.arange(BATCH)).view(-1, SOURCE, hidden).detach()

    def step():
        words, scores = torch.zeros(BATCH, 1, dtype=torch.int64), torch.zeros(BATCH, 1)
        keys, state, path, parents = keys_of_all, keys_of_all.mean(dim=1), [], []
        for at in range(STEPS):
            state = cell(look_up(torch, own["words"], words.view(-1)), state, keys)
            best, which = torch.addmm(own["out_bias"], state, own["out"]).softmax(dim=1).topk(BEAM, dim=1)
            words, scores, parent = chosen(torch, words, scores, best, which)
            rows = (parent + torch.arange(BATCH)[:, None] * (state.shape[0] // BATCH)).view(-1)
            state = state[rows]
            if at == 0:                             # from here on one row for each beam of a source
                keys = keys[rows]
            path.append(words.numpy())
            parents.append(parent.numpy())
        return float(np.mean(sentences(path, parents)))
    return torch.no_grad()(step)


def prepare(torch, case, config):
    own = parameters(torch, case["hidden"])
    cell = cell_of(torch, own)
    cell = torch.compile(cell, dynamic=False) if "compile" in config.split() else cell
    return dict(train=train, beam=beam)[case["what"]](torch, own, cell, case["hidden"]), BATCH * STEPS


if __name__ == "__main__":
    common.torch_main("W17", "tokens/s", [dict(what=what, hidden=256) for what in ("train", "beam")], prepare,
                      configs=CONFIGS)
