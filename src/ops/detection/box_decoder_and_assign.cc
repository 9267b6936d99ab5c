// Decodes boxes of all classes from offsets, and selects the box of each row's most likely class.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection::box_decoder_and_assign_op {
namespace {

void infer(InferContext& c) {
  for (const char* slot : {"PriorBox", "TargetBox", "BoxScore"}) {
    check_rank(c, slot, 2, 2);
    check_same_dtype(c, slot, "PriorBox");
  }
  check_boxes(c, "PriorBox");
  const Shape &prior = c.in("PriorBox").shape, &score = c.in("BoxScore").shape;
  check_shape(c, "BoxScore", {prior[0], kUnknown});
  check_shape(c, "TargetBox", {prior[0], score[1] == kUnknown ? kUnknown : 4 * score[1]});
  if (c.has_in("PriorBoxVar")) {
    check_shape(c, "PriorBoxVar", Shape{4});
    check_same_dtype(c, "PriorBoxVar", "PriorBox");
  }
  const DType dtype = c.in("PriorBox").dtype;
  c.set_out("DecodeBox", c.in("TargetBox").shape, dtype);
  c.set_out("OutputAssignBox", prior, dtype);
  c.share_lod("DecodeBox", "TargetBox");
  c.share_lod("OutputAssignBox", "PriorBox");
}

template <class T> void decode(const T* prior, const T* offsets, const T* variance, T clip, T* to) {
  for (int64_t axis : {int64_t{0}, int64_t{1}}) {
    const T size = prior[axis + 2] - prior[axis] + 1, by = variance ? variance[axis] : T(1);
    const T grown = std::min((variance ? variance[axis + 2] : T(1)) * offsets[axis + 2], clip);
    const T middle = by * offsets[axis] * size + prior[axis] + size / 2, half = std::exp(grown) * size / 2;
    to[axis] = middle - half;
    to[axis + 2] = middle + half - 1;
  }
}

// The class with the highest score, except class 0, the background. 0 if no score is above -1.
template <class T> int64_t likeliest(const T* scores, int64_t classes) {
  T most = -1;
  int64_t best = 0;
  for (int64_t k = 1; k < classes; ++k) {
    if (scores[k] > most) {
      most = scores[k];
      best = k;
    }
  }
  return best;
}

AB_OP(box_decoder_and_assign)
    .doc(
        "DecodeBox = for each class the prior box moved by variance * offset * size and scaled by exp(min(variance * "
        "offset, box_clip)); OutputAssignBox = the box of the class, other than 0, with the highest score.")
    .source("Girshick, Fast R-CNN, ICCV 2015, arXiv:1504.08083")
    .in("PriorBox", "[N, 4] float: left, top, right, bottom, in pixels")
    .in_optional("PriorBoxVar", "[4] like PriorBox: factors of the offsets")
    .in("TargetBox", "[N, 4 classes] like PriorBox: offsets")
    .in("BoxScore", "[N, classes] like PriorBox")
    .out("DecodeBox", "like TargetBox")
    .out("OutputAssignBox", "like PriorBox")
    .attr<float>("box_clip", 4.135f, "upper bound of the logarithm of a scale factor")
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("PriorBox")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [clip = static_cast<T>(op.attr<float>("box_clip")), prior = op.in("PriorBox"),
              variance = op.in("PriorBoxVar"), target = op.in("TargetBox"), score = op.in("BoxScore"),
              decoded = op.out("DecodeBox"), assigned = op.out("OutputAssignBox")](KernelContext& c) {
        const T *priors = c[prior].data<T>(), *offsets = c[target].data<T>();
        const T *scores = c[score].data<T>(), *by = variance ? c[variance].data<T>() : nullptr;
        T *boxes = c[decoded].mutable_data<T>(), *best = c[assigned].mutable_data<T>();
        const int64_t classes = c[score].shape()[1];
        c.parallel_each(c[prior].rows(), kBoxGrain / (classes + 1) + 1, [=](int64_t r) {
          for (int64_t k = 4 * r * classes; k < 4 * (r + 1) * classes; k += 4) {
            decode(priors + 4 * r, offsets + k, by, clip, boxes + k);
          }
          const int64_t k = likeliest(scores + r * classes, classes);
          std::copy_n(k > 0 ? boxes + 4 * (r * classes + k) : priors + 4 * r, 4, best + 4 * r);
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection::box_decoder_and_assign_op
