// Samples nodes of a tree for retrieval that descends it: those on the path to an item, and others of the same layers.
#include <algorithm>
#include <memory>
#include <vector>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/philox.h"

namespace anabranch::sparse::tdm_sampler_op {
namespace {

using Ints = std::vector<int32_t>;

// The sample sizes of each layer, from the attributes.
struct Layers {
  const Ints &negatives, &offsets;
  bool positive;
  explicit Layers(const ir::Op& op)
      : negatives(op.attr<Ints>("neg_samples_num_list")),
        offsets(op.attr<Ints>("layer_offset_lod")),
        positive(op.attr<bool>("output_positive")) {}

  int64_t count() const { return static_cast<int64_t>(negatives.size()); }
  int64_t nodes() const { return offsets.back(); }
  void check() const {
    AB_CHECK(!negatives.empty(), InvalidArgument, "neg_samples_num_list must have one number per layer");
    AB_CHECK(offsets.size() == negatives.size() + 1, InvalidArgument,
             "layer_offset_lod must have {} numbers, one more than neg_samples_num_list, got {}", negatives.size() + 1,
             offsets.size());
    AB_CHECK(offsets[0] >= 0, InvalidArgument, "layer_offset_lod must start at 0 or more, got {}", offsets[0]);
    for (size_t i = 0; i < negatives.size(); ++i) {
      const int64_t nodes = int64_t{offsets[i + 1]} - offsets[i];
      AB_CHECK(nodes >= 1, InvalidArgument, "layer_offset_lod must ascend, got {} after {}", offsets[i + 1],
               offsets[i]);
      AB_CHECK(negatives[i] >= 0 && negatives[i] <= nodes - 1, InvalidArgument,
               "neg_samples_num_list[{}] must be from 0 to {}, one below the nodes of the layer, got {}", i, nodes - 1,
               negatives[i]);
    }
  }
  int64_t columns() const {
    int64_t n = 0;
    for (const int32_t drawn : negatives) n += drawn + (positive ? 1 : 0);
    return n;
  }
};

DType out_dtype(const ir::Op& op) {
  const auto dtype = static_cast<DType>(op.attr<int32_t>("dtype"));
  AB_CHECK(dtype == DType::kInt32 || dtype == DType::kInt64, InvalidArgument,
           "dtype must be int32 (2) or int64 (3), got {}", op.attr<int32_t>("dtype"));
  return dtype;
}

void infer(InferContext& c) {
  const Layers layers(c.op());
  layers.check();
  for (const char* slot : {"X", "Travel", "Layer"}) check_ids_dtype(c, slot);
  check_same_dtype(c, "Travel", "Layer");
  check_rank(c, "X", 1, 2);
  const Shape& x = c.in("X").shape;
  AB_CHECK(x.rank() == 1 || x[1] == 1 || x[1] == kUnknown, InvalidArgument, "X must be [N, 1] or [N], got {}", x.str());
  check_rank(c, "Travel", 2, 2);
  const int64_t columns = c.in("Travel").shape[1], nodes = c.in("Layer").shape.numel();
  AB_CHECK(columns == kUnknown || columns >= layers.count(), InvalidArgument,
           "Travel must have one column for each of the {} layers, got {}", layers.count(), columns);
  AB_CHECK(nodes < 0 || nodes >= layers.nodes(), InvalidArgument,
           "Layer must have the {} nodes where layer_offset_lod ends, got {}", layers.nodes(), nodes);
  for (const char* slot : {"Out", "Labels", "Mask"}) {
    c.set_out(slot, Shape{x[0], layers.columns()}, out_dtype(c.op()));
  }
}

// Distinct indices in [0, n), in drawing order: each draw selects one of the remaining ones by its rank. Few are drawn
// per layer, so a scan of the earlier ones is cheap.
class Draw {
 public:
  void begin(int64_t n) {
    left_ = n;
    taken_.clear();
  }
  int64_t next(double uniform) {
    AB_CHECK(left_ > 0, InvalidArgument, "Layer must hold different nodes in each layer");
    int64_t place = std::min(left_ - 1, static_cast<int64_t>(uniform * static_cast<double>(left_)));
    --left_;
    auto at = taken_.begin();
    for (; at != taken_.end() && *at <= place; ++at) ++place;
    taken_.insert(at, place);
    return place;
  }

 private:
  int64_t left_ = 0;
  std::vector<int64_t> taken_;  // ascending
};

template <class To> struct Row {
  To *node, *label, *mask;
  void put(int64_t node_in, int label_in, int mask_in) {
    *node++ = static_cast<To>(node_in);
    if (label) *label++ = static_cast<To>(label_in);
    if (mask) *mask++ = static_cast<To>(mask_in);
  }
};

// The nodes of one layer: the one on the path, then the others; all 0 after the end of the path.
template <class Tree, class To>
void sample(const Tree* layer, int64_t nodes, int64_t way, int64_t drawn, bool positive, const Philox& rng,
            uint64_t* number, Draw* draw, Row<To>* row) {
  if (way == 0) {
    for (int64_t i = 0; i < drawn + (positive ? 1 : 0); ++i) row->put(0, 0, 0);
    return;
  }
  if (positive) row->put(way, 1, 1);
  draw->begin(nodes);
  for (int64_t i = 0; i < drawn; ++i) {
    auto node = static_cast<int64_t>(layer[draw->next(rng.uniform53((*number)++))]);
    if (node == way) node = static_cast<int64_t>(layer[draw->next(rng.uniform53((*number)++))]);
    AB_CHECK(node != way, InvalidArgument, "Layer must hold different nodes in each layer");
    row->put(node, 0, 1);
  }
}

struct Slots {
  Layers layers;
  In x, travel, layer;
  Out out, labels, mask;
  RandomKey key;
};

template <class Id, class Tree, class To> void run(const Slots& s, KernelContext& c, RandomKey key, Draw* draw) {
  const Id* x = c[s.x].data<Id>();
  const Tree *travel = c[s.travel].data<Tree>(), *layer = c[s.layer].data<Tree>();
  const int64_t items = c[s.travel].rows(), columns = c[s.travel].row_elems();
  const Philox rng(key);
  const auto begin = [&](Out slot) { return c.needs(slot) ? c[slot].mutable_data<To>() : nullptr; };
  Row<To> row{begin(s.out), begin(s.labels), begin(s.mask)};
  uint64_t number = 0;
  for (int64_t i = 0; i < c[s.x].numel(); ++i) {
    const auto item = static_cast<int64_t>(x[i]);
    AB_CHECK(item >= 0 && item < items, InvalidArgument, "X must hold items from 0 to {}, got {}", items - 1, item);
    for (int64_t k = 0; k < s.layers.count(); ++k) {
      const auto at = static_cast<size_t>(k);
      const int32_t first = s.layers.offsets[at];
      sample(layer + first, int64_t{s.layers.offsets[at + 1]} - first, static_cast<int64_t>(travel[item * columns + k]),
             s.layers.negatives[at], s.layers.positive, rng, &number, draw, &row);
    }
  }
}

AB_OP(tdm_sampler)
    .doc(
        "Out = for each item of X and each layer of a tree, the node on the path to the item (Labels 1), and distinct "
        "other nodes of the layer, drawn uniformly (Labels 0). After the end of a path (node 0) all are 0, and so is "
        "Mask.")
    .source("Zhu et al., KDD 2018, arXiv:1801.02294")
    .in("X", "[N, 1] integers: items")
    .in("Travel", "[items, layers] integers: the nodes on the path to each item, 0 after its end")
    .in("Layer", "[nodes, 1] like Travel: the nodes of all layers, one layer after another")
    .out("Out", "[N, sum of the samples] integers: nodes, layer by layer")
    .out_optional("Labels", "like Out: 1 for the node on the path")
    .out("Mask", "like Out: 0 if there is no node")
    .attr<bool>("output_positive", true, "includes the node on the path in Out")
    .attr<Ints>("neg_samples_num_list", {}, "number of other nodes drawn from each layer")
    .attr<Ints>("layer_offset_lod", {}, "start of each layer in Layer, and the end of the last one")
    .attr<int32_t>("seed", 0, "seed of this op; 0: uses the seed of the program or the process")
    .attr<int32_t>("dtype", static_cast<int32_t>(DType::kInt32), "id of the dtype of the outputs")
    .effects(kRandom)
    .dtype_of_input("X")
    .infer(infer)
    .no_grad("nodes are integers")
    .cpu<int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      using Id = T;
      const auto kept = std::make_shared<ir::Op>(op.op());
      const Slots slots{Layers(*kept), op.in("X"),       op.in("Travel"), op.in("Layer"),
                        op.out("Out"), op.out("Labels"), op.out("Mask"),  op.random()};
      return [kept, slots, wide = out_dtype(op.op()) == DType::kInt64, draw = Draw()](KernelContext& c) mutable {
        const RandomKey key = with_step(slots.key, c);
        const auto call = [&](auto tree, auto to) { run<Id, decltype(tree), decltype(to)>(slots, c, key, &draw); };
        if (c[slots.travel].dtype() == DType::kInt64)
          return wide ? call(int64_t{}, int64_t{}) : call(int64_t{}, int32_t{});
        wide ? call(int32_t{}, int64_t{}) : call(int32_t{}, int32_t{});
      };
    });

}  // namespace
}  // namespace anabranch::sparse::tdm_sampler_op
