// Iterations of sub-blocks.
#include <fmt/format.h>

#include <utility>

#include "exec/async_nodes.h"
#include "exec/block_code.h"
#include "exec/run.h"

namespace anabranch {

void BlockCode::begin() {
  FrameStack& frames = stack();
  frames.iterations = 0;
  entered_ = false;
  iteration_.store(-1, std::memory_order_relaxed);
  at_.store(nullptr, std::memory_order_relaxed);
  at_group_.store(nullptr, std::memory_order_relaxed);
  if (shaped_.empty()) return;
  frames.before.resize(shaped_.size());
  for (size_t i = 0; i < shaped_.size(); ++i) frames.before[i].take(*value_of(shaped_[i].second));
}

BlockFrame& BlockCode::frame_at(FrameStack& frames, size_t at) {
  while (frames.frames.size() <= at) {
    frames.frames.push_back(std::make_unique<BlockFrame>(vars_.size(), inner_.size()));
  }
  return *frames.frames[at];
}

BlockFrame& BlockCode::current_frame() {
  if (!current_) current_ = &frame_at(stack(), 0);
  return *current_;
}

void BlockCode::enter() {
  FrameStack& frames = stack();
  current_ = &frame_at(frames, keeps_ ? static_cast<size_t>(frames.iterations) : 0);
  for (int var : arrays_) value(var).as<TensorArray>().clear();
  entered_ = true;
}

void BlockCode::run(const KernelContext& caller) { run_iteration(caller, stack().iterations); }

void BlockCode::run_iteration(const KernelContext& caller, int64_t iteration) {
  iteration_.store(iteration, std::memory_order_relaxed);
  if (!entered_) enter();
  entered_ = false;
  FrameStack& frames = stack();
  BlockFrame& frame = *current_;
  execute(frame, caller);
  current_ = &frame;
  ++frames.iterations;
  if (shaped_.empty()) return;
  frame.after.resize(shaped_.size());
  for (size_t i = 0; i < shaped_.size(); ++i) frame.after[i].take(*value_of(shaped_[i].second));
}

// The forward block returns to the frame of that iteration, so that nested blocks find theirs, too.
void BlockCode::run_back(const KernelContext& caller, int iteration) {
  forward_->current_ = forward_->stack().frames[static_cast<size_t>(iteration)].get();
  run_iteration(caller, iteration);
}

void BlockCode::make_zeros(int shaped, int iteration, Value& out) {
  const FrameStack& frames = forward_->stack();
  const auto& notes = iteration < 0 ? frames.before : frames.frames[static_cast<size_t>(iteration)]->after;
  if (static_cast<size_t>(shaped) < notes.size()) {
    notes[static_cast<size_t>(shaped)].make_zeros(out);
  } else {
    out.clear();  // the forward block has never run
  }
}

// The frames of outer blocks stay as long as this one does; those of the forward block change.
void BlockCode::bind(BlockFrame& frame) {
  if (!frame.args.empty() && !sees_forward_) return;
  AB_CHECK(!forward_ || forward_->current_, InvalidArgument,
           "block {} is run before the block that it is the gradient of", block_.idx());
  frame.places.resize(places_.size());
  for (size_t i = 0; i < places_.size(); ++i) frame.places[i] = value_of(places_[i]);
  frame.args.resize(args_.size());
  for (size_t i = 0; i < args_.size(); ++i) frame.args[i] = frame.places[static_cast<size_t>(args_[i])];
  set_in_place(frame, std::exchange(frame.last.in_place, false));
}

void BlockCode::execute(BlockFrame& frame, const KernelContext& caller) {
  bind(frame);
  memory_.lend(frame);
  hooks_ = watched_run();
  IterationContext c(caller);
  try {
    run_nodes(frame, c);
  } catch (Error& e) {
    if (const Node* at = at_.exchange(nullptr)) e.in_op(at->type).with_op(at->text);
    throw;
  }
  at_.store(nullptr, std::memory_order_relaxed);
}

void BlockCode::run_nodes(BlockFrame& frame, IterationContext& c) {
  bool steady = is_steady(frame);
  if (!steady) begin_notes(frame);
  frame.last.steady = false;  // until the iteration has ended
  size_t done = 0;            // nodes already run by a group
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (i >= done) {
      node.group > 1 ? run_group(frame, c, i) : run_alone(frame, c, node, !steady || node.dynamic);
      done = i + node.group;
    }
    if (steady && node.dynamic && !same_signatures(frame, node)) [[unlikely]] {
      resume_notes(frame, i);
      steady = false;
    }
    if (!steady) note(frame, node);
  }
  if (steady) {
    frame.last.steady = frame.last.choices == choices_;
  } else {
    end_notes(frame);
  }
}

void BlockCode::run_alone(BlockFrame& frame, IterationContext& c, Node& node, bool infers) {
  at_.store(&node, std::memory_order_relaxed);
  if (infers && !lay_out(frame, c, node)) return run_parts(frame, c, node);
  run_node(frame, c, node);
}

// False: a fused op refuses the shapes. The user's own ops run instead, and format the error.
bool BlockCode::lay_out(BlockFrame& frame, IterationContext& c, Node& node) {
  c.ins = frame.args.data() + node.ins;
  c.outs = frame.args.data() + node.outs;
  try {
    if (node.shape(c, node.kernel)) ++choices_;
  } catch (const Error& e) {
    if (node.parts == 0 || e.kind() == ErrorKind::kInternal) throw;
    frame.last.alike = false;
    return false;
  }
  return true;
}

void BlockCode::run_node(BlockFrame& frame, IterationContext& c, Node& node) {
  if (!hooks_) [[likely]]
    return run_kernel(frame, c, node);
  const TraceSpan span(hooks_->trace, node.number, TraceEvent::kNode, iteration_.load(std::memory_order_relaxed));
  run_kernel(frame, c, node);
  if (!hooks_->check) return;
  for (size_t i = node.reads; i < node.touches.size(); ++i) {
    const auto p = static_cast<size_t>(node.touches[i]);
    if (!names_[p].empty()) (*hooks_->check)(*frame.places[p], names_[p]);
  }
}

void BlockCode::run_kernel(BlockFrame& frame, IterationContext& c, Node& node) {
  c.ins = frame.args.data() + node.ins;
  c.outs = frame.args.data() + node.outs;
  node.later ? run_to_end(node.kernel, c) : node.kernel(c);
  for (const BufferedOutput& output : node.buffered) {
    if (output.in_place && frame.last.in_place) continue;
    frame.places[static_cast<size_t>(output.target)]->copy_from(*frame.places[static_cast<size_t>(output.made)]);
  }
}

void BlockCode::run_parts(BlockFrame& frame, IterationContext& c, const Node& whole) {
  for (size_t i = 0; i < whole.parts; ++i) {
    Node& part = spare_[whole.first_part + i];
    at_.store(&part, std::memory_order_relaxed);
    lay_out(frame, c, part);
    run_node(frame, c, part);
  }
}

std::string BlockCode::where() const {
  const int64_t iteration = iteration_.load(std::memory_order_relaxed);
  if (iteration < 0) return {};
  std::string text = fmt::format("\n    block {}, iteration {} (counted from 0)", block_.idx(), iteration);
  const auto add = [&](const Node& at) {
    text += ": " + at.text;
    for (const BlockCode* inner : at.runs) text += inner->where();
  };
  const Node* group = at_group_.load(std::memory_order_relaxed);
  for (size_t i = 0; group && i < group->group; ++i) add(group[i]);
  if (const Node* at = at_.load(std::memory_order_relaxed)) add(*at);
  return text;
}

}  // namespace anabranch
