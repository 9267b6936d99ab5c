#include "graph/passes/image_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "base/counted.h"

namespace anabranch {
namespace {

bool has(const std::vector<int>& vars, int var) { return std::find(vars.begin(), vars.end(), var) != vars.end(); }
bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

ImageLayouts::ImageLayouts(Graph& graph)
    : graph_(graph), class_(graph.vars.size()), may_(graph.vars.size(), 0), copied_(graph.vars.size(), 0) {
  std::iota(class_.begin(), class_.end(), 0);
}

int ImageLayouts::run() {
  find_images();
  if (std::count(may_.begin(), may_.end(), 1) == 0) return 0;
  for (const GraphNode& node : graph_.nodes) {
    for (const AlikeImages& images : alike(node)) {
      for (const int v : images.vars) class_[root(v)] = root(images.vars[0]);
    }
  }
  choose();
  if (std::count(chosen_.begin(), chosen_.end(), 1) > 0) rewrite();
  return changes_;
}

std::string ImageLayouts::summary() const {
  return fmt::format("{}, {}", counted(std::count(chosen_.begin(), chosen_.end(), 1), "image"),
                     counted(reorders_, "reorder"));
}

void ImageLayouts::find_images() {
  const Uses uses(graph_);
  std::vector<char> seen_elsewhere(graph_.vars.size(), 0);
  for (const GraphNode& node : graph_.nodes) {
    for (const int v : node.more_reads) seen_elsewhere[v] = 1;
    for (const int v : node.more_writes) seen_elsewhere[v] = 1;
  }
  for (size_t v = 0; v < graph_.vars.size(); ++v) {
    const GraphVar& var = graph_.vars[v];
    const int id = static_cast<int>(v);
    const bool known = !seen_elsewhere[v] && !var.dynamic && var.same_buffer_as < 0 &&
                       var.desc.kind == VarKind::kLoDTensor && var.desc.shape.rank() == 4 && may_change(id);
    may_[v] = known && uses.is_inner(id);
    copied_[v] = known && !may_[v] && !var.desc.persistable && uses.writers(id).size() <= 1;
  }
}

std::vector<int> ImageLayouts::in_slots(const GraphNode& node, const std::vector<std::string>& slots) const {
  std::vector<int> found;
  const auto collect = [&](const std::vector<ir::Slot>& all, const std::vector<int>& ids, bool inputs) {
    size_t at = 0;
    for (const auto& slot : all) {
      for (size_t k = 0; k < slot.args.size(); ++k, ++at) {
        const bool unread = inputs && !shapes_change() && has(node.only_shapes, ids[at]);
        if (has(slots, slot.name) && ids[at] >= 0 && !unread) found.push_back(ids[at]);
      }
    }
  };
  collect(node.op->inputs, node.ins, true);
  collect(node.op->outputs, node.outs, false);
  return found;
}

int ImageLayouts::root(int var) {
  while (class_[var] != var) var = class_[var] = class_[class_[var]];
  return var;
}

// Images that this node uses in the plain layout only.
std::vector<int> ImageLayouts::plain_uses(const GraphNode& node) const {
  std::vector<int> known, plain;
  for (const AlikeImages& images : alike(node)) known.insert(known.end(), images.vars.begin(), images.vars.end());
  for (const auto* ids : {&node.ins, &node.outs}) {
    for (const int v : *ids) {
      if (v < 0 || !may(v) || has(known, v) || has(plain, v)) continue;
      if (shapes_change() || !has(node.only_shapes, v)) plain.push_back(v);
    }
  }
  return plain;
}

void ImageLayouts::choose() {
  std::vector<int64_t> saved(graph_.vars.size(), 0);  // of each class
  std::vector<char> read_plain(graph_.vars.size(), 0), copied(graph_.vars.size(), 0);
  for (const GraphNode& node : graph_.nodes) {
    for (const AlikeImages& images : alike(node)) {
      int64_t& of_class = saved[root(images.vars[0])];
      of_class += images.saves;
      for (const int v : images.outside) of_class -= std::exchange(copied[v], 1) ? 0 : price(v);
    }
    for (const int v : plain_uses(node)) {
      const bool first = has(node.outs, v) || !read_plain[v];  // readers share a copy that one of them needed
      saved[root(v)] -= first ? price(v) : 0;
      read_plain[v] |= !has(node.outs, v);
    }
  }
  chosen_.assign(graph_.vars.size(), 0);
  for (size_t v = 0; v < graph_.vars.size(); ++v) chosen_[v] = may_[v] && saved[root(static_cast<int>(v))] > 0;
}

void ImageLayouts::rewrite() {
  plain_.assign(graph_.vars.size(), -1);
  other_ = plain_;
  std::vector<GraphNode> before;
  before.swap(graph_.nodes);
  for (const GraphNode& node : before) {
    const std::vector<int> plain = plain_uses(node);
    std::vector<int> written;
    for (const int v : plain) {
      if (!chosen_[v]) continue;
      if (has(node.outs, v)) {
        written.push_back(v);
      } else if (plain_[v] < 0) {
        const int to = plain_of(v);
        add_reorder(node, v, to, false);
      }
    }
    copy_outside(node, false);
    GraphNode changed = node;
    change(changed, plain);
    graph_.nodes.push_back(std::move(changed));
    copy_outside(node, true);
    for (const int v : written) {
      const int from = plain_of(v);
      add_reorder(node, from, v, true);
    }
  }
  for (size_t v = 0; v < chosen_.size(); ++v) {
    if (chosen_[v]) describe(graph_.vars[v]);
  }
}

// Not by its name: values of other element types have the same one.
int ImageLayouts::copy_of(int var, const char* suffix) {
  GraphVar copy;
  const GraphVar& of = graph_.vars[var];
  copy.name = of.name + suffix;
  copy.replica = of.replica;
  copy.version = of.version;
  copy.desc = of.desc;
  copy.desc.persistable = false;
  copy.produced = true;
  graph_.vars.push_back(std::move(copy));
  return static_cast<int>(graph_.vars.size()) - 1;
}

int ImageLayouts::plain_of(int var) {
  if (plain_[var] < 0) plain_[var] = copy_of(var, "@PLAIN");
  return plain_[var];
}

int ImageLayouts::other_of(int var) {
  if (other_[var] < 0) {
    other_[var] = copy_of(var, "@OTHER");
    describe(graph_.vars[other_[var]]);
  }
  return other_[var];
}

// The copies that a node reads of images in the other layout; or, after it, those of its outputs.
void ImageLayouts::copy_outside(const GraphNode& node, bool after) {
  for (const AlikeImages& images : alike(node)) {
    if (!chosen_[images.vars[0]]) continue;
    for (const int v : images.outside) {
      if (has(node.outs, v) != after || (!after && other_[v] >= 0)) continue;
      const int other = other_of(v);
      after ? add_reorder(node, other, v, false) : add_reorder(node, v, other, true);
    }
  }
}

void ImageLayouts::add_reorder(const GraphNode& next_to, int from, int to, bool to_other) {
  graph_.nodes.push_back(reorder(next_to, from, to, to_other));
  ++reorders_;
  ++changes_;
}

// Sets the layout attribute of the op, or gives it plain copies.
void ImageLayouts::change(GraphNode& node, const std::vector<int>& plain) {
  std::vector<AlikeImages> told;
  for (AlikeImages& images : alike(node)) {
    if (!images.attr.empty() && chosen_[images.vars[0]]) told.push_back(std::move(images));
  }
  const auto moves = [&](int v) { return v >= 0 && v < std::ssize(chosen_) && chosen_[v] && has(plain, v); };
  const auto outside = [&](int v) {
    return v >= 0 && std::any_of(told.begin(), told.end(), [v](const AlikeImages& i) { return has(i.outside, v); });
  };
  if (told.empty() && std::none_of(plain.begin(), plain.end(), moves)) return;
  auto op = std::make_shared<ir::Op>(*node.op);
  for (const AlikeImages& images : told) tell(*op, images);
  const auto rename = [&](std::vector<ir::Slot>& slots, std::vector<int>& ids) {
    size_t at = 0;
    for (auto& slot : slots) {
      for (auto& arg : slot.args) {
        int& v = ids[at++];
        if (!moves(v) && !outside(v)) continue;
        v = outside(v) ? other_of(v) : plain_of(v);
        arg = graph_.vars[v].name;
      }
    }
  };
  rename(op->inputs, node.ins);
  rename(op->outputs, node.outs);
  for (int& v : node.only_shapes) v = outside(v) ? other_of(v) : moves(v) ? plain_of(v) : v;
  node.op = std::move(op);
  ++changes_;
}

}  // namespace anabranch
