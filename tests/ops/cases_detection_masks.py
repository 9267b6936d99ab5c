"""Cases of masks drawn from polygons."""
import numpy as np
from cases_detection_proposals import INFO, iou, split
from op_case import Seq, case, real, seeded


def drawn(corners, side):
    """Mask of a polygon: the points of its sides on a grid five times as fine, one after another."""
    fine = np.trunc(5 * corners + 0.5).astype(int)
    points = []
    for (x0, y0), (x1, y1) in zip(fine, np.roll(fine, -1, 0)):
        dx, dy = abs(x1 - x0), abs(y1 - y0)
        steps = max(dx, dy)
        turned = x0 > x1 if dx >= dy else y0 > y1
        (a, b), (c, d) = ((x1, y1), (x0, y0)) if turned else ((x0, y0), (x1, y1))
        for k in range(steps + 1):
            t = steps - k if turned else k
            slope = 0 if steps == 0 else (d - b) / steps if dx >= dy else (c - a) / steps
            points.append((a + t, int(b + slope * t + 0.5)) if dx >= dy else (int(a + slope * t + 0.5), b + t))
    changes = np.zeros(side * side + 1, int)
    for (u, v), (before, height) in zip(points[1:], points):
        column = (min(u, before) + 0.5) / 5 - 0.5
        if u != before and column == np.floor(column) and 0 <= column <= side - 1:
            changes[int(column) * side + int(np.ceil(np.clip((min(v, height) + 0.5) / 5 - 0.5, 0, side)))] += 1
    return (np.cumsum(changes)[:-1] % 2).reshape(side, side).T


def masks(i, a):
    side, classes = a["resolution"], a["num_classes"]
    assert side < 100 and classes < 100, "too large for a reference"
    of_image, of_truth, of_polygon = i["GtSegms"].lengths
    polygons = split(i["GtSegms"].array, of_polygon)
    truths = split(range(sum(of_image)), of_image)
    grouped = split(polygons, of_truth)
    rows, numbers, made, lengths = [], [], [], []
    for n, roi in enumerate(split(i["Rois"].array, i["Rois"].lengths[0])):
        label = split(i["LabelsInt32"].array[:, 0], i["Rois"].lengths[0])[n]
        known = [t for t in truths[n] if i["GtClasses"].array[t, 0] > 0 and i["IsCrowd"].array[t, 0] == 0]
        box = np.array([[*np.concatenate(grouped[t]).min(0), *np.concatenate(grouped[t]).max(0)] for t in known])
        front = [r for r in range(len(roi)) if label[r] > 0]
        for r in front or [r for r in range(len(roi)) if label[r] == 0][:1]:
            mask = np.full((classes, side, side), -1)
            if front:
                place = roi[r] / i["ImInfo"][n, 2]
                size = np.maximum(place[2:] - place[:2], 1)
                best = known[int(iou(place[None], box)[0].argmax())]
                mask[label[r]] = np.any([drawn((p - place[:2]) * side / size, side) for p in grouped[best]], 0)
            rows.append(roi[r])
            numbers.append([r])
            made.append(mask.ravel())
        lengths.append(len(rows) - sum(lengths))
    return {"MaskRois": Seq(np.array(rows), [lengths]), "RoiHasMaskInt32": Seq(np.array(numbers, "int32"), [lengths]),
            "MaskInt32": Seq(np.array(made, "int32"), [lengths])}


def scene(truths, polygons, rois, seed, labels=None):
    """Stars with 3 to 8 points around random places, and rois near them."""
    r = seeded(seed)
    count = [r.randint(3, 9) for _ in range(sum(polygons))]
    points = []
    for n in count:
        angle = np.sort(r.uniform(0, 2 * np.pi, n))
        points.append(r.uniform(8, 24, 2) + np.stack([np.cos(angle), np.sin(angle)], 1) * r.uniform(2, 9, (n, 1)))
    corner = real(sum(rois), 2, lo=0, hi=16)
    if labels is None:
        labels = r.randint(0, 3, sum(rois))
    crowd = np.zeros((sum(truths), 1), "int32")
    crowd[1] = 1
    return {"ImInfo": INFO, "GtClasses": Seq(r.randint(1, 3, (sum(truths), 1)).astype("int32"), [list(truths)]),
            "IsCrowd": Seq(crowd, [list(truths)]), "GtSegms": Seq(np.concatenate(points), [list(truths), list(polygons), count]),
            "Rois": Seq(np.concatenate([corner, corner + real(sum(rois), 2, lo=3, hi=20)], 1), [list(rois)]),
            "LabelsInt32": Seq(np.array(labels, "int32").reshape(-1, 1), [list(rois)])}


case("generate_mask_labels", scene((3, 2), (1, 2, 1, 1, 2), (5, 4), 1), {"num_classes": 3, "resolution": 14}, masks)
case("generate_mask_labels", scene((2, 2), (3, 1, 1, 1), (6, 6), 2), {"num_classes": 4, "resolution": 9}, masks)
case("generate_mask_labels", scene((2, 1), (1, 1, 1), (3, 2), 3, [0, 0, 0, 1, 0]), {"num_classes": 3, "resolution": 5}, masks,
     name="background")
