// Labels of classes that are no longer certain.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::loss {
namespace {

void check_prior(InferContext& c) {
  if (!c.has_in("PriorDist")) return;
  const Shape &x = c.in("X").shape, &prior = c.in("PriorDist").shape;
  const int64_t n = prior.numel(), classes = x.rank() ? x[x.rank() - 1] : 1;
  AB_CHECK(n < 0 || classes < 0 || n == classes, ShapeMismatch, "label_smooth: PriorDist is {}, X is {}", prior.str(),
           x.str());
}

}  // namespace

AB_OP(label_smooth)
    .doc("Out = (1 - epsilon) X + epsilon PriorDist; without PriorDist epsilon / number of classes.")
    .source("Szegedy et al., Rethinking the Inception architecture, arXiv:1512.00567")
    .in("X", "[..., classes] float")
    .in_optional("PriorDist", "[1, classes] as X")
    .out("Out", "[..., classes] as X")
    .may_share("X", "Out")
    .attr<float>("epsilon", 0.0f, "0 to 1")
    .infer([](InferContext& c) {
      AB_CHECK(c.attr<float>("epsilon") >= 0 && c.attr<float>("epsilon") <= 1, InvalidArgument,
               "label_smooth: epsilon is {}, expected 0 to 1", c.attr<float>("epsilon"));
      AB_CHECK(c.in("X").shape.rank() > 0, ShapeMismatch, "label_smooth: X has no axis");
      check_prior(c);
      c.same_as("Out", "X");
    })
    .grad([](GradContext& g) { g.op("label_smooth_grad").in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X")); })
    .dtype_of_input("X")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [epsilon = static_cast<T>(op.attr<float>("epsilon")), x = op.in("X"), prior = op.in("PriorDist"),
              out = op.out("Out")](KernelContext& c) {
        const int64_t classes = c[x].shape()[c[x].shape().rank() - 1];
        const T* from = c[x].data<T>();
        const T* shares = prior ? c[prior].data<T>() : nullptr;
        const T equal = epsilon / static_cast<T>(std::max<int64_t>(classes, 1));
        T* to = c[out].mutable_data<T>();
        c.parallel_for(c[x].numel(), kCheapGrain, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            to[i] = (1 - epsilon) * from[i] + (shares ? epsilon * shares[i % classes] : equal);
        });
      };
    });

AB_OP(label_smooth_grad)
    .doc("X@GRAD = (1 - epsilon) Out@GRAD.")
    .in("Out@GRAD", "as Out")
    .out("X@GRAD", "as X")
    .may_share("Out@GRAD", "X@GRAD")
    .attr<float>("epsilon", 0.0f, "0 to 1")
    .infer([](InferContext& c) { grad_as(c, "X@GRAD", "Out@GRAD"); })
    .no_grad(kNoSecondOrder)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [factor = 1 - static_cast<T>(op.attr<float>("epsilon")), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        map(c, kCheapGrain, c[dout].numel(), c[dout].data<T>(), c[dx].mutable_data<T>(),
            [factor](T d) { return d * factor; });
      };
    });

}  // namespace anabranch::loss
