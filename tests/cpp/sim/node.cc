#include "sim/node.h"

namespace anabranch::ps::sim {

ServerNode::ServerNode(World& world, Network& network, int number, const Options& options)
    : world_(world),
      network_(network),
      slow_(world, number),
      options_(options),
      endpoint_(fmt::format("sim:{}", number)),
      disk_(world) {
  disk_.ignores_sync = options.planted == Planted::kSyncDoesNothing;
  disk_.ignores_sync_folder = options.planted == Planted::kFolderSyncDoesNothing;
}

void ServerNode::start() {
  ServerOptions o;
  o.name = endpoint_;
  o.mode = options_.mode;
  o.trainers = options_.trainers;
  o.clock = &world_;
  o.patience = Milliseconds(120000);
  o.file_lease = options_.file_lease;
  o.incarnation = options_.planted == Planted::kIncarnationStays ? 1 : 1 + starts_;
  ++starts_;
  o.history = {options_.durability,       "state",        options_.snapshot_every, &disk_,
               [](const std::string&) {}, options_.tables};
  o.timer = &slow_;
  store_ = make_store();
  try {
    server_ = std::make_unique<DefectiveServer>(o, *store_, options_.planted);
  } catch (const Error& e) {
    if (!disk_.full) {
      wrong_ = fmt::format("{} does not start: {}", endpoint_, e.message());
    } else {
      world_.after(Milliseconds(2000), [this] { start(); });
    }
    return;
  }
  network_.doors[endpoint_] = std::make_shared<Handler>(
      [server = server_.get()](MessageRef m, Answer a) { server->handle(std::move(m), std::move(a)); });
}

void ServerNode::kill() {
  if (!network_.doors.erase(endpoint_)) return;
  ++crashes_;
  lost_ += server_->stats().lost;
  server_.reset();
  store_.reset();
  if (options_.durability == Durability::kFlushed && world_.chance(70)) disk_.lose_power();
  world_.after(world_.within(10, 3000), [this] { start(); });
}

int64_t ServerNode::lost() const {
  return options_.planted == Planted::kLossIsNotCounted ? 0 : lost_ + server_->stats().lost;
}

void plant(Planted planted, World& world, Network* network) {
  if (planted == Planted::kRequestsLoseTheirNumber) {
    network->spoil_request = [](Message& m) { m.header().sequence = 0; };
  }
  if (planted == Planted::kAcknowledgedBeforeItCame) {
    network->answer_for = [&world](const Message& m) -> MessageRef {
      if (m.header().verb != Verb::kExchange || !world.chance(3)) return nullptr;
      auto answer = std::make_shared<Message>(Verb::kExchange);
      answer->header().round = m.header().round + 1;
      return answer;
    };
  }
}

}  // namespace anabranch::ps::sim
