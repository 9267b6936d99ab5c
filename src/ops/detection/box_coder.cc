// Boxes as offsets from prior boxes, and back.
#include <array>
#include <cmath>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection::box_coder_op {
namespace {

constexpr const char *kEncode = "encode_center_size", *kDecode = "decode_center_size";

// A box as width, height and centre.
template <class T> struct Centred {
  T w, h, x, y;
  Centred(const T* b, T edge) : w(b[2] - b[0] + edge), h(b[3] - b[1] + edge), x(b[0] + w / 2), y(b[1] + h / 2) {}
};

template <class T> void encode(const T* target, const T* prior, const T* variance, T edge, T* out) {
  const Centred<T> p(prior, edge);
  const T w = target[2] - target[0] + edge, h = target[3] - target[1] + edge;
  out[0] = ((target[2] + target[0]) / 2 - p.x) / p.w / variance[0];
  out[1] = ((target[3] + target[1]) / 2 - p.y) / p.h / variance[1];
  out[2] = std::log(std::abs(w / p.w)) / variance[2];
  out[3] = std::log(std::abs(h / p.h)) / variance[3];
}

template <class T> void decode(const T* offset, const T* prior, const T* variance, T edge, T* out) {
  const Centred<T> p(prior, edge);
  const T x = variance[0] * offset[0] * p.w + p.x, y = variance[1] * offset[1] * p.h + p.y;
  const T w = std::exp(variance[2] * offset[2]) * p.w, h = std::exp(variance[3] * offset[3]) * p.h;
  out[0] = x - w / 2;
  out[1] = y - h / 2;
  out[2] = x + w / 2 - edge;
  out[3] = y + h / 2 - edge;
}

void infer(InferContext& c) {
  check_boxes(c, "PriorBox");
  check_same_dtype(c, "TargetBox", "PriorBox");
  const auto& variance = c.attr<std::vector<float>>("variance");
  AB_CHECK(variance.empty() || variance.size() == 4, InvalidArgument, "variance must have 4 numbers or none, got {}",
           variance.size());
  if (c.has_in("PriorBoxVar")) {
    check_rank(c, "PriorBoxVar", 2, 2);
    check_same(c, "PriorBoxVar", "PriorBox");
    AB_CHECK(variance.empty(), InvalidArgument, "variance must be empty if PriorBoxVar is given, got 4 numbers");
  }
  const Shape& target = c.in("TargetBox").shape;
  const int64_t priors = c.in("PriorBox").shape[0];
  const bool decodes = c.attr<std::string>("code_type") == kDecode, by_row = c.attr<int32_t>("axis") == 1;
  if (!decodes) {
    check_boxes(c, "TargetBox");
    c.set_out("OutputBox", Shape{target[0], priors, 4}, c.in("TargetBox").dtype);
  } else {
    check_rank(c, "TargetBox", 3, 3);
    Shape needed{kUnknown, kUnknown, 4};
    needed.set(by_row ? 0 : 1, priors);
    check_shape(c, "TargetBox", needed);
    c.set_out("OutputBox", target, c.in("TargetBox").dtype);
  }
  c.share_lod("OutputBox", decodes && by_row ? "PriorBox" : "TargetBox");  // a row for each of these boxes
}

template <class T> std::array<T, 4> variances_of(const KernelArgs& op) {
  std::array<T, 4> made{1, 1, 1, 1};
  const auto& given = op.attr<std::vector<float>>("variance");
  std::copy(given.begin(), given.end(), made.begin());
  return made;
}

constexpr auto coder = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const bool encodes = op.attr<std::string>("code_type") == kEncode, by_row = op.attr<int32_t>("axis") == 1;
  return
      [=, shared = variances_of<T>(op), edge = edge_of<T>(op.attr<bool>("box_normalized")), prior = op.in("PriorBox"),
       variance = op.in("PriorBoxVar"), target = op.in("TargetBox"), out = op.out("OutputBox")](KernelContext& c) {
        const T *priors = c[prior].data<T>(), *targets = c[target].data<T>();
        const T* variances = variance ? c[variance].data<T>() : nullptr;
        T* to = c[out].mutable_data<T>();
        const int64_t columns = c[out].shape()[1];
        const auto chunks = [=, &shared](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) {
            const int64_t i = k / columns, j = k % columns, p = !encodes && by_row ? i : j;
            const T* v = variances ? variances + p * 4 : shared.data();
            if (encodes) {
              encode(targets + i * 4, priors + p * 4, v, edge, to + k * 4);
            } else {
              decode(targets + k * 4, priors + p * 4, v, edge, to + k * 4);
            }
          }
        };
        c.parallel_for(c[out].numel() / 4, kBoxGrain, chunks);
      };
};

AB_OP(box_coder)
    .doc(
        "encode: OutputBox[i, j] = box i relative to prior j: ((x - px) / pw, (y - py) / ph, ln|w / pw|, ln|h / ph|) / "
        "variances, with centres (x, y) and sizes w, h; decode: the inverse.")
    .source("Liu et al., SSD: single shot multibox detector, ECCV 2016, arXiv:1512.02325")
    .in("PriorBox", "[M, 4] float: left, top, right, bottom")
    .in_optional("PriorBoxVar", "[M, 4] variances of each prior")
    .in("TargetBox", "encode: [N, 4] boxes; decode: [N, M, 4] offsets (axis 1: [M, N, 4])")
    .out("OutputBox", "[N, M, 4], decode: like TargetBox; with the LoD of TargetBox")
    .attr<std::string>("code_type", kEncode, "encode_center_size or decode_center_size",
                       one_of("code_type", {kEncode, kDecode}))
    .attr<bool>("box_normalized", true, "false: boxes are in whole pixels and include their right and bottom ones")
    .attr<int32_t>("axis", 0, "decode: axis of TargetBox that counts the priors: 0 means axis 1, 1 means axis 0",
                   within<int32_t>("axis", 0, 1))
    .attr<std::vector<float>>("variance", {}, "4 numbers for all priors instead of PriorBoxVar, or none")
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("PriorBox")
    .cpu<float, double>(coder);

}  // namespace
}  // namespace anabranch::detection::box_coder_op
