#include "ops/reduce/as_dtype.h"

#include <string>

#include "ops/device/launch_math.h"
#include "ops/kernels/flat_loop.h"
#include "ops/math/element_functions.h"

namespace anabranch::reduce {
namespace {

// The dtypes that reductions convert.
bool is_wide_number(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

template <class Fn> void visit_wide_number(DType dtype, Fn&& fn) {
  visit_dtype(dtype, [&]<class T>(TypeTag<T> tag) {
    if constexpr (sizeof(T) >= sizeof(int32_t)) fn(tag);
  });
}

void check_converts(DType from, DType to) {
  AB_CHECK(is_wide_number(from) && is_wide_number(to), InvalidArgument,
           "Out and its gradient must have the dtype of X or another number of 32 or 64 bits, got {} and {}",
           dtype_name(from), dtype_name(to));
}

}  // namespace

DType result_dtype(const ir::Op& op, DType x) {
  const int32_t requested = op.attr<int32_t>("out_dtype");
  if (requested == -1 || x == DType::kBool) return x;
  const DType dtype = dtype_from_number(requested);
  AB_CHECK(dtype == x || (is_wide_number(dtype) && is_wide_number(x)), Unsupported,
           "out_dtype must be the dtype of X ({}) or, for numbers of 32 or 64 bits, int32, int64, float32 or float64, "
           "got {}",
           dtype_name(x), dtype_name(dtype));
  return dtype;
}

const Tensor& AsDType::operator()(const KernelContext& c, const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  check_converts(x.dtype(), dtype);
  copy_->resize(x.shape(), dtype);
  visit_wide_number(x.dtype(), [&](auto from) {
    visit_wide_number(dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      map(c, kCheapGrain, x.numel(), x.data<From>(), copy_->mutable_data<To>(),
          [](From v) { return math::converted_number<To>(v); });
    });
  });
  return *copy_;
}

const Tensor& AsDTypeThere::operator()(const DeviceContext& c, const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  check_converts(x.dtype(), dtype);
  Tensor& copy = copy_->of(c, x.shape(), dtype);
  const auto kernel =
      device_kernel(std::string("cast/") + device::type_name_of(x.dtype()) + "/" + device::type_name_of(dtype));
  c.launch(kernel, device::MapArgs{device::operand(x), device::operand(copy), x.numel(), {}});
  return copy;
}

}  // namespace anabranch::reduce
