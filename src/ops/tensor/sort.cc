// Sorting along an axis: top_k, argsort. Ties go to the lower index.
#include "opdef/device_status.h"
#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"
#include "ops/tensor/ranked.h"

namespace anabranch::tensor::sort_op {
namespace {

// Returns the gradient of selected elements to their sources.
template <class T>
void give_back(const KernelContext& c, const Lines& l, int64_t k, const int64_t* indices, const T* dout, T* dx) {
  each_line(c, l, [=](int64_t line) {
    const int64_t at = l.begin(line), from = line / l.inner * k * l.inner + line % l.inner;
    for (int64_t j = 0; j < l.extent; ++j) dx[at + j * l.inner] = T(0);
    for (int64_t j = 0; j < k; ++j) {
      const int64_t index = indices[from + j * l.inner];
      AB_CHECK(index >= 0 && index < l.extent, InvalidArgument, "an element of Indices must be 0 to {}, got {}",
               l.extent - 1, index);
      dx[at + index * l.inner] += dout[from + j * l.inner];
    }
  });
}

int64_t k_of(const InferContext& c) {
  if (c.has_in("K") && !c.in("K").value) return kUnknown;
  const int64_t k = scalar_or(c, "K", c.attr<int32_t>("k"));
  const Shape& x = c.in("X").shape;
  AB_CHECK(x.rank() > 0, ShapeMismatch, "X must have at least one axis, got a scalar");
  const int64_t extent = x[x.rank() - 1];
  AB_CHECK(k >= 1 && (k <= extent || extent == kUnknown), InvalidArgument, "k must be 1 to {} for X {}, got {}", extent,
           x.str(), k);
  return k;
}

// axis: along which elements were selected.
template <class T> Kernel gradient_kernel(const KernelArgs& op, int axis) {
  return [axis, indices = op.in("Indices"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
    const Shape &whole = c[dx].shape(), &part = c[dout].shape();
    const int at = normal_axis(axis, whole.rank(), "axis");
    const Lines l(whole, at);
    AB_CHECK(part.numel() == l.count() * part[at], ShapeMismatch,
             "Out@GRAD must have the shape of Out for X {}, got {}", whole.str(), part.str());
    give_back(c, l, part[at], c[indices].data<int64_t>(), c[dout].data<T>(), c[dx].mutable_data<T>());
  };
}

device::OrderArgs order_args(const Lines& l, int64_t k, const Tensor& x, Tensor& y) {
  device::OrderArgs a{};
  a.x = device::operand(x);
  a.y = device::operand(y);
  a.outer = l.outer, a.extent = l.extent, a.inner = l.inner;
  a.k = k;
  return a;
}

auto wrong_place() {
  return device_fault(1, "an element of Indices must be an index on the axis of X, got {} (<Indices>)");
}

template <class T> Kernel gradient_on_device(const KernelArgs& op, int axis) {
  return [axis, kernel = device::kernel_of<T>("selected_grad"), indices = op.in("Indices"), dout = op.in("Out@GRAD"),
          dx = op.out("X@GRAD")](const DeviceContext& c) {
    const Shape &whole = c[dx].shape(), &part = c[dout].shape();
    const int at = normal_axis(axis, whole.rank(), "axis");
    const Lines l(whole, at);
    AB_CHECK(part.numel() == l.count() * part[at], ShapeMismatch,
             "Out@GRAD must have the shape of Out for X {}, got {}", whole.str(), part.str());
    device::OrderArgs a = order_args(l, part[at], c[dout], c[dx]);
    a.places_in = device::operand(c[indices]);
    a.fault = device::fault_of(c);
    c.launch(kernel, a);
  };
}

AB_OP(top_k)
    .doc("Out, Indices = the k largest elements of each row (last axis), largest first, and their indices.")
    .in("X", "[..., n] numbers")
    .in_optional("K", "[1] int: replaces k")
    .shape_from("K")
    .out("Out", "[..., k] like X")
    .out("Indices", "[..., k] int64")
    .attr<int32_t>("k", 1, "number of elements, 1 to n")
    .infer([](InferContext& c) {
      const int64_t k = k_of(c);
      Shape out = c.in("X").shape;
      out.set(out.rank() - 1, k);
      c.set_out("Out", out, c.in("X").dtype);
      c.set_out("Indices", out, DType::kInt64);
      if (out.rank() > 1) c.share_lod("Out", "X"), c.share_lod("Indices", "X");
    })
    .grad_reads({"X"}, {"Indices"})
    .grad_from({"Out"})
    .grad_to({"X"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), indices = op.out("Indices")](KernelContext& c) {
        const int last = c[x].shape().rank() - 1;
        select(c, Lines(c[x].shape(), last), c[out].shape()[last], true, c[x].data<T>(), c[out].mutable_data<T>(),
               c[indices].mutable_data<int64_t>());
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("top_k"), x = op.in("X"), out = op.out("Out"),
              indices = op.out("Indices")](const DeviceContext& c) {
        const int last = c[x].shape().rank() - 1;
        device::OrderArgs a = order_args(Lines(c[x].shape(), last), c[out].shape()[last], c[x], c[out]);
        a.places = device::operand(c[indices]);
        a.flags = 1;
        c.launch(kernel, a);
      };
    });

AB_GRAD(top_k)
    .doc("X@GRAD = Out@GRAD at the indices, else 0.")
    .infer([](InferContext& c) {
      check_same_shape(c, "Indices", "Out@GRAD");
      const int rank = c.in("X").shape.rank();
      check_rank(c, "Out@GRAD", rank, rank);
      grad_as(c, "X@GRAD", "X");
    })
    .dtype_of_input("Out@GRAD")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return gradient_kernel<T>(op, -1); })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return gradient_on_device<T>(op, -1);
    })
    .with(wrong_place());

AB_OP(argsort)
    .doc("Out, Indices = the elements along an axis in sorted order, and their indices.")
    .in("X", "[...] numbers")
    .out("Out", "[...] like X")
    .out("Indices", "[...] int64")
    .attr<int32_t>("axis", -1, "axis; negative: from the end")
    .attr<bool>("descending", false, "largest first")
    .infer([](InferContext& c) {
      normal_axis(c.attr<int32_t>("axis"), c.in("X").shape.rank(), "axis");
      c.same_as("Out", "X");
      c.same_as("Indices", "X");
      c.out("Indices").dtype = DType::kInt64;
    })
    .grad_reads({"X"}, {"Indices"})
    .grad_from({"Out"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axis = op.attr<int32_t>("axis"), descending = op.attr<bool>("descending"), x = op.in("X"),
              out = op.out("Out"), indices = op.out("Indices")](KernelContext& c) {
        const Lines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
        select(c, l, l.extent, descending, c[x].data<T>(), c[out].mutable_data<T>(),
               c[indices].mutable_data<int64_t>());
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("argsort"), axis = op.attr<int32_t>("axis"),
              descending = op.attr<bool>("descending"), x = op.in("X"), out = op.out("Out"),
              indices = op.out("Indices")](const DeviceContext& c) {
        const Lines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
        device::OrderArgs a = order_args(l, l.extent, c[x], c[out]);
        a.places = device::operand(c[indices]);
        a.flags = descending;
        c.launch(kernel, a);
      };
    });

AB_GRAD(argsort)
    .doc("X@GRAD = Out@GRAD, each element at its source.")
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return gradient_kernel<T>(op, op.attr<int32_t>("axis"));
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return gradient_on_device<T>(op, op.attr<int32_t>("axis"));
    })
    .with(wrong_place());

}  // namespace
}  // namespace anabranch::tensor::sort_op
