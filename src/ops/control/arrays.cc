// Arrays of tensors. Writing an element copies the tensor and leaves other elements alone. All ops share one gradient
// array: the gradient of a read adds to an element; the gradient of a write removes the element, because the value from
// before the write does not reach the result.

#include "base/counted.h"
#include "opdef/op_def.h"
#include "ops/kernels/add_tensor.h"
#include "ops/kernels/copy.h"

namespace anabranch::control::arrays_op {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 24;

int64_t index_of(const KernelContext& c, In at) {
  const Tensor& t = c[at];
  AB_CHECK(t.numel() == 1 && t.dtype() == DType::kInt64, InvalidArgument, "I must be one int64, got {} {}",
           dtype_name(t.dtype()), t.shape().str());
  const int64_t i = *t.data<int64_t>();
  AB_CHECK(i >= 0, InvalidArgument, "I must be at least 0, got {}", i);
  return i;
}

const TensorArray& array_in(const KernelContext& c, In x, const char* slot) {
  static const TensorArray never_written;
  if (c.value(x).empty()) return never_written;
  const auto* array = c.value(x).get<TensorArray>();
  AB_CHECK(array, InvalidArgument, "{} must hold an array of tensors", slot);
  return *array;
}

Tensor& element(TensorArray& array, int64_t i) {
  AB_CHECK(i < kMostElements, ResourceExhausted, "I must be below {}, got {}", kMostElements, i);
  if (static_cast<size_t>(i) >= array.size()) array.resize(static_cast<size_t>(i) + 1);
  return array[static_cast<size_t>(i)];
}

void copy_tensor(const KernelContext& c, const Tensor& from, Tensor& to) {
  if (to.is_shared()) to = Tensor();
  to.resize(from.shape(), from.dtype());
  to.set_lod(from.lod_ref());
  copy_bytes(c, from, &to);
}

void check_index(const InferContext& c) {
  const Meta& i = c.in("I");
  AB_CHECK(i.shape.numel() == 1 || i.shape.numel() == kUnknown, ShapeMismatch, "I must have one element, got {}",
           i.shape.str());
}

void check_array(const InferContext& c, const char* slot) {
  if (c.runtime()) return;  // kernels check the value itself: an array may never have been written
  const VarKind kind = c.in(slot).kind;
  AB_CHECK(kind == VarKind::kLoDTensorArray, InvalidArgument, "{} must be an array of tensors, got a {}", slot,
           var_kind_name(kind));
}

}  // namespace

AB_OP(write_to_array)
    .doc("Out[I] = a copy of X; the array grows if it is shorter.")
    .in("X", "[...] any")
    .in("I", "[1] int64, at least 0")
    .out("Out", "an array of tensors")
    .effects(kDynamic | kKeepsOutputs)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      check_index(c);
      Meta& out = c.out("Out");
      out.kind = VarKind::kLoDTensorArray;
      if (c.runtime()) return;
      out.shape = c.in("X").shape;
      out.dtype = c.in("X").dtype;
      out.lod_level = c.in("X").lod_level;
    })
    .grad([](GradContext& g) {
      g.op("write_to_array_grad")
          .in("X", g.in("X"))
          .in("I", g.in("I"))
          .in("Out@GRAD", g.dout("Out"))
          .out("X@GRAD", g.din("X"))
          .out("Rest", g.dout("Out"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), i = op.in("I"), out = op.out("Out")](KernelContext& c) {
        auto& array = c.value(out).as<TensorArray>();
        copy_tensor(c, c[x], element(array, index_of(c, i)));
      };
    });

AB_OP(write_to_array_grad)
    .doc("X@GRAD = Out@GRAD[I], or zeros if nothing has been added to it; Rest = Out@GRAD without that element.")
    .in("X", "as in the forward op; only its shape is read")
    .in("I", "as in the forward op")
    .in("Out@GRAD", "the gradient of the array")
    .takes("Out@GRAD", Holds::kAnything)
    .out_optional("X@GRAD", "like X")
    .out("Rest", "Out@GRAD, updated in place")
    .updates("Out@GRAD", "Rest")
    .effects(kDynamic | kMaybeUnset)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      check_index(c);
      if (!c.runtime()) {
        c.out("Rest") = c.in("Out@GRAD");
      } else {
        c.out("Rest").kind = VarKind::kLoDTensorArray;
      }
      c.same_as("X@GRAD", "X");
    })
    .no_grad(kNoSecondOrder)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), i = op.in("I"), from = op.in("Out@GRAD"), out = op.out("X@GRAD"),
              rest = op.out("Rest")](KernelContext& c) {
        auto& array = c.value(rest).as<TensorArray>();
        if (&c.value(from) != &c.value(rest))
          array = array_in(c, from, "Out@GRAD");  // a sum of parts has a different name
        const int64_t at = index_of(c, i);
        const bool there = static_cast<size_t>(at) < array.size() && array[static_cast<size_t>(at)].initialized();
        if (!there) {
          if (c.needs(out)) zero_bytes(c, &c[out]);
          return;
        }
        Tensor taken = std::move(array[static_cast<size_t>(at)]);
        if (!c.needs(out)) return;
        AB_CHECK(taken.shape() == c[x].shape() && taken.dtype() == c[x].dtype(), ShapeMismatch,
                 "the gradient of element {} must be like X, got {} {} and {} {}", at, dtype_name(taken.dtype()),
                 taken.shape().str(), dtype_name(c[x].dtype()), c[x].shape().str());
        copy_bytes(c, taken, &c[out]);
      };
    });

AB_OP(read_from_array)
    .doc("Out = a copy of X[I]. With X_W, as in the gradients of Fluid's files: zeros like X_W if X[I] does not exist.")
    .in("X", "an array of tensors")
    .takes("X", Holds::kAnything)
    .in("I", "[1] int64")
    .in_optional("X_W", "[...] any")
    .out("Out", "like the element")
    .effects(kDynamic | kMaybeUnset)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      check_index(c);
      check_array(c, "X");
      if (c.runtime()) return;
      Meta& out = c.out("Out");
      out.kind = VarKind::kLoDTensor;
      out.shape = c.in("X").shape;
      out.dtype = c.in("X").dtype;
      out.lod_level = c.in("X").lod_level;
    })
    .grad([](GradContext& g) {
      g.op("read_from_array_grad").in("I", g.in("I")).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), i = op.in("I"), like = op.in("X_W"), out = op.out("Out")](KernelContext& c) {
        const TensorArray& array = array_in(c, x, "X");
        const int64_t at = index_of(c, i);
        Tensor& to = c.value(out).as<Tensor>();
        if (static_cast<size_t>(at) < array.size() && array[static_cast<size_t>(at)].initialized()) {
          return copy_tensor(c, array[static_cast<size_t>(at)], to);
        }
        AB_CHECK(like && c.value(like).initialized(), InvalidArgument,
                 "element {} of the array has never been written; it has {}", at,
                 counted(static_cast<int64_t>(array.size()), "element"));
        to.resize(c[like].shape(), c[like].dtype());
        to.set_lod(c[like].lod_ref());
        zero_bytes(c, &to);
      };
    });

AB_OP(read_from_array_grad)
    .doc("Adds Out@GRAD to X@GRAD[I].")
    .in("I", "as in the forward op")
    .in("Out@GRAD", "the gradient of the element")
    .out("X@GRAD", "the gradient of the array; other elements keep their values")
    .effects(kDynamic | kKeepsOutputs)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      check_index(c);
      Meta& out = c.out("X@GRAD");
      out.kind = VarKind::kLoDTensorArray;
      if (c.runtime()) return;
      out.shape = c.in("Out@GRAD").shape;
      out.dtype = c.in("Out@GRAD").dtype;
    })
    .no_grad(kNoSecondOrder)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [i = op.in("I"), from = op.in("Out@GRAD"), out = op.out("X@GRAD")](KernelContext& c) {
        Tensor& to = element(c.value(out).as<TensorArray>(), index_of(c, i));
        if (!to.initialized()) return copy_tensor(c, c[from], to);
        add_to_element(c, c[from], to);
      };
    });

AB_OP(lod_array_length)
    .doc("Out = the number of elements of the array.")
    .in("X", "an array of tensors")
    .takes("X", Holds::kAnything)
    .out("Out", "[1] int64")
    .effects(kDynamic | kMaybeUnset)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      check_array(c, "X");
      c.set_out("Out", Shape({1}), DType::kInt64);
    })
    .no_grad("the output is a count")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        *c[out].mutable_data<int64_t>() = static_cast<int64_t>(array_in(c, x, "X").size());
      };
    });

}  // namespace anabranch::control::arrays_op
