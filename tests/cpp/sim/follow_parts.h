// The servers, workers and followers of FollowRun.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/follower.h"
#include "sim/follow_store.h"

namespace anabranch::ps::sim {

struct FollowRun::Node final : ServerNode {
  using ServerNode::ServerNode;
  std::unique_ptr<ps::Store> make_store() override {
    auto made = std::make_unique<Store>(rules, defect);
    store = made.get();
    return made;
  }
  GrownRules rules;
  FollowDefect defect = FollowDefect::kNone;
  Store* store = nullptr;
};

struct FollowRun::Worker {
  std::shared_ptr<Client> client;
  std::vector<Remote> dense, tables;
  int steps = 0;
  bool saves_next = false, done = false;
  int completed = 0;
};

struct FollowRun::Followed {
  Followed(const std::string& folder, const std::string& share)
      : root(folder),
        predictor(following_model()),
        follower(folder, predictor, {.poll_s = 0, .grace_s = 1e9, .share = share, .say = [](const std::string&) {}}) {}
  const std::string root;
  Predictor predictor;
  Follower follower;
  int64_t version = 0;
  bool pinned = false;
};

}  // namespace anabranch::ps::sim
