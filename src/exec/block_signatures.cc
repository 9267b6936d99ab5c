// Finds iterations of a sub-block that need no shape functions: all values have the signatures of the frame's last one.
#include <algorithm>
#include <utility>

#include "exec/block_code.h"

namespace anabranch {

// A variable that the block's own nodes write before reading it has the signature they left. All others may have
// changed.
void BlockCode::find_watched() {
  watched_.clear();
  std::vector<char> touched(places_.size(), 0);
  for (const Node& node : nodes_) {
    for (size_t i = 0; i < node.touches.size(); ++i) {
      const auto p = static_cast<size_t>(node.touches[i]);
      if (touched[p]) continue;
      touched[p] = 1;
      const Arg& arg = places_[p];
      const bool inner = arg.block == this && i >= node.reads && !shown_[static_cast<size_t>(arg.var)];
      if (!inner) watched_.push_back(node.touches[i]);
    }
  }
  found_watched_ = true;
}

bool BlockCode::is_steady(const BlockFrame& frame) const {
  const FrameSignatures& last = frame.last;
  if (!last.steady || last.choices != choices_) return false;
  return std::all_of(watched_.begin(), watched_.end(), [&](int p) {
    return last.signatures[static_cast<size_t>(p)].is_that_of(*frame.places[static_cast<size_t>(p)]);
  });
}

bool BlockCode::same_signatures(const BlockFrame& frame, const Node& node) const {
  return std::all_of(node.touches.begin() + static_cast<std::ptrdiff_t>(node.reads), node.touches.end(), [&](int p) {
    return frame.last.signatures[static_cast<size_t>(p)].is_that_of(*frame.places[static_cast<size_t>(p)]);
  });
}

void BlockCode::begin_notes(BlockFrame& frame) {
  if (!found_watched_) find_watched();
  FrameSignatures& last = frame.last;
  set_in_place(frame, false);
  last.signatures.resize(places_.size());
  last.noted.assign(places_.size(), 0);
  last.alike = true;
  for (int p : watched_) {
    last.signatures[static_cast<size_t>(p)] = Signature(*frame.places[static_cast<size_t>(p)]);
    last.noted[static_cast<size_t>(p)] = 1;
  }
}

// If a node's outputs have another signature than in the last iteration, the earlier record is invalid.
void BlockCode::resume_notes(BlockFrame& frame, size_t at) {
  FrameSignatures& last = frame.last;
  set_in_place(frame, false);
  last.noted.assign(places_.size(), 0);
  last.alike = true;
  for (int p : watched_) last.noted[static_cast<size_t>(p)] = 1;
  for (size_t i = 0; i < at; ++i) {
    for (int p : nodes_[i].touches) last.noted[static_cast<size_t>(p)] = 1;
  }
}

void BlockCode::note(BlockFrame& frame, Node& node) {
  FrameSignatures& last = frame.last;
  for (size_t i = node.reads; i < node.touches.size(); ++i) {
    const auto p = static_cast<size_t>(node.touches[i]);
    Signature now(*frame.places[p]);
    if (last.noted[p] && !(last.signatures[p] == now)) last.alike = false;
    last.signatures[p] = std::move(now);
    last.noted[p] = 1;
  }
  const bool opaque = std::any_of(node.touches.begin(), node.touches.end(),
                                  [&](int p) { return last.signatures[static_cast<size_t>(p)].is_opaque(); });
  if (!opaque || node.dynamic) return;
  make_dynamic(node);
  last.alike = false;
}

// Shape functions of opaque objects depend on more than their signature. They may give buffered outputs other shapes
// than the inputs have.
void BlockCode::make_dynamic(Node& node) {
  node.dynamic = true;
  for (BufferedOutput& output : node.buffered) {
    if (!std::exchange(output.in_place, false)) continue;
    node.touches.push_back(output.made);
    found_watched_ = false;
    ++choices_;
  }
}

void BlockCode::end_notes(BlockFrame& frame) {
  FrameSignatures& last = frame.last;
  last.steady = last.alike;
  last.choices = choices_;
  set_in_place(frame, last.steady);
  memory_.settle(frame);
}

void BlockCode::set_in_place(BlockFrame& frame, bool in_place) const {
  if (frame.last.in_place == in_place) return;
  frame.last.in_place = in_place;
  for (const Node& node : nodes_) {
    for (const BufferedOutput& output : node.buffered) {
      if (!output.in_place) continue;
      frame.args[output.arg] = frame.places[static_cast<size_t>(in_place ? output.target : output.made)];
    }
  }
}

}  // namespace anabranch
