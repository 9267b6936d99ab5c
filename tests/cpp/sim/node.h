// A server of a simulation, with its disk: it is killed, loses power, and comes again.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "sim/defects.h"
#include "sim/disk.h"
#include "sim/network.h"

namespace anabranch::ps::sim {

class ServerNode {
 public:
  struct Options {
    Mode mode = Mode::kAsync;
    int trainers = 1, snapshot_every = 4;
    Durability durability = Durability::kJournal;
    std::map<std::string, Durability> tables;
    Planted planted = Planted::kNone;
    Milliseconds file_lease{60000};
  };
  ServerNode(World& world, Network& network, int number, const Options& options);
  virtual ~ServerNode() = default;
  virtual std::unique_ptr<Store> make_store() = 0;

  void start();
  void kill();  // it comes again by itself
  const Options& options() const { return options_; }
  const std::string& endpoint() const { return endpoint_; }
  Server* server() const { return server_.get(); }  // null while it is dead
  SimDisk& disk() { return disk_; }
  int crashes() const { return crashes_; }
  int64_t lost() const;  // updates, as all its servers have counted them
  bool failed() const { return !wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }

 private:
  // Between two slices of a snapshot some time goes by.
  class Slow final : public Timer {
   public:
    Slow(World& world, int number) : world_(world), rng_(static_cast<uint64_t>(number)) {}
    void after(Milliseconds delay, std::function<void()> what) override {
      world_.after(delay + Milliseconds(rng_() % 12), std::move(what));
    }

   private:
    World& world_;
    std::mt19937_64 rng_;  // not shared: seeds replay what they did when snapshots took no time
  };

  World& world_;
  Network& network_;
  Slow slow_;
  const Options options_;
  const std::string endpoint_;
  SimDisk disk_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Server> server_;
  uint64_t starts_ = 0;
  int64_t lost_ = 0;  // as servers that are gone have counted it
  int crashes_ = 0;
  std::string wrong_;
};

// Defects of the network.
void plant(Planted planted, World& world, Network* network);

}  // namespace anabranch::ps::sim
