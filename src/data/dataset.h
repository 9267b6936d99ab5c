// A data set: text files larger than memory, or held in memory, read by threads and given out as batches.
//
//   Dataset set(settings);                        auto stream = set.open({.ordered = true});
//   set.load(); set.local_shuffle();              Batch batch;
//   (in_memory only)                              while (stream->next(&batch)) feed(batch.columns);
//
// What it does not do: it knows no program and no scope, and moves nothing between processes.
// Errors: the first one of any thread wins, closes the stream, and is thrown by every later next(). Data is never
// silently short: a file that cannot be read to its end and a command that fails are errors.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/batch.h"
#include "data/schema.h"

namespace anabranch::data {

// What happens to a line that does not fit the schema.
struct BadRowPolicy {
  enum class Kind { kRaise, kSkip, kQuarantine };
  Kind kind = Kind::kRaise;
  int64_t max_rows = -1;   // skip, quarantine: an error once a pass has more bad rows than this; -1: no limit
  std::string quarantine;  // file to which bad lines go, each behind a line that says where it was and why
  int64_t before = 0;      // bad rows of earlier parts of this pass, which are in that file
};

struct Settings {
  Schema schema;
  std::vector<std::string> files;
  std::string format;                // "": MultiSlot text; else the text of a row format (data/row_format.h)
  std::string pipe_command = "cat";  // run by a shell for each file, which is its stdin; "cat" starts no process
  int64_t batch_size = 32;
  bool drop_last = false;  // leaves out a last batch that is smaller
  int threads = 1;         // that read and parse, at least 1
  bool in_memory = false;  // batches come from what load() read; otherwise they stream from the files
  uint64_t seed = 0;       // of shuffles
  BadRowPolicy bad_rows;
  double silence_s = 600;      // a command that neither reads, writes nor ends for so long is killed; 0: no limit
  double command_limit_s = 0;  // a command that runs for longer is killed; 0: no limit
  int64_t max_line_bytes = 16 << 20;  // a longer line is a bad row
  std::string cache_folder;           // not empty: parsed files are kept there and read from there (data/cache.h)
};

// What one pass has done so far. Times are summed over threads.
struct Statistics {
  int64_t lines = 0;     // good and bad
  int64_t rows = 0;      // samples parsed
  int64_t bad_rows = 0;  // refused by the policy
  int64_t bytes = 0;     // of text, uncompressed (of cache, where it was read)
  int64_t files = 0;     // read to their end
  double parse_s = 0;    // threads of the reader: reading and parsing
  double blocked_s = 0;  // threads of the reader: waiting for consumers to take batches
  double waited_s = 0;   // consumers: waiting for the reader. Compare with the time of the loop
};

struct StreamOptions {
  // true: the batches, and their order, are those of one thread that reads file after file (or record after record of
  // memory), whatever the number of threads. false: batches in the order in which they get ready; every row once.
  bool ordered = true;
  int threads = 0;  // that read; 0: Settings::threads
  // Called some ten times a second in a consumer that waits; may throw, which ends that next(). For Ctrl-C.
  std::function<void()> idle = {};
};

// One pass over the data. Any number of consumers may call next() at the same time, each with a Batch of its own;
// Batch::index tells the order, with several consumers too. Destroying a stream, or close(), ends its threads and
// commands wherever they are.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  // Fills *batch and returns true; false at the end of the data, for every consumer. Waits for the reader if need be.
  // ordered: all full batches before a bad line are given out, then comes the error.
  // Throws the first error of the pass: InvalidArgument (a bad row), NotFound, Unavailable (files, commands).
  virtual bool next(Batch* batch) = 0;
  // Wakes the consumers, whose next() returns false; ends the reader's threads and commands and waits for them. Any
  // thread may call it.
  virtual void close() = 0;

  virtual const Schema& schema() const = 0;
  virtual Statistics statistics() const = 0;  // at any time
  // Samples that this pass gives, or -1 when it is not known (files).
  virtual int64_t rows_expected() const = 0;
  // 0 to 1: the share of the input that has been given out, by bytes of the files or by rows. For an ETA.
  virtual double progress() const = 0;
};

// Any thread may call any of these. A call that changes what is in memory makes others wait, but for load().
class Dataset {
 public:
  explicit Dataset(Settings settings);
  ~Dataset();
  Dataset(const Dataset&) = delete;

  void set(Settings settings);  // holds from the next load() or open(); what was loaded stays

  // A new pass. in_memory: over what is loaded (InvalidArgument when nothing was). The stream keeps what it reads
  // alive.
  std::shared_ptr<BatchStream> open(const StreamOptions& options);

  // ---- in_memory only
  // Replaces what was loaded; on an error nothing changes. `idle`: as in StreamOptions.
  void load(const std::function<void()>& idle = {});
  // The same beside the caller, by so many threads (0: Settings::threads), until wait_preload(), which throws what went
  // wrong.
  void preload(int threads, const std::function<void()>& idle = {});
  void wait_preload();
  void release();        // frees the records
  void local_shuffle();  // a new order, a function of Settings::seed and of how often it was called
  // Which calls of local_shuffle() made the order of what is loaded: the first one's number, and how many. A data set
  // with the same records that is given both has the same order, and goes on shuffling like this one.
  struct Shuffles {
    uint64_t first = 0, count = 0;
  };
  Shuffles shuffles() const;
  void shuffle_as(Shuffles shuffles);
  // The records dealt out to so many trainers, as bytes, and what all of them have dealt to this one in their place.
  std::vector<std::string> deal(int trainers, int first) const;
  void take(const std::vector<std::string>& parts);
  int64_t records() const;             // in memory
  int64_t memory_bytes() const;        // that they take
  Statistics load_statistics() const;  // of the last load
  // Values of these sparse slots move between records, as a whole list each; undone by the next call.
  void slots_shuffle(const std::vector<std::string>& slots);
  // Joins records of one instance id. merge_size > 0: groups of another size are dropped.
  void merge_by_ins_id(int64_t merge_size);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace anabranch::data
