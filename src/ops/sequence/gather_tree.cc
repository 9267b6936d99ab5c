// Reconstructs whole beams from the steps of a search: each step has the added token and the beam that it extends.
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::gather_tree_op {
namespace {

constexpr int64_t kGrain = 1024;

AB_OP(gather_tree)
    .doc(
        "Traces the beams of a search back to whole paths: Out[last] = Ids[last], and Out[t, batch, beam] is the id of "
        "step t in the beam that Parents gives.")
    .in("Ids", "[steps, batch, beams] int32 or int64")
    .in("Parents", "like Ids: the beam of the previous step, in [0, beams)")
    .out("Out", "like Ids: the ids of whole paths")
    .dtype_of_input("Ids")
    .infer([](InferContext& c) {
      for (const char* slot : {"Ids", "Parents"}) {
        check_ids_dtype(c, slot);
        check_rank(c, slot, 3, 3);
      }
      check_same(c, "Ids", "Parents");
      c.same_shape("Out", "Ids");
    })
    .no_grad("ids have no gradient")
    .cpu<int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [ids = op.in("Ids"), parents = op.in("Parents"), out = op.out("Out")](KernelContext& c) {
        const Shape& x = c[ids].shape();
        const int64_t steps = x[0], beams = x[2], width = x[1] * beams;
        const T *from = c[ids].data<T>(), *parent = c[parents].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(width, kGrain / (steps + 1) + 1, [&](int64_t first, int64_t last) {
          for (int64_t k = first; k < last; ++k) {
            const int64_t batch = k / beams * beams;
            int64_t beam = k % beams;
            for (int64_t t = steps - 1; t >= 0; --t) {
              const int64_t at = t * width + batch + beam;
              to[t * width + k] = from[at];
              if (t == 0) break;
              beam = parent[at];
              AB_CHECK(beam >= 0 && beam < beams, InvalidArgument, "Parents must be from 0 to {}, got {}", beams - 1,
                       beam);
            }
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::sequence::gather_tree_op
