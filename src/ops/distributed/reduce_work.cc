#include "ops/distributed/reduce_work.h"

#include <cstring>

namespace anabranch::distributed {

using comm::Chunk;
using comm::Collective;
using comm::CollectiveKind;
using comm::Combine;
using comm::Peers;
using comm::What;

void ReduceWork::check(const KernelContext& c, const comm::Group&) const {
  if (!c.value(x).is<SelectedRows>()) return comm::check_combines(how, c[x].dtype());
  AB_CHECK(how == Combine::kSum, Unsupported, "sparse rows of several processes support only the sum, got {}",
           comm::combine_name(how));
}

void ReduceWork::run(const KernelContext& c, Peers& peers, Collective& collective) {
  if (c.value(x).is<SelectedRows>()) return join(c, peers, collective);
  const Tensor& in = c[x];
  Tensor& to = c[out];
  if (in.raw() != to.raw() && in.bytes() > 0) std::memcpy(to.mutable_raw(), in.raw(), in.bytes());
  const Chunk chunk = chunk_of(to);
  collective.all_reduce(peers, about(CollectiveKind::kAllReduce, in, name), how, {&chunk, 1});
}

void ReduceWork::join(const KernelContext& c, Peers& peers, Collective& collective) {
  const SelectedRows& in = c.value(x).rows();
  const Tensor& values = in.value;
  Shape row = values.shape();
  row.set(0, in.height);
  What what(CollectiveKind::kAllGatherRows, values.dtype(), name);
  what.add(row);
  const auto mine = static_cast<int64_t>(in.rows.size());
  collective.agree(peers, what, &mine, sizeof(mine));
  std::vector<size_t> ids(peers.size()), bytes(peers.size());
  const size_t row_bytes = static_cast<size_t>(values.row_elems()) * dtype_size(values.dtype());
  int64_t all = 0;
  for (int r = 0; r < peers.size(); ++r) {
    int64_t rows = 0;
    std::memcpy(&rows, collective.note(r), sizeof(rows));
    AB_CHECK(rows >= 0 && rows < (int64_t{1} << 40), Internal, "{} reports {} rows, which is out of range",
             peers.name(r), rows);
    all += rows;
    ids[r] = static_cast<size_t>(rows) * sizeof(int64_t);
    bytes[r] = static_cast<size_t>(rows) * row_bytes;
  }
  row.set(0, all);
  joined->height = in.height;
  joined->rows.resize(all);
  joined->value.resize(row, values.dtype());
  collective.gather(peers, in.rows.data(), reinterpret_cast<char*>(joined->rows.data()), ids, 3);
  collective.gather(peers, values.raw(), static_cast<char*>(joined->value.mutable_raw()), bytes, 4);
  auto& to = c.value(out).as<SelectedRows>();
  to.rows = joined->rows;
  to.height = joined->height;
  to.value.copy_from(joined->value);
}

}  // namespace anabranch::distributed
