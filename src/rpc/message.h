// Messages between workers and servers: one block of bytes with a header and parts, each a tensor, row ids, text or a
// list of numbers. Nothing else is sent: no program, no path except in text that the verb defines, no code. Bytes from
// outside are trusted only after Message::parse has checked all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/selected_rows.h"

namespace anabranch::rpc {

// The closed set of requests to a server.
enum class Verb : uint8_t {
  kHello = 1,     // identity of the worker, and the variables that it will name by number
  kExchange = 2,  // gradients (or differences) of one step; answered with the requested variables
  kRows = 3,      // rows of a table by their ids
  kReduce = 4,    // sums of arrays over all workers, in worker order: counts, metrics, barriers
  kBeat = 5,      // the worker is alive
  kComplete = 6,  // the worker has ended
  kStats = 7,
  kTable = 8,       // a part of a growable table, to be written to a file
  kOfferFiles = 9,  // a queue of files that workers take one by one: its name, theirs
  kTakeFile = 10,   // the next one
  kEndFile = 11,    // one is trained, or returned
  kVerbs = 12,
};
const char* verb_name(Verb verb);  // "exchange"

enum class PartKind : uint8_t { kTensor = 1, kIds = 2, kText = 3, kNeeded = 4, kKinds = 5 };

struct Header {
  static constexpr uint32_t kMagic = 0x31504241;  // "ABP1"
  static constexpr uint8_t kResumed = 1;          // of a hello's answer: the server resumes the state of an earlier one
  static constexpr uint8_t kTrains = 2;           // of a request for rows: keys of a growable table get one
  static constexpr uint8_t kOfStep = 4;           // of a sum: it belongs to step `round`
  // of the end of a file: its records are trained; of the answer: the report counts
  static constexpr uint8_t kTrained = 8;
  static constexpr uint8_t kOver = 16;       // of an answer: this worker gets no more files of the queue
  static constexpr uint8_t kDescribes = 32;  // of a hello: its texts describe the worker's job
  static constexpr uint8_t kKeeps = 64;      // of a hello's answer: the server keeps its state on disk
  static constexpr uint8_t kVersion = 2;     // of the protocol; records on disk may have earlier ones
  uint32_t magic = kMagic;
  Verb verb = Verb::kHello;
  uint8_t error = 0;  // of an answer: 1 + ErrorKind, and the first part is the text; 0: none
  uint8_t flags = 0;
  uint8_t version = kVersion;
  uint32_t client = 0;  // the worker's number
  uint32_t parts = 0;
  uint64_t incarnation = 0;  // of the sender: different after each start
  uint64_t sequence = 0;     // of the client's requests to this server that change something, from 1 on
  uint64_t round = 0;        // its meaning depends on the verb; of a hello: the worker's deadline in milliseconds
  uint64_t bytes = 0;        // of the whole message
  uint64_t peer = 0;         // of a request: the incarnation of the intended server; 0: any
  // of a request: number of this client's changes that the server has acknowledged; of a hello's answer: the
  // incarnation of the server with which the state began
  uint64_t acknowledged = 0;
};
static_assert(sizeof(Header) == 64);

struct Part {
  uint32_t variable = 0;
  PartKind kind = PartKind::kTensor;
  uint8_t dtype = 0;
  uint8_t rank = 0;
  uint8_t reserved = 0;
  uint64_t bytes = 0;   // of the payload that follows, without padding
  int64_t height = -1;  // of sparse rows: the ids are the previous part; kAnyHeight for growable tables
  static constexpr int64_t kAnyHeight = INT64_MAX;
  int64_t dims[kMaxRank] = {};
  int64_t time = 0;  // of sparse rows: that of their events, in seconds since 1970; 0: unknown
  int64_t reserved2[3] = {};
};
static_assert(sizeof(Part) == 128);

class Message;
using MessageRef = std::shared_ptr<const Message>;

class Message {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{1} << 40;

  explicit Message(Verb verb) { reset(verb); }
  Message(const Message&) = delete;
  // Starts over, in the existing memory.
  void reset(Verb verb);
  // InvalidArgument describes the fault in bytes from outside.
  static MessageRef parse(std::shared_ptr<const char> bytes, size_t size);
  static std::shared_ptr<Message> error(Verb verb, const Error& error);

  // A copy that can be changed.
  std::shared_ptr<Message> clone() const;
  Header& header() { return *reinterpret_cast<Header*>(memory_.get()); }
  const Header& header() const { return *reinterpret_cast<const Header*>(data()); }
  std::span<const char> bytes() const { return {data(), size_}; }

  // ---- writing
  void add(uint32_t variable, const Tensor& tensor);
  void add(uint32_t variable, const SelectedRows& rows);  // ids, then values
  void add_rows(uint32_t variable, std::span<const int64_t> ids, int64_t height, const void* values, DType dtype,
                int64_t width);
  void add_ids(uint32_t variable, std::span<const int64_t> ids);
  void add_copy(const Message& from, int part);
  void add_text(std::string_view text);
  void add_needed(std::span<const uint32_t> variables);
  // Room for a tensor that the caller fills before anything else is added.
  void* add_room(uint32_t variable, const Shape& shape, DType dtype);

  // ---- reading
  int parts() const { return static_cast<int>(at_.size()); }
  const Part& part(int i) const { return *reinterpret_cast<const Part*>(data() + at_[i]); }
  const char* payload(int i) const { return data() + at_[i] + sizeof(Part); }
  Shape shape(int i) const;
  std::span<const int64_t> ids(int i) const;
  std::span<const uint32_t> needed(int i) const;
  std::string_view text(int i) const;
  // The tensor of a part, in the message's memory, which it keeps alive.
  static Tensor tensor(const MessageRef& message, int i);
  void throw_if_error() const;

 private:
  Message() = default;
  const char* data() const { return memory_ ? memory_.get() : borrowed_.get(); }
  char* grow(const Part& part);
  void set_height(int64_t height);  // of the last part, which has rows of now
  void walk();

  struct Free {
    void operator()(char* p) const;
  };
  std::unique_ptr<char, Free> memory_;
  std::shared_ptr<const char> borrowed_;
  size_t size_ = 0, capacity_ = 0;
  std::vector<size_t> at_;  // offsets of parts
};

}  // namespace anabranch::rpc
