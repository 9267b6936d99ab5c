// Distributes proposals over the levels of a feature pyramid, and collects them again.
#include <cmath>
#include <memory>
#include <numeric>

#include "ops/detection/anchor_targets.h"

namespace anabranch::detection::fpn_proposals_op {
namespace {

void infer_distribute(InferContext& c) {
  check_boxes(c, "FpnRois");
  const int32_t low = c.attr<int32_t>("min_level"), high = c.attr<int32_t>("max_level");
  AB_CHECK(low >= 0 && high >= low, InvalidArgument,
           "0 <= min_level <= max_level must hold, got max_level {} and min_level {}", high, low);
  AB_CHECK(c.n_out("MultiFpnRois") == int64_t{high} - low + 1, InvalidArgument,
           "MultiFpnRois must have a variable for each of the levels {} to {}, got {}", low, high,
           c.n_out("MultiFpnRois"));
  AB_CHECK(c.attr<int32_t>("refer_scale") > 0, InvalidArgument, "refer_scale must be above 0, got {}",
           c.attr<int32_t>("refer_scale"));
  const Meta& rois = c.in("FpnRois");
  if (c.runtime()) check_sequence_each(c, "FpnRois", rois.lod ? static_cast<int64_t>(rois.lod->back().size()) - 1 : 0);
  for (int i = 0; i < c.n_out("MultiFpnRois"); ++i) {
    c.set_out("MultiFpnRois", {c.runtime() ? 0 : kUnknown, 4}, rois.dtype, i);
    c.out("MultiFpnRois", i).lod_level = 1;
  }
  c.set_out("RestoreIndex", {rois.shape[0], 1}, DType::kInt32);
}

// The level of a box: refer_level at refer_scale, one higher for each doubling of the size.
struct Levels {
  int32_t low, high, level, scale;
  template <class T> int64_t of(const T* box) const {
    const T side = std::sqrt(box[2] < box[0] || box[3] < box[1] ? T(0) : area(box, T(1)));
    const T at = std::floor(std::log2(side / static_cast<T>(scale) + static_cast<T>(1e-6)) + static_cast<T>(level));
    return clamped(at, low, high) - low;
  }
};

constexpr auto distribute = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const Levels levels{op.attr<int32_t>("min_level"), op.attr<int32_t>("max_level"), op.attr<int32_t>("refer_level"),
                      op.attr<int32_t>("refer_scale")};
  return [levels, rois = op.in("FpnRois"), out = op.out("MultiFpnRois"), restore = op.out("RestoreIndex"),
          of = std::vector<int64_t>()](KernelContext& c) mutable {
    const T* boxes = c[rois].data<T>();
    const auto& ends = c[rois].lod().back();
    of.clear();
    for (int64_t r = 0; r < c[rois].rows(); ++r) of.push_back(levels.of(boxes + 4 * r));
    int32_t* places = c.needs(restore) ? c[restore].mutable_data<int32_t>() : nullptr;
    int32_t place = 0;
    for (int level = 0; level < out.count; ++level) {
      std::vector<int64_t> made(1, 0);
      const auto count = std::count(of.begin(), of.end(), level);
      Tensor unwanted, &to = c.needs(out, level) ? c.at(out, level) : unwanted;
      to.resize({count, 4}, dtype_of<T>);
      T* box = to.mutable_data<T>();
      for (size_t n = 0; n + 1 < ends.size(); ++n) {
        made.push_back(made.back());
        for (int64_t r = ends[n]; r < ends[n + 1]; ++r) {
          if (of[static_cast<size_t>(r)] != level) continue;
          box = std::copy_n(boxes + 4 * r, 4, box);
          if (places) places[r] = place;
          ++place;
          ++made.back();
        }
      }
      to.set_lod(std::make_shared<const LoD>(LoD{std::move(made)}));
    }
  };
};

AB_OP(distribute_fpn_proposals)
    .doc(
        "MultiFpnRois[l] = the boxes of level floor(refer_level + log2(sqrt(area) / refer_scale)), clipped to "
        "[min_level, max_level]; RestoreIndex = the position of each box in all levels one after another.")
    .source("Lin et al., Feature pyramid networks, CVPR 2017, arXiv:1612.03144")
    .in("FpnRois", "[rois, 4] float: left, top, right, bottom, in pixels, with a sequence for each image")
    .out_list("MultiFpnRois", "[boxes, 4] of each level, with a sequence for each image")
    .out("RestoreIndex", "[rois, 1] int32")
    .required_attr("min_level", AttrType::kInt, "lowest level, with the smallest boxes")
    .required_attr("max_level", AttrType::kInt, "highest level")
    .required_attr("refer_level", AttrType::kInt, "level of boxes with sides of refer_scale")
    .required_attr("refer_scale", AttrType::kInt, "pixels, above 0")
    .effects(kDynamic)
    .infer(infer_distribute)
    .no_grad(kBoxesAreFixed)
    .cpu<float, double>(distribute);

void infer_collect(InferContext& c) {
  const int levels = c.n_in("MultiLevelRois");
  AB_CHECK(levels == c.n_in("MultiLevelScores"), InvalidArgument,
           "MultiLevelScores must have a variable for each of the {} of MultiLevelRois, got {}", levels,
           c.n_in("MultiLevelScores"));
  const int32_t most = c.attr<int32_t>("post_nms_topN");
  AB_CHECK(most >= 0, InvalidArgument, "post_nms_topN must be at least 0, got {}", most);
  for (int i = 0; i < levels; ++i) {
    const Meta &rois = c.in("MultiLevelRois", i), &scores = c.in("MultiLevelScores", i);
    AB_CHECK(rois.shape.rank() == 2 && compatible(rois.shape, Shape{kUnknown, 4}), ShapeMismatch,
             "MultiLevelRois must be [boxes, 4], got {}", rois.shape.str());
    AB_CHECK(scores.shape.rank() >= 1 && compatible(Shape{scores.shape.numel()}, Shape{rois.shape[0]}), ShapeMismatch,
             "MultiLevelScores must have a score for each of the {} boxes of its level, got {}", rois.shape[0],
             scores.shape.str());
    const DType dtype = c.in("MultiLevelRois").dtype;
    AB_CHECK(!c.runtime() || (rois.dtype == dtype && scores.dtype == dtype), InvalidArgument,
             "MultiLevelRois and MultiLevelScores must hold one dtype, got {} and {}", dtype_name(rois.dtype),
             dtype_name(scores.dtype));
    if (!c.runtime()) continue;
    AB_CHECK(rois.lod && !rois.lod->empty() && rois.lod->back().back() == rois.shape[0] &&
                 rois.lod->back().size() == c.in("MultiLevelRois").lod->back().size(),
             InvalidArgument, "MultiLevelRois must have a sequence for each image on each level; feed LoDTensors");
  }
  c.set_out("FpnRois", {c.runtime() ? 0 : int64_t{most}, 4}, c.in("MultiLevelRois").dtype);
  c.out("FpnRois").lod_level = 1;
}

template <class T> struct Scored {
  T score;
  const T* box;
  int64_t image;
};

constexpr auto collect = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [most = static_cast<size_t>(op.attr<int32_t>("post_nms_topN")), rois = op.in("MultiLevelRois"),
          scores = op.in("MultiLevelScores"), out = op.out("FpnRois"),
          all = std::vector<Scored<T>>()](KernelContext& c) mutable {
    all.clear();
    const auto images = static_cast<int64_t>(c[rois].lod().back().size()) - 1;
    for (int level = 0; level < rois.count; ++level) {
      const auto& ends = c.at(rois, level).lod().back();
      const T *box = c.at(rois, level).data<T>(), *score = c.at(scores, level).data<T>();
      for (int64_t n = 0; n < images; ++n) {
        for (int64_t r = ends[static_cast<size_t>(n)]; r < ends[static_cast<size_t>(n) + 1]; ++r) {
          // NaN sorts last.
          all.push_back({std::isnan(score[r]) ? -std::numeric_limits<T>::infinity() : score[r], box + 4 * r, n});
        }
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    if (most < all.size()) all.resize(most);
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.image < b.image; });
    std::vector<int64_t> made(static_cast<size_t>(images) + 1, 0);
    Tensor& to = c[out];
    to.resize({static_cast<int64_t>(all.size()), 4}, dtype_of<T>);
    T* box = to.mutable_data<T>();
    for (const Scored<T>& s : all) {
      box = std::copy_n(s.box, 4, box);
      ++made[static_cast<size_t>(s.image) + 1];
    }
    std::partial_sum(made.begin(), made.end(), made.begin());
    to.set_lod(std::make_shared<const LoD>(LoD{std::move(made)}));
  };
};

AB_OP(collect_fpn_proposals)
    .doc("FpnRois = the post_nms_topN boxes of all levels and images with the highest scores, grouped by image.")
    .source("Lin et al., Feature pyramid networks, CVPR 2017, arXiv:1612.03144")
    .in_list("MultiLevelRois", "[boxes, 4] float of each level, with a sequence for each image")
    .in_list("MultiLevelScores", "[boxes, 1] of each level")
    .out("FpnRois", "[boxes, 4] with a sequence for each image, by descending score")
    .required_attr("post_nms_topN", AttrType::kInt, "number of boxes for all images together")
    .effects(kDynamic)
    .infer(infer_collect)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("MultiLevelRois")
    .cpu<float, double>(collect);

}  // namespace
}  // namespace anabranch::detection::fpn_proposals_op
