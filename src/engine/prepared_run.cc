#include "engine/prepared_run.h"

#include <algorithm>
#include <numeric>

#include "base/flags.h"
#include "engine/compiled_program_impl.h"

namespace anabranch {

PreparedRun::PreparedRun(CompiledProgram& program, const std::vector<std::string>& feeds,
                         std::vector<std::string> fetches)
    : program_(program), version_(program.impl_->program->version()) {
  const ir::Block& block = program.impl_->program->global_block();
  for (const auto& name : feeds) {
    const auto var = block.find_var(name);
    AB_CHECK(var != nullptr, NotFound, "fed variable {} is not in the program", name);
    fed_.push_back({name, var->dtype, var->shape, var->need_check_feed, var->persistable});
  }
  key_order_.resize(fed_.size());
  std::iota(key_order_.begin(), key_order_.end(), size_t{0});
  std::sort(key_order_.begin(), key_order_.end(), [&](size_t a, size_t b) { return fed_[a].name < fed_[b].name; });
  for (size_t i : key_order_) key_.feeds.push_back(fed_[i].name);
  key_.fetches = std::move(fetches);
  batch_.resize(fed_.size());
  whole_.resize(fed_.size());
}

bool PreparedRun::stale() const { return program_.impl_->program->version() != version_; }

bool PreparedRun::fits(size_t i, const Tensor& batch) const {
  const Fed& f = fed_[i];
  if (!f.checked) return true;
  if (batch.dtype() != f.dtype || batch.shape().rank() != f.declared.rank()) return false;
  const int64_t rows = f.declared.rank() ? f.declared[0] : kUnknown;
  if (rows >= 0 && batch.shape()[0] != rows * program_.impl_->feed_devices()) return false;
  for (int axis = 1; axis < f.declared.rank(); ++axis) {
    if (f.declared[axis] >= 0 && batch.shape()[axis] != f.declared[axis]) return false;
  }
  return true;
}

// Validates the batch, and puts it into the order of the key.
void PreparedRun::take(std::span<const Tensor> batch) {
  AB_CHECK(batch.size() == fed_.size(), InvalidArgument, "{} values must be fed, got {}", fed_.size(), batch.size());
  for (size_t k = 0; k < key_order_.size(); ++k) {
    const Tensor& t = batch[key_order_[k]];
    const Fed& f = fed_[key_order_[k]];
    check_fed(f.name, t);
    const bool one_a_replica = f.declared.rank() > 0 && t.rows() == f.declared[0] * program_.impl_->options.replicas;
    whole_[k] = f.persistable && !one_a_replica;
    batch_[k] = t;
  }
}

void PreparedRun::run(std::span<const Tensor> batch, const std::function<void()>& between,
                      const std::function<void(const Step&)>& use) {
  CompiledProgram::Impl& m = *program_.impl_;
  const CompiledProgram::Impl::Exclusive exclusive(m);
  take(batch);
  const int active =
      batch.empty() ? m.options.replicas
                    : split_feed(batch_, {&key_.feeds, &whole_, m.options.replicas, Flags::exact_fluid()}, &slices_);
  slices_.resize(m.options.replicas);
  m.drop_old_plans();
  if (!binding_ || generation_ != m.generation || binding_->key().active != active) {
    key_.active = active;
    binding_ = &m.binding_for(key_);
    generation_ = m.generation;
  }
  m.run_step(*binding_, slices_, between, use);
}

}  // namespace anabranch
