// A process joins a group: it meets the others at the first one's address, exchanges addresses with them, and is told
// by that one from then on when the group has ended.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/group.h"
#include "ps/transport.h"

namespace anabranch::ps {

struct JoinOptions {
  int ring = 0;  // several groups of the same processes
  int rank = 0;
  std::vector<std::string> endpoints;       // of all, in the order of ranks
  Milliseconds start = Milliseconds(0);     // until all have come; 0: as FLAGS_rpc_deadline
  Milliseconds deadline = Milliseconds(0);  // of each wait later on; 0: as FLAGS_collective_deadline
  comm::WireMaker* wires = nullptr;         // null: those of the network
};

// Joins, and keeps the group as that ring of this process. Again does nothing, while that group works.
std::shared_ptr<comm::Group> join_ring(const JoinOptions& options);
// Says goodbye in all rings, so that nobody's connection ends while another one is still reading, and forgets them.
// Waits so long at most for the others.
void leave_rings(Milliseconds within);

}  // namespace anabranch::ps
