#include "graph/passes/patterns/sequence_iteration_gradient.h"

#include <fmt/format.h>

#include <algorithm>

namespace anabranch {
namespace {

template <class Elements> bool any_array(const Elements& elements, const std::string& name) {
  return std::any_of(elements.begin(), elements.end(), [&](const auto& each) { return each.array == name; });
}

}  // namespace

SequenceIterationGradient::SequenceIterationGradient(const SequenceIteration& iteration, const ir::Block& gradient,
                                                     const std::map<std::string, int>& given)
    : sorted_(sort(iteration, gradient)),
      check_(iteration.cell, sorted_.plain, sorted_.seeds),
      why_(check(iteration, given)) {}

SequenceIterationGradient::Sorted SequenceIterationGradient::sort(const SequenceIteration& iteration,
                                                                  const ir::Block& gradient) {
  Sorted sorted;
  for (const auto& op : gradient.ops()) {
    bool taken = true;
    if (op->type == "write_to_array_grad") {
      taken = take_write(iteration, *op, &sorted);
    } else if (op->type == "read_from_array_grad") {
      taken = take_read(iteration, *op, &sorted);
    } else if (op->type == "shrink_rnn_memory_grad") {
      sorted.shrunk.emplace_back(sole(op->output("X@GRAD")), sole(op->input("Out@GRAD")));
    } else {
      sorted.plain.push_back(op);
    }
    if (!taken) sorted.why = fmt::format("{} in its gradient is not what append_backward makes", op->type);
  }
  return sorted;
}

bool SequenceIterationGradient::take_write(const SequenceIteration& iteration, const ir::Op& op, Sorted* sorted) {
  const std::string value = sole(op.input("X")), at = sole(op.input("I")), made = sole(op.output("X@GRAD"));
  const std::string gradient = sole(op.input("Out@GRAD"));
  if (made.empty() || made == ir::kEmptyVar || sole(op.output("Rest")) != gradient) return false;
  const auto take = [&](const std::string& array, const std::string& written, const std::set<std::string>& places) {
    if (gradient != ir::grad_name(array) || value != written || places.count(at) == 0) return false;
    sorted->seeds.emplace_back(value, made);
    return sorted->written.emplace(array, made).second;
  };
  return std::any_of(iteration.outputs.begin(), iteration.outputs.end(),
                     [&](const auto& output) { return take(output.array, output.value, iteration.now); }) ||
         std::any_of(iteration.memories.begin(), iteration.memories.end(),
                     [&](const auto& memory) { return take(memory.array, memory.made, iteration.next); });
}

bool SequenceIterationGradient::take_read(const SequenceIteration& iteration, const ir::Op& op, Sorted* sorted) {
  const std::string to = sole(op.output("X@GRAD"));
  if (iteration.now.count(sole(op.input("I"))) == 0 || !to.ends_with("@GRAD")) return false;
  const std::string array = to.substr(0, to.size() - 5);
  if (!any_array(iteration.inputs, array) && !any_array(iteration.memories, array)) return false;
  sorted->read.emplace_back(array, sole(op.input("Out@GRAD")));
  return true;
}

std::string SequenceIterationGradient::gradient_read(const std::string& array) const {
  std::string found;
  for (const auto& [of, gradient] : sorted_.read) {
    if (of != array) continue;
    found = found.empty() ? gradient : ir::kEmptyVar;
  }
  return found;
}

std::string SequenceIterationGradient::taken_from(const std::string& array) const {
  const auto it = sorted_.written.find(array);
  return it == sorted_.written.end() ? "" : it->second;
}

SequenceIterationGradient::Part SequenceIterationGradient::part(const SequenceIteration& iteration,
                                                                const std::set<size_t>& places) const {
  std::set<std::string> inner;
  for (const size_t place : places) {
    for (const auto& out : iteration.cell[place]->output_args()) inner.insert(out);
  }
  Part found;
  for (const auto& op : sorted_.plain) {
    std::vector<std::string> outs = op->output_args();
    std::erase(outs, ir::kEmptyVar);
    if (outs.empty()) continue;
    const int by = check_.made_by(outs[0]);
    const bool among = op->type == "sum" ? inner.count(check_.of(outs[0])) != 0
                                         : by >= 0 && places.count(static_cast<size_t>(by)) != 0;
    if (!among) continue;
    found.ops.push_back(op);
    for (const auto& out : outs) {
      if (!inner.count(check_.of(out))) found.made.emplace_back(out, check_.of(out));
    }
  }
  return found;
}

std::string SequenceIterationGradient::check(const SequenceIteration& iteration,
                                             const std::map<std::string, int>& given) const {
  if (!sorted_.why.empty()) return sorted_.why;
  if (!check_.why().empty()) return check_.why();
  for (const auto& output : iteration.outputs) {
    if (given.count(output.array) != sorted_.written.count(output.array)) return "its gradient has other outputs";
  }
  for (const auto& memory : iteration.memories) {
    const std::string read = gradient_read(memory.array);
    const auto first = std::find_if(sorted_.shrunk.begin(), sorted_.shrunk.end(),
                                    [&](const auto& shrunk) { return shrunk.first == read; });
    const bool whole = sorted_.written.count(memory.array) != 0 && !read.empty() && first != sorted_.shrunk.end() &&
                       check_.is_gradient(first->second, memory.value);
    if (!whole) return fmt::format("the gradient of {} does not have the expected form", memory.value);
  }
  for (const auto& input : iteration.inputs) {
    const std::string read = gradient_read(input.array);
    if (!read.empty() && !check_.is_gradient(read, input.value)) {
      return fmt::format("the gradient of {} does not have the expected form", input.value);
    }
  }
  return "";
}

}  // namespace anabranch
