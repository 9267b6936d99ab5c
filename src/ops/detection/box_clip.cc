// Clips boxes to their images.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection::box_clip_op {
namespace {

void infer(InferContext& c) {
  const Shape& s = c.in("Input").shape;
  check_rank(c, "Input", 1, kMaxRank);
  AB_CHECK(s[s.rank() - 1] == 4 || s[s.rank() - 1] == kUnknown, ShapeMismatch,
           "the last axis of Input must have 4 elements, got {}", s.str());
  check_rank(c, "ImInfo", 2, 2);
  check_shape(c, "ImInfo", Shape{kUnknown, 3});
  check_same_dtype(c, "Input", "ImInfo");
  if (c.runtime()) {
    const auto images = static_cast<int64_t>(one_level_of(c, "Input", true).size()) - 1;
    AB_CHECK(c.in("ImInfo").shape[0] >= images, ShapeMismatch,
             "ImInfo must have a row for each of the {} sequences of Input, got {}", images,
             c.in("ImInfo").shape.str());
  }
  c.same_as("Output", "Input");
}

AB_OP(box_clip)
    .doc(
        "Output = Input with x clipped to [0, width - 1] and y to [0, height - 1] of the image of its sequence, where "
        "width and height are those of ImInfo divided by its scale, rounded.")
    .in("Input", "[boxes, ..., 4] float with a sequence for each image: left, top, right, bottom")
    .in("ImInfo", "[images, 3] like Input: height, width, scale")
    .out("Output", "like Input")
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("Input"), info = op.in("ImInfo"), out = op.out("Output")](KernelContext& c) {
        const std::vector<int64_t>& o = c[x].lod().back();
        const T *from = c[x].data<T>(), *image = c[info].data<T>();
        T* to = c[out].mutable_data<T>();
        const int64_t width = c[x].row_elems();
        for (size_t i = 1; i < o.size(); ++i, image += 3) {
          const T last[2] = {std::round(image[1] / image[2]) - 1, std::round(image[0] / image[2]) - 1};
          const int64_t begin = o[i - 1] * width, n = (o[i] - o[i - 1]) * width;
          for (int64_t k = 0; k < n; ++k) to[begin + k] = std::max(std::min(from[begin + k], last[k % 2]), T(0));
        }
      };
    });

}  // namespace
}  // namespace anabranch::detection::box_clip_op
