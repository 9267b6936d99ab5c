// A rectifier with a learned slope below 0.
#include <algorithm>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"
#include "ops/kernels/binary_run.h"
#include "ops/kernels/outputs.h"

namespace anabranch::nn::prelu_op {
namespace {

constexpr int64_t kGrain = 8192;

// The slope of an element: one for all, one per channel (axis 1), or one per element of a sample.
struct Slopes {
  int64_t count, run;  // `run` adjacent elements share a slope; after `count` slopes they repeat
  Slopes(const std::string& mode, const Shape& x)
      : count(mode == "all"       ? 1
              : mode == "channel" ? x[1]
                                  : x.numel(1, x.rank())),
        run(mode == "channel" ? x.numel(2, x.rank()) : 1) {}
  // fn(first, n, slope, step): the n elements from `first` on have the slopes slope, slope + step, ...
  template <class Fn> void each_run(int64_t begin, int64_t end, Fn&& fn) const {
    for (int64_t i = begin; i < end;) {
      const int64_t slope = i / run % count, of_row = run == 1 ? count - slope : run - i % run;
      const int64_t n = count == 1 ? end - i : std::min(end - i, of_row);
      fn(i, n, slope, count > 1 && run == 1 ? 1 : 0);
      i += n;
    }
  }
};

void infer(InferContext& c) {
  check_same_dtype(c, "X", "Alpha");
  const std::string& mode = c.attr<std::string>("mode");
  const Shape& x = c.in("X").shape;
  check_rank(c, "X", mode == "all" ? 1 : 2, kMaxRank);
  const int64_t needed = mode == "all" ? 1 : mode == "channel" ? x[1] : x.slice(1, x.rank()).numel();
  check_numel(c, "Alpha", needed);
  c.same_as("Out", "X");
}

device::PreluArgs prelu_args(const Tensor& x, const Tensor& alpha, const std::string& mode) {
  const Slopes slopes(mode, x.shape());
  const int64_t block = slopes.count * slopes.run;
  device::PreluArgs a{};
  a.x = device::operand(x);
  a.alpha = device::operand(alpha);
  // One slope for all: one block.
  a.outer = slopes.count == 1 ? 1 : block ? x.numel() / block : 0;
  a.alphas = slopes.count;
  a.inner = slopes.count == 1 ? x.numel() : slopes.run;
  return a;
}

AB_OP(prelu)
    .doc("Out = X where X > 0, else Alpha X.")
    .source("He et al., ICCV 2015, arXiv:1502.01852")
    .in("X", "[N, ...] float")
    .in("Alpha", "one number (mode all), one per channel, or one per element of a sample")
    .out("Out", "like X")
    .attr<std::string>("mode", "all", "all, channel or element", one_of("mode", {"all", "channel", "element"}))
    .traits(kRowWise)
    .infer(infer)
    .grad_reads({"X", "Alpha"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), alpha = op.in("Alpha");
      const Out out = op.out("Out");
      const std::string mode = op.attr<std::string>("mode");
      return [=](KernelContext& c) {
        const Slopes slopes(mode, c[x].shape());
        const T *from = c[x].data<T>(), *a = c[alpha].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(c[x].numel(), kGrain, [=](int64_t begin, int64_t end) {
          slopes.each_run(begin, end, [=](int64_t i, int64_t n, int64_t slope, int64_t step) {
            binary_run(from + i, 1, a + slope, step, to + i, n, [](T v, T by) { return v > 0 ? v : by * v; });
          });
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("prelu"), mode = op.attr<std::string>("mode"), x = op.in("X"),
              alpha = op.in("Alpha"), out = op.out("Out")](const DeviceContext& c) {
        device::PreluArgs a = prelu_args(c[x], c[alpha], mode);
        a.y = device::operand(c[out]);
        c.launch(kernel, a);
      };
    });

AB_GRAD(prelu)
    .doc("X@GRAD = Out@GRAD where X > 0, else Alpha Out@GRAD; Alpha@GRAD = the sums of X Out@GRAD where X <= 0.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), alpha = op.in("Alpha"), dout = op.in("Out@GRAD");
      const Out dx = op.out("X@GRAD"), dalpha = op.out("Alpha@GRAD");
      const std::string mode = op.attr<std::string>("mode");
      return [=](KernelContext& c) {
        const Slopes slopes(mode, c[x].shape());
        const T *from = c[x].data<T>(), *a = c[alpha].data<T>(), *g = c[dout].data<T>();
        const int64_t n = c[x].numel();
        if (T* to = needed<T>(c, dx)) {
          c.parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
            slopes.each_run(begin, end, [=](int64_t i, int64_t count, int64_t slope, int64_t step) {
              with_steps(1, step, [=](auto, auto s) {
                for (int64_t k = 0; k < count; ++k)
                  to[i + k] = from[i + k] > 0 ? g[i + k] : a[slope + k * s] * g[i + k];
              });
            });
          });
        }
        T* sums = zeroed<T>(c, dalpha);
        if (!sums) return;
        slopes.each_run(0, n, [=](int64_t i, int64_t count, int64_t slope, int64_t step) {
          for (int64_t k = 0; k < count; ++k) {
            if (!(from[i + k] > 0)) sums[slope + k * step] += from[i + k] * g[i + k];
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("prelu_grad"), mode = op.attr<std::string>("mode"), x = op.in("X"),
              alpha = op.in("Alpha"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dalpha = op.out("Alpha@GRAD")](const DeviceContext& c) {
        device::PreluArgs a = prelu_args(c[x], c[alpha], mode);
        a.dy = device::operand(c[dout]);
        if (c.needs(dx)) a.y = device::operand(c[dx]);
        if (c.needs(dalpha)) a.dalpha = device::operand(c[dalpha]);
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::nn::prelu_op
