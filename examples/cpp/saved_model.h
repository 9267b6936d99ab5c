// A model that fluid.io.save_inference_model wrote, and the text that it scores, for the programs beside this file.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/compiled_program.h"
#include "io/files.h"
#include "ir/serialize.h"

namespace saved_model {

using namespace anabranch;

struct Model {
  ir::ProgramRef program;
  std::shared_ptr<Scope> scope = Scope::make();
  std::vector<ir::VarRef> feeds;
  std::vector<std::string> fetches;
};

// In the order of their columns.
inline std::vector<std::string> names(const ir::Block& block, const std::string& type) {
  std::map<int, std::string> found;
  for (const auto& op : block.ops()) {
    if (op->type != type) continue;
    found[op->attr<int32_t>("col")] = type == "feed" ? op->output("Out")[0] : op->input("X")[0];
  }
  std::vector<std::string> out;
  for (const auto& [column, name] : found) out.push_back(name);
  return out;
}

inline Model load(const std::string& folder) {
  Model model;
  model.program = ir::parse_program(io::read_file(folder + "/__model__"));
  const ir::Block& block = model.program->global_block();
  std::vector<std::string> parameters;
  for (const auto& var : block.vars()) {
    if (var->persistable && var->name != "feed" && var->name != "fetch") parameters.push_back(var->name);
  }
  io::load_vars(*model.scope, parameters, folder, "");
  for (const auto& name : names(block, "feed")) model.feeds.push_back(block.find_var(name));
  model.fetches = names(block, "fetch");
  return model;
}

// Files whose columns are these variables, as the schema says (src/data/row_format.h).
inline data::Settings text(const std::vector<ir::VarRef>& feeds, const std::string& schema,
                           std::vector<std::string> files) {
  data::Settings settings;
  for (const auto& var : feeds) {
    const std::vector<int64_t> extents = var->shape.to_vector();
    const bool dense = var->lod_level == 0;
    const std::vector<int64_t> of_a_line(extents.begin() + 1, extents.end());
    settings.schema.slots.push_back({var->name, var->dtype, dense, dense ? Shape(of_a_line) : Shape{1}});
  }
  settings.files = std::move(files);
  settings.format = io::read_file(schema);
  settings.batch_size = 256;
  return settings;
}

}  // namespace saved_model
