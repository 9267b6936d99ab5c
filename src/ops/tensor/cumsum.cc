// Running sums along an axis.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/device/args_tensor.h"
#include "ops/device/launch_fold.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::tensor::cumsum_op {
namespace {

// Running sums of one line. `from_end`: from the last element; `exclusive`: without the element itself.
template <class T> void running_sum(const T* x, T* out, int64_t n, int64_t step, bool from_end, bool exclusive) {
  T sum = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t at = (from_end ? n - 1 - k : k) * step;
    const T value = x[at];
    out[at] = exclusive ? sum : sum + value;
    sum += value;
  }
}

AB_OP(cumsum)
    .doc("Cumulative sum of X along an axis.")
    .in("X", "[...] numbers")
    .out("Out", "[...] like X")
    .attr<int32_t>("axis", -1, "axis along which elements are summed; a negative axis counts from the last")
    .attr<bool>("exclusive", false, "excludes each element from its own sum")
    .attr<bool>("reverse", false, "sums from the last element to the first")
    .infer([](InferContext& c) {
      normal_axis(c.attr<int32_t>("axis"), c.in("X").shape.rank(), "axis");
      c.same_as("Out", "X");
    })
    .grad([](GradContext& g) {
      g.op("cumsum").in("X", g.dout("Out")).out("Out", g.din("X")).attr("reverse", !g.attr<bool>("reverse"));
    })
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axis = op.attr<int32_t>("axis"), exclusive = op.attr<bool>("exclusive"),
              from_end = op.attr<bool>("reverse"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const int at = normal_axis(axis, s.rank(), "axis");
        const int64_t n = s[at], inner = s.numel(at + 1, s.rank()), lines = s.numel(0, at) * inner;
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_each(lines, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, n)), [=](int64_t line) {
          const int64_t first = line / inner * n * inner + line % inner;
          running_sum(from + first, to + first, n, inner, from_end, exclusive);
        });
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      const int32_t flags = (op.attr<bool>("exclusive") ? 1 : 0) | (op.attr<bool>("reverse") ? 2 : 0);
      return [kernel = device::kernel_of<T>("running_sum"), axis = op.attr<int32_t>("axis"), flags, x = op.in("X"),
              out = op.out("Out")](const DeviceContext& c) {
        const device::LinesOf l(c[x].shape(), axis);
        c.launch(kernel, device::RunningSumArgs{device::operand(c[x]), device::operand(c[out]), l.outer, l.width,
                                                l.inner, flags, 0});
      };
    });

}  // namespace
}  // namespace anabranch::tensor::cumsum_op
