"""Object detection in two stages: Faster R-CNN, Mask R-CNN, and both on a feature pyramid (FPN)."""
import numpy as np
from detection_parts import CLASSES, Backbone, objects
from harness import net

SIZE = 64
IM_INFO = np.array([[64, 64, 1.0], [60, 64, 1.5]], "float32")


def feeds(name, masks=False):
    def feed(step):
        rng, boxes, labels, lengths = objects(name, step, extent=60.0)
        result = {"image": rng.normal(0, 1, (2, 3, SIZE, SIZE)).astype("float32"), "gt_bbox": (boxes, lengths),
                  "gt_class": (labels.astype("int32"), lengths), "im_info": IM_INFO, "im_shape": IM_INFO,
                  "is_crowd": (np.zeros(labels.shape, "int32"), lengths)}
        if masks:  # an octagon in each box, as one polygon
            angles = np.arange(8) * np.pi / 4
            circle = np.stack([np.cos(angles), np.sin(angles)], 1) / 2 + 0.5
            points = [b[:2] + circle * (b[2:] - b[:2]) for b in boxes]
            polygons = [[1] * len(boxes), [8] * len(boxes)]
            result["gt_mask"] = (np.concatenate(points).astype("float32"), lengths + polygons)
        return result
    return feed


class RCNN(object):
    """The parts that the three models share; `levels` of more than one make a pyramid."""

    def __init__(self, fluid, masks=False, levels=1, roi_func="RoIAlign"):
        self.fluid, self.masks, self.levels, self.roi_func = fluid, masks, levels, roi_func
        self.build_input()

    def build_input(self):
        data = self.fluid.layers.data
        self.image = data(name="image", shape=[3, SIZE, SIZE], dtype="float32")
        self.gt_box = data(name="gt_bbox", shape=[4], dtype="float32", lod_level=1)
        self.gt_label = data(name="gt_class", shape=[1], dtype="int32", lod_level=1)
        self.is_crowd = data(name="is_crowd", shape=[1], dtype="int32", lod_level=1)
        self.im_info = data(name="im_info", shape=[3], dtype="float32")
        self.im_shape = data(name="im_shape", shape=[3], dtype="float32")
        if self.masks:
            self.gt_masks = data(name="gt_mask", shape=[2], dtype="float32", lod_level=3)

    def attr(self, name, std=0.1):
        ParamAttr, initializer = self.fluid.ParamAttr, self.fluid.initializer
        return dict(param_attr=ParamAttr(name=name + "_w", initializer=initializer.Normal(loc=0., scale=std)),
                    bias_attr=ParamAttr(name=name + "_b", learning_rate=2.,
                                        regularizer=self.fluid.regularizer.L2Decay(0.)))

    def features(self):
        layers = self.fluid.layers
        stages = Backbone(self.fluid, affine=True).stages(self.image, [4, 8, 12, 12])
        if self.levels == 1:
            self.feats, self.strides = [stages[2]], [8]
            return
        feats = [layers.conv2d(stages[3], 8, 1, name="fpn_inner_3", **self.attr("fpn_inner_3"))]
        for i in (2, 1):
            lateral = layers.conv2d(stages[i], 8, 1, name="fpn_inner_%d" % i, **self.attr("fpn_inner_%d" % i))
            topdown = layers.resize_nearest(feats[0], scale=2., name="topdown_%d" % i)
            feats.insert(0, lateral + topdown)
        self.feats = [layers.conv2d(f, 8, 3, padding=1, **self.attr("fpn_out_%d" % i)) for i, f in enumerate(feats)]
        self.strides = [4, 8, 16]

    def rpn_heads(self, is_train=True):
        layers, self.rpn = self.fluid.layers, []
        for i, (feat, stride) in enumerate(zip(self.feats, self.strides)):
            x = layers.conv2d(feat, 8, 3, padding=1, act="relu", name="conv_rpn_%d" % i, **self.attr("conv_rpn"))
            sizes = [16., 32.] if self.levels == 1 else [8. * 2 ** i]
            anchor, var = layers.anchor_generator(
                input=x, anchor_sizes=sizes, aspect_ratios=[0.5, 1.0, 2.0], variance=[1.0, 1.0, 1.0, 1.0],
                stride=[float(stride)] * 2, offset=0.5)
            count = anchor.shape[2]
            score = layers.conv2d(x, count, 1, act=None, name="rpn_cls_%d" % i, **self.attr("rpn_cls"))
            delta = layers.conv2d(x, 4 * count, 1, act=None, name="rpn_bbox_%d" % i, **self.attr("rpn_bbox"))
            prob = layers.sigmoid(score, name="rpn_cls_prob_%d" % i)
            rois, probs = layers.generate_proposals(
                scores=prob, bbox_deltas=delta, im_info=self.im_info, anchors=anchor, variances=var,
                pre_nms_top_n=40, post_nms_top_n=16, nms_thresh=0.7, min_size=0.0, eta=1.0)
            self.rpn.append((score, delta, anchor, var, rois, probs))
        if self.levels == 1:
            self.rois = self.rpn[0][4]
        else:
            self.rois = layers.collect_fpn_proposals(
                [r[4] for r in self.rpn], [r[5] for r in self.rpn], 2, 1 + self.levels, 20, name="collect")

    def rpn_loss(self):
        layers, columns = self.fluid.layers, []
        for score, delta, anchor, var, _, _ in self.rpn:
            columns.append((layers.reshape(layers.transpose(score, perm=[0, 2, 3, 1]), shape=(0, -1, 1)),
                            layers.reshape(layers.transpose(delta, perm=[0, 2, 3, 1]), shape=(0, -1, 4)),
                            layers.reshape(anchor, shape=(-1, 4)), layers.reshape(var, shape=(-1, 4))))
        score, delta, anchor, var = (c[0] if len(c) == 1 else layers.concat(list(c), axis=1 if i < 2 else 0)
                                     for i, c in enumerate(zip(*columns)))
        score_pred, loc_pred, score_tgt, loc_tgt, weight = layers.rpn_target_assign(
            bbox_pred=delta, cls_logits=score, anchor_box=anchor, anchor_var=var, gt_boxes=self.gt_box,
            is_crowd=self.is_crowd, im_info=self.im_info, rpn_batch_size_per_im=32, rpn_straddle_thresh=0.0,
            rpn_fg_fraction=0.5, rpn_positive_overlap=0.6, rpn_negative_overlap=0.3, use_random=False)
        score_tgt = layers.cast(x=score_tgt, dtype="float32")
        score_tgt.stop_gradient = True
        cls_loss = layers.reduce_mean(layers.sigmoid_cross_entropy_with_logits(x=score_pred, label=score_tgt))
        reg_loss = layers.smooth_l1(x=loc_pred, y=loc_tgt, sigma=3.0, inside_weight=weight, outside_weight=weight)
        reg_loss = layers.reduce_sum(reg_loss)
        score_shape = layers.shape(score_tgt)
        score_shape = layers.cast(x=score_shape, dtype="float32")
        norm = layers.reduce_prod(score_shape)
        norm.stop_gradient = True
        return cls_loss, reg_loss / norm

    def sample_rois(self):
        outs = self.fluid.layers.generate_proposal_labels(
            rpn_rois=self.rois, gt_classes=self.gt_label, is_crowd=self.is_crowd, gt_boxes=self.gt_box,
            im_info=self.im_info, batch_size_per_im=16, fg_fraction=0.25, fg_thresh=0.5, bg_thresh_hi=0.5,
            bg_thresh_lo=0.0, bbox_reg_weights=[0.1, 0.1, 0.2, 0.2], class_nums=CLASSES, use_random=False)
        self.sampled, self.labels_int32, self.targets, self.inside, self.outside = outs

    def roi_features(self, rois, size=4):
        layers = self.fluid.layers
        if self.levels == 1:
            pool = layers.roi_pool if self.roi_func == "RoIPool" else layers.roi_align
            extra = {} if self.roi_func == "RoIPool" else {"sampling_ratio": 2}
            return pool(input=self.feats[0], rois=rois, pooled_height=size, pooled_width=size, spatial_scale=1 / 8.,
                        **extra)
        multi_rois, restore = layers.distribute_fpn_proposals(rois, 2, 1 + self.levels, 3, 24)
        found = [layers.roi_align(input=feat, rois=r, pooled_height=size, pooled_width=size,
                                  spatial_scale=1.0 / stride, sampling_ratio=2)
                 for feat, stride, r in zip(self.feats, self.strides, multi_rois)]
        shuffled = layers.concat(found)
        return layers.gather(shuffled, restore)

    def box_head(self, rois):
        layers = self.fluid.layers
        x = self.roi_features(rois)
        x = layers.fc(input=x, size=24, act="relu", name="fc6", **self.attr("fc6"))
        score = layers.fc(input=x, size=CLASSES, act=None, name="cls_score", **self.attr("cls_score"))
        delta = layers.fc(input=x, size=4 * CLASSES, act=None, name="bbox_pred", **self.attr("bbox_pred", 0.01))
        return score, delta

    def box_loss(self):
        layers = self.fluid.layers
        score, delta = self.box_head(self.sampled)
        labels_int64 = layers.cast(x=self.labels_int32, dtype="int64")
        labels_int64.stop_gradient = True
        cls_loss = layers.reduce_mean(layers.softmax_with_cross_entropy(
            logits=score, label=labels_int64, numeric_stable_mode=True))
        bbox_loss = layers.smooth_l1(x=delta, y=self.targets, inside_weight=self.inside, outside_weight=self.outside,
                                     sigma=1.0)
        return cls_loss, layers.reduce_mean(bbox_loss)

    def mask_head(self, rois):
        layers = self.fluid.layers
        x = self.roi_features(rois, 5)
        x = layers.conv2d(x, 8, 3, padding=1, act="relu", **self.attr("mask_conv"))
        x = layers.conv2d_transpose(x, num_filters=8, filter_size=2, stride=2, act="relu", **self.attr("conv5_mask"))
        return layers.conv2d(x, CLASSES, 1, act=None, **self.attr("mask_fcn_logits"))

    def mask_loss(self):
        layers = self.fluid.layers
        mask_rois, has_mask, mask_int32 = layers.generate_mask_labels(
            rois=self.sampled, gt_classes=self.gt_label, is_crowd=self.is_crowd, gt_segms=self.gt_masks,
            im_info=self.im_info, num_classes=CLASSES, resolution=10, labels_int32=self.labels_int32)
        logits = self.mask_head(mask_rois)
        flat = layers.reshape(logits, (-1, CLASSES * 10 * 10))
        mask_label = layers.cast(x=mask_int32, dtype="float32")
        mask_label.stop_gradient = True
        loss = layers.sigmoid_cross_entropy_with_logits(x=flat, label=mask_label, ignore_index=-1, normalize=True)
        return layers.reduce_sum(loss, name="loss_mask"), has_mask

    def detect(self):
        layers = self.fluid.layers
        score, delta = self.box_head(self.rois)
        im_scale = layers.slice(self.im_info, [1], starts=[2], ends=[3])
        im_scale_lod = layers.sequence_expand(im_scale, self.rois)
        boxes = self.rois / im_scale_lod
        prob = layers.softmax(score, use_cudnn=False)
        delta = layers.reshape(delta, (-1, CLASSES, 4))
        decoded = layers.box_coder(prior_box=boxes, prior_box_var=[0.1, 0.1, 0.2, 0.2], target_box=delta,
                                   code_type="decode_center_size", box_normalized=False, axis=1)
        clipped = layers.box_clip(input=decoded, im_info=self.im_shape)
        return layers.multiclass_nms(bboxes=clipped, scores=prob, score_threshold=0.05, nms_top_k=-1,
                                     nms_threshold=0.5, keep_top_k=8, normalized=False), prob


def trained(fluid, name, **options):
    """Losses of the training program; a test program that is built again without targets."""
    model, masks = RCNN(fluid, **options), options.get("masks", False)
    model.features()
    model.rpn_heads()
    rpn_cls, rpn_reg = model.rpn_loss()
    model.sample_rois()
    losses, extra = [rpn_cls, rpn_reg] + list(model.box_loss()), [model.labels_int32, model.sampled]
    if masks:
        loss_mask, has_mask = model.mask_loss()
        losses.append(loss_mask)
        extra.append(has_mask)
    loss = fluid.layers.sum(losses)
    lr = fluid.layers.linear_lr_warmup(fluid.layers.piecewise_decay([3], [0.02, 0.002]), 2, 0.005, 0.02)
    fluid.optimizer.Momentum(lr, 0.9, regularization=fluid.regularizer.L2Decay(1e-4)).minimize(loss)
    test_program = fluid.Program()
    with fluid.program_guard(test_program, fluid.Program()), fluid.unique_name.guard():
        model = RCNN(fluid, **options)
        model.features()
        model.rpn_heads(False)
        pred, prob = model.detect()
        fetch = [pred, prob, model.rois]
        if masks:
            fetch.append(fluid.layers.sigmoid(model.mask_head(model.rois)))
        test_program = test_program.clone(for_test=True)
    return {"feed": feeds(name, masks), "fetch": [loss] + losses + extra, "test": test_program, "test_fetch": fetch}


@net("faster_rcnn")
def faster_rcnn(fluid):
    return trained(fluid, "faster_rcnn", roi_func="RoIPool")


@net("mask_rcnn")
def mask_rcnn(fluid):
    return trained(fluid, "mask_rcnn", masks=True)


@net("mask_rcnn_fpn")
def mask_rcnn_fpn(fluid):
    return trained(fluid, "mask_rcnn_fpn", masks=True, levels=3)
