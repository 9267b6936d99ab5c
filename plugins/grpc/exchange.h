// One request and its answer over a gRPC stream. Both are sent as raw bytes in chunks, so no message exceeds gRPC's own
// limit, and FLAGS_rpc_message_limit_mb is checked before the chunks are joined.
#pragma once
#include <grpcpp/support/byte_buffer.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rpc/byte_transport.h"

namespace anabranch::rpc {

inline constexpr const char* kMethod = "/anabranch.ps/exchange";
inline constexpr size_t kSizeBytes = 8;  // the first chunk starts with the size of the whole

// Chunks to write, one after the other. They share the memory of the message.
class Outgoing {
 public:
  Outgoing(Bytes bytes, size_t chunk) : bytes_(std::move(bytes)), chunk_(chunk) {}
  bool over() const { return begun_ && at_ == bytes_.size; }
  grpc::ByteBuffer next() {
    std::vector<grpc::Slice> slices;
    if (!begun_) {
      const uint64_t size = bytes_.size;
      slices.emplace_back(&size, kSizeBytes);
      begun_ = true;
    }
    const size_t n = std::min(chunk_, bytes_.size - at_);
    if (n) {
      auto* keep = new std::shared_ptr<const char>(bytes_.data);
      slices.emplace_back(
          const_cast<char*>(bytes_.data.get()) + at_, n,
          [](void* p) { delete static_cast<std::shared_ptr<const char>*>(p); }, keep);
    }
    at_ += n;
    return {slices.data(), slices.size()};
  }

 private:
  Bytes bytes_;
  size_t chunk_, at_ = 0;
  bool begun_ = false;
};

// Received chunks.
class Incoming {
 public:
  explicit Incoming(uint64_t limit) : limit_(limit) {}
  // Empty, or why this is not a message.
  std::string add(const grpc::ByteBuffer& chunk) {
    std::vector<grpc::Slice> slices;
    if (!chunk.Dump(&slices).ok()) return "a chunk of a message cannot be read";
    for (const grpc::Slice& s : slices) {
      std::string failure = add(reinterpret_cast<const char*>(s.begin()), s.size());
      if (!failure.empty()) return failure;
    }
    return {};
  }
  bool complete() const { return memory_ && at_ == size_; }
  Bytes take() { return {std::shared_ptr<const char>(memory_.release(), std::free), size_}; }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::string add(const char* data, size_t n) {
    while (n && head_ < kSizeBytes) {
      size_bytes_[head_++] = *data++;
      --n;
    }
    if (head_ < kSizeBytes) return {};
    if (!memory_) {
      uint64_t size = 0;
      std::memcpy(&size, size_bytes_, kSizeBytes);
      if (size > limit_)
        return "a message of " + std::to_string(size) + " bytes is above the limit of " + std::to_string(limit_) +
               " (FLAGS_rpc_message_limit_mb)";
      size_ = size;
      memory_.reset(static_cast<char*>(std::aligned_alloc(64, (size_ / 64 + 1) * 64)));
      if (!memory_) return "there is no memory for a message of " + std::to_string(size) + " bytes";
    }
    if (n > size_ - at_) return "a message is longer than it says";
    std::memcpy(memory_.get() + at_, data, n);
    at_ += n;
    return {};
  }

  const uint64_t limit_;
  char size_bytes_[kSizeBytes] = {};
  size_t head_ = 0, size_ = 0, at_ = 0;
  std::unique_ptr<char, Free> memory_;
};

}  // namespace anabranch::rpc
