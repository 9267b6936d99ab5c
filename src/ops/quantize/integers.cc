// Converts numbers to 8-bit integers and back, for inference programs with integer kernels.
#include <limits>

#include "ops/quantize/levels.h"

namespace anabranch::quantize::integers_op {
namespace {

constexpr const char* kInference = "it is for inference";

// The nearest integer, halves to even, clamped to the range of Q. NaN becomes the least value.
template <class Q> float limited(float value) {
  constexpr auto low = static_cast<float>(std::numeric_limits<Q>::lowest());
  constexpr auto high = static_cast<float>(std::numeric_limits<Q>::max());
  const float above = value > low ? value : low;
  return above < high ? above : high;
}
template <class Q> Q rounded(float within) {
  constexpr float kWhole = 0x1.8p23f;  // a sum with it is an integer, the nearest one, halves to even
  return static_cast<Q>(static_cast<int32_t>((within + kWhole) - kWhole));
}

// Clamps in one loop and rounds in the next: a single loop would make compilers emit branches instead of vectors.
template <class Q> void to_bytes(const KernelContext& c, int64_t n, const float* x, float scale, Q* out) {
  c.parallel_for(n, kCheapGrain, [=](int64_t begin, int64_t end) {
    in_wide_vectors([=] {
      constexpr int64_t kTile = 256;
      float within[kTile];
      for (int64_t at = begin; at < end; at += kTile) {
        const int64_t count = std::min(kTile, end - at);
        const float *from = x + at, by = scale;
        Q* to = out + at;
        for (int64_t i = 0; i < count; ++i) within[i] = limited<Q>(from[i] * by);
        for (int64_t i = 0; i < count; ++i) to[i] = rounded<Q>(within[i]);
      }
    });
  });
}

void infer_as(InferContext& c, DType dtype) {
  c.set_out("Output", c.in("Input").shape, dtype);
  c.share_lod("Output", "Input");
}

AB_OP(quantize)
    .doc("Output = the integer nearest to Input Scale, clamped to int8, or to uint8 if is_negative_input is false.")
    .in("Input", "[...] float32")
    .out("Output", "[...] int8 or uint8")
    .attr<bool>("is_negative_input", false, "Output is int8")
    .attr<float>("Scale", 1.0f, "scale: number of levels per unit")
    .ignores("output_format", std::string("NHWC"))
    .infer([](InferContext& c) { infer_as(c, c.attr<bool>("is_negative_input") ? DType::kInt8 : DType::kUInt8); })
    .no_grad(kInference)
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      return [scale = op.attr<float>("Scale"), x = op.in("Input"), out = op.out("Output")](KernelContext& c) {
        const int64_t n = c[x].numel();
        const auto* from = c[x].data<float>();
        visit_dtype(c[out].dtype(), [&]<class Q>(TypeTag<Q>) {
          if constexpr (std::is_same_v<Q, int8_t> || std::is_same_v<Q, uint8_t>) {
            to_bytes<Q>(c, n, from, scale, c[out].mutable_data<Q>());
          }
        });
      };
    });

AB_OP(dequantize)
    .doc("Output = Input / Scale.")
    .in("Input", "[...] int8 or uint8")
    .out("Output", "[...] float32")
    .attr<float>("Scale", 1.0f, "scale: number of levels per unit")
    .infer([](InferContext& c) { infer_as(c, DType::kFloat32); })
    .no_grad(kInference)
    .cpu<int8_t, uint8_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      using Q = T;
      return [scale = 1.0f / op.attr<float>("Scale"), x = op.in("Input"), out = op.out("Output")](KernelContext& c) {
        wide_map(c, kCheapGrain, c[x].numel(), c[x].data<Q>(), c[out].mutable_data<float>(),
                 [=](Q v) { return static_cast<float>(v) * scale; });
      };
    });

AB_OP(requantize)
    .doc("Output = the integer nearest to Input Scale_out / Scale_in, clamped to the dtype of Input.")
    .in("Input", "[...] int8 or uint8")
    .out("Output", "like Input")
    .attr<float>("Scale_in", 1.0f, "scale of Input")
    .attr<float>("Scale_out", 1.0f, "scale of Output")
    .infer([](InferContext& c) { infer_as(c, c.in("Input").dtype); })
    .no_grad(kInference)
    .cpu<int8_t, uint8_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      using Q = T;
      return [scale = op.attr<float>("Scale_out") / op.attr<float>("Scale_in"), x = op.in("Input"),
              out = op.out("Output")](KernelContext& c) {
        wide_map(c, kCheapGrain, c[x].numel(), c[x].data<Q>(), c[out].mutable_data<Q>(),
                 [=](Q v) { return rounded<Q>(limited<Q>(static_cast<float>(v) * scale)); });
      };
    });

}  // namespace
}  // namespace anabranch::quantize::integers_op
