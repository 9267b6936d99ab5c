// Out[i] = X[i] . Y[i]: inner products of rows.
#include "ops/kernels/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/reduce.h"

namespace anabranch {
namespace {

Shape dot_shape(const Shape& x) {
  Shape out = x;
  AB_CHECK(x.rank() == 1 || x.rank() == 2, ShapeMismatch, "dot: X is {}, expected one or two axes", x.str());
  out.set(x.rank() - 1, 1);
  return out;
}

}  // namespace

AB_OP(dot)
    .doc("Out = the inner products of the rows of X and Y.")
    .in("X", "[d] or [n, d] float")
    .in("Y", "as X")
    .out("Out", "[1] or [n, 1]")
    .infer([](InferContext& c) {
      check_same_shape(c, "X", "Y");
      c.set_out("Out", dot_shape(c.in("X").shape), c.in("X").dtype);
    })
    .grad([](GradContext& g) {
      g.op("dot_grad")
          .in("X", g.in("X"))
          .in("Y", g.in("Y"))
          .in("Out@GRAD", g.dout("Out"))
          .out("X@GRAD", g.din("X"))
          .out("Y@GRAD", g.din("Y"));
    })
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const int64_t width = c[x].shape()[c[x].shape().rank() - 1], rows = c[out].numel();
        const T *xs = c[x].data<T>(), *ys = c[y].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(rows, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, width)),
                       [=](int64_t begin, int64_t end) {
                         for (int64_t r = begin; r < end; ++r) {
                           T sum = 0;
                           for (int64_t k = r * width; k < (r + 1) * width; ++k) sum += xs[k] * ys[k];
                           to[r] = sum;
                         }
                       });
      };
    });

AB_OP(dot_grad)
    .doc("X@GRAD = Out@GRAD Y, Y@GRAD = Out@GRAD X, row by row.")
    .in("X", "as of dot")
    .in("Y", "as of dot")
    .in("Out@GRAD", "as Out of dot")
    .out_optional("X@GRAD", "as X")
    .out_optional("Y@GRAD", "as Y")
    .infer([](InferContext& c) {
      check_same_shape(c, "X", "Y");
      AB_CHECK(compatible(dot_shape(c.in("X").shape), c.in("Out@GRAD").shape), ShapeMismatch,
               "dot_grad: X is {}, but Out@GRAD is {}", c.in("X").shape.str(), c.in("Out@GRAD").shape.str());
      if (c.has_out("X@GRAD")) c.same_as("X@GRAD", "X");
      if (c.has_out("Y@GRAD")) c.same_as("Y@GRAD", "Y");
    })
    .no_grad(kNoSecondOrder)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](KernelContext& c) {
        const int64_t rows = c[dout].numel(), width = rows ? c[x].numel() / rows : 0;
        const T* factor = c[dout].data<T>();
        const auto spread = [&](const T* from, T* to) {
          for (int64_t i = 0; i < rows * width; ++i) to[i] = factor[i / width] * from[i];
        };
        if (c.wants(dx)) spread(c[y].data<T>(), c[dx].mutable_data<T>());
        if (c.wants(dy)) spread(c[x].data<T>(), c[dy].mutable_data<T>());
      };
    });

}  // namespace anabranch
