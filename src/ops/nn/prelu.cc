#include <algorithm>

#include "opdef/op_def.h"
#include "ops/declare/checks.h"

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

void check(const InferContext& c) {
  check_tensor(c, "X");
  check_same_dtype(c, "X", "Alpha");
  const std::string& mode = c.attr<std::string>("mode");
  AB_CHECK(mode == "all" || mode == "channel" || mode == "element", InvalidArgument,
           "{}: mode is {}, expected all, channel or element", op_name(c), mode);
  const Shape& x = c.in("X").shape;
  check_rank(c, "X", mode == "all" ? 1 : 2, kMaxRank);
  const int64_t wanted = mode == "all" ? 1 : mode == "channel" ? x[1] : x.slice(1, x.rank()).numel();
  check_numel(c, "Alpha", wanted);
}

AB_OP(prelu)
    .doc("Out = X where X > 0, else Alpha X.")
    .source("He et al., ICCV 2015, arXiv:1502.01852")
    .in("X", "[N, ...] float")
    .in("Alpha", "one number (mode all), one for each channel, or one for each element of a sample")
    .out("Out", "as X")
    .attr<std::string>("mode", "all", "all, channel or element")
    .traits(kRowWise)
    .infer([](InferContext& c) {
      check(c);
      c.same_as("Out", "X");
    })
    .grad([](GradContext& g) {
      g.op("prelu_grad")
          .in("X", g.in("X"))
          .in("Alpha", g.in("Alpha"))
          .in("Out@GRAD", g.dout("Out"))
          .out("X@GRAD", g.din("X"))
          .out("Alpha@GRAD", g.din("Alpha"));
    })
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

AB_OP(prelu_grad)
    .doc("X@GRAD = Out@GRAD where X > 0, else Alpha Out@GRAD; Alpha@GRAD: sums of X Out@GRAD where X is not above 0.")
    .in("X", "as in the forward op")
    .in("Alpha", "as in the forward op")
    .in("Out@GRAD", "as X")
    .out("X@GRAD", "as X")
    .out("Alpha@GRAD", "as Alpha")
    .infer([](InferContext& c) {
      check(c);
      check_same(c, "X", "Out@GRAD");
      grad_as(c, "X@GRAD", "X");
      grad_as(c, "Alpha@GRAD", "Alpha");
    })
    .no_grad("second derivatives of prelu are not offered")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const In x = op.in("X"), alpha = op.in("Alpha"), dout = op.in("Out@GRAD");
      const Out dx = op.out("X@GRAD"), dalpha = op.out("Alpha@GRAD");
      const std::string mode = op.attr<std::string>("mode");
      return [=](KernelContext& c) {
        const Slopes slopes(mode, c[x].shape());
        const T *from = c[x].data<T>(), *a = c[alpha].data<T>(), *g = c[dout].data<T>();
        const int64_t n = c[x].numel();
        if (c.wants(dx)) {
          T* to = c[dx].template mutable_data<T>();
          c.parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to[i] = from[i] > 0 ? g[i] : a[slopes.of(i)] * g[i];
          });
        }
        if (!c.wants(dalpha)) return;
        T* sums = c[dalpha].template mutable_data<T>();
        std::fill(sums, sums + c[dalpha].numel(), T{0});
        for (int64_t i = 0; i < n; ++i) {
          if (!(from[i] > 0)) sums[slopes.of(i)] += from[i] * g[i];
        }
      };
    });

}  // namespace
}  // namespace anabranch::nn
