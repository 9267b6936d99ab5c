// Simulated quantization for training: rounds numbers to levels and keeps them as numbers of the same dtype. The ops
// differ in the source of the scale.
#include "ops/quantize/levels.h"

namespace anabranch::quantize::fake_quantize_op {
namespace {

void infer_whole(InferContext& c) {
  c.same_as("Out", "X");
  c.set_out("OutScale", scalar_shape(), c.in("X").dtype);
}

AB_OP(fake_quantize_abs_max)
    .doc("OutScale = max |X|, Out = round(X / OutScale (2^(bit_length - 1) - 1)); 0 where OutScale is 0.")
    .in("X", "[...] float")
    .out("Out", "[...] like X")
    .out("OutScale", "[1] like X")
    .with(bit_length)
    .infer(infer_whole)
    .no_grad(kNoGrad)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [levels = levels_of(op.attr<int32_t>("bit_length")), x = op.in("X"), out = op.out("Out"),
              scale = op.out("OutScale")](KernelContext& c) {
        const T most = max_abs<T>(c, c[x]);
        *c[scale].mutable_data<T>() = most;
        const Rounding<T> rounding{most, static_cast<T>(levels)};
        rounding(c, c[x].data<T>(), c[out].mutable_data<T>(), c[x].numel());
      };
    });

AB_OP(fake_channel_wise_quantize_abs_max)
    .doc("Like fake_quantize_abs_max, with one scale per row of X.")
    .in("X", "[C, ...] float")
    .out("Out", "[C, ...] like X")
    .out("OutScale", "[C] like X")
    .with(bit_length)
    .infer([](InferContext& c) {
      infer_whole(c);
      check_rank(c, "X", 1, kMaxRank);
      c.set_out("OutScale", Shape{c.in("X").shape[0]}, c.in("X").dtype);
    })
    .no_grad(kNoGrad)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [levels = levels_of(op.attr<int32_t>("bit_length")), x = op.in("X"), out = op.out("Out"),
              scale = op.out("OutScale")](KernelContext& c) {
        const int64_t width = c[x].row_elems();
        const T* from = c[x].data<T>();
        T *to = c[out].mutable_data<T>(), *scales = c[scale].mutable_data<T>();
        c.parallel_each(c[x].rows(), kMathGrain / std::max<int64_t>(1, width) + 1, [=](int64_t r) {
          scales[r] = max_abs(from + r * width, width);
          const Rounding<T> rounding{scales[r], static_cast<T>(levels)};
          rounding(from + r * width, to + r * width, width);
        });
      };
    });

}  // namespace
}  // namespace anabranch::quantize::fake_quantize_op
