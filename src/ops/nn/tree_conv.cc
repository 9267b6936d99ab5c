// Convolution over trees: a window is a node with its descendants, weighted by their depth and their position among
// siblings.
#include <algorithm>
#include <array>

#include "opdef/op_def.h"
#include "ops/declare/attr_checks.h"
#include "ops/declare/checks.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"

namespace anabranch::nn::tree_conv_op {
namespace {

constexpr int64_t kSides = 3;  // left, right, top

// The trees of a batch: the children of each node, in the order of the edges.
class Tree {
 public:
  // Edges [count, 2] of parent and child, numbered from 1; the first edge with a 0 terminates them.
  Tree(const int32_t* edges, int64_t count, int64_t nodes)
      : children_(static_cast<size_t>(nodes)), known_(children_.size()) {
    if (nodes > 0) known_[0] = true;
    for (int64_t e = 0; e < count && edges[2 * e] != 0 && edges[2 * e + 1] != 0; ++e) {
      for (const int32_t node : {edges[2 * e], edges[2 * e + 1]}) {
        AB_CHECK(node >= 1 && node <= nodes, InvalidArgument, "EdgeSet must hold nodes from 1 to {}, got {}", nodes,
                 node);
        known_[static_cast<size_t>(node - 1)] = true;
      }
      children_[static_cast<size_t>(edges[2 * e] - 1)].push_back(edges[2 * e + 1] - 1);
    }
    met_.assign(children_.size(), -1);
  }

  // Calls fn(node, weights of its three sides) for all nodes of the window of `root`.
  template <class Fn> void each_below(int64_t root, int64_t max_depth, const Fn& fn) {
    if (!known_[static_cast<size_t>(root)]) return;
    level_.assign(1, root);
    met_[static_cast<size_t>(root)] = root;
    fn(root, std::array<double, kSides>{0, 0, 1});
    for (int64_t depth = 1; depth < max_depth && !level_.empty(); ++depth) {
      next_.clear();
      const double below = static_cast<double>(depth) / static_cast<double>(max_depth);
      for (const int64_t parent : level_) visit_children(root, parent, below, fn);
      level_.swap(next_);
    }
  }

 private:
  template <class Fn> void visit_children(int64_t root, int64_t parent, double below, const Fn& fn) {
    const auto& own = children_[static_cast<size_t>(parent)];
    for (size_t k = 0; k < own.size(); ++k) {
      int64_t& met = met_[static_cast<size_t>(own[k])];
      AB_CHECK(met != root, InvalidArgument, "EdgeSet must be a tree, but node {} is reached twice from node {}",
               own[k] + 1, root + 1);
      met = root;
      const double place = own.size() == 1 ? 0.5 : static_cast<double>(k) / static_cast<double>(own.size() - 1);
      const double left = below * place;
      fn(own[k], std::array<double, kSides>{left, below * (1 - left), 1 - below});
      next_.push_back(own[k]);
    }
  }

  std::vector<std::vector<int64_t>> children_;
  std::vector<bool> known_;
  std::vector<int64_t> met_, level_, next_;
};

void infer(InferContext& c) {
  check_rank(c, "NodesVector", 3, 3);
  check_rank(c, "EdgeSet", 3, 3);
  check_rank(c, "Filter", 4, 4);
  check_same_dtype(c, "NodesVector", "Filter");
  check_dtype(c, "EdgeSet", DType::kInt32);
  const Shape &x = c.in("NodesVector").shape, &filter = c.in("Filter").shape;
  check_shape(c, "EdgeSet", Shape{x[0], kUnknown, 2});
  check_shape(c, "Filter", Shape{x[2], kSides, kUnknown, kUnknown});
  c.set_out("Out", Shape{x[0], x[1], filter[2], filter[3]}, c.in("NodesVector").dtype);
}

struct Slots {
  In nodes, edges;
  int64_t max_depth;
  explicit Slots(const KernelArgs& op)
      : nodes(op.in("NodesVector")), edges(op.in("EdgeSet")), max_depth(op.attr<int32_t>("max_depth")) {}

  // Calls fn(row of the root, row of the node, weights) for all windows; trees are processed in parallel.
  template <class Fn> void each(const KernelContext& c, const Fn& fn) const {
    const int64_t count = c[nodes].shape()[1], edge_count = c[edges].shape()[1];
    c.parallel_each(c[nodes].shape()[0], 1, [&](int64_t b) {
      Tree tree(c[edges].data<int32_t>() + b * edge_count * 2, edge_count, count);
      for (int64_t root = 0; root < count; ++root) {
        tree.each_below(root, max_depth, [&](int64_t node, const std::array<double, kSides>& weights) {
          fn(b * count + root, b * count + node, weights);
        });
      }
    });
  }
};

// Windows [nodes, width * 3]: the weighted sums of the rows of each window, the three sides of a column adjacent.
template <class T> T* gather(const KernelContext& c, const Slots& slots, Tensor* scratch) {
  const Shape& x = c[slots.nodes].shape();
  const int64_t width = x[2];
  scratch->resize(Shape{x[0] * x[1], width * kSides}, dtype_of<T>);
  T* to = scratch->template mutable_data<T>();
  std::fill(to, to + scratch->numel(), T{0});
  const T* from = c[slots.nodes].data<T>();
  slots.each(c, [=](int64_t root, int64_t node, const std::array<double, kSides>& weights) {
    for (int64_t k = 0; k < width; ++k) {
      for (int64_t side = 0; side < kSides; ++side) {
        to[(root * width + k) * kSides + side] +=
            static_cast<T>(weights[static_cast<size_t>(side)]) * from[node * width + k];
      }
    }
  });
  return to;
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [slots = Slots(op), filter = op.in("Filter"), out = op.out("Out"), scratch = std::make_shared<Tensor>(),
          gemm = std::make_shared<Gemm<T>>()](KernelContext& c) {
    const T* windows = gather<T>(c, slots, scratch.get());
    const Shape& f = c[filter].shape();
    gemm->run(c, {.m = scratch->shape()[0], .n = f[2] * f[3], .k = f[0] * kSides}, windows, c[filter].data<T>(),
              c[out].mutable_data<T>());
  };
};

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In filter = op.in("Filter"), dout = op.in("Out@GRAD");
  const Out dnodes = op.out("NodesVector@GRAD"), dfilter = op.out("Filter@GRAD");
  return [=, slots = Slots(op), scratch = std::make_shared<Tensor>(), by_filter = std::make_shared<Gemm<T>>(),
          by_nodes = std::make_shared<Gemm<T>>()](KernelContext& c) {
    const Shape& f = c[filter].shape();
    const int64_t width = f[0], columns = f[2] * f[3], rows = c[slots.nodes].shape()[0] * c[slots.nodes].shape()[1];
    const T* g = c[dout].data<T>();
    if (c.needs(dfilter)) {
      by_filter->run(c, {.m = width * kSides, .n = columns, .k = rows, .trans_a = true},
                     gather<T>(c, slots, scratch.get()), g, c[dfilter].mutable_data<T>());
    }
    T* to = zeroed<T>(c, dnodes);
    if (!to) return;
    scratch->resize(Shape{rows, width * kSides}, dtype_of<T>);
    T* slopes = scratch->template mutable_data<T>();
    by_nodes->run(c, {.m = rows, .n = width * kSides, .k = columns, .trans_b = true}, g, c[filter].data<T>(), slopes);
    slots.each(c, [=](int64_t root, int64_t node, const std::array<double, kSides>& weights) {
      for (int64_t k = 0; k < width; ++k) {
        const T* own = slopes + (root * width + k) * kSides;
        for (int64_t side = 0; side < kSides; ++side) {
          to[node * width + k] += static_cast<T>(weights[static_cast<size_t>(side)]) * own[side];
        }
      }
    });
  };
};

AB_OP(tree_conv)
    .doc(
        "Out of a node = the sum over its descendants at most max_depth - 1 levels below of (left L + right R + top T) "
        "x, where L, R and T are the slices of Filter; top = 1 - depth / max_depth, left = (1 - top) (position - 1) / "
        "(siblings - 1), right = (1 - top) (1 - left).")
    .source("Mou et al., Convolutional neural networks over tree structures, AAAI 2016")
    .in("NodesVector", "[batch, nodes, D] float")
    .in("EdgeSet", "[batch, edges, 2] int32, parent and child, numbered from 1; an edge with a 0 terminates them")
    .in("Filter", "[D, 3, O, F]")
    .out("Out", "[batch, nodes, O, F]; zeros for nodes without an edge, except the first")
    .attr<int32_t>("max_depth", 2, "number of levels of a window, at least 2", at_least("max_depth", 2))
    .dtype_of_input("NodesVector")
    .infer(infer)
    .grad_reads({"NodesVector", "EdgeSet", "Filter"})
    .grad_to({"NodesVector", "Filter"})
    .cpu<float, double>(forward);

AB_GRAD(tree_conv)
    .doc("Gradients of tree_conv with respect to NodesVector and Filter.")
    .dtype_of_input("NodesVector")
    .cpu<float, double>(backward);

}  // namespace
}  // namespace anabranch::nn::tree_conv_op
