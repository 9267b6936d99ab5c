// The gradient ops of one block, first as a list (names settled, partial gradients joined by `sum`, absent ones filled
// with zeros), then put into a block. A sub-block's gradients are one of these inside another.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/forward_reads.h"

namespace anabranch {

struct GradientRequest {
  std::set<std::string> no_grad;  // in addition to stop_gradient variables and frozen parameters
  std::function<void(ir::Block&, const ir::Op&)> after_op;
};

class BlockGradients {
 public:
  // `request` outlives this object.
  BlockGradients(const ir::Block& forward, const GradientRequest& request)
      : BlockGradients(forward, request, {forward, {}}) {}

  // Gradient of a target. `op` computes it and is inserted first; null: it exists under this name.
  void seed(const std::string& target, const std::string& name, ir::OpRef op);
  void prepend(ir::OpRef op) { ops_.push_back(std::move(op)); }  // inputs of a seed op; before run()
  // Differentiates ops [0, end) that lie between `inputs` (empty: anything) and `targets`.
  void run(size_t end, const std::set<std::string>& targets, const std::set<std::string>& inputs);
  // Name of the gradient of a variable, "" if there is none. It is final after commit().
  std::string gradient_of(const std::string& var) const;
  // Appends the ops to a block, with checks and shape inference.
  void commit(ir::Block& into);

 private:
  using Path = std::vector<size_t>;

  BlockGradients(const ir::Block& forward, const GradientRequest& request, ForwardReads reads)
      : forward_(forward), request_(request), reads_(std::move(reads)) {}
  void submit(const std::string& target);
  void submit_sums(size_t index, BlockGradients& inner) const;
  void give_sums(const BlockGradients& inner, bool repeats, ir::Op& grad) const;
  void drop_empty_sums();
  std::set<std::string> close_over_iterations(const std::map<std::string, std::string>& made_by_previous_iteration,
                                              std::set<std::string> targets) const;
  bool had_value(size_t index, const std::string& var) const;
  void settle_names();
  bool adds_to_array(const ir::Op& op, const std::string& gradient) const;
  bool needs(const std::string& var) const;
  Path find_path(size_t end, const std::set<std::string>& targets, const std::set<std::string>& inputs,
                 std::set<std::string>* needed = nullptr) const;
  void refuse_hidden_writes(const Path& path, size_t end, const std::set<std::string>& targets) const;
  void differentiate(size_t index);
  ir::Op without_unreached(const ir::Op& op) const;
  bool fill_missing(size_t index, ir::Op& grad);
  void add_sub_block(size_t index, ir::Op& grad);
  std::vector<std::string> whole_arrays(const ir::Op& op, const std::set<std::string>& targets) const;
  void emit(const std::vector<ir::OpRef>& ops);
  static std::vector<std::pair<std::string*, std::string>> take_outputs(ir::Op& op);
  void join_partials(const std::string& gradient);
  std::string part_name(const std::string& gradient);
  void produce(const std::string& gradient, std::string* arg, bool name_taken);
  void rename(const std::string& from, const std::string& to, size_t first_op);
  void rename_reads(const std::string& from, const std::string& to, size_t first_op);
  void finish_versions(const ir::Op& op, bool passes_on);
  void avoid_existing(const ir::Block& into);
  void declare_outputs(ir::Block& into, const ir::Op& op) const;
  static void strip_marks(ir::Op& op);

  // Gradient of one version of a variable: the ops from `since` on write its parts.
  struct Partials {
    std::vector<std::string> names;
    size_t since = 0;
  };

  const ir::Block& forward_;
  const GradientRequest& request_;
  std::vector<ir::OpRef> ops_;
  std::set<const ir::Op*> starts_;  // those of ops_ that create the gradient of a target
  // Here, names of gradients end with kGradientMark (opdef/grad_context.h), also as arguments of ops_.
  std::map<std::string, Partials> partials_;  // by gradient name
  std::vector<std::string> order_;            // gradient names in order of their first part
  std::map<std::string, int> rename_count_;
  std::map<std::string, std::string> forward_var_;  // name of a gradient or of a term -> its variable
  std::map<std::string, std::string> finished_;     // gradients of variables that an op of the path made
  std::map<const ir::Op*, std::unique_ptr<BlockGradients>> inner_;
  std::set<std::string> outside_;    // gradients that exist before the ops: of targets, and inputs of an iteration
  std::set<std::string> submitted_;  // of a nested block: variables whose gradients its variables x@GRAD hold
  std::set<std::string> sums_;       // of those: gradients that iterations add to
  ForwardReads reads_;
};

}  // namespace anabranch
