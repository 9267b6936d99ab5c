// Growable tables in a program: the op that makes one, the look-up and its gradient. The variable of a table is
// declared as SELECTED_ROWS of unknown height and holds a sparse::GrowableTable.
#include <algorithm>
#include <memory>

#include "opdef/op_def.h"
#include "ops/declare/checks.h"
#include "ops/kernels/ids.h"
#include "sparse/growable_table.h"
#include "sparse/hash.h"

namespace anabranch {
namespace {

using sparse::GrowableTable;

void declare_table(InferContext& c, const char* slot, int64_t width) {
  Meta& out = c.out(slot);
  out.kind = c.runtime() ? VarKind::kRaw : VarKind::kSelectedRows;  // RAW: the kernel fills it
  out.shape = Shape{kUnknown, width};
  out.dtype = DType::kFloat32;
}

// ---- create_growable_table

sparse::TableOptions options_of(const KernelArgs& op) {
  sparse::TableOptions o;
  o.width = op.attr<int64_t>("width");
  o.moments = op.attr<int32_t>("moments");
  o.moment_start = op.attr<float>("moment_start");
  const RandomKey random = op.random();
  o.seed = static_cast<uint64_t>(op.attr<int32_t>("seed"));
  if (o.seed == 0) o.seed = random.seed ^ sparse::hash_id(static_cast<int64_t>(random.stream) + 1);
  o.low = op.attr<float>("low");
  o.high = op.attr<float>("high");
  o.max_bytes = op.attr<int64_t>("max_bytes");
  o.evict = op.attr<bool>("evict");
  o.admit_count = op.attr<int32_t>("admit_count");
  o.admit_probability = op.attr<float>("admit_probability");
  o.expire_after = op.attr<int64_t>("expire_after");
  return o;
}

AB_OP(create_growable_table)
    .doc("Out = an empty table whose rows appear when their keys are first looked up in training.")
    .out("Out", "the table")
    .required_attr("width", AttrType::kLong, "numbers of a row, float32")
    .attr<int32_t>("moments", 0, "of the optimizer, kept beside each row: 0 for SGD, 1 for Adagrad, 2 for Adam")
    .attr<float>("moment_start", 0.0f, "their first value")
    .attr<int32_t>("seed", 0, "with the key it decides the first value of a row; 0: of the program or the process")
    .attr<float>("low", 0.0f, "rows begin uniform in [low, high)")
    .attr<float>("high", 0.0f, "see low; equal: all numbers begin as low")
    .attr<int64_t>("max_bytes", 0, "memory that the table may take; 0: no limit")
    .attr<bool>("evict", true, "at the limit old rows make room; false: new keys are refused")
    .attr<int32_t>("admit_count", 1, "a key gets a row when it is seen for this time, 1 to 255")
    .attr<float>("admit_probability", 1.0f, "a key gets a row with this probability each time that it is seen")
    .attr<int64_t>("expire_after", 0, "a row that is not seen for this many updates goes; 0: never")
    .effects(kRandom)
    .infer([](InferContext& c) { declare_table(c, "Out", c.attr<int64_t>("width")); })
    .no_grad("makes a table")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const sparse::TableOptions options = options_of(op);
      return [=, name = op.op().output("Out").at(0), out = op.out("Out")](KernelContext& c) {
        GrowableTable::put(&c.value(out), std::make_shared<GrowableTable>(name, options));
      };
    });

// ---- lookup_growable

Shape shape_of_ids(const InferContext& c) {
  const Meta& ids = c.in("Ids");
  check_tensor(c, "Ids");
  AB_CHECK(ids.dtype == DType::kInt64 || ids.dtype == DType::kInt32, InvalidArgument,
           "{}: Ids holds {}, expected int64", op_name(c), dtype_name(ids.dtype));
  Shape shape = ids.shape;
  const int last = shape.rank() - 1;
  if (c.attr<bool>("last_is_one")) {
    AB_CHECK(last >= 1 && (shape[last] == 1 || shape[last] == kUnknown), InvalidArgument,
             "{}: Ids is {}, expected [..., 1]", op_name(c), shape.str());
    shape.set(last, c.attr<int64_t>("width"));
  } else {
    AB_CHECK(shape.rank() < kMaxRank, InvalidArgument, "{}: Ids is {}, expected at most {} axes", op_name(c),
             shape.str(), kMaxRank - 1);
    shape.push_back(c.attr<int64_t>("width"));
  }
  return shape;
}

OpDef& declare_attrs(OpDef& def) {
  return def.required_attr("width", AttrType::kLong, "numbers of a row")
      .attr<bool>("last_is_one", false, "the last extent of Ids is 1 and becomes the width")
      .attr<bool>("has_padding", false, "one id is padding")
      .attr<int64_t>("padding_idx", -1, "this id reads as zeros, gets no row and no gradient, if has_padding");
}

[[maybe_unused]] OpDef& lookup =
    declare_attrs(declare_op("lookup_growable", __FILE__))
        .doc(
            "Out[i, :] = the row of key Ids[i], any 64-bit number. In training a key without a row is noted and may "
            "get one; a key without a row reads as zeros.")
        .in("W", "the table")
        .takes("W", Holds::kAnything)
        .in("Ids", "[...] int64, or [..., 1] with last_is_one")
        .out("Out", "[..., width]; carries the sequences of Ids")
        .attr<bool>("is_test", false, "keys leave no trace and get no row")
        .traits(kOnlyComputes)
        .effects(kOrdered)  // what a table admits and evicts depends on the order of the keys
        .infer([](InferContext& c) {
          c.set_out("Out", shape_of_ids(c), DType::kFloat32);
          c.share_lod("Out", "Ids");
        })
        .grad([](GradContext& g) {
          g.op("lookup_growable_grad")
              .in("W", g.in("W"))
              .in("Ids", g.in("Ids"))
              .in("Out@GRAD", g.dout("Out"))
              .out("W@GRAD", g.din("W"));
        })
        .cpu_any([](const KernelArgs& op) -> Kernel {
          const In w = op.in("W"), ids = op.in("Ids");
          const Out out = op.out("Out");
          const int64_t width = op.attr<int64_t>("width"), padding = op.attr<int64_t>("padding_idx");
          const bool padded = op.attr<bool>("has_padding"), train = !op.attr<bool>("is_test");
          const auto converted = std::make_shared<Tensor>();
          const auto scratch = std::make_shared<sparse::KeyOrder>();
          return [=, name = op.op().input("W").at(0)](KernelContext& c) {
            const auto table = GrowableTable::of(c.value(w));
            AB_CHECK(table != nullptr, NotFound, "lookup_growable: variable {} holds no growable table", name);
            AB_CHECK(table->options().width == width, ShapeMismatch,
                     "lookup_growable: the rows of table {} have {} numbers, expected {}", name, table->options().width,
                     width);
            const int64_t* keys = as_int64(c[ids], converted.get());
            table->pull(keys, c[ids].numel(), {.train = train, .padding = padded ? &padding : nullptr},
                        c[out].mutable_data<float>(), scratch.get(), c.parallel);
          };
        });

// ---- its gradient

void take_rows(const int64_t* keys, int64_t n, const int64_t* padding, const float* grads, int64_t width,
               SelectedRows* out) {
  const int64_t kept = n - (padding ? std::count(keys, keys + n, *padding) : 0);
  out->height = kUnknown;
  out->rows.resize(static_cast<size_t>(kept));
  out->value.resize(Shape{kept, width}, DType::kFloat32);
  float* to = out->value.mutable_data<float>();
  if (kept == n) {
    std::copy(keys, keys + n, out->rows.begin());
    std::copy(grads, grads + n * width, to);
    return;
  }
  size_t k = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (keys[i] == *padding) continue;
    to = std::copy(grads + i * width, grads + (i + 1) * width, to);
    out->rows[k++] = keys[i];
  }
}

[[maybe_unused]] OpDef& lookup_grad =
    declare_attrs(declare_op("lookup_growable_grad", __FILE__))
        .doc("Gradient of a growable table: a row of Out@GRAD for every key, as SELECTED_ROWS of unknown height.")
        .in("W", "the table, for its name")
        .takes("W", Holds::kAnything)
        .in("Ids", "as in the forward op")
        .in("Out@GRAD", "as Out")
        .out("W@GRAD", "sparse rows")
        .attr<bool>("is_test", false, "as in the forward op")
        .infer([](InferContext& c) {
          const Shape wanted = shape_of_ids(c), &have = c.in("Out@GRAD").shape;
          AB_CHECK(compatible(wanted, have), ShapeMismatch, "{}: Out@GRAD is {}, expected {}", op_name(c), have.str(),
                   wanted.str());
          if (!c.has_out("W@GRAD")) return;
          Meta& out = c.out("W@GRAD");
          out.kind = VarKind::kSelectedRows;
          out.shape = Shape{kUnknown, c.attr<int64_t>("width")};
          out.dtype = DType::kFloat32;
        })
        .no_grad("second derivatives of a table are not offered")
        .cpu_any([](const KernelArgs& op) -> Kernel {
          const In ids = op.in("Ids"), dout = op.in("Out@GRAD");
          const Out dw = op.out("W@GRAD");
          const int64_t width = op.attr<int64_t>("width"), padding = op.attr<int64_t>("padding_idx");
          const bool padded = op.attr<bool>("has_padding");
          const auto converted = std::make_shared<Tensor>();
          return [=](KernelContext& c) {
            if (!c.wants(dw)) return;
            take_rows(as_int64(c[ids], converted.get()), c[ids].numel(), padded ? &padding : nullptr,
                      c[dout].data<float>(), width, &c.value(dw).as<SelectedRows>());
          };
        });

}  // namespace
}  // namespace anabranch
