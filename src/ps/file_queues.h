// Files of data sets that workers take one by one from the first server. A file is leased to one worker until the
// worker returns it, restarts, completes, or is silent for the time of a lease. Then it is at the head of its queue
// again, to be read from its start. A file whose records are trained is done. The caller records decisions before they
// are applied here: decisions depend on time, the records do not.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ps/names.h"

namespace anabranch::ps {

struct FileCounts {
  int64_t taken = 0, done = 0;
  int64_t returned = 0;  // without being returned by their workers
  int64_t late = 0;      // returned after another worker had taken them
};

class FileQueues {
 public:
  static constexpr size_t kLongestKey = 256, kLongestName = 4096, kMostBytes = 64 << 20, kMostQueues = 1 << 16;
  struct Holder {
    uint32_t trainer = 0;
    uint64_t incarnation = 0;
    bool operator==(const Holder&) const = default;
  };
  using Heard = std::function<TimePoint(uint32_t trainer)>;

  explicit FileQueues(Milliseconds lease) : lease_(lease) {}

  // Names are separated by zero bytes. InvalidArgument: too long, or the queue exists with others.
  bool knows(std::string_view key, std::string_view names) const;
  void add(std::string_view key, std::string_view names);

  // The first free file, or -1. NotFound: no such queue.
  int64_t next(std::string_view key, TimePoint now, const Heard& heard);
  void lease(std::string_view key, int64_t file, Holder holder, TimePoint now);
  const std::string& name(std::string_view key, int64_t file) const;
  int64_t left(std::string_view key) const;  // files that are not done

  // Whether a worker's report on a file counts: it holds the file, or the file was not taken since.
  bool holds(std::string_view key, int64_t file, Holder holder) const;
  void end(std::string_view key, int64_t file, bool trained);
  void count_late() { ++counts_.late; }
  void give_up(uint32_t trainer);  // returns all files of a worker

  const FileCounts& counts() const { return counts_; }
  void reset_counts() { counts_ = {}; }

  // ---- on disk: a message for each queue
  void save(const std::function<void(std::shared_ptr<Message>)>& put) const;
  void load(const Message& record, TimePoint now);

 private:
  enum class State : uint8_t { kWaits, kLeased, kDone };
  struct File {
    std::string name;
    State state = State::kWaits;
    Holder holder;  // also the last one
    TimePoint since{};
  };
  struct Queue {
    std::vector<File> files;  // empty when all are done
    int64_t left = 0;
  };

  static std::vector<std::string> split(std::string_view names);
  const Queue& find(std::string_view key) const;
  Queue& find(std::string_view key) { return const_cast<Queue&>(std::as_const(*this).find(key)); }
  const File& file_of(std::string_view key, int64_t file) const;
  File& file_of(std::string_view key, int64_t file) {
    return const_cast<File&>(std::as_const(*this).file_of(key, file));
  }
  void go_back(File& file);

  const Milliseconds lease_;
  std::map<std::string, Queue, std::less<>> queues_;
  FileCounts counts_;
};

// ---- the workers' requests
std::shared_ptr<Message> offer_files(std::string_view key, const std::vector<std::string>& names);
std::shared_ptr<Message> take_file(std::string_view key);
std::shared_ptr<Message> end_file(std::string_view key, int64_t file, bool trained);

}  // namespace anabranch::ps
