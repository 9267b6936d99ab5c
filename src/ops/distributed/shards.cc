#include "ops/distributed/shards.h"

#include <fmt/format.h>

#include <utility>

namespace anabranch::distributed {

Shards::Shards(int trainer, std::vector<std::string> endpoints, std::vector<std::string> names, std::string parameter)
    : trainer_(trainer), endpoints_(std::move(endpoints)), names_(std::move(names)), parameter_(std::move(parameter)) {
  AB_CHECK(endpoints_.size() == names_.size(), InvalidArgument,
           "endpoints must name the server of each of the {} variables ({}), got {} endpoints", names_.size(),
           fmt::join(names_, ", "), endpoints_.size());
}

Shards::~Shards() {
  if (!subscribed_) return;
  for (const ps::Remote& r : remotes_) client_->cancel(r);
}

ps::Client& Shards::client() {
  if (client_) [[likely]]
    return *client_;
  auto client = ps::client_of(trainer_);
  for (size_t i = 0; i < names_.size(); ++i) remotes_.push_back(client->remote(endpoints_[i], names_[i], parameter_));
  client_ = std::move(client);
  return *client_;
}

void Shards::subscribe() {
  if (std::exchange(subscribed_, true)) return;
  for (const ps::Remote& r : remotes_) client().subscribe(r);
}

std::string parameter_of(const KernelArgs& op) {
  const auto pairs = op.op().role_vars();
  return pairs.size() == 1 ? pairs[0].first : std::string();
}

std::vector<std::string> names_or(const KernelArgs& op, const char* attr, const std::vector<std::string>& args) {
  const auto& given = op.attr<std::vector<std::string>>(attr);
  return given.empty() ? args : given;
}

ps::Client::Done end_of(KernelContext& c) {
  return [completion = std::make_shared<Completion>(AsyncContext::of(c).take())](const std::exception_ptr& e) {
    e ? completion->fail(e) : completion->done();
  };
}

Answers::Answers(int count, Completion completion, std::function<void()> when_all)
    : left_(count), completion_(std::move(completion)), when_all_(std::move(when_all)) {}

void Answers::take(const rpc::MessageRef& answer, const std::function<void(const rpc::Message&)>& use) {
  const auto keep_error = [this] {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  };
  try {
    answer->throw_if_error();
    use(*answer);
  } catch (...) {
    keep_error();
  }
  if (left_.fetch_sub(1) != 1) return;
  try {
    if (!error_ && when_all_) when_all_();
  } catch (...) {
    keep_error();
  }
  if (error_) {
    completion_.fail(error_);
  } else {
    completion_.done();
  }
}

}  // namespace anabranch::distributed
