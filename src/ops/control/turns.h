// Turns of a loop: what an op inside sees of them, and what an error says.
#pragma once
#include "opdef/kernel_context.h"

namespace anabranch::control {

// The context of the ops in turn number `turn`: what they draw depends on the turns of all loops around them.
struct Turn {
  Turn(const KernelContext& around, int64_t turn) : context(around) {
    uint64_t z = around.turns + (static_cast<uint64_t>(turn) + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    context.turns = z ^ (z >> 31);
  }
  KernelContext context;
};

inline void note_turn(Error& e, int64_t turn) { e.with_note(fmt::format("turn   {} of the loop, counted from 0", turn)); }

}  // namespace anabranch::control
