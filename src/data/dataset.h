// A data set: text files larger than memory, or held in memory, read by threads and returned as batches.
//
//   Dataset set(settings);                        auto stream = set.open({.ordered = true});
//   set.load(); set.local_shuffle();              Batch batch;
//   (in_memory only)                              while (stream->next(&batch)) feed(batch.columns);
//
// It knows no program and no scope, and moves nothing between processes. Errors: the first one of any thread wins,
// closes the stream, and is thrown by every later next(). Data is never silently truncated: a file that cannot be read
// to its end and a command that fails are errors.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/batch.h"
#include "data/schema.h"

namespace anabranch::data {

class TableFile;

// Handling of lines that do not match the schema.
struct BadRowPolicy {
  enum class Kind { kRaise, kSkip, kQuarantine };
  Kind kind = Kind::kRaise;
  int64_t max_rows = -1;   // skip, quarantine: more bad rows than this in a pass are an error; -1: no limit
  std::string quarantine;  // file for bad lines, each preceded by a line with its position and the reason
  int64_t before = 0;      // bad rows of earlier parts of this pass, which are in that file
};

struct Settings {
  Schema schema;
  std::vector<std::string> files;
  std::string format;                // "": MultiSlot text; otherwise a row format (data/row_format.h)
  std::string pipe_command = "cat";  // run by a shell for each file, its stdin; "cat" starts no process
  int64_t batch_size = 32;
  bool drop_last = false;  // drops a last batch that is smaller
  int threads = 1;         // that read and parse, at least 1
  bool in_memory = false;  // batches come from the records that load() read; otherwise they stream from the files
  uint64_t seed = 0;       // of shuffles
  BadRowPolicy bad_rows;
  // Lines whose hash, from 0 to 1, is in [begin, end) are read, the others are skipped: a split that does not depend on
  // files, threads or the order of lines, and keeps equal lines together.
  // With a column, lines with equal texts in it are together.
  struct Share {
    double begin = 0, end = 1;
    uint64_t seed = 0;
    std::string column = {};  // not empty: the text of this column is hashed: its name, or its number without a header
    bool is_whole() const { return begin <= 0 && end >= 1; }
  };
  Share share = {};
  double silence_s = 600;      // a command that neither reads, writes nor exits for this time is killed; 0: no limit
  double command_limit_s = 0;  // a command that runs longer is killed; 0: no limit
  int64_t max_line_bytes = 16 << 20;  // a longer line is a bad row
  // Opens a file that holds a table (data/table_input.h), in a thread of the reader. Null: such files are an error.
  std::function<std::unique_ptr<TableFile>(const std::string& path)> open_table = nullptr;
  std::string cache_folder;  // not empty: parsed files are stored in and read from it (data/cache.h)
};

// Statistics of the current pass. Times are summed over threads.
struct Statistics {
  int64_t lines = 0;        // good and bad, of the share
  int64_t rows = 0;         // samples parsed
  int64_t bad_rows = 0;     // rejected by the policy
  int64_t missing = 0;      // empty fields that got a value of the schema
  int64_t uneven_rows = 0;  // with a slot that Schema::joins joins
  std::string uneven;       // the first of them that was found, as bad_row_message describes it
  int64_t bytes = 0;        // of text, uncompressed (of cache, if it was read)
  int64_t files = 0;        // read to their end
  double parse_s = 0;       // threads of the reader: reading and parsing
  double blocked_s = 0;     // threads of the reader: waiting for consumers to take batches
  double waited_s = 0;      // consumers: waiting for the reader. Compare it with the time of the loop
};

struct StreamOptions {
  // true: the batches, and their order, are those of one thread that reads file after file (or record after record of
  // memory), for any number of threads. false: batches in the order in which they become ready; every row once.
  bool ordered = true;
  int threads = 0;  // reader threads; 0: Settings::threads
  // Called about ten times a second in a waiting consumer; an exception ends that next(). For Ctrl-C.
  std::function<void()> idle = {};
};

// One pass over the data. Any number of consumers may call next() concurrently, each with a separate Batch;
// Batch::index gives the order, also with several consumers. Destroying a stream, or close(), stops its threads and
// commands at any point.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  // Fills *batch and returns true; false at the end of the data, for every consumer. Waits for the reader if necessary.
  // ordered: all full batches before a bad line are returned, then the error is thrown. Throws the first error of the
  // pass: InvalidArgument (a bad row), NotFound, Unavailable (files, commands).
  virtual bool next(Batch* batch) = 0;
  // Wakes the consumers, whose next() returns false; stops the reader's threads and commands and waits for them. Any
  // thread may call it.
  virtual void close() = 0;

  virtual const Schema& schema() const = 0;
  virtual Statistics statistics() const = 0;  // at any time
  // Number of samples in this pass, or -1 if unknown (files).
  virtual int64_t rows_expected() const = 0;
  // 0 to 1: the share of the input that has been returned, by bytes of the files or by rows. For an ETA.
  virtual double progress() const = 0;
};

// Thread-safe. A call that changes the records in memory blocks the others, except for load().
class Dataset {
 public:
  explicit Dataset(Settings settings);
  ~Dataset();
  Dataset(const Dataset&) = delete;

  void set(Settings settings);  // effective from the next load() or open(); loaded records stay

  // A new pass. in_memory: over the loaded records (InvalidArgument if there are none). The stream keeps its data
  // alive.
  std::shared_ptr<BatchStream> open(const StreamOptions& options);

  // ---- in_memory only
  // Replaces the loaded records; on an error nothing changes. `idle`: as in StreamOptions.
  void load(const std::function<void()>& idle = {});
  // The same in the background, with this number of threads (0: Settings::threads), until wait_preload(), which throws
  // its errors.
  void preload(int threads, const std::function<void()>& idle = {});
  void wait_preload();
  void release();        // frees the records
  void local_shuffle();  // a new order, a function of Settings::seed and of the number of calls
  // The calls of local_shuffle() that led to the current order: the first one's number, and their count. A data set
  // with the same records and both numbers has the same order, and continues to shuffle like this one.
  struct Shuffles {
    uint64_t first = 0, count = 0;
  };
  Shuffles shuffles() const;
  void shuffle_as(Shuffles shuffles);
  // The records distributed over this number of workers, as bytes, and the shares of all of them for this one.
  std::vector<std::string> deal(int trainers, int first) const;
  void take(const std::vector<std::string>& parts);
  int64_t records() const;             // in memory
  int64_t memory_bytes() const;        // of the records
  Statistics load_statistics() const;  // of the last load
  // Moves values of these sparse slots between records, each list as a whole; undone by the next call.
  void slots_shuffle(const std::vector<std::string>& slots);
  // Joins records of one instance id. merge_size > 0: groups of another size are dropped.
  void merge_by_ins_id(int64_t merge_size);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace anabranch::data
