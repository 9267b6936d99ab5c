// Slices of a tensor by start, end and stride along some axes: slice (strides of 1) and strided_slice.
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/tensor/slice_ranges.h"

namespace anabranch::tensor::slice_op {
namespace {

using device::OnDevice, device::OnHost;

// A list in a tensor is unknown for every axis, independent of the flags.
std::vector<int64_t> list_of(const InferContext& c, const char* attr, const char* tensor, const char* list,
                             SliceLists* l) {
  const IntArg arg = int_arg(c, tensor, list, int_attr(c.op(), attr), 0, l->axes.size());
  l->known = l->known && arg.known;
  if (!arg.known && c.has_in(tensor)) l->flags.clear();
  return arg.values;
}

SliceLists lists_of(const InferContext& c, bool strided) {
  SliceLists l;
  l.axes = int_attr(c.op(), "axes");
  l.flags = int_attr(c.op(), "infer_flags");
  l.starts = list_of(c, "starts", "StartsTensor", "StartsTensorList", &l);
  l.ends = list_of(c, "ends", "EndsTensor", "EndsTensorList", &l);
  l.strides = strided ? list_of(c, "strides", "StridesTensor", "StridesTensorList", &l)
                      : std::vector<int64_t>(l.axes.size(), 1);
  return l;
}

// The same at run time: those in inputs are read in each run.
class Sources {
 public:
  Sources(const KernelArgs& op, bool strided) {
    lists_.axes = int_attr(op.op(), "axes");
    lists_.starts = int_attr(op.op(), "starts");
    lists_.ends = int_attr(op.op(), "ends");
    lists_.strides = strided ? int_attr(op.op(), "strides") : std::vector<int64_t>(lists_.axes.size(), 1);
    starts_ = {op.in("StartsTensor"), op.in("StartsTensorList")};
    ends_ = {op.in("EndsTensor"), op.in("EndsTensorList")};
    if (strided) strides_ = {op.in("StridesTensor"), op.in("StridesTensorList")};
  }
  SliceRanges get(const KernelContext& c, const Shape& x) {
    read(c, starts_, &lists_.starts);
    read(c, ends_, &lists_.ends);
    read(c, strides_, &lists_.strides);
    return ranges_of(lists_, x);
  }

 private:
  struct Inputs {
    In tensor, list;
  };
  static void read(const KernelContext& c, const Inputs& from, std::vector<int64_t>* values) {
    if (from.tensor) *values = integers_of(c[from.tensor], "positions");
    if (from.tensor || !from.list) return;
    values->clear();
    for (int i = 0; i < from.list.count; ++i) values->push_back(integers_of(c.at(from.list, i), "positions").at(0));
  }

  SliceLists lists_;
  Inputs starts_, ends_, strides_;
};

void infer_slice(InferContext& c, bool strided) {
  const Meta& x = c.in("Input");
  const SliceLists l = lists_of(c, strided);
  const SliceRanges r = ranges_of(l, x.shape);
  std::array<bool, kMaxRank> gone{};
  for (int64_t a : int_attr(c.op(), "decrease_axis")) {
    const int axis = normal_axis(a, x.shape.rank(), "decrease_axis");
    AB_CHECK(r.of[axis].count == 1 || r.open[axis], InvalidArgument,
             "axis {} of {}, which is removed, must keep one element, got {}", axis, x.shape.str(), r.of[axis].count);
    gone[axis] = true;
  }
  Shape out;
  for (int i = 0; i < x.shape.rank(); ++i) {
    AB_CHECK(r.open[i] || r.of[i].count > 0 || x.shape[i] == 0, InvalidArgument,
             "at least one element of axis {} of {} must be kept", i, x.shape.str());
    if (!gone[i]) out.push_back(r.of[i].count);
  }
  c.set_out("Out", out.rank() ? out : scalar_shape(), x.dtype);
  // Out of `slice` has no LoD if the first axis is that of rows, even if all rows are kept.
  const bool of_rows = !strided && !l.axes.empty() && l.axes[0] == 0;
  if (!of_rows && !gone[0] && r.of[0].count == x.shape[0]) c.share_lod("Out", "Input");
}

// The loop over a slice of `whole`: operand 0 is the slice, dense; operand 1 the whole, from *offset on.
NdLoop<2> part_loop(const Shape& whole, const SliceRanges& r, int64_t* offset) {
  const auto steps = dense_strides(whole);
  Shape part;
  for (int i = 0; i < whole.rank(); ++i) part.push_back(r.of[i].count);
  const auto dense = dense_strides(part);
  NdLoop<2> loop;
  *offset = 0;
  for (int i = 0; i < whole.rank(); ++i) {
    if (part[i] > 0) *offset += r.of[i].begin * steps[i];
    loop.add_axis(part[i], {dense[i], steps[i] * r.of[i].step});
  }
  return loop;
}

// The slots that may replace the attributes starts, ends and strides: tensors, then lists of them.
std::vector<const char*> position_slots(bool strided) {
  if (!strided) return {"StartsTensor", "EndsTensor", "StartsTensorList", "EndsTensorList"};
  return {"StartsTensor", "EndsTensor", "StridesTensor", "StartsTensorList", "EndsTensorList", "StridesTensorList"};
}

void arguments(OpDef& def, bool strided) {
  std::vector<std::string> reads = {"Input"};
  const auto slots = position_slots(strided);
  for (size_t k = 0; k < slots.size(); ++k) {
    k < slots.size() / 2 ? def.in_optional(slots[k], "[n] int: replaces the attribute")
                         : def.in_optional_list(slots[k], "[1] int each");
    def.shape_from(slots[k]);
    reads.emplace_back(slots[k]);
  }
  def.grad_reads(reads).grad_to({"Input"});
  def.attr<std::vector<int32_t>>("axes", {}, "axes to slice")
      .attr<std::vector<int32_t>>("starts", {}, "first position on each axis");
  def.attr<std::vector<int32_t>>("ends", {}, "position after the last one on each axis");
  if (strided) def.attr<std::vector<int32_t>>("strides", {}, "strides, not 0; negative ones go backwards");
  def.attr<std::vector<int32_t>>("infer_flags", {},
                                 "1 for each axis whose numbers are in the attributes, -1 for others");
  def.attr<std::vector<int32_t>>("decrease_axis", {}, "axes of one element to remove");
}

template <class On> KernelFactory take(bool strided) {
  return [strided](const KernelArgs& op) -> Kernel {
    for (const char* slot : position_slots(strided)) On::reads(op, {slot});
    return [on = On(op.dtype()), sources = Sources(op, strided), x = op.in("Input"),
            out = op.out("Out")](KernelContext& c) mutable {
      int64_t offset = 0;
      const auto loop = part_loop(c[x].shape(), sources.get(c, c[x].shape()), &offset);
      AB_CHECK(loop.total() == c[out].numel(), ShapeMismatch, "Out must have {} elements, got {}", loop.total(),
               c[out].shape().str());
      on.strided(c, loop, c[x], offset, &c[out], 0);
    };
  };
}

template <class On> KernelFactory put_back(bool strided) {
  return [strided](const KernelArgs& op) -> Kernel {
    for (const char* slot : position_slots(strided)) On::reads(op, {slot});
    return [on = On(op.dtype()), sources = Sources(op, strided), dout = op.in("Out@GRAD"),
            dx = op.out("Input@GRAD")](KernelContext& c) mutable {
      int64_t offset = 0;
      const auto loop = part_loop(c[dx].shape(), sources.get(c, c[dx].shape()), &offset);
      AB_CHECK(loop.total() == c[dout].numel(), ShapeMismatch, "Out@GRAD must have {} elements, got {}", loop.total(),
               c[dout].shape().str());
      on.zero(c, &c[dx]);
      on.strided(c, turned(loop), c[dout], 0, &c[dx], offset);
    };
  };
}

void declare(const char* type, const char* doc, bool strided) {
  OpDef& def = declare_op(type, __FILE__).doc(doc).in("Input", "[...] any");
  arguments(def, strided);
  def.out("Out", "the slice; [1] if no axis is left");
  def.infer([strided](InferContext& c) { infer_slice(c, strided); });
  def.dtype_of_input("Input").cpu_any(take<OnHost>(strided)).device_any(take<OnDevice>(strided));
  OpDef& back = declare_gradient(type, __FILE__).doc("Input@GRAD = Out@GRAD within the slice, else 0.");
  back.grad(second_order::linear);
  back.infer([](InferContext& c) {
    grad_as(c, "Input@GRAD", "Input");
    c.out("Input@GRAD").dtype = c.in("Out@GRAD").dtype;
  });
  back.dtype_of_input("Out@GRAD");
  back.cpu_any(put_back<OnHost>(strided)).device_any(put_back<OnDevice>(strided));
}

void declare_both() {
  declare("slice", "Out = the elements from starts to ends along some axes of Input.", false);
  declare("strided_slice", "Out = the elements from starts to ends with strides along some axes of Input.", true);
}

AB_OPS(declare_both);

}  // namespace
}  // namespace anabranch::tensor::slice_op
