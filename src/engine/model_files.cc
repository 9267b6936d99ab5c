#include "engine/model_files.h"

#include <filesystem>
#include <map>

#include "base/error.h"
#include "io/files.h"
#include "ir/serialize.h"
#include "opdef/file_ops.h"
#include "opdef/only_computes.h"
#include "sparse/growable_table.h"

namespace anabranch {
namespace {

constexpr const char* kFeed = "feed";
constexpr const char* kFetch = "fetch";

std::vector<std::string> in_columns(const ir::Block& block, const std::string& type) {
  std::map<int, std::string> found;
  for (const auto& op : block.ops()) {
    if (op->type != type) continue;
    const auto& names = type == kFeed ? op->output("Out") : op->input("X");
    AB_CHECK(names.size() == 1 && op->has_attr("col"), InvalidArgument, "a {} op must name one variable and its column",
             type);
    found[op->attr<int32_t>("col")] = names[0];
  }
  std::vector<std::string> out;
  for (const auto& [column, name] : found) out.push_back(name);
  return out;
}

void check_ops(const ir::Program& program) {
  for (int b = 0; b < program.num_blocks(); ++b) {
    for (const auto& op : program.block(b).ops()) {
      AB_CHECK(op->type == kFeed || op->type == kFetch || only_computes(op->type), InvalidArgument,
               "operator {} does more than compute, and the model is not trusted", op->type);
    }
  }
}

// A growable table (docs/tables.md): rows of keys in a separate file.
bool is_table(const ir::Var& var) {
  return var.kind == VarKind::kSelectedRows && var.shape.rank() > 0 && var.shape[0] < 0;
}

}  // namespace

Model load_model(const ModelFiles& files) {
  Model model;
  const std::string path = files.folder + "/" + files.program;
  model.program = ir::parse_program(io::read_file_of(files.folder, path));
  replace_file_ops(*model.program);
  if (!files.trusted) check_ops(*model.program);
  const ir::Block& block = model.program->global_block();
  model.feeds = in_columns(block, kFeed);
  model.fetches = in_columns(block, kFetch);
  model.scope = Scope::make();
  std::vector<std::string> tensors;
  for (const auto& var : block.vars()) {
    if (!var->persistable || var->name == kFeed || var->name == kFetch) continue;
    if (!is_table(*var)) {
      tensors.push_back(var->name);
      continue;
    }
    const std::string name = files.parameters.empty() ? var->name : files.parameters + "." + var->name;
    io::check_file_of(files.folder, files.folder + "/" + name);
    sparse::GrowableTable::put(model.scope->var(var->name),
                               sparse::GrowableTable::open(var->name, files.folder + "/" + name));
  }
  io::load_vars(*model.scope, tensors, files.folder, files.parameters);
  const std::string schema = files.folder + "/" + schema_file(files.program);
  if (std::filesystem::exists(schema)) model.schema = io::read_file_of(files.folder, schema);
  return model;
}

std::string schema_file(const std::string& program) {
  return program == "__model__" ? "__schema__.json" : program + ".schema.json";
}

data::RowInputs row_inputs(const Model& model) {
  AB_CHECK(!model.schema.empty(), NotFound,
           "the model has no schema for raw rows: save it with save_inference_model(..., schema=schema)");
  data::Schema inputs;
  const ir::Block& block = model.program->global_block();
  for (const std::string& name : model.feeds) {
    const ir::VarRef var = block.find_var(name);
    AB_CHECK(var != nullptr, InvalidArgument, "the model has no variable {}", name);
    data::Slot slot;
    slot.name = name;
    slot.dtype = var->dtype;
    slot.dense = var->lod_level == 0;
    slot.shape = var->shape.rank() ? var->shape.slice(1, var->shape.rank()) : Shape{};
    inputs.slots.push_back(std::move(slot));
  }
  inputs.check();
  return data::RowInputs(model.schema, std::move(inputs));
}

}  // namespace anabranch
