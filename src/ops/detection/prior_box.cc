// Prior boxes of SSD: several shapes around the centre of each cell of a feature map.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/detection/grid_boxes.h"

namespace anabranch::detection::prior_box_op {
namespace {

constexpr float kSameRatio = 1e-6f;  // closer ratios are equal

bool holds(const std::vector<float>& ratios, float ratio) {
  return std::any_of(ratios.begin(), ratios.end(), [=](float r) { return std::abs(r - ratio) < kSameRatio; });
}

// 1 and the other ratios without duplicates; with their reciprocals if `flip` is set.
std::vector<float> all_ratios(const std::vector<float>& given, bool flip) {
  std::vector<float> made{1.0f};
  for (float ratio : given) {
    if (holds(made, ratio)) continue;
    made.push_back(ratio);
    if (flip) made.push_back(1.0f / ratio);
  }
  return made;
}

template <class Args> std::vector<float> ratios_of(const Args& c) {
  return all_ratios(c.template attr<std::vector<float>>("aspect_ratios"), c.template attr<bool>("flip"));
}

void infer(InferContext& c) {
  check_rank(c, "Input", 4, 4);
  check_rank(c, "Image", 4, 4);
  check_variances(c);
  check_steps(c);
  check_positive<float>(c, "min_sizes");
  const auto &low = c.attr<std::vector<float>>("min_sizes"), &high = c.attr<std::vector<float>>("max_sizes");
  AB_CHECK(!low.empty(), InvalidArgument, "min_sizes must have at least one size, got none");
  AB_CHECK(high.empty() || high.size() == low.size(), InvalidArgument,
           "max_sizes must be empty or have one size for each of the {} min_sizes, got {}", low.size(), high.size());
  for (size_t i = 0; i < high.size(); ++i) {
    AB_CHECK(high[i] > low[i], InvalidArgument, "max_sizes must be above min_sizes, got {} and {}", high[i], low[i]);
  }
  set_grid_outputs(c, "Boxes", static_cast<int64_t>(ratios_of(c).size() * low.size() + high.size()));
}

// Boxes of width s sqrt(ratio) and height s / sqrt(ratio) for each size, and one of the size between min and max.
template <class T> std::vector<PlacedBox<T>> boxes_at_point(const KernelArgs& op) {
  const auto &low = op.attr<std::vector<float>>("min_sizes"), &high = op.attr<std::vector<float>>("max_sizes");
  const std::vector<float> ratios = ratios_of(op);
  const bool largest_second = op.attr<bool>("min_max_aspect_ratios_order");
  std::vector<PlacedBox<T>> made;
  for (size_t i = 0; i < low.size(); ++i) {
    const size_t first = made.size();
    for (float ratio : ratios) {
      const T root = std::sqrt(static_cast<T>(ratio)), size = static_cast<T>(low[i]);
      made.push_back({0, 0, size * root / 2, size / root / 2});
    }
    if (high.empty()) continue;
    const T half = std::sqrt(static_cast<T>(low[i]) * static_cast<T>(high[i])) / 2;
    made.insert(largest_second ? made.begin() + static_cast<std::ptrdiff_t>(first) + 1 : made.end(),
                {0, 0, half, half});
  }
  return made;
}

AB_OP(prior_box)
    .doc(
        "Boxes[y, x] = boxes around the centre of cell (y, x) of Input, as fractions of the sides of Image: for each "
        "min_sizes s and each aspect ratio r a box of s sqrt(r) by s / sqrt(r), and for its max_size m a square of "
        "sqrt(s m).")
    .source("Liu et al., SSD: single shot multibox detector, ECCV 2016, arXiv:1512.02325")
    .in("Input", "[N, C, H, W] float feature map; only its extents are read")
    .in("Image", "[N, C, height, width] image; only its extents are read")
    .out("Boxes", "[H, W, boxes of a cell, 4]: left, top, right, bottom")
    .out("Variances", "like Boxes: variances, for each box")
    .required_attr("min_sizes", AttrType::kFloats, "at least one size above 0, in pixels of Image")
    .attr<std::vector<float>>("max_sizes", {}, "none, or one larger size for each of min_sizes")
    .required_attr("aspect_ratios", AttrType::kFloats, "widths over heights; 1 is always among them")
    .required_attr("variances", AttrType::kFloats, "4 numbers above 0")
    .attr<bool>("flip", true, "adds 1 / r for each aspect ratio r")
    .attr<bool>("clip", true, "clips boxes to the image")
    .attr<float>("step_w", 0.0f, "width of a cell in pixels; 0: width of Image / width of Input")
    .attr<float>("step_h", 0.0f, "height of a cell in pixels; 0: height of Image / height of Input")
    .attr<float>("offset", 0.5f, "centre of the boxes in a cell, as a fraction of it")
    .attr<bool>("min_max_aspect_ratios_order", false, "puts the box of max_size second instead of last")
    .ignores({"use_mkldnn", "use_quantizer"})
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("Input")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [at_point = boxes_at_point<T>(op), variances = op.attr<std::vector<float>>("variances"),
              step_w = op.attr<float>("step_w"), step_h = op.attr<float>("step_h"), offset = op.attr<float>("offset"),
              clip = op.attr<bool>("clip"), input = op.in("Input"), image = op.in("Image"), boxes = op.out("Boxes"),
              spread = op.out("Variances")](KernelContext& c) {
        const auto cells = cells_of<T>(c[input].shape(), c[image].shape(), step_w, step_h, offset, clip);
        fill_grid(c, cells, at_point, variances, c[boxes].mutable_data<T>(), c[spread].mutable_data<T>());
      };
    });

}  // namespace
}  // namespace anabranch::detection::prior_box_op
