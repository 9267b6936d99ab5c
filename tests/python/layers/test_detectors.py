"""Detectors from proposals to mean average precision: what single operators do not show."""
import numpy as np
import pytest

import anabranch.fluid as fluid

TRUTH = np.array([[1, 0.1, 0.1, 0.4, 0.4], [2, 0.5, 0.5, 0.9, 0.9], [1, 0.2, 0.6, 0.5, 0.9]], "float32")


def lod(rows, *lengths):
    return fluid.create_lod_tensor(np.ascontiguousarray(rows), [list(lengths)], fluid.CPUPlace())


def batches(seed):
    """Detections, the last of which is wrong for even seeds, with the true boxes."""
    r = np.random.RandomState(seed)
    near = TRUTH[:, 1:] + r.uniform(-0.02, 0.02, (3, 4)).astype("float32")
    rows = np.concatenate([TRUTH[:, :1], r.uniform(0.2, 1, (3, 1)).astype("float32"), near], 1)
    rows[2, 0] = 1 + (seed + 1) % 2
    return {"found": lod(rows, 2, 1), "kind": lod(TRUTH[:, :1], 2, 1), "box": lod(TRUTH[:, 1:], 2, 1)}


@pytest.mark.parametrize("module", ["metrics", "evaluator"])
def test_precision_goes_on_from_batch_to_batch_until_it_is_reset(module):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup):
        found, box = fluid.data("found", [None, 6], "float32", 1), fluid.data("box", [None, 4], "float32", 1)
        kind = fluid.data("kind", [None, 1], "float32", 1)
        metric = getattr(fluid, module).DetectionMAP(found, kind, box, class_num=3, overlap_threshold=0.5)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(scope):
        exe.run(startup)
        run = lambda seed: [float(v[0]) for v in exe.run(main, batches(seed), list(metric.get_map_var()))]
        first, second = run(1), run(2)
        metric.reset(exe)
        again = run(2)
    assert first[0] == first[1] and again == [second[0], second[0]]
    assert first[0] == 1 and second[0] < second[1] < 1


@pytest.mark.parametrize("counted", [True, False])
def test_difficult_boxes_count_where_they_are_asked_for(counted):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        found, box = fluid.data("found", [None, 6], "float32", 1), fluid.data("box", [None, 4], "float32", 1)
        kind, difficult = (fluid.data(name, [None, 1], "float32", 1) for name in ("kind", "difficult"))
        metric = fluid.metrics.DetectionMAP(found, kind, box, difficult, class_num=3, evaluate_difficult=counted)
        feed = {"found": lod(np.array([[1, 0.9, *TRUTH[0, 1:]]], "float32"), 1), "kind": lod(TRUTH[[0, 2], :1], 2),
                "difficult": lod(np.array([[0], [1]], "float32"), 2), "box": lod(TRUTH[[0, 2], 1:], 2)}
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        values = exe.run(main, feed, list(metric.get_map_var()))
    assert [float(v[0]) for v in values] == [0.5 if counted else 1.0] * 2


def rpn(random, crowds=(2,)):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        anchors = fluid.data("anchors", [400, 4], "float32")
        truth, crowd = fluid.data("truth", [None, 4], "float32", 1), fluid.data("crowd", [None, 1], "int32", 1)
        pred, logits = fluid.data("pred", [1, 400, 4], "float32"), fluid.data("logits", [1, 400, 1], "float32")
        made = fluid.layers.rpn_target_assign(pred, logits, anchors, anchors, truth, crowd,
                                              fluid.data("info", [1, 3], "float32"), 32, -1.0, use_random=random,
                                              rpn_positive_overlap=0.3)
        main = fluid.default_main_program()
    main.random_seed = 5
    corner = np.random.RandomState(3).uniform(0, 60, (400, 2))
    feed = {"anchors": np.concatenate([corner, corner + 20], 1).astype("float32"),
            "truth": lod(np.array([[10, 10, 30, 30], [40, 40, 60, 60]], "float32"), 2),
            "crowd": lod(np.zeros((2, 1), "int32"), *crowds), "info": np.array([[80, 80, 1]], "float32"),
            "pred": np.zeros((1, 400, 4), "float32"), "logits": np.arange(400, dtype="float32").reshape(1, 400, 1)}
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    run = lambda: exe.run(main, feed, [made[0], made[2]], scope=scope, return_numpy=False)
    chosen = [[np.array(t).ravel() for t in run()] for _ in range(3)]
    return [(sorted(scores), int(labels.sum()), len(labels)) for scores, labels in chosen]


def test_anchors_are_drawn_again_in_each_step_and_repeatably():
    drawn = rpn(True)
    assert drawn == rpn(True)
    assert drawn[0][0] != drawn[1][0]
    assert {d[1:] for d in drawn} == {(16, 32)}
    first = rpn(False)
    assert first[0] == first[1] == first[2] and first[0][1:] == (16, 32)


def test_crowds_of_other_images_are_refused():
    """Fluid 1.8.5 reads the flags of other boxes, or beyond their end."""
    with pytest.raises(ValueError, match="IsCrowd must have the sequences of GtBoxes, or none"):
        rpn(False, crowds=(1, 1))


def test_yolo_learns_boxes():
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 1
    with fluid.program_guard(main, startup):
        image = fluid.data("image", [None, 3, 16, 16], "float32")
        box, label = fluid.data("box", [None, 2, 4], "float32"), fluid.data("label", [None, 2], "int32")
        head = fluid.layers.conv2d(fluid.layers.conv2d(image, 8, 4, 4, act="relu"), 14, 1)
        loss = fluid.layers.mean(fluid.layers.yolov3_loss(head, box, label, [4, 4, 8, 8], [0, 1], 2, 0.7, 4))
        fluid.optimizer.Adam(0.02).minimize(loss)
    r, exe, scope = np.random.RandomState(0), fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    feed = {"image": r.rand(4, 3, 16, 16).astype("float32"), "label": r.randint(0, 2, (4, 2)).astype("int32"),
            "box": r.uniform(0.2, 0.7, (4, 2, 4)).astype("float32")}
    exe.run(startup, scope=scope)
    losses = [float(exe.run(main, feed, [loss], scope=scope)[0][0]) for _ in range(60)]
    assert losses[-1] < losses[0] / 2
