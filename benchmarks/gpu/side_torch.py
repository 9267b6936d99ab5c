"""G1-G4 in PyTorch, by torch.compile, its mode "max-autotune" where no other is given; bfloat16 by autocast, where the
others have mixed precision."""
import itertools

import cases
import torch
import torch_parts
from torch import nn

MIXED = ("G1", "G4")


def resnet(case):
    import torch_w21
    layers, width = torch_w21.resnet50(torch, torch_w21.STAGES[:case["stages"]])
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, cases.CLASSES))
    model = model.to(memory_format=torch.channels_last)
    return model, lambda x, y: model(x.contiguous(memory_format=torch.channels_last)), dict(kind="sgd", rate=0.01)


def ctr(case):
    table = nn.Embedding(case["rows"], case["width"], sparse=True)
    sizes = [cases.data.SLOTS * case["width"] + cases.data.DENSE, 400, 400, 400]
    layers = [part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.ReLU())]
    top = nn.Sequential(*layers, nn.Linear(400, 2))
    model = nn.ModuleDict(dict(table=table, top=top))
    return model, lambda dense, ids, y: top(torch.cat([table(ids).flatten(1), dense], 1)), dict(kind="sparse", rate=1e-3)


def mlp(case):
    model = nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))
    return model, lambda x, y: model(x), dict(kind="adam", rate=1e-3)


def bert(case):
    w07 = cases.encoder(case)
    width = w07.WIDTH
    layer = nn.TransformerEncoderLayer(width, w07.HEADS, 4 * width, w07.DROPOUT, "gelu", batch_first=True)
    layer.dropout.p = 0.0  # after the activation, where the other engines have none
    parts = nn.ModuleDict(dict(
        words=nn.Embedding(w07.VOCABULARY, width), positions=nn.Embedding(w07.POSITIONS, width),
        start=nn.Sequential(nn.LayerNorm(width), nn.Dropout(w07.DROPOUT)),
        encoder=nn.TransformerEncoder(layer, w07.LAYERS),
        out=nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, w07.VOCABULARY))))

    def logits(words, places, answers):
        x = parts["encoder"](parts["start"](parts["words"](words) + parts["positions"].weight))
        return parts["out"](x.reshape(-1, width)[places])
    return parts, logits, dict(kind="adam", rate=1e-4)


MODELS = {"G1": resnet, "G2": ctr, "G3a": mlp, "G4": bert}


def optimizers(model, kind, rate, fused):
    if kind == "sgd":
        return [torch.optim.SGD(model.parameters(), rate, momentum=0.9, fused=fused)]
    if kind == "sparse":
        return [torch.optim.SparseAdam(model["table"].parameters(), rate),
                torch.optim.Adam(model["top"].parameters(), rate, fused=fused)]
    return [torch.optim.Adam(model.parameters(), rate, fused=fused)]


def chain(case, device, compiled):
    x = torch.ones(1, device=device)

    def run():
        y = x
        for _ in range(case["ops"] // 2):
            y = y * 0.5
            y = y + x
        return y
    fast = compiled(run)

    def steps(n):
        with torch.inference_mode():
            for _ in range(n):
                y = fast()
        return y.item()
    return steps


def prepare(case, options):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    compiled = (lambda fn: fn) if options.mode == "eager" else lambda fn: torch.compile(fn, mode=options.mode)
    if case["name"] == "G3b":
        return chain(case, device, compiled)
    if case["name"] not in MODELS:
        raise NotImplementedError("%s is not written in PyTorch" % case["name"])
    torch.set_float32_matmul_precision("high")  # TF32, as on the other sides
    torch.manual_seed(1)
    model, logits, how = MODELS[case["name"]](case)
    torch_parts.set_weights(torch, model).to(device)
    all_optimizers = optimizers(model, fused=device == "cuda", **how)
    mixed = case["name"] in MIXED and not options.float32
    loss_of = compiled(lambda *sample: nn.functional.cross_entropy(logits(*sample), sample[-1].flatten()))
    samples = [[torch.from_numpy(part) for part in sample] for sample in cases.batches(case)]
    if device == "cuda":
        samples = [[part.pin_memory() for part in sample] for sample in samples]
    endless = itertools.cycle(samples)

    def steps(n):
        for _ in range(n):
            sample = [part.to(device, non_blocking=True) for part in next(endless)]
            for optimizer in all_optimizers:
                optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, torch.bfloat16, enabled=mixed):
                loss = loss_of(*sample)
            loss.backward()
            for optimizer in all_optimizers:
                optimizer.step()
        return loss.item()
    return steps
