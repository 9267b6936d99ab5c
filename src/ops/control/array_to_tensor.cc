// Joins all tensors of an array into one, along an axis or along a new one.
#include <algorithm>

#include "opdef/op_def.h"
#include "ops/control/slices.h"

namespace anabranch::control::array_to_tensor_op {
namespace {

const TensorArray& elements(const KernelContext& c, In x) {
  const auto* array = c.value(x).get<TensorArray>();
  AB_CHECK(array && !array->empty(), InvalidArgument, "X must be an array with at least one tensor");
  return *array;
}

// An array seen as [before, extent, after] blocks along the axis.
struct Layout {
  Layout(const TensorArray& array, int32_t given, bool stacked) : stack(stacked) {
    const Shape& first = array[0].shape();
    const int rank = first.rank();
    axis = given < 0 ? given + rank + (stack ? 1 : 0) : given;
    AB_CHECK(axis >= 0 && axis < rank + (stack ? 1 : 0), InvalidArgument, "axis must be one of {} axes, got {}",
             rank + (stack ? 1 : 0), given);
    for (size_t i = 0; i < array.size(); ++i) {
      const Shape& s = array[i].shape();
      AB_CHECK(array[i].initialized(), InvalidArgument, "element {} of X was never written", i);
      Shape alike = s;
      if (!stack && s.rank() == rank) alike.set(axis, first[axis]);
      AB_CHECK(alike == first && array[i].dtype() == array[0].dtype(), ShapeMismatch,
               "element {} must be like element 0 except on axis {}, got {} {} and {} {}", i, axis,
               dtype_name(array[i].dtype()), s.str(), dtype_name(array[0].dtype()), first.str());
      total += stack ? 1 : s[axis];
    }
    before = first.numel(0, axis);
    after = first.numel(stack ? axis : axis + 1, rank);
  }
  int64_t extent(const Tensor& t) const { return stack ? 1 : t.shape()[axis]; }
  Shape shape(const Tensor& first) const {
    std::vector<int64_t> extents;
    for (int i = 0; i < first.shape().rank(); ++i) extents.push_back(first.shape()[i]);
    if (stack) {
      extents.insert(extents.begin() + axis, total);
    } else {
      extents[static_cast<size_t>(axis)] = total;
    }
    return Shape(extents);
  }
  bool stack;
  int axis = 0;
  int64_t before = 1, after = 1, total = 0;
};

// Copies between the joined tensor and the elements.
template <bool kJoin> void copy_all(const Layout& at, const TensorArray& array, char* joined, TensorArray* parts) {
  const size_t item = static_cast<size_t>(at.after) * dtype_size(array[0].dtype());
  size_t offset = 0;
  for (size_t i = 0; i < array.size(); ++i) {
    const size_t width = static_cast<size_t>(at.extent(array[i])) * item;
    for (int64_t b = 0; b < at.before && width > 0; ++b) {
      char* in_joined = joined + static_cast<size_t>(b) * static_cast<size_t>(at.total) * item + offset;
      const size_t in_part = static_cast<size_t>(b) * width;
      if constexpr (kJoin) {
        std::memcpy(in_joined, static_cast<const char*>(array[i].raw()) + in_part, width);
      } else {
        std::memcpy(static_cast<char*>((*parts)[i].mutable_raw()) + in_part, in_joined, width);
      }
    }
    offset += width;
  }
}

void infer_joined(InferContext& c) {
  if (c.runtime()) return;
  const bool stack = c.attr<bool>("use_stack");
  const Shape& x = c.in("X").shape;
  AB_CHECK(c.in("X").kind == VarKind::kLoDTensorArray, InvalidArgument, "X must be an array of tensors, got a {}",
           var_kind_name(c.in("X").kind));
  Meta& index = c.out("OutIndex");
  index.kind = VarKind::kLoDTensor;
  index.dtype = DType::kInt32;
  Meta& out = c.out("Out");
  out.kind = VarKind::kLoDTensor;
  out.dtype = c.in("X").dtype;
  if (x.rank() == 0) return;
  const int rank = x.rank() + (stack ? 1 : 0);
  const int axis = c.attr<int32_t>("axis") + (c.attr<int32_t>("axis") < 0 ? rank : 0);
  AB_CHECK(axis >= 0 && axis < rank, InvalidArgument, "axis must be one of {} axes, got {}", rank, axis);
  std::vector<int64_t> extents;
  for (int i = 0; i < x.rank(); ++i) extents.push_back(x[i]);
  if (stack) {
    extents.insert(extents.begin() + axis, kUnknown);
  } else {
    extents[static_cast<size_t>(axis)] = kUnknown;
  }
  out.shape = Shape(extents);
}

AB_OP(tensor_array_to_tensor)
    .doc("Out = the tensors of X joined along axis, or stacked along a new axis; OutIndex = their extents on it.")
    .in("X", "an array of tensors")
    .takes("X", Holds::kAnything)
    .out("Out", "the joined tensor")
    .out("OutIndex", "[tensors] int32: the extent of each on the axis")
    .attr<int32_t>("axis", 0, "the axis; -1 is the last one")
    .attr<bool>("use_stack", false, "stacks along a new axis")
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer(infer_joined)
    .grad_reads({"X"})
    .grad_from({"Out"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), index = op.out("OutIndex"), axis = op.attr<int32_t>("axis"),
              stack = op.attr<bool>("use_stack")](KernelContext& c) {
        const TensorArray& array = elements(c, x);
        const Layout at(array, axis, stack);
        Tensor& to = c.value(out).as<Tensor>();
        to.resize(at.shape(array[0]), array[0].dtype());
        to.set_lod(LoDRef());
        copy_all<true>(at, array, static_cast<char*>(to.mutable_raw()), nullptr);
        if (!c.needs(index)) return;
        Tensor& extents = c.value(index).as<Tensor>();
        extents.resize(Shape{static_cast<int64_t>(array.size())}, DType::kInt32);
        for (size_t i = 0; i < array.size(); ++i) {
          const Shape& s = array[i].shape();
          extents.mutable_data<int32_t>()[i] = static_cast<int32_t>(s[std::min(at.axis, s.rank() - 1)]);
        }
      };
    });

AB_GRAD(tensor_array_to_tensor)
    .doc("X@GRAD[i] = the part of Out@GRAD that corresponds to X[i].")
    .takes("X", Holds::kAnything)
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      Meta& out = c.out("X@GRAD");
      if (!c.runtime()) out = c.in("X");
      out.kind = VarKind::kLoDTensorArray;
    })
    .dtype_of_input("Out@GRAD")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), axis = op.attr<int32_t>("axis"),
              stack = op.attr<bool>("use_stack")](KernelContext& c) {
        const TensorArray& array = elements(c, x);
        const Layout at(array, axis, stack);
        AB_CHECK(c[dout].shape() == at.shape(array[0]) && c[dout].dtype() == array[0].dtype(), ShapeMismatch,
                 "Out@GRAD must be {}, got {}", at.shape(array[0]).str(), c[dout].shape().str());
        auto& parts = c.value(dx).as<TensorArray>();
        parts.resize(array.size());
        for (size_t i = 0; i < array.size(); ++i) {
          if (parts[i].is_shared()) parts[i] = Tensor();
          parts[i].resize(array[i].shape(), array[i].dtype());
        }
        copy_all<false>(at, array, const_cast<char*>(static_cast<const char*>(c[dout].raw())), &parts);
      };
    });

}  // namespace
}  // namespace anabranch::control::array_to_tensor_op
