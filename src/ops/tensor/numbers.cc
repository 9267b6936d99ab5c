// Tensors that tell of others, and rows of numbers: shape, range, linspace, one_hot.
#include <cmath>

#include "ops/kernels/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/shape_args.h"
#include "ops/kernels/strided_copy.h"

namespace anabranch {
namespace {

// One number of a [1] tensor that an input holds, null while a program is built.
const Tensor* scalar_in(const InferContext& c, const char* slot) {
  const Tensor* t = c.in(slot).value;
  AB_CHECK(!t || t->numel() == 1, ShapeMismatch, "{}: {} is {}, expected [1]", c.op().type, slot,
           c.in(slot).shape.str());
  return t;
}

template <class T> int64_t range_count(T start, T end, T step) {
  AB_CHECK(step != 0, InvalidArgument, "range: Step is 0");
  if (start == end || (step > 0) != (end > start)) return 0;
  const double n = std::ceil((static_cast<double>(end) - static_cast<double>(start)) / static_cast<double>(step));
  AB_CHECK(n >= 0 && n < 1e12, InvalidArgument, "range: from {} to {} in steps of {}", start, end, step);
  return static_cast<int64_t>(n);
}

void infer_range(InferContext& c) {
  const Tensor *start = scalar_in(c, "Start"), *end = scalar_in(c, "End"), *step = scalar_in(c, "Step");
  int64_t n = kUnknown;
  if (start && end && step) {
    visit_dtype(start->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, bool>)
        AB_THROW(Unsupported, "range of bool");
      else
        n = range_count(*start->data<T>(), *end->data<T>(), *step->data<T>());
    });
  }
  c.set_out("Out", Shape{n}, c.in("Start").dtype);
}

OpDef& one_hot_attrs(OpDef& def) {
  return def.in("X", "int32 or int64 classes")
      .in_optional("depth_tensor", "[1] int: takes the place of depth")
      .shape_from("depth_tensor")
      .out("Out", "[..., depth]")
      .attr<int32_t>("depth", -1, "number of classes")
      .attr<int32_t>("dtype", 5, "number of Out's element type")
      .attr<bool>("allow_out_of_range", false, "a class outside gives a row of zeros instead of an error");
}

void infer_one_hot(InferContext& c, bool last_is_one) {
  int64_t depth = c.attr<int32_t>("depth");
  if (c.has_in("depth_tensor")) {
    const Tensor* t = scalar_in(c, "depth_tensor");
    depth = t ? integers_of(*t, "depth_tensor")[0] : kUnknown;
  }
  AB_CHECK(depth >= 1 || (c.has_in("depth_tensor") && !c.runtime()), InvalidArgument, "{}: depth is {}", c.op().type,
           depth);
  Shape out = c.in("X").shape;
  if (last_is_one) {
    AB_CHECK(out.rank() >= 2 && (out[out.rank() - 1] == 1 || out[out.rank() - 1] == kUnknown), ShapeMismatch,
             "one_hot: X is {}, its last axis must have extent 1", out.str());
    out = out.slice(0, out.rank() - 1);
  }
  out.push_back(depth);
  c.set_out("Out", out, dtype_from_number(c.attr<int32_t>("dtype")));
  c.share_lod("Out", "X");
}

template <class Id, class T> void one_hot(const KernelContext& c, const Tensor& x, Tensor* out, bool allow) {
  const int64_t depth = out->shape()[out->shape().rank() - 1];
  const Id* ids = x.data<Id>();
  T* to = out->mutable_data<T>();
  c.parallel_for(x.numel(), std::max<int64_t>(1, kCheapGrain / depth), [=](int64_t begin, int64_t end) {
    std::fill(to + begin * depth, to + end * depth, T(0));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t id = ids[i];
      const bool inside = id >= 0 && id < depth;
      AB_CHECK(inside || allow, InvalidArgument, "one_hot: class {} at position {}, expected 0 to {}", id, i,
               depth - 1);
      if (inside) to[i * depth + id] = T(1);
    }
  });
}

void declare_one_hot(const char* type, const char* doc, bool last_is_one) {
  OpDef& def = one_hot_attrs(declare_op(type, __FILE__)).doc(doc).no_grad(kNotDifferentiable).dtype_of_input("X");
  def.infer([last_is_one](InferContext& c) { infer_one_hot(c, last_is_one); });
  def.cpu<int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
    using Id = typename decltype(tag)::type;
    return visit_dtype(dtype_from_number(op.attr<int32_t>("dtype")), [&](auto to_tag) -> Kernel {
      using T = typename decltype(to_tag)::type;
      return [allow = op.attr<bool>("allow_out_of_range"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        one_hot<Id, T>(c, c[x], &c[out], allow);
      };
    });
  });
}

[[maybe_unused]] const bool declared =
    (declare_one_hot("one_hot", "Out = rows of zeros with a 1 at the class; X's last axis of extent 1 is replaced.",
                     true),
     declare_one_hot("one_hot_v2", "Out = rows of zeros with a 1 at the class, along a new last axis.", false), true);

}  // namespace

AB_OP(shape)
    .doc("Out = the extents of Input.")
    .in("Input", "[...] any")
    .takes("Input", Holds::kTensorOrRows)
    .out("Out", "[rank] int32")
    .infer([](InferContext& c) { c.set_out("Out", Shape{c.in("Input").shape.rank()}, DType::kInt32); })
    .no_grad(kNotDifferentiable)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("Input"), out = op.out("Out")](KernelContext& c) {
        const Value& v = c.value(x);
        Shape s = v.is<SelectedRows>() ? v.rows().value.shape() : c[x].shape();
        if (v.is<SelectedRows>() && s.rank()) s.set(0, v.rows().height);
        AB_CHECK(s.rank() == c[out].numel(), ShapeMismatch, "shape: Input is {}, Out is {}", s.str(),
                 c[out].shape().str());
        int32_t* to = c[out].mutable_data<int32_t>();
        for (int64_t extent : s) *to++ = static_cast<int32_t>(extent);
      };
    });

AB_OP(range)
    .doc("Out = Start, Start + Step, ..., below End (above it when Step is negative).")
    .in("Start", "[1] numbers")
    .in("End", "[1] as Start")
    .in("Step", "[1] as Start, not 0")
    .out("Out", "[n] as Start")
    .effects(kDynamic)
    .infer(infer_range)
    .no_grad(kNotDifferentiable)
    .cpu<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [start = op.in("Start"), step = op.in("Step"), out = op.out("Out")](KernelContext& c) {
        const T from = *c[start].data<T>(), by = *c[step].data<T>();
        T* to = c[out].mutable_data<T>();
        for (int64_t i = 0; i < c[out].numel(); ++i) to[i] = static_cast<T>(from + static_cast<T>(i) * by);
      };
    });

AB_OP(linspace)
    .doc("Out = Num numbers from Start to Stop, both included, at equal distances.")
    .in("Start", "[1] float")
    .in("Stop", "[1] as Start")
    .in("Num", "[1] int32, >= 1")
    .out("Out", "[Num] as Start")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      scalar_in(c, "Start"), scalar_in(c, "Stop");
      const Tensor* num = scalar_in(c, "Num");
      const int64_t n = num ? integers_of(*num, "Num")[0] : kUnknown;
      AB_CHECK(n >= 1 || !num, InvalidArgument, "linspace: Num is {}, expected at least 1", n);
      c.set_out("Out", Shape{n}, c.in("Start").dtype);
    })
    .no_grad(kNotDifferentiable)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [start = op.in("Start"), stop = op.in("Stop"), out = op.out("Out")](KernelContext& c) {
        const T from = *c[start].data<T>(), to = *c[stop].data<T>();
        const int64_t n = c[out].numel();
        const T step = n > 1 ? (to - from) / static_cast<T>(n - 1) : T(0);
        T* at = c[out].mutable_data<T>();
        for (int64_t i = 0; i < n; ++i) at[i] = from + step * static_cast<T>(i);
      };
    });

}  // namespace anabranch
