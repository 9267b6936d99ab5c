// Creates memory shared by the processes of a group on one machine (comm/board.h). They find it through the group
// itself; it has no name in the file system, so a process that dies leaves no file.
#pragma once
#include "comm/peers.h"

namespace anabranch::comm {

// All processes of the group must call it. Returns true if the group now has shared memory, peers.board(). If any
// process declines, or cannot share memory because it is on another machine or in another container, the group keeps
// sending messages.
bool share_memory(Peers& peers, bool requested);

}  // namespace anabranch::comm
