// Scores text with a model that fluid.io.save_inference_model wrote, without Python.
//
//   score MODEL SCHEMA FILE...      a line for each line of the files: what the model computes, values apart by spaces
//
// SCHEMA is a file that says which columns are which fed variable (src/data/row_format.h); the examples in Python write
// one beside each model, so: score demo_out/model demo_out/model/schema.txt demo_out/clicks/test.txt
#include <cstdio>
#include <map>

#include "data/dataset.h"
#include "engine/compiled_program.h"
#include "io/files.h"
#include "ir/serialize.h"

using namespace anabranch;

namespace {

struct Model {
  ir::ProgramRef program;
  std::shared_ptr<Scope> scope = Scope::make();
  std::vector<ir::VarRef> feeds;
  std::vector<std::string> fetches;
};

// In the order of their columns.
std::vector<std::string> names(const ir::Block& block, const std::string& type) {
  std::map<int, std::string> found;
  for (const auto& op : block.ops()) {
    if (op->type != type) continue;
    found[op->attr<int32_t>("col")] = type == "feed" ? op->output("Out")[0] : op->input("X")[0];
  }
  std::vector<std::string> out;
  for (const auto& [column, name] : found) out.push_back(name);
  return out;
}

Model load(const std::string& folder) {
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

data::Settings settings(const Model& model, const std::string& schema, std::vector<std::string> files) {
  data::Settings settings;
  for (const auto& var : model.feeds) {
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

void print_rows(const Tensor& scores) {
  const int64_t rows = scores.shape()[0], width = rows ? scores.shape().numel() / rows : 0;
  const auto* value = scores.data<float>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < width; ++k) std::printf(k ? " %.7g" : "%.7g", *value++);
    std::printf("\n");
  }
}

void score(const Model& model, data::Dataset* text) {
  CompiledProgram program(model.program, model.scope, {});
  const auto stream = text->open({.ordered = true});
  data::Batch batch;
  while (stream->next(&batch)) {
    FeedMap feed;
    for (size_t i = 0; i < model.feeds.size(); ++i) feed.emplace_back(model.feeds[i]->name, batch.columns[i]);
    const auto fetched = program.run({.feeds = {feed}, .fetch = {model.fetches[0]}});
    print_rows(std::get<Tensor>(fetched[0][0]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: score MODEL SCHEMA FILE...\n");
    return 2;
  }
  try {
    const Model model = load(argv[1]);
    data::Dataset text(settings(model, argv[2], {argv + 3, argv + argc}));
    score(model, &text);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
