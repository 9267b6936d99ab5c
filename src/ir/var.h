// A variable of a block: name, kind, shape, dtype. Not its value: that lives in a Scope.
#pragma once
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "core/value.h"

namespace anabranch::ir {

inline constexpr const char* kEmptyVar = "@EMPTY@";  // stands for "no variable" in an argument list
inline constexpr const char* kGradSuffix = "@GRAD";
inline std::string grad_name(const std::string& name) { return name + kGradSuffix; }

struct Var {
  std::string name;
  VarKind kind = VarKind::kLoDTensor;
  Shape shape;  // extents may be kUnknown
  DType dtype = DType::kFloat32;
  int lod_level = 0;
  bool persistable = false;
  bool need_check_feed = false;  // fluid.data: shape and dtype are compared when fed
  // Not in program files: known to the process that built the program.
  bool stop_gradient = false;
  bool is_data = false;
  bool is_parameter = false;
  bool trainable = true;  // of a parameter
  // The original declaration, before an op wrote the variable with another shape or dtype (ir/versions.h): up to that
  // version, oldest first.
  struct Earlier {
    int version;
    Shape shape;
    DType dtype;
  };
  std::vector<Earlier> earlier = {};
  // Of a reader: the tensors of each batch.
  struct Element {
    Shape shape;
    DType dtype = DType::kFloat32;
    int lod_level = 0;
  };
  std::vector<Element> elements = {};
};

}  // namespace anabranch::ir
