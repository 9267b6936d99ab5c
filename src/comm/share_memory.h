// Creates memory shared by the processes of a group on one machine (comm/board.h). They find it through the group
// itself; it has no name in the file system, so a process that dies leaves no file.
#pragma once
#include "comm/peers.h"

namespace anabranch::comm {

// All processes call it. If one of them refuses, or cannot - it is on another machine, or in another container - the
// group works as before. True: peers.board() is available from now on.
bool share_memory(Peers& peers, bool needed);

}  // namespace anabranch::comm
