// Crops tensors: crop, crop_tensor.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/tensor/part.h"

namespace anabranch::tensor::crop_op {
namespace {

using device::OnDevice, device::OnHost;

using Numbers = std::vector<int64_t>;

constexpr int kMostAxes = 6;  // as in Fluid 1.8.5

void check_count(const char* what, const Numbers& v, int rank) {
  AB_CHECK(static_cast<int>(v.size()) == rank, InvalidArgument, "{} must be {} numbers, one per axis of X, got {}",
           what, rank, v.size());
}

// ---- the offsets of the crop, in order of precedence: OffsetsTensor, Offsets, the attribute

void check_offsets(const Numbers& v, int rank) {
  check_count("offsets", v, rank);
  for (int64_t at : v) AB_CHECK(at >= 0, InvalidArgument, "offsets must not be negative, got {}", at);
}

bool has_list(const InferContext& c, const char* slot) { return *slot && c.has_in(slot); }

// Empty while a program is built and tensors hold them.
Numbers offsets_of(const InferContext& c, const char* list) {
  const Numbers attr = int_attr(c.op(), "offsets");
  const int rank = c.in("X").shape.rank();
  if (has_list(c, list))
    AB_CHECK(c.n_in(list) == rank, InvalidArgument, "{} must be {} numbers, got {}", list, rank, c.n_in(list));
  const bool free = attr.empty() || std::all_of(attr.begin(), attr.end(), [](int64_t v) { return v == -1; });
  AB_CHECK(has_list(c, list) || !c.has_in("Offsets") || free, InvalidArgument,
           "the attribute offsets must be empty if Offsets is given, got {} numbers", attr.size());
  const IntArg arg =
      has_list(c, list) ? int_arg(c, "", list, Numbers(attr.size(), -1), 0) : int_arg(c, "Offsets", "", attr, 0);
  if (!arg.known) return {};
  check_offsets(arg.values, rank);
  return arg.values;
}

struct Offsets {
  Numbers attr, given;
  In tensor, list;
  Offsets(const KernelArgs& op, bool with_list)
      : attr(int_attr(op.op(), "offsets")), tensor(op.in("Offsets")), list(with_list ? op.in("OffsetsTensor") : In{}) {}
  const Numbers& get(const KernelContext& c, int rank) {
    if (list) {
      given.clear();
      for (int i = 0; i < list.count; ++i) given.push_back(integers_of(c.at(list, i), "OffsetsTensor").at(0));
    } else if (tensor) {
      given = integers_of(c[tensor], "Offsets");
    }
    const Numbers& v = list || tensor ? given : attr;
    check_offsets(v, rank);
    return v;
  }
};

// ---- the shape of the crop

Shape cropped(const InferContext& c) {
  const Shape& x = c.in("X").shape;
  if (c.has_in("Y")) {
    check_rank(c, "Y", x.rank(), x.rank());
    return c.in("Y").shape;
  }
  const Numbers requested = int_attr(c.op(), "shape");
  check_count("shape", requested, x.rank());
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t n = requested[static_cast<size_t>(i)];
    AB_CHECK(n >= -1, InvalidArgument, "shape must hold -1 or extents, got {}", n);
    out.push_back(n < 0 ? x[i] : n);
  }
  return out;
}

// For crop_tensor: a negative extent reaches to the end of X, and 0 in the attribute is unknown.
Shape cropped_by_tensors(const InferContext& c, const Numbers& offsets) {
  const Shape& x = c.in("X").shape;
  AB_CHECK(!c.has_in("ShapeTensor") || c.n_in("ShapeTensor") == x.rank(), InvalidArgument,
           "ShapeTensor must be {} numbers, got {}", x.rank(), c.n_in("ShapeTensor"));
  const Numbers attr = int_attr(c.op(), "shape");
  const bool listed = c.has_in("ShapeTensor"), given = listed || c.has_in("Shape");
  const auto rank = static_cast<size_t>(x.rank());
  const IntArg arg = listed ? int_arg(c, "", "ShapeTensor", attr, 0) : int_arg(c, "Shape", "", attr, 0, rank);
  const Numbers& requested = !arg.known && listed ? attr : arg.values;
  check_count("shape", requested, x.rank());
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t n = requested[static_cast<size_t>(i)],
                  from = offsets.empty() ? kUnknown : offsets[static_cast<size_t>(i)];
    AB_CHECK(n != 0 || !given || !arg.known, InvalidArgument, "the extents in tensors must not be 0, got 0 for axis {}",
             i);
    const bool open = x[i] < 0 || from < 0 || (n == 0 && !c.runtime());
    out.push_back(n > 0 ? n : open ? kUnknown : std::max<int64_t>(0, x[i] - from));
  }
  return out;
}

template <class On> Kernel take_part(const KernelArgs& op, bool with_list) {
  return [on = On(op.dtype()), offsets = Offsets(op, with_list), x = op.in("X"),
          out = op.out("Out")](KernelContext& c) mutable {
    int64_t at = 0;
    const Shape& whole = c[x].shape();
    const auto loop = slice_loop(c[out].shape(), whole, offsets.get(c, whole.rank()).data(), &at);
    if (loop.total() > 0) on.strided(c, loop, c[x], at, &c[out], 0);
  };
}

template <class On> Kernel put_back(const KernelArgs& op, bool with_list) {
  On::reads(op, {"Offsets"});
  if (with_list) On::reads(op, {"OffsetsTensor"});
  return [on = On(op.dtype()), offsets = Offsets(op, with_list), dout = op.in("Out@GRAD"),
          dx = op.out("X@GRAD")](KernelContext& c) mutable {
    int64_t at = 0;
    const Shape& whole = c[dx].shape();
    const Numbers& from = offsets.get(c, whole.rank());
    check_inside(whole, from.data(), c[dout].shape());
    const auto loop = slice_loop(c[dout].shape(), whole, from.data(), &at);
    on.zero(c, &c[dx]);
    if (loop.total() > 0) on.strided(c, turned(loop), c[dout], 0, &c[dx], at);
  };
}

void infer_part(InferContext& c, const Shape& out, const Numbers& offsets) {
  check_rank(c, "X", 1, kMostAxes);
  check_inside(c.in("X").shape, offsets.empty() ? kOrigin.data() : offsets.data(), out);
  c.set_out("Out", out, c.in("X").dtype);
}

void infer_put_back(InferContext& c) {
  const int rank = c.in("X").shape.rank();
  check_rank(c, "Out@GRAD", rank, rank);
  check_same_dtype(c, "Out@GRAD", "X");
  grad_as(c, "X@GRAD", "X");
}

AB_OP(crop)
    .doc("Out = the slice of X that starts at offsets.")
    .in("X", "[...] float, at most 6 axes")
    .in_optional("Y", "[...]: its shape replaces shape")
    .in_optional("Offsets", "[axes of X] int: replaces offsets")
    .shape_from("Offsets")
    .out("Out", "[shape]")
    .attr<std::vector<int32_t>>("offsets", {}, "first position on each axis")
    .attr<std::vector<int32_t>>("shape", {}, "extents of the slice; -1: that of X")
    .infer([](InferContext& c) { infer_part(c, cropped(c), offsets_of(c, "")); })
    .grad_reads({"X", "Offsets"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([](auto, const KernelArgs& op) { return take_part<OnHost>(op, false); })
    .device<float, double, float16, bfloat16>([](auto, const KernelArgs& op) {
      return take_part<OnDevice>(op, false);
    });

AB_GRAD(crop)
    .doc("X@GRAD = Out@GRAD within the slice, else 0.")
    .infer(infer_put_back)
    .cpu<float, double>([](auto, const KernelArgs& op) { return put_back<OnHost>(op, false); })
    .device<float, double, float16, bfloat16>([](auto, const KernelArgs& op) { return put_back<OnDevice>(op, false); });

AB_OP(crop_tensor)
    .doc("Out = the slice of X that starts at offsets.")
    .in("X", "[...] float or int, at most 6 axes")
    .in_optional("Shape", "[axes of X] int: replaces shape")
    .in_optional("Offsets", "[axes of X] int: replaces offsets")
    .in_optional_list("ShapeTensor", "[1] int each: precedes Shape")
    .in_optional_list("OffsetsTensor", "[1] int each: precedes Offsets")
    .shape_from("Shape")
    .shape_from("Offsets")
    .shape_from("ShapeTensor")
    .shape_from("OffsetsTensor")
    .out("Out", "[shape]")
    .attr<std::vector<int32_t>>("offsets", {}, "first position on each axis; -1: given by tensors")
    .attr<std::vector<int32_t>>("shape", {}, "extents of the slice; -1: to the end of X")
    .infer([](InferContext& c) {
      const Numbers offsets = offsets_of(c, "OffsetsTensor");
      infer_part(c, cropped_by_tensors(c, offsets), offsets);
    })
    .grad_reads({"X", "Offsets", "OffsetsTensor"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double, int32_t, int64_t>([](auto, const KernelArgs& op) { return take_part<OnHost>(op, true); })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([](auto, const KernelArgs& op) {
      return take_part<OnDevice>(op, true);
    });

AB_GRAD(crop_tensor)
    .doc("X@GRAD = Out@GRAD within the slice, else 0.")
    .infer(infer_put_back)
    .cpu<float, double, int32_t, int64_t>([](auto, const KernelArgs& op) { return put_back<OnHost>(op, true); })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([](auto, const KernelArgs& op) {
      return put_back<OnDevice>(op, true);
    });

}  // namespace
}  // namespace anabranch::tensor::crop_op
