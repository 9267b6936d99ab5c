#include "ps/records.h"

#include <cstring>

namespace anabranch::ps {
namespace {

constexpr uint64_t kMagic = 0x3152'5f50'4241'0001;

struct Frame {
  uint64_t magic = kMagic;
  uint64_t bytes = 0;     // of the messages behind it
  uint64_t checksum = 0;  // of them and of `bytes`
};

// 64 bits, so that a torn record passes for a whole one once in 10^19 crashes; nobody is kept from forging one.
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

// Messages one behind the other; each begins with its own size.
bool cut(const std::shared_ptr<const std::string>& all, size_t at, size_t bytes, std::vector<MessageRef>* out) {
  const size_t end = at + bytes;
  while (at < end) {
    Header h;
    if (end - at < sizeof h) return false;
    std::memcpy(&h, all->data() + at, sizeof h);
    if (h.bytes < sizeof h || h.bytes > end - at) return false;
    out->push_back(Message::parse(std::shared_ptr<const char>(all, all->data() + at), h.bytes));
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
}

void RecordWriter::write(const Message& message) {
  const MessageRef borrowed(std::shared_ptr<void>(), &message);
  write(std::span(&borrowed, 1));
}

bool read_records(std::string bytes, const std::function<void(std::vector<MessageRef>)>& use) {
  const auto all = std::make_shared<const std::string>(std::move(bytes));
  size_t at = 0;
  while (at < all->size()) {
    Frame f;
    if (all->size() - at < sizeof f) return false;
    std::memcpy(&f, all->data() + at, sizeof f);
    at += sizeof f;
    if (f.magic != kMagic || f.bytes > all->size() - at ||
        f.checksum != checksum(std::string_view(*all).substr(at, f.bytes))) {
      return false;
    }
    std::vector<MessageRef> messages;
    try {
      if (!cut(all, at, f.bytes, &messages)) return false;
    } catch (const Error&) {
      return false;
    }
    at += f.bytes;
    use(std::move(messages));
  }
  return true;
}

}  // namespace anabranch::ps
