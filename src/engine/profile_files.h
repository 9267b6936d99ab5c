// Profiles as text and bytes for other programs.
#pragma once
#include <string>

#include "engine/profiler.h"

namespace anabranch {

// Chrome's trace event format (JSON), which Perfetto and chrome://tracing open: one track per thread and one per device
// queue.
std::string chrome_trace(const Profile& profile);
// The message paddle.platform.proto.Profile, which Fluid's stop_profiler writes.
std::string fluid_profile(const Profile& profile);

}  // namespace anabranch
