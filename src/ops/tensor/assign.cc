// Copies, and constants that are written into the program.
#include <cstring>
#include <memory>

#include "ops/kernels/declare.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch {
namespace {

void copy_tensor(const KernelContext& c, const Tensor& from, Tensor* to) {
  if (from.raw() == to->raw()) return;
  const auto* source = static_cast<const char*>(from.raw());
  auto* target = static_cast<char*>(to->mutable_raw());
  c.parallel_for(static_cast<int64_t>(from.bytes()), kCheapGrain * 4, [=](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
  });
}

template <class T, class Attr> Kernel constant(const KernelArgs& op, const char* name) {
  const auto& values = op.attr<std::vector<Attr>>(name);
  return [values, out = op.out("Out")](KernelContext& c) {
    AB_CHECK(static_cast<int64_t>(values.size()) == c[out].numel(), ShapeMismatch,
             "assign_value: {} values for the shape {}", values.size(), c[out].shape().str());
    std::copy(values.begin(), values.end(), c[out].mutable_data<T>());
  };
}

}  // namespace

AB_OP(assign)
    .doc("Out = a copy of X.")
    .in_optional("X", "a tensor, sparse rows or an array of tensors")
    .takes("X", Holds::kAnything)
    .out("Out", "as X")
    .may_share("X", "Out")
    .traits(kRowWise | kLinear)
    .copies_when([](const ir::Op&) { return true; })
    .infer([](InferContext& c) {
      if (c.has_in("X")) c.same_as("Out", "X");
    })
    .grad([](GradContext& g) { g.op("assign").in("X", g.dout("Out")).out("Out", g.din("X")); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        if (!x || &c.value(x) == &c.value(out)) return;
        if (c.value(x).is<Tensor>()) return copy_tensor(c, c[x], &c[out]);
        c.value(out).copy_from(c.value(x));
      };
    });

AB_OP(assign_value)
    .doc("Out = the values in the attribute of the element type.")
    .out("Out", "as the attribute shape")
    .required_attr("shape", AttrType::kInts, "extents")
    .required_attr("dtype", AttrType::kInt, "number of the element type: bool, float32, int32 or int64")
    .attr<std::vector<int32_t>>("bool_values", {}, "values, row-major")
    .attr<std::vector<float>>("fp32_values", {}, "values")
    .attr<std::vector<int32_t>>("int32_values", {}, "values")
    .attr<std::vector<int64_t>>("int64_values", {}, "values")
    .infer([](InferContext& c) {
      const auto& extents = c.attr<std::vector<int32_t>>("shape");
      const Shape shape(std::vector<int64_t>(extents.begin(), extents.end()));
      AB_CHECK(shape.known() && shape.rank() > 0, InvalidArgument, "assign_value: shape is {}", shape.str());
      c.set_out("Out", shape, dtype_from_number(c.attr<int32_t>("dtype")));
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const DType dtype = dtype_from_number(op.attr<int32_t>("dtype"));
      switch (dtype) {
        case DType::kBool: return constant<bool, int32_t>(op, "bool_values");
        case DType::kFloat32: return constant<float, float>(op, "fp32_values");
        case DType::kInt32: return constant<int32_t, int32_t>(op, "int32_values");
        case DType::kInt64: return constant<int64_t, int64_t>(op, "int64_values");
        default: AB_THROW(Unsupported, "assign_value of {}", dtype_name(dtype));
      }
    });

AB_OP(merge_selected_rows)
    .doc("Out = the rows of X, one for each id, in ascending order; values of equal ids are added up.")
    .in("X", "sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "sparse rows")
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("used on gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), merged = std::make_shared<SelectedRows>()](KernelContext& c) {
        const SelectedRows& from = c.value(x).rows();
        auto& to = c.value(out).as<SelectedRows>();
        if (&from != &to) return merge_rows(from, &to);
        merge_rows(from, merged.get());
        std::swap(to, *merged);
      };
    });

AB_OP(get_tensor_from_selected_rows)
    .doc("Out = the values of the rows of X, as a tensor.")
    .in("X", "sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "[number of rows, ...]")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      // How many rows there are is known when they have been made.
      c.same_as("Out", "X");
      c.out("Out").kind = VarKind::kLoDTensor;
      if (c.runtime())
        c.out("Out").shape = Shape();
      else if (c.in("X").shape.rank())
        c.out("Out").shape.set(0, kUnknown);
    })
    .no_grad("used on gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Tensor& from = c.value(x).rows().value;
        c[out].resize(from.shape(), from.dtype());
        copy_tensor(c, from, &c[out]);
      };
    });

}  // namespace anabranch
