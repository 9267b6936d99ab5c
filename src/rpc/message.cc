#include "rpc/message.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/event_time.h"
#include "core/host_copy.h"

namespace anabranch::rpc {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t aligned(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

Part part_of(uint32_t variable, PartKind kind, uint64_t bytes) {
  Part p;
  p.variable = variable;
  p.kind = kind;
  p.bytes = bytes;
  return p;
}

}  // namespace

const char* verb_name(Verb verb) {
  static constexpr std::array kNames{"nothing",  "hello", "exchange", "rows",        "reduce",    "beat",
                                     "complete", "stats", "table",    "offer files", "take file", "end file"};
  const auto i = static_cast<size_t>(verb);
  return i < kNames.size() ? kNames[i] : "an unknown verb";
}

void Message::Free::operator()(char* p) const { std::free(p); }

void Message::reset(Verb verb) {
  if (!memory_) {
    capacity_ = 4096;
    memory_.reset(static_cast<char*>(std::aligned_alloc(kAlign, capacity_)));
    if (!memory_) throw std::bad_alloc();
  }
  borrowed_ = nullptr;
  at_.clear();
  size_ = sizeof(Header);
  Header h;
  h.verb = verb;
  h.bytes = size_;
  std::memcpy(memory_.get(), &h, sizeof(h));
}

char* Message::grow(const Part& part) {
  const size_t begin = size_, end = begin + sizeof(Part) + aligned(part.bytes);
  if (end > capacity_) {
    const size_t capacity = aligned(std::max(end, 2 * capacity_));
    std::unique_ptr<char, Free> larger(static_cast<char*>(std::aligned_alloc(kAlign, capacity)));
    if (!larger) throw std::bad_alloc();
    std::memcpy(larger.get(), memory_.get(), size_);
    memory_ = std::move(larger);
    capacity_ = capacity;
  }
  char* to = memory_.get() + begin;
  std::memcpy(to, &part, sizeof(Part));
  const size_t used = sizeof(Part) + part.bytes;
  std::memset(to + used, 0, end - begin - used);
  size_ = end;
  at_.push_back(begin);
  header().bytes = size_;
  header().parts = static_cast<uint32_t>(at_.size());
  return to + sizeof(Part);
}

void* Message::add_room(uint32_t variable, const Shape& shape, DType dtype) {
  Part p = part_of(variable, PartKind::kTensor, static_cast<uint64_t>(shape.numel()) * dtype_size(dtype));
  p.dtype = static_cast<uint8_t>(dtype);
  p.rank = static_cast<uint8_t>(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) p.dims[i] = shape[i];
  return grow(p);
}

void Message::add(uint32_t variable, const Tensor& tensor) {
  void* to = add_room(variable, tensor.shape(), tensor.dtype());
  if (tensor.bytes() && tensor.place().on_host()) {
    std::memcpy(to, tensor.raw(), tensor.bytes());
  } else if (tensor.bytes()) {
    std::memcpy(to, on_host(tensor).raw(), tensor.bytes());
  }
}

void Message::set_height(int64_t height) {
  Part* const part = reinterpret_cast<Part*>(memory_.get() + at_.back());
  part->height = height < 0 ? Part::kAnyHeight : height;
  part->time = event_time();
}

void Message::add(uint32_t variable, const SelectedRows& rows) {
  add_ids(variable, rows.rows);
  add(variable, rows.value);
  set_height(rows.height);
}

void Message::add_rows(uint32_t variable, std::span<const int64_t> ids, int64_t height, const void* values, DType dtype,
                       int64_t width) {
  add_ids(variable, ids);
  void* to = add_room(variable, Shape{static_cast<int64_t>(ids.size()), width}, dtype);
  if (!ids.empty()) std::memcpy(to, values, ids.size() * static_cast<size_t>(width) * dtype_size(dtype));
  set_height(height);
}

void Message::add_ids(uint32_t variable, std::span<const int64_t> ids) {
  char* to = grow(part_of(variable, PartKind::kIds, ids.size_bytes()));
  if (!ids.empty()) std::memcpy(to, ids.data(), ids.size_bytes());
}

void Message::add_copy(const Message& from, int part) {
  const Part& p = from.part(part);
  char* to = grow(p);
  if (p.bytes) std::memcpy(to, from.payload(part), p.bytes);
}

void Message::add_text(std::string_view text) {
  char* to = grow(part_of(0, PartKind::kText, text.size()));
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
}

void Message::add_needed(std::span<const uint32_t> variables) {
  char* to = grow(part_of(0, PartKind::kNeeded, variables.size_bytes()));
  if (!variables.empty()) std::memcpy(to, variables.data(), variables.size_bytes());
}

Shape Message::shape(int i) const {
  const Part& p = part(i);
  return Shape(std::span<const int64_t>(p.dims, p.rank));
}

std::span<const int64_t> Message::ids(int i) const {
  return {reinterpret_cast<const int64_t*>(payload(i)), part(i).bytes / sizeof(int64_t)};
}

std::span<const uint32_t> Message::needed(int i) const {
  return {reinterpret_cast<const uint32_t*>(payload(i)), part(i).bytes / sizeof(uint32_t)};
}

std::string_view Message::text(int i) const { return {payload(i), part(i).bytes}; }

Tensor Message::tensor(const MessageRef& message, int i) {
  Tensor t;
  auto* at = const_cast<char*>(message->payload(i));  // read only
  const Part& p = message->part(i);
  t.view(at, message->shape(i), static_cast<DType>(p.dtype), std::shared_ptr<void>(message, at));
  return t;
}

std::shared_ptr<Message> Message::clone() const {
  auto m = std::make_shared<Message>(header().verb);
  if (m->capacity_ < size_) {
    m->capacity_ = aligned(size_);
    m->memory_.reset(static_cast<char*>(std::aligned_alloc(kAlign, m->capacity_)));
    if (!m->memory_) throw std::bad_alloc();
  }
  std::memcpy(m->memory_.get(), data(), size_);
  m->size_ = size_;
  m->at_ = at_;
  return m;
}

std::shared_ptr<Message> Message::error(Verb verb, const Error& error) {
  auto m = std::make_shared<Message>(verb);
  m->header().error = static_cast<uint8_t>(1 + static_cast<int>(error.kind()));
  m->add_text(error.message());
  return m;
}

void Message::throw_if_error() const {
  if (!header().error) return;
  const std::string why(parts() > 0 && part(0).kind == PartKind::kText ? text(0) : "no reason was given");
  throw Error(static_cast<ErrorKind>(header().error - 1), why);
}

}  // namespace anabranch::rpc
