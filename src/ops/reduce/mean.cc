// Out = the mean of all elements.
#include "ops/kernels/declare.h"
#include "ops/kernels/reduce.h"

namespace anabranch {

AB_OP(mean)
    .doc("Out = the mean of all elements of X; not a number when there is none.")
    .in("X", "[...] float")
    .out("Out", "[1] as X")
    .infer([](InferContext& c) { c.set_out("Out", scalar_shape(), c.in("X").dtype); })
    .grad([](GradContext& g) {
      g.op("mean_grad").in("X", g.in("X")).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
    })
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const T* from = c[x].data<T>();
        const double total = parallel_total<double>(c, c[x].numel(), kCheapGrain, [=](int64_t begin, int64_t end) {
          return static_cast<double>(fold_run<FoldSum<T>>(from + begin, end - begin));
        });
        *c[out].mutable_data<T>() = static_cast<T>(total / static_cast<double>(c[x].numel()));
      };
    });

AB_OP(mean_grad)
    .doc("X@GRAD = Out@GRAD / number of elements, everywhere.")
    .in("X", "[...] float")
    .in("Out@GRAD", "[1] as X")
    .out("X@GRAD", "[...] as X")
    .infer([](InferContext& c) {
      AB_CHECK(compatible(c.in("Out@GRAD").shape, scalar_shape()), ShapeMismatch,
               "mean_grad: Out@GRAD is {}, expected [1]", c.in("Out@GRAD").shape.str());
      c.same_as("X@GRAD", "X");
    })
    .no_grad(kNoSecondOrder)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const int64_t n = c[dx].numel();
        const T share = *c[dout].data<T>() / static_cast<T>(n);
        T* to = c[dx].mutable_data<T>();
        c.parallel_for(n, kCheapGrain, [=](int64_t begin, int64_t end) { std::fill(to + begin, to + end, share); });
      };
    });

}  // namespace anabranch
