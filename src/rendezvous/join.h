// Joins a group: a process meets the others at the first one's address, exchanges addresses with them, and is notified
// by the first one when the group has ended.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/group.h"
#include "rpc/transport.h"

namespace anabranch::rendezvous {

struct JoinOptions {
  int ring = 0;  // there may be several groups of the same processes
  int rank = 0;
  std::vector<std::string> endpoints;                 // of all, by rank
  rpc::Milliseconds start = rpc::Milliseconds(0);     // until all have arrived; 0: FLAGS_rpc_deadline
  rpc::Milliseconds deadline = rpc::Milliseconds(0);  // of each later wait; 0: FLAGS_collective_deadline
  comm::WireMaker* wires = nullptr;                   // null: those of the network
};

// Joins, and registers the group as that ring of this process. A repeated call does nothing while that group works.
std::shared_ptr<comm::Group> join_ring(const JoinOptions& options);
// Leaves all rings in an orderly way, so that no connection closes while another process is still reading, and removes
// them. Waits this long at most for the others.
void leave_rings(rpc::Milliseconds within);

}  // namespace anabranch::rendezvous
