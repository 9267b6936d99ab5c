// A model saved by fluid.io.save_inference_model, of Anabranch or Fluid 1.x: the program, its parameters in a scope,
// its inputs and outputs, and the schema of raw rows that was saved with it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/scope.h"
#include "data/row_inputs.h"
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
  std::string schema = {};                  // of raw rows (data/schema_text.h); empty: the model was saved without one
};

// NotFound, InvalidArgument: files are missing or damaged, or the model is not trusted and does more than compute.
Model load_model(const ModelFiles& files);

// The file of a model's schema, next to its program: "__schema__.json" for "__model__".
std::string schema_file(const std::string& program);
// Raw rows as inputs of the model, in the order of its feeds. NotFound: it has no schema; InvalidArgument: its schema
// does not match its inputs.
data::RowInputs row_inputs(const Model& model);

}  // namespace anabranch
