// The interface of shape functions: the metas (kind, shape, dtype, LoD) of an op's arguments. The same function runs
// when a layer is called (extents may be kUnknown, no LoD yet, only its depth) and when a plan gets new shapes
// (everything known, runtime() true). It sets the meta of every output it can; it never reads data.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "core/lod.h"
#include "core/value.h"
#include "ir/attr.h"
#include "ir/op.h"

namespace anabranch {

struct Meta {
  VarKind kind = VarKind::kLoDTensor;
  Shape shape;  // of SelectedRows: [height, ...]
  DType dtype = DType::kFloat32;
  int lod_level = 0;
  LoDRef lod;                     // at run time; null if there are no sequences
  bool unset = false;             // at run time: there is no value (kSkipsUnset)
  const Tensor* value = nullptr;  // at run time, of inputs that hold a tensor: for shapes that depend on values
};

class OpDef;
struct GradientShapes;

class InferContext {
 public:
  InferContext(const OpDef& def, const ir::Op& op, bool runtime);

  InferContext(const InferContext&) = delete;
  InferContext(InferContext&&) = default;

  bool runtime() const { return runtime_; }
  const ir::Op& op() const { return op_; }
  template <class T> const T& attr(std::string_view name) const { return op_.attr<T>(name); }

  int n_in(std::string_view slot) const;
  bool has_in(std::string_view slot) const { return n_in(slot) > 0; }
  const Meta& in(std::string_view slot, int i = 0) const;  // NotFound names the slot when absent
  int n_out(std::string_view slot) const;
  bool has_out(std::string_view slot) const { return n_out(slot) > 0; }
  Meta& out(std::string_view slot, int i = 0);  // to be set; absent optional outputs give a scratch Meta

  // The common cases.
  void same_as(std::string_view out, std::string_view in) { copy(out, in, true); }      // shape, dtype, kind and LoD
  void same_shape(std::string_view out, std::string_view in) { copy(out, in, false); }  // without LoD
  void set_out(std::string_view slot, const Shape& shape, DType dtype, int i = 0);
  void share_lod(std::string_view out, std::string_view in, int i = 0);  // the output gets the input's sequences

  // For the callers of shape functions: flattened arguments, slot after slot, as the op lists them.
  std::vector<Meta> ins, outs;

 private:
  friend void infer_gradient(InferContext& c);
  void copy(std::string_view out, std::string_view in, bool with_lod);
  static std::pair<int, int> locate(const std::vector<ir::Slot>& slots, std::string_view name);

  const OpDef& def_;
  const ir::Op& op_;
  bool runtime_;
  Meta scratch_;
  std::shared_ptr<GradientShapes> gradient_shapes_;  // of infer_gradient: computed at its first run
};

// The inherited shape function of a gradient op. The gradient of an input has the meta of that input, or, for an
// elementwise op, of its output. Outputs and their gradients must have the shapes of the forward op's shape function if
// its inputs are read, and otherwise each other's. Hand-written functions with more requirements call it, too.
void infer_gradient(InferContext& c);

}  // namespace anabranch
