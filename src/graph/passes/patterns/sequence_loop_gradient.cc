#include <fmt/format.h>

#include <algorithm>

#include "graph/passes/patterns/sequence_loop_finder.h"

namespace anabranch {

std::string SequenceLoopFinder::find_gradient() {
  if (std::string why = find_block_gradient(graph_, uses_, program_, at_, &found_.gradient); !why.empty()) return why;
  if (found_.gradient < 0) return "";
  const GraphNode& back = node(found_.gradient);
  if (!back.more_writes.empty()) return "its gradient writes more";
  found_.gradients.given.resize(found_.cell.values.size());
  std::map<std::string, int> given;
  for (size_t i = 0; i < iteration_.outputs.size(); ++i) {
    const std::string& array = iteration_.outputs[i].array;
    const int made = var_named(input_vars(back, "Out@GRAD"), back.op->input("Out"), array);
    if (made < 0) continue;
    const int spread = uses_.writer(made);
    if (spread < 0 || node(spread).op->type != "array_to_lod_tensor_grad")
      return "the gradient of an output does not have the expected form";
    if (input_var(node(spread), "RankTable") != table_) return "the gradient of an output is in a different order";
    found_.gone.insert(spread);
    found_.after = std::max(found_.after, spread);
    given.emplace(array, input_var(node(spread), "Out@GRAD"));
    if (shows_[i] >= 0) found_.gradients.given[static_cast<size_t>(shows_[i])].push_back(given.at(array));
  }
  const SequenceIterationGradient gradient(iteration_, program_.block(block_of(back)), given);
  if (!gradient.why().empty()) return gradient.why();
  for (size_t i = 0; i < iteration_.outputs.size(); ++i) {
    const std::string& array = iteration_.outputs[i].array;
    if (shows_[i] < 0 && given.count(array)) found_.named.emplace(gradient.taken_from(array), given.at(array));
  }
  if (std::string why = find_gradient_of_tail(gradient); !why.empty()) return why;
  if (std::string why = find_gradient_of_x(gradient); !why.empty()) return why;
  if (std::string why = find_gradients_of_first_states(); !why.empty()) return why;
  return find_gradients_of_arguments(gradient);
}

int SequenceLoopFinder::gradient_made(const std::string& name) const {
  const GraphNode& back = node(found_.gradient);
  const int made = var_named(output_vars(back, "X@GRAD"), back.op->input("X"), name);
  return made >= 0 ? made : var_named(output_vars(back, "Before@GRAD"), back.op->input("Out"), name);
}

int SequenceLoopFinder::reader_of(int made, const char* type) const {
  int found = -1;
  for (const int reader : made < 0 ? std::span<const int>() : uses_.readers(made)) {
    if (reader == found_.gradient) continue;
    if (found >= 0 || node(reader).op->type != type) return -2;
    found = reader;
  }
  return found;
}

std::string SequenceLoopFinder::find_gradient_of_x(const SequenceIterationGradient& gradient) {
  const std::string& array = iteration_.inputs[0].array;
  const int collected = reader_of(gradient_made(array), "lod_tensor_to_array_grad");
  if (collected == -1) return "";
  const bool fits = collected >= 0 && gradient.adds_to(array) && input_var(node(collected), "RankTable") == table_ &&
                    input_var(node(collected), "X") == found_.vars.x;
  if (!fits) return "the gradient of its input does not have the expected form";
  found_.gradients.x = output_var(node(collected), "X@GRAD");
  found_.gone.insert(collected);
  kept_.insert(found_.gradients.x);
  return "";
}

std::string SequenceLoopFinder::find_gradients_of_first_states() {
  for (size_t s = 0; s < found_.cell.memories.size(); ++s) {
    const int first = found_.vars.first_states[s];
    const std::string& array = iteration_.memories[found_.cell.memories[s]].array;
    const int taken = reader_of(gradient_made(array), "write_to_array_grad");
    int& made = found_.gradients.first_states.emplace_back(-1);
    if (taken == -1) continue;
    const bool fits = taken >= 0 && is_number_0(input_var(node(taken), "I")) && input_var(node(taken), "X") == first;
    if (!fits) return "the gradient of a first state does not have the expected form";
    found_.gone.insert(taken);
    const int needed = output_var(node(taken), "X@GRAD");
    const int fill = uses_.writer(first);
    const bool constant = std::any_of(found_.constants.begin(), found_.constants.end(),
                                      [&](const auto& one) { return one.first == fill; });
    if (constant || needed < 0) continue;  // check_alone() verifies that it has no readers
    made = needed;
    kept_.insert(made);
  }
  return "";
}

std::string SequenceLoopFinder::find_gradients_of_arguments(const SequenceIterationGradient& gradient) {
  const auto find = [&](const std::vector<std::string>& names, std::vector<int>* made) -> std::string {
    for (const auto& name : names) {
      made->push_back(gradient_made(name));
      if (made->back() < 0) continue;
      if (!gradient.makes(name)) return fmt::format("the gradient of {} does not have the expected form", name);
      kept_.insert(made->back());
    }
    return "";
  };
  if (std::string why = find(found_.cell.weights, &found_.gradients.weights); !why.empty()) return why;
  return find(found_.cell.biases, &found_.gradients.biases);
}

std::string SequenceLoopFinder::find_gradient_of_tail(const SequenceIterationGradient& gradient) {
  const auto part = gradient.part(iteration_, tail_);
  found_.tail_gradient = part.ops;
  if (found_.after < 0 && !part.ops.empty()) return "its outputs have no gradients";
  for (const auto& [made, of] : part.made) {
    if (const auto state = found_.states.find(of); state != found_.states.end()) {
      found_.given.emplace_back(made, state->second);
    } else if (const int var = gradient_made(of); var >= 0) {
      if (made != ir::grad_name(of) || !gradient.makes(of))
        return fmt::format("the gradient of {} does not have the expected form", of);
      found_.named.emplace(made, var);
      found_.parameters.emplace_back(made, of);
      kept_.insert(var);
    }
  }
  return "";
}

}  // namespace anabranch
