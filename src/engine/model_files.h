// A model saved by fluid.io.save_inference_model, of Anabranch or Fluid 1.x: the program, its parameters in a scope,
// and its inputs and outputs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/scope.h"
#include "ir/program.h"

namespace anabranch {

struct ModelFiles {
  std::string folder;
  std::string program = "__model__";  // in the folder
  std::string parameters = {};        // one file in the folder; empty: one file per variable
  bool trusted = false;               // also allows ops that do more than compute
};

struct Model {
  ir::ProgramRef program;
  std::shared_ptr<Scope> scope;
  std::vector<std::string> feeds, fetches;  // in the order of their columns
};

// NotFound, InvalidArgument: files are missing or damaged, or the model is not trusted and does more than compute.
Model load_model(const ModelFiles& files);

}  // namespace anabranch
