// How many cores this process may use: the affinity mask, cut by the cgroup's CPU quota.
#pragma once

namespace anabranch {
int usable_cores();  // at least 1
}
