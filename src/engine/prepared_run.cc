#include "engine/prepared_run.h"

#include <algorithm>
#include <numeric>

#include "base/counted.h"
#include "base/flags.h"
#include "engine/compiled_program_impl.h"

namespace anabranch {

PreparedRun::PreparedRun(CompiledProgram& program, const std::vector<std::string>& feeds,
                         std::vector<std::string> fetches, bool of_one)
    : program_(program),
      version_(program.impl_->program->version()),
      devices_(!of_one && program.impl_->options.data_parallel ? program.impl_->options.replicas : 1) {
  for (const auto& name : feeds) fed_.emplace_back(*program.impl_->program, name);
  key_order_.resize(fed_.size());
  std::iota(key_order_.begin(), key_order_.end(), size_t{0});
  std::sort(key_order_.begin(), key_order_.end(), [&](size_t a, size_t b) { return fed_[a].name < fed_[b].name; });
  for (size_t i : key_order_) key_.feeds.push_back(fed_[i].name);
  key_.fetches = std::move(fetches);
  batch_.resize(fed_.size());
  whole_.resize(fed_.size());
}

bool PreparedRun::stale() const { return program_.impl_->program->version() != version_; }

// Checks the batch, and puts it into the order of the key.
void PreparedRun::take(std::span<const Tensor> batch, int devices, std::vector<Tensor>* taken) {
  AB_CHECK(batch.size() == fed_.size(), InvalidArgument, "{} values must be fed, got {}", fed_.size(), batch.size());
  taken->resize(batch.size());
  for (size_t k = 0; k < key_order_.size(); ++k) {
    Tensor& t = (*taken)[k];
    t = batch[key_order_[k]];
    const Fed& f = fed_[key_order_[k]];
    check_fed(f, devices, &t);
    const bool one_a_replica = f.declared.rank() > 0 && t.rows() == f.declared[0] * program_.impl_->options.replicas;
    whole_[k] = f.persistable && !one_a_replica;
  }
}

void PreparedRun::run(std::span<const Tensor> batch, const std::function<void()>& between,
                      const std::function<void(const Step&)>& use) {
  CompiledProgram::Impl& m = *program_.impl_;
  const CompiledProgram::Impl::Exclusive exclusive(m);
  take(batch, devices_, &batch_);
  const int active =
      batch.empty() ? m.options.replicas
                    : split_feed(batch_, {&key_.feeds, &whole_, m.options.replicas, Flags::exact_fluid()}, &slices_);
  run_slices(active, between, use);
}

void PreparedRun::run_each(const Slices& batches, const std::function<void()>& between,
                           const std::function<void(const Step&)>& use) {
  CompiledProgram::Impl& m = *program_.impl_;
  AB_CHECK(static_cast<int>(batches.size()) == m.options.replicas, InvalidArgument, "a list of {} is given for {}",
           counted(static_cast<int64_t>(batches.size()), "feed"), counted(m.options.replicas, "replica"));
  const CompiledProgram::Impl::Exclusive exclusive(m);
  slices_.resize(batches.size());
  for (size_t r = 0; r < batches.size(); ++r) take(batches[r], 1, &slices_[r]);
  run_slices(m.options.replicas, between, use);
}

void PreparedRun::run_slices(int active, const std::function<void()>& between,
                             const std::function<void(const Step&)>& use) {
  CompiledProgram::Impl& m = *program_.impl_;
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
