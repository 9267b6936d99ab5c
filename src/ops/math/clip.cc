// Clips values and norms. Sparse rows are merged first: an id that occurs twice is one row.
#include <cmath>
#include <utility>

#include "opdef/device_rows.h"
#include "opdef/device_steps.h"
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/launch_fold.h"
#include "ops/device/launch_math.h"
#include "ops/device/launch_rows.h"
#include "ops/device/scratch.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/sums.h"
#include "ops/kernels/wide_map.h"
#include "ops/math/element_functions.h"

namespace anabranch::math::clip_op {
namespace {

// The numbers that an op reads and writes: of a tensor, or of the merged rows of a sparse gradient.
template <class T> struct Values {
  const T* in;
  T* out;
  int64_t n;
};

template <class T> Values<T> values_of(const KernelContext& c, In x, Out out) {
  const auto* rows = c.value(x).get<SelectedRows>();
  if (!rows) return {c[x].data<T>(), c[out].mutable_data<T>(), c[x].numel()};
  auto& to = c.value(out).as<SelectedRows>();
  if (rows == &to) {
    const SelectedRows before = *rows;  // shares the values: they must not be overwritten while they are read
    SelectedRows merged;
    merge_rows(before, &merged);
    to = std::move(merged);
  } else {
    merge_rows(*rows, &to);
  }
  return {to.value.data<T>(), to.value.mutable_data<T>(), to.value.numel()};
}

template <class T> double sum_of_squares(const KernelContext& c, const T* x, int64_t n) {
  return parallel_total<double>(c, n, kCheapGrain, [=](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float>) return static_cast<double>(simd::sum_squares(x + begin, end - begin));
    return sum_of<double>(end - begin, [own = x + begin](int64_t i) {
      return static_cast<double>(own[i]) * static_cast<double>(own[i]);
    });
  });
}

// The same on a device.
template <class T> class ValuesThere {
 public:
  ValuesThere(In x, Out out) : x_(x), out_(out) {}
  // fn(x, &out)
  template <class Fn> void of(const DeviceContext& c, Fn&& fn) {
    const auto* rows = c.value(x_).get<SelectedRows>();
    if (!rows) return fn(c[x_], c[out_]);
    auto& to = c.value(out_).as<SelectedRows>();
    merge_(c, *rows, &to);
    fn(std::as_const(to.value), to.value);
  }

 private:
  In x_;
  Out out_;
  device::MergeRows<T> merge_;
};

// The bounds of clip and clip_grad: attributes, or the inputs that replace them.
template <class T> struct Bounds {
  In min_in, max_in;
  T min, max;
  explicit Bounds(const KernelArgs& op)
      : min_in(op.in("Min")),
        max_in(op.in("Max")),
        min(static_cast<T>(op.attr<float>("min"))),
        max(static_cast<T>(op.attr<float>("max"))) {}
  std::pair<T, T> get(const KernelContext& c) const {
    const auto number = [&](In in, T fixed) {
      if (!in) return fixed;
      AB_CHECK(c[in].numel() == 1, ShapeMismatch, "a bound must have shape [1], got {}", c[in].shape().str());
      return *c[in].data<T>();
    };
    const T lo = number(min_in, min), hi = number(max_in, max);
    AB_CHECK(lo <= hi, InvalidArgument, "min must not be above max ({}), got {}", hi, lo);
    return {lo, hi};
  }
};

// As the numbers of a kernel. Bounds in device tensors are not compared.
template <class T> auto bounds_of(const KernelArgs& op) {
  const Bounds<device::Compute<T>> b(op);
  AB_CHECK(!b.min_in && !b.max_in, Unsupported, "bounds in tensors are not supported on devices");
  return [b](const KernelContext& c, device::ScalarArgs& a) {
    const auto [lo, hi] = b.get(c);
    device::put(a, 0, lo);
    device::put(a, 1, hi);
  };
}

// With attributes as bounds.
TileLoop clip_tile(const KernelArgs& op, const std::string&) {
  const Bounds<float> b(op);
  return [x = op.in("X").first, lo = b.min, hi = b.max](const float* const* in, float* out, int64_t n) {
    in_wide_vectors([=, from = in[x]] {
      for (int64_t i = 0; i < n; ++i) out[i] = clipped(from[i], lo, hi);
    });
  };
}
TileLoop clip_grad_tile(const KernelArgs& op, const std::string&) {
  const Bounds<float> b(op);
  return [x = op.in("X").first, dout = op.in("Out@GRAD").first, lo = b.min, hi = b.max](const float* const* in,
                                                                                        float* out, int64_t n) {
    in_wide_vectors([=, from = in[x], dy = in[dout]] {
      for (int64_t i = 0; i < n; ++i) out[i] = clipped_grad(from[i], dy[i], lo, hi);
    });
  };
}

void infer_clip(InferContext& c) {
  AB_CHECK(c.has_in("Min") || c.has_in("Max") || c.attr<float>("min") <= c.attr<float>("max"), InvalidArgument,
           "min must not be above max ({}), got {}", c.attr<float>("max"), c.attr<float>("min"));
  c.same_as("Out", "X");
}

AB_OP(clip)
    .doc("Out = min(max(X, min), max), elementwise.")
    .in("X", "[...] numbers, or sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .in_optional("Min", "[1] like X")
    .in_optional("Max", "[1] like X")
    .out("Out", "[...] like X")
    .may_share("X", "Out")
    .required_attr("min", AttrType::kFloat, "lower bound")
    .required_attr("max", AttrType::kFloat, "upper bound")
    .traits(kRowWise | kElementwise)
    .tile({.make = clip_tile, .grain = kCheapGrain})
    .infer(infer_clip)
    .grad_reads({"X", "Min", "Max"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), bounds = Bounds<T>(op)](KernelContext& c) {
        const auto [lo, hi] = bounds.get(c);
        const Values<T> v = values_of<T>(c, x, out);
        wide_map(c, kCheapGrain, v.n, v.in, v.out, [lo = lo, hi = hi](T a) { return clipped(a, lo, hi); });
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("scalar/clip"), bounds = bounds_of<T>(op),
              values = ValuesThere<T>(op.in("X"), op.out("Out"))](const DeviceContext& c) mutable {
        device::ScalarArgs a{};
        bounds(c, a);
        values.of(c, [&](const Tensor& x, Tensor& out) { device::launch_scalar(c, kernel, a, x, out); });
      };
    })
    .with(rows_on_devices)
    .with(device_step([](const KernelArgs& op, const std::string&) {
      const Bounds<float> b(op);
      return DeviceStep{"clip", {op.in("X").first}, {b.min, b.max}};
    }));

AB_GRAD(clip)
    .doc("X@GRAD = Out@GRAD where min < X < max, else 0.")
    .grad(second_order::diagonal)
    .may_share("Out@GRAD", "X@GRAD")
    .tile({.make = clip_grad_tile, .grain = kCheapGrain})
    .dtype_of_input("X")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return
          [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), bounds = Bounds<T>(op)](KernelContext& c) {
            const auto [lo, hi] = bounds.get(c);
            wide_map(c, kCheapGrain, c[x].numel(), c[x].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(),
                     [lo = lo, hi = hi](T a, T d) { return clipped_grad(a, d, lo, hi); });
          };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      const auto numbers = [bounds = bounds_of<T>(op), dout = op.in("Out@GRAD")](const KernelContext& c,
                                                                                 device::ScalarArgs& a) {
        bounds(c, a);
        a.dy = device::operand(c[dout]);
      };
      return device::scalar<T>("clip_grad", op.in("X"), op.out("X@GRAD"), numbers);
    })
    .with(device_step([](const KernelArgs& op, const std::string&) {
      const Bounds<float> b(op);
      return DeviceStep{"clip_grad", {op.in("X").first, op.in("Out@GRAD").first}, {b.min, b.max}};
    }));

AB_OP(clip_by_norm)
    .doc("Out = X, scaled to the Euclidean norm max_norm if its norm is larger.")
    .source("Pascanu et al., On the difficulty of training recurrent neural networks, ICML 2013")
    .in("X", "[...] float, or sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "[...] like X")
    .may_share("X", "Out")
    .required_attr("max_norm", AttrType::kFloat, "bound of the norm, > 0")
    .infer([](InferContext& c) {
      const float bound = c.attr<float>("max_norm");
      AB_CHECK(bound > 0, InvalidArgument, "max_norm must be above 0, got {}", bound);
      c.same_as("Out", "X");
    })
    .no_grad("applies to gradients")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return
          [x = op.in("X"), out = op.out("Out"), bound = static_cast<T>(op.attr<float>("max_norm"))](KernelContext& c) {
            const Values<T> v = values_of<T>(c, x, out);
            const T norm = static_cast<T>(std::sqrt(sum_of_squares(c, v.in, v.n)));
            const T factor = norm > bound ? bound / norm : T(1);
            map(c, kCheapGrain, v.n, v.in, v.out, [=](T a) { return a * factor; });
          };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [length = device::kernel_of<T>("fold_axes/length"), shorten = device::kernel_of<T>("scalar/shorten"),
              values = ValuesThere<T>(op.in("X"), op.out("Out")),
              bound = static_cast<device::Compute<T>>(op.attr<float>("max_norm")),
              norm = device::Scratch()](const DeviceContext& c) mutable {
        Tensor& of_x = norm.of(c, scalar_shape(), dtype_of<T>);
        device::ScalarArgs a{};
        a.number = device::operand(std::as_const(of_x));
        device::put(a, 1, bound);
        values.of(c, [&](const Tensor& x, Tensor& out) {
          device::launch_fold(c, length, x, of_x);
          device::launch_scalar(c, shorten, a, x, out);
        });
      };
    })
    .with(rows_on_devices);

AB_OP(squared_l2_norm)
    .doc("Out = the sum of the squares of all elements.")
    .in("X", "[...] float")
    .out("Out", "[1] like X")
    .infer([](InferContext& c) { c.set_out("Out", scalar_shape(), c.in("X").dtype); })
    .grad_reads({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        *c[out].mutable_data<T>() = static_cast<T>(sum_of_squares(c, c[x].data<T>(), c[x].numel()));
      };
    })
    .device<float, double, float16, bfloat16>(device::fold_all("squares"));

AB_OP(squares_of_rows)
    .doc("Out = the sum of the squares of all elements of X: merged rows; on a device, followed by zeros.")
    .in("X", "sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "[1] like X")
    .effects(kEngineOnly)
    .infer([](InferContext& c) { c.set_out("Out", scalar_shape(), c.in("X").dtype); })
    .no_grad("inserted for devices after autodiff")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Tensor& values = c.value(x).rows().value;
        *c[out].mutable_data<T>() = static_cast<T>(sum_of_squares(c, values.data<T>(), values.numel()));
      };
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("fold_axes/squares"), x = op.in("X"), out = op.out("Out")](
                 const DeviceContext& c) { device::launch_fold(c, kernel, c.value(x).rows().value, c[out]); };
    })
    .with(rows_on_devices);

AB_GRAD(squared_l2_norm)
    .doc("X@GRAD = 2 Out@GRAD X.")
    .grad(second_order::through([](second_order::Ops& o) {
      o.is("X@GRAD", o.scale(o.mul(o.in("X"), o.in("Out@GRAD")), 2));
    }))
    .may_share("X", "X@GRAD")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const T factor = 2 * *c[dout].data<T>();
        map(c, kCheapGrain, c[x].numel(), c[x].data<T>(), c[dx].mutable_data<T>(), [=](T a) { return a * factor; });
      };
    })
    .device<float, double, float16, bfloat16>(device::fold_all_grad("squares", true));

}  // namespace
}  // namespace anabranch::math::clip_op
