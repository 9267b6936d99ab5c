// Bytes in messages, and how much of a table is read at once: shared by snapshots and by links to a server.
#pragma once
#include <cstring>
#include <string_view>

#include "rpc/message.h"

namespace anabranch {

inline constexpr int64_t kSliceBytes = 64 << 10;  // of rows, in one message or write

inline void add_bytes(uint32_t variable, std::string_view bytes, rpc::Message* into) {
  void* to = into->add_room(variable, Shape{static_cast<int64_t>(bytes.size())}, DType::kUInt8);
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

}  // namespace anabranch
