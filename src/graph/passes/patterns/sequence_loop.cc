#include "graph/passes/patterns/sequence_loop.h"

#include <fmt/format.h>

#include <algorithm>

namespace anabranch {
namespace {

constexpr const char* kMostTurns = "op_most_turns";  // of models from strangers

bool is_zero(const GraphNode& node) {
  const ir::Op& op = *node.op;
  const bool text = op.has_attr("str_value") && !op.attr<std::string>("str_value").empty() &&
                    op.attr<std::string>("str_value") != "0";
  return op.type == "fill_constant" && node.ins.empty() && !text && op.attr<float>("value") == 0.0f;
}

class Finder {
 public:
  Finder(const Graph& graph, const Uses& uses, const ir::Program& program, int at)
      : graph_(graph), uses_(uses), program_(program), at_(at), loop_(graph.nodes[static_cast<size_t>(at)]) {}

  SequenceLoop run() {
    found_.why = find();
    return std::move(found_);
  }

 private:
  const GraphNode& node(int at) const { return graph_.nodes[static_cast<size_t>(at)]; }
  // What the loop reads, or writes, by the name that its block has for it.
  int read(const std::string& name) const { return var_named(input_vars(loop_, "X"), loop_.op->input("X"), name); }
  int written(const std::string& name) const {
    return var_named(output_vars(loop_, "Out"), loop_.op->output("Out"), name);
  }

  std::string find() {
    const ir::Block& body = program_.block(block_of(loop_));
    turn_ = read_sequence_turn(body);
    if (!turn_.why.empty()) return turn_.why;
    if (turn_.inputs.size() != 1) return fmt::format("it has {} step inputs, not 1", turn_.inputs.size());
    if (std::string why = find_cell(body); !why.empty()) return why;
    if (loop_.op->has_attr(kMostTurns)) {
      found_.cell.attrs.emplace_back("most_steps", loop_.op->attr<int32_t>(kMostTurns));
    }
    for (const auto step : {&Finder::find_order, &Finder::find_count, &Finder::find_memories, &Finder::find_outputs,
                            &Finder::find_arguments, &Finder::find_gradient, &Finder::check_alone}) {
      if (std::string why = (this->*step)(); !why.empty()) return why;
    }
    return "";
  }

  // The cell is what goes on to the next step; the rest is made of all rows behind it.
  std::string find_cell(const ir::Block& body) {
    tail_ = tail_of(turn_);
    StepView view = turn_.view(body);
    view.ops.clear();
    std::set<std::string> by_tail;
    for (size_t i = 0; i < turn_.cell.size(); ++i) {
      const ir::OpRef& op = turn_.cell[i];
      (tail_.count(i) ? found_.tail : view.ops).push_back(op);
      if (!tail_.count(i)) continue;
      for (const auto& out : op->output_args()) by_tail.insert(out);
    }
    std::erase_if(view.outputs, [&](const auto& name) { return by_tail.count(name) != 0; });
    found_.cell = match_cell(view);
    if (!found_.cell.why.empty()) return found_.cell.why;
    size_t next = 0;
    for (const auto& output : turn_.outputs) {
      shows_.push_back(by_tail.count(output.value) ? -1 : static_cast<int>(found_.cell.shows[next++]));
    }
    for (size_t s = 0; s < found_.cell.memories.size(); ++s) {
      found_.states.emplace(turn_.memories[found_.cell.memories[s]].made, s);
    }
    return misfit_of_tail(turn_, tail_, body);
  }

  // The node of this type that makes what the loop finds in a variable; -1 when another one does, or several do.
  // Nodes that only begin it go with the loop.
  int maker(int var, const std::string& type) {
    int found = -1;
    for (const int w : var < 0 ? std::vector<int>() : uses_.writers(var)) {
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

  bool is_number_0(int var) {
    const int made = maker(var, "fill_constant");
    if (made < 0 || !is_zero(node(made))) return false;
    found_.unread.insert(made);
    return true;
  }

  // What takes the input apart, and in which order.
  std::string find_order() {
    table_ = read(turn_.table);
    const int taken = maker(read(turn_.inputs[0].array), "lod_tensor_to_array"),
              ranked = maker(table_, "lod_rank_table");
    if (taken < 0 || ranked < 0 || input_var(node(taken), "RankTable") != table_) return "its input has another order";
    found_.vars.x = input_var(node(taken), "X");
    found_.vars.sequences = true;
    if (input_var(node(ranked), "X") != found_.vars.x) return "another tensor gives the order of the sequences";
    const ir::Var& x = graph_.vars[static_cast<size_t>(found_.vars.x)].desc;
    if (node(ranked).op->attr<int32_t>("level") != 0 || x.lod_level != 1) return "a step is of sequences";
    found_.gone.insert(taken);
    found_.unread.insert(ranked);
    return "";
  }

  // It runs from the first step to the last one.
  std::string find_count() {
    const int count = read(turn_.count), bound = read(turn_.bound), going_on = input_var(loop_, "Condition");
    const int longest = maker(bound, "max_sequence_len"), compared = maker(going_on, "less_than");
    if (longest < 0 || input_var(node(longest), "RankTable") != table_ || compared < 0 ||
        sole(loop_.op->input("Condition")) != turn_.condition || input_var(node(compared), "Y") != bound) {
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

  std::string find_memories() {
    for (const size_t m : found_.cell.memories) {
      const int begun = maker(read(turn_.memories[m].array), "write_to_array");
      if (begun < 0 || !is_number_0(input_var(node(begun), "I"))) return "its memories have no first states";
      found_.gone.insert(begun);
      const int first = input_var(node(begun), "X");
      if (std::string why = find_constant(first, begun); !why.empty()) return why;
      if (graph_.vars[static_cast<size_t>(first)].desc.shape.rank() != 2) return "a first state is no matrix";
      found_.vars.first_states.push_back(first);
    }
    return "";
  }

  // A first state may be a constant with as many rows as the first element. The sequences have at least as many.
  std::string find_constant(int first, int begun) {
    const int fill = uses_.writer(first);
    if (fill < 0 || node(fill).op->type != "fill_constant_batch_size_like") return "";
    const int element = input_var(node(fill), "Input"), taken = element < 0 ? -1 : uses_.writer(element);
    if (taken < 0 || node(taken).op->type != "read_from_array") return "";
    const bool fits = input_var(node(taken), "X") == read(turn_.inputs[0].array) &&
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

  std::string find_outputs() {
    found_.vars.values.assign(found_.cell.values.size(), -1);
    for (size_t i = 0; i < turn_.outputs.size(); ++i) {
      const int array = written(turn_.outputs[i].array);
      if (array < 0) return fmt::format("{} is no output of the loop", turn_.outputs[i].array);
      maker(array, "");  // what begins it
      for (const int reader : uses_.readers(array)) {
        if (node(reader).op->type != "array_to_lod_tensor") continue;
        if (input_var(node(reader), "RankTable") != table_) return "an output has another order";
        int& value = shown(i);
        if (value >= 0) return fmt::format("{} is given out twice", turn_.outputs[i].value);
        value = output_var(node(reader), "Out");
        if (uses_.writer(value) != reader) return "an output is written again";
        found_.gone.insert(reader);
        found_.shown = value;
        kept_.insert(value);
      }
    }
    return kept_.empty() ? "nobody reads its outputs" : "";
  }

  // The variable of all rows of an output; -1 as long as there is none.
  int& shown(size_t output) {
    if (shows_[output] >= 0) return found_.vars.values[static_cast<size_t>(shows_[output])];
    return found_.named.try_emplace(turn_.outputs[output].value, -1).first->second;
  }

  std::string find_arguments() {
    for (const auto& op : found_.tail) {
      for (const auto& name : op->input_args()) {
        if (const int var = read(name); var >= 0) found_.named.emplace(name, var);
      }
    }
    for (const auto& name : found_.cell.weights) found_.vars.weights.push_back(read(name));
    for (const auto& name : found_.cell.biases) found_.vars.biases.push_back(read(name));
    return misfit(graph_, found_.vars);
  }

  std::string find_gradient() {
    if (std::string why = find_block_gradient(graph_, uses_, program_, at_, &found_.gradient); !why.empty()) return why;
    if (found_.gradient < 0) return "";
    const GraphNode& back = node(found_.gradient);
    if (!back.more_writes.empty()) return "its gradient writes more";
    found_.gradients.given.resize(found_.cell.values.size());
    std::map<std::string, int> given;
    for (size_t i = 0; i < turn_.outputs.size(); ++i) {
      const std::string& array = turn_.outputs[i].array;
      const int made = var_named(input_vars(back, "Out@GRAD"), back.op->input("Out"), array);
      if (made < 0) continue;
      const int spread = uses_.writer(made);
      if (spread < 0 || node(spread).op->type != "array_to_lod_tensor_grad") return "an output has another gradient";
      if (input_var(node(spread), "RankTable") != table_) return "the gradient of an output has another order";
      found_.gone.insert(spread);
      found_.behind = std::max(found_.behind, spread);
      given.emplace(array, input_var(node(spread), "Out@GRAD"));
      if (shows_[i] >= 0) found_.gradients.given[static_cast<size_t>(shows_[i])].push_back(given.at(array));
    }
    const SequenceTurnGradient gradient(turn_, program_.block(block_of(back)), given);
    if (!gradient.why().empty()) return gradient.why();
    for (size_t i = 0; i < turn_.outputs.size(); ++i) {
      const std::string& array = turn_.outputs[i].array;
      if (shows_[i] < 0 && given.count(array)) found_.named.emplace(gradient.taken_from(array), given.at(array));
    }
    if (std::string why = find_gradient_of_tail(gradient); !why.empty()) return why;
    if (std::string why = find_gradient_of_x(gradient); !why.empty()) return why;
    if (std::string why = find_gradients_of_first_states(); !why.empty()) return why;
    return find_gradients_of_arguments(gradient);
  }

  int gradient_made(const std::string& name) const {
    const GraphNode& back = node(found_.gradient);
    const int made = var_named(output_vars(back, "X@GRAD"), back.op->input("X"), name);
    return made >= 0 ? made : var_named(output_vars(back, "Before@GRAD"), back.op->input("Out"), name);
  }

  // The only node that reads what the gradient of the loop makes; -1 when there is none, -2 when it is another one.
  int reader_of(int made, const char* type) const {
    int found = -1;
    for (const int reader : made < 0 ? std::vector<int>() : uses_.readers(made)) {
      if (reader == found_.gradient) continue;
      if (found >= 0 || node(reader).op->type != type) return -2;
      found = reader;
    }
    return found;
  }

  std::string find_gradient_of_x(const SequenceTurnGradient& gradient) {
    const std::string& array = turn_.inputs[0].array;
    const int collected = reader_of(gradient_made(array), "lod_tensor_to_array_grad");
    if (collected == -1) return "";
    const bool fits = collected >= 0 && gradient.adds_to(array) && input_var(node(collected), "RankTable") == table_ &&
                      input_var(node(collected), "X") == found_.vars.x;
    if (!fits) return "its input has another gradient";
    found_.gradients.x = output_var(node(collected), "X@GRAD");
    found_.gone.insert(collected);
    kept_.insert(found_.gradients.x);
    return "";
  }

  std::string find_gradients_of_first_states() {
    for (size_t s = 0; s < found_.cell.memories.size(); ++s) {
      const int first = found_.vars.first_states[s];
      const std::string& array = turn_.memories[found_.cell.memories[s]].array;
      const int taken = reader_of(gradient_made(array), "write_to_array_grad");
      int& made = found_.gradients.first_states.emplace_back(-1);
      if (taken == -1) continue;
      const bool fits = taken >= 0 && is_number_0(input_var(node(taken), "I")) && input_var(node(taken), "X") == first;
      if (!fits) return "a first state has another gradient";
      found_.gone.insert(taken);
      const int wanted = output_var(node(taken), "X@GRAD");
      const int fill = uses_.writer(first);
      const bool constant = std::any_of(found_.constants.begin(), found_.constants.end(),
                                        [&](const auto& one) { return one.first == fill; });
      if (constant || wanted < 0) continue;  // check_alone() sees that nobody reads it
      made = wanted;
      kept_.insert(made);
    }
    return "";
  }

  std::string find_gradients_of_arguments(const SequenceTurnGradient& gradient) {
    const auto find = [&](const std::vector<std::string>& names, std::vector<int>* made) -> std::string {
      for (const auto& name : names) {
        made->push_back(gradient_made(name));
        if (made->back() < 0) continue;
        if (!gradient.makes(name)) return fmt::format("the gradient of {} is another", name);
        kept_.insert(made->back());
      }
      return "";
    };
    if (std::string why = find(found_.cell.weights, &found_.gradients.weights); !why.empty()) return why;
    return find(found_.cell.biases, &found_.gradients.biases);
  }

  std::string find_gradient_of_tail(const SequenceTurnGradient& gradient) {
    const auto part = gradient.part(turn_, tail_);
    found_.tail_gradient = part.ops;
    if (found_.behind < 0 && !part.ops.empty()) return "its outputs have no gradients";
    for (const auto& [made, of] : part.made) {
      if (const auto state = found_.states.find(of); state != found_.states.end()) {
        found_.given.emplace_back(made, state->second);
      } else if (const int var = gradient_made(of); var >= 0) {
        if (made != ir::grad_name(of) || !gradient.makes(of)) return fmt::format("the gradient of {} is another", of);
        found_.named.emplace(made, var);
        found_.parameters.emplace_back(made, of);
        kept_.insert(var);
      }
    }
    return "";
  }

  // Nobody else reads what goes away.
  std::string check_alone() {
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

  const Graph& graph_;
  const Uses& uses_;
  const ir::Program& program_;
  const int at_;
  const GraphNode& loop_;
  SequenceTurn turn_;
  SequenceLoop found_;
  int table_ = -1;
  std::set<size_t> tail_;   // places of ops
  std::vector<int> shows_;  // of each output, which of the values; -1: what the tail makes
  std::set<int> kept_;      // variables that stay: others make them then
};

}  // namespace

bool steps_through_sequences(const Graph& graph, const Uses& uses, const GraphNode& node) {
  if (node.op->type != "while") return false;
  const auto read = input_vars(node, "X");
  return std::any_of(read.begin(), read.end(), [&](int var) {
    const int made = var < 0 ? -1 : uses.writer(var);
    return made >= 0 && graph.nodes[static_cast<size_t>(made)].op->type == "lod_tensor_to_array";
  });
}

SequenceLoop find_sequence_loop(const Graph& graph, const Uses& uses, const ir::Program& program, int node) {
  return Finder(graph, uses, program, node).run();
}

}  // namespace anabranch
