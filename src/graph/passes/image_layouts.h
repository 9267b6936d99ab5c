// What passes share that let images between convolutions keep another layout than the program's. Images that must agree
// form a class; a class changes its layout when that saves more than the reorders cost that ops need which know the
// plain layout alone. The pass says which images may change, which of a node's go together, what that saves, and how an
// op is told.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "graph/edit.h"

namespace anabranch {

// Images of a node that have to have one layout, which may be either.
struct AlikeImages {
  std::vector<int> vars;
  std::vector<int> outside = {};  // beside them: images that keep their layout, of which the node gets or makes copies
  int64_t saves = 0;              // what the node saves where they have the other layout
  std::string attr;               // by which the op is told; empty: it does the same, wherever elements lie
};

class ImageLayouts {
 public:
  explicit ImageLayouts(Graph& graph);
  virtual ~ImageLayouts() = default;
  ImageLayouts(const ImageLayouts&) = delete;
  int run();  // the changes
  std::string summary() const;

 protected:
  // Temporaries of four axes that exactly one node writes and nobody outside looks at are asked for.
  virtual bool may_change(int var) const = 0;
  virtual std::vector<AlikeImages> alike(const GraphNode& node) const = 0;
  virtual int64_t price(int var) const = 0;  // of a reorder
  virtual GraphNode reorder(const GraphNode& beside, int from, int to, bool to_other) const = 0;
  virtual void tell(ir::Op& op, const AlikeImages& images) const = 0;
  virtual void describe(GraphVar&) const {}  // of an image that has changed its layout
  // Inputs of which only the shape is read have to be as the program declares them.
  virtual bool shapes_change() const { return false; }

  bool may(int var) const { return may_[static_cast<size_t>(var)] != 0; }
  // It keeps its layout, as what is fed or fetched does, and has one value in a step.
  bool may_be_copied(int var) const { return copied_[static_cast<size_t>(var)] != 0; }
  // The variables of these slots; without those of which only the shape is read, unless shapes change, too.
  std::vector<int> in_slots(const GraphNode& node, const std::vector<std::string>& slots) const;

  Graph& graph_;

 private:
  void find_images();
  int root(int var);
  std::vector<int> plain_uses(const GraphNode& node) const;
  void choose();
  void rewrite();
  int copy_of(int var, const char* suffix);
  int plain_of(int var);
  int other_of(int var);
  void copy_outside(const GraphNode& node, bool behind);
  void add_reorder(const GraphNode& beside, int from, int to, bool to_other);
  void change(GraphNode& node, const std::vector<int>& plain);

  std::vector<int> class_;  // union-find over variables
  std::vector<char> may_, copied_, chosen_;
  std::vector<int> plain_, other_;  // the copy of a variable in that layout, -1 when nobody has needed one
  int changes_ = 0, reorders_ = 0;
};

}  // namespace anabranch
