#include "engine/trainer_states.h"

#include <map>
#include <set>

#include "core/host_copy.h"
#include "device/devices.h"
#include "ir/well_formed.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

bool is_update(const ir::Op& op) {
  return (op.role() & ir::role::kOptimize) != 0 && !op.input("Param").empty() && !op.input("Grad").empty();
}

class Classifier {
 public:
  explicit Classifier(const ir::Program& program) : program_(program) {
    ir::check_well_formed(program);
    for (int b = 0; b < program.num_blocks(); ++b) {
      for (const auto& op : program.block(b).ops()) read(program.block(b), *op);
    }
  }

  std::vector<StateVar> result() const {
    std::vector<StateVar> out;
    for (const auto& name : touched_) {
      const auto it = merging_.find(name);
      out.push_back({name, rows_.count(name) || it == merging_.end() ? Merging::kNone : it->second});
    }
    return out;
  }
  const std::set<std::string>& rows() const { return rows_; }

 private:
  void read(const ir::Block& block, const ir::Op& op) {
    for (const auto& name : op.input_args()) note(block, name);
    for (const auto& name : written_args(op)) {
      if (note(block, name)) merging_.try_emplace(name, merging_of(block, op, name));
    }
    if (is_update(op)) read_update(block, op);
  }

  bool note(const ir::Block& block, const std::string& name) {
    const auto var = block.find_var_recursive(name);
    const bool kept = var && var->persistable && var->kind != VarKind::kReader;
    if (kept) touched_.insert(name);
    return kept;
  }

  static Merging merging_of(const ir::Block& block, const ir::Op& op, const std::string& name) {
    const OpDef* def = find_op_or_null(op.type);  // feeds and fetches are not in the registry
    const StateMerge declared = def ? def->merges(op) : StateMerge::kUnsaid;
    if (declared != StateMerge::kUnsaid) return declared == StateMerge::kSum ? Merging::kSum : Merging::kFirst;
    const auto var = block.find_var_recursive(name);
    const bool counts = var->dtype == DType::kInt64 || var->dtype == DType::kInt32;
    return counts ? Merging::kSum : Merging::kMean;
  }

  // The parameter, and state with one element for each of its elements.
  void read_update(const ir::Block& block, const ir::Op& op) {
    const std::string& param = op.input("Param")[0];
    const auto grad = block.find_var_recursive(op.input("Grad")[0]);
    const bool sparse = grad && grad->kind == VarKind::kSelectedRows && !find_op(op.type).is(kWholeParameter);
    const int64_t numel = block.find_var_recursive(param)->shape.numel();
    for (const auto& slot : op.inputs) {
      if (slot.name == "Grad" || slot.name == "LearningRate") continue;
      for (const auto& name : slot.args) {
        const auto var = block.find_var_recursive(name);
        if (!var || !var->persistable) continue;
        const bool alike = name == param || (var->shape.numel() == numel && numel > 1);
        if (sparse && alike) rows_.insert(name);
        if (name == param) merging_[name] = Merging::kSum;
      }
    }
  }

  const ir::Program& program_;
  std::set<std::string> touched_, rows_;
  std::map<std::string, Merging> merging_;  // of variables that are written
};

// to += copy - base; copy = base = to.
template <class T> void add_change(T* to, T* copy, T* base, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T now = to[i] + (copy[i] - base[i]);
    to[i] = now;
    copy[i] = now;
    base[i] = now;
  }
}

bool has_numbers(const Value& v) {
  const Tensor* t = v.get<Tensor>();
  AB_CHECK(!t || t->place().on_host(), Unavailable, "a variable has gone to {} while trainers of the CPU work on it",
           t->place().str());
  return t && t->initialized() && t->contiguous() &&
         (t->dtype() == DType::kFloat32 || t->dtype() == DType::kFloat64 || t->dtype() == DType::kInt64 ||
          t->dtype() == DType::kInt32);
}

template <class Fn> void with_numbers(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat32: return fn(float{});
    case DType::kFloat64: return fn(double{});
    case DType::kInt64: return fn(int64_t{});
    case DType::kInt32: return fn(int32_t{});
    default: AB_THROW(Internal, "cannot merge {}", dtype_name(dtype));
  }
}

}  // namespace

std::vector<StateVar> state_of(const ir::Program& program) { return Classifier(program).result(); }

TrainerStates::TrainerStates(const ir::Program& program, std::shared_ptr<Scope> scope, int trainers)
    : user_(std::move(scope)) {
  for (int t = 0; t < trainers; ++t) scopes_.push_back(Scope::make());
  const Classifier classes(program);
  shares_rows_ = !classes.rows().empty();
  for (const StateVar& v : classes.result()) {
    const std::shared_ptr<Value> original = original_of(v.name);
    if (v.merging == Merging::kNone || !(original->empty() || original->is<Tensor>())) {
      shared_.push_back(v.name);
      continue;
    }
    Copied& c = copied_.emplace_back();
    c.name = v.name;
    c.merging = v.merging;
    c.original = original;
    c.bases.resize(trainers);
    for (const auto& s : scopes_) c.copies.push_back(s->var(v.name));
  }
}

std::shared_ptr<Value> TrainerStates::original_of(const std::string& name) const {
  auto found = user_->find_shared(name);
  return found ? found : user_->share(name);
}

bool TrainerStates::shares_rows() const { return shares_rows_ && scopes_.size() > 1; }

// Training threads run on the CPU, and share memory with the scope.
void TrainerStates::move_into_place() {
  const RunGate::Change change(&user_->gate());
  for (const auto& name : shared_) {
    if (Value& value = *original_of(name); value.get<Tensor>()) bring_to_host(value.as<Tensor>());
  }
  for (const Copied& c : copied_) {
    if (Value& value = *original_of(c.name); value.get<Tensor>()) bring_to_host(value.as<Tensor>());
  }
}

void TrainerStates::begin() {
  if (device::Devices::opened()) move_into_place();
  const RunGate::Run running(user_->gate());
  for (const auto& name : shared_) {
    const std::shared_ptr<Value> original = original_of(name);
    for (const auto& s : scopes_) {
      Value* mine = s->var(name);
      if (const Tensor* t = original->get<Tensor>()) {
        mine->as<Tensor>() = *t;  // another handle of the same memory
      } else if (!original->empty()) {
        mine->copy_from(*original);
      }
    }
  }
  for (Copied& c : copied_) {
    c.original = original_of(c.name);  // a name may have been erased and reused since the last pass
    take_original(c);
  }
}

void TrainerStates::take_original(Copied& c) {
  for (size_t t = 0; t < c.copies.size(); ++t) {
    if (!c.original->initialized()) {
      c.copies[t]->clear();
      continue;
    }
    c.copies[t]->copy_from(*c.original);
    c.copies[t]->touch();
    if (c.merging == Merging::kSum) c.bases[t].copy_from(c.original->tensor());
  }
}

void TrainerStates::merge_one(Copied& c, int trainer) {
  if (!has_numbers(*c.original) || !has_numbers(*c.copies[trainer])) return;
  Tensor &to = c.original->as<Tensor>(), &copy = c.copies[trainer]->as<Tensor>(), &base = c.bases[trainer];
  if (!(to.shape() == copy.shape()) || !(to.shape() == base.shape()) || to.dtype() != copy.dtype()) return;
  const std::lock_guard<std::mutex> lock(c.one_at_a_time);
  with_numbers(to.dtype(), [&](auto zero) {
    using T = decltype(zero);
    add_change(to.mutable_data<T>(), copy.mutable_data<T>(), base.mutable_data<T>(), to.numel());
  });
}

void TrainerStates::merge(int trainer) {
  const RunGate::Run running(user_->gate());  // as a step does: the target's memory must not change meanwhile
  const size_t n = copied_.size(), first = n * trainer / scopes_.size();
  for (size_t k = 0; k < n; ++k) {  // threads start at different positions to avoid contention
    Copied& c = copied_[(first + k) % n];
    if (c.merging == Merging::kSum) merge_one(c, trainer);
  }
}

void TrainerStates::close_one(Copied& c) {
  Value& first = *c.copies[0];
  if (c.merging == Merging::kSum && c.original->initialized()) {
    for (size_t t = 0; t < c.copies.size(); ++t) merge_one(c, static_cast<int>(t));
  } else if (first.initialized()) {
    c.original->copy_from(first);
  }
  if (c.merging == Merging::kMean && has_numbers(first) && c.copies.size() > 1) {
    Tensor& to = c.original->as<Tensor>();
    with_numbers(to.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* mean = to.mutable_data<T>();
      for (int64_t i = 0; i < to.numel(); ++i) {
        T sum = 0, count = 0;
        for (const Value* copy : c.copies) {
          if (!copy->initialized()) continue;  // of a thread without a batch
          sum += copy->tensor().data<T>()[i];
          ++count;
        }
        mean[i] = sum / count;
      }
    });
  }
  c.original->touch();
}

void TrainerStates::finish() {
  const RunGate::Run running(user_->gate());
  for (Copied& c : copied_) close_one(c);
  for (const auto& name : shared_) original_of(name)->touch();
}

}  // namespace anabranch
