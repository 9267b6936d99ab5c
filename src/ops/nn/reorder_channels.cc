// Between the plain and the blocked layout of images. Made by the pass blocked_layout, not by layers.
#include "opdef/op_def.h"
#include "ops/declare/checks.h"
#include "ops/nn/blocked.h"

namespace anabranch::nn {
namespace {

// One block of channels of one sample: `plain` is [B, pixels], `blocked` [pixels, B].
template <class Move> void each_block(KernelContext& c, const Shape& shape, Move&& move) {
  const int64_t width = channel_block(), pixels = shape[2] * shape[3];
  c.parallel_for(shape[0] * shape[1] / width, 1 + 8192 / std::max<int64_t>(1, pixels * width),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) move(i * pixels * width, pixels, width);
                 });
}

AB_OP(reorder_channels)
    .doc("Out = X in the other layout of images: [N, C / B, H, W, B] instead of [N, C, H, W], or back.")
    .in("X", "[N, C, H, W] float32; C is a multiple of 16")
    .out("Out", "shape as X")
    .attr<bool>("to_blocked", true, "the direction")
    .effects(kEngineOnly)
    .traits(kRowWise)
    .infer([](InferContext& c) {
      check_rank(c, "X", 4, 4);
      const int64_t channels = c.in("X").shape[1];
      AB_CHECK(channels % 16 == 0, InvalidArgument, "reorder_channels: X has {} channels, expected a multiple of 16",
               channels);
      c.same_as("Out", "X");
    })
    .no_grad("placed after gradients are made")
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      const In x = op.in("X");
      const Out out = op.out("Out");
      if (op.attr<bool>("to_blocked")) {
        return [=](KernelContext& c) {
          const float* from = c[x].data<float>();
          float* to = c[out].mutable_data<float>();
          each_block(c, c[x].shape(), [=](int64_t at, int64_t pixels, int64_t width) {
            for (int64_t p = 0; p < pixels; ++p) {
              for (int64_t k = 0; k < width; ++k) to[at + p * width + k] = from[at + k * pixels + p];
            }
          });
        };
      }
      return [=](KernelContext& c) {
        const float* from = c[x].data<float>();
        float* to = c[out].mutable_data<float>();
        each_block(c, c[x].shape(), [=](int64_t at, int64_t pixels, int64_t width) {
          for (int64_t k = 0; k < width; ++k) {
            for (int64_t p = 0; p < pixels; ++p) to[at + k * pixels + p] = from[at + p * width + k];
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::nn
