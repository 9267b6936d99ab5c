// Order along an axis: top_k, argsort, arg_max, arg_min. Ties go to the lower index.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"
#include "ops/device/launch_fold.h"
#include "ops/device/launch_math.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/sort_keys.h"
#include "ops/kernels/wide.h"

namespace anabranch::tensor {
namespace {

// A tensor as lines along an axis: element k of line (o, i) is x[(o * extent + k) * inner + i].
struct Lines {
  int64_t outer, extent, inner;
  Lines(const Shape& s, int axis) : outer(s.numel(0, axis)), extent(s[axis]), inner(s.numel(axis + 1, s.rank())) {}
  int64_t count() const { return outer * inner; }
  int64_t begin(int64_t line) const { return line / inner * extent * inner + line % inner; }
};

// Calls fn(line) for all lines, on idle workers; each piece has an index buffer of its own.
template <class Fn> void each_line(const KernelContext& c, const Lines& l, Fn fn) {
  const int64_t grain = std::max<int64_t>(1, kMathGrain / std::max<int64_t>(1, l.extent));
  c.parallel_for(l.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) fn(line);
  });
}

// Puts NaN behind all numbers, so that the order is a strict weak one whatever the data holds.
template <class T> bool before(T a, T b, bool descending) {
  if (a != a || b != b) return a == a && b != b;
  return descending ? a > b : a < b;
}

template <class T> struct Placed {
  T value;
  int64_t place;
};

// The k first elements of a line in the wanted order, in a buffer of the calling thread that only grows.
template <class T>
const std::vector<Placed<T>>& ranked(const T* line, int64_t step, int64_t extent, int64_t k, bool descending) {
  thread_local std::vector<Placed<T>> order;
  order.resize(static_cast<size_t>(extent));
  for (int64_t i = 0; i < extent; ++i) order[static_cast<size_t>(i)] = {line[i * step], i};
  const auto first = [descending](const Placed<T>& a, const Placed<T>& b) {
    return before(a.value, b.value, descending) || (!before(b.value, a.value, descending) && a.place < b.place);
  };
  if (k > extent / 16) {  // a heap of so many costs more than the parts of a quick sort
    if (k < extent) std::nth_element(order.begin(), order.begin() + k, order.end(), first);
    std::sort(order.begin(), order.begin() + k, first);
  } else {
    std::partial_sort(order.begin(), order.begin() + k, order.end(), first);
  }
  return order;
}

constexpr int64_t kFew = 16;

// A loop for vectors; false where a number is NaN.
bool any_above(const float* x, int64_t n, float limit) {
  int above = 0;
  for (int64_t i = 0; i < n; ++i) above |= x[i] > limit;
  return above != 0;
}

// The k <= kFew largest of n numbers that lie side by side, ties by place. Most blocks hold nothing larger than the
// least of those found so far.
void few_largest(const float* x, int64_t n, int64_t k, float* values, int64_t* places) {
  constexpr int64_t kBlock = 64;
  int64_t found = 0;
  const auto insert = [&](float value, int64_t place) {
    if (found == k && !before(value, values[k - 1], true)) return;
    int64_t at = found < k ? found++ : k - 1;
    for (; at > 0 && before(value, values[at - 1], true); --at) {
      values[at] = values[at - 1];
      places[at] = places[at - 1];
    }
    values[at] = value;
    places[at] = place;
  };
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t end = std::min(n, i + kBlock);
    const bool full = found == k && values[k - 1] == values[k - 1];  // all are numbers
    if (full && !any_above(x + i, end - i, values[k - 1])) continue;
    for (int64_t j = i; j < end; ++j) insert(x[j], j);
  }
}

// Values and indices of the k first elements of each line.
template <class T>
void select(const KernelContext& c, const Lines& l, int64_t k, bool descending, const T* x, T* out, int64_t* indices) {
  const Lines to = [&] {
    Lines t = l;
    t.extent = k;
    return t;
  }();
  each_line(c, l, [=](int64_t line) {
    const T* from = x + l.begin(line);
    if constexpr (std::is_same_v<T, float>) {
      if (descending && l.inner == 1 && k <= kFew && k < l.extent) {
        return few_largest(from, l.extent, k, out + to.begin(line), indices + to.begin(line));
      }
      if (k > l.extent / 16 && l.extent <= std::numeric_limits<uint32_t>::max()) {
        const auto& sorted = sorted_places(from, l.inner, l.extent, descending);
        for (int64_t j = 0; j < k; ++j) {
          const auto place = static_cast<int64_t>(static_cast<uint32_t>(sorted[static_cast<size_t>(j)]));
          out[to.begin(line) + j * l.inner] = from[place * l.inner];
          indices[to.begin(line) + j * l.inner] = place;
        }
        return;
      }
    }
    const auto& order = ranked(from, l.inner, l.extent, k, descending);
    for (int64_t j = 0; j < k; ++j) {
      const int64_t at = to.begin(line) + j * l.inner;
      out[at] = order[static_cast<size_t>(j)].value;
      indices[at] = order[static_cast<size_t>(j)].place;
    }
  });
}

// The gradient of what was selected goes back to where it came from.
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
  AB_CHECK(x.rank() > 0, ShapeMismatch, "X must have an axis");
  const int64_t extent = x[x.rank() - 1];
  AB_CHECK(k >= 1 && (k <= extent || extent == kUnknown), InvalidArgument, "k must be 1 to {} for X {}, got {}", extent,
           x.str(), k);
  return k;
}

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
  return [kernel = device_kernel(op.op().type + "/" + device::type_name<T> + "/" + device::name_of(place)),
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
  def.device<float, double, int32_t, int64_t>(
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

// axis: along which elements were selected.
Kernel gradient_kernel(auto tag, const KernelArgs& op, int axis) {
  using T = typename decltype(tag)::type;
  return [axis, indices = op.in("Indices"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
    const Shape &whole = c[dx].shape(), &part = c[dout].shape();
    const int at = normal_axis(axis, whole.rank(), "axis");
    const Lines l(whole, at);
    AB_CHECK(part.numel() == l.count() * part[at], ShapeMismatch, "Out@GRAD must be a part of X {}, got {}",
             whole.str(), part.str());
    give_back(c, l, part[at], c[indices].template data<int64_t>(), c[dout].template data<T>(),
              c[dx].template mutable_data<T>());
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

Kernel gradient_on_device(auto tag, const KernelArgs& op, int axis) {
  return [axis, kernel = device::kernel_of<typename decltype(tag)::type>("selected_grad"), indices = op.in("Indices"),
          dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
    const Shape &whole = c[dx].shape(), &part = c[dout].shape();
    const int at = normal_axis(axis, whole.rank(), "axis");
    const Lines l(whole, at);
    AB_CHECK(part.numel() == l.count() * part[at], ShapeMismatch, "Out@GRAD must be a part of X {}, got {}",
             whole.str(), part.str());
    device::OrderArgs a = order_args(l, part[at], c[dout], c[dx]);
    a.places_in = device::operand(c[indices]);
    DeviceContext::of(c).launch(kernel, a);
  };
}

AB_OP(top_k)
    .doc("Out, Indices = the k largest elements of each row (last axis), largest first, and where they stand.")
    .in("X", "[..., n] numbers")
    .in_optional("K", "[1] int: takes the place of k")
    .shape_from("K")
    .out("Out", "[..., k] as X")
    .out("Indices", "[..., k] int64")
    .attr<int32_t>("k", 1, "1 to n")
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
    .cpu<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), out = op.out("Out"), indices = op.out("Indices")](KernelContext& c) {
        const int last = c[x].shape().rank() - 1;
        select(c, Lines(c[x].shape(), last), c[out].shape()[last], true, c[x].data<T>(), c[out].mutable_data<T>(),
               c[indices].mutable_data<int64_t>());
      };
    })
    .device<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<typename decltype(tag)::type>("top_k"), x = op.in("X"), out = op.out("Out"),
              indices = op.out("Indices")](KernelContext& c) {
        const int last = c[x].shape().rank() - 1;
        device::OrderArgs a = order_args(Lines(c[x].shape(), last), c[out].shape()[last], c[x], c[out]);
        a.places = device::operand(c[indices]);
        a.flags = 1;
        DeviceContext::of(c).launch(kernel, a);
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
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return gradient_kernel(tag, op, -1); })
    .device<float, double>([](auto tag, const KernelArgs& op) { return gradient_on_device(tag, op, -1); });

AB_OP(argsort)
    .doc("Out, Indices = the elements along an axis in order, and where they stood.")
    .in("X", "[...] numbers")
    .out("Out", "[...] as X")
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
    .cpu<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [axis = op.attr<int32_t>("axis"), descending = op.attr<bool>("descending"), x = op.in("X"),
              out = op.out("Out"), indices = op.out("Indices")](KernelContext& c) {
        const Lines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
        select(c, l, l.extent, descending, c[x].data<T>(), c[out].mutable_data<T>(),
               c[indices].mutable_data<int64_t>());
      };
    })
    .device<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<typename decltype(tag)::type>("argsort"), axis = op.attr<int32_t>("axis"),
              descending = op.attr<bool>("descending"), x = op.in("X"), out = op.out("Out"),
              indices = op.out("Indices")](KernelContext& c) {
        const Lines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
        device::OrderArgs a = order_args(l, l.extent, c[x], c[out]);
        a.places = device::operand(c[indices]);
        a.flags = descending;
        DeviceContext::of(c).launch(kernel, a);
      };
    });

AB_GRAD(argsort)
    .doc("X@GRAD = Out@GRAD, each element where it stood.")
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([](auto tag, const KernelArgs& op) {
      return gradient_kernel(tag, op, op.attr<int32_t>("axis"));
    })
    .device<float, double>([](auto tag, const KernelArgs& op) {
      return gradient_on_device(tag, op, op.attr<int32_t>("axis"));
    });

}  // namespace
}  // namespace anabranch::tensor
