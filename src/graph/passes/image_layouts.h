// Common base of passes that give images between convolutions another layout than the program's. Images that must agree
// form a class; a class changes its layout if that saves more than the reorders for ops that need the plain layout
// cost. The pass decides which images may change, which of a node's images go together, how much a change saves, and
// how an op is told.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "graph/edit.h"

namespace anabranch {

// Images of a node that must have one layout, either of the two.
struct AlikeImages {
  std::vector<int> vars;
  // images of the node that keep their layout, so that it reads or writes copies of them
  std::vector<int> outside = {};
  int64_t saves = 0;  // what the node saves with the other layout
  std::string attr;   // attribute that sets the layout of the op; empty: the op is independent of it
};

class ImageLayouts {
 public:
  explicit ImageLayouts(Graph& graph);
  virtual ~ImageLayouts() = default;
  ImageLayouts(const ImageLayouts&) = delete;
  int run();  // returns the number of changes
  std::string summary() const;

 protected:
  // Called for temporaries with four axes and one writer that are not visible outside.
  virtual bool may_change(int var) const = 0;
  virtual std::vector<AlikeImages> alike(const GraphNode& node) const = 0;
  virtual int64_t price(int var) const = 0;  // of a reorder
  virtual GraphNode reorder(const GraphNode& next_to, int from, int to, bool to_other) const = 0;
  virtual void tell(ir::Op& op, const AlikeImages& images) const = 0;
  virtual void describe(GraphVar&) const {}  // of an image that has changed its layout
  // Inputs of which only the shape is read must have their declared layout.
  virtual bool shapes_change() const { return false; }

  bool may(int var) const { return may_[static_cast<size_t>(var)] != 0; }
  // It keeps its layout, as fed and fetched images do, and has one value in a step.
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
  void copy_outside(const GraphNode& node, bool after);
  void add_reorder(const GraphNode& next_to, int from, int to, bool to_other);
  void change(GraphNode& node, const std::vector<int>& plain);

  std::vector<int> class_;  // union-find over variables
  std::vector<char> may_, copied_, chosen_;
  std::vector<int> plain_, other_;  // the copy of a variable in that layout, -1 if it was not needed yet
  int changes_ = 0, reorders_ = 0;
};

}  // namespace anabranch
