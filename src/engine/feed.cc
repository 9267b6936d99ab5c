#include "engine/feed.h"

#include <algorithm>

namespace anabranch {
namespace {

// Rows, or sequences of the top level.
int64_t items_of(const Tensor& t) { return t.lod_ref() ? static_cast<int64_t>(t.lod()[0].size()) - 1 : t.rows(); }

Tensor piece_of(const Tensor& t, int64_t begin, int64_t end) {
  if (!t.lod_ref()) return t.row_range(begin, end);
  int64_t first = 0, last = 0;
  LoD lod = slice_lod(t.lod(), begin, end, &first, &last);
  Tensor piece = t.row_range(first, last);
  piece.set_lod(std::make_shared<const LoD>(std::move(lod)));
  return piece;
}

}  // namespace

std::vector<FeedMap> split_feed(const FeedMap& feed, int replicas, const std::vector<std::string>& whole,
                                bool refuse_idle) {
  if (replicas == 1) return {feed};
  int pieces = -1;
  std::string first_name;
  for (const auto& [name, tensor] : feed) {
    if (std::find(whole.begin(), whole.end(), name) != whole.end()) continue;
    const int64_t items = items_of(tensor);
    AB_CHECK(items > 0, InvalidArgument, "feed {} is empty: its shape is {}", name, tensor.shape().str());
    const int64_t size = (items + replicas - 1) / replicas;
    const int n = static_cast<int>((items + size - 1) / size);
    AB_CHECK(!(refuse_idle && n < replicas), InvalidArgument,
             "feed {} has {} samples, too few for {} devices: some would get nothing", name, items, replicas);
    AB_CHECK(pieces < 0 || n == pieces, ShapeMismatch,
             "feed {} has {} samples and gives work to {} of {} replicas, but "
             "feed {} gives work to {}",
             name, items, n, replicas, first_name, pieces);
    if (pieces < 0) first_name = name;
    pieces = n;
  }
  if (pieces < 0) pieces = replicas;
  std::vector<FeedMap> out(pieces);
  for (const auto& [name, tensor] : feed) {
    const bool everywhere = std::find(whole.begin(), whole.end(), name) != whole.end();
    const int64_t items = everywhere ? 0 : items_of(tensor);
    const int64_t size = (items + replicas - 1) / replicas;
    for (int r = 0; r < pieces; ++r) {
      out[r].emplace_back(name, everywhere ? tensor : piece_of(tensor, r * size, std::min(items, (r + 1) * size)));
    }
  }
  return out;
}

}  // namespace anabranch
