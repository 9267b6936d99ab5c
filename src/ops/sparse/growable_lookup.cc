// Growable embedding tables in a program: the op that creates one, the lookup and its gradient. The variable of a table
// is declared as SELECTED_ROWS of unknown height and holds a sparse::GrowableTable.
#include <algorithm>
#include <memory>

#include "opdef/op_def.h"
#include "ops/declare/attr_checks.h"
#include "ops/kernels/ids.h"
#include "ops/sparse/look_up.h"
#include "sparse/growable_table.h"
#include "sparse/hash.h"

namespace anabranch::sparse::growable_lookup_op {
namespace {

void declare_table(InferContext& c, const char* slot, int64_t width) {
  Meta& out = c.out(slot);
  out.kind = c.runtime() ? VarKind::kRaw : VarKind::kSelectedRows;  // RAW: the kernel fills it
  out.shape = Shape{kUnknown, width};
  out.dtype = DType::kFloat32;
}

// ---- create_growable_table

const std::vector<std::string> kPolicies = {"lru", "lfu", "score"};                  // by number of Policy
const std::vector<std::string> kStarts = {"uniform", "normal", "truncated_normal"};  // by number of Start

int64_t number_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) - names.begin();
}

TableOptions options_of(const KernelArgs& op) {
  TableOptions o;
  o.width = op.attr<int64_t>("width");
  const auto& rule = op.attr<std::string>("rule");
  o.rule = rule.empty() ? static_cast<RowRule>(op.attr<int32_t>("moments")) : row_rule(rule);
  o.moment_start = op.attr<float>("moment_start");
  const RandomKey random = op.random();
  o.seed = static_cast<uint64_t>(op.attr<int32_t>("seed"));
  if (o.seed == 0) o.seed = random.seed ^ hash_id(static_cast<int64_t>(random.stream) + 1);
  o.start = static_cast<Start>(number_of(kStarts, op.attr<std::string>("start")));
  o.low = op.attr<float>("low");
  o.high = op.attr<float>("high");
  o.max_bytes = op.attr<int64_t>("max_bytes");
  o.evict = op.attr<bool>("evict");
  o.admit_count = op.attr<int32_t>("admit_count");
  o.admit_probability = op.attr<float>("admit_probability");
  o.expire_after = op.attr<int64_t>("expire_after");
  o.timed = op.attr<bool>("timed");
  o.policy = static_cast<Policy>(number_of(kPolicies, op.attr<std::string>("policy")));
  o.score = {.show = op.attr<float>("show_coeff"),
             .click = op.attr<float>("click_coeff"),
             .decay = op.attr<float>("decay"),
             .delete_below = op.attr<float>("delete_below"),
             .shrink_every = op.attr<int64_t>("shrink_every")};
  o.by_updates = op.attr<bool>("by_updates");
  o.servers = op.attr<int32_t>("servers");
  o.tells = op.attr<bool>("tells");
  return o;
}

AB_OP(create_growable_table)
    .doc("Out = an empty growable table, whose rows are created when training first uses their keys.")
    .out("Out", "the table")
    .required_attr("width", AttrType::kLong, "number of float32 elements of a row")
    .attr<std::string>("rule", "", "the update whose moments are stored with each row, as growable_update has it",
                       [](const std::string& v) {
                         if (!v.empty()) row_rule(v);
                       })
    .attr<int32_t>("moments", 0, "without rule, as in older programs: 0 for sgd, 1 for adagrad, 2 for adam",
                   within<int32_t>("moments", 0, 2))
    .attr<float>("moment_start", 0.0f, "initial value of the moments")
    .attr<int32_t>(
        "seed", 0,
        "determines, with the key, the initial values of a row; 0: uses the seed of the program or the process")
    .attr<std::string>("start", "uniform", "initial values: uniform, normal or truncated_normal",
                       one_of("start", kStarts))
    .attr<float>("low", 0.0f, "uniform initial values are in [low, high); the mean of normal ones")
    .attr<float>("high", 0.0f, "see low; the standard deviation of normal ones")
    .attr<int64_t>("max_bytes", 0, "memory limit of the table; 0: no limit")
    .attr<bool>("evict", true, "evicts old rows at the limit; false: rejects new keys")
    .attr<int32_t>("admit_count", 1, "number of sightings after which a key gets a row, 1 to 255")
    .attr<float>("admit_probability", 1.0f, "probability that an update creates a row for its key")
    .attr<int64_t>("expire_after", 0, "removes rows that are not seen for this number of updates; 0: never")
    .attr<bool>("timed", false, "expire_after counts seconds in the time of events, not updates")
    .attr<std::string>("policy", "lru", "the row that leaves at the limit: lru (oldest), lfu (rarest) or score",
                       one_of("policy", kPolicies))
    .attr<float>("show_coeff", 0.1f, "score = show_coeff * (shows - clicks) + click_coeff * clicks")
    .attr<float>("click_coeff", 1.0f, "see show_coeff")
    .attr<float>("decay", 0.98f, "factor of shows and clicks at each shrink")
    .attr<float>("delete_below", 0.0f, "a shrink removes rows with a lower score")
    .attr<int64_t>("shrink_every", 0, "number of updates between two shrinks of a row; 0: never")
    .attr<bool>("by_updates", false,
                "updates create rows, and lookups only read; false: lookups in training create them")
    .attr<int32_t>("servers", 1, "number of servers that hold the table together")
    .attr<bool>("tells", false, "on a server of GEO training: workers are told which rows the rules have changed")
    .effects(kRandom)
    .infer([](InferContext& c) { declare_table(c, "Out", c.attr<int64_t>("width")); })
    .no_grad("it creates a table")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const TableOptions options = options_of(op);
      return [=, name = op.op().output("Out").at(0), out = op.out("Out")](KernelContext& c) {
        GrowableTable::put(&c.value(out), std::make_shared<GrowableTable>(name, options));
      };
    });

// ---- lookup_growable

Shape shape_of_rows(const InferContext& c) {
  return looked_up_shape(c, c.attr<bool>("last_is_one"), c.attr<int64_t>("width"));
}

AB_OP(lookup_growable)
    .doc(
        "Out[i, :] = the row of key Ids[i], any 64-bit number. A key without a row reads as its initial row in "
        "training "
        "if updates create rows. Otherwise its lookup in training is counted and may create the row, and it reads as "
        "zeros.")
    .in("W", "the table")
    .takes("W", Holds::kAnything)
    .in("Ids", "[...] int32 or int64, or [..., 1] with last_is_one")
    .out("Out", "[..., width]; with the LoD of Ids")
    .required_attr("width", AttrType::kLong, "number of elements of a row")
    .attr<bool>("last_is_one", false, "the last extent of Ids is 1 and is replaced by the width")
    .attr<bool>("has_padding", false, "one id is a padding id")
    .attr<int64_t>("padding_idx", -1, "id that reads as zeros and gets no row and no gradient, if has_padding")
    .attr<bool>("is_test", false, "lookups count no key and create no row")
    .traits(kOnlyComputes)
    .effects(kOrdered)  // admission and eviction depend on the order of the keys
    .infer([](InferContext& c) {
      c.set_out("Out", shape_of_rows(c), DType::kFloat32);
      c.share_lod("Out", "Ids");
    })
    .grad_reads({"W", "Ids"})
    .grad_to({"W"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In w = op.in("W"), ids = op.in("Ids");
      const Out out = op.out("Out");
      const int64_t width = op.attr<int64_t>("width"), padding = op.attr<int64_t>("padding_idx");
      const bool padded = op.attr<bool>("has_padding"), train = !op.attr<bool>("is_test");
      const auto converted = std::make_shared<Tensor>();
      const auto scratch = std::make_shared<KeyOrder>();
      return [=, name = op.op().input("W").at(0)](KernelContext& c) {
        const auto table = GrowableTable::of(c.value(w));
        AB_CHECK(table != nullptr, NotFound, "variable {} must hold a growable table", name);
        AB_CHECK(table->options().width == width, ShapeMismatch, "the rows of table {} must have {} elements, got {}",
                 name, width, table->options().width);
        const int64_t* keys = as_int64(c[ids], converted.get());
        table->pull(keys, c[ids].numel(), {.train = train, .padding = padded ? &padding : nullptr},
                    c[out].mutable_data<float>(), scratch.get(), c.parallel);
      };
    });

// ---- its gradient

AB_GRAD(lookup_growable)
    .doc("W@GRAD = a row of Out@GRAD for every key, as SELECTED_ROWS of unknown height.")
    .takes("W", Holds::kAnything)
    .infer([](InferContext& c) {
      check_shape(c, "Out@GRAD", shape_of_rows(c));
      if (!c.has_out("W@GRAD")) return;
      Meta& out = c.out("W@GRAD");
      out.kind = VarKind::kSelectedRows;
      out.shape = Shape{kUnknown, c.attr<int64_t>("width")};
      out.dtype = DType::kFloat32;
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In ids = op.in("Ids"), dout = op.in("Out@GRAD");
      const Out dw = op.out("W@GRAD");
      const int64_t width = op.attr<int64_t>("width"), padding = op.attr<int64_t>("padding_idx");
      const bool padded = op.attr<bool>("has_padding");
      const auto converted = std::make_shared<Tensor>();
      return [=](KernelContext& c) {
        if (!c.needs(dw)) return;
        auto& rows = c.value(dw).as<SelectedRows>();
        rows.height = kUnknown;
        take_rows(as_int64(c[ids], converted.get()), c[ids].numel(), padded ? &padding : nullptr, c[dout].data<float>(),
                  width, &rows);
      };
    });

}  // namespace
}  // namespace anabranch::sparse::growable_lookup_op
