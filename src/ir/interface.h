// The ops feed and fetch, with which a saved program lists what it takes and gives. Nothing is computed by them.
#pragma once
#include "ir/op.h"

namespace anabranch::ir {

inline bool is_interface(const Op& op) { return op.type == "feed" || op.type == "fetch"; }

}  // namespace anabranch::ir
