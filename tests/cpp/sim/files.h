// Workers whose replicas take files from the queue of a server one by one, and which are killed while they have some -
// a few come back, others do not - with a server that is killed and resumes from its disk.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "sim/node.h"

namespace anabranch::ps::sim {

struct FilePlan {
  uint64_t seed = 1;
  Durability durability = Durability::kJournal;
  int workers = 1, files = 4, snapshot_every = 4;
  Faults faults;
  int server_crashes = 0, worker_crashes = 0, deaths = 0;  // a worker that dies does not come back
  bool cut = false, jump = false;                          // once, for less than a lease
  int replicas = 1;                                        // of each worker: each takes its own files
  std::string text() const;
};
FilePlan file_plan_of(uint64_t seed);

class FileRun {
 public:
  FileRun(const FilePlan& plan, Planted planted);
  ~FileRun();
  // Empty, or what is wrong with this history.
  std::string run();
  int crashes() const { return crashes_; }
  int interrupted() const { return interrupted_; }  // files of workers that were killed
  int64_t trained() const { return trained_; }      // files, some of them twice

 private:
  struct Node;
  struct Worker;

  void plan_faults();
  void start(int w);
  void kill(int w, bool for_good);
  struct Replica {
    int worker = 0, number = 0;
  };
  using Then = void (FileRun::*)(Replica r, const Message& answer);
  void take(Replica r);
  void taken(Replica r, const Message& answer);
  void train(Replica r, int64_t file);
  void say(Replica r, std::shared_ptr<Message> what, Then then);
  void ended(Replica r, const Message& answer);
  void completed(Replica r, const Message& answer);
  void after_offer(Replica r, const Message& answer);
  Worker& of(Replica r) const { return *workers_[static_cast<size_t>(r.worker)]; }
  // Runs it after a time in which the worker may be killed.
  template <class Fn> void later(Replica r, Milliseconds delay, Fn&& fn);
  void fail(const std::string& what);
  bool over() const;

  const FilePlan plan_;
  const Planted planted_;
  World world_;
  Network network_;
  std::unique_ptr<Node> server_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::shared_ptr<Client>> dead_;
  std::vector<std::string> names_;
  std::vector<int> times_;   // each file was trained
  std::vector<bool> known_;  // that it is done, to the worker that has trained it
  int64_t trained_ = 0;
  int crashes_ = 0, interrupted_ = 0;
  std::string wrong_;
};

}  // namespace anabranch::ps::sim
