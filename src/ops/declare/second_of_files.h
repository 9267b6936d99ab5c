// Second-order gradients that programs in files of 1.8.5 contain as separate ops. The slots of such an op, for a
// forward op Out = F(X): X and Out as there; DOut = Out@GRAD, DX = X@GRAD; DDX = the gradient of X@GRAD. It computes
// DDOut, the gradient of Out@GRAD, and, as DX, DOut or X@GRAD, the gradients of the variables that the gradient of F
// reads.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "opdef/op_def.h"

namespace anabranch::second_order {

// Builds the ops that replace one of those.
class OfFile {
 public:
  OfFile(ir::Block& block, size_t at);

  std::string in(const std::string& slot) const { return one_of(op_.input(slot)); }    // "" if not given
  std::string out(const std::string& slot) const { return one_of(op_.output(slot)); }  // "" if not requested

  // Arguments of the gradient function of `first`, the gradient op of F.
  void differentiate(const std::string& first);

  // Adds an op with those of the attributes that it declares; returns the name of its output.
  std::string make(const std::string& type, std::vector<ir::Slot> ins, const std::string& slot = "Out");
  std::string scale(const std::string& x, float factor);
  void is(const std::string& slot, const std::string& made);

  // Inserts the ops into the block; returns their number.
  size_t put();

 private:
  std::string one_of(const std::vector<std::string>& args) const;
  std::string fresh();
  std::string gradient_of(const std::string& slot) const;  // "" if not requested
  ir::Op first_op(const OpDef& forward, const std::string& first);
  void find_targets(const ir::Op& first, const GradReads& reads);
  void take(const ir::OpRef& op);
  void add_up();
  void append(const ir::Op& op, size_t at);

  ir::Block& block_;
  const size_t at_;
  const ir::Op op_;
  std::vector<ir::OpRef> ops_;
  std::map<std::string, std::string> flows_, targets_;  // internal names of gradients, and their names in the program
  std::map<std::string, std::vector<std::string>> parts_;  // of each output
  std::map<std::string, std::string> like_;                // the variable that has the shape of an output
  std::set<std::string> taken_;
};

}  // namespace anabranch::second_order
