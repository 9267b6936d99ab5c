#include "engine/feed.h"
#include "base/counted.h"

#include <algorithm>

#include "base/flags.h"

namespace anabranch {
namespace {

// Rows, or sequences of the top level.
int64_t items_of(const Tensor& t) { return t.lod_ref() ? static_cast<int64_t>(t.lod()[0].size()) - 1 : t.rows(); }

Tensor slice_of(const Tensor& t, int64_t begin, int64_t end) {
  if (!t.lod_ref()) return t.row_range(begin, end);
  int64_t first = 0, last = 0;
  LoD lod = slice_lod(t.lod(), begin, end, &first, &last);
  Tensor slice = t.row_range(first, last);
  slice.set_lod(std::make_shared<const LoD>(std::move(lod)));
  return slice;
}

int count_slices(std::span<const Tensor> batch, const FeedSplit& how) {
  int slices = -1;
  const std::string* first_name = nullptr;
  for (size_t i = 0; i < batch.size(); ++i) {
    if ((*how.whole)[i]) continue;
    const std::string& name = (*how.names)[i];
    const int64_t items = items_of(batch[i]);
    AB_CHECK(items > 0, InvalidArgument, "feed {} is empty: its shape is {}", name, batch[i].shape().str());
    const int64_t size = (items + how.replicas - 1) / how.replicas;
    const int n = static_cast<int>((items + size - 1) / size);
    AB_CHECK(!(how.refuse_idle && n < how.replicas), InvalidArgument,
             "feed {} has {}, too few for {}: some would get nothing", name, counted(items, "sample"),
             counted(how.replicas, "device"));
    AB_CHECK(slices < 0 || n == slices, ShapeMismatch,
             "feed {} has {} and gives work to {} of {}, but feed {} gives work to {}", name, counted(items, "sample"),
             n, counted(how.replicas, "replica"), *first_name, slices);
    if (slices < 0) first_name = &name;
    slices = n;
  }
  return slices < 0 ? how.replicas : slices;
}

void check_promise(const Fed& fed, int devices, Tensor* value) {
  if (value->dtype() != fed.dtype) [[unlikely]] {
    const char* dtype = dtype_name(fed.dtype);
    throw BadFeed(fmt::format("the data type of fed variable '{}' is {}, but {} is given; feed array.astype('{}')",
                              fed.name, dtype, dtype_name(value->dtype()), dtype));
  }
  const int given = value->shape().rank();
  Shape whole = value->shape();
  while (whole.rank() < fed.declared.rank()) whole.push_back(1);
  const bool as_given = given < whole.rank() && Flags::exact_fluid();  // Fluid compares the axes that there are
  bool fits = whole.rank() == fed.declared.rank();
  for (int axis = 0; fits && axis < (as_given ? given : whole.rank()); ++axis) {
    const int64_t extent = fed.declared[axis];
    fits = extent < 0 || whole[axis] == (axis == 0 ? extent * devices : extent);
  }
  if (!fits) [[unlikely]] {
    throw BadFeed(fmt::format("the shape of fed variable '{}' is {}{} (-1: any), but {} is given", fed.name,
                              fed.declared.str(), devices == 1 ? "" : fmt::format(" on each of {} devices", devices),
                              value->shape().str()));
  }
  if (given == whole.rank() || as_given) [[likely]]
    return;
  Tensor rows = *value;
  if (!rows.contiguous()) {
    rows = Tensor();
    rows.copy_from(*value, value->place());
  }
  rows = rows.reshaped(whole);
  rows.set_lod(value->lod_ref());
  *value = std::move(rows);
}

}  // namespace

Fed::Fed(const ir::Program& program, const std::string& of) : name(of) {
  const auto var = program.global_block().find_var(of);
  AB_CHECK(var != nullptr, NotFound, "fed variable {} is not in the program", of);
  dtype = var->dtype;
  checked = var->need_check_feed;
  persistable = var->persistable;
  declared = checked && var->shape.rank() == 0 ? Shape{1} : var->shape;  // arrays without axes come as one number
}

void check_fed(const Fed& fed, int devices, Tensor* value) {
  AB_CHECK(value->initialized(), InvalidArgument, "feed {} must hold a value", fed.name);
  AB_CHECK(value->shape().rank() > 0, ShapeMismatch, "feed {} must have rank 1 at least, got rank 0", fed.name);
  if (fed.checked) check_promise(fed, devices, value);
  if (!value->lod_ref()) return;
  try {
    check_lod(value->lod(), value->rows());
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("feed {}: {}", fed.name, e.message()));
  }
}

int split_feed(std::span<const Tensor> batch, const FeedSplit& how, Slices* slices) {
  slices->resize(how.replicas);
  const int n = how.replicas == 1 ? 1 : count_slices(batch, how);
  for (int r = 0; r < n; ++r) {
    auto& slice = (*slices)[r];
    slice.resize(batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      if (how.replicas == 1 || (*how.whole)[i]) {
        slice[i] = batch[i];
        continue;
      }
      const int64_t items = items_of(batch[i]);
      const int64_t size = (items + how.replicas - 1) / how.replicas;
      slice[i] = slice_of(batch[i], r * size, std::min(items, (r + 1) * size));
    }
  }
  return n;
}

}  // namespace anabranch
