#include <algorithm>
#include <cstring>

#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::lod_reset_op {
namespace {

void copy(KernelContext& c, In from, Out to) {
  if (c.needs(to) && c[from].raw() != c[to].raw()) std::memcpy(c[to].mutable_raw(), c[from].raw(), c[from].bytes());
}

// Offsets from the input or attribute, checked against the rows.
LoDRef checked(Offsets o, int64_t rows) {
  AB_CHECK(o.size() >= 2 && o.front() == 0 && std::is_sorted(o.begin(), o.end()) && o.back() == rows, InvalidArgument,
           "the new offsets must ascend from 0 to the {} rows of X, got {}", rows, lod_str({o}));
  return one_level(std::move(o));
}

LoDRef target(const InferContext& c) {
  const int64_t rows = c.in("X").shape[0];
  if (!c.has_in("Y")) {
    const auto& given = c.attr<std::vector<int32_t>>("target_lod");
    return checked(Offsets(given.begin(), given.end()), rows);
  }
  const Meta& y = c.in("Y");
  if (y.lod && !y.lod->empty()) {
    AB_CHECK(y.lod->back().back() == rows, InvalidArgument, "the LoD of Y must end at row {} of X, got {}", rows,
             y.lod->back().back());
    return y.lod;
  }
  check_ids_dtype(c, "Y");
  Tensor scratch;
  const int64_t* numbers = as_int64(*y.value, &scratch);
  return checked(Offsets(numbers, numbers + y.value->numel()), rows);
}

// A new innermost level below those of X.
LoDRef appended(const InferContext& c, const LoDRef& level) {
  LoD lod = lod_of(c, "X");
  AB_CHECK(level->size() == 1, InvalidArgument, "append must get one LoD level, got {}", level->size());
  Offsets& last = lod.back();
  const Offsets& inner = level->front();
  for (int64_t& o : last) {
    const auto it = std::find(inner.begin(), inner.end(), o);
    AB_CHECK(it != inner.end(), InvalidArgument, "the appended level must subdivide the sequences of X {}, got {}",
             lod_str(*c.in("X").lod), lod_str(*level));
    o = it - inner.begin();
  }
  lod.push_back(inner);
  return std::make_shared<const LoD>(std::move(lod));
}

AB_OP(lod_reset)
    .doc(
        "Out = X with other LoD: that of Y, or the offsets that Y holds, or target_lod; append adds it as a new "
        "innermost level.")
    .in("X", "[rows, ...]")
    .in_optional("Y", "its LoD, or int32 or int64 offsets")
    .out("Out", "like X")
    .may_share("X", "Out")
    .attr<std::vector<int32_t>>("target_lod", {}, "offsets, if Y is not given")
    .attr<bool>("append", false, "appends a level below those of X")
    .effects(kDynamic)
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_rank(c, "X", 1, kMaxRank);
      AB_CHECK(c.has_in("Y") || !c.attr<std::vector<int32_t>>("target_lod").empty(), InvalidArgument,
               "Y or target_lod must be given");
      c.same_shape("Out", "X");
      if (!c.runtime()) {
        const int given = c.has_in("Y") ? c.in("Y").lod_level : 0;
        c.out("Out").lod_level = given > 0 ? given : 1 + (c.attr<bool>("append") ? c.in("X").lod_level : 0);
        return;
      }
      LoDRef lod = target(c);
      // As in Fluid 1.8.5, the LoD of Y replaces that of X even with append.
      const bool has_levels = c.in("X").lod && !c.in("X").lod->empty();
      const bool below = c.attr<bool>("append") && has_levels && !(c.has_in("Y") && c.in("Y").lod);
      set_lod(c, "Out", below ? appended(c, lod) : lod);
    })
    .grad_reads({"X"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) { copy(c, x, out); };
    });

AB_GRAD(lod_reset)
    .doc("X@GRAD = Out@GRAD with the LoD of X.")
    .infer([](InferContext& c) {
      check_same(c, "X", "Out@GRAD");
      grad_as(c, "X@GRAD", "X", "X");
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) { copy(c, dout, dx); };
    });

}  // namespace
}  // namespace anabranch::sequence::lod_reset_op
