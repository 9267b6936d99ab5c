// ps/ and the servers of engine/: parameter servers, and the workers' requests outside of steps.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "bind.h"
#include "engine/pserver.h"
#include "graph/trainers.h"
#include "link_files.h"
#include "ps/background_exchanger.h"
#include "ps/file_queues.h"
#include "ps/geo.h"
#include "ps/link_copy.h"
#include "ps/table_copy.h"
#include "ps/trainers.h"

namespace anabranch::python {
namespace {

// Waits for an answer, and for Ctrl-C: a request has a deadline, but it is long.
class Waiter {
 public:
  rpc::Answer answer() {
    return [state = state_](rpc::MessageRef m) {
      const std::lock_guard lock(state->mutex);
      state->message = std::move(m);
      state->come.notify_all();
    };
  }
  rpc::MessageRef wait() {
    const Unlocked unlocked;
    std::unique_lock lock(state_->mutex);
    while (!state_->message) {
      if (state_->come.wait_for(lock, std::chrono::milliseconds(100)) == std::cv_status::timeout) check_signals();
    }
    state_->message->throw_if_error();
    return state_->message;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable come;
    rpc::MessageRef message;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

nb::object first_tensor(const rpc::MessageRef& m) {
  for (int i = 0; i < m->parts(); ++i) {
    if (m->part(i).kind != rpc::PartKind::kTensor) continue;
    Tensor out;
    ps::copy_part(*m, i, &out);
    return array_view(std::move(out));
  }
  return nb::none();
}

nb::object reduce(int trainer, const std::string& endpoint, const std::string& name, nb::handle array) {
  Waiter waiter;
  if (array.is_none()) {
    ps::client_of(trainer)->reduce(endpoint, name, nullptr, waiter.answer());
  } else {
    const Tensor mine = borrow_array(array);
    ps::client_of(trainer)->reduce(endpoint, name, &mine, waiter.answer());
  }
  return first_tensor(waiter.wait());
}

nb::object pull(int trainer, const std::string& endpoint, const std::string& name) {
  const auto client = ps::client_of(trainer);
  ps::Remote remote;
  {
    const Unlocked unlocked;
    remote = client->remote(endpoint, name);
  }
  Waiter waiter;
  client->pull(remote, waiter.answer());
  return first_tensor(waiter.wait());
}

// shards: (server, name there)
void save_table(int trainer, const std::vector<std::pair<std::string, std::string>>& shards, const std::string& path,
                io::FileSet& files) {
  const auto client = ps::client_of(trainer);
  const Unlocked unlocked;
  std::vector<ps::Remote> remotes;
  for (const auto& [endpoint, name] : shards) remotes.push_back(client->remote(endpoint, name));
  ps::save_table(remotes, path, &files);
}

std::vector<ps::Remote> remotes_of(int trainer, const std::vector<std::pair<std::string, std::string>>& shards) {
  const auto client = ps::client_of(trainer);
  std::vector<ps::Remote> remotes;
  for (const auto& [endpoint, name] : shards) remotes.push_back(client->remote(endpoint, name));
  return remotes;
}

// The rows of a table on servers at one moment, which are written as links of a chain.
class ServerLinks {
 public:
  ServerLinks(int trainer, const std::vector<std::pair<std::string, std::string>>& shards, std::string name, bool whole)
      : name_(std::move(name)), cut_(remotes_of(trainer, shards), whole) {}

  std::pair<uint64_t, uint64_t> write(const std::string& changes, const std::string& whole, uint64_t run_high,
                                      uint64_t run_low, int64_t number, int64_t previous, uint64_t previous_changes,
                                      uint64_t previous_whole) {
    const sparse::LinkPlace place{{run_high, run_low}, number, previous, {previous_changes, previous_whole}, 0};
    return write_link_files(
        changes, whole, [&](io::AtomicFile* all, io::AtomicFile* some) { return cut_.write(name_, place, all, some); });
  }
  void end(uint64_t link) { cut_.end(link); }

 private:
  const std::string name_;
  ps::ServerCut cut_;
};

// The statistics of a server, for any caller.
std::string server_stats(const std::string& endpoint, int64_t deadline_ms) {
  Waiter waiter;
  {
    const Unlocked unlocked;
    rpc::connect_to(endpoint)->call(std::make_shared<rpc::Message>(rpc::Verb::kStats), rpc::Milliseconds(deadline_ms),
                                    waiter.answer());
  }
  const rpc::MessageRef answer = waiter.wait();
  AB_CHECK(answer->parts() > 0 && answer->part(0).kind == rpc::PartKind::kText, Unavailable, "{} is not a server",
           endpoint);
  return std::string(answer->text(0));
}

// The header of a growable table's file and the rows of one part, for any caller; with 0 bits no rows.
nb::bytes table_part(const std::string& endpoint, uint32_t variable, int64_t part, int64_t bits, int64_t deadline_ms) {
  Waiter waiter;
  {
    const Unlocked unlocked;
    auto request = std::make_shared<rpc::Message>(rpc::Verb::kTable);
    request->header().client = UINT32_MAX;
    const int64_t which[] = {part, bits};
    request->add_ids(variable, which);
    rpc::connect_to(endpoint)->call(std::move(request), rpc::Milliseconds(deadline_ms), waiter.answer());
  }
  const rpc::MessageRef answer = waiter.wait();
  std::string out;
  for (int i = 0; i < answer->parts(); ++i) out.append(answer->payload(i), answer->part(i).bytes);
  return nb::bytes(out.data(), out.size());  // NOLINT(modernize-return-braced-init-list)
}

void complete(int trainer) {
  const auto client = ps::find_client(trainer);
  if (!client) return;
  {
    const Unlocked unlocked;
    client->complete();
  }
  ps::forget_client(trainer);
}

std::shared_ptr<ps::Client> client_to_attach(int trainer) {
  auto client = ps::client_of(trainer);
  AB_CHECK(!client->attached(), InvalidArgument, "trainer {} has a communicator that runs", trainer);
  return client;
}

void start_communicator(int trainer, int queue, bool average, int threads) {
  const auto client = client_to_attach(trainer);
  client->attach(std::make_shared<ps::BackgroundExchanger>(*client, ps::BackgroundOptions{queue, average, threads}));
}

// Sends what is left first. Returns what the threads have counted.
nb::dict stop_communicator(int trainer) {
  const auto client = ps::find_client(trainer);
  nb::dict out;
  if (!client || !client->attached()) return out;
  ps::Exchanger::Counts counts;
  {
    const Unlocked unlocked;
    client->attached()->flush();
    counts = client->attached()->counts();
    client->attach(nullptr);
  }
  for (const auto& [name, count] : counts) out[name] = count;
  return out;
}

void flush() {
  const Unlocked unlocked;
  ps::flush_clients();
}

// (parameter, whether it is a table, whether its rule moves all rows, shards: (server, name there, rows))
using GeoParts = std::vector<std::tuple<std::string, std::string, int64_t>>;
using GeoParameter = std::tuple<std::string, bool, bool, GeoParts>;

void start_geo(int trainer, int trainers, int64_t every, Scope& scope, const std::vector<GeoParameter>& parameters) {
  const auto client = client_to_attach(trainer);
  const Unlocked unlocked;
  std::vector<ps::GeoVariable> variables;
  for (const auto& [name, sparse, moves_all, parts] : parameters) {
    ps::GeoVariable& v = variables.emplace_back();
    v.name = name;
    v.sparse = sparse;
    v.moves_all = moves_all;
    v.value = scope.find_shared(name);
    if (!v.value) v.value = scope.share(name);
    for (const auto& [endpoint, there, rows] : parts) {
      v.shards.push_back({client->remote(endpoint, there + ".delta"), client->remote(endpoint, there), rows});
    }
  }
  const auto initialized = [](const ps::GeoVariable& v) { return v.value->initialized(); };
  const bool ready = std::all_of(variables.begin(), variables.end(), initialized);
  auto geo = std::make_shared<ps::Geo>(*client, ps::GeoOptions{trainers, every}, std::move(variables));
  if (ready) geo->started();
  client->attach(std::move(geo));
}

void begin_geo(int trainer) {
  const auto client = ps::find_client(trainer);
  if (!client || !client->attached()) return;
  const Unlocked unlocked;
  client->attached()->started();
}

// ---- files, one by one

rpc::MessageRef ask(int trainer, const std::string& endpoint, std::shared_ptr<rpc::Message> request) {
  Waiter waiter;
  {
    const Unlocked unlocked;
    ps::client_of(trainer)->send(endpoint, std::move(request), waiter.answer());
  }
  return waiter.wait();
}

// Reports that this worker is alive, as long as it is kept.
std::shared_ptr<rpc::Beats> offer_files(int trainer, const std::string& endpoint, const std::string& queue,
                                        const std::vector<std::string>& names) {
  const rpc::MessageRef answer = ask(trainer, endpoint, ps::offer_files(queue, names));
  AB_CHECK(answer->parts() == 1 && answer->part(0).kind == rpc::PartKind::kNeeded && answer->needed(0).size() == 1,
           Unavailable, "{} does not report the heartbeat interval for workers", endpoint);
  return ps::client_of(trainer)->beats(endpoint, rpc::Milliseconds(answer->needed(0)[0]));
}

// (number, name, number of files left); or whether there will be none.
nb::object take_file(int trainer, const std::string& endpoint, const std::string& queue) {
  const rpc::MessageRef answer = ask(trainer, endpoint, ps::take_file(queue));
  if (answer->parts() == 0) return nb::bool_((answer->header().flags & rpc::Header::kOver) != 0);
  AB_CHECK(answer->parts() == 2 && answer->part(0).kind == rpc::PartKind::kIds && answer->ids(0).size() == 1 &&
               answer->part(1).kind == rpc::PartKind::kText,
           Unavailable, "{} gives a file without a name", endpoint);
  const std::string_view name = answer->text(1);
  return nb::make_tuple(answer->ids(0)[0], nb::str(name.data(), name.size()), answer->header().round);
}

// Whether the report counts.
bool end_file(int trainer, const std::string& endpoint, const std::string& queue, int64_t file) {
  return ask(trainer, endpoint, ps::end_file(queue, file, true))->header().flags & rpc::Header::kTrained;
}

// Does not wait: the server may be the cause of the failure, and will find out by itself.
void give_back_file(int trainer, const std::string& endpoint, const std::string& queue, int64_t file) {
  ps::client_of(trainer)->send(endpoint, ps::end_file(queue, file, false), [](const rpc::MessageRef&) {});
}

bool serve(PServer& server) {
  const Unlocked unlocked;
  return server.run([] {
    check_signals();
    return false;
  });
}

}  // namespace

void bind_ps(nb::module_& m) {
  nb::enum_<rpc::Mode>(m, "Mode", nb::is_arithmetic())
      .value("SYNC", rpc::Mode::kSync)
      .value("ASYNC", rpc::Mode::kAsync)
      .value("HALF_ASYNC", rpc::Mode::kHalfAsync)
      .value("GEO", rpc::Mode::kGeo);
  m.attr("GEO_START") = rpc::kGeoStart;
  m.def("workers_of", [](const ir::ProgramRef& program) { return workers_of(*program); });
  m.def("servers_of", [](const ir::ProgramRef& program) { return servers_of(*program); });
  m.def("starts_geo", [](const ir::ProgramRef& program) { return starts_geo(*program); });
  m.def("served_endpoint", [](const ir::ProgramRef& program) { return served_endpoint(*program); });
  nb::class_<PServer>(m, "PServer")
      .def(nb::init<ir::ProgramRef, std::shared_ptr<Scope>>())
      .def_prop_ro("endpoint", &PServer::endpoint)
      .def("serve", &serve)
      .def("stats", [](const PServer& s) {
        const ps::ServerStats t = s.stats();
        nb::dict out;
        out["requests"] = t.requests;
        out["repeated"] = t.repeated;
        out["refused"] = t.refused;
        out["malformed"] = t.malformed;
        out["unread"] = t.unread;
        out["updates"] = t.updates;
        out["rows"] = t.rows;
        return out;
      });
  m.def("ps_reduce", &reduce, nb::arg("trainer"), nb::arg("endpoint"), nb::arg("name"), nb::arg("array").none());
  m.def("ps_start_communicator", &start_communicator);
  m.def("ps_stop_communicator", &stop_communicator);
  m.def("ps_start_geo", &start_geo);
  m.def("ps_begin_geo", &begin_geo);
  m.def("ps_flush", &flush);
  m.def("ps_server_stats", &server_stats);
  m.def("ps_table_part", &table_part);
  m.def("ps_pull", &pull);
  m.def("ps_save_table", &save_table);
  m.def(
      "ps_recorded_since",
      [](int trainer, const std::vector<std::pair<std::string, std::string>>& shards) {
        return ps::recorded_since(remotes_of(trainer, shards));
      },
      CallUnlocked());
  nb::class_<ServerLinks>(m, "ServerLinks")
      .def(nb::init<int, const std::vector<std::pair<std::string, std::string>>&, std::string, bool>(), CallUnlocked())
      .def("write", &ServerLinks::write, CallUnlocked())
      .def("end", &ServerLinks::end, CallUnlocked());
  static_cast<void>(nb::class_<rpc::Beats>(m, "Beats"));
  m.def("ps_offer_files", &offer_files);
  m.def("ps_take_file", &take_file);
  m.def("ps_end_file", &end_file);
  m.def("ps_give_back_file", &give_back_file);
  m.def("ps_describe", [](int trainer, const std::vector<std::string>& job) { ps::client_of(trainer)->describe(job); });
  m.def("ps_connect", [](int trainer, const std::string& endpoint) {
    const auto client = ps::client_of(trainer);
    const Unlocked unlocked;
    client->connect(endpoint);
  });
  m.def("ps_complete", &complete);
  m.def("ps_forget", [](int trainer) { ps::forget_client(trainer); });
  m.def("ps_stats", [](int trainer) {
    const auto client = ps::client_of(trainer);
    const Unlocked unlocked;
    return client->stats();
  });
}

}  // namespace anabranch::python
