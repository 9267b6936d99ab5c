"""W16 in PyTorch: classifier of texts by gated recurrent units in both directions, batch 64, no padding. Tokens per second.

Steps are written out: nn.GRU resets the product of the state, not the state, and takes time that grows with the
square of the length in its backward pass over packed sequences.
"""
import common
import data
import torch_parts
from w16_gru import BATCH, EMBEDDING, VOCABULARY

CONFIGS = ("eager omp2", "eager")
WAYS = ("forwards", "backwards")


def parameters(torch, hidden):
    """In the order of the Fluid script, as are the numbers of their matrices."""
    own = torch_parts.Parameters(torch)
    own.matrix("embedding", VOCABULARY, EMBEDDING)
    for way in WAYS:
        own.matrix("fc " + way, EMBEDDING, 3 * hidden)
        own.zeros("fc_bias " + way, 3 * hidden)
        own.matrix("state " + way, hidden, 3 * hidden)
        own.matrix("bias " + way, 1, 3 * hidden)
    for way in WAYS:
        own.matrix("out " + way, hidden, 2)
    own.zeros("out_bias", 2)
    return own


def cell_of(torch, weight, hidden):
    """(sums, h) -> (h,); columns of the sums: update gate, reset gate, candidate. weight: [D, 2 D], then [D, D]."""
    of_gates, of_candidate = weight.view(-1).split([2 * hidden * hidden, hidden * hidden])
    of_gates, of_candidate = of_gates.view(hidden, -1), of_candidate.view(hidden, -1)

    def cell(x, h):
        update, reset = torch.addmm(x[:, :2 * hidden], h, of_gates).sigmoid().split(hidden, dim=1)
        candidate = torch.addmm(x[:, 2 * hidden:], reset * h, of_candidate).tanh()
        return (torch.lerp(h, candidate, update),)
    return cell


def prepare(torch, case, config):
    hidden = case["hidden"]
    own = parameters(torch, hidden)
    optimizer = torch.optim.Adagrad(own.values(), 0.002, eps=1e-6, fused=True)

    def loss_of(texts, labels):
        words, logits = torch.nn.functional.embedding(texts.words, own["embedding"]), own["out_bias"]
        for way in WAYS:
            x = own["fc_bias " + way] + own["bias " + way] + words @ own["fc " + way]
            gru = texts.steps(x, [torch.zeros(texts.count, hidden)], cell_of(torch, own["state " + way], hidden),
                              backwards=way == "backwards")
            logits = logits + texts.largest(gru) @ own["out " + way]
        return torch.nn.functional.cross_entropy(logits, labels)

    samples = data.batches(4, BATCH, lambda rng, n: data.reviews(rng, n, VOCABULARY))
    return torch_parts.text_job(torch, optimizer, loss_of, samples)


if __name__ == "__main__":
    common.torch_main("W16", "tokens/s", [dict(hidden=h) for h in (128, 512)], prepare, configs=CONFIGS)
