// Children of tree nodes, for retrieval that descends a tree of items.
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"

namespace anabranch::sparse::tdm_child_op {
namespace {

constexpr int64_t kAhead = 3;  // prefix of a node's row: item, layer, ancestor; followed by its children

void infer(InferContext& c) {
  check_ids_dtype(c, "X");
  check_ids_dtype(c, "TreeInfo");
  check_rank(c, "TreeInfo", 2, 2);
  check_rank(c, "X", 1, kMaxRank - 1);
  const int64_t children = c.attr<int32_t>("child_nums"), columns = c.in("TreeInfo").shape[1];
  AB_CHECK(columns == kUnknown || columns >= kAhead + children, InvalidArgument,
           "TreeInfo must have {} columns, 3 plus one per child, got {}", kAhead + children, columns);
  std::vector<int64_t> shape = c.in("X").shape.to_vector();
  shape.push_back(children);
  const auto dtype = static_cast<DType>(c.attr<int32_t>("dtype"));
  AB_CHECK(dtype == DType::kInt32 || dtype == DType::kInt64, InvalidArgument,
           "dtype must be int32 (2) or int64 (3), got {}", c.attr<int32_t>("dtype"));
  for (const char* slot : {"Child", "LeafMask"}) {
    c.set_out(slot, Shape(shape), dtype);
    c.share_lod(slot, "X");
  }
}

template <class Id, class Info, class To>
void children_of(const Tensor& nodes, const Tensor& tree, int64_t count, To* child, To* mask) {
  const Id* x = nodes.data<Id>();
  const Info* info = tree.data<Info>();
  const int64_t rows = tree.rows(), columns = tree.row_elems();
  const auto checked = [&](int64_t node, const char* what) {
    AB_CHECK(node >= 0 && node < rows, InvalidArgument, "{} must hold nodes from 0 to {}, got {}", what, rows - 1,
             node);
    return info + node * columns;
  };
  for (int64_t i = 0; i < nodes.numel(); ++i) {
    const Info* node = checked(static_cast<int64_t>(x[i]), "X");
    const bool inner = x[i] != 0 && node[kAhead] != 0;
    for (int64_t k = 0; k < count; ++k, ++child, ++mask) {
      const Info next = inner ? node[kAhead + k] : Info{0};
      *child = static_cast<To>(next);
      *mask = static_cast<To>(inner && *checked(static_cast<int64_t>(next), "children of TreeInfo") != 0);
    }
  }
}

AB_OP(tdm_child)
    .doc(
        "Child = the children of the nodes X, 0 for a missing child. LeafMask = 1 if a child is a leaf, that is, its "
        "row starts with an item.")
    .source("Zhu et al., KDD 2018, arXiv:1801.02294")
    .in("X", "[...] integers: nodes")
    .in("TreeInfo", "[nodes, 3 + child_nums] integers: item, layer, ancestor, children; row 0 and child 0 mean none")
    .out("Child", "[..., child_nums] integers")
    .out("LeafMask", "like Child")
    .attr<int32_t>("child_nums", 1, "number of children per node", within("child_nums", 1, 1 << 20))
    .attr<int32_t>("dtype", static_cast<int32_t>(DType::kInt32), "id of the dtype of the outputs")
    .dtype_of_input("X")
    .infer(infer)
    .no_grad("nodes are integers")
    .cpu<int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      using Id = T;
      return [count = int64_t{op.attr<int32_t>("child_nums")}, x = op.in("X"), tree = op.in("TreeInfo"),
              child = op.out("Child"), mask = op.out("LeafMask")](KernelContext& c) {
        const bool wide = c[child].dtype() == DType::kInt64, tree_wide = c[tree].dtype() == DType::kInt64;
        const auto run = [&](auto info, auto to) {
          using To = decltype(to);
          children_of<Id, decltype(info)>(c[x], c[tree], count, c[child].mutable_data<To>(),
                                          c[mask].mutable_data<To>());
        };
        if (tree_wide) return wide ? run(int64_t{}, int64_t{}) : run(int64_t{}, int32_t{});
        wide ? run(int32_t{}, int64_t{}) : run(int32_t{}, int32_t{});
      };
    });

}  // namespace
}  // namespace anabranch::sparse::tdm_child_op
