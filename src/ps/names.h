// Names of src/rpc that servers and workers use on every page.
#pragma once
#include "rpc/clock.h"
#include "rpc/message.h"
#include "rpc/mode.h"
#include "rpc/transport.h"

namespace anabranch::ps {

using rpc::Answer;
using rpc::Header;
using rpc::Message;
using rpc::MessageRef;
using rpc::Milliseconds;
using rpc::Mode;
using rpc::Part;
using rpc::PartKind;
using rpc::TimePoint;
using rpc::Verb;

}  // namespace anabranch::ps
