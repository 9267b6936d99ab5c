// Communicators of simulated devices. A collective runs when the queue of each rank has reached it. If two ranks launch
// different collectives, both get an error; real devices would hang or mix up bytes. Ranks may run in several
// processes. The ranks of one process then start a collective together, and it runs in each process when all have
// started it. comm_check() reports failures of other processes. As on real devices, running collectives stay pending
// until this process aborts them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "handles.h"
#include "shared_comm.h"
#include "work.h"

namespace anabranch::simdevice {

struct Group {
  CommName name;
  std::string id;                                   // as texts show it
  std::vector<ab_comm*> members;                    // by rank; null: not there yet, gone, or of another process
  std::map<uint64_t, std::shared_ptr<Round>> open;  // rounds that have not run, by number
  int failed_rank = -1;
  std::string failure;  // empty: none
  bool over = false;    // what is under way ends with any values

  std::unique_ptr<SharedComm> shared;   // null once all ranks have joined in this process
  bool complete = false;                // all ranks have joined somewhere
  int here = 0;                         // ranks that have joined in this process
  uint64_t needed = 0, next_round = 0;  // rounds that ranks of this process have asked for; that have run here
};

struct Part {  // of one rank
  ab_queue* queue = nullptr;
  const void* send = nullptr;
  void* recv = nullptr;
  std::thread::id thread;
  uint64_t bracket = 0;  // the comm_group() it was called in; 0: none
};

struct Round {
  std::shared_ptr<Group> group;
  uint64_t number = 0;
  Spec spec{};
  std::vector<Part> parts;  // by rank; no queue: not posted
  int posted = 0;

  bool begun = false;  // other processes can read the parts of this one

  enum class Next : uint8_t { kNothing, kGiveUp, kBegin, kRun };
  Next next() const;
  bool waits_elsewhere() const;                                            // for parts of other processes alone
  std::string standing() const;                                            // what it waits for
  bool whole() const { return posted == static_cast<int>(parts.size()); }  // all ranks are of this process
  bool begun_by(int rank) const;                                           // as far as this process sees
  // Of the ranks that have begun it the first that does not mean the same as those before it.
  Trouble disagreement() const;
  size_t send_bytes(int rank) const;
  size_t recv_bytes(int rank) const;
  bool gives(int from, int to) const { return send_bytes(from) && recv_bytes(to); }  // bytes of one reach the other

 private:
  bool all_in_front() const;    // the queues of this process have come to it
  std::string missing() const;  // "rank 1" or "ranks 1 2"
};

class Comms {
 public:
  Handles<ab_comm> handles{"a communicator"};

  std::string new_id(size_t device_bytes);
  ab_comm* join(int device, const std::string& id, int rank, int ranks);
  void post(Item& item, ab_comm& comm, ab_queue& queue, const Spec& spec, const void* send, void* recv);
  void leave(ab_comm& comm, bool abort);
  void look(Group& group);  // whether something has gone wrong elsewhere
  void look();
  bool awaited() const;  // another process has begun a collective that is to run here, too
  void clear();          // groups and the rounds that they wait for, which own each other

  static void group(bool begin);  // of this thread
  static bool in_group();
  // Collectives put in by a graph count as one group.
  struct GraphBracket {
    GraphBracket();
    ~GraphBracket();
  };

 private:
  struct Named {
    Descriptor file;               // of an id of this process, until all ranks have joined
    std::shared_ptr<Group> group;  // null: no rank of this process
  };
  std::shared_ptr<Group> group_of(const CommName& name, int ranks) const;
  void completed(Group& group);
  static void fail_group(Group& group, const Trouble& trouble);

  std::map<std::string, Named> groups_;  // by id
  uint64_t ids_ = 0;
};

// Host addresses of each rank's operands -> what recv holds afterwards; null for those of other processes.
// AB_UNSUPPORTED for sums of what has none.
void reduce_round(const Round& round, const std::vector<const char*>& send, const std::vector<char*>& recv);
size_t dtype_bytes(int dtype);  // 0: none such
const char* dtype_text(int dtype);

}  // namespace anabranch::simdevice

struct ab_comm {
  std::shared_ptr<anabranch::simdevice::Group> group;
  int rank = 0, device = 0;
  uint64_t next = 0;  // number of its next collective
};
