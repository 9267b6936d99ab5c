"""W6 in PyTorch: stacked LSTM over real lengths 20-1000, batch 128, no padding. Tokens per second.

Steps are written out, for nn.LSTM takes no sums of gates that were made before it and has no weights of the cell in its
gates; over packed sequences its backward pass takes time that grows with the square of their length, too.
"""
import common
import data
import torch_parts
from w06_imdb_stacked_lstm import EMBEDDING, HIDDEN, LAYERS, VOCABULARY

CONFIGS = ("eager omp2", "eager")
UNITS = HIDDEN // 4


def parameters(torch):
    """In the order of the Fluid script, as are the numbers of their matrices."""
    own = torch_parts.Parameters(torch)
    own.matrix("embedding", VOCABULARY, EMBEDDING)
    for layer in map(str, range(LAYERS)):
        own.matrix("fc" + layer, EMBEDDING if layer == "0" else HIDDEN, HIDDEN)
        if layer != "0":
            own.matrix("fc_lstm" + layer, UNITS, HIDDEN)
        own.zeros("fc_bias" + layer, HIDDEN)
        own.matrix("state" + layer, UNITS, HIDDEN)
        own.matrix("bias" + layer, 1, 7 * UNITS)
    own.matrix("out_fc", HIDDEN, 2)
    own.matrix("out_lstm", UNITS, 2)
    own.zeros("out_bias", 2)
    return own


def cell_of(torch, weight, bias):
    """(sums of gates, h, c) -> (h, c); columns of gates: candidate, input, forget, output."""
    of_input, of_forget, of_output = bias[0, 4 * UNITS:].split(UNITS)

    def cell(x, h, c):
        candidate, gate_in, forget, out = torch.addmm(x, h, weight).split(UNITS, dim=1)
        gate_in, forget = torch.addcmul(gate_in, c, of_input), torch.addcmul(forget, c, of_forget)
        c = gate_in.sigmoid() * candidate.tanh() + forget.sigmoid() * c
        return torch.addcmul(out, c, of_output).sigmoid() * c.tanh(), c
    return cell


def prepare(torch, case, config):
    own = parameters(torch)
    optimizer = torch.optim.Adagrad(own.values(), 0.002, eps=1e-6, fused=True)

    def recurrence(texts, fc, layer, backwards):
        bias = own["bias" + layer]
        return texts.steps(fc + bias[:, :4 * UNITS], 2 * [torch.zeros(texts.count, UNITS)],
                           cell_of(torch, own["state" + layer], bias), backwards)

    def loss_of(texts, labels):
        fc = own["fc_bias0"] + torch.nn.functional.embedding(texts.words, own["embedding"]) @ own["fc0"]
        lstm = recurrence(texts, fc, "0", False)
        for layer in map(str, range(1, LAYERS)):
            fc = own["fc_bias" + layer] + fc @ own["fc" + layer] + lstm @ own["fc_lstm" + layer]
            lstm = recurrence(texts, fc, layer, layer == "1")
        logits = own["out_bias"] + texts.largest(fc) @ own["out_fc"] + texts.largest(lstm) @ own["out_lstm"]
        return torch.nn.functional.cross_entropy(logits, labels)

    samples = data.batches(2, case["batch"], lambda rng, n: data.reviews(rng, n, VOCABULARY))
    return torch_parts.text_job(torch, optimizer, loss_of, samples)


if __name__ == "__main__":
    common.torch_main("W6", "tokens/s", [dict(batch=128)], prepare, configs=CONFIGS)
