"""Object detection in one stage: SSD, YOLOv3, RetinaNet."""
import numpy as np
from detection_parts import CLASSES, Backbone, objects
from harness import drawn, net


@net("ssd")
def ssd(fluid):
    layers = fluid.layers

    def feed(step):
        rng, boxes, labels, lengths = objects("ssd", step)
        return {"image": rng.normal(0, 1, (2, 3, 64, 64)).astype("float32"), "gt_box": (boxes, lengths),
                "gt_label": (labels.astype("int32"), lengths),
                "difficult": (np.zeros(labels.shape, "int32"), lengths)}

    image = layers.data(name="image", shape=[3, 64, 64], dtype="float32")
    gt_box = layers.data(name="gt_box", shape=[4], dtype="float32", lod_level=1)
    gt_label = layers.data(name="gt_label", shape=[1], dtype="int32", lod_level=1)
    difficult = layers.data(name="difficult", shape=[1], dtype="int32", lod_level=1)
    stages = Backbone(fluid).stages(image, [4, 8, 12, 16, 16])
    locs, confs, box, box_var = layers.multi_box_head(
        inputs=stages[2:], image=image, num_classes=CLASSES, min_ratio=20, max_ratio=90,
        min_sizes=[12.0, 24.0, 40.0], max_sizes=[[], 40.0, 56.0], aspect_ratios=[[2.], [2., 3.], [2., 3.]],
        base_size=64, offset=0.5, flip=True)
    nmsed_out = layers.detection_output(locs, confs, box, box_var, nms_threshold=0.45)
    test_program = fluid.default_main_program().clone(for_test=True)
    with fluid.program_guard(test_program):
        gt_label_float = layers.cast(x=gt_label, dtype="float32")
        map_eval = fluid.metrics.DetectionMAP(
            nmsed_out, gt_label_float, gt_box, layers.cast(difficult, "float32"), CLASSES, overlap_threshold=0.3,
            evaluate_difficult=False, ap_version="integral")
        cur_map, accum_map = map_eval.get_map_var()
    loss = layers.ssd_loss(locs, confs, gt_box, gt_label, box, box_var)
    loss = layers.reduce_sum(loss)
    optimizer = fluid.optimizer.RMSProp(
        learning_rate=layers.piecewise_decay([2], [0.001, 0.0005]), epsilon=0.1,
        regularization=fluid.regularizer.L2Decay(5e-5))
    optimizer.minimize(loss)
    return {"feed": feed, "fetch": [loss, locs, confs, box, box_var], "test": test_program,
            "test_fetch": [nmsed_out, cur_map, accum_map, locs]}


class YOLOv3(object):
    anchors = [6, 8, 12, 10, 16, 20, 20, 30, 32, 24, 40, 48]
    anchor_masks = [[3, 4, 5], [0, 1, 2]]

    def __init__(self, fluid, is_train):
        self.fluid, self.is_train = fluid, is_train
        self.outputs, self.boxes, self.scores = [], [], []

    def conv_bn_layer(self, input, ch_out, filter_size, stride, padding, name=None):
        ParamAttr = self.fluid.ParamAttr
        conv1 = self.fluid.layers.conv2d(
            input=input, num_filters=ch_out, filter_size=filter_size, stride=stride, padding=padding, act=None,
            param_attr=ParamAttr(initializer=self.fluid.initializer.Normal(0., 0.08), name=name + ".conv.weights"),
            bias_attr=False)
        bn_name = name + ".bn"
        out = self.fluid.layers.batch_norm(
            input=conv1, act=None, is_test=not self.is_train, momentum=0.9, param_attr=ParamAttr(
                initializer=self.fluid.initializer.Normal(1., 0.02), regularizer=self.fluid.regularizer.L2Decay(0.),
                name=bn_name + ".scale"),
            bias_attr=ParamAttr(initializer=self.fluid.initializer.Constant(0.0),
                                regularizer=self.fluid.regularizer.L2Decay(0.), name=bn_name + ".offset"),
            moving_mean_name=bn_name + ".mean", moving_variance_name=bn_name + ".var")
        return self.fluid.layers.leaky_relu(x=out, alpha=0.1)

    def basicblock(self, input, ch_out, name):
        conv1 = self.conv_bn_layer(input, ch_out, 1, 1, 0, name=name + ".0")
        conv2 = self.conv_bn_layer(conv1, ch_out * 2, 3, 1, 1, name=name + ".1")
        return self.fluid.layers.elementwise_add(x=input, y=conv2, act=None)

    def upsample(self, input, scale=2, name=None):
        """To the size that is known in the run only."""
        layers = self.fluid.layers
        shape_nchw = layers.shape(input)
        shape_hw = layers.slice(shape_nchw, axes=[0], starts=[2], ends=[4])
        shape_hw.stop_gradient = True
        in_shape = layers.cast(shape_hw, dtype="int32")
        out_shape = in_shape * scale
        out_shape.stop_gradient = True
        return layers.resize_nearest(input=input, scale=scale, actual_shape=out_shape, name=name)

    def net(self, image):
        layers = self.fluid.layers
        x = self.conv_bn_layer(image, 4, 3, 2, 1, name="yolo_input")
        blocks = []
        for i, width in enumerate([8, 12, 16]):
            x = self.conv_bn_layer(x, width, 3, 2, 1, name="down.%d" % i)
            x = self.basicblock(x, width // 2, name="stage.%d" % i)
            blocks.append(x)
        route = None
        for i, block in enumerate(blocks[::-1][:2]):
            if i > 0:
                block = layers.concat(input=[route, block], axis=1)
            route = self.conv_bn_layer(block, 8, 1, 1, 0, name="yolo_block.%d.route" % i)
            tip = self.conv_bn_layer(route, 16, 3, 1, 1, name="yolo_block.%d.tip" % i)
            filters = len(self.anchor_masks[i]) * (CLASSES + 5)
            self.outputs.append(layers.conv2d(
                input=tip, num_filters=filters, filter_size=1, stride=1, padding=0, act=None,
                param_attr=self.fluid.ParamAttr(name="yolo_output.%d.conv.weights" % i), bias_attr=self.fluid.ParamAttr(
                    regularizer=self.fluid.regularizer.L2Decay(0.), name="yolo_output.%d.conv.bias" % i)))
            if i == 0:
                route = self.upsample(self.conv_bn_layer(route, 4, 1, 1, 0, name="yolo_transition"))

    def loss(self, gtbox, gtlabel, gtscore):
        losses, downsample = [], 16
        for i, out in enumerate(self.outputs):
            loss = self.fluid.layers.yolov3_loss(
                x=out, gt_box=gtbox, gt_label=gtlabel, gt_score=gtscore, anchors=self.anchors,
                anchor_mask=self.anchor_masks[i], class_num=CLASSES, ignore_thresh=0.7,
                downsample_ratio=downsample, use_label_smooth=True, name="yolo_loss" + str(i))
            losses.append(self.fluid.layers.reduce_mean(loss))
            downsample //= 2
        return sum(losses)

    def detect(self, im_shape):
        layers, downsample = self.fluid.layers, 16
        for i, out in enumerate(self.outputs):
            mask_anchors = []
            for m in self.anchor_masks[i]:
                mask_anchors += self.anchors[2 * m:2 * m + 2]
            boxes, scores = layers.yolo_box(x=out, img_size=im_shape, anchors=mask_anchors, class_num=CLASSES,
                                            conf_thresh=0.01, downsample_ratio=downsample, name="yolo_box" + str(i))
            self.boxes.append(boxes)
            self.scores.append(layers.transpose(scores, perm=[0, 2, 1]))
            downsample //= 2
        return layers.multiclass_nms(
            bboxes=layers.concat(self.boxes, axis=1), scores=layers.concat(self.scores, axis=2), score_threshold=0.01,
            nms_top_k=20, keep_top_k=10, nms_threshold=0.45, background_label=-1, name="multiclass_nms")


@net("yolov3")
def yolov3(fluid):
    """The test program is built by itself, from parameters of equal names."""
    layers, size = fluid.layers, 64

    def feed(step):
        rng = drawn("yolov3", step)
        # Of two boxes in one cell, Fluid 1.8.5 adds the losses but not the gradients: each has a cell of the 4 x 4.
        cells = np.stack([rng.permutation(16)[:6] for _ in range(2)])
        centers = (np.stack([cells % 4, cells // 4], 2) + rng.uniform(0.1, 0.9, (2, 6, 2))) / 4
        boxes = np.concatenate([centers, rng.uniform(0.1, 0.5, (2, 6, 2))], 2)
        boxes[:, 4:] = 0
        return {"image": rng.normal(0, 1, (2, 3, size, size)).astype("float32"), "gt_box": boxes.astype("float32"),
                "gt_label": rng.randint(0, CLASSES, (2, 6)).astype("int32"),
                "gt_score": rng.uniform(0.4, 1, (2, 6)).astype("float32"),
                "im_shape": np.array([[64, 64], [48, 60]], "int32")}

    def build_model(is_train):
        model = YOLOv3(fluid, is_train)
        image = fluid.data(name="image", shape=[None, 3, None, None] if is_train else [None, 3, size, size])
        model.net(image)
        if not is_train:
            return model.detect(fluid.data(name="im_shape", shape=[None, 2], dtype="int32"))
        gtbox = fluid.data(name="gt_box", shape=[None, 6, 4], dtype="float32")
        gtlabel = fluid.data(name="gt_label", shape=[None, 6], dtype="int32")
        gtscore = fluid.data(name="gt_score", shape=[None, 6], dtype="float32")
        return model.loss(gtbox, gtlabel, gtscore)

    loss = build_model(True)
    loss.persistable = True
    lr = layers.linear_lr_warmup(layers.piecewise_decay(boundaries=[4], values=[0.01, 0.001]), warmup_steps=2,
                                 start_lr=0., end_lr=0.01)
    optimizer = fluid.optimizer.Momentum(learning_rate=lr, regularization=fluid.regularizer.L2Decay(5e-4),
                                         momentum=0.9)
    optimizer.minimize(loss)
    test_program, unused = fluid.Program(), fluid.Program()
    with fluid.program_guard(test_program, unused):
        with fluid.unique_name.guard():
            pred = build_model(False)
    return {"feed": feed, "runs": [dict(program=fluid.default_main_program(), fetch=[loss], feed=[
        "image", "gt_box", "gt_label", "gt_score"])], "test": test_program, "test_fetch": [pred],
        "test_feed": ["image", "im_shape"]}


@net("retinanet")
def retinanet(fluid):
    layers, ParamAttr = fluid.layers, fluid.ParamAttr

    def feed(step):
        rng, boxes, labels, lengths = objects("retinanet", step, extent=64.0)
        return {"image": rng.normal(0, 1, (2, 3, 64, 64)).astype("float32"), "gt_box": (boxes, lengths),
                "gt_label": (labels.astype("int32"), lengths),
                "is_crowd": (np.zeros(labels.shape, "int32"), lengths),
                "im_info": np.array([[64, 64, 1.0], [64, 64, 2.0]], "float32")}

    image = fluid.data(name="image", shape=[None, 3, 64, 64], dtype="float32")
    gt_box = fluid.data(name="gt_box", shape=[None, 4], dtype="float32", lod_level=1)
    gt_label = fluid.data(name="gt_label", shape=[None, 1], dtype="int32", lod_level=1)
    is_crowd = fluid.data(name="is_crowd", shape=[None, 1], dtype="int32", lod_level=1)
    im_info = fluid.data(name="im_info", shape=[None, 3], dtype="float32")
    stages = Backbone(fluid, affine=True).stages(image, [4, 8, 12, 12])[2:]
    scores, deltas, anchors, variances = [], [], [], []
    for level, stage in enumerate(stages):
        for kind, found, width in (("cls", scores, CLASSES - 1), ("bbox", deltas, 4)):
            x = layers.conv2d(stage, 8, 1, act=None, name="fpn_%d_%s" % (level, kind))
            x = layers.conv2d(x, 8, 3, padding=1, act="relu", name="retnet_%s_conv" % kind, param_attr=ParamAttr(
                name="retnet_%s_conv_w" % kind, initializer=fluid.initializer.Normal(0., 0.1)), bias_attr=ParamAttr(
                name="retnet_%s_conv_b" % kind, learning_rate=2., regularizer=fluid.regularizer.L2Decay(0.)))
            start = float(-np.log((1 - 0.01) / 0.01)) if kind == "cls" else 0.0
            x = layers.conv2d(x, 3 * width, 3, padding=1, act=None, name="retnet_%s_pred" % kind, param_attr=ParamAttr(
                name="retnet_%s_pred_w" % kind, initializer=fluid.initializer.Normal(0., 0.1)), bias_attr=ParamAttr(
                name="retnet_%s_pred_b" % kind, initializer=fluid.initializer.Constant(start), learning_rate=2.))
            x = layers.transpose(x, perm=[0, 2, 3, 1])
            found.append(layers.reshape(x, shape=(0, -1, width)))
        anchor, var = layers.anchor_generator(
            input=stage, anchor_sizes=[16. * 2 ** level], aspect_ratios=[0.5, 1.0, 2.0],
            variance=[1.0, 1.0, 1.0, 1.0], stride=[8.0 * 2 ** level] * 2)
        anchors.append(layers.reshape(anchor, shape=[-1, 4]))
        variances.append(layers.reshape(var, shape=[-1, 4]))
    score_pred, loc_pred, score_tgt, loc_tgt, inside, fg_num = layers.retinanet_target_assign(
        layers.concat(deltas, axis=1), layers.concat(scores, axis=1), layers.concat(anchors, axis=0),
        layers.concat(variances, axis=0), gt_box, gt_label, is_crowd, im_info, CLASSES - 1, 0.5, 0.4)
    fg_num = layers.reduce_sum(fg_num, name="fg_num")
    score_tgt = layers.cast(score_tgt, "int32")
    score_tgt.stop_gradient = True
    loss_cls = layers.reduce_sum(layers.sigmoid_focal_loss(
        x=score_pred, label=score_tgt, fg_num=fg_num, gamma=2.0, alpha=0.25), name="loss_cls")
    loss_bbox = layers.smooth_l1(x=loc_pred, y=loc_tgt, sigma=3.0, inside_weight=inside, outside_weight=inside)
    loss_bbox = layers.reduce_sum(loss_bbox, name="loss_bbox") / layers.cast(fg_num, "float32")
    loss = loss_cls + loss_bbox
    pred = layers.retinanet_detection_output(
        deltas, [layers.sigmoid(s) for s in scores], anchors, im_info, score_threshold=0.005, nms_top_k=20,
        keep_top_k=10, nms_threshold=0.5, nms_eta=1.0)
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(0.01, 0.9, regularization=fluid.regularizer.L2Decay(1e-4)).minimize(loss)
    return {"feed": feed, "fetch": [loss, loss_cls, loss_bbox, fg_num, score_tgt], "test": test_program,
            "test_fetch": [pred]}
