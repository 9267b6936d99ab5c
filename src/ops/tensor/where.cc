// Choice by condition, sums along an axis, and smoothed labels: where, where_index, cumsum, label_smooth.
#include <algorithm>

#include "ops/kernels/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/nd_loop.h"

namespace anabranch {
namespace {

// Running sums of one line. `from_end`: from the last element on; `exclusive`: without the element itself.
template <class T> void running_sum(const T* x, T* out, int64_t n, int64_t step, bool from_end, bool exclusive) {
  T sum = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t at = (from_end ? n - 1 - k : k) * step;
    const T value = x[at];
    out[at] = exclusive ? sum : sum + value;
    sum += value;
  }
}

void check_prior(InferContext& c) {
  if (!c.has_in("PriorDist")) return;
  const Shape &x = c.in("X").shape, &prior = c.in("PriorDist").shape;
  const int64_t n = prior.numel(), classes = x.rank() ? x[x.rank() - 1] : 1;
  AB_CHECK(n < 0 || classes < 0 || n == classes, ShapeMismatch, "label_smooth: PriorDist is {}, X is {}", prior.str(),
           x.str());
}

}  // namespace

AB_OP(where)
    .doc("Out = X where Condition is true, else Y, elementwise.")
    .in("Condition", "[...] bool")
    .in("X", "[...] numbers")
    .in("Y", "as X")
    .out("Out", "as X")
    .infer([](InferContext& c) {
      check_same_shape(c, "Condition", "X");
      check_same(c, "X", "Y");
      c.same_as("Out", "X");
    })
    .grad([](GradContext& g) {
      g.op("where_grad")
          .in("Condition", g.in("Condition"))
          .in("X", g.in("X"))
          .in("Y", g.in("Y"))
          .in("Out@GRAD", g.dout("Out"))
          .out("X@GRAD", g.din("X"))
          .out("Y@GRAD", g.din("Y"));
    })
    .dtype_of_input("X")
    .cpu<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [condition = op.in("Condition"), x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const bool* choose = c[condition].data<bool>();
        const T *a = c[x].data<T>(), *b = c[y].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(c[x].numel(), kCheapGrain, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) to[i] = choose[i] ? a[i] : b[i];
        });
      };
    });

AB_OP(where_grad)
    .doc("X@GRAD = Out@GRAD where Condition is true, Y@GRAD where it is false, else 0.")
    .in("Condition", "as of where")
    .in("X", "not read")
    .in("Y", "not read")
    .in("Out@GRAD", "as Out")
    .out_optional("X@GRAD", "as X")
    .out_optional("Y@GRAD", "as Y")
    .infer([](InferContext& c) {
      check_same_shape(c, "Condition", "Out@GRAD");
      grad_as(c, "X@GRAD", "Out@GRAD");
      grad_as(c, "Y@GRAD", "Out@GRAD");
    })
    .no_grad(kNoSecondOrder)
    .dtype_of_input("Out@GRAD")
    .cpu<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [condition = op.in("Condition"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](KernelContext& c) {
        const auto keep = [&](Out to, bool wanted) {
          map(c, kCheapGrain, c[dout].numel(), c[condition].data<bool>(), c[dout].data<T>(), c[to].mutable_data<T>(),
              [wanted](bool is, T d) { return is == wanted ? d : T(0); });
        };
        if (c.wants(dx)) keep(dx, true);
        if (c.wants(dy)) keep(dy, false);
      };
    });

AB_OP(where_index)
    .doc("Out = the positions of the elements of Condition that are true (not 0), row by row.")
    .in("Condition", "[...] bool or numbers")
    .out("Out", "[number of them, rank] int64")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      // How many there are is known when they have been counted.
      c.set_out("Out", c.runtime() ? Shape() : Shape{kUnknown, c.in("Condition").shape.rank()}, DType::kInt64);
    })
    .no_grad(kNotDifferentiable)
    .cpu<bool, float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [condition = op.in("Condition"), out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[condition].shape();
        const T* x = c[condition].data<T>();
        const int64_t total = c[condition].numel(), n = total - std::count(x, x + total, T(0));
        c[out].resize(Shape{n, s.rank()}, DType::kInt64);
        const auto steps = dense_strides(s);
        int64_t* to = c[out].mutable_data<int64_t>();
        for (int64_t i = 0; i < total; ++i) {
          if (x[i] == T(0)) continue;
          for (int a = 0; a < s.rank(); ++a) *to++ = i / steps[a] % s[a];
        }
      };
    });

AB_OP(cumsum)
    .doc("Out = running sums of X along an axis.")
    .in("X", "[...] numbers")
    .out("Out", "[...] as X")
    .attr<int32_t>("axis", -1, "axis; negative: from the end")
    .attr<bool>("exclusive", false, "without the element itself")
    .attr<bool>("reverse", false, "from the last element on")
    .infer([](InferContext& c) {
      normal_axis(c.attr<int32_t>("axis"), c.in("X").shape.rank(), "axis");
      c.same_as("Out", "X");
    })
    .grad([](GradContext& g) {
      g.op("cumsum").in("X", g.dout("Out")).out("Out", g.din("X")).attr("reverse", !g.attr<bool>("reverse"));
    })
    .cpu<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [axis = op.attr<int32_t>("axis"), exclusive = op.attr<bool>("exclusive"),
              from_end = op.attr<bool>("reverse"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const int at = normal_axis(axis, s.rank(), "axis");
        const int64_t n = s[at], inner = s.numel(at + 1, s.rank()), lines = s.numel(0, at) * inner;
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(lines, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, n)),
                       [=](int64_t begin, int64_t end) {
                         for (int64_t line = begin; line < end; ++line) {
                           const int64_t first = line / inner * n * inner + line % inner;
                           running_sum(from + first, to + first, n, inner, from_end, exclusive);
                         }
                       });
      };
    });

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

}  // namespace anabranch
