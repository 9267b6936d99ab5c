// Converts images between the plain and the blocked layout. Inserted by the pass blocked_layout, not by layers.
#include "ops/declare/declare.h"
#include "ops/nn/blocked.h"

namespace anabranch::nn::reorder_channels_op {
namespace {

// [rows, columns] to [columns, rows]
void transpose(const float* from, int64_t rows, int64_t columns, float* to) {
  for (int64_t k = 0; k < columns; ++k) {
    for (int64_t r = 0; r < rows; ++r) to[k * rows + r] = from[r * columns + k];
  }
}

AB_OP(reorder_channels)
    .doc("Out = X in the other layout of images: [N, C / B, H, W, B] instead of [N, C, H, W], or back.")
    .in("X", "[N, C, H, W] float32; C is a multiple of 16")
    .out("Out", "like X")
    .attr<bool>("to_blocked", true, "true: to the blocked layout; false: back")
    .effects(kEngineOnly)
    .traits(kRowWise)
    .infer([](InferContext& c) {
      check_rank(c, "X", 4, 4);
      const int64_t channels = c.in("X").shape[1];
      AB_CHECK(channels % 16 == 0, InvalidArgument, "X must have a multiple of 16 channels, got {}", channels);
      c.same_as("Out", "X");
    })
    .no_grad("inserted after the gradients")
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), to_blocked = op.attr<bool>("to_blocked")](KernelContext& c) {
        // One block of channels of one sample: plain it is [B, pixels], blocked [pixels, B].
        const Shape& shape = c[x].shape();
        const int64_t width = channel_block(), pixels = shape[2] * shape[3], size = width * pixels;
        const int64_t rows = to_blocked ? width : pixels, columns = to_blocked ? pixels : width;
        const float* from = c[x].data<float>();
        float* to = c[out].mutable_data<float>();
        c.parallel_each(shape[0] * shape[1] / width, 1 + 8192 / std::max<int64_t>(1, size),
                        [=](int64_t i) { transpose(from + i * size, rows, columns, to + i * size); });
      };
    });

}  // namespace
}  // namespace anabranch::nn::reorder_channels_op
