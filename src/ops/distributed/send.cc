// Sends variables, mostly gradients, to the servers that store their parameters.
#include <cstring>
#include <memory>
#include <optional>

#include "ops/distributed/row_shards.h"
#include "ops/distributed/shards.h"
#include "ps/exchanger.h"

namespace anabranch::distributed::send_op {
namespace {

const std::string kLocalName = "127.0.0.1:6164";

// Destinations: a variable per server, one variable split by rows, or one sent to all servers.
struct Parcels {
  std::shared_ptr<Shards> shards;
  std::optional<RowShards> cut;  // of the single X
  int variables = 0;
  std::vector<int64_t> ids;  // of sparse rows in one shard, relative to its first row
  Tensor values;
  std::unique_ptr<ps::Client::Batch> own;  // what the exchanger leaves to this op
  ps::Exchanger* exchanger = nullptr;      // of this run

  void start() {
    ps::Client& client = shards->client();
    exchanger = &client.exchanger(shards->remotes()[0]);
    if (!own) own = std::make_unique<ps::Client::Batch>(client);
    own->clear();
  }
  void give(size_t i, const ps::Gradient& gradient) { exchanger->push(shards->remotes()[i], gradient, own.get()); }
  void push(const Value& x, size_t i);
  void push_shard(const Value& x, const RowShards& part, size_t i);
};

void Parcels::push(const Value& x, size_t i) {
  if (const auto* rows = x.get<SelectedRows>()) {
    const Tensor& v = rows->value;
    return give(i, {rows->rows, rows->height, v.raw(), v.dtype(), v.row_elems()});
  }
  give(i, x.tensor());
}

void Parcels::push_shard(const Value& x, const RowShards& part, size_t i) {
  const auto* rows = x.get<SelectedRows>();
  if (!rows) {
    AB_CHECK(!part.by_hash(), InvalidArgument, "send: X must be sparse rows for a growable table, got {}",
             x.tensor().shape().str());
    const int64_t begin = part.begin_of(i), end = begin + part.rows_of(i);
    AB_CHECK(end <= x.tensor().rows(), ShapeMismatch, "send: sections must end within X, got row {} of {}", end,
             x.tensor().shape().str());
    return give(i, x.tensor().row_range(begin, end));
  }
  const int64_t width = rows->value.row_elems();
  const size_t bytes = static_cast<size_t>(width) * dtype_size(rows->value.dtype());
  ids.clear();
  values.resize(rows->value.shape(), rows->value.dtype());
  const auto* from = static_cast<const char*>(rows->value.raw());
  auto* out = static_cast<char*>(values.mutable_raw());
  for (size_t k = 0; k < rows->rows.size(); ++k) {
    if (!part.is_in(rows->rows[k], i)) continue;
    std::memcpy(out + ids.size() * bytes, from + k * bytes, bytes);
    ids.push_back(part.within(rows->rows[k], i));
  }
  give(i, {ids, part.rows_of(i), values.raw(), values.dtype(), width});
}

std::shared_ptr<Parcels> parcels(const KernelArgs& op) {
  auto p = std::make_shared<Parcels>();
  const auto& arguments = op.op().input("X");
  const auto& endpoints = op.attr<std::vector<std::string>>("epmap");
  auto names = names_or(op, "send_varnames", arguments);
  p->variables = static_cast<int>(arguments.size());
  if (names.size() == 1 && endpoints.size() > 1) names.resize(endpoints.size(), std::string(names[0]));
  if (p->variables == 1 && endpoints.size() > 1) {
    const auto& sections = op.attr<std::vector<int64_t>>("sections");
    if (sections.size() == endpoints.size()) p->cut.emplace("sections", sections);
  }
  p->shards = std::make_shared<Shards>(op.attr<int32_t>("trainer_id"), endpoints, std::move(names), parameter_of(op));
  return p;
}

// In GEO training a step ends with a send without destination: its X are the ids that the step has looked up, and
// send_varnames names the tables.
bool tells_of_rows(const KernelArgs& op) {
  return (op.op().role() & ir::role::kRpc) == 0 &&
         op.attr<std::vector<std::string>>("epmap") == std::vector{kLocalName};
}

Kernel note_kernel(const KernelArgs& op) {
  const In x = op.in("X");
  const auto& tables = op.attr<std::vector<std::string>>("send_varnames");
  const int trainer = op.attr<int32_t>("trainer_id");
  if (tables == std::vector<std::string>{rpc::kGeoStart})
    return [](KernelContext&) {};  // the caller of this program starts to count differences
  AB_CHECK(static_cast<int>(tables.size()) == x.count, InvalidArgument,
           "send: each X must have a table in send_varnames, got {} and {}", x.count, tables.size());
  return [=](KernelContext& c) {
    ps::Exchanger& geo = ps::client_of(trainer)->exchanger();
    for (int i = 0; i < x.count; ++i) {
      const Tensor& ids = c.value(x, i).tensor();
      AB_CHECK(ids.dtype() == DType::kInt64 && ids.contiguous(), InvalidArgument, "send: X[{}] must hold int64, got {}",
               i, dtype_name(ids.dtype()));
      geo.note(tables[static_cast<size_t>(i)], std::span(ids.data<int64_t>(), static_cast<size_t>(ids.numel())));
    }
    geo.end_local_step();
  };
}

Kernel send_kernel(const KernelArgs& op) {
  if (tells_of_rows(op)) return note_kernel(op);
  const In x = op.in("X");
  return [x, p = parcels(op)](KernelContext& c) {
    p->start();
    for (size_t i = 0; i < p->shards->remotes().size(); ++i) {
      const Value& value = c.value(x, p->variables == 1 ? 0 : static_cast<int>(i));
      AB_CHECK(value.initialized(), NotFound, "send: variable {} of X has no value", i);
      p->cut ? p->push_shard(value, *p->cut, i) : p->push(value, i);
    }
    if (!p->own->empty()) p->own->exchange(end_of(c));
  };
}

AB_OP(send)
    .doc("Sends each X to a server. With sections, X is one variable whose rows are split over the servers.")
    .in_list("X", "tensors or sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out_list("Out", "not written; orders later ops after this one")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<std::vector<std::string>>("epmap", {kLocalName}, "server of each slice")
    .attr<std::vector<int64_t>>("sections", {},
                                "number of rows of each slice, -1 for a growable table; empty: X is not split")
    .attr<std::vector<std::string>>("send_varnames", {}, "name of each slice on its server")
    .attr<int32_t>("num", 0, "number of equal slices")
    .attr<bool>("merge_add", false, "adds up waiting gradients instead of averaging them")
    .attr<bool>("use_send_handler", true, "waits for the answer of the server")
    .effects(kTalks | kAsynchronous)
    .traits(kSends)
    .infer(keep_declared)
    .no_grad("moves values between processes")
    .cpu_any(send_kernel);

}  // namespace
}  // namespace anabranch::distributed::send_op
