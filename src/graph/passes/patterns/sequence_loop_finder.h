// How find_sequence_loop() finds what it says, step by step.
#pragma once
#include "graph/passes/patterns/sequence_loop.h"
#include "graph/passes/patterns/sequence_turn_gradient.h"

namespace anabranch {

class SequenceLoopFinder {
 public:
  SequenceLoopFinder(const Graph& graph, const Uses& uses, const ir::Program& program, int at)
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

  std::string find();
  // The cell is what goes on to the next step; the rest is made of all rows behind it.
  std::string find_cell(const ir::Block& body);
  // The node of this type that makes what the loop finds in a variable; -1 when another one does, or several do.
  // Nodes that only begin it go with the loop.
  int maker(int var, const std::string& type);
  bool is_number_0(int var);
  // What takes the input apart, and in which order.
  std::string find_order();
  // It runs from the first step to the last one.
  std::string find_count();
  std::string find_memories();
  // A first state may be a constant with as many rows as the first element. The sequences have at least as many.
  std::string find_constant(int first, int begun);
  std::string find_outputs();
  // The variable of all rows of an output; -1 as long as there is none.
  int& shown(size_t output);
  std::string find_arguments();
  std::string find_gradient();
  int gradient_made(const std::string& name) const;
  // The only node that reads what the gradient of the loop makes; -1 when there is none, -2 when it is another one.
  int reader_of(int made, const char* type) const;
  std::string find_gradient_of_x(const SequenceTurnGradient& gradient);
  std::string find_gradients_of_first_states();
  std::string find_gradients_of_arguments(const SequenceTurnGradient& gradient);
  std::string find_gradient_of_tail(const SequenceTurnGradient& gradient);
  // Nobody else reads what goes away.
  std::string check_alone();

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

}  // namespace anabranch
