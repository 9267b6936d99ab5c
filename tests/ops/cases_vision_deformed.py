"""Cases of convolutions whose windows are pulled out of shape."""
import numpy as np
from op_case import case, real


def between(image, y, x):
    """The values at (y, x) of planes [C, H, W], made of four pixels; 0 outside."""
    value = np.zeros(len(image))
    for row in (int(np.floor(y)), int(np.floor(y)) + 1):
        for column in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
                value += image[:, row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return value


def deformed(i, a):
    x, filters, groups, parts = i["Input"], i["Filter"], a.get("groups", 1), a.get("deformable_groups", 1)
    stride, padding, dilation = (a.get(k, [n, n]) for k, n in (("strides", 1), ("paddings", 0), ("dilations", 1)))
    rows, columns = i["Offset"].shape[2:]
    kernel, each = filters.shape[2:], x.shape[1] // parts
    taps = kernel[0] * kernel[1]
    read = np.zeros((len(x), x.shape[1], taps, rows, columns))
    for n, part, k, p, q in np.ndindex(len(x), parts, taps, rows, columns):
        move = i["Offset"][n, 2 * (part * taps + k):2 * (part * taps + k) + 2, p, q]
        y = p * stride[0] - padding[0] + k // kernel[1] * dilation[0] + move[0]
        z = q * stride[1] - padding[1] + k % kernel[1] * dilation[1] + move[1]
        mask = i["Mask"][n, part * taps + k, p, q] if "Mask" in i else 1
        read[n, part * each:(part + 1) * each, k, p, q] = between(x[n, part * each:(part + 1) * each], y, z) * mask
    read = read.reshape(len(x), groups, -1, rows * columns)
    weights = filters.reshape(groups, len(filters) // groups, -1)
    return np.einsum("gok,ngkp->ngop", weights, read).reshape(len(x), len(filters), rows, columns)


def scene(n=2, channels=4, size=(5, 6), made=4, kernel=(3, 2), groups=1, parts=1, out=(5, 5), mask=True):
    """Offsets that keep away from whole pixels, where the slope jumps."""
    taps = kernel[0] * kernel[1] * parts
    offset = np.floor(real(n, 2 * taps, *out, lo=-2, hi=2)) + real(n, 2 * taps, *out, lo=0.1, hi=0.9)
    made = {"Input": real(n, channels, *size), "Offset": offset, "Mask": real(n, taps, *out, lo=0.1),
            "Filter": real(made, channels // groups, *kernel)}
    return made if mask else {k: v for k, v in made.items() if k != "Mask"}


STEPS = {"strides": [2, 1], "paddings": [1, 2], "dilations": [1, 2], "groups": 2, "deformable_groups": 2, "im2col_step": 1}
for op, masked in (("deformable_conv", True), ("deformable_conv_v1", False)):
    case(op, scene(kernel=(3, 2), out=(5, 5), mask=masked), {"paddings": [1, 0], "im2col_step": 2}, deformed, rtol=1e-5)
    case(op, scene(kernel=(3, 2), out=(3, 8), groups=2, parts=2, mask=masked), STEPS, deformed, rtol=1e-5)
    case(op, scene(n=1, channels=2, made=3, kernel=(1, 1), out=(5, 6), mask=masked), {"im2col_step": 1}, deformed, rtol=1e-5, name="one_tap",
         large=scene(n=2, channels=8, size=(20, 21), made=12, kernel=(1, 1), out=(20, 21), mask=masked))
