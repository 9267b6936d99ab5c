// Moves elements along axes: roll shifts them cyclically, flip reverses their order.
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"

namespace anabranch::tensor::roll_flip_op {
namespace {

using device::OnDevice, device::OnHost;

using Places = std::array<int64_t, kMaxRank>;

// Forward shift of each axis, in [0, extent).
Places moves_of(const Shape& x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& dims, int sign) {
  Places moves{};
  for (size_t k = 0; k < dims.size(); ++k) {
    const int axis = normal_axis(dims[k], x.rank(), "dims");
    const int64_t n = std::max<int64_t>(1, x[axis]), by = shifts[k] % n * sign;
    moves[axis] = ((moves[axis] + by) % n + n) % n;
  }
  return moves;
}

// Runs along the last shifted axis stay whole: two copies for each index of the axes before it.
void roll(const OnHost&, const KernelContext& c, const Tensor& x, const Places& moves, Tensor* out) {
  const Shape& s = x.shape();
  if (x.numel() == 0) return;
  int last = s.rank() - 1;
  while (last > 0 && moves[last] == 0) --last;
  const auto unit = static_cast<int64_t>(dtype_size(x.dtype()));
  const int64_t chunk = s.numel(last + 1, s.rank()) * unit, line = s[last] * chunk, head = moves[last] * chunk;
  const auto* from = static_cast<const char*>(x.raw());
  auto* to = static_cast<char*>(out->mutable_raw());
  c.parallel_each(s.numel(0, last), std::max<int64_t>(1, kCheapGrain / line), [&](int64_t i) {
    int64_t rest = i, at = 0, step = 1;
    for (int axis = last - 1; axis >= 0; --axis) {
      at += (rest % s[axis] + s[axis] - moves[axis]) % s[axis] * step;
      rest /= s[axis];
      step *= s[axis];
    }
    std::memcpy(to + i * line, from + at * line + line - head, static_cast<size_t>(head));
    std::memcpy(to + i * line + head, from + at * line, static_cast<size_t>(line - head));
  });
}

// The same by copies of blocks: each shifted axis is split in two.
void roll(const OnDevice& on, const KernelContext& c, const Tensor& x, const Places& moves, Tensor* out) {
  const Shape& s = x.shape();
  const auto steps = dense_strides(s);
  if (x.numel() == 0) return;
  int moved = 0;
  for (int axis = 0; axis < s.rank(); ++axis) moved += moves[axis] != 0;
  for (int chunk = 0; chunk < 1 << moved; ++chunk) {
    NdLoop<2> loop;
    int64_t from = 0, to = 0;
    for (int axis = 0, bit = 1; axis < s.rank(); ++axis) {
      if (moves[axis] == 0) {
        loop.add_axis(s[axis], {steps[axis], steps[axis]});
        continue;
      }
      const bool tail = (chunk & bit) != 0;  // the block that wraps around to the front
      const int64_t kept = s[axis] - moves[axis];
      loop.add_axis(tail ? moves[axis] : kept, {steps[axis], steps[axis]});
      from += tail ? kept * steps[axis] : 0;
      to += tail ? 0 : moves[axis] * steps[axis];
      bit *= 2;
    }
    on.strided(c, loop, x, from, out, to);
  }
}

void check_roll(const InferContext& c, const char* x) {
  const auto &shifts = c.attr<std::vector<int64_t>>("shifts"), &dims = c.attr<std::vector<int64_t>>("dims");
  AB_CHECK(shifts.size() == dims.size(), InvalidArgument, "shifts and dims must have the same length, got {} and {}",
           shifts.size(), dims.size());
  for (int64_t d : dims) normal_axis(d, c.in(x).shape.rank(), "dims");
}

template <class On> Kernel roll_kernel(const KernelArgs& op, const char* from, const char* to, int sign) {
  return [on = On(op.dtype()), shifts = op.attr<std::vector<int64_t>>("shifts"),
          dims = op.attr<std::vector<int64_t>>("dims"), sign, x = op.in(from), out = op.out(to)](KernelContext& c) {
    roll(on, c, c[x], moves_of(c[x].shape(), shifts, dims, sign), &c[out]);
  };
}

AB_OP(roll)
    .doc("Out = X with its elements shifted cyclically along axes.")
    .in("X", "[...] numbers")
    .out("Out", "[...] like X")
    .attr<std::vector<int64_t>>("shifts", {}, "distance of the shift for each of dims; negative: backwards")
    .attr<std::vector<int64_t>>("dims", {}, "the axes; negative: from the end; shifts of a repeated axis add up")
    .infer([](InferContext& c) {
      check_roll(c, "X");
      c.same_as("Out", "X");
    })
    .grad_reads({"X"})
    .cpu<float, double, int32_t, int64_t>([](auto, const KernelArgs& op) {
      return roll_kernel<OnHost>(op, "X", "Out", 1);
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([](auto, const KernelArgs& op) {
      return roll_kernel<OnDevice>(op, "X", "Out", 1);
    });

AB_GRAD(roll)
    .doc("X@GRAD = Out@GRAD shifted back.")
    .cpu<float, double, int32_t, int64_t>([](auto, const KernelArgs& op) {
      return roll_kernel<OnHost>(op, "Out@GRAD", "X@GRAD", -1);
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([](auto, const KernelArgs& op) {
      return roll_kernel<OnDevice>(op, "Out@GRAD", "X@GRAD", -1);
    });

void infer_flip(InferContext& c) {
  const Shape& x = c.in("X").shape;
  const auto dims = int_attr(c.op(), "dims");
  AB_CHECK(!dims.empty(), InvalidArgument, "dims must name at least one axis");
  for (size_t k = 0; k < dims.size(); ++k) {
    normal_axis(dims[k], x.rank(), "dims");
    AB_CHECK(std::find(dims.begin(), dims.begin() + static_cast<int64_t>(k), dims[k]) ==
                 dims.begin() + static_cast<int64_t>(k),
             InvalidArgument, "dims must not name an axis twice, got {}", fmt::join(dims, ", "));
  }
  c.same_as("Out", "X");
}

template <class On> Kernel flip_kernel(const KernelArgs& op) {
  return
      [on = On(op.dtype()), dims = int_attr(op.op(), "dims"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[x].shape();
        if (c[x].numel() == 0) return;
        Places from = dense_strides(s);
        const Places to = from;
        int64_t first = 0;
        for (int64_t d : dims) {
          const int axis = normal_axis(d, s.rank(), "dims");
          if (from[axis] < 0) continue;  // negative and nonnegative names of one axis
          first += (s[axis] - 1) * from[axis];
          from[axis] = -from[axis];
        }
        NdLoop<2> loop;
        for (int i = 0; i < s.rank(); ++i) loop.add_axis(s[i], {to[i], from[i]});
        on.strided(c, loop, c[x], first, &c[out], 0);
      };
}

AB_OP(flip)
    .doc("Out = X with the order of its elements reversed along some axes.")
    .in("X", "[...] any")
    .out("Out", "[...] like X")
    .attr<std::vector<int32_t>>("dims", {}, "the axes; negative: from the end")
    .infer(infer_flip)
    .grad([](GradContext& g) { g.op("flip").in("X", g.dout("Out")).out("Out", g.din("X")); })
    .cpu<float, double, int32_t, int64_t, bool>([](auto, const KernelArgs& op) { return flip_kernel<OnHost>(op); })
    .device<float, double, float16, bfloat16, int32_t, int64_t, bool>([](auto, const KernelArgs& op) {
      return flip_kernel<OnDevice>(op);
    });

}  // namespace
}  // namespace anabranch::tensor::roll_flip_op
