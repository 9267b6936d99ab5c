// The gradients of a table's rows, shared by the fused gradient ops. A source is one lookup: its ids, and a gradient
// tensor whose rows hold the gradients of the ids from some column on. If the source has factors, one for each id, then
// the gradient of each id of a row is the whole row times its factor.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "opdef/op_def.h"
#include "ops/kernels/ids.h"
#include "ops/sparse/row_loops.h"

namespace anabranch::sparse {

// Slots Ids, Grad and Factor, and their attributes.
void declare_sources(OpDef& def);
// Checks the shapes of all sources against the width of the table (input `table`).
void infer_sources(const InferContext& c, const char* table);

template <class T> class GradSources {
 public:
  explicit GradSources(const KernelArgs& op);

  // Lists ids and gradients of all sources, source after source, without those of the padding ids (unless
  // FLAGS_fluid_exact keeps them). Ids outside of [0, height) raise.
  void read(const KernelContext& c, int64_t height, int64_t width);

  int64_t count() const { return static_cast<int64_t>(ids_.size()); }
  const int64_t* ids() const { return ids_.data(); }
  const T* const* grads() const { return grads_.data(); }
  // Element j of gradient k, with its factor and divisor.
  T gradient(int64_t k, int64_t j) const {
    T g = grads_[static_cast<size_t>(k)][j];
    if (multiplied_) g = T{0} + g * factors_[static_cast<size_t>(k)];  // as a product of matrices
    return divided_ ? g / divisors_[static_cast<size_t>(k)] : g;
  }
  const T* divisors() const { return divided_ ? divisors_.data() : nullptr; }   // null: all are 1
  const T* factors() const { return multiplied_ ? factors_.data() : nullptr; }  // null: all are 1

 private:
  struct Source {
    IdSource name;
    int64_t padding, column, per_row;
    int32_t factor;  // index in Factor; -1: none
    Pool pool;
    Tensor scratch;
  };
  void read_source(const KernelContext& c, int i, int64_t height, int64_t width);
  void add_pooled(const Source& s, const Tensor& ids, const int64_t* id, const T* grad, int64_t stride);
  void remove_padding(size_t begin, int64_t padding);

  In ids_in_, grads_in_, factors_in_;
  std::vector<Source> sources_;
  bool divided_ = false, multiplied_ = false;
  std::vector<int64_t> ids_;
  std::vector<const T*> grads_;
  std::vector<T> divisors_, factors_;
};

}  // namespace anabranch::sparse
