// Text files whose columns are fed variables of a model, for the programs in this folder.
#pragma once
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/model_files.h"
#include "io/files.h"

// schema: a file that says which columns are which variable (src/data/row_format.h).
inline anabranch::data::Settings columns(const anabranch::Model& model, const std::vector<std::string>& feeds,
                                         const std::string& schema, std::vector<std::string> files) {
  anabranch::data::Settings settings;
  for (const auto& name : feeds) {
    const anabranch::ir::VarRef var = model.program->global_block().find_var(name);
    const std::vector<int64_t> extents = var->shape.to_vector();
    const bool dense = var->lod_level == 0;
    const anabranch::Shape of_a_line(std::vector<int64_t>(extents.begin() + 1, extents.end()));
    settings.schema.slots.push_back({name, var->dtype, dense, dense ? of_a_line : anabranch::Shape{1}});
  }
  settings.files = std::move(files);
  settings.format = anabranch::io::read_file(schema);
  settings.batch_size = 256;
  return settings;
}
