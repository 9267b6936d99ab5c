// Rows of a table that lives on servers alone.
#include <cstring>
#include <unordered_map>

#include "ops/declare/attr_checks.h"
#include "ops/distributed/pieces.h"

namespace anabranch::distributed {
namespace {

// As lookup_table and lookup_table_v2 have it: an id axis of 1 becomes the row, or the row follows the ids.
Shape found_shape(const Meta& ids, int64_t width, bool last_is_one) {
  AB_CHECK(ids.dtype == DType::kInt64, InvalidArgument, "Ids must hold int64, got {}", dtype_name(ids.dtype));
  Shape shape = ids.shape;
  const int last = shape.rank() - 1;
  AB_CHECK(last >= 0 && shape.rank() <= kMaxRank - (last_is_one ? 0 : 1), InvalidArgument,
           "Ids must have an axis, and room for one more, got {}", shape.str());
  if (!last_is_one) {
    shape.push_back(width);
    return shape;
  }
  AB_CHECK(last >= 1 && (shape[last] == 1 || shape[last] == kUnknown), InvalidArgument, "Ids must be [..., 1], got {}",
           shape.str());
  shape.set(last, width);
  return shape;
}

void infer(InferContext& c) {
  AB_CHECK(c.n_in("Ids") == c.n_out("Outputs"), InvalidArgument, "Ids and Outputs must be as many, got {} and {}",
           c.n_in("Ids"), c.n_out("Outputs"));
  const size_t pieces = c.attr<std::vector<std::string>>("table_names").size();
  AB_CHECK(pieces > 0 && pieces == c.attr<std::vector<int64_t>>("height_sections").size() &&
               pieces == c.attr<std::vector<std::string>>("endpoints").size(),
           InvalidArgument, "table_names, height_sections and endpoints must be as many, and one at least");
  const Meta& w = c.in("W");
  AB_CHECK(w.shape.rank() == 2, InvalidArgument, "W must have 2 axes, got {}: has the startup program run?",
           w.shape.str());
  const bool last_is_one = c.attr<std::string>("lookup_table_version") == "lookup_table";
  for (int i = 0; i < c.n_out("Outputs"); ++i) {
    const Meta& ids = c.in("Ids", i);
    c.set_out("Outputs", found_shape(ids, w.shape[1], last_is_one), dtype_from_number(c.attr<int32_t>("dtype")), i);
    c.out("Outputs", i).lod_level = ids.lod_level;
    c.out("Outputs", i).lod = ids.lod;
  }
}

// The distinct ids of all inputs, piece after piece of the table, and where their rows belong.
struct Lookup {
  std::shared_ptr<Pieces> pieces;
  std::vector<int64_t> begins;                                // first row of each piece, and the end of the last
  std::vector<std::vector<int64_t>> wanted;                   // by piece: rows, counted from its begin
  std::unordered_map<int64_t, std::pair<size_t, size_t>> at;  // of an id: piece, place in `wanted`
  std::vector<ps::MessageRef> rows;                           // by piece

  size_t piece_of(int64_t id) const;
  void collect(const KernelContext& c, In ids, int64_t padding);
  void hand_out(const KernelContext& c, In ids, Out out, int64_t padding) const;
};

size_t Lookup::piece_of(int64_t id) const {
  AB_CHECK(id >= 0 && id < begins.back(), InvalidArgument, "Ids must be from 0 to {}, got {}", begins.back() - 1, id);
  return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), id) - begins.begin()) - 1;
}

void Lookup::collect(const KernelContext& c, In ids, int64_t padding) {
  for (auto& w : wanted) w.clear();
  at.clear();
  for (int i = 0; i < ids.count; ++i) {
    const int64_t* id = c.at(ids, i).data<int64_t>();
    for (int64_t k = 0; k < c.at(ids, i).numel(); ++k) {
      if (id[k] == padding && padding >= 0) continue;
      const auto [it, fresh] = at.try_emplace(id[k]);
      if (!fresh) continue;
      const size_t piece = piece_of(id[k]);
      it->second = {piece, wanted[piece].size()};
      wanted[piece].push_back(id[k] - begins[piece]);
    }
  }
}

void Lookup::hand_out(const KernelContext& c, In ids, Out out, int64_t padding) const {
  for (int i = 0; i < ids.count; ++i) {
    const Tensor& keys = c.at(ids, i);
    Tensor& to = c.at(out, i);
    const size_t width = keys.numel() ? to.bytes() / static_cast<size_t>(keys.numel()) : 0;
    auto* row = static_cast<char*>(to.mutable_raw());
    const int64_t* id = keys.data<int64_t>();
    for (int64_t k = 0; k < keys.numel(); ++k, row += width) {
      if (id[k] == padding && padding >= 0) {
        std::memset(row, 0, width);
        continue;
      }
      const auto& [piece, place] = at.at(id[k]);
      std::memcpy(row, rows[piece]->payload(0) + place * width, width);
    }
  }
}

std::shared_ptr<Lookup> lookup(const KernelArgs& op) {
  auto l = std::make_shared<Lookup>();
  const auto& names = op.attr<std::vector<std::string>>("table_names");
  l->pieces =
      std::make_shared<Pieces>(op.attr<int32_t>("trainer_id"), op.attr<std::vector<std::string>>("endpoints"), names);
  l->begins.push_back(0);
  for (const int64_t height : op.attr<std::vector<int64_t>>("height_sections")) {
    AB_CHECK(height >= 0 && height <= INT64_MAX - l->begins.back(), InvalidArgument,
             "height_sections must not be negative, nor add up to more than 2^63 rows, got {}", height);
    l->begins.push_back(l->begins.back() + height);
  }
  l->wanted.resize(names.size());
  l->rows.resize(names.size());
  return l;
}

// Rows must be as wide as the table is declared, whatever the server has.
void check_rows(const ps::Message& m, const Tensor& out, int64_t wanted) {
  const int64_t width = out.shape()[out.shape().rank() - 1];
  AB_CHECK(
      m.parts() == 1 && m.part(0).dtype == static_cast<uint8_t>(out.dtype()) && m.shape(0) == (Shape{wanted, width}),
      ShapeMismatch, "rows of the table must be {} {}, its server sends {}", dtype_name(out.dtype()),
      Shape{wanted, width}.str(), m.parts() == 1 ? m.shape(0).str() : "nothing");
}

Kernel lookup_kernel(const KernelArgs& op) {
  const In ids = op.in("Ids");
  const Out out = op.out("Outputs");
  const auto padding = op.attr<int64_t>("padding_idx");
  return [=, l = lookup(op)](KernelContext& c) {
    ps::Client& client = l->pieces->client();
    l->collect(c, ids, padding);
    std::vector<size_t> ask;
    for (size_t p = 0; p < l->wanted.size(); ++p) {
      if (!l->wanted[p].empty()) ask.push_back(p);
    }
    if (ask.empty()) return l->hand_out(c, ids, out, padding);
    const KernelContext values = c;
    const auto answers = std::make_shared<Answers>(static_cast<int>(ask.size()), LaterContext::of(c).take(),
                                                   [=] { l->hand_out(values, ids, out, padding); });
    for (const size_t p : ask) {
      client.rows(l->pieces->remotes()[p], l->wanted[p], [=](const ps::MessageRef& answer) {
        answers->take(answer, [&](const ps::Message& m) {
          check_rows(m, values.at(out, 0), static_cast<int64_t>(l->wanted[p].size()));
          l->rows[p] = answer;
        });
      });
    }
  };
}

}  // namespace

AB_OP(distributed_lookup_table)
    .doc("Outputs[i] = the rows that Ids[i] names, of a table that is cut by rows over servers.")
    .in_list("Ids", "[..., 1] int64, or [...] for lookup_table_v2")
    .in("W", "[height, width], its shape alone is read")
    .takes("W", Holds::kAnything)
    .out_list("Outputs", "[..., width]; each carries the sequences of its Ids")
    .attr<std::vector<std::string>>("table_names", {""}, "name of the piece on each server")
    .attr<std::vector<int64_t>>("height_sections", {}, "rows of each piece")
    .attr<std::vector<std::string>>("endpoints", {"127.0.0.1:6164"}, "the server of each piece")
    .attr<int32_t>("trainer_id", 0, "of the asking trainer")
    .attr<std::string>("lookup_table_version", "lookup_table", "the op whose shapes hold: lookup_table[_v2]",
                       one_of("lookup_table_version", {"lookup_table", "lookup_table_v2"}))
    .attr<int64_t>("padding_idx", -1, "id that reads as zero; -1: none")
    .attr<int32_t>("dtype", 5, "element type of the table")
    .effects(kMaybeUnset | kCompletesLater)
    .traits(kReceives)
    .infer(infer)
    .no_grad("the gradient is that of the look-up that it stands for")
    .cpu_any(lookup_kernel);

}  // namespace anabranch::distributed
