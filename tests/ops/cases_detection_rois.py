"""Cases of ops that pool regions of interest."""
import numpy as np
from cases_detection import single
from op_case import Seq, apart, big, case, real


def regions(*lengths, low=-3.0, high=16.0):
    """Boxes of pixels, some of them beyond an image of 12 x 14 pixels, with a sequence for each image."""
    corner = real(sum(lengths), 2, lo=low, hi=high / 2)
    return Seq(np.concatenate([corner, corner + real(sum(lengths), 2, lo=0.3, hi=high / 2)], 1), [list(lengths)])


def images(i):
    """The image of each region."""
    rois, counts = i["ROIs"], i.get("BatchRoINums")
    if "RoisLod" in i:
        counts = np.diff(i["RoisLod"])
    if counts is None:
        counts = rois.lengths[-1]
    return np.repeat(np.arange(len(counts)), counts)


def boxes_of(i):
    return i["ROIs"].array if isinstance(i["ROIs"], Seq) else i["ROIs"]


def pooled(i, a, bin_of, channels=None):
    """Out[r, c, row, column] = bin_of(image [C, H, W], box, row, column) [C]."""
    shape = (a["pooled_height"], a["pooled_width"])
    assert np.prod(shape) < 10000, "too many bins for a reference"
    out = np.zeros((len(boxes_of(i)), channels or i["X"].shape[1], *shape))
    for r, (n, box) in enumerate(zip(images(i), boxes_of(i))):
        for at in np.ndindex(*shape):
            out[(r, slice(None), *at)] = bin_of(i["X"][n], box, *at)
    return out


# ---- roi_align

def line_at(n, at):
    """Weights of the n pixels of an axis in a sample at ``at``."""
    weights = np.zeros(n)
    if -1 <= at <= n:
        at = max(at, 0)
        low = min(int(at), n - 1)
        part = at - low if low < n - 1 else 0
        weights[low] += 1 - part
        if part:
            weights[low + 1] += part
    return weights


def align(i, a):
    a = single(a)

    def axis(low, high, bins, k, n):
        low, high = low * a["spatial_scale"], high * a["spatial_scale"]
        size = max(high - low, 1.0)
        count = a.get("sampling_ratio", -1)
        count = count if count > 0 else int(np.ceil(size / bins))
        assert count < 1000, "too many samples for a reference"
        return sum(line_at(n, low + (k + (s + 0.5) / count) * size / bins) for s in range(count)) / count

    def bin_of(image, box, row, column):
        rows = axis(box[1], box[3], a["pooled_height"], row, image.shape[1])
        columns = axis(box[0], box[2], a["pooled_width"], column, image.shape[2])
        return np.einsum("chw,h,w->c", image, rows, columns)
    return pooled(i, a, bin_of)


MAPS = real(2, 3, 6, 7)
POOL = {"spatial_scale": 0.5, "pooled_height": 3, "pooled_width": 2}
case("roi_align", {"X": MAPS, "ROIs": regions(2, 3)}, POOL, align, grad=("X",), rtol=1e-5,
     large={"X": real(2, 16, 30, 31), "ROIs": regions(30, 11, high=64.0)})
case("roi_align", {"X": MAPS, "ROIs": regions(0, 3)}, dict(POOL, sampling_ratio=2), align, grad=("X",), rtol=1e-5)
case("roi_align", {"X": MAPS, "ROIs": regions(5).array, "RoisLod": np.array([0, 3, 5])},
     dict(POOL, sampling_ratio=3, spatial_scale=0.25), align, grad=("X",), rtol=1e-5, name="offsets")


# ---- roi_pool

def away(x):
    """Rounded, halves away from 0."""
    return np.trunc(x + np.copysign(0.5, x))


def span(low, size, bins, k, n):
    """Pixels of bin k."""
    first, end = np.floor(k * size / bins) + low, np.ceil((k + 1) * size / bins) + low
    return slice(int(np.clip(first, 0, n)), int(np.clip(end, 0, n)))


def largest(i, a):
    a = single(a)
    places = np.full((len(boxes_of(i)), i["X"].shape[1], a["pooled_height"], a["pooled_width"]), -1, "int64")

    def part_of(box, row, column, shape):
        left, top, right, bottom = away(box * np.asarray(a["spatial_scale"], box.dtype))
        return (span(top, max(bottom - top + 1, 1), a["pooled_height"], row, shape[1]),
                span(left, max(right - left + 1, 1), a["pooled_width"], column, shape[2]))

    def bin_of(image, box, row, column):
        part = image[(slice(None), *part_of(box, row, column, image.shape))]
        return part.max((1, 2)) if part.size else 0
    out = pooled(i, a, bin_of)
    for r, c, row, column in np.ndindex(*places.shape):
        image = i["X"][images(i)[r], c]
        rows, columns = part_of(boxes_of(i)[r], row, column, i["X"].shape[1:])
        part = image[rows, columns]
        if part.size:
            y, x = np.unravel_index(part.argmax(), part.shape)
            places[r, c, row, column] = (y + rows.start) * image.shape[1] + x + columns.start
    return {"Out": out, "Argmax": places}


case("roi_pool", {"X": apart(2, 3, 6, 7), "ROIs": regions(2, 3)}, POOL, largest, grad=("X",),
     large={"X": big(2, 16, 30, 31), "ROIs": regions(30, 11, high=64.0)})
case("roi_pool", {"X": apart(2, 3, 6, 7), "ROIs": regions(5).array, "RoisLod": np.array([0, 1, 5])},
     dict(POOL, spatial_scale=1.0), largest, grad=("X",), name="offsets")


# ---- psroi_pool

def by_place(i, a):
    a = single(a)
    scale, shape = a["spatial_scale"], (a["pooled_height"], a["pooled_width"])

    def axis(low, high, bins, k, n):
        begin, end = away(low) * scale, (away(high) + 1) * scale
        size = max(end - begin, 0.1) / bins
        return slice(int(np.clip(np.floor(k * size + begin), 0, n)), int(np.clip(np.ceil((k + 1) * size + begin), 0, n)))

    def bin_of(image, box, row, column):
        part = image.reshape(a["output_channels"], *shape, *image.shape[1:])[:, row, column]
        part = part[:, axis(box[1], box[3], shape[0], row, part.shape[1]), axis(box[0], box[2], shape[1], column, part.shape[2])]
        return part.mean((1, 2)) if part.size else 0
    return pooled(i, a, bin_of, a["output_channels"])


case("psroi_pool", {"X": real(2, 12, 6, 7), "ROIs": regions(2, 3)}, dict(POOL, output_channels=2), by_place, grad=("X",),
     large={"X": real(2, 12, 30, 31), "ROIs": regions(30, 11, high=64.0)}, rtol=1e-5)
case("psroi_pool", {"X": real(2, 6, 6, 7), "ROIs": regions(4, 0)}, dict(POOL, output_channels=1, spatial_scale=1.0), by_place, grad=("X",),
     rtol=1e-5)


# ---- prroi_pool

def exact(i, a):
    a = single(a)
    scale = a["spatial_scale"]

    def axis(low, high, bins, k, n):
        size = max(high - low, 0) * scale / bins
        begin = low * scale + k * size
        ends = np.array([begin, begin + size])[:, None] - np.arange(n)
        ends = np.clip(ends, -1, 1)
        return np.diff(ends - np.sign(ends) * ends ** 2 / 2, axis=0)[0] / size

    def bin_of(image, box, row, column):
        if min(box[2:] - box[:2]) <= 0:
            return 0
        rows = axis(box[1], box[3], a["pooled_height"], row, image.shape[1])
        columns = axis(box[0], box[2], a["pooled_width"], column, image.shape[2])
        return np.einsum("chw,h,w->c", image, rows, columns)
    return pooled(i, a, bin_of)


case("prroi_pool", {"X": MAPS, "ROIs": regions(2, 3)}, POOL, exact, rtol=1e-4,
     large={"X": real(2, 16, 30, 31), "ROIs": regions(30, 11, high=64.0)})
case("prroi_pool", {"X": MAPS, "ROIs": regions(3).array, "BatchRoINums": np.array([1, 2])},
     dict(POOL, spatial_scale=1.0), exact, rtol=1e-4, name="lengths")
case("prroi_pool", {"X": MAPS, "ROIs": Seq(np.array([[1.0, 2, 1, 5], [3, 4, 2, 8]]), [[1, 1]])}, POOL, exact, grad=("X",),
     name="without_area")


# ---- deformable_psroi_pooling

def moved(i, a):
    a = single(a)
    x, trans, rows, columns, samples = i["Input"], i["Trans"], a["pooled_height"], a["pooled_width"], a["sample_per_part"]
    height, width, part, group, made = *x.shape[2:], a["part_size"], a["group_size"], a["output_dim"]
    assert rows * columns < 1000 and samples < 20, "too many samples for a reference"
    out, count = np.zeros((2, len(i["ROIs"].array), made, rows, columns))
    each = made if a["no_trans"] else made // (trans.shape[1] // 2)
    for r, c, p, q in np.ndindex(*out.shape):
        box = i["ROIs"].array[r]
        low, high = away(box[:2]) * a["spatial_scale"] - 0.5, (away(box[2:]) + 1) * a["spatial_scale"] - 0.5
        size = np.maximum(high - low, 0.1)
        begin = low + np.array([q, p]) * size / [columns, rows]
        if not a["no_trans"]:
            begin = begin + trans[r, c // each * 2:c // each * 2 + 2, p * part[0] // rows, q * part[1] // columns] * a["trans_std"] * size
        plane = x[images(i)[r], (c * group[0] + p * group[0] // rows) * group[1] + q * group[1] // columns]
        found = []
        for m, n in np.ndindex(samples, samples):
            at, z = begin[1] + m * size[1] / rows / samples, begin[0] + n * size[0] / columns / samples
            if -0.5 <= at <= height - 0.5 and -0.5 <= z <= width - 0.5:
                found.append(line_at(height, np.clip(at, 0, height - 1)) @ plane @ line_at(width, np.clip(z, 0, width - 1)))
        out[r, c, p, q], count[r, c, p, q] = np.mean(found) if found else 0, len(found)
    return {"TopCount": count, "Output": out}


BINS = {"no_trans": False, "spatial_scale": 0.5, "output_dim": 4, "group_size": [1, 1], "pooled_height": 3, "pooled_width": 2,
        "part_size": [3, 2], "sample_per_part": 2, "trans_std": 0.1}
case("deformable_psroi_pooling", {"Input": real(2, 4, 6, 7), "ROIs": regions(2, 3), "Trans": real(5, 4, 3, 2)}, BINS, moved,
     grad=("Input", "Trans"), grad_outs=("Output",), rtol=1e-4)
case("deformable_psroi_pooling", {"Input": real(2, 8, 6, 7), "ROIs": regions(2, 1), "Trans": real(3, 2, 2, 2)},
     dict(BINS, output_dim=2, group_size=[2, 2], part_size=[2, 2], sample_per_part=3, spatial_scale=0.25), moved,
     grad=("Input", "Trans"), grad_outs=("Output",), rtol=1e-4)
case("deformable_psroi_pooling", {"Input": real(2, 4, 6, 7), "ROIs": regions(2, 1), "Trans": real(3, 2, 3, 2)},
     dict(BINS, no_trans=True, spatial_scale=0.9), moved, grad=("Input",), grad_outs=("Output",), rtol=1e-4, name="no_trans")


# ---- roi_perspective_transform

def contains(quad, x, y, near=1e-4):
    """Whether a point lies in a quadrangle or on a side of it."""
    inside = False
    for (ax, ay), (bx, by) in zip(quad, np.roll(quad, -1, 0)):
        if abs(ay - by) < near:
            if abs(y - ay) < near and min(ax, bx) - near < x < max(ax, bx) + near:
                return True
            continue
        at = (y - ay) * (bx - ax) / (by - ay) + ax
        if abs(at - x) < near and min(ay, by) - near < y < max(ay, by) + near:
            return True
        inside ^= bool(min(ay, by) + near <= y < max(ay, by) + near and at > x)
    return inside


def perspective(i, a):
    a = single(a)
    rows, columns = a["transformed_height"], a["transformed_width"]
    assert rows * columns < 1000, "too many pixels for a reference"
    height, width = i["X"].shape[2:]
    quads = i["ROIs"].array.reshape(-1, 4, 2) * a["spatial_scale"]
    out, mask = np.zeros((len(quads), i["X"].shape[1], rows, columns)), np.zeros((len(quads), 1, rows, columns), "int32")
    matrices = np.zeros((len(quads), 9))
    for r, quad in enumerate(quads):
        sides = np.hypot(*(quad - np.roll(quad, -1, 0)).T)
        down = max(2, rows) - 1
        across = max(2, min(away((sides[0] + sides[2]) * down / (sides[1] + sides[3])) + 1, columns)) - 1
        (d1, e1), (d2, e2), (d3, e3) = quad[1] - quad[2], quad[3] - quad[2], quad[0] - quad[1] + quad[2] - quad[3]
        area = d1 * e2 - d2 * e1 + 1e-5
        g, h = (d3 * e2 - d2 * e3) / area / across, (d1 * e3 - d3 * e1) / area / down
        m = np.array([[(quad[1, k] - quad[0, k] + g * across * quad[1, k]) / across,
                       (quad[3, k] - quad[0, k] + h * down * quad[3, k]) / down, quad[0, k]] for k in range(2)] + [[g, h, 1]])
        matrices[r] = m.ravel()
        for p, q in np.ndindex(rows, columns):
            x, y, w = m @ [q, p, 1]
            x, y = x / w, y / w
            if contains(quad, x, y) and -0.5 <= x <= width - 0.5 and -0.5 <= y <= height - 0.5:
                mask[r, 0, p, q] = 1
                out[r, :, p, q] = np.einsum("chw,h,w->c", i["X"][images(i)[r]], line_at(height, y), line_at(width, x))
    return {"Out": Seq(out, i["ROIs"].lengths), "Mask": mask, "TransformMatrix": matrices}


def quadrangles(*lengths):
    """Rectangles whose corners were moved, the left ones up and the right ones down: whether a
    pixel lies on a side follows from where the side meets the pixel's row, which float32 cannot tell for a side that is
    almost level.
    """
    corner = real(sum(lengths), 2, lo=-1, hi=6)
    box = np.concatenate([corner, corner + real(sum(lengths), 2, lo=3, hi=6)], 1)
    moves = real(len(box), 8, lo=0.2, hi=0.8) * [1, -1, 1, 1, -1, 1, 1, -1]
    return Seq(box[:, [0, 1, 2, 1, 2, 3, 0, 3]] + moves, [list(lengths)])


ROTATED = {"spatial_scale": 0.5, "transformed_height": 4, "transformed_width": 5}
case("roi_perspective_transform", {"X": MAPS, "ROIs": quadrangles(2, 2)}, ROTATED, perspective, grad=("X",), rtol=1e-4)
case("roi_perspective_transform", {"X": MAPS, "ROIs": quadrangles(1, 3)},
     dict(ROTATED, spatial_scale=1.0, transformed_height=1, transformed_width=3), perspective, grad=("X",), rtol=1e-4)
case("roi_perspective_transform", {"X": MAPS, "ROIs": Seq(np.array([[0.0, 0, 10, 0, 10, 8, 0, 8], [2, 2, 9, 2, 9, 6, 2, 6]]), [[1, 1]])},
     ROTATED, perspective, grad=("X",), rtol=1e-4, name="upright")
