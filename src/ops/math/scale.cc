// Out = scale X + bias, or scale (X + bias).
#include "opdef/device_rows.h"
#include "opdef/device_steps.h"
#include "ops/declare/declare.h"
#include "ops/device/launch_math.h"
#include "ops/device/launch_rows.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd.h"
#include "ops/math/element_functions.h"

namespace anabranch::math::scale_op {
namespace {

template <class T> void affine_loop(const Affine<T>& f, const T* x, T* out, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    if (f.bias_last || f.bias == 0) return simd::affine(x, f.scale, f.bias, out, n);
  }
  for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
}

template <class T> void apply(const KernelContext& c, const Affine<T>& f, const T* x, T* out, int64_t n) {
  c.parallel_for(n, kCheapGrain,
                 [=](int64_t begin, int64_t end) { affine_loop(f, x + begin, out + begin, end - begin); });
}

template <class T> Affine<T> fixed_affine(const KernelArgs& op) {
  return {static_cast<T>(op.attr<float>("scale")), static_cast<T>(op.attr<float>("bias")),
          op.attr<bool>("bias_after_scale")};
}

TileLoop scale_tile(const KernelArgs& op, const std::string&) {
  return [x = op.in("X").first, f = fixed_affine<float>(op)](const float* const* in, float* out, int64_t n) {
    affine_loop(f, in[x], out, n);
  };
}

AB_OP(scale)
    .doc("Out = scale X + bias, or scale (X + bias), elementwise; for sparse rows, on the existing rows.")
    .in("X", "[...] numbers, or sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .in_optional("ScaleTensor", "[1] like X: replaces scale")
    .out("Out", "[...] like X")
    .may_share("X", "Out")
    .attr<float>("scale", 1.0f, "factor")
    .attr<float>("bias", 0.0f, "term")
    .attr<bool>("bias_after_scale", true, "false: the bias is scaled, too")
    .traits(kRowWise | kLinear)
    .tile({.make = scale_tile, .grain = kCheapGrain})
    .copies_when([](const ir::Op& op) {
      return op.input("ScaleTensor").empty() && op.attr<float>("scale") == 1.0f && op.attr<float>("bias") == 0.0f;
    })
    .infer([](InferContext& c) {
      if (c.has_in("ScaleTensor")) {
        AB_CHECK(compatible(c.in("ScaleTensor").shape, scalar_shape()), ShapeMismatch,
                 "ScaleTensor must have shape [1], got {}", c.in("ScaleTensor").shape.str());
      }
      c.same_as("Out", "X");
    })
    .grad([](GradContext& g) {
      GradOp op = g.op("scale").in("X", g.dout("Out")).out("Out", g.din("X"));
      op.in("ScaleTensor", g.in("ScaleTensor")).attr("bias", 0.0f).attr("bias_after_scale", true);
    })
    .dtype_of_input("X")
    .cpu<float, double, int32_t, int64_t, int16_t, int8_t, uint8_t>([]<class T>(TypeTag<T>,
                                                                                const KernelArgs& op) -> Kernel {
      return [fixed = fixed_affine<T>(op), x = op.in("X"), factor = op.in("ScaleTensor"),
              out = op.out("Out")](KernelContext& c) {
        Affine<T> f = fixed;
        if (factor) f.scale = *c[factor].data<T>();
        if (const auto* rows = c.value(x).get<SelectedRows>()) {
          auto& to = c.value(out).as<SelectedRows>();
          if (&to != rows) {
            to.rows = rows->rows;
            to.height = rows->height;
            to.value.resize(rows->value.shape(), rows->value.dtype());
          }
          return apply(c, f, rows->value.data<T>(), to.value.mutable_data<T>(), rows->value.numel());
        }
        apply(c, f, c[x].data<T>(), c[out].mutable_data<T>(), c[x].numel());
      };
    })
    .device<float, double, int32_t, int64_t, int16_t, int8_t, uint8_t, float16, bfloat16>(
        []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
          const auto numbers = [fixed = fixed_affine<device::Compute<T>>(op), factor = op.in("ScaleTensor")](
                                   const KernelContext& c, device::ScalarArgs& a) {
            device::put(a, 0, fixed.scale);
            device::put(a, 1, fixed.bias);
            if (factor) a.number = device::number_of<T>(c[factor]);
            a.flags = fixed.bias_last ? 1 : 0;
          };
          return [kernel = device::kernel_of<T>("scalar/scale"), x = op.in("X"), out = op.out("Out"),
                  numbers](const DeviceContext& c) {
            device::ScalarArgs a{};
            numbers(c, a);
            const auto* rows = c.value(x).get<SelectedRows>();
            if (!rows) return device::launch_scalar(c, kernel, a, c[x], c[out]);
            auto& to = c.value(out).as<SelectedRows>();
            device::same_rows(c, *rows, &to);
            device::launch_scalar(c, kernel, a, rows->value, to.value);
          };
        })
    .with(rows_on_devices)
    .with(device_step([](const KernelArgs& op, const std::string&) {
      const auto f = fixed_affine<float>(op);
      return DeviceStep{"scale", {op.in("X").first}, {f.scale, f.bias, f.bias_last ? 1.0f : 0.0f}};
    }));

}  // namespace
}  // namespace anabranch::math::scale_op
