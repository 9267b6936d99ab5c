// Trainers and servers in one process for tests: a store that counts, a channel that loses, a cluster of them.
#pragma once
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ps/client.h"
#include "ps/server.h"

namespace anabranch::ps {

using namespace rpc;  // tests talk to links, timers and transports, too

// Variables a, b, ... of four numbers, and their gradients a@GRAD: an update subtracts.
class ToyStore final : public Store {
 public:
  explicit ToyStore(int variables) {
    for (int i = 0; i < variables; ++i) {
      Tensor t(Shape{4}, DType::kFloat32);
      for (int k = 0; k < 4; ++k) t.mutable_data<float>()[k] = 0;
      values_.push_back(std::move(t));
    }
  }
  uint32_t number(std::string_view name) const override {
    const auto i = static_cast<uint32_t>(name.at(0) - 'a');
    AB_CHECK(i < values_.size(), NotFound, "this server has no variable {}", name);
    return i;
  }
  std::string name(uint32_t number) const override { return std::string(1, static_cast<char>('a' + number)); }
  void apply(std::span<const Change> changes) override {
    for (const Change& c : changes) {
      AB_CHECK(c.dense.numel() == 4, ShapeMismatch, "gradient of {} must have 4 elements, got {}", name(c.variable),
               c.dense.numel());
    }
    for (const Change& c : changes) {
      for (int k = 0; k < 4; ++k) values_[c.variable].mutable_data<float>()[k] -= c.dense.data<float>()[k];
    }
  }
  uint32_t variables() const override { return static_cast<uint32_t>(values_.size()); }
  void read(uint32_t variable, Message* into) const override { into->add(variable, values_.at(variable)); }
  void read_rows(uint32_t variable, std::span<const int64_t> ids, Message* into) const override {
    auto* to =
        static_cast<float*>(into->add_room(variable, Shape{static_cast<int64_t>(ids.size()), 1}, DType::kFloat32));
    for (size_t i = 0; i < ids.size(); ++i) to[i] = values_.at(variable).data<float>()[ids[i]];
  }
  std::vector<std::string> kept() const override {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < values_.size(); ++i) names.push_back(name(i));
    return names;
  }
  std::unique_ptr<Saving> begin_save() const override {
    auto saving = std::make_unique<SavedCopies>();
    for (uint32_t i = 0; i < values_.size(); ++i) saving->add(name(i), values_[i]);
    return saving;
  }
  void load(const std::string& name, const Tensor& value) override { values_.at(number(name)).copy_from(value); }

  std::vector<Tensor> values_;
};

inline Tensor filled(float x, int64_t n = 4) {
  Tensor t(Shape{n}, DType::kFloat32);
  for (int64_t k = 0; k < n; ++k) t.mutable_data<float>()[k] = x;
  return t;
}

// A server is finished a moment after its last answer has come.
inline bool soon_finished(Server& server) {
  int looks = 0;
  server.wait_finished([&] { return ++looks > 500; }, Milliseconds(10));
  return server.finished();
}

// Loses requests, and answers after the server has done what was asked.
class Lossy final : public Channel {
 public:
  Lossy(std::shared_ptr<Channel> inner, uint32_t seed, int percent)
      : inner_(std::move(inner)), rng_(seed), percent_(percent) {}
  void call(MessageRef request, Milliseconds deadline, Answer answer) override {
    const auto lost = [verb = request->header().verb, answer] {
      answer(Message::error(verb, Error(ErrorKind::kUnavailable, "lost on the way")));
    };
    if (chance()) return lost();
    if (chance()) {  // twice
      inner_->call(request, deadline, [](MessageRef) {});
    }
    const bool lose_answer = chance();
    inner_->call(std::move(request), deadline,
                 [answer, lost, lose_answer](MessageRef m) { lose_answer ? lost() : answer(std::move(m)); });
  }

 private:
  bool chance() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(rng_() % 100) < percent_;
  }
  std::shared_ptr<Channel> inner_;
  std::mutex mutex_;
  std::mt19937 rng_;
  const int percent_;
};

struct Cluster {
  std::vector<std::unique_ptr<ToyStore>> stores;
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::shared_ptr<Timer> timer = std::make_shared<ThreadTimer>();

  Cluster(int n_servers, int trainers, Mode mode = Mode::kSync, Milliseconds patience = Milliseconds(60000)) {
    for (int s = 0; s < n_servers; ++s) {
      stores.push_back(std::make_unique<ToyStore>(3));
      ServerOptions o;
      o.name = fmt::format("toy:{}", s);
      o.mode = mode;
      o.trainers = trainers;
      o.patience = patience;
      servers.push_back(std::make_unique<Server>(o, *stores.back()));
      listeners.push_back(local_transport().listen(o.name, [server = servers.back().get()](MessageRef m, Answer a) {
        server->handle(std::move(m), std::move(a));
      }));
    }
  }
  std::unique_ptr<Client> client(uint32_t trainer, int loss_percent = 0, Milliseconds deadline = Milliseconds(30000),
                                 uint64_t life = 0) {
    LinkOptions o;
    o.trainer = trainer;
    o.incarnation = 100 + trainer + 1000 * life;
    o.deadline = deadline;
    o.first_pause = Milliseconds(1);
    o.longest_pause = Milliseconds(4);
    return std::make_unique<Client>(
        o,
        [=](const std::string& endpoint) -> std::shared_ptr<Channel> {
          auto channel = local_transport().connect(endpoint);
          if (loss_percent == 0) return channel;
          return std::make_shared<Lossy>(std::move(channel), trainer + 1, loss_percent);
        },
        timer);
  }
};

inline void exchange(Client& client) {
  std::promise<std::exception_ptr> over;
  client.exchange([&](std::exception_ptr e) { over.set_value(std::move(e)); });
  if (const auto error = over.get_future().get()) std::rethrow_exception(error);
}

}  // namespace anabranch::ps
