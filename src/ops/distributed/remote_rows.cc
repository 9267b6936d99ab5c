#include "ops/distributed/remote_rows.h"

#include <algorithm>
#include <cstring>

#include "ops/distributed/distinct_ids.h"
#include "ops/distributed/row_shards.h"

namespace anabranch::distributed {
namespace {

constexpr uint32_t kPadding = UINT32_MAX;

// The distinct ids of all inputs, shard by shard, and the destinations of their rows.
struct Lookup {
  Lookup(const KernelArgs& op, const RemoteReading& reading);

  const RemoteReading how;
  RowShards cut;
  std::shared_ptr<Shards> shards;
  struct Source {
    uint32_t shard, row;  // index into `needed`
  };
  std::vector<std::vector<int64_t>> needed;  // by shard: local row numbers
  DistinctIds distinct;
  std::vector<Source> sources;        // of the distinct ids
  std::vector<uint32_t> numbers;      // for each id of all inputs: the index of its distinct id
  std::vector<rpc::MessageRef> rows;  // by shard

  bool is_padding(int64_t id) const { return how.has_padding && id == how.padding; }
  void collect(const KernelContext& c, In ids);
  void scatter(const KernelContext& c, In ids, Out out) const;
};

Lookup::Lookup(const KernelArgs& op, const RemoteReading& reading)
    : how(reading), cut("height_sections", op.attr<std::vector<int64_t>>("height_sections")) {
  const auto& names = op.attr<std::vector<std::string>>("table_names");
  shards =
      std::make_shared<Shards>(op.attr<int32_t>("trainer_id"), op.attr<std::vector<std::string>>("endpoints"), names);
  needed.resize(names.size());
  rows.resize(names.size());
}

void Lookup::collect(const KernelContext& c, In ids) {
  for (auto& w : needed) w.clear();
  sources.clear();
  numbers.clear();
  size_t all = 0;
  for (int i = 0; i < ids.count; ++i) all += static_cast<size_t>(c.at(ids, i).numel());
  distinct.begin(all);
  for (int i = 0; i < ids.count; ++i) {
    const int64_t* id = c.at(ids, i).data<int64_t>();
    for (int64_t k = 0; k < c.at(ids, i).numel(); ++k) {
      if (is_padding(id[k])) {
        numbers.push_back(kPadding);
        continue;
      }
      bool fresh = false;
      numbers.push_back(distinct.number(id[k], &fresh));
      if (!fresh) continue;
      AB_CHECK(cut.has(id[k]), InvalidArgument, "Ids must be from 0 to {}, got {}", cut.rows() - 1, id[k]);
      const size_t shard = cut.shard_of(id[k]);
      sources.push_back({static_cast<uint32_t>(shard), static_cast<uint32_t>(needed[shard].size())});
      needed[shard].push_back(cut.within(id[k], shard));
    }
  }
}

void Lookup::scatter(const KernelContext& c, In ids, Out out) const {
  const uint32_t* number = numbers.data();
  for (int i = 0; i < ids.count; ++i) {
    const int64_t n = c.at(ids, i).numel();
    Tensor& to = c.at(out, i);
    const size_t width = n ? to.bytes() / static_cast<size_t>(n) : 0;
    auto* row = static_cast<char*>(to.mutable_raw());
    for (int64_t k = 0; k < n; ++k, row += width, ++number) {
      if (*number == kPadding) {
        std::memset(row, 0, width);
      } else {
        const Source& p = sources[*number];
        std::memcpy(row, rows[p.shard]->payload(0) + p.row * width, width);
      }
    }
  }
}

// Rows must have the declared width of the table, not that of the answer.
void check_rows(const rpc::Message& m, const Tensor& out, int64_t needed) {
  const int64_t width = out.shape()[out.shape().rank() - 1];
  AB_CHECK(
      m.parts() == 1 && m.part(0).dtype == static_cast<uint8_t>(out.dtype()) && m.shape(0) == (Shape{needed, width}),
      ShapeMismatch, "rows of the table must be {} {}, got {} from its server", dtype_name(out.dtype()),
      Shape{needed, width}.str(), m.parts() == 1 ? m.shape(0).str() : "nothing");
}

}  // namespace

Shape found_shape(const Meta& ids, int64_t width, bool last_is_one) {
  AB_CHECK(ids.dtype == DType::kInt64, InvalidArgument, "Ids must hold int64, got {}", dtype_name(ids.dtype));
  Shape shape = ids.shape;
  const int last = shape.rank() - 1;
  AB_CHECK(last >= 0 && shape.rank() <= kMaxRank - (last_is_one ? 0 : 1), InvalidArgument,
           "Ids must have at least one axis and room for another, got {}", shape.str());
  if (!last_is_one) {
    shape.push_back(width);
    return shape;
  }
  AB_CHECK(last >= 1 && (shape[last] == 1 || shape[last] == kUnknown), InvalidArgument, "Ids must be [..., 1], got {}",
           shape.str());
  shape.set(last, width);
  return shape;
}

void check_remote_table(const InferContext& c) {
  AB_CHECK(c.n_in("Ids") == c.n_out("Outputs"), InvalidArgument,
           "Ids and Outputs must have the same length, got {} and {}", c.n_in("Ids"), c.n_out("Outputs"));
  const size_t shards = c.attr<std::vector<std::string>>("table_names").size();
  AB_CHECK(shards > 0 && shards == c.attr<std::vector<int64_t>>("height_sections").size() &&
               shards == c.attr<std::vector<std::string>>("endpoints").size(),
           InvalidArgument, "table_names, height_sections and endpoints must have the same length, at least 1");
}

Kernel remote_rows_kernel(const KernelArgs& op, const RemoteReading& how) {
  const In ids = op.in("Ids");
  const Out out = op.out("Outputs");
  return [=, l = std::make_shared<Lookup>(op, how)](KernelContext& c) {
    ps::Client& client = l->shards->client();
    l->collect(c, ids);
    auto left = std::count_if(l->needed.begin(), l->needed.end(), [](const auto& rows) { return !rows.empty(); });
    if (left == 0) return l->scatter(c, ids, out);
    const KernelContext values = c;
    const auto answers = std::make_shared<Answers>(static_cast<int>(left), AsyncContext::of(c).take(),
                                                   [=] { l->scatter(values, ids, out); });
    // The last answer completes the node, and the next run may write `needed`: read nothing after it.
    for (size_t p = 0; left > 0; ++p) {
      if (l->needed[p].empty()) continue;
      --left;
      const auto take = [=](const rpc::MessageRef& answer) {
        answers->take(answer, [&](const rpc::Message& m) {
          check_rows(m, values.at(out, 0), static_cast<int64_t>(l->needed[p].size()));
          l->rows[p] = answer;
        });
      };
      client.rows(l->shards->remotes()[p], l->needed[p], take, l->how.trains);
    }
  };
}

}  // namespace anabranch::distributed
