// Shapes at run time: the metas of an op's arguments are read from Values, the shape function runs, and the outputs get
// shape, dtype, LoD and memory. Also runs a single op on given Values, for tests and tools.
#pragma once
#include <functional>

#include "opdef/op_def.h"

namespace anabranch {

// Reusable between steps: refreshing allocates nothing if extents did not grow.
class RuntimeShapes {
 public:
  // Places of its tensors: `from` for inputs, `to` for outputs; if these are given, each tensor has its own.
  struct Places {
    Place from, to;
    std::vector<Place> each_from = {}, each_to = {};
  };
  RuntimeShapes(const OpDef& def, ir::OpRef op) : RuntimeShapes(def, std::move(op), Places()) {}
  RuntimeShapes(const OpDef& def, ir::OpRef op, Places places);
  // ins/outs: flattened arguments, null for kEmptyVar. NotFound if an input was never written.
  void refresh(Value* const* ins, Value* const* outs);
  const InferContext& context() const { return context_; }

 private:
  void check_in_place(Value* const* ins, Value* const* outs) const;

  void check_place(const Tensor& tensor, size_t in) const;

  const OpDef& def_;
  ir::OpRef op_;
  const Places places_;
  InferContext context_;
};

// Runs one op (checked, with defaults) on Values found by name.
void run_op(ir::Op op, const std::function<Value*(const std::string&)>& find, Parallel* parallel = nullptr,
            uint64_t seed = 0);

}  // namespace anabranch
