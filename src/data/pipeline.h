// The threads of one pass over the files: they claim chunks, parse them into blocks, and pass these to one consumer at
// a time. At most a few blocks per thread are in progress, so memory is constant for any file size. ordered: blocks
// arrive in the order of the files and of their text, and so does an error, for any number of threads. Otherwise
// several files are open at once and blocks arrive as they become ready; an error arrives at once.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/threads.h"
#include "data/bad_rows.h"
#include "data/in_order.h"
#include "data/input.h"

namespace anabranch::data {

struct PipelineOptions {
  bool ordered = true;
  // The consumer keeps all blocks: they are made without spare room, in any number, from several files at once.
  bool keep = false;
  int threads = 1;
  std::function<void()> idle;
};

class Pipeline {
 public:
  Pipeline(const Settings& settings, PipelineOptions options);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;

  // The next block, after the policy for bad rows; null at the end, or after finish(). Throws the first error, every
  // time.
  std::unique_ptr<Block> next();
  void recycle(std::unique_ptr<Block> block);  // reuses its memory. Any thread
  void finish();  // stops threads and commands, and waits for them; next() returns null. Any thread

  const Settings& settings() const { return settings_; }
  Statistics statistics() const;
  double progress() const;

 private:
  struct OpenFile {  // a file at a time, used by one thread at a time
    std::mutex mutex;
    std::shared_ptr<Input> input;
    int64_t file = -1, chunks = 0, consumed = 0;
    bool done = false;
  };
  struct Lines {
    std::vector<int64_t> of_chunk;   // of a file; -1: not finished yet
    std::vector<int64_t> before{1};  // number of a chunk's first line, as far as all earlier chunks are finished
  };
  struct Job {
    std::shared_ptr<Input> input;
    Chunk chunk;
    ChunkPosition place;
  };

  void work(int thread);
  void stop();
  void fail(std::exception_ptr error);
  bool wait_for_room();
  bool claim(int thread, Job* job);
  bool claim_in(OpenFile* open, Job* job);
  std::unique_ptr<Block> parse(Job* job, Block* scratch);
  static void parse_into(Block* block, Job* job);
  bool may_claim(OpenFile* open);
  bool claim_chunk(OpenFile* open, Job* job);
  void push(ChunkPosition place, Ready ready);
  bool take(Ready* ready);
  void note_lines(const Block& block);
  int64_t first_line_of(const Block& block);
  void note_uneven(const Block& block);
  std::unique_ptr<Block> spare();

  Settings settings_;
  PipelineOptions options_;
  std::shared_ptr<const RowParser> parser_;
  BadRows bad_rows_;
  std::vector<std::unique_ptr<OpenFile>> open_files_;
  std::atomic<int64_t> next_file_{0};
  std::atomic<bool> stop_{false};

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable room_, ready_, lines_known_;
  InOrder in_order_;         // ready blocks,
  std::deque<Ready> queue_;  // or here when not ordered
  int64_t in_flight_ = 0, limit_ = 0;
  int working_ = 0;  // threads
  bool failed_ = false;
  std::exception_ptr error_;
  std::vector<Lines> lines_;
  std::vector<std::unique_ptr<Block>> spares_;
  Statistics statistics_;
  int64_t input_bytes_ = 0;
  std::atomic<int64_t> consumed_bytes_{0};

  std::mutex finish_mutex_;
  Threads threads_;
};

}  // namespace anabranch::data
