// Joins tensors along an axis, and splits them: concat, split.
#include <fmt/format.h>

#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/declare/shape_args.h"
#include "ops/nn/blocked.h"
#include "ops/tensor/join.h"

namespace anabranch::tensor {
namespace {

// The same axis at run time.
int axis_in(const KernelContext& c, In tensor, int32_t attr, int rank) {
  return normal_axis(tensor ? integers_of(c[tensor], "AxisTensor").at(0) : attr, rank, "axis");
}

// Along axis 0 the sequences of all inputs are concatenated, if all have LoD.
LoDRef joined_lod(const InferContext& c) {
  LoD lod;
  for (int i = 0; i < c.n_in("X"); ++i) {
    const LoDRef& part = c.in("X", i).lod;
    if (!part || part->empty()) return nullptr;
    AB_CHECK(i == 0 || part->size() == lod.size(), InvalidArgument,
             "all X must have the {} LoD levels of X[0], got {} in X[{}]", lod.size(), part->size(), i);
    i == 0 ? void(lod = *part) : append_lod(&lod, *part);
  }
  return std::make_shared<const LoD>(std::move(lod));
}

// The joint shape of the inputs for a known axis.
Shape joined_shape(const InferContext& c, int axis) {
  const Meta& first = c.in("X");
  Shape out = first.shape;
  for (int i = 1; i < c.n_in("X"); ++i) {
    const Meta& x = c.in("X", i);
    AB_CHECK(x.shape.rank() == out.rank(), ShapeMismatch, "X[{}] must have the rank of X[0], {}, got {}", i,
             first.shape.str(), x.shape.str());
    AB_CHECK(x.dtype == first.dtype, InvalidArgument, "X[{}] must hold {}, like X[0], got {}", i,
             dtype_name(first.dtype), dtype_name(x.dtype));
    for (int a = 0; a < out.rank(); ++a) {
      const int64_t e = x.shape[a];
      if (a == axis) {
        out.set(a, out[a] < 0 || e < 0 ? kUnknown : out[a] + e);
      } else {
        AB_CHECK(out[a] == e || out[a] < 0 || e < 0, ShapeMismatch, "X[0] is {}, X[{}] is {}, they differ at axis {}",
                 first.shape.str(), i, x.shape.str(), a);
        if (out[a] < 0) out.set(a, e);
      }
    }
  }
  return out;
}

bool open_axis(const InferContext& c) { return c.has_in("AxisTensor") && !c.in("AxisTensor").value; }

int axis_of(const InferContext& c, int rank) {
  return normal_axis(scalar_or(c, "AxisTensor", c.attr<int32_t>("axis")), rank, "axis");
}

Shape unknown_of_rank(int rank) { return Shape(std::vector<int64_t>(static_cast<size_t>(rank), kUnknown)); }

void infer_concat(InferContext& c) {
  AB_CHECK(c.n_in("X") > 0, InvalidArgument, "X must list at least one tensor");
  const Meta& first = c.in("X");
  if (open_axis(c)) return c.set_out("Out", unknown_of_rank(first.shape.rank()), first.dtype);
  const int axis = axis_of(c, first.shape.rank());
  c.set_out("Out", joined_shape(c, axis), first.dtype);
  c.share_lod("Out", "X");
  if (axis == 0 && c.runtime()) c.out("Out").lod = joined_lod(c);
}

// Extents of the sections along the axis.
std::vector<int64_t> sections_of(const InferContext& c, int64_t whole) {
  const int n = c.n_out("Out");
  const auto attr = int_attr(c.op(), "sections");
  const int32_t num = c.attr<int32_t>("num");
  AB_CHECK(num >= 0, InvalidArgument, "num must be at least 0, got {}", num);
  if (num > 0 || (attr.empty() && !c.has_in("SectionsTensorList"))) {
    AB_CHECK(num == n, InvalidArgument, "num must be the number of outputs, {}, got {}", n, num);
    AB_CHECK(whole < 0 || whole % n == 0, InvalidArgument, "an extent of {} cannot be split into {} equal sections",
             whole, n);
    return std::vector<int64_t>(static_cast<size_t>(n), whole < 0 ? kUnknown : whole / n);
  }
  std::vector<int64_t> parts = int_arg(c, "", "SectionsTensorList", attr, kUnknown).values;
  AB_CHECK(static_cast<int>(parts.size()) == n, InvalidArgument,
           "sections must have one entry for each of the {} outputs, got {}", n, parts.size());
  int64_t sum = 0;
  int64_t* open = nullptr;
  for (int64_t& p : parts) {
    AB_CHECK(p >= -1 && (p >= 0 || !open || !c.runtime()), InvalidArgument,
             "sections must be positive, except for one -1, got {}", fmt::join(attr, ", "));
    if (p < 0)
      open = &p;
    else
      sum += p;
  }
  if (whole >= 0 && open && c.op().input("SectionsTensorList").empty()) *open = whole - sum;
  if (whole >= 0 && c.runtime() && open) *open = whole - sum;
  for (int64_t p : parts)
    AB_CHECK(p >= -1 && (p >= 0 || whole < 0 || !c.runtime()), InvalidArgument, "sections must not exceed {}", whole);
  AB_CHECK(whole < 0 || open || sum == whole, InvalidArgument, "sections must add up to {}, got {}", whole, sum);
  return parts;
}

void infer_split(InferContext& c) {
  const Meta& x = c.in("X");
  AB_CHECK(c.n_out("Out") > 0, InvalidArgument, "Out must list at least one tensor");
  const bool open = open_axis(c);
  const int axis = open ? 0 : axis_of(c, x.shape.rank());
  const auto parts = sections_of(c, open ? kUnknown : x.shape[axis]);
  for (int i = 0; i < c.n_out("Out"); ++i) {
    Shape s = open ? unknown_of_rank(x.shape.rank()) : x.shape;
    if (!open) s.set(axis, parts[static_cast<size_t>(i)]);
    c.set_out("Out", s, x.dtype, i);
    if (axis != 0) c.share_lod("Out", "X", i);
  }
}

template <class On> Kernel concat_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), attr = op.attr<int32_t>("axis"), xs = op.in("X"), at = op.in("AxisTensor"),
          out = op.out("Out")](KernelContext& c) {
    join(on, c, xs, axis_in(c, at, attr, c[out].shape().rank()), &c[out]);
  };
}

template <class On> Kernel concat_grad_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), attr = op.attr<int32_t>("axis"), xs = op.in("X"), at = op.in("AxisTensor"),
          dout = op.in("Out@GRAD"), dxs = op.out("X@GRAD")](KernelContext& c) {
    const Shape& s = c[dout].shape();
    const int axis = axis_in(c, at, attr, s.rank());
    cut(on, c, c[dout], s.numel(0, axis), dxs, [&](int i) { return width_at(c.at(xs, i), axis); });
  };
}

template <class On> Kernel split_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), attr = op.attr<int32_t>("axis"), x = op.in("X"), at = op.in("AxisTensor"),
          outs = op.out("Out")](KernelContext& c) {
    const Shape& s = c[x].shape();
    const int axis = axis_in(c, at, attr, s.rank());
    cut(on, c, c[x], s.numel(0, axis), outs, [&](int i) {
      AB_CHECK(c.needs(outs, i), Unsupported, "output {} must be given", i);
      return width_at(c.at(outs, i), axis);
    });
  };
}

AB_OP(concat)
    .doc("Out = the tensors X, concatenated along an axis.")
    .in_list("X", "tensors that agree in all other axes")
    .in_optional("AxisTensor", "[1] int: replaces axis")
    .out("Out", "[...] with the sum of the extents on the axis")
    .attr<int32_t>("axis", 0, "axis of concatenation; negative: from the end")
    .ignores({"use_mkldnn", "use_quantizer"})
    .images({"X", "Out"}, nn::kBlocked)
    .shape_from("AxisTensor")
    .infer(infer_concat)
    .grad_reads({"X", "AxisTensor"})
    .grad_to({"X"})
    .cpu_any(concat_kernel<OnHost>)
    .device_any(concat_kernel<OnDevice>);

AB_GRAD(concat)
    .doc("X@GRAD[i] = the section of Out@GRAD that corresponds to X[i].")
    .grad(second_order::linear)
    .shape_from("AxisTensor")
    .grad_lod("X@GRAD", "X")
    .cpu_any(concat_grad_kernel<OnHost>)
    .device_any(concat_grad_kernel<OnDevice>);

AB_OP(split)
    .doc("Out[i] = section i of X along an axis.")
    .in("X", "[...] any")
    .in_optional("AxisTensor", "[1] int: replaces axis")
    .in_optional_list("SectionsTensorList", "[1] int each: replaces sections")
    .out_list("Out", "the sections of X")
    .attr<std::vector<int32_t>>("sections", {},
                                "extents of the sections, one may be -1: the rest; empty: equal sections")
    .attr<int32_t>("num", 0, "number of equal sections; above 0 it replaces sections")
    .attr<int32_t>("axis", 0, "axis to split")
    .shape_from("AxisTensor")
    .shape_from("SectionsTensorList")
    .infer(infer_split)
    .grad([](GradContext& g) {
      g.op("concat")
          .bare()
          .in("X", g.dout("Out"))
          .in("AxisTensor", g.in("AxisTensor"))
          .out("Out", g.din("X"))
          .attr("axis", g.attr<int32_t>("axis"));
    })
    .dtype_of_input("X")
    .cpu_any(split_kernel<OnHost>)
    .device_any(split_kernel<OnDevice>);

}  // namespace
}  // namespace anabranch::tensor
