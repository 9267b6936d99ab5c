// One server with a store that counts, asked without a network; and a folder for what it keeps.
#pragma once
#include <filesystem>
#include <random>
#include <string>

#include "ps_cluster.h"

namespace anabranch::ps {

inline ServerOptions options_of(Durability durability, Disk& disk, const std::string& folder, uint64_t incarnation) {
  ServerOptions o;
  o.name = "toy:0";
  o.mode = Mode::kAsync;
  o.incarnation = incarnation;
  o.history = {durability, folder, 4, &disk, [](const std::string&) {}};
  return o;
}

inline MessageRef ask(Server& server, const std::shared_ptr<Message>& m) {
  MessageRef out;
  server.handle(m, [&](MessageRef answer) { out = std::move(answer); });
  return out;
}

inline MessageRef hello(Server& server, uint64_t acknowledged = 0) {
  auto m = std::make_shared<Message>(Verb::kHello);
  m->header().incarnation = 7;
  m->header().acknowledged = acknowledged;
  return ask(server, m);
}

// The answer to a push that adds 1 to both variables.
inline MessageRef pushed(Server& server, uint64_t sequence) {
  auto m = std::make_shared<Message>(Verb::kExchange);
  m->header().incarnation = 7;
  m->header().sequence = sequence;
  m->add(0, filled(-1));
  m->add(1, filled(-1));
  return ask(server, m);
}

// True: acknowledged.
inline bool push(Server& server, uint64_t sequence) { return !pushed(server, sequence)->header().error; }

inline float value(const ToyStore& store, int variable = 0) {
  return store.values_[static_cast<size_t>(variable)].data<float>()[0];
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("anabranch_history_{}", counter_++)) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string str() const { return path_.string(); }

 private:
  static inline int counter_ = static_cast<int>(std::random_device()() % 1000000);
  std::filesystem::path path_;
};

}  // namespace anabranch::ps
