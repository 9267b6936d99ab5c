#include "ps/records.h"

#include <cstring>

#include "core/tensor.h"

namespace anabranch::ps {
namespace {

constexpr uint64_t kMagic = 0x3152'5f50'4241'0001;

struct Frame {
  uint64_t magic = kMagic;
  uint64_t bytes = 0;     // of the messages that follow
  uint64_t checksum = 0;  // of them and of `bytes`
};

// 64 bits, so that a torn record passes for a whole one once in 10^19 crashes; it does not protect against forgery.
uint64_t checksum(std::string_view bytes) {
  uint64_t h = bytes.size() * 0x9e3779b97f4a7c15u + 1;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  for (; i < bytes.size(); ++i) h = (h ^ static_cast<unsigned char>(bytes[i])) * 0xc4ceb9fe1a85ec53u;
  return h ^ (h >> 29);
}

// Messages one after the other; each starts with its size.
bool cut(const std::shared_ptr<const char>& all, size_t bytes, std::vector<MessageRef>* out) {
  for (size_t at = 0; at < bytes;) {
    Header h;
    if (bytes - at < sizeof h) return false;
    std::memcpy(&h, all.get() + at, sizeof h);
    if (h.bytes < sizeof h || h.bytes > bytes - at) return false;
    out->push_back(Message::parse(std::shared_ptr<const char>(all, all.get() + at), h.bytes));
    at += h.bytes;
  }
  return !out->empty();
}

}  // namespace

void RecordWriter::write(std::span<const MessageRef> messages) {
  buffer_.assign(sizeof(Frame), '\0');
  for (const auto& m : messages) buffer_.append(m->bytes().data(), m->bytes().size());
  Frame f;
  f.bytes = buffer_.size() - sizeof f;
  f.checksum = checksum(std::string_view(buffer_).substr(sizeof f));
  std::memcpy(buffer_.data(), &f, sizeof f);
  file_->write(buffer_);
  bytes_ += buffer_.size();
}

void RecordWriter::write(const Message& message) {
  const MessageRef borrowed(std::shared_ptr<void>(), &message);
  write(std::span(&borrowed, 1));
}

bool read_records(DiskSource& file, const std::function<void(std::vector<MessageRef>)>& use) {
  uint64_t left = file.size();
  while (left > 0) {
    Frame f;
    if (left < sizeof f || file.read(&f, sizeof f) != sizeof f) return false;
    left -= sizeof f;
    if (f.magic != kMagic || f.bytes > left) return false;
    const std::shared_ptr<void> memory = allocate_buffer(f.bytes);  // messages are read in place
    const std::shared_ptr<const char> bytes(memory, static_cast<const char*>(memory.get()));
    if (file.read(memory.get(), f.bytes) != f.bytes) return false;
    if (f.checksum != checksum({bytes.get(), f.bytes})) return false;
    left -= f.bytes;
    std::vector<MessageRef> messages;
    try {
      if (!cut(bytes, f.bytes, &messages)) return false;
    } catch (const Error&) {
      return false;
    }
    use(std::move(messages));
  }
  return true;
}

}  // namespace anabranch::ps
