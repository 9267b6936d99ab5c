// Anchors of Faster R-CNN: boxes, in pixels, around the points of a feature map.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/detection/grid_boxes.h"

namespace anabranch::detection::anchor_generator_op {
namespace {

void infer(InferContext& c) {
  check_rank(c, "Input", 4, 4);
  check_variances(c);
  check_positive<float>(c, "anchor_sizes");
  check_positive<float>(c, "stride");
  const auto &sizes = c.attr<std::vector<float>>("anchor_sizes"), &stride = c.attr<std::vector<float>>("stride");
  AB_CHECK(!sizes.empty(), InvalidArgument, "anchor_sizes must have at least one size, got none");
  AB_CHECK(stride.size() == 2, InvalidArgument, "stride must have 2 numbers, got {}", stride.size());
  set_grid_outputs(c, "Anchors",
                   static_cast<int64_t>(c.attr<std::vector<float>>("aspect_ratios").size() * sizes.size()));
}

// The area of a cell at another aspect ratio, rounded to whole pixels, times size / stride.
template <class T> std::vector<PlacedBox<T>> boxes_at_point(const KernelArgs& op) {
  const auto& stride = op.attr<std::vector<float>>("stride");
  const T w = static_cast<T>(stride[0]), h = static_cast<T>(stride[1]);
  std::vector<PlacedBox<T>> made;
  for (float ratio : op.attr<std::vector<float>>("aspect_ratios")) {
    const T base_w = std::round(std::sqrt(w * h / static_cast<T>(ratio)));
    const T base_h = std::round(base_w * static_cast<T>(ratio));
    for (float size : op.attr<std::vector<float>>("anchor_sizes")) {
      made.push_back({0, 0, (static_cast<T>(size) / w * base_w - 1) / 2, (static_cast<T>(size) / h * base_h - 1) / 2});
    }
  }
  return made;
}

AB_OP(anchor_generator)
    .doc(
        "Anchors[y, x] = boxes of pixels around the point of cell (y, x) of Input, one for each aspect ratio and size.")
    .source("Ren et al., Faster R-CNN, NIPS 2015, arXiv:1506.01497")
    .in("Input", "[N, C, H, W] float feature map; only its extents are read")
    .out("Anchors", "[H, W, boxes of a cell, 4]: left, top, right, bottom")
    .out("Variances", "like Anchors: variances, for each box")
    .required_attr("anchor_sizes", AttrType::kFloats, "at least one size above 0, in pixels of the image")
    .required_attr("aspect_ratios", AttrType::kFloats, "heights over widths")
    .required_attr("variances", AttrType::kFloats, "4 numbers above 0")
    .attr<std::vector<float>>("stride", {16.0f, 16.0f}, "width and height of a cell in pixels, above 0")
    .attr<float>("offset", 0.5f, "centre of the boxes in a cell, from its first pixel (0) to its last (1)")
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto& stride = op.attr<std::vector<float>>("stride");
      const T w = static_cast<T>(stride[0]), h = static_cast<T>(stride[1]),
              offset = static_cast<T>(op.attr<float>("offset"));
      return [=, at_point = boxes_at_point<T>(op), variances = op.attr<std::vector<float>>("variances"),
              input = op.in("Input"), boxes = op.out("Anchors"), spread = op.out("Variances")](KernelContext& c) {
        const Shape& s = c[input].shape();
        const PointGrid<T> cells{s[2], s[3], offset * (w - 1), offset * (h - 1), w, h, 1, 1, false, false};
        fill_grid(c, cells, at_point, variances, c[boxes].mutable_data<T>(), c[spread].mutable_data<T>());
      };
    });

}  // namespace
}  // namespace anabranch::detection::anchor_generator_op
