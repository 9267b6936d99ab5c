// Prior boxes on a regular grid within each cell of a feature map.
#include <cmath>
#include <limits>

#include "ops/declare/declare.h"
#include "ops/detection/grid_boxes.h"

namespace anabranch::detection::density_prior_box_op {
namespace {

void infer(InferContext& c) {
  check_rank(c, "Input", 4, 4);
  check_rank(c, "Image", 4, 4);
  check_variances(c);
  check_steps(c);
  check_positive<float>(c, "fixed_sizes");
  check_positive<float>(c, "fixed_ratios");
  check_positive<int32_t>(c, "densities");
  const auto& densities = c.attr<std::vector<int32_t>>("densities");
  const size_t sizes = c.attr<std::vector<float>>("fixed_sizes").size();
  AB_CHECK(densities.size() == sizes, InvalidArgument, "densities must have one for each of the {} fixed_sizes, got {}",
           sizes, densities.size());
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto ratios = static_cast<int64_t>(c.attr<std::vector<float>>("fixed_ratios").size());
  int64_t n = 0;
  for (int64_t d : densities) {
    AB_CHECK(d * d <= (kMost - n) / std::max<int64_t>(1, ratios), InvalidArgument,
             "densities must give at most {} boxes per cell, got more at density {}", kMost, d);
    n += ratios * d * d;
  }
  set_grid_outputs(c, "Boxes", n);
  if (!c.attr<bool>("flatten_to_2d")) return;
  for (const char* slot : {"Boxes", "Variances"}) {
    Meta& m = c.out(slot);
    m.shape = Shape{c.runtime() ? m.shape.numel() / 4 : kUnknown, 4};
  }
}

struct Sizes {
  std::vector<float> sizes, ratios;
  std::vector<int32_t> densities;
};

// For each size with density d and each ratio, d by d boxes whose centres divide the cell evenly, in whole pixels.
template <class T> void boxes_at_point(const Sizes& s, const PointGrid<T>& g, std::vector<PlacedBox<T>>* made) {
  made->clear();
  const T side = std::trunc((g.step_x + g.step_y) / 2);
  for (size_t i = 0; i < s.sizes.size(); ++i) {
    const int32_t density = s.densities[i];
    const T shift = std::trunc(side / static_cast<T>(density)), first = (shift - side) / 2;
    for (float ratio : s.ratios) {
      const T root = std::sqrt(static_cast<T>(ratio)), size = static_cast<T>(s.sizes[i]);
      for (int32_t k = 0; k < density * density; ++k) {
        made->push_back({first + static_cast<T>(k % density) * shift, first + static_cast<T>(k / density) * shift,
                         size * root / 2, size / root / 2});
      }
    }
  }
}

AB_OP(density_prior_box)
    .doc(
        "Boxes[y, x] = for each fixed size s with density d and each fixed ratio r, d by d boxes of s sqrt(r) by s / "
        "sqrt(r) pixels, spread over cell (y, x) of Input, as fractions of the sides of Image, clipped to them.")
    .source("Zhang et al., FaceBoxes, IJCB 2017, arXiv:1708.05234")
    .in("Input", "[N, C, H, W] float feature map; only its extents are read")
    .in("Image", "[N, C, height, width] image; only its extents are read")
    .out("Boxes", "[H, W, boxes of a cell, 4], or [their number, 4]: left, top, right, bottom")
    .out("Variances", "like Boxes: variances, for each box")
    .required_attr("variances", AttrType::kFloats, "4 numbers above 0")
    .attr<std::vector<float>>("fixed_sizes", {}, "sizes above 0, in pixels of Image")
    .attr<std::vector<float>>("fixed_ratios", {}, "widths over heights, above 0")
    .attr<std::vector<int32_t>>("densities", {}, "boxes along a side of a cell, for each of fixed_sizes, above 0")
    .attr<bool>("clip", true, "clips boxes to the image")
    .attr<bool>("flatten_to_2d", false, "flattens the outputs to two axes")
    .attr<float>("step_w", 0.0f, "width of a cell in pixels; 0: width of Image / width of Input")
    .attr<float>("step_h", 0.0f, "height of a cell in pixels; 0: height of Image / height of Input")
    .attr<float>("offset", 0.5f, "centre of the boxes in a cell, as a fraction of it")
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("Input")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      Sizes sizes{op.attr<std::vector<float>>("fixed_sizes"), op.attr<std::vector<float>>("fixed_ratios"),
                  op.attr<std::vector<int32_t>>("densities")};
      return [sizes = std::move(sizes), at_point = std::vector<PlacedBox<T>>(),
              variances = op.attr<std::vector<float>>("variances"), step_w = op.attr<float>("step_w"),
              step_h = op.attr<float>("step_h"), offset = op.attr<float>("offset"), clip = op.attr<bool>("clip"),
              input = op.in("Input"), image = op.in("Image"), boxes = op.out("Boxes"),
              spread = op.out("Variances")](KernelContext& c) mutable {
        auto cells = cells_of<T>(c[input].shape(), c[image].shape(), step_w, step_h, offset, clip);
        cells.inside = true;
        if (cells.rows * cells.columns == 0) return;  // without cells the step is undefined
        boxes_at_point(sizes, cells, &at_point);
        fill_grid(c, cells, at_point, variances, c[boxes].mutable_data<T>(), c[spread].mutable_data<T>());
      };
    });

}  // namespace
}  // namespace anabranch::detection::density_prior_box_op
