// Where the extreme along an axis stands: arg_max, arg_min. Ties go to the lower index.
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

// Whether `a` goes before the first one so far; a NaN never does, and a number goes before a NaN.
template <bool kLargest, class T> bool wins(T a, T top) {
  return kLargest ? !(a <= top) && a == a : !(a >= top) && a == a;
}

// The place of the first of n neighbours: the extreme of the numbers among them, then where it stands.
template <bool kLargest, class T> int64_t first_place(const T* x, int64_t n) {
  using Fold = std::conditional_t<kLargest, FoldMax<T>, FoldMin<T>>;
  constexpr int64_t kParts = 16;
  T part[kParts];
  std::fill_n(part, kParts, Fold::start);
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (int64_t k = 0; k < kParts; ++k) part[k] = Fold::join(x[i + k], part[k]);  // the second one where one is NaN
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
  return 0;  // no number at all
}

// The same along an axis whose elements stand `inner` apart, for a strip of lines side by side: row after row.
constexpr int64_t kStrip = 256;
template <bool kLargest, class T, class Place>
void first_places(const T* x, int64_t extent, int64_t inner, int64_t count, Place* places) {
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
  for (int64_t i = 0; i < count; ++i) places[i] = static_cast<Place>(place[i]);
}

template <bool kLargest, class T, class Place>
void all_places(const KernelContext& c, const Lines& l, const T* x, Place* places) {
  const int64_t strips = (l.inner + kStrip - 1) / kStrip, work = l.extent * std::min(kStrip, l.inner);
  const int64_t grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, work));
  c.parallel_for(l.outer * strips, grain, [=](int64_t begin, int64_t end) {
    in_wide_vectors([=] {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t o = s / strips, from = s % strips * kStrip;
        if (l.inner == 1) {
          places[o] = static_cast<Place>(first_place<kLargest>(x + o * l.extent, l.extent));
        } else {
          first_places<kLargest>(x + o * l.extent * l.inner + from, l.extent, l.inner, std::min(kStrip, l.inner - from),
                                 places + o * l.inner + from);
        }
      }
    });
  });
}

// By "<op>/<X's type>/<Out's type>" of devices.
template <class T> Kernel arg_there(const KernelArgs& op) {
  const int32_t wanted = op.attr<int32_t>("dtype");
  const DType place = wanted < 0 ? DType::kInt64 : dtype_from_number(wanted);
  return [kernel = device_kernel(op.op().type + "/" + device::type_name<T> + "/" + device::type_name_of(place)),
          axis = op.attr<int64_t>("axis"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    const device::LinesOf l(c[x].shape(), axis);
    DeviceContext::of(c).launch(
        kernel, device::FoldArgs{device::operand(c[x]), device::operand(c[out]), l.outer, l.width, l.inner, {}});
  };
}

template <bool kLargest> void declare_arg(const char* type, const char* doc) {
  OpDef& def =
      declare_op(type, __FILE__).doc(doc).in("X", "[...] numbers").out("Out", "X's shape without the axis, int64");
  def.required_attr("axis", AttrType::kLong, "axis; negative: from the end");
  def.attr<bool>("keepdims", false, "the axis stays, with extent 1")
      .attr<int32_t>("dtype", -1, "of Out, mostly int32 or int64; -1: int64");
  def.infer([](InferContext& c) {
    const Shape& x = c.in("X").shape;
    const int axis = normal_axis(c.attr<int64_t>("axis"), x.rank(), "axis");
    AB_CHECK(x[axis] != 0, InvalidArgument, "X is {}: there is nothing to choose from", x.str());
    const int32_t wanted = c.attr<int32_t>("dtype");
    const DType dtype = wanted < 0 ? DType::kInt64 : dtype_from_number(wanted);
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
  def.device<float, double, float16, bfloat16, int32_t, int64_t>(
      [](auto tag, const KernelArgs& op) { return arg_there<typename decltype(tag)::type>(op); });
  def.cpu<float, double, int32_t, int64_t, int16_t, uint8_t>([](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    return [axis = op.attr<int64_t>("axis"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
      const Lines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
      const T* from = c[x].template data<T>();
      visit_dtype(c[out].dtype(), [&](auto to) {
        all_places<kLargest>(c, l, from, c[out].template mutable_data<typename decltype(to)::type>());
      });
    };
  });
}

void declare_args() {
  declare_arg<true>("arg_max", "Out = index of the largest element along an axis.");
  declare_arg<false>("arg_min", "Out = index of the smallest element along an axis.");
}

AB_OPS(declare_args);

}  // namespace
}  // namespace anabranch::tensor
