// The YOLOv3 loss at one scale of its output.
#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"
#include "ops/detection/yolo_terms.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection::yolov3_loss_op {
namespace {

void check_anchors(const InferContext& c) {
  const auto &anchors = c.attr<Ints>("anchors"), &mask = c.attr<Ints>("anchor_mask");
  AB_CHECK(!anchors.empty() && anchors.size() % 2 == 0, InvalidArgument,
           "anchors must have a width and a height for each anchor, got {} numbers", anchors.size());
  for (int32_t side : anchors) AB_CHECK(side > 0, InvalidArgument, "anchors must be above 0, got {}", side);
  AB_CHECK(!mask.empty(), InvalidArgument, "anchor_mask must have at least one anchor, got none");
  const auto n = static_cast<int64_t>(anchors.size() / 2);
  for (int32_t k : mask) {
    AB_CHECK(k >= 0 && k < n, InvalidArgument, "anchor_mask must be below the number of anchors, {}, got {}", n, k);
  }
  const int32_t classes = c.attr<int32_t>("class_num"), ratio = c.attr<int32_t>("downsample_ratio");
  AB_CHECK(classes > 0, InvalidArgument, "class_num must be above 0, got {}", classes);
  AB_CHECK(ratio > 0, InvalidArgument, "downsample_ratio must be above 0, got {}", ratio);
}

void infer(InferContext& c) {
  check_anchors(c);
  check_rank(c, "X", 4, 4);
  check_rank(c, "GTBox", 3, 3);
  check_rank(c, "GTLabel", 2, 2);
  const Shape &x = c.in("X").shape, &box = c.in("GTBox").shape;
  const auto anchors = static_cast<int64_t>(c.attr<Ints>("anchor_mask").size());
  check_shape(c, "X", {kUnknown, anchors * (kYoloParts + c.attr<int32_t>("class_num")), kUnknown, kUnknown});
  AB_CHECK(x[2] == kUnknown || x[3] == kUnknown || x[2] == x[3], ShapeMismatch, "X must be square, got {}", x.str());
  AB_CHECK(x[2] != 0 && x[3] != 0, ShapeMismatch, "X must have at least one cell, got {}", x.str());
  check_shape(c, "GTBox", {x[0], kUnknown, 4});
  check_shape(c, "GTLabel", {box[0], box[1]});
  AB_CHECK(!c.runtime() || c.in("GTLabel").dtype == DType::kInt32, InvalidArgument, "GTLabel must hold int32, got {}",
           dtype_name(c.in("GTLabel").dtype));
  if (c.runtime()) check_same_dtype(c, "GTBox", "X");
  if (c.has_in("GTScore")) {
    check_shape(c, "GTScore", {box[0], box[1]});
    if (c.runtime()) check_same_dtype(c, "GTScore", "X");
  }
  c.set_out("Loss", Shape{x[0]}, c.in("X").dtype);
  c.set_out("ObjectnessMask", {x[0], anchors, x[2], x[3]}, c.in("X").dtype);
  c.set_out("GTMatchMask", {box[0], box[1]}, DType::kInt32);
}

// An output, or scratch memory if the output is not requested.
struct Kept {
  Out out;
  Tensor own;
  Kept(const KernelArgs& op, const char* slot) : out(op.out(slot)) {}
  template <class T> T* data(const KernelContext& c, const Shape& shape) {
    if (c.needs(out)) return c[out].mutable_data<T>();
    own.resize(shape, dtype_of<T>);
    return own.mutable_data<T>();
  }
};

// The op's tensors and their data for image n.
template <class T> struct Truth {
  In x, box, label, score;
  explicit Truth(const KernelArgs& op)
      : x(op.in("X")), box(op.in("GTBox")), label(op.in("GTLabel")), score(op.in("GTScore")) {}
  template <class Mask, class Match>
  Image<T, Mask, Match> of(const KernelContext& c, int64_t n, Mask* objects, Match* matches) const {
    const int64_t first = n * c[label].shape()[1];
    return {c[x].data<T>() + n * c[x].row_elems(),
            c[box].data<T>() + 4 * first,
            c[label].data<int32_t>() + first,
            score ? c[score].data<T>() + first : nullptr,
            objects,
            matches};
  }
};

AB_OP(yolov3_loss)
    .doc(
        "Loss[n] = for each true box whose shape is most like one of the anchors of this scale: (2 - w h) score times "
        "the cross entropy of its position in its cell and the distance of ln(size / anchor), plus score times the "
        "cross entropy of its classes; plus the cross entropy of the confidence of all boxes, except unmatched boxes "
        "that overlap a true box by more than ignore_thresh.")
    .source("Redmon & Farhadi, YOLOv3, arXiv:1804.02767")
    .in("X", "[N, anchors (5 + class_num), H, H] float: tx, ty, tw, th, confidence, classes of each anchor")
    .in("GTBox", "[N, B, 4] like X: x, y of the centre, width, height, as fractions of the image; sizes of 0: padding")
    .in("GTLabel", "[N, B] int32 in [0, class_num)")
    .in_optional("GTScore", "[N, B] like X: weight of a box; 1 if not given")
    .out("Loss", "[N]")
    .out_intermediate("ObjectnessMask", "[N, anchors, H, H]: score of a box's true box, 0: none, -1: close to one")
    .out_intermediate("GTMatchMask", "[N, B] int32: index in anchor_mask, -1: a box of a different scale, or padding")
    .required_attr("class_num", AttrType::kInt, "number of classes, at least 1")
    .attr<Ints>("anchors", {}, "width and height of the anchors of all scales, in pixels of the network's input")
    .attr<Ints>("anchor_mask", {}, "indices of the anchors of this scale")
    .attr<int32_t>("downsample_ratio", 32, "pixels of the network's input per cell of X")
    .attr<float>("ignore_thresh", 0.7f, "boxes with a larger overlap have no loss for their confidence")
    .attr<bool>("use_label_smooth", true, "labels 1 - s and s, s = min(1 / class_num, 1 / 40)")
    .attr<float>("scale_x_y", 1.0f, "scale of a centre's offset from the middle of its cell")
    .infer(infer)
    .grad_reads({"X", "GTBox", "GTLabel", "GTScore"}, {"ObjectnessMask", "GTMatchMask"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [yolo = Yolo<T>(op), truth = Truth<T>(op), loss = op.out("Loss"), objects = Kept(op, "ObjectnessMask"),
              matches = Kept(op, "GTMatchMask")](KernelContext& c) mutable {
        const Shape x = c[truth.x].shape(), labels = c[truth.label].shape();
        yolo.set_extents(x, labels[1]);
        const int64_t cells = yolo.anchors() * x[2] * x[3];
        T* object = objects.data<T>(c, Shape{x[0], cells});
        int32_t* match = matches.data<int32_t>(c, labels);
        T* to = c[loss].mutable_data<T>();
        c.parallel_each(x[0], 1, [&](int64_t n) {
          const Image<T> image = truth.of(c, n, object + n * cells, match + n * labels[1]);
          yolo.match(image);
          to[n] = yolo.loss(image);
        });
      };
    });

AB_GRAD(yolov3_loss)
    .doc("X@GRAD = Loss@GRAD times the derivatives of the terms of the loss.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return
          [yolo = Yolo<T>(op), truth = Truth<T>(op), objects = op.in("ObjectnessMask"), matches = op.in("GTMatchMask"),
           dloss = op.in("Loss@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) mutable {
            if (!c.needs(dx)) return;
            const Shape x = c[truth.x].shape(), labels = c[truth.label].shape();
            yolo.set_extents(x, labels[1]);
            const int64_t cells = yolo.anchors() * x[2] * x[3];
            const T *object = c[objects].data<T>(), *factor = c[dloss].data<T>();
            const int32_t* match = c[matches].data<int32_t>();
            T* to = zeroed<T>(c, dx);
            c.parallel_each(x[0], 1, [&](int64_t n) {
              const auto image = truth.of(c, n, object + n * cells, match + n * labels[1]);
              yolo.loss(image, factor + n, to + n * x.numel(1, 4));
            });
          };
    });

}  // namespace
}  // namespace anabranch::detection::yolov3_loss_op
