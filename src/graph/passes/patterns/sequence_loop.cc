#include "graph/passes/patterns/sequence_loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/passes/patterns/sequence_loop_finder.h"

namespace anabranch {
namespace {

constexpr const char* kMaxIterations = "op_max_iterations";  // of untrusted models

bool is_zero(const GraphNode& node) {
  const ir::Op& op = *node.op;
  const bool text = op.has_attr("str_value") && !op.attr<std::string>("str_value").empty() &&
                    op.attr<std::string>("str_value") != "0";
  return op.type == "fill_constant" && node.ins.empty() && !text && op.attr<float>("value") == 0.0f;
}

}  // namespace

std::string SequenceLoopFinder::find() {
  const ir::Block& body = program_.block(block_of(loop_));
  iteration_ = read_sequence_iteration(body);
  if (!iteration_.why.empty()) return iteration_.why;
  if (iteration_.inputs.size() != 1) return fmt::format("it has {} step inputs, not 1", iteration_.inputs.size());
  if (std::string why = find_cell(body); !why.empty()) return why;
  if (loop_.op->has_attr(kMaxIterations)) {
    found_.cell.attrs.emplace_back("most_steps", loop_.op->attr<int32_t>(kMaxIterations));
  }
  for (const auto step :
       {&SequenceLoopFinder::find_order, &SequenceLoopFinder::find_count, &SequenceLoopFinder::find_memories,
        &SequenceLoopFinder::find_outputs, &SequenceLoopFinder::find_arguments, &SequenceLoopFinder::find_gradient,
        &SequenceLoopFinder::check_alone}) {
    if (std::string why = (this->*step)(); !why.empty()) return why;
  }
  return "";
}

std::string SequenceLoopFinder::find_cell(const ir::Block& body) {
  tail_ = tail_of(iteration_);
  StepView view = iteration_.view(body);
  view.ops.clear();
  std::set<std::string> by_tail;
  for (size_t i = 0; i < iteration_.cell.size(); ++i) {
    const ir::OpRef& op = iteration_.cell[i];
    (tail_.count(i) ? found_.tail : view.ops).push_back(op);
    if (!tail_.count(i)) continue;
    for (const auto& out : op->output_args()) by_tail.insert(out);
  }
  std::erase_if(view.outputs, [&](const auto& name) { return by_tail.count(name) != 0; });
  found_.cell = match_cell(view);
  if (!found_.cell.why.empty()) return found_.cell.why;
  size_t next = 0;
  for (const auto& output : iteration_.outputs) {
    shows_.push_back(by_tail.count(output.value) ? -1 : static_cast<int>(found_.cell.shows[next++]));
  }
  for (size_t s = 0; s < found_.cell.memories.size(); ++s) {
    found_.states.emplace(iteration_.memories[found_.cell.memories[s]].made, s);
  }
  return misfit_of_tail(iteration_, tail_, body);
}

int SequenceLoopFinder::maker(int var, const std::string& type) {
  int found = -1;
  for (const int w : var < 0 ? std::span<const int>() : uses_.writers(var)) {
    if (w == at_) continue;
    const std::string& made_by = node(w).op->type;
    if (made_by == "empty_array") {
      found_.gone.insert(w);
    } else if (made_by == "copy_value" && found < 0) {
      found_.gone.insert(w);
      found = maker(input_var(node(w), "X"), type);
      if (found < 0) return -1;
    } else if (made_by == type && found < 0) {
      found = w;
    } else {
      return -1;
    }
  }
  return found;
}

bool SequenceLoopFinder::is_number_0(int var) {
  const int made = maker(var, "fill_constant");
  if (made < 0 || !is_zero(node(made))) return false;
  found_.unread.insert(made);
  return true;
}

std::string SequenceLoopFinder::find_order() {
  table_ = read(iteration_.table);
  const int taken = maker(read(iteration_.inputs[0].array), "lod_tensor_to_array"),
            ranked = maker(table_, "lod_rank_table");
  if (taken < 0 || ranked < 0 || input_var(node(taken), "RankTable") != table_)
    return "its input is in a different order";
  found_.vars.x = input_var(node(taken), "X");
  found_.vars.sequences = true;
  if (input_var(node(ranked), "X") != found_.vars.x) return "another tensor gives the order of the sequences";
  const ir::Var& x = graph_.vars[static_cast<size_t>(found_.vars.x)].desc;
  if (node(ranked).op->attr<int32_t>("level") != 0 || x.lod_level != 1) return "a step is of sequences";
  found_.gone.insert(taken);
  found_.unread.insert(ranked);
  return "";
}

std::string SequenceLoopFinder::find_count() {
  const int count = read(iteration_.count), bound = read(iteration_.bound), going_on = input_var(loop_, "Condition");
  const int longest = maker(bound, "max_sequence_len"), compared = maker(going_on, "less_than");
  if (longest < 0 || input_var(node(longest), "RankTable") != table_ || compared < 0 ||
      sole(loop_.op->input("Condition")) != iteration_.condition || input_var(node(compared), "Y") != bound) {
    return "it does not run to the end of the longest sequence";
  }
  const int first = maker(count, "fill_constant");
  if (first < 0 || !is_zero(node(first)) || output_var(node(first), "Out") != input_var(node(compared), "X")) {
    return "it does not begin with the first step";
  }
  found_.gone.insert({first, compared});
  found_.unread.insert(longest);
  return "";
}

std::string SequenceLoopFinder::find_memories() {
  for (const size_t m : found_.cell.memories) {
    const int begun = maker(read(iteration_.memories[m].array), "write_to_array");
    if (begun < 0 || !is_number_0(input_var(node(begun), "I"))) return "its memories have no first states";
    found_.gone.insert(begun);
    const int first = input_var(node(begun), "X");
    if (std::string why = find_constant(first, begun); !why.empty()) return why;
    if (graph_.vars[static_cast<size_t>(first)].desc.shape.rank() != 2) return "a first state is not a matrix";
    found_.vars.first_states.push_back(first);
  }
  return "";
}

std::string SequenceLoopFinder::find_constant(int first, int begun) {
  const int fill = uses_.writer(first);
  if (fill < 0 || node(fill).op->type != "fill_constant_batch_size_like") return "";
  const int element = input_var(node(fill), "Input"), taken = element < 0 ? -1 : uses_.writer(element);
  if (taken < 0 || node(taken).op->type != "read_from_array") return "";
  const bool fits = input_var(node(taken), "X") == read(iteration_.inputs[0].array) &&
                    is_number_0(input_var(node(taken), "I")) && node(fill).op->attr<int32_t>("input_dim_idx") == 0;
  if (!fits) return "the rows of a first state are counted elsewhere";
  const auto& readers = uses_.readers(first);
  const bool alone = std::all_of(readers.begin(), readers.end(), [&](int reader) {
    return reader == begun || node(reader).op->type == "write_to_array_grad";
  });
  if (!alone || !uses_.is_inner(first)) return "a constant first state is read elsewhere";
  if (uses_.is_inner(element) && uses_.reader(element) == fill) kept_.insert(element);
  found_.gone.insert(taken);
  found_.constants.emplace_back(fill, element);
  return "";
}

std::string SequenceLoopFinder::find_outputs() {
  found_.vars.values.assign(found_.cell.values.size(), -1);
  for (size_t i = 0; i < iteration_.outputs.size(); ++i) {
    const int array = written(iteration_.outputs[i].array);
    if (array < 0) return fmt::format("{} is not an output of the loop", iteration_.outputs[i].array);
    maker(array, "");  // its first writer
    for (const int reader : uses_.readers(array)) {
      if (node(reader).op->type != "array_to_lod_tensor") continue;
      if (input_var(node(reader), "RankTable") != table_) return "an output is in a different order";
      int& value = shown(i);
      if (value >= 0) return fmt::format("{} is given out twice", iteration_.outputs[i].value);
      value = output_var(node(reader), "Out");
      if (uses_.writer(value) != reader) return "an output is written again";
      found_.gone.insert(reader);
      found_.shown = value;
      kept_.insert(value);
    }
  }
  return kept_.empty() ? "its outputs have no readers" : "";
}

int& SequenceLoopFinder::shown(size_t output) {
  if (shows_[output] >= 0) return found_.vars.values[static_cast<size_t>(shows_[output])];
  return found_.named.try_emplace(iteration_.outputs[output].value, -1).first->second;
}

std::string SequenceLoopFinder::find_arguments() {
  for (const auto& op : found_.tail) {
    for (const auto& name : op->input_args()) {
      if (const int var = read(name); var >= 0) found_.named.emplace(name, var);
    }
  }
  for (const auto& name : found_.cell.weights) found_.vars.weights.push_back(read(name));
  for (const auto& name : found_.cell.biases) found_.vars.biases.push_back(read(name));
  return misfit(graph_, found_.vars);
}

std::string SequenceLoopFinder::check_alone() {
  std::set<int> all = found_.gone;
  all.insert(at_);
  if (found_.gradient >= 0) all.insert(found_.gradient);
  for (const int at : all) {
    for (const int var : graph_.writes(node(at))) {
      if (kept_.count(var)) continue;
      const GraphVar& v = graph_.vars[static_cast<size_t>(var)];
      const auto& readers = uses_.readers(var);
      const bool alone = std::all_of(readers.begin(), readers.end(), [&](int r) { return all.count(r) != 0; });
      if (!alone || v.fetched || v.fed || v.desc.persistable) return fmt::format("{} is read elsewhere", v.name);
    }
  }
  return "";
}

bool steps_through_sequences(const Graph& graph, const Uses& uses, const GraphNode& node) {
  if (node.op->type != "while") return false;
  const auto read = input_vars(node, "X");
  return std::any_of(read.begin(), read.end(), [&](int var) {
    const int made = var < 0 ? -1 : uses.writer(var);
    return made >= 0 && graph.nodes[static_cast<size_t>(made)].op->type == "lod_tensor_to_array";
  });
}

SequenceLoop find_sequence_loop(const Graph& graph, const Uses& uses, const ir::Program& program, int node) {
  return SequenceLoopFinder(graph, uses, program, node).run();
}

}  // namespace anabranch
