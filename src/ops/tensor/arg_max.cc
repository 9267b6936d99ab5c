// Index of the extreme along an axis: arg_max, arg_min. Ties go to the lower index.
#include <algorithm>
#include <type_traits>

#include "ops/declare/declare.h"
#include "ops/device/launch_fold.h"
#include "ops/device/launch_math.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/wide.h"
#include "ops/tensor/lines.h"

namespace anabranch::tensor {
namespace {

// Whether `a` beats the first one so far; NaN never does, and a number beats NaN.
template <bool kLargest, class T> bool wins(T a, T top) {
  return kLargest ? !(a <= top) && a == a : !(a >= top) && a == a;
}

// The index of the extreme of n adjacent elements: first the extreme of the numbers, then its index.
template <bool kLargest, class T> int64_t first_place(const T* x, int64_t n) {
  using Fold = std::conditional_t<kLargest, FoldMax<T>, FoldMin<T>>;
  constexpr int64_t kParts = 16;
  T part[kParts];
  std::fill_n(part, kParts, Fold::start);
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (int64_t k = 0; k < kParts; ++k)
      part[k] = Fold::join(x[i + k], part[k]);  // keeps the second operand if one is NaN
  }
  for (; i < n; ++i) part[0] = Fold::join(x[i], part[0]);
  T top = Fold::start;
  for (const T p : part) top = Fold::join(p, top);
  for (i = 0; i + kParts <= n; i += kParts) {
    bool here = false;
    for (int64_t k = 0; k < kParts; ++k) here |= x[i + k] == top;
    if (here) break;
  }
  for (; i < n; ++i) {
    if (x[i] == top) return i;
  }
  return 0;  // all are NaN
}

// The same along an axis with stride `inner`, for a strip of adjacent lines: row after row.
constexpr int64_t kStrip = 256;
template <bool kLargest, class T>
void first_places(const T* x, int64_t extent, int64_t inner, int64_t count, int64_t* places) {
  T top[kStrip];
  int64_t place[kStrip];
  std::copy_n(x, count, top);
  std::fill_n(place, count, 0);
  for (int64_t j = 1; j < extent; ++j) {
    const T* row = x + j * inner;
    for (int64_t i = 0; i < count; ++i) {
      const bool better = wins<kLargest>(row[i], top[i]);
      top[i] = better ? row[i] : top[i];
      place[i] = better ? j : place[i];
    }
  }
  std::copy_n(place, count, places);
}

// The indices of `count` lines from number `line` on, which are adjacent if `inner` is not 1.
using PlacesOf = void (*)(const Lines& l, const void* x, int64_t line, int64_t count, int64_t* places);

template <bool kLargest, class T>
void places_of(const Lines& l, const void* data, int64_t line, int64_t count, int64_t* places) {
  const T* x = static_cast<const T*>(data) + l.begin(line);
  const auto find = [=, &l] {
    if (l.inner == 1) {
      for (int64_t k = 0; k < count; ++k) places[k] = first_place<kLargest>(x + k * l.extent, l.extent);
    } else {
      first_places<kLargest>(x, l.extent, l.inner, count, places);
    }
  };
  if constexpr (std::is_floating_point_v<T>) {
    in_wide_vectors(find);
  } else {
    find();
  }
}

void store(const int64_t* places, int64_t count, Tensor* out, int64_t at) {
  visit_dtype(out->dtype(), [&]<class To>(TypeTag<To>) {
    To* to = out->mutable_data<To>() + at;
    for (int64_t k = 0; k < count; ++k) to[k] = static_cast<To>(places[k]);
  });
}

void all_places(const KernelContext& c, const Lines& l, PlacesOf places_of, const void* x, Tensor* out) {
  const bool rows = l.inner == 1;  // strips of lines: one after another, or adjacent
  const int64_t strip = rows ? 1 : kStrip, across = (l.inner + strip - 1) / strip;
  const int64_t grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, l.extent * std::min(kStrip, l.inner)));
  c.parallel_for(l.outer * across, grain, [&, out](int64_t begin, int64_t end) {
    int64_t places[kStrip];
    for (int64_t s = begin; s < end;) {
      const int64_t from = rows ? s : s / across * l.inner + s % across * strip;
      const int64_t count = rows ? std::min(kStrip, end - s) : std::min(strip, l.inner - s % across * strip);
      places_of(l, x, from, count, places);
      store(places, count, out, from);
      s += rows ? count : 1;
    }
  });
}

// By the device kernel "<op>/<X's type>/<Out's type>".
Kernel arg_there(DType dtype, const KernelArgs& op) {
  const int32_t requested = op.attr<int32_t>("dtype");
  const DType place = requested < 0 ? DType::kInt64 : dtype_from_number(requested);
  return [kernel = device::kernel_of(op.op().type + "/" + device::type_name_of(dtype), place),
          axis = op.attr<int64_t>("axis"), x = op.in("X"), out = op.out("Out")](const DeviceContext& c) {
    const device::LinesOf l(c[x].shape(), axis);
    c.launch(kernel, device::FoldArgs{device::operand(c[x]), device::operand(c[out]), l.outer, l.width, l.inner, {}});
  };
}

Kernel arg_kernel(DType dtype, PlacesOf places_of, const KernelArgs& op) {
  return [dtype, places_of, axis = op.attr<int64_t>("axis"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    const Lines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
    all_places(c, l, places_of, c[x].data(dtype), &c[out]);
  };
}

template <bool kLargest> void declare_arg(const char* type, const char* doc) {
  OpDef& def =
      declare_op(type, __FILE__).doc(doc).in("X", "[...] numbers").out("Out", "X's shape without the axis, int64");
  def.required_attr("axis", AttrType::kLong, "axis; negative: from the end");
  def.attr<bool>("keepdims", false, "keeps the axis with extent 1")
      .attr<int32_t>("dtype", -1, "id of the dtype of Out, usually int32 or int64; -1: int64");
  def.infer([](InferContext& c) {
    const Shape& x = c.in("X").shape;
    const int axis = normal_axis(c.attr<int64_t>("axis"), x.rank(), "axis");
    AB_CHECK(x[axis] != 0, InvalidArgument, "X must have at least one element on the axis, got {}", x.str());
    const int32_t requested = c.attr<int32_t>("dtype");
    const DType dtype = requested < 0 ? DType::kInt64 : dtype_from_number(requested);
    AB_CHECK(dtype != DType::kFloat16, Unsupported, "dtype must not be float16");
    Shape out;
    for (int i = 0; i < x.rank(); ++i) {
      if (i != axis)
        out.push_back(x[i]);
      else if (c.attr<bool>("keepdims"))
        out.push_back(1);
    }
    c.set_out("Out", out.rank() ? out : scalar_shape(), dtype);
  });
  def.no_grad(kNotDifferentiable);
  def.device<float, double, float16, bfloat16, int32_t, int64_t>(DTypeFactory(arg_there));
  def.cpu<float, double, int32_t, int64_t, int16_t, uint8_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    return arg_kernel(dtype_of<T>, &places_of<kLargest, T>, op);
  });
}

void declare_args() {
  declare_arg<true>("arg_max", "Out = the index of the largest element along an axis.");
  declare_arg<false>("arg_min", "Out = the index of the smallest element along an axis.");
}

AB_OPS(declare_args);

}  // namespace
}  // namespace anabranch::tensor
