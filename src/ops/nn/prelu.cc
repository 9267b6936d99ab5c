// A rectifier whose slope below 0 is learned.
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/outputs.h"

namespace anabranch::nn {
namespace {

constexpr int64_t kGrain = 8192;

// Which slope an element has: one for all, one for each channel (axis 1), or one for each element of a sample.
struct Slopes {
  int64_t count, run;  // `run` elements in a row share a slope; after `count` slopes they begin again
  Slopes(const std::string& mode, const Shape& x)
      : count(mode == "all"       ? 1
              : mode == "channel" ? x[1]
                                  : x.numel(1, x.rank())),
        run(mode == "channel" ? x.numel(2, x.rank()) : 1) {}
  int64_t of(int64_t i) const { return i / run % count; }
};

void infer(InferContext& c) {
  check_tensor(c, "X");
  check_same_dtype(c, "X", "Alpha");
  const std::string& mode = c.attr<std::string>("mode");
  const Shape& x = c.in("X").shape;
  check_rank(c, "X", mode == "all" ? 1 : 2, kMaxRank);
  const int64_t wanted = mode == "all" ? 1 : mode == "channel" ? x[1] : x.slice(1, x.rank()).numel();
  check_numel(c, "Alpha", wanted);
  c.same_as("Out", "X");
}

AB_OP(prelu)
    .doc("Out = X where X > 0, else Alpha X.")
    .source("He et al., ICCV 2015, arXiv:1502.01852")
    .in("X", "[N, ...] float")
    .in("Alpha", "one number (mode all), one for each channel, or one for each element of a sample")
    .out("Out", "as X")
    .attr<std::string>("mode", "all", "all, channel or element", one_of("mode", {"all", "channel", "element"}))
    .traits(kRowWise)
    .infer(infer)
    .grad_reads({"X", "Alpha"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const In x = op.in("X"), alpha = op.in("Alpha");
      const Out out = op.out("Out");
      const std::string mode = op.attr<std::string>("mode");
      return [=](KernelContext& c) {
        const Slopes slopes(mode, c[x].shape());
        const T *from = c[x].data<T>(), *a = c[alpha].data<T>();
        T* to = c[out].template mutable_data<T>();
        c.parallel_for(c[x].numel(), kGrain, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) to[i] = from[i] > 0 ? from[i] : a[slopes.of(i)] * from[i];
        });
      };
    });

AB_GRAD(prelu)
    .doc("X@GRAD = Out@GRAD where X > 0, else Alpha Out@GRAD; Alpha@GRAD: sums of X Out@GRAD where X is not above 0.")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const In x = op.in("X"), alpha = op.in("Alpha"), dout = op.in("Out@GRAD");
      const Out dx = op.out("X@GRAD"), dalpha = op.out("Alpha@GRAD");
      const std::string mode = op.attr<std::string>("mode");
      return [=](KernelContext& c) {
        const Slopes slopes(mode, c[x].shape());
        const T *from = c[x].data<T>(), *a = c[alpha].data<T>(), *g = c[dout].data<T>();
        const int64_t n = c[x].numel();
        if (T* to = wanted<T>(c, dx)) {
          c.parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to[i] = from[i] > 0 ? g[i] : a[slopes.of(i)] * g[i];
          });
        }
        T* sums = zeroed<T>(c, dalpha);
        for (int64_t i = 0; sums && i < n; ++i) {
          if (!(from[i] > 0)) sums[slopes.of(i)] += from[i] * g[i];
        }
      };
    });

}  // namespace
}  // namespace anabranch::nn
