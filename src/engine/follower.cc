#include "engine/follower.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>

#include "base/error.h"
#include "io/files.h"

namespace anabranch {
namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool is_finite(const Tensor& t) {
  const auto all = [&t](const auto* begin) {
    return std::all_of(begin, begin + t.numel(), [](auto x) { return std::isfinite(x); });
  };
  if (t.dtype() == DType::kFloat32) return all(t.data<float>());
  if (t.dtype() == DType::kFloat64) return all(t.data<double>());
  return true;
}

}  // namespace

Follower::Follower(std::string root, Predictor& predictor, FollowOptions options)
    : folder_(std::move(root)),
      options_(std::move(options)),
      model_(predictor.model()),
      threads_(predictor.threads()),
      followed_(std::make_shared<FollowedModel>(model_.scope)) {
  AB_CHECK(options_.poll_s >= 0 && options_.grace_s >= 0, InvalidArgument,
           "poll_s and grace_s must be at least 0, got {} and {}", options_.poll_s, options_.grace_s);
  if (!options_.share.empty()) shared_.emplace(options_.share);
  for (const auto& var : model_.program->global_block().vars()) {
    const Value* const value = var->persistable ? model_.scope->find_var(var->name) : nullptr;
    if (value) (sparse::GrowableTable::of(*value) ? tables_ : dense_).push_back(var->name);
  }
  std::sort(tables_.begin(), tables_.end());
  if (!options_.warm_up.empty()) predictor.run(options_.warm_up);  // an error of the inputs is not one of a version
  predictor.follow(followed_);
  poll();
  if (options_.poll_s > 0) thread_ = std::thread([this] { follow(); });
}

Follower::~Follower() {
  {
    const std::lock_guard held(stop_lock_);
    stopped_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Follower::follow() {
  std::unique_lock held(stop_lock_);
  while (!stopping_.wait_for(held, std::chrono::duration<double>(options_.poll_s), [this] { return stopped_; })) {
    held.unlock();
    poll();
    held.lock();
  }
}

bool Follower::poll() {
  const std::lock_guard held(one_poll_);
  try {
    const auto pinned = folder_.pinned();
    const int64_t mine = followed_->version();
    std::vector<int64_t> sought = pinned ? std::vector{*pinned} : folder_.numbers();
    if (!pinned) std::erase_if(sought, [mine](int64_t n) { return n <= mine; });
    std::erase_if(failed_,
                  [&](const auto& f) { return std::find(sought.begin(), sought.end(), f.first) == sought.end(); });
    for (auto number = sought.rbegin(); number != sought.rend() && *number != mine; ++number) {
      if (try_version(*number)) return true;
    }
    renew();
    report(overdue());
  } catch (const std::exception& e) {
    report(e.what());
  }
  return false;
}

bool Follower::try_version(int64_t number) {
  const std::string signature = folder_.signature(followed_->version(), number);
  const auto known = failed_.find(number);
  if (known != failed_.end() && known->second.signature == signature) return false;
  try {
    go_to(number);
  } catch (const std::exception& e) {
    const double first = known == failed_.end() ? now_s() : known->second.first;
    const std::string why = e.what();
    failed_[number] = {signature, first, why.substr(0, why.find('\n'))};
    return false;
  }
  failed_.erase(number);
  renew();
  report(not_shared());
  return true;
}

std::string Follower::overdue() const {
  for (auto f = failed_.rbegin(); f != failed_.rend(); ++f) {
    if (now_s() - f->second.first >= options_.grace_s) {
      return fmt::format("version {} is not used: {}", f->first, f->second.why);
    }
  }
  return not_shared();
}

std::string Follower::not_shared() const { return shared_ ? shared_->problem() : std::string(); }

// A newer version comes first.
void Follower::renew() {
  if (!shared_) return;
  const bool makes = state().lag == 0;
  for (const auto& [name, chain] : chains_) {
    const auto mine = table(name);
    if (const auto image = shared_->renewed(*mine, chain->last().checksum(), makes)) followed_->rest_on(*mine, image);
  }
}

void Follower::report(const std::string& problem) {
  {
    const std::lock_guard held(state_lock_);
    state_.problem = problem;
  }
  if (problem.empty() || std::find(told_.begin(), told_.end(), problem) != told_.end()) return;
  told_.push_back(problem);
  const std::string text = fmt::format("{}: {}", folder_.root(), problem);
  if (options_.say) return options_.say(text);
  std::fprintf(stderr, "%s\n", text.c_str());
}

Follower::State Follower::state() const {
  const auto numbers = folder_.numbers();
  const std::lock_guard held(state_lock_);
  State out = state_;
  out.version = followed_->version();
  out.newest = numbers.empty() ? 0 : numbers.back();
  out.lag = std::count_if(numbers.begin(), numbers.end(), [&](int64_t n) { return n > out.version; });
  return out;
}

// ---- one version

void Follower::go_to(int64_t number) {
  followed_->fold();  // if there was no memory for it before
  const VersionStatus status = folder_.read(number);
  const auto fresh = Scope::make();
  read_dense(*fresh, number, status);
  Chains chains = changes_to(number, status);
  if (!chains.empty()) {
    std::vector<FollowedModel::Layer> layers;
    for (const auto& [name, chain] : chains) layers.push_back({table(name), table(name)->layer_of(*chain)});
    for (size_t i = 0; i < tables_.size() && !options_.warm_up.empty(); ++i) {
      const auto& [mine, changes] = layers[i];  // both are by name
      sparse::GrowableTable::put(fresh->var(tables_[i]), sparse::GrowableTable::preview(mine, changes));
    }
    try_out(fresh);
    followed_->switch_to(number, *fresh, dense_, std::move(layers));
    remember(status, std::move(chains));
    followed_->fold();
    return;
  }
  chains = read_tables(*fresh, number, status);
  try_out(fresh);
  std::vector<std::string> all = dense_;
  all.insert(all.end(), tables_.begin(), tables_.end());
  followed_->switch_to(number, *fresh, all, {});
  remember(status, std::move(chains));
}

void Follower::remember(const VersionStatus& status, Chains chains) {
  chains_ = std::move(chains);
  run_ = status.run;
  const std::lock_guard held(state_lock_);
  state_.step = status.step;
  state_.trained_at = status.trained_at;
}

void Follower::read_dense(Scope& fresh, int64_t number, const VersionStatus& status) const {
  const auto check = [&](const std::vector<std::string>& mine, const std::vector<std::string>& saved) {
    for (const auto& name : mine) {
      AB_CHECK(std::find(saved.begin(), saved.end(), name) != saved.end(), NotFound, "{} does not have the model's {}",
               folder_.path(number), name);
    }
  };
  check(dense_, status.dense);
  check(tables_, status.tables);
  if (!status.dense.empty()) io::load_vars(fresh, status.dense, folder_.path(number), kVersionValues);
}

Follower::Chains Follower::changes_to(int64_t number, const VersionStatus& status) const {
  if (status.run.empty() || status.run != run_ || chains_.size() != tables_.size()) return {};
  Chains found;
  for (const auto& name : tables_) {
    const auto files = folder_.changes(followed_->version(), number, name);
    if (files.empty()) return {};
    found[name] = std::make_shared<sparse::TableChain>(files, &chains_.at(name)->last());
    const auto& last = found[name]->last();
    AB_CHECK(last.place().number == number, InvalidArgument, "{} is the link of checkpoint {}", last.path(),
             last.place().number);
  }
  return found;
}

Follower::Chains Follower::read_tables(Scope& fresh, int64_t number, const VersionStatus& status) {
  Chains found;
  for (const auto& name : tables_) {
    const auto& like = table(name)->options();
    std::shared_ptr<sparse::GrowableTable> made;
    if (status.run.empty()) {
      if (shared_) shared_->not_a_chain(name);
      made = std::make_shared<sparse::GrowableTable>(name, like);
      made->load(folder_.table_path(number, name));
    } else {
      const auto& chain = *(found[name] = whole_chain(number, name, status.run));
      made = shared_ ? shared_->open(chain) : sparse::GrowableTable::for_lookups(name, chain);
    }
    sparse::GrowableTable::put(fresh.var(name), std::move(made));
  }
  return found;
}

std::shared_ptr<sparse::TableChain> Follower::whole_chain(int64_t number, const std::string& table,
                                                          const std::string& run) const {
  auto chain = std::make_shared<sparse::TableChain>(folder_.chain(number, table));
  const auto& last = chain->last();
  const std::string found = fmt::format("{:016x}{:016x}", last.place().run[0], last.place().run[1]);
  AB_CHECK(last.place().number == number && last.name() == table && found == run, InvalidArgument,
           "{} is link {} of table {} and run {}, the checkpoint has link {} of table {} and run {}", last.path(),
           last.place().number, last.name(), found, number, table, run);
  return chain;
}

std::shared_ptr<sparse::GrowableTable> Follower::table(const std::string& name) const {
  return sparse::GrowableTable::of(*model_.scope->find_var(name));
}

void Follower::try_out(const std::shared_ptr<Scope>& fresh) const {
  if (options_.warm_up.empty()) return;
  Predictor trial({model_.program, fresh, model_.feeds, model_.fetches}, threads_);
  const auto& outputs = trial.run(options_.warm_up);
  for (size_t i = 0; i < outputs.size(); ++i) {
    AB_CHECK(is_finite(outputs[i]), InvalidArgument, "it answers the warm-up with NaN or infinity in output {}",
             model_.fetches[i]);
  }
}

}  // namespace anabranch
