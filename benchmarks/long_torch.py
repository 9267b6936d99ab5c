"""The nets of long_nets.py in PyTorch."""
import long_nets
import torch_parts


class Torch:
    """step(): one batch of training; numbers too small for a normal float count as zero."""

    def __init__(self, torch, name, _):
        torch.set_flush_denormal(True)
        torch.manual_seed(1)
        self.torch, self.nn, self.last = torch, torch.nn, name == "channels last"
        feeds = long_nets.batches(name)
        forward, self.model = (self.convolutions(feeds[0]["x"], long_nets.NORMS[name]["layers"])
                               if name in long_nets.NORMS else self.attention() if name != "dead units" else self.dead())
        torch_parts.set_weights(torch, self.model)
        if name == "dead units":
            with torch.no_grad():
                self.model[0].bias.copy_(torch.from_numpy(long_nets.dead_bias()))
        self.optimizer, self.number = self.updates(name), 0
        self.step = torch_parts.training_step(torch, "eager", self.optimizer, lambda x, label, *mask: torch.nn.functional.
                                              cross_entropy(forward(x, *mask), label[:, 0]))
        self.feeds = [[torch.from_numpy(feed[k]) for k in ("x", "label", "mask") if k in feed] for feed in feeds]
        if self.last:
            for feed in self.feeds:     # [n, h, w, c] in memory, as torch's channels_last
                feed[0] = feed[0].permute(0, 3, 1, 2)

    def updates(self, name):
        optim = self.torch.optim
        if name == "masked attention":
            return optim.Adam(self.model.parameters(), 1e-3)
        if name == "dead units":
            fading = [self.model[2].weight]
            return optim.SGD([dict(params=fading, weight_decay=long_nets.DECAY),
                              dict(params=[p for p in self.model.parameters() if p is not fading[0]])], 0.1)
        return optim.SGD(self.model.parameters(), 0.01, momentum=0.9)

    def convolutions(self, x, layers):
        nn, calls, made = self.nn, [], []
        flat, width = x.shape[2] == 1, x.shape[-1 if self.last else 1]
        for kind, *more in layers:
            if kind == "conv":
                filters, window, stride = more
                make = nn.Conv1d if flat else nn.Conv2d
                made.append(make(width, filters, window, stride, window // 2, bias=False))
                width = filters
            elif kind == "norm":
                made.append((nn.BatchNorm1d if flat else nn.BatchNorm2d)(width, momentum=0.1))
            else:
                calls.append((kind, more))
                continue
            calls.append((made[-1], more))
        made.append(nn.Linear(width, long_nets.CLASSES))
        relu, model = self.torch.relu_, nn.ModuleList(made)
        if self.last:
            model = model.to(memory_format=self.torch.channels_last)

        def forward(x):
            kept, x = None, x[:, :, 0] if flat else x
            for call, more in calls:
                if call == "keep":
                    kept = x
                elif call == "shortcut":
                    x = relu(x + kept)
                elif call == "pool":
                    x = x.mean(2) if flat else x.mean((2, 3))
                else:
                    x = call(x)
                    x = relu(x) if more == ["relu"] else x
            return made[-1](x)
        return forward, model

    def attention(self):
        torch, nn, width, heads = self.torch, self.nn, long_nets.WIDTH, long_nets.HEADS
        model = nn.ModuleList([nn.Embedding(long_nets.WORDS, width)] + [nn.Linear(width, width) for _ in range(4)]
                              + [nn.Linear(width, long_nets.CLASSES)])

        def forward(x, mask):
            words = model[0](x)
            n, length = x.shape
            q, k, v = (model[i](words).view(n, length, heads, -1).transpose(1, 2) for i in (1, 2, 3))
            weights = torch.softmax(q @ k.transpose(2, 3) * (width // heads) ** -0.5 + mask, 3)
            seen = (weights @ v).transpose(1, 2).reshape(n, length, width)
            return model[5](torch.relu(model[4](seen)).mean(1))
        return forward, model

    def dead(self):
        nn, units = self.nn, long_nets.DEAD
        model = nn.Sequential(nn.Linear(32, 2 * units), nn.ReLU(), nn.Linear(2 * units, units), nn.ReLU(),
                              nn.Linear(units, long_nets.CLASSES))
        return model, model

    def run(self):
        feed = self.feeds[self.number % len(self.feeds)]
        self.number += 1
        return self.step(*feed).item()
