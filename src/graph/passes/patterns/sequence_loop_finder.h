// The steps of find_sequence_loop().
#pragma once
#include "graph/passes/patterns/sequence_iteration_gradient.h"
#include "graph/passes/patterns/sequence_loop.h"

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
  // The loop's inputs and outputs, by their names in its block.
  int read(const std::string& name) const { return var_named(input_vars(loop_, "X"), loop_.op->input("X"), name); }
  int written(const std::string& name) const {
    return var_named(output_vars(loop_, "Out"), loop_.op->output("Out"), name);
  }

  std::string find();
  // The cell is the part that carries state to the next step; the rest is the tail, applied to all rows afterwards.
  std::string find_cell(const ir::Block& body);
  // The node of this type that computes the loop's initial value of a variable; -1 if another or several nodes do.
  // Nodes that only initialize it are removed with the loop.
  int maker(int var, const std::string& type);
  bool is_number_0(int var);
  // The node that unpacks the input, and the order of sequences.
  std::string find_order();
  // It runs from the first step to the last one.
  std::string find_count();
  std::string find_memories();
  // A first state may be a constant with as many rows as the first element. There are at least that number of
  // sequences.
  std::string find_constant(int first, int begun);
  std::string find_outputs();
  // The variable with all rows of an output; -1 until it is found.
  int& shown(size_t output);
  std::string find_arguments();
  std::string find_gradient();
  int gradient_made(const std::string& name) const;
  // The only reader of the loop's gradient; -1 if there is none, -2 if it is another kind of node.
  int reader_of(int made, const char* type) const;
  std::string find_gradient_of_x(const SequenceIterationGradient& gradient);
  std::string find_gradients_of_first_states();
  std::string find_gradients_of_arguments(const SequenceIterationGradient& gradient);
  std::string find_gradient_of_tail(const SequenceIterationGradient& gradient);
  // Removed variables have no other readers.
  std::string check_alone();

  const Graph& graph_;
  const Uses& uses_;
  const ir::Program& program_;
  const int at_;
  const GraphNode& loop_;
  SequenceIteration iteration_;
  SequenceLoop found_;
  int table_ = -1;
  std::set<size_t> tail_;   // positions of ops
  std::vector<int> shows_;  // for each output the value it shows; -1: an output of the tail
  std::set<int> kept_;      // variables that stay: other nodes compute them
};

}  // namespace anabranch
