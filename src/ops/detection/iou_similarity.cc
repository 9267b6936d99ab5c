// Pairwise overlap of the boxes of X and Y.
#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection::iou_similarity_op {
namespace {

constexpr double kLeastArea = 1e-10;  // added to the union, so that boxes without an area have a similarity of 0

// Intersection over union.
template <class T> T similarity(const T* a, const T* b, T edge) {
  const T common = intersection(a, b, edge);
  return common / (area(a, edge) + area(b, edge) - common + static_cast<T>(kLeastArea));
}

AB_OP(iou_similarity)
    .doc("Out[i, j] = area of the intersection of boxes X[i] and Y[j] / (area of their union + 1e-10).")
    .in("X", "[N, 4] float: left, top, right, bottom")
    .in("Y", "[M, 4] like X")
    .out("Out", "[N, M] with the LoD of X")
    .attr<bool>("box_normalized", true, "false: boxes are in whole pixels and include their right and bottom ones")
    .infer([](InferContext& c) {
      check_boxes(c, "X");
      check_boxes(c, "Y");
      check_same_dtype(c, "X", "Y");
      c.set_out("Out", Shape{c.in("X").shape[0], c.in("Y").shape[0]}, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .no_grad(kBoxesAreFixed)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [edge = edge_of<T>(op.attr<bool>("box_normalized")), x = op.in("X"), y = op.in("Y"),
              out = op.out("Out")](KernelContext& c) {
        const T *a = c[x].data<T>(), *b = c[y].data<T>();
        T* to = c[out].mutable_data<T>();
        const int64_t m = c[y].rows();
        c.parallel_each(c[x].rows(), std::max<int64_t>(1, kBoxGrain / std::max<int64_t>(1, m)), [=](int64_t i) {
          for (int64_t j = 0; j < m; ++j) to[i * m + j] = similarity(a + i * 4, b + j * 4, edge);
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection::iou_similarity_op
