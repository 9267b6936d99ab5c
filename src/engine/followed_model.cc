#include "engine/followed_model.h"

#include "base/error.h"

namespace anabranch {
namespace {

struct Exchange {
  Value *mine, *fresh;
};

void check_same_kind(const std::string& name, const Value& mine, const Value& fresh) {
  const Tensor *a = mine.get<Tensor>(), *b = fresh.get<Tensor>();
  if (a && b) {
    AB_CHECK(a->shape() == b->shape() && a->dtype() == b->dtype(), ShapeMismatch,
             "variable {} is {} {} in the model, {} {} in the new version", name, dtype_name(a->dtype()),
             a->shape().str(), dtype_name(b->dtype()), b->shape().str());
    return;
  }
  const auto table = sparse::GrowableTable::of(mine), next = sparse::GrowableTable::of(fresh);
  AB_CHECK(table && next, InvalidArgument, "variable {} is a {} in the model, and not in the new version", name,
           a ? "tensor" : "growable table");
  AB_CHECK(table->options().width == next->options().width, ShapeMismatch,
           "table {} has rows of {} numbers in the model, of {} in the new version", name, table->options().width,
           next->options().width);
}

}  // namespace

void FollowedModel::switch_to(int64_t version, Scope& fresh, const std::vector<std::string>& names,
                              std::vector<Layer> layers) {
  std::vector<Exchange> all;
  std::vector<std::shared_ptr<sparse::GrowableTable>> old;  // freed after the change
  for (const auto& name : names) {
    Value *mine = scope_->find_var(name), *next = fresh.find_var(name);
    AB_CHECK(mine && next, NotFound, "variable {} is missing in {}", name, mine ? "the new version" : "the model");
    check_same_kind(name, *mine, *next);
    all.push_back({mine, next});
    old.push_back(sparse::GrowableTable::of(*mine));
  }
  const RunGate::Change change(&scope_->gate());
  for (const Exchange& e : all) {
    if (const Tensor* t = e.fresh->get<Tensor>()) {
      e.mine->as<Tensor>().copy_from(*t);  // other scopes share the memory
      e.mine->touch();
    } else {
      sparse::GrowableTable::put(e.mine, sparse::GrowableTable::of(*e.fresh));
    }
  }
  for (const Layer& layer : layers) layer.table->set_layer(layer.changes);
  layers_ = std::move(layers);
  version_.store(version, std::memory_order_relaxed);
}

void FollowedModel::fold() {
  for (const Layer& layer : layers_) layer.table->fold_layer();
  std::vector<Layer> done;
  {
    const RunGate::Change change(&scope_->gate());
    for (const Layer& layer : layers_) layer.table->set_layer(nullptr);
    done.swap(layers_);
  }
}

// The old rows are freed with `image`, when runs no longer wait.
void FollowedModel::rest_on(sparse::GrowableTable& table, const std::shared_ptr<sparse::GrowableTable>& image) {
  const RunGate::Change change(&scope_->gate());
  table.exchange_images(image.get());
}

}  // namespace anabranch
