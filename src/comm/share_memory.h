// Processes of a group that are on one machine get memory that all of them see (comm/board.h). They find it through the
// group itself; it has no name in the file system, so nothing is left behind whoever dies.
#pragma once
#include "comm/peers.h"

namespace anabranch::comm {

// All processes call it. Where one of them does not want to, or cannot - it is on another machine, or in a
// container of its own - the group works as before. True: from now on there is peers.board().
bool share_memory(Peers& peers, bool wanted);

}  // namespace anabranch::comm
