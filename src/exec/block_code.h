// The ops of one sub-block with their kernels, separate from the values they work on (exec/block_frame.h). An argument
// is a value of block 0, or a variable of this block, of an outer block or of the forward block, given by the block and
// a number.
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/block_memory.h"
#include "exec/block_plan.h"
#include "exec/node_shape.h"

namespace anabranch {

class Graph;
struct RunOptions;

class BlockCode final : public BlockRunner {
 public:
  // around: the code of the block whose op runs this one; null for block 0.
  BlockCode(BlockSet& set, int idx, BlockSet::Outer outer, BlockCode* around);
  void prepare();

  void begin() override;
  void run(const KernelContext& caller) override;
  int find(const std::string& name) override;
  Value& value(int var) override { return current_frame().values[static_cast<size_t>(var)]; }
  void enter() override;
  int iterations() override { return forward_ ? forward_->stack().iterations : 0; }
  void run_back(const KernelContext& caller, int iteration) override;
  bool keeps_array(int var) override;
  // For a block that an op of block 0 runs: its variables in all frames, and those of nested blocks.
  void each_value(const BlockSet::Visit& visit) const { each_value(root_, visit); }
  const BlockMemory& memory() const { return memory_; }
  void drop();  // frees all frames; between runs
  bool is_outermost() const { return around_ == nullptr; }
  // For stall reports, from any thread: the current iteration and op, and those of nested blocks.
  std::string where() const;
  int find_shaped(const std::string& name) override;
  void make_zeros(int shaped, int iteration, Value& out) override;

 private:
  struct Arg {
    BlockCode* block = nullptr;  // null: `value` is the argument
    int var = 0;
    Value* value = nullptr;
    bool operator==(const Arg&) const = default;
  };
  // Created for an output that is also an input; copied to its destination after the op has read the input.
  struct BufferedOutput {
    size_t arg;        // the output
    int made, target;  // positions
    bool in_place;     // if the output has the input's signature, the op may compute it in place
  };
  struct Node {
    Kernel kernel;
    ShapeFn shape;
    size_t ins = 0, outs = 0;  // their offsets in a frame's args
    std::vector<BufferedOutput> buffered;
    std::vector<int> touches;  // positions of the values it reads, then of those that it or a nested block writes
    size_t reads = 0;          // number of values it reads
    bool later = false;
    bool dynamic = false;  // its shape function runs in each iteration
    // If a pass fused several ops into this one: the original ops, which run instead if it refuses the shapes.
    size_t first_part = 0, parts = 0;
    std::string type, text;  // for errors and reports
    int number = -1;         // in traces
    std::vector<const BlockCode*> runs;
    // number of consecutive ops, from this one on, that run blocks and are independent of each other
    size_t group = 1;
    int64_t took_ns = 0;  // last duration of a member of a group
  };

  void each_value(const FrameStack& stack, const BlockSet::Visit& visit) const;
  void note_shapes();
  Node make_node(const ir::OpRef& op, int index, std::string text);
  size_t add_args(const ir::Op& op, const std::vector<ir::Slot>& slots);
  void note_touched(const ir::Op& op, Node& node);
  int place(const Arg& arg, const std::string& name = {});
  bool is_buffer(const Arg& arg) const;
  Arg find_arg(const ir::Op& op, const std::string& name);
  Arg resolve(const std::string& name);
  Arg own(const std::string& name);
  Value* value_of(const Arg& arg) const {
    return arg.block ? &arg.block->current_->values[static_cast<size_t>(arg.var)] : arg.value;
  }
  void buffer_outputs(const ir::Op& op, const OpDef& def, Node& node);
  void show(int var);

  FrameStack& stack() { return around_ ? around_->current_->inner[place_] : root_; }
  BlockFrame& current_frame();
  BlockFrame& frame_at(FrameStack& stack, size_t at);
  void bind(BlockFrame& frame);
  void run_iteration(const KernelContext& caller, int64_t iteration);
  void execute(BlockFrame& frame, const KernelContext& caller);
  void run_nodes(BlockFrame& frame, IterationContext& c);

  // block_private.cc
  void find_private(const Graph& graph);
  std::map<int, int> private_vars(const Graph& graph) const;

  // block_groups.cc
  void find_groups(const Graph& graph);
  bool pays(size_t first) const;
  void run_group(BlockFrame& frame, IterationContext& c, size_t first);
  void run_member(BlockFrame& frame, const IterationContext& c, Node& node);
  void run_alone(BlockFrame& frame, IterationContext& c, Node& node, bool infers);
  bool lay_out(BlockFrame& frame, IterationContext& c, Node& node);
  void run_node(BlockFrame& frame, IterationContext& c, Node& node);
  void run_kernel(BlockFrame& frame, IterationContext& c, Node& node);
  void run_parts(BlockFrame& frame, IterationContext& c, const Node& whole);

  // block_signatures.cc
  void find_watched();
  bool is_steady(const BlockFrame& frame) const;
  bool same_signatures(const BlockFrame& frame, const Node& node) const;
  void begin_notes(BlockFrame& frame);
  void resume_notes(BlockFrame& frame, size_t at);
  void note(BlockFrame& frame, Node& node);
  void make_dynamic(Node& node);
  void end_notes(BlockFrame& frame);
  void set_in_place(BlockFrame& frame, bool in_place) const;

  BlockSet& set_;
  const ir::Block& block_;
  const BlockSet::Outer outer_;
  BlockCode* const around_;
  size_t place_ = 0;               // among the blocks that ops of the outer block run
  std::vector<BlockCode*> inner_;  // the blocks that ops of this one run
  BlockCode* forward_ = nullptr;   // of a gradient block
  bool sees_forward_ = false;      // some argument is a variable of a forward block
  const bool keeps_;               // each iteration has its own frame
  std::unordered_map<std::string, int> vars_;
  std::vector<Node> nodes_, spare_;
  std::vector<Arg> places_;         // each value that the nodes use, once
  std::vector<std::string> names_;  // of places; empty if only this block sees the value
  std::vector<int> args_;           // of nodes, as positions
  std::vector<Arg> writes_outside_;
  std::deque<Value> buffers_;                        // of buffered outputs, and of outputs that no op reads
  std::vector<int> arrays_;                          // variables that are empty at the start of an iteration
  std::vector<std::pair<std::string, Arg>> shaped_;  // variables whose shapes are recorded
  std::vector<char> shown_;                          // by variable: other code than the nodes may change it
  // positions whose signature may differ at the start of an iteration
  std::vector<int> watched_;
  bool found_watched_ = false;
  uint32_t choices_ = 0;                  // of kernels; also changes with what is shown
  std::atomic<int64_t> iteration_{-1};    // -1: not started
  std::atomic<const Node*> at_{nullptr};  // null between iterations
  std::atomic<const Node*> at_group_{nullptr};
  BlockMemory memory_;
  FrameStack root_;
  BlockFrame* current_ = nullptr;
  bool entered_ = false;
  const RunOptions* hooks_ = nullptr;  // of the current iteration
};

}  // namespace anabranch
