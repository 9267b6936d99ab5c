// Communicators of simulated devices. A collective runs when each rank's queue has come to it; two ranks that do not
// mean the same one are told so, where real ones would hang or mix up bytes.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "handles.h"
#include "work.h"

namespace anabranch::simdevice {

struct Spec {  // what all ranks have to agree on
  ab_collective what;
  size_t count;
  int dtype, root;
  bool operator==(const Spec&) const = default;
  std::string text() const;  // "all_reduce_sum of 4 float32"
};

struct Group {
  std::string id;
  std::vector<ab_comm*> members;                    // by rank; null: not there yet, or gone
  std::map<uint64_t, std::shared_ptr<Round>> open;  // rounds that have not run, by number
  int failed_rank = -1;
  std::string failure;  // empty: none
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

  std::string missing() const;  // "rank 1" or "ranks 1 2"
  size_t send_bytes(int rank) const;
  size_t recv_bytes(int rank) const;
  bool gives(int from, int to) const { return send_bytes(from) && recv_bytes(to); }  // bytes of one reach the other
};

class Comms {
 public:
  Handles<ab_comm> handles{"a communicator"};

  std::string new_id();
  ab_comm* join(int device, const std::string& id, int rank, int ranks);
  void post(Item& item, ab_comm& comm, ab_queue& queue, const Spec& spec, const void* send, void* recv);
  void leave(ab_comm& comm, bool abort);
  void clear();  // groups and the rounds that they wait for, which own each other

  static void group(bool begin);  // of this thread
  static bool in_group();
  // Collectives put in by a graph count as one group.
  struct GraphBracket {
    GraphBracket();
    ~GraphBracket();
  };

 private:
  static void fail_group(Group& group, int rank, const std::string& why);

  std::map<std::string, std::shared_ptr<Group>> groups_;
  uint64_t ids_ = 0;
};

// Host addresses of each rank's operands -> what recv holds afterwards. AB_UNSUPPORTED for sums of what has none.
void reduce_round(const Round& round, const std::vector<const char*>& send, const std::vector<char*>& recv);
size_t dtype_bytes(int dtype);  // 0: none such
const char* dtype_text(int dtype);

}  // namespace anabranch::simdevice

struct ab_comm {
  std::shared_ptr<anabranch::simdevice::Group> group;
  int rank = 0, device = 0;
  uint64_t next = 0;  // number of its next collective
};
