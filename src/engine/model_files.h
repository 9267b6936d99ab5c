// A model that fluid.io.save_inference_model wrote, or that Fluid 1.x did: the program, its parameters in a scope, and
// what goes in and out.
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
  std::string parameters = {};        // one file in the folder; empty: a file each
  bool trusted = false;               // also ops that do more than compute
};

struct Model {
  ir::ProgramRef program;
  std::shared_ptr<Scope> scope;
  std::vector<std::string> feeds, fetches;  // in the order of their columns
};

// NotFound, InvalidArgument: files that are missing or damaged, or a model that is not trusted and does more than
// compute.
Model load_model(const ModelFiles& files);

}  // namespace anabranch
