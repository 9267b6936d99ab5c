// Converts offsets of a map's points to the corners of text boxes in the image.
#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection::polygon_box_transform_op {
namespace {

constexpr int64_t kStride = 4;  // pixels of the image per cell of the map

AB_OP(polygon_box_transform)
    .doc("Output[n, k, y, x] = 4 x - Input for even k (x of a corner), 4 y - Input for odd k.")
    .source("Zhou et al., EAST, CVPR 2017, arXiv:1704.03155")
    .in("Input", "[N, 2 corners, H, W] float")
    .out("Output", "like Input")
    .may_share("Input", "Output")
    .infer([](InferContext& c) {
      check_rank(c, "Input", 4, 4);
      const int64_t channels = c.in("Input").shape[1];
      AB_CHECK(channels == kUnknown || channels % 2 == 0, InvalidArgument,
               "Input must have an even number of channels, got {}", c.in("Input").shape.str());
      c.same_shape("Output", "Input");
    })
    .no_grad(kBoxesAreFixed)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("Input"), out = op.out("Output")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        const int64_t h = s[2], w = s[3];
        c.parallel_each(s[0] * s[1] * h, std::max<int64_t>(1, 4 * kBoxGrain / std::max<int64_t>(1, w)),
                        [=](int64_t line) {
                          const bool is_x = line / h % 2 == 0;
                          const auto step = static_cast<T>(is_x ? kStride : 0);
                          const auto first = static_cast<T>(is_x ? 0 : kStride * (line % h));
                          for (int32_t i = 0; i < w; ++i) {  // 32-bit integers vectorize
                            to[line * w + i] = first + step * static_cast<T>(i) - from[line * w + i];
                          }
                        });
      };
    });

}  // namespace
}  // namespace anabranch::detection::polygon_box_transform_op
