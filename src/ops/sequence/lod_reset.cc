#include <algorithm>
#include <cstring>

#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence {
namespace {

void copy(KernelContext& c, In from, Out to) {
  if (c.wants(to) && c[from].raw() != c[to].raw()) std::memcpy(c[to].mutable_raw(), c[from].raw(), c[from].bytes());
}

// Offsets that were given as numbers, checked against the rows.
LoDRef checked(const std::string& op, Offsets o, int64_t rows) {
  AB_CHECK(o.size() >= 2 && o.front() == 0 && std::is_sorted(o.begin(), o.end()) && o.back() == rows, InvalidArgument,
           "{}: the new offsets are {}, expected to rise from 0 to the {} rows of X", op, lod_str({o}), rows);
  return one_level(std::move(o));
}

LoDRef target(const InferContext& c) {
  const int64_t rows = c.in("X").shape[0];
  if (!c.has_in("Y")) {
    const auto& given = c.attr<std::vector<int32_t>>("target_lod");
    return checked(c.op().type, Offsets(given.begin(), given.end()), rows);
  }
  const Meta& y = c.in("Y");
  if (y.lod && !y.lod->empty()) {
    AB_CHECK(y.lod->back().back() == rows, InvalidArgument, "{}: the sequences of Y end at row {}, X has {} rows",
             op_name(c), y.lod->back().back(), rows);
    return y.lod;
  }
  AB_CHECK(y.dtype == DType::kInt32 || y.dtype == DType::kInt64, InvalidArgument,
           "{}: Y has no sequences and holds {}, expected int32 offsets", op_name(c), dtype_name(y.dtype));
  Tensor scratch;
  const int64_t* numbers = as_int64(*y.value, &scratch);
  return checked(c.op().type, Offsets(numbers, numbers + y.value->numel()), rows);
}

// A new innermost level below those of X.
LoDRef appended(const InferContext& c, const LoDRef& level) {
  LoD lod = lod_of(c, "X");
  AB_CHECK(level->size() == 1, InvalidArgument, "{}: append takes one level, {} are given", op_name(c), level->size());
  Offsets& last = lod.back();
  const Offsets& inner = level->front();
  for (int64_t& o : last) {
    const auto it = std::find(inner.begin(), inner.end(), o);
    AB_CHECK(it != inner.end(), InvalidArgument, "{}: the appended level {} does not respect the sequences of X {}",
             op_name(c), lod_str(*level), lod_str(*c.in("X").lod));
    o = it - inner.begin();
  }
  lod.push_back(inner);
  return std::make_shared<const LoD>(std::move(lod));
}

AB_OP(lod_reset)
    .doc(
        "X with other sequences: those of Y, or the offsets that Y holds, or target_lod; append adds them as a new "
        "innermost level.")
    .in("X", "[rows, ...]")
    .in_optional("Y", "gives its sequences, or int32 offsets")
    .out("Out", "as X")
    .may_share("X", "Out")
    .attr<std::vector<int32_t>>("target_lod", {}, "offsets, when Y is not given")
    .attr<bool>("append", false, "as a level below those of X")
    .effects(kDynamic)
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_tensor(c, "X");
      check_rank(c, "X", 1, kMaxRank);
      AB_CHECK(c.has_in("Y") || !c.attr<std::vector<int32_t>>("target_lod").empty(), InvalidArgument,
               "lod_reset: neither Y nor target_lod is given");
      c.same_shape("Out", "X");
      if (!c.runtime()) {
        const int given = c.has_in("Y") ? c.in("Y").lod_level : 0;
        c.out("Out").lod_level = given > 0 ? given : 1 + (c.attr<bool>("append") ? c.in("X").lod_level : 0);
        return;
      }
      LoDRef lod = target(c);
      // As in the original, the sequences of Y take the place of those of X also with append.
      const bool below = c.attr<bool>("append") && !(c.has_in("Y") && c.in("Y").lod);
      set_lod(c, "Out", below ? appended(c, lod) : lod);
    })
    .grad([](GradContext& g) {
      g.op("lod_reset_grad").in("X", g.in("X")).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) { copy(c, x, out); };
    });

AB_OP(lod_reset_grad)
    .doc("Out@GRAD with the sequences of X.")
    .in("X", "for its sequences")
    .in("Out@GRAD", "as Out")
    .out("X@GRAD", "as X")
    .infer([](InferContext& c) {
      check_same(c, "X", "Out@GRAD");
      grad_as(c, "X@GRAD", "X", "X");
    })
    .no_grad(kOnce)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) { copy(c, dout, dx); };
    });

}  // namespace
}  // namespace anabranch::sequence
