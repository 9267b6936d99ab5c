// The client of a simulated worker.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "ps/client.h"
#include "sim/network.h"

namespace anabranch::ps::sim {

// `life`: how often the worker has been killed.
inline LinkOptions worker_link(World& world, int worker, uint64_t life = 0) {
  LinkOptions o;
  o.trainer = static_cast<uint32_t>(worker);
  o.incarnation = 100 + static_cast<uint64_t>(worker) * 1000 + life;
  o.deadline = Milliseconds(600000);
  o.try_for = Milliseconds(5000);
  o.clock = &world;
  return o;
}

inline std::shared_ptr<Timer> timer_of(World& world) { return {std::shared_ptr<void>(), &world}; }

// It says nothing more when `alive` is false.
inline std::shared_ptr<Client> worker_client(World& world, Network& network, int worker, uint64_t life = 0,
                                             std::shared_ptr<bool> alive = std::make_shared<bool>(true)) {
  return std::make_shared<Client>(
      worker_link(world, worker, life),
      [&network, worker, alive = std::move(alive)](const std::string& endpoint) {
        return network.connect(static_cast<uint32_t>(worker), endpoint, alive);
      },
      timer_of(world));
}

}  // namespace anabranch::ps::sim
