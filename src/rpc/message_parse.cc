// Bytes from outside: every length is checked before it is used.
#include <cstring>

#include "rpc/message.h"

namespace anabranch::rpc {
namespace {

constexpr size_t kPartAlign = 64;

void check_tensor(const Part& p, int i) {
  AB_CHECK(p.rank <= kMaxRank, InvalidArgument, "part {} of a message has rank {}, which must be at most {}", i, p.rank,
           kMaxRank);
  const size_t size = dtype_size(dtype_from_number(p.dtype));
  uint64_t elements = 1;
  for (int d = 0; d < p.rank; ++d) {
    AB_CHECK(p.dims[d] >= 0 && static_cast<uint64_t>(p.dims[d]) <= Message::kMostBytes, InvalidArgument,
             "extent {} of part {} of a message is {}", d, i, p.dims[d]);
    AB_CHECK(!__builtin_mul_overflow(elements, static_cast<uint64_t>(p.dims[d]), &elements), InvalidArgument,
             "part {} of a message has more elements than can be counted", i);
  }
  AB_CHECK(elements <= Message::kMostBytes && elements * size == p.bytes, InvalidArgument,
           "part {} of a message has {} elements in {} bytes", i, elements, p.bytes);
}

void check_part(const Part& p, int i, size_t left) {
  AB_CHECK(p.kind >= PartKind::kTensor && p.kind < PartKind::kKinds, InvalidArgument,
           "part {} of a message has the unknown kind {}", i, static_cast<int>(p.kind));
  AB_CHECK(p.bytes <= left, InvalidArgument, "part {} of a message needs {} bytes, {} are left", i, p.bytes, left);
  if (p.kind == PartKind::kTensor) check_tensor(p, i);
  const size_t unit = p.kind == PartKind::kIds ? sizeof(int64_t) : p.kind == PartKind::kNeeded ? sizeof(uint32_t) : 1;
  AB_CHECK(p.bytes % unit == 0, InvalidArgument, "part {} of a message has {} bytes, not a multiple of {}", i, p.bytes,
           unit);
}

}  // namespace

MessageRef Message::parse(std::shared_ptr<const char> bytes, size_t size) {
  AB_CHECK(size >= sizeof(Header), InvalidArgument, "a message has at least {} bytes, got {}", sizeof(Header), size);
  auto m = std::shared_ptr<Message>(new Message());
  if (reinterpret_cast<uintptr_t>(bytes.get()) % kPartAlign) {  // parts are read in place
    const size_t room = (size + kPartAlign - 1) / kPartAlign * kPartAlign;
    m->memory_.reset(static_cast<char*>(std::aligned_alloc(kPartAlign, room)));
    if (!m->memory_) throw std::bad_alloc();
    std::memcpy(m->memory_.get(), bytes.get(), size);
  } else {
    m->borrowed_ = std::move(bytes);
  }
  m->size_ = m->capacity_ = size;
  m->walk();
  return m;
}

void Message::walk() {
  const Header& h = static_cast<const Message&>(*this).header();
  AB_CHECK(h.magic == Header::kMagic, InvalidArgument,
           "these bytes are not a message of this protocol: they start with {:#x}", h.magic);
  AB_CHECK(h.verb >= Verb::kHello && h.verb < Verb::kVerbs, InvalidArgument, "verb {} of a message is not known",
           static_cast<int>(h.verb));
  AB_CHECK(h.bytes == size_, InvalidArgument, "the header of a message says {} bytes, got {}", h.bytes, size_);
  AB_CHECK(h.parts <= size_ / sizeof(Part), InvalidArgument, "a message of {} bytes says that it has {} parts", size_,
           h.parts);
  size_t at = sizeof(Header);
  for (uint32_t i = 0; i < h.parts; ++i) {
    AB_CHECK(size_ - at >= sizeof(Part), InvalidArgument, "a message ends before part {}", i);
    const Part& p = *reinterpret_cast<const Part*>(data() + at);
    check_part(p, static_cast<int>(i), size_ - at - sizeof(Part));
    at_.push_back(at);
    const size_t next = at + sizeof(Part) + (p.bytes + kPartAlign - 1) / kPartAlign * kPartAlign;
    AB_CHECK(next <= size_, InvalidArgument, "a message ends inside of part {}", i);
    at = next;
  }
  AB_CHECK(at == size_, InvalidArgument, "a message has {} bytes after its last part", size_ - at);
}

}  // namespace anabranch::rpc
