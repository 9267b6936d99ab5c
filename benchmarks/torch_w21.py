"""W21 in PyTorch: ResNet-50 and MobileNet-v1 on images of 224 x 224, batch 16: trained, and applied. Images per second."""
import common
import data
import torch_parts
from w21_imagenet import CLASSES, SEPARABLE, STAGES, cases

CONFIGS = ("eager omp2 cl", "eager omp2", "compile omp2 cl", "eager cl")


def conv_bn(nn, inputs, outputs, size, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(outputs))


def resnet50(torch, stages=STAGES):
    nn = torch.nn

    class Bottleneck(nn.Module):
        def __init__(self, inputs, channels, stride):
            super().__init__()
            plain = stride == 1 and inputs == 4 * channels
            self.shortcut = nn.Identity() if plain else conv_bn(nn, inputs, 4 * channels, 1, stride)
            self.body = nn.Sequential(conv_bn(nn, inputs, channels, 1), nn.ReLU(),
                                      conv_bn(nn, channels, channels, 3, stride), nn.ReLU(),
                                      conv_bn(nn, channels, 4 * channels, 1))

        def forward(self, x):
            return nn.functional.relu(self.body(x) + self.shortcut(x))

    layers, width = [conv_bn(nn, 3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for channels, blocks, first_stride in stages:
        for block in range(blocks):
            layers.append(Bottleneck(width, channels, first_stride if block == 0 else 1))
            width = 4 * channels
    return layers, width


def mobilenet_v1(torch):
    nn = torch.nn
    layers, width = [conv_bn(nn, 3, 32, 3, 2), nn.ReLU()], 32
    for channels, stride in SEPARABLE:
        layers += [conv_bn(nn, width, width, 3, stride, groups=width), nn.ReLU(), conv_bn(nn, width, channels, 1), nn.ReLU()]
        width = channels
    return layers, width


def prepare(torch, case, config):
    nn, size = torch.nn, case["size"]
    layers, width = (resnet50 if case["model"] == "resnet50" else mobilenet_v1)(torch)
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))
    layout = torch.channels_last if "cl" in config.split() else torch.contiguous_format
    model = torch_parts.set_weights(torch, model).to(memory_format=layout)
    samples = data.batches(2, case["batch"], lambda rng, n: data.classes(rng, n, (3, size, size)))
    batches = [(x, y[:, 0]) for x, y in samples]
    loss_of = lambda x, y: nn.functional.cross_entropy(model(x.contiguous(memory_format=layout)), y)
    if case["what"] == "infer":
        model.eval()
        return torch_parts.applied(torch, config, loss_of, batches), case["batch"]
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
    return torch_parts.job(torch, config, optimizer, loss_of, batches), case["batch"]


if __name__ == "__main__":
    common.torch_main("W21", "images/s", cases(), prepare, configs=CONFIGS, bf16=True)
