// The first meeting of each collective: every process announces its next operation.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/collective.h"
#include "core/tensor.h"

namespace anabranch::comm {

What::What(CollectiveKind verb, DType dtype, std::string_view name) : verb(verb), dtype(static_cast<uint8_t>(dtype)) {
  const size_t n = std::min(name.size(), kText / 2);
  std::copy_n(name.end() - static_cast<ptrdiff_t>(n), n, text);  // the end of a long name is the most specific part
}

void What::add(const Shape& shape) {
  for (int i = 0; i < shape.rank(); ++i) {
    shapes = (shapes ^ static_cast<uint64_t>(shape[i])) * 0x100000001b3u + 0x9e3779b97f4a7c15u;
  }
  const bool first = elems == 0 && shapes != 0;
  elems += shape.numel();
  if (!first && elems != shape.numel()) return;
  char* to = text + std::strlen(text);
  char* const end = text + kText - 1;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto left = static_cast<size_t>(end - to);
    to += std::min<size_t>(left, fmt::format_to_n(to, left, "{}{}", i ? ", " : " [", shape[i]).size);
  }
  if (shape.rank() > 0 && to < end) *to = ']';
}

bool What::agrees_with(const What& other) const {
  return magic == other.magic && verb == other.verb && how == other.how && dtype == other.dtype &&
         on_devices == other.on_devices && root == other.root && elems == other.elems && shapes == other.shapes;
}

std::string What::str() const {
  static constexpr const char* kVerbs[] = {"all_reduce", "reduce",          "reduce_scatter", "broadcast",
                                           "all_gather", "all_gather_rows", "barrier"};
  if (magic != What().magic || static_cast<size_t>(verb) >= std::size(kVerbs)) return "no collective of this version";
  if (verb == CollectiveKind::kBarrier) return "barrier";
  const bool known = dtype <= static_cast<uint8_t>(DType::kBFloat16);
  const bool combines = verb <= CollectiveKind::kReduceScatter && how <= Combine::kMin;
  return fmt::format("{}{}{} of {} numbers {}, {}, root {}{}", kVerbs[static_cast<int>(verb)], combines ? " " : "",
                     combines ? combine_name(how) : "", elems, known ? dtype_name(static_cast<DType>(dtype)) : "?",
                     std::string_view(text, strnlen(text, kText)), root, on_devices ? ", on devices" : "");
}

Region& Strip::over(Wire& wire, void* memory, size_t bytes) {
  if (region_ && at_ == memory && bytes_ == bytes) return *region_;
  region_ = nullptr;
  region_ = wire.region(memory, bytes);
  at_ = memory;
  bytes_ = bytes;
  return *region_;
}

Region& Strip::room(Wire& wire, size_t bytes) {
  if (bytes > capacity_) {
    region_ = nullptr;
    own_ = allocate_buffer(bytes);
    capacity_ = bytes;
  }
  return over(wire, own_.get(), capacity_);
}

struct Collective::Hello {
  What what;
  char note[kNote];
};

void Collective::make_room(Peers& peers) {
  if (hellos_.size() == static_cast<size_t>(peers.size())) return;
  for (auto* strips : {&hellos_, &theirs_, &into_}) *strips = std::vector<Strip>(peers.size());
  notes_.resize(peers.size() * kNote);
  from_.resize(peers.size());
}

void Collective::agree(Peers& peers, const What& what, const void* note, size_t bytes) {
  AB_CHECK(bytes <= kNote, Internal, "a note of {} bytes", bytes);
  make_room(peers);
  peers.begin(what.verb == CollectiveKind::kBarrier ? "barrier" : "collective");
  Hello hello{what, {}};
  if (bytes > 0) std::memcpy(hello.note, note, bytes);
  if (Board* board = peers.board()) {
    std::memcpy(board->mine(), &hello, sizeof(hello));
    peers.meet();
    for (int r = 0; r < peers.size(); ++r) from_[r] = board->of(r);
    return compare(peers);
  }
  Region& mine = hello_.room(peers.wire(), sizeof(Hello));
  std::memcpy(hello_.memory(), &hello, sizeof(hello));
  for (int r = 0; r < peers.size(); ++r) {
    if (r == peers.rank()) continue;
    peers.receive(hellos_[r].room(peers.wire(), sizeof(Hello)), r, 0, 0, sizeof(Hello));
    peers.send(mine, r, 0, 0, sizeof(Hello));
  }
  for (int r = 0; r < peers.size(); ++r) {
    if (r != peers.rank()) peers.wait_received(hellos_[r].region(), r);
  }
  for (int r = 0; r < peers.size(); ++r) {
    if (r != peers.rank()) peers.wait_sent(mine, r);
  }
  for (int r = 0; r < peers.size(); ++r) from_[r] = (r == peers.rank() ? hello_ : hellos_[r]).memory();
  compare(peers);
}

// For the data at from_. All processes find the same pair, and format the same text.
void Collective::compare(const Peers& peers) {
  const auto of = [&](int r) { return reinterpret_cast<const Hello*>(from_[r]); };
  for (int r = 0; r < peers.size(); ++r) {
    AB_CHECK(of(r)->what.agrees_with(of(0)->what), ShapeMismatch,
             "processes disagree on what they compute together: {} has {}; {} has {}", peers.name(0), of(0)->what.str(),
             peers.name(r), of(r)->what.str());
    std::memcpy(notes_.data() + r * kNote, of(r)->note, kNote);
  }
}

void Collective::barrier(Peers& peers) { agree(peers, What()); }

}  // namespace anabranch::comm
