#include "graph/match_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

namespace anabranch {
namespace {

bool contains(const std::vector<int>& all, int one) { return std::find(all.begin(), all.end(), one) != all.end(); }

// Sets a variable, or compares it with the one that was set before.
bool agree(int* known, int var) {
  if (*known < 0) *known = var;
  return *known == var;
}

}  // namespace

std::optional<Match> Search::run(int first) {
  unsigned optional = 0;
  for (size_t k = 0; k < pattern_.ops_.size(); ++k) {
    optional |= static_cast<unsigned>(pattern_.ops_[k].optional) << (pattern_.ops_.size() - 1 - k);
  }
  for (without_ = 0; without_ <= optional; ++without_) {
    if ((without_ & ~optional) != 0) continue;
    const auto length = pattern_.ops_.size() - static_cast<size_t>(std::popcount(without_));
    if (length < 2 && !pattern_.alone_) continue;
    if (extend_by(0, first, Match(graph_, edit_.uses, context_))) break;
  }
  return found_;
}

bool Search::extend(size_t op, const Match& m) {
  while (op < pattern_.ops_.size() && skips(op)) ++op;
  if (op == pattern_.ops_.size()) return finish(m);
  const Uses& uses = edit_.uses;
  const auto& near = pattern_.down_ ? uses.readers(m.end_) : uses.writers(m.end_);
  return std::any_of(near.begin(), near.end(), [&](int at) { return extend_by(op, at, m); });
}

bool Search::extend_by(size_t op, int at, const Match& m) {
  const OpPattern& one = pattern_.ops_[op];
  if (!one.is(node(at), pattern_.of_gradient_) || !fits_in(op, at, m)) return false;
  const auto with = [&](const OpPattern::Slot* operand) {
    Match next = m;
    return bind(op, at, operand, &next) && check_conditions(op, at, next) && extend(op + 1, next);
  };
  if (one.operands.empty()) return with(nullptr);
  return std::any_of(one.operands.begin(), one.operands.end(), [&](const auto& operand) { return with(&operand); });
}

bool Search::fits_in(size_t op, int at, const Match& m) {
  if (edit_.gone(at) || !is_plain(node(at))) return false;
  if (op == 0) return true;
  const std::vector<int> parts = m.parts();
  if (node(at).replica != node(parts[0]).replica) return false;
  if (pattern_.down_ ? at <= parts.back() : at >= parts.front()) return false;
  const bool one_reader = !pattern_.with_gradient_;  // otherwise the gradient ops may read it, too
  const bool fits = one_reader ? edit_.uses.is_private(m.end_) : edit_.uses.is_inner(m.end_);
  if (!fits) return miss_private(m, at, m.end_);
  return !pattern_.values_ || pattern_.values_(graph_, m.end_) || miss(m, at, pattern_.no_value_);
}

bool Search::bind(size_t op, int at, const OpPattern::Slot* operand, Match* m) {
  const OpPattern& one = pattern_.ops_[op];
  const bool gradient = pattern_.of_gradient_;
  const auto slot = [&](const OpPattern::Slot& s) -> const std::string& { return gradient ? s.gradient : s.name; };
  // The values of the chain that the op reads and computes; a gradient op reads the gradient of the result.
  int in = -1, out = -1;
  if (const OpPattern::Slot* read = gradient ? &one.result : operand) in = input_var(node(at), slot(*read));
  if (const OpPattern::Slot* made = gradient ? operand : &one.result) out = output_var(node(at), slot(*made));
  const int next_to = pattern_.down_ ? in : out, end = pattern_.down_ ? out : in;
  if (m->end_ >= 0 && next_to != m->end_) return false;
  if (end < 0) return miss(*m, at, "an argument is missing");
  m->at_[op] = at;
  m->end_ = end;
  if (gradient) return bind_gradient_arguments(op, at, operand, m);
  m->operands_[op] = in;
  m->results_[op] = out;
  return bind_arguments(op, at, operand, m);
}

bool Search::bind_arguments(size_t op, int at, const OpPattern::Slot* operand, Match* m) {
  const OpPattern& one = pattern_.ops_[op];
  const auto set = [&](int name, int var) {
    return (var >= 0 && agree(&m->vars_[static_cast<size_t>(name)], var)) || miss(*m, at, "an argument is missing");
  };
  for (const auto& slot : one.ins) {
    if (!set(slot.var, input_var(node(at), slot.name))) return false;
  }
  for (const auto& slot : one.outs) m->vars_[static_cast<size_t>(slot.var)] = output_var(node(at), slot.name);
  if (one.other >= 0) {
    const auto& other = operand == &one.operands[0] ? one.operands[1] : one.operands[0];
    if (!set(one.other, input_var(node(at), other.name))) return false;
  }
  return true;
}

// The gradient op reads the same arguments as the forward op, or not at all. It may read the gradient of the result
// instead of the operand, for its shape: see the pass shape_reads.
bool Search::bind_gradient_arguments(size_t op, int at, const OpPattern::Slot* operand, Match* m) {
  const OpPattern& one = pattern_.ops_[op];
  const GraphNode& grad = node(at);
  const int given = input_var(grad, one.result.gradient);
  const auto agrees = [&](const std::string& slot, int* known) {
    const auto vars = input_vars(grad, slot);
    return vars.empty() || (vars.size() == 1 && ((*known >= 0 && vars[0] == given) || agree(known, vars[0])));
  };
  const auto bound = [&](const OpPattern::Slot& slot, int name) {
    m->gradients_[static_cast<size_t>(name)] = output_var(grad, slot.gradient);
    return agrees(slot.name, &m->vars_[static_cast<size_t>(name)]);
  };
  bool all = agrees(one.result.name, &m->results_[op]);
  for (const auto& slot : one.ins) all = all && bound(slot, slot.var);
  for (const auto& slot : one.outs) all = all && agrees(slot.name, &m->vars_[static_cast<size_t>(slot.var)]);
  if (operand) {
    const int read = input_var(grad, operand->name);
    all = all && (input_vars(grad, operand->name).empty() || (read >= 0 && read == m->operands_[op]) || read == given);
    if (one.other >= 0) all = all && bound(operand == &one.operands[0] ? one.operands[1] : one.operands[0], one.other);
  }
  return all || miss(*m, at, "it reads other values");
}

bool Search::check_conditions(size_t op, int at, const Match& m) {
  const auto& all = pattern_.ops_[op].conditions;
  return std::all_of(all.begin(), all.end(), [&](const auto& condition) {
    return condition.first(m, node(at)) || miss(m, at, condition.second);
  });
}

bool Search::finish(Match m) {
  if (pattern_.with_gradient_ && !(find_gradient(&m) && is_read_by_parts_only(m))) return false;
  if (!pattern_.in_place_) {
    for (const auto& parts : {m.parts(), m.gradient_parts()}) {
      if (!parts.empty() && !edit_.may_gather(parts)) {
        return miss(m, parts.back(), "another op between them uses their values");
      }
    }
  }
  found_ = m;
  return true;
}

int Search::gradient_of(size_t op, const Match& m) const {
  std::set<int> found;
  std::vector<int> read = {m.operands_[op]};
  for (const auto& slot : pattern_.ops_[op].outs) read.push_back(m[slot.var]);
  for (const int var : read) {
    for (const int r : var < 0 ? std::span<const int>() : edit_.uses.readers(var)) {
      if (pattern_.ops_[op].is(node(r), true)) found.insert(r);
    }
  }
  return found.size() == 1 ? *found.begin() : -1;
}

int Search::reader_of_gradient(size_t op, int var, const Match& m) {
  if (!edit_.uses.is_private(var) || (pattern_.values_ && !pattern_.values_(graph_, var))) return -1;
  const int at = edit_.uses.reader(var);
  const bool later = at > m.gradient_parts().back();  // in program order
  return later && pattern_.ops_[op].is(node(at), true) ? at : -1;
}

bool Search::find_gradient(Match* m) {
  std::vector<size_t> order;
  for (size_t k = 0; k < pattern_.ops_.size(); ++k) {
    if (m->has(k)) order.push_back(k);
  }
  if (pattern_.down_) std::reverse(order.begin(), order.end());
  int value = -1;
  for (const size_t k : order) {
    const OpPattern& one = pattern_.ops_[k];
    const bool last = k == order[0];
    const int at = last ? gradient_of(k, *m) : reader_of_gradient(k, value, *m);
    if (at < 0) {
      if (last) return true;  // is_read_by_parts_only() refuses several of them
      if (one.passes_gradient) continue;
      return miss(*m, edit_.uses.reader(value), "the gradient is computed by another op");
    }
    if (edit_.gone(at) || !is_plain(node(at)) || node(at).replica != node(m->at_[k]).replica) return false;
    const auto operand = std::find_if(one.operands.begin(), one.operands.end(), [&](const auto& slot) {
      return input_var(node(m->at_[k]), slot.name) == m->operands_[k];
    });
    const OpPattern::Slot* read = operand == one.operands.end() ? nullptr : &*operand;
    const int given = input_var(node(at), one.result.gradient);
    if (given < 0 || (!last && given != value)) return false;
    if (!bind_gradient_arguments(k, at, read, m)) return false;
    if (last) m->result_gradient_ = given;
    m->back_[k] = at;
    value = read ? output_var(node(at), read->gradient) : -1;
    if (value < 0 && k != order.back()) return one.ends_gradient;
  }
  m->end_gradient_ = value;
  return true;
}

bool Search::is_read_by_parts_only(const Match& m) {
  std::vector<int> all = m.parts(), inner;
  const int last = all.back();
  const std::vector<int> back = m.gradient_parts();
  all.insert(all.end(), back.begin(), back.end());
  for (size_t k = 0; k < pattern_.ops_.size(); ++k) {
    if (!m.has(k)) continue;
    if (m.at_[k] != last) inner.push_back(m.results_[k]);
    for (const auto& slot : pattern_.ops_[k].outs) {
      if (slot.inner && m[slot.var] >= 0) inner.push_back(m[slot.var]);
    }
  }
  return std::all_of(inner.begin(), inner.end(), [&](int var) {
    if (!edit_.uses.is_inner(var)) return miss_private(m, last, var);
    const auto& readers = edit_.uses.readers(var);
    const auto other = std::find_if(readers.begin(), readers.end(), [&](int r) { return !contains(all, r); });
    if (other == readers.end()) return true;
    return miss(m, last,
                context_.near_misses
                    ? fmt::format("'{}' is also read by {}", graph_.vars[var].name, node(*other).op->type)
                    : "");
  });
}

bool Search::miss_private(const Match& m, int at, int var) {
  if (!context_.near_misses) return false;
  const GraphVar& v = graph_.vars[static_cast<size_t>(var)];
  const Uses& uses = edit_.uses;
  const char* what = v.fetched ? "is fetched" : v.fed ? "is fed" : v.desc.persistable ? "is persistable" : nullptr;
  if (what) return miss(m, at, fmt::format("'{}' {}", v.name, what));
  if (uses.writer(var) < 0) return miss(m, at, fmt::format("'{}' has {} writers", v.name, uses.writers(var).size()));
  if (uses.reader(var) < 0) return miss(m, at, fmt::format("'{}' has {} readers", v.name, uses.readers(var).size()));
  return miss(m, at, fmt::format("'{}' is not a tensor", v.name));
}

bool Search::miss(const Match& m, int at, std::string_view why) {
  if (!context_.near_misses) return false;
  std::vector<int> parts = m.parts();
  if (!contains(parts, at)) parts.push_back(at);
  std::sort(parts.begin(), parts.end());
  std::vector<std::string_view> types;
  for (const int part : parts) types.push_back(node(part).op->type);
  misses_.push_back({at, fmt::format("{}", fmt::join(types, " -> ")), std::string(why)});
  return false;
}

void Search::report(const Match* found) const {
  std::vector<int> told = found ? found->parts() : std::vector<int>();
  for (const Miss& first : misses_) {
    if (contains(told, first.at)) continue;
    told.push_back(first.at);
    std::vector<std::string> reasons;  // of all the ops of the pattern that the node could have been
    for (const Miss& miss : misses_) {
      if (miss.at == first.at && std::find(reasons.begin(), reasons.end(), miss.why) == reasons.end()) {
        reasons.push_back(miss.why);
      }
    }
    context_.near_misses->push_back(fmt::format("{}: {}", first.chain, fmt::join(reasons, "; ")));
  }
}

}  // namespace anabranch
