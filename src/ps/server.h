// A parameter server without its transport: requests go in, answers come out, at once or when other workers have
// arrived. It decides when updates happen and ensures that each happens once; the store defines what an update is.
//
// Requests that change something have a sequence number of their worker. The server keeps the last one and its answer:
// a repeated request is answered again and changes nothing. An older one is refused.
#pragma once
#include <atomic>
#include <compare>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "ps/description.h"
#include "ps/file_queues.h"
#include "ps/history.h"
#include "ps/id_set.h"
#include "ps/levels.h"
#include "ps/store.h"
#include "ps/sums.h"
#include "ps/traffic.h"
#include "rpc/timer.h"

namespace anabranch::ps {

struct ServerOptions {
  std::string name = "server";  // in messages: its endpoint
  Mode mode = Mode::kSync;
  int trainers = 1;
  Milliseconds patience{60000};    // how long requests wait for other workers before they are answered with an error
  Milliseconds file_lease{60000};  // a worker that is silent for longer loses its files
  uint64_t incarnation = 1;
  Description job;  // empty: unknown
  const rpc::Clock* clock = &rpc::SteadyClock::shared();
  HistoryOptions history;
  // The writer of snapshots, slice by slice, while requests go on; null: the request that finds one due.
  rpc::Timer* timer = nullptr;
};

struct ServerStats {
  int64_t requests = 0, repeated = 0, refused = 0;
  int64_t updates = 0;  // calls of Store::apply
  int64_t rows = 0;     // sent to workers
  int64_t resumed = 0;  // updates read from the journal at the start
  int64_t lost = 0;     // updates that an earlier server had acknowledged, and this one does not have
  int64_t snapshots = 0, failed_snapshots = 0;
  int64_t malformed = 0, unread = 0;  // of callers over the network: see PeerCounts
};

class Server {
 public:
  // Resumes from an earlier server with the same folder, if there was one. InvalidArgument if its state does not fit
  // the store.
  Server(const ServerOptions& options, Store& store);
  virtual ~Server();

  void handle(MessageRef request, Answer answer);
  // Checks deadlines; the owner of the server calls it regularly.
  void tick();
  // A snapshot in progress is on disk when this returns, or has failed.
  void finish_snapshot();
  bool finished() const;  // every worker has reported completion
  void wait_finished(const std::function<bool()>& stop, Milliseconds look);
  ServerStats stats() const;
  // Adds the listener's counts to its statistics.
  void watch(std::shared_ptr<const rpc::PeerCounts> peers);

 protected:
  // For tests that plant defects.
  virtual void keep(std::span<const MessageRef> messages);

 private:
  struct Trainer {
    uint64_t incarnation = 0, sequence = 0;
    MessageRef last_answer;     // to `sequence`; null while it is in progress
    bool answer_again = false;  // `sequence` is done, and its answer was not stored
    bool gap = false;           // no request since the server resumed: earlier ones may be unknown
    uint64_t done = 0;          // the last finished request
    uint64_t updates = 0;       // pushes that are in the store, or counted as lost
    Answer waiting;
    bool complete = false;
    int64_t seen = 0;            // updates of the store when it was last sent values
    int64_t awaited_us = 0;      // how long others have waited for it
    std::vector<uint64_t> gone;  // earlier incarnations: a late hello of theirs changes nothing
    TimePoint heard{};
    Milliseconds deadline{0};  // of its requests; 0: unknown
    // GEO, by table: rows it does not have yet, and those in the last answer.
    std::map<uint32_t, IdSet> changed, told;
  };
  // Messages of all workers that belong together: gradients of a step, arrays to sum.
  struct Meeting {
    std::vector<MessageRef> came;  // by worker
    TimePoint since{};
  };
  // Name of a sum over workers: sums within a step have one name in all steps.
  struct SumName {
    explicit SumName(const Message& request);
    auto operator<=>(const SumName&) const = default;
    std::string name;
    std::optional<uint64_t> step;
  };
  using Due = std::vector<std::pair<Answer, MessageRef>>;  // answers to send when the lock is free

  MessageRef dispatch(Trainer& trainer, const MessageRef& request, Due* due);
  MessageRef hello(Trainer& trainer, const MessageRef& message);
  void check_fits(const Message& request) const;
  void check_known(const Trainer& trainer, const Header& h) const;
  void keep_hello(const MessageRef& message);
  static void begin_again(Trainer& trainer, uint64_t incarnation);
  MessageRef exchange(const MessageRef& request, Due* due);
  MessageRef rows(const Message& request, uint64_t round);
  MessageRef link(const Message& request);
  MessageRef give_rows(const Message& request);
  MessageRef reduce(const MessageRef& request, Due* due);
  MessageRef complete(Trainer& trainer, const MessageRef& request, Due* due);
  ServerStats stats_now() const;
  MessageRef tell_stats() const;
  void count_pushed(const Message& message, int64_t micros);
  bool repeated(Trainer& trainer, const MessageRef& request, Answer* answer, Due* due);
  void end(int trainer, MessageRef answer, Due* due);
  bool all_came(const Meeting& meeting) const;
  void step_if_all_came(uint32_t last, Due* due);
  void next_step();
  void forget_requests(uint32_t trainer);
  void reduce_if_all_came(const SumName& name, uint32_t last, Due* due);
  void count_awaited(const Meeting& meeting, uint32_t trainer);
  void apply(const std::vector<MessageRef>& messages);
  void apply_now(const std::vector<MessageRef>& messages);
  MessageRef answer_to(const Message& request);
  MessageRef variables_for(const Message& request);
  void note_rows(const Message& request);
  std::vector<uint32_t> tables_of(const Message& request) const;
  MessageRef sum_of(const Meeting& meeting) const;
  void give_up(Meeting& meeting, const std::string& what, Due* due);
  Milliseconds patience_of(const Meeting& meeting) const;
  MessageRef refusal(Verb verb, const Error& error) const;
  Error no_memory(const Message& request) const;
  // Runs fn for a request. A server without memory refuses the request and keeps running.
  template <class Fn> auto with_memory(const Message& request, Fn&& fn) const {
    try {
      return fn();
    } catch (const std::bad_alloc&) {
      throw no_memory(request);
    }
  }
  void give(Due& due, uint64_t position);
  static bool pushes(const Message& request);
  void count_updates(std::span<const MessageRef> messages);
  void count_lost(Trainer& trainer, const Message& request);
  MessageRef answer_once_more(Trainer& trainer, const Message& request);

  // ---- server_files.cc
  static bool is_about_files(Verb verb);
  MessageRef files(const MessageRef& request);
  MessageRef offer_files(const MessageRef& request);
  MessageRef files_offered() const;
  MessageRef take_file(const MessageRef& request);
  MessageRef lease_file(const Message& record);
  MessageRef end_file(const MessageRef& request);
  MessageRef file_ended(const Message& record);
  MessageRef replay_files(const Message& record);
  std::string tell_files() const;

  // ---- server_state.cc
  using State = std::vector<std::shared_ptr<Message>>;  // except for the store's contents
  void resume();
  State state() const;
  std::shared_ptr<Message> state_of(uint32_t trainer) const;
  void load(const MessageRef& record, std::set<std::string>* variables);
  void load_head(const Message& record);
  void load_trainer(const Message& record);
  void replay(const std::vector<MessageRef>& messages);
  void replay_updates(const std::vector<MessageRef>& messages);
  void count_left_out(const std::vector<MessageRef>& messages);
  void tell_left_out();

  // ---- server_snapshot.cc
  // The current snapshot and its writer. Its lock is taken before the server's.
  struct Snapshot {
    uint64_t number = 0;
    State state;
    std::unique_ptr<Saving> values;
    std::unique_ptr<SnapshotFile> file = nullptr;  // null: not started
    bool write_slice(History& history);            // false: that was the last one
  };
  struct Writing {
    std::mutex mutex;
    Server* server = nullptr;            // null: destroyed
    std::unique_ptr<Snapshot> snapshot;  // null: none is written
  };
  void snapshot_if_due(bool now);
  void write_first_snapshot();
  Snapshot cut();
  bool begin_snapshot(bool now);
  bool write_slice();
  void write_later(uint64_t number);
  void end_snapshot(const std::string& wrong);

  const ServerOptions options_;
  Store& store_;
  // Several threads look up rows concurrently, without the lock for workers and steps: only an update of the store
  // blocks them. Taken after the other lock.
  std::shared_mutex updating_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<History> history_;  // null: nothing is stored
  std::unique_ptr<Levels> levels_;    // if there is a history
  const std::shared_ptr<Writing> writing_ = std::make_shared<Writing>();
  bool resumed_ = false;
  uint64_t life_;                  // incarnation of the server with which the state began
  Description job_;                // that of the state, if the program has none
  TimePoint quiet_until_{};        // after a report of a failed snapshot
  std::atomic<int> answering_{0};  // requests being handled: the server ends after they are answered
  std::vector<Trainer> trainers_;
  uint64_t round_ = 0;  // number of applied steps of sync training
  Meeting step_;
  std::map<SumName, Meeting> reductions_;
  std::map<SumName, MessageRef> sums_of_step_;  // complete sums: for a restarted worker
  std::map<uint32_t, Sum> sums_;
  FileQueues files_;
  ServerStats stats_;
  std::shared_ptr<const rpc::PeerCounts> peers_;  // null: none is watched
  std::map<uint32_t, Traffic> traffic_;           // of tables; entries do not move
  std::map<uint32_t, int64_t> left_out_;          // updates of tables without a journal that a replay does not restore
};

}  // namespace anabranch::ps
