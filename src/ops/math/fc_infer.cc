// A fully connected layer in one op, inserted by Fluid's passes into saved inference models.
#include <memory>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/device/gemm.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/gemm.h"

namespace anabranch::math::fc_infer_op {
namespace {

constexpr const char* kInference = "it is for inference";

// Number of extra rows and columns of a padded weight.
int64_t padding_of(bool padded) { return padded ? 4 : 0; }

void infer_fc(InferContext& c) {
  check_rank(c, "W", 2, 2);
  check_same_dtype(c, "W", "Input");
  const int axes = c.attr<int32_t>("in_num_col_dims");
  const Shape &x = c.in("Input").shape, &w = c.in("W").shape;
  AB_CHECK(axes < x.rank(), InvalidArgument, "in_num_col_dims must be below the rank of Input {}, got {}", x.str(),
           axes);
  const int64_t pad = padding_of(c.attr<bool>("padding_weights"));
  const int64_t inner = x.slice(axes, x.rank()).known() ? x.numel(axes, x.rank()) : kUnknown;
  AB_CHECK(w[0] == kUnknown || inner == kUnknown || w[0] - pad == inner, ShapeMismatch, "W must have {} rows, got {}",
           inner == kUnknown ? inner : inner + pad, w.str());
  AB_CHECK(w[1] == kUnknown || w[1] >= pad, ShapeMismatch, "W must have at least {} columns, got {}", pad, w.str());
  const int64_t columns = w[1] == kUnknown ? kUnknown : w[1] - pad;
  if (c.has_in("Bias")) {
    check_same_dtype(c, "Bias", "Input");
    check_numel(c, "Bias", columns);
  }
  std::vector<int64_t> shape = x.slice(0, axes).to_vector();
  shape.push_back(columns);
  c.set_out("Out", Shape(shape), c.in("Input").dtype);
  c.share_lod("Out", "Input");
}

AB_OP(fc)
    .doc("Out = activation(Input W + Bias), Input flattened to a matrix.")
    .in("Input", "[rows..., columns...] float")
    .in("W", "[columns, N] like Input; with padding_weights 4 more rows and 4 more columns, which are ignored")
    .in_optional("Bias", "[N] or [1, N] like Input")
    .out("Out", "[rows..., N]")
    .attr<int32_t>("in_num_col_dims", 1, "number of leading axes of Input that form the rows",
                   at_least("in_num_col_dims", 1))
    .attr<std::string>("activation_type", "", "relu, or none", one_of("activation_type", {"", "relu"}))
    .attr<bool>("padding_weights", false, "W has padding")
    .ignores({"use_mkldnn", "use_quantizer"})
    .dtype_of_input("Input")
    .infer(infer_fc)
    .no_grad(kInference)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto product = std::make_shared<Gemm<T>>();
      return [=, axes = op.attr<int32_t>("in_num_col_dims"), relu = !op.attr<std::string>("activation_type").empty(),
              x = op.in("Input"), w = op.in("W"), bias = op.in("Bias"), out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const int64_t m = s.numel(0, axes), k = s.numel(axes, s.rank()), n = c[out].shape()[axes];
        T* to = c[out].mutable_data<T>();
        product->run(c, {.m = m, .n = n, .k = k, .ld_b = c[w].shape()[1]}, c[x].data<T>(), c[w].data<T>(), to);
        const T* add = bias ? c[bias].data<T>() : nullptr;
        if (!add && !relu) return;
        c.parallel_each(m, kCheapGrain / std::max<int64_t>(1, n) + 1, [=](int64_t r) {
          for (int64_t i = 0; i < n; ++i) {
            const T sum = to[r * n + i] + (add ? add[i] : T{0});
            to[r * n + i] = relu && sum < 0 ? T{0} : sum;
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [product = device::FcProduct<T>(!op.attr<std::string>("activation_type").empty()),
              axes = op.attr<int32_t>("in_num_col_dims"), x = op.in("Input"), w = op.in("W"), bias = op.in("Bias"),
              out = op.out("Out")](const DeviceContext& c) mutable {
        const Shape& s = c[x].shape();
        const int64_t m = s.numel(0, axes), n = c[out].shape()[axes];
        product.run(c, {.m = m, .n = n, .k = s.numel(axes, s.rank()), .ld_b = c[w].shape()[1]}, c[x], c[w],
                    bias ? &c[bias] : nullptr, c[out]);
      };
    });

}  // namespace
}  // namespace anabranch::math::fc_infer_op
